//! A bounded hash index from addresses to slots: which frame holds a page, which ghost remembers one.
//!
//! Open addressing with linear probing at a load of at most one half; a deletion shifts the following entries back, so that
//! no tombstones pile up. Eight bytes an entry and one cache line a lookup: for the few thousand frames of a buffer it
//! stays in the second-level cache, where a table indexed by LPN would not. O(1); memory is allocated once.

use crate::memory;

/// A slot that stands for none.
pub const NO_SLOT: u32 = u32::MAX;

const EMPTY: u64 = u64::MAX;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct AddressIndex {
    /// Address in the low half, slot in the high half.
    entries: Vec<u64>,
    mask: u32,
    shift: u32,
}

impl AddressIndex {
    /// An empty index for at most `capacity` addresses.
    pub fn new(capacity: u32) -> Self {
        let log2 = (u64::from(capacity.max(1)) * 2).next_power_of_two().trailing_zeros();
        assert!(log2 < 32, "an index holds fewer than 2^30 addresses");
        Self { entries: vec![EMPTY; 1 << log2], mask: (1 << log2) - 1, shift: 32 - log2 }
    }

    #[inline(always)]
    fn home(&self, address: u32) -> u32 {
        // Fibonacci hashing: runs of consecutive addresses spread evenly.
        address.wrapping_mul(0x9E37_79B1) >> self.shift
    }

    /// Position of `address`, or of the gap that ends its probe.
    #[inline(always)]
    fn find(&self, address: u32) -> (u32, u64) {
        let mut at = self.home(address);
        loop {
            let entry = self.entries[at as usize];
            if entry == EMPTY || entry as u32 == address {
                return (at, entry);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The slot of `address`.
    #[inline(always)]
    pub fn get(&self, address: u32) -> Option<u32> {
        let entry = self.find(address).1;
        (entry != EMPTY).then_some((entry >> 32) as u32)
    }

    /// Brings what [`get`](Self::get) looks at first towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, address: u32) {
        memory::prefetch(&self.entries, self.home(address) as usize);
    }

    /// Enters `address`, which is not in, with `slot`.
    #[inline(always)]
    pub fn insert(&mut self, address: u32, slot: u32) {
        debug_assert!(slot != NO_SLOT);
        let (at, old) = self.find(address);
        debug_assert!(old == EMPTY, "address {address} is in already");
        self.entries[at as usize] = u64::from(slot) << 32 | u64::from(address);
    }

    /// Takes `address` out and gives its slot.
    #[inline(always)]
    pub fn remove(&mut self, address: u32) -> Option<u32> {
        let (mut gap, entry) = self.find(address);
        if entry == EMPTY {
            return None;
        }
        let mut at = gap;
        loop {
            at = (at + 1) & self.mask;
            let next = self.entries[at as usize];
            if next == EMPTY {
                break;
            }
            // An entry may fill the gap only if its home does not lie behind the gap.
            let distance_home = at.wrapping_sub(self.home(next as u32)) & self.mask;
            let distance_gap = at.wrapping_sub(gap) & self.mask;
            if distance_home >= distance_gap {
                self.entries[gap as usize] = next;
                gap = at;
            }
        }
        self.entries[gap as usize] = EMPTY;
        Some((entry >> 32) as u32)
    }

    /// Bytes of the index.
    pub fn bytes(&self) -> u64 {
        self.entries.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_map_under_random_insertions_and_removals() {
        let mut random = Random::new(3);
        let mut index = AddressIndex::new(64);
        let mut model = BTreeMap::new();
        for step in 0..200_000u32 {
            let address = random.below(100) as u32;
            if model.contains_key(&address) {
                assert_eq!(index.remove(address), model.remove(&address), "step {step}");
            } else if model.len() < 64 {
                index.insert(address, step);
                model.insert(address, step);
            }
            let probe = random.below(100) as u32;
            assert_eq!(index.get(probe), model.get(&probe).copied(), "step {step}");
        }
    }
}
