//! LRU stack distances by class: how large a cache would have to be for each access to hit it (Mattson et al., "Evaluation
//! techniques for storage hierarchies").
//!
//! One LRU order over slots, cut into segments. The cache of size `i` holds exactly the first `i + 1` segments, so the
//! segment in which an access finds its slot tells every size that hits, and a slot that moves from one segment to the next
//! is at that moment evicted by the cache that ends there. Where a segment ends is for its user to say: after so many slots,
//! or at such an age.
//!
//! O(segments) an access, at worst; memory is allocated once.

use super::list::{Links, List};

/// In no segment.
const NOWHERE: u8 = u8::MAX;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LruStack {
    links: Links,
    segments: Vec<List>,
    segment_of: Vec<u8>,
}

impl LruStack {
    /// An empty stack of `segments` (at most 254) for so many `slots`.
    pub fn new(segments: u8, slots: u32) -> Self {
        Self {
            links: Links::new(slots),
            segments: vec![List::default(); usize::from(segments)],
            segment_of: vec![NOWHERE; slots as usize],
        }
    }

    /// The segment that holds a slot.
    #[inline(always)]
    pub fn segment(&self, slot: u32) -> Option<u8> {
        Some(self.segment_of[slot as usize]).filter(|segment| *segment != NOWHERE)
    }

    /// Slots in a segment.
    #[inline(always)]
    pub fn length(&self, segment: u8) -> u32 {
        self.segments[usize::from(segment)].length()
    }

    /// The oldest slot of a segment.
    #[inline(always)]
    pub fn oldest(&self, segment: u8) -> Option<u32> {
        self.segments[usize::from(segment)].oldest()
    }

    /// Makes a slot the youngest, and returns the segment that it was in.
    #[inline(always)]
    pub fn touch(&mut self, slot: u32) -> Option<u8> {
        let found = self.segment(slot);
        if let Some(segment) = found {
            self.segments[usize::from(segment)].remove(&mut self.links, slot);
        }
        self.segment_of[slot as usize] = 0;
        self.segments[0].push_newest(&mut self.links, slot);
        found
    }

    /// Makes a slot that is in a segment the youngest of it, as an access does that only caches of that size notice.
    #[inline(always)]
    pub fn renew(&mut self, slot: u32) {
        self.segments[usize::from(self.segment_of[slot as usize])].touch(&mut self.links, slot);
    }

    /// Moves the oldest slot of `segment` to the next one, or out behind the last, and returns it.
    #[inline(always)]
    pub fn pass_on(&mut self, segment: u8) -> Option<u32> {
        let slot = self.segments[usize::from(segment)].pop_oldest(&mut self.links)?;
        match self.segments.get_mut(usize::from(segment) + 1) {
            Some(next) => {
                next.push_newest(&mut self.links, slot);
                self.segment_of[slot as usize] = segment + 1;
            }
            None => self.segment_of[slot as usize] = NOWHERE,
        }
        Some(slot)
    }

    /// Takes a slot out. The segments behind it keep their places: a gap closes with the accesses that follow.
    pub fn remove(&mut self, slot: u32) {
        if let Some(segment) = self.segment(slot) {
            self.segments[usize::from(segment)].remove(&mut self.links, slot);
            self.segment_of[slot as usize] = NOWHERE;
        }
    }
}

/// Mixes an address, so that neighbours have nothing in common.
#[inline(always)]
pub fn hash(address: u32) -> u32 {
    let mut x = address.wrapping_mul(0x9E37_79B1);
    x = (x ^ x >> 15).wrapping_mul(0x85EB_CA6B);
    x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn segments_tell_which_sizes_of_an_lru_cache_hit() {
        const LENGTHS: [u32; 4] = [5, 1, 0, 9];
        const ENDS: [usize; 4] = [5, 6, 6, 15];
        let mut stack = LruStack::new(4, 40);
        // The model: all slots, youngest first.
        let mut order: Vec<u32> = Vec::new();
        let mut random = Random::new(9);
        for access in 0..20_000 {
            let slot = (random.unit().powi(2) * 40.0) as u32;
            let depth = order.iter().position(|a| *a == slot);
            let expected = depth.map(|d| ENDS.iter().position(|end| d < *end).unwrap() as u8);
            assert_eq!(stack.touch(slot), expected, "access {access}");
            for segment in 0..4u8 {
                let (length, end) = (LENGTHS[usize::from(segment)], ENDS[usize::from(segment)]);
                while stack.length(segment) > length {
                    assert_eq!(stack.pass_on(segment), Some(order[end - 1]), "access {access}");
                }
            }
            order.retain(|a| *a != slot);
            order.insert(0, slot);
            order.truncate(15);
        }
    }
}
