//! LRU stack distances by class: how large a cache would have to be for each access to hit it.
//!
//! One LRU order, cut into segments of equal length. A cache of `s` segments holds exactly the first `s` of them, so the
//! segment in which an access finds its address tells every size that hits, and an address that moves from one segment to
//! the next is at that moment evicted by the cache that ends there. Sampling by address (Waldspurger, Park, Garthwaite &
//! Ahmad, "Efficient MRC construction with SHARDS") scales both the addresses and the length of segments.
//!
//! Exact to the length of a segment. O(segments) an access, at worst; memory is allocated once.

use super::index::AddressIndex;
use super::list::{Links, List};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LruStack {
    index: AddressIndex,
    addresses: Vec<u32>,
    links: Links,
    segments: Vec<List>,
    segment_of: Vec<u8>,
    free: Vec<u32>,
    segment_length: u32,
}

/// Where an access found its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The slot of the address, for what the caller keeps beside it.
    pub slot: u32,
    /// The segment in which it was, from 0 at the young end; `None` if it was in none.
    pub segment: Option<u8>,
}

impl LruStack {
    /// Bytes of firmware state for one address: address, two links, a chained hash entry, 4 bytes each, and 4 bytes for
    /// its segment and what the caller keeps.
    pub const ENTRY_BYTES: u64 = 20;

    /// An empty stack of `segments` (at most 254) of `segment_length` addresses each.
    pub fn new(segments: u8, segment_length: u32) -> Self {
        // One address more than the segments hold: it is the one that is leaving.
        let slots = u32::from(segments) * segment_length + 1;
        Self {
            index: AddressIndex::new(slots),
            addresses: vec![0; slots as usize],
            links: Links::new(slots),
            segments: vec![List::default(); usize::from(segments)],
            segment_of: vec![0; slots as usize],
            free: (0..slots).rev().collect(),
            segment_length,
        }
    }

    /// Slots that callers keep something for.
    pub fn slots(&self) -> usize {
        self.addresses.len()
    }

    /// Finds an address without touching it.
    #[inline(always)]
    pub fn find(&self, address: u32) -> Option<(u32, u8)> {
        self.index.get(address).map(|slot| (slot, self.segment_of[slot as usize]))
    }

    /// Makes `address` the youngest. `crossing` hears of every slot that an older segment takes over, with the segment
    /// that it leaves.
    #[inline(always)]
    pub fn touch(&mut self, address: u32, mut crossing: impl FnMut(u32, u8)) -> Found {
        let found = self.find(address);
        let slot = match found {
            Some((slot, segment)) => {
                self.segments[usize::from(segment)].remove(&mut self.links, slot);
                slot
            }
            None => {
                let slot = self.free.pop().expect("one slot is free between accesses");
                self.addresses[slot as usize] = address;
                self.index.insert(address, slot);
                slot
            }
        };
        self.segment_of[slot as usize] = 0;
        self.segments[0].push_newest(&mut self.links, slot);
        self.settle(&mut crossing);
        Found { slot, segment: found.map(|f| f.1) }
    }

    /// Makes the address in `slot` the youngest of its own segment, as an access does that only caches of that size notice.
    #[inline(always)]
    pub fn renew(&mut self, slot: u32) {
        self.segments[usize::from(self.segment_of[slot as usize])].touch(&mut self.links, slot);
    }

    /// Moves the oldest address of every segment that is too long to the next one.
    #[inline(always)]
    fn settle(&mut self, crossing: &mut impl FnMut(u32, u8)) {
        let mut segment = 0;
        while self.segments[segment].length() > self.segment_length {
            let slot =
                self.segments[segment].pop_oldest(&mut self.links).expect("a list longer than zero has an oldest slot");
            crossing(slot, segment as u8);
            segment += 1;
            let Some(next) = self.segments.get_mut(segment) else {
                self.index.remove(self.addresses[slot as usize]);
                self.free.push(slot);
                return;
            };
            next.push_newest(&mut self.links, slot);
            self.segment_of[slot as usize] = segment as u8;
        }
    }

    /// Forgets `address`. The segments behind it keep their places: a gap closes with the accesses that follow.
    pub fn remove(&mut self, address: u32) {
        let Some(slot) = self.index.remove(address) else { return };
        self.segments[usize::from(self.segment_of[slot as usize])].remove(&mut self.links, slot);
        self.free.push(slot);
    }

    /// Bytes of firmware state for a full stack.
    pub fn memory_bytes(&self) -> u64 {
        self.addresses.len() as u64 * Self::ENTRY_BYTES
    }
}

/// Whether an address is in the sample of one in 2^`log2`: by its hash, so that all accesses to it are.
#[inline(always)]
pub fn is_sampled(address: u32, log2: u8) -> bool {
    let mut x = address.wrapping_mul(0x9E37_79B1);
    x = (x ^ x >> 15).wrapping_mul(0x85EB_CA6B);
    (x ^ x >> 13).wrapping_mul(0xC2B2_AE35) >> (32 - u32::from(log2).max(1)) == 0 || log2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn segments_tell_which_sizes_of_an_lru_cache_hit() {
        const LENGTH: usize = 5;
        let mut stack = LruStack::new(4, LENGTH as u32);
        // The model: all addresses, youngest first.
        let mut order: Vec<u32> = Vec::new();
        let mut random = Random::new(9);
        for access in 0..20_000 {
            let address = (random.unit().powi(2) * 40.0) as u32;
            let depth = order.iter().position(|a| *a == address);
            let expected = depth.map(|d| d / LENGTH).filter(|s| *s < 4).map(|s| s as u8);
            // Caches larger than the distance keep all they have, smaller ones lose one address if they were full.
            let lost = expected.map_or(order.len() / LENGTH, usize::from);
            let mut crossed = Vec::new();
            let found = stack.touch(address, |_, segment| crossed.push(segment));
            assert_eq!(found.segment, expected, "access {access}");
            order.retain(|a| *a != address);
            order.insert(0, address);
            order.truncate(4 * LENGTH);
            assert_eq!(crossed.len(), lost, "access {access}");
        }
    }

    #[test]
    fn a_sample_is_as_large_as_it_says() {
        for log2 in [0, 1, 5, 8] {
            let sampled = (0..1 << 20).filter(|a| is_sampled(*a, log2)).count() as f64;
            let expected = f64::from((1 << 20) >> log2);
            assert!((sampled / expected - 1.0).abs() < 0.05, "{sampled} of {expected}");
        }
    }
}
