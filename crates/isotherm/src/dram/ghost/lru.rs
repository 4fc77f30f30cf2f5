//! The exact ghost: the addresses that left a cache last, in the order of leaving.
//!
//! The ghost buffer of adaptive partitioning (section III.B), the oracle for its bitmap, and the history lists of ARC.
//! O(1) for every operation; memory is allocated once, for the largest capacity.

use crate::dram::index::AddressIndex;
use crate::dram::list::{Links, List};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct GhostLru {
    index: AddressIndex,
    addresses: Vec<u32>,
    links: Links,
    list: List,
    free: Vec<u32>,
    capacity: u32,
}

impl GhostLru {
    /// Bytes of firmware state for one address: LPN, two links, and a chained hash entry, 4 bytes each.
    pub const ENTRY_BYTES: u64 = 16;

    /// An empty ghost of at most `most` addresses, which is its capacity at first.
    pub fn new(most: u32) -> Self {
        Self {
            index: AddressIndex::new(most),
            addresses: vec![0; most as usize],
            links: Links::new(most),
            list: List::default(),
            free: (0..most).rev().collect(),
            capacity: most,
        }
    }

    /// Addresses remembered.
    #[inline(always)]
    pub fn length(&self) -> u32 {
        self.list.length()
    }

    /// Whether `address` is remembered.
    #[inline(always)]
    pub fn contains(&self, address: u32) -> bool {
        self.index.get(address).is_some()
    }

    /// Remembers `address` as the newest, and forgets the oldest ones beyond the capacity.
    #[inline(always)]
    pub fn insert(&mut self, address: u32) {
        if let Some(slot) = self.index.get(address) {
            self.list.touch(&mut self.links, slot);
            return;
        }
        if self.capacity == 0 {
            return;
        }
        self.shrink_to(self.capacity - 1);
        let slot = self.free.pop().expect("a ghost below its capacity has a free slot");
        self.addresses[slot as usize] = address;
        self.index.insert(address, slot);
        self.list.push_newest(&mut self.links, slot);
    }

    /// Forgets `address`; true if it was remembered.
    #[inline(always)]
    pub fn remove(&mut self, address: u32) -> bool {
        let Some(slot) = self.index.remove(address) else { return false };
        self.list.remove(&mut self.links, slot);
        self.free.push(slot);
        true
    }

    /// Forgets the oldest addresses until at most `length` are left.
    pub fn shrink_to(&mut self, length: u32) {
        while self.list.length() > length {
            let slot = self.list.pop_oldest(&mut self.links).expect("a list longer than zero has an oldest slot");
            self.index.remove(self.addresses[slot as usize]);
            self.free.push(slot);
        }
    }

    /// Sets the capacity, at most what the ghost was built for.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity.min(self.addresses.len() as u32);
        self.shrink_to(self.capacity);
    }

    /// Bytes of firmware state in use.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.list.length()) * Self::ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_newest_addresses_up_to_its_capacity() {
        let mut ghost = GhostLru::new(3);
        for address in [10, 11, 12, 10, 13] {
            ghost.insert(address);
        }
        assert!(ghost.contains(10) && ghost.contains(12) && ghost.contains(13), "11 was the oldest");
        assert!(!ghost.contains(11));
        assert!(ghost.remove(12) && !ghost.remove(12));
        ghost.set_capacity(1);
        assert!(ghost.contains(13) && !ghost.contains(10));
        assert_eq!(ghost.memory_bytes(), GhostLru::ENTRY_BYTES);
    }
}
