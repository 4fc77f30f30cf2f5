//! LB-CLOCK: a clock over logical blocks that evicts the largest of those not touched lately (Debnath, Subramanya, Du &
//! Lilja, "Large Block CLOCK (LB-CLOCK): a write caching algorithm for solid state disks").
//!
//! Every block with buffered pages has a reference bit, set by each write to it. When room is needed, the hand sweeps on,
//! clearing bits, until it meets a block whose bit is clear; the victim is then the largest block among all whose bit is
//! clear, the one cleared longest ago among equals, and leaves whole. The hand stays where it stopped.
//!
//! Blocks with a clear bit are kept in one list for each number of pages, with a bitmap of the lists that are not empty:
//! O(pages of a block / 64) a pick, O(1) a touch, amortised over the sweep.

use super::units::{UNIT_PAGES, Units, log2_unit_pages};
use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, Touch};
use crate::address::Lpn;
use crate::dram::index::NO_SLOT;
use crate::dram::list::{Links, List};
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "lb_clock",
    summary: "the largest logical block not touched lately leaves whole",
    paper: "Debnath et al., LB-CLOCK",
    memory: "70 bytes a frame",
    parameters: &[UNIT_PAGES],
    build: |parameters, context| {
        let log2_pages = log2_unit_pages(parameters, context.pages_per_block);
        Ok(AnyBuffer::LbClock(LbClock::new(context.frames, log2_pages)))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LbClock {
    units: Units,
    /// All units in the order of the clock; the hand is the next to be looked at.
    ring: List,
    ring_links: Links,
    hand: u32,
    is_referenced: Vec<bool>,
    /// Units with a clear bit, by their number of pages less one.
    candidates: Vec<List>,
    candidate_links: Links,
    occupied: Vec<u64>,
}

impl LbClock {
    fn new(frames: u32, log2_pages: u8) -> Self {
        let sizes = 1usize << log2_pages;
        Self {
            units: Units::new(frames, log2_pages),
            ring: List::default(),
            ring_links: Links::new(frames),
            hand: NO_SLOT,
            is_referenced: vec![false; frames as usize],
            candidates: vec![List::default(); sizes],
            candidate_links: Links::new(frames),
            occupied: vec![0; sizes.div_ceil(64)],
        }
    }

    fn add_candidate(&mut self, unit: u32) {
        let size = self.units.length(unit) as usize - 1;
        self.candidates[size].push_newest(&mut self.candidate_links, unit);
        self.occupied[size / 64] |= 1 << (size % 64);
    }

    fn drop_candidate(&mut self, unit: u32, pages: u32) {
        let size = pages as usize - 1;
        self.candidates[size].remove(&mut self.candidate_links, unit);
        if self.candidates[size].length() == 0 {
            self.occupied[size / 64] &= !(1 << (size % 64));
        }
    }

    /// Sets the bit of a unit that had `pages` pages before the touch.
    fn reference(&mut self, unit: u32, pages: u32) {
        if !self.is_referenced[unit as usize] {
            self.is_referenced[unit as usize] = true;
            self.drop_candidate(unit, pages);
        }
    }

    /// Moves the hand on, clearing bits, until it meets a clear one.
    fn sweep(&mut self) {
        loop {
            let unit = match self.hand {
                NO_SLOT => self.ring.oldest().expect("a pick needs a unit"),
                unit => unit,
            };
            if !self.is_referenced[unit as usize] {
                self.hand = unit;
                return;
            }
            self.is_referenced[unit as usize] = false;
            self.add_candidate(unit);
            self.hand = self.ring_links.newer(unit).unwrap_or(NO_SLOT);
        }
    }
}

impl BufferPolicy for LbClock {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, lpn: Lpn, _: Touch) {
        let (unit, is_new) = self.units.insert(frame, lpn);
        if is_new {
            self.ring.push_newest(&mut self.ring_links, unit);
            self.is_referenced[unit as usize] = true;
        } else {
            self.reference(unit, self.units.length(unit) - 1);
        }
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, _: Lpn, touch: Touch) {
        if touch == Touch::Write {
            let unit = self.units.of(frame);
            self.reference(unit, self.units.length(unit));
        }
    }
    fn on_remove(&mut self, frame: u32, _: Lpn, _: Departure) {
        let unit = self.units.of(frame);
        if !self.is_referenced[unit as usize] {
            self.drop_candidate(unit, self.units.length(unit));
        }
        let (_, is_gone) = self.units.remove(frame);
        if is_gone {
            if self.hand == unit {
                self.hand = self.ring_links.newer(unit).unwrap_or(NO_SLOT);
            }
            self.ring.remove(&mut self.ring_links, unit);
        } else if !self.is_referenced[unit as usize] {
            self.add_candidate(unit);
        }
    }
    fn pick(&mut self, victims: &mut Vec<u32>) {
        self.sweep();
        let word = self.occupied.iter().rposition(|w| *w != 0).expect("the sweep left a unit with a clear bit");
        let size = word * 64 + self.occupied[word].ilog2() as usize;
        let unit = self.candidates[size].oldest().expect("an occupied list has an oldest unit");
        self.units.append_members(unit, victims);
    }
    fn memory_bytes(&self) -> u64 {
        let lists = self.candidates.len() * size_of::<List>() + self.occupied.len() * 8 + self.is_referenced.len();
        self.units.memory_bytes() + self.ring_links.bytes() + self.candidate_links.bytes() + lists as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evict(policy: &mut LbClock) -> Vec<u32> {
        let mut victims = Vec::new();
        policy.pick(&mut victims);
        for frame in &victims {
            policy.on_remove(*frame, Lpn(0), Departure::Evicted);
        }
        victims.sort_unstable();
        victims
    }

    #[test]
    fn the_largest_block_with_a_clear_bit_leaves() {
        let mut policy = LbClock::new(8, 2);
        // Block 0: one page; block 1: three pages; block 2: two pages.
        for (frame, lpn) in [(0, 0), (1, 4), (2, 5), (3, 6), (4, 8), (5, 9)] {
            policy.on_insert(frame, Lpn(lpn), Touch::Write);
        }
        assert_eq!(evict(&mut policy), [1, 2, 3], "the sweep cleared every bit: block 1 is the largest");
        policy.on_touch(4, Lpn(8), Touch::Write);
        assert_eq!(evict(&mut policy), [0], "block 2 is larger, but was touched");
        assert_eq!(evict(&mut policy), [4, 5]);
    }

    #[test]
    fn candidates_follow_the_size_of_their_block() {
        let mut policy = LbClock::new(8, 2);
        for (frame, lpn) in [(0, 0), (1, 1), (2, 4), (3, 5), (4, 8)] {
            policy.on_insert(frame, Lpn(lpn), Touch::Write);
        }
        assert_eq!(evict(&mut policy), [0, 1]);
        // A trim takes a page of block 1, which is a candidate, and leaves it with one page, cleared before block 2.
        policy.on_remove(3, Lpn(5), Departure::Discarded);
        assert_eq!(evict(&mut policy), [4], "equal sizes: block 1 became a candidate of its size after block 2");
        assert_eq!(evict(&mut policy), [2]);
    }
}
