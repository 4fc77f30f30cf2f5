//! BPLRU: LRU over logical blocks with page padding and LRU compensation (Kim & Ahn, "BPLRU: a buffer management scheme for
//! improving random writes in flash storage", sections 3.2 to 3.4).
//!
//! A write moves its whole logical block to the young end; a read moves nothing. A block that was written from its first
//! page to its last in order goes to the old end at once, since it will not be written again soon. The oldest block leaves
//! whole, and its missing pages are read and written with it (cause `padding`), so that a hybrid map sees complete blocks.
//! Departure: pages that never held data are not padded. Padding does nothing for a page map but cost, as the paper says;
//! `padding=false` leaves block-level LRU. O(1) a touch; an eviction costs its pages.

use super::units::{UNIT_PAGES, Units, log2_unit_pages};
use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, Touch};
use crate::address::Lpn;
use crate::dram::list::{Links, List};
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "bplru",
    summary: "the logical block written longest ago leaves whole, its missing pages padded",
    paper: "Kim & Ahn, BPLRU",
    memory: "68 bytes a frame",
    parameters: &[
        UNIT_PAGES,
        Parameter::boolean("padding", "true").help("read and write the missing pages of an evicted block"),
    ],
    build: |parameters, context| {
        let log2_pages = log2_unit_pages(parameters, context.pages_per_block);
        Ok(AnyBuffer::Bplru(Bplru::new(context.frames, log2_pages, parameters.boolean("padding"))))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Bplru {
    units: Units,
    links: Links,
    list: List,
    /// Pages of each unit that were written in order from the first on; broken by any other write.
    in_order: Vec<u32>,
    padding: bool,
}

/// A unit whose writes broke the order.
const BROKEN: u32 = u32::MAX;

impl Bplru {
    fn new(frames: u32, log2_pages: u8, padding: bool) -> Self {
        Self {
            units: Units::new(frames, log2_pages),
            links: Links::new(frames),
            list: List::default(),
            in_order: vec![0; frames as usize],
            padding,
        }
    }

    /// Follows the order of writes to a unit, and moves it to where it belongs.
    #[inline(always)]
    fn order(&mut self, unit: u32, lpn: Lpn) {
        let in_order = &mut self.in_order[unit as usize];
        *in_order = if *in_order == self.units.offset(lpn) { *in_order + 1 } else { BROKEN };
        if *in_order == 1 << self.units.log2_pages() {
            self.list.remove(&mut self.links, unit);
            self.list.push_oldest(&mut self.links, unit);
        } else {
            self.list.touch(&mut self.links, unit);
        }
    }
}

impl BufferPolicy for Bplru {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, lpn: Lpn, _: Touch) {
        let (unit, is_new) = self.units.insert(frame, lpn);
        if is_new {
            self.list.push_newest(&mut self.links, unit);
            self.in_order[unit as usize] = 0;
        }
        self.order(unit, lpn);
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, lpn: Lpn, touch: Touch) {
        if touch == Touch::Write {
            self.order(self.units.of(frame), lpn);
        }
    }
    fn on_remove(&mut self, frame: u32, _: Lpn, _: Departure) {
        let (unit, is_gone) = self.units.remove(frame);
        self.in_order[unit as usize] = BROKEN;
        if is_gone {
            self.list.remove(&mut self.links, unit);
        }
    }
    fn pick(&mut self, victims: &mut Vec<u32>) {
        if let Some(unit) = self.list.oldest() {
            self.units.append_members(unit, victims);
        }
    }
    fn padded_unit(&self) -> Option<u8> {
        self.padding.then_some(self.units.log2_pages())
    }
    fn memory_bytes(&self) -> u64 {
        self.units.memory_bytes() + self.links.bytes() + self.in_order.len() as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(policy: &mut Bplru) -> Vec<u32> {
        let mut victims = Vec::new();
        policy.pick(&mut victims);
        victims.sort_unstable();
        victims
    }

    #[test]
    fn blocks_leave_whole_in_lru_order_and_sequential_ones_first() {
        let mut policy = Bplru::new(8, 2, true);
        // Block 0: pages 0 and 2; block 1: page 5; block 2: page 8.
        for (frame, lpn) in [(0, 0), (1, 5), (2, 8), (3, 2)] {
            policy.on_insert(frame, Lpn(lpn), Touch::Write);
        }
        assert_eq!(pick(&mut policy), [1], "block 1 was written longest ago");
        policy.on_touch(1, Lpn(5), Touch::Read);
        assert_eq!(pick(&mut policy), [1], "a read moves nothing");
        policy.on_touch(1, Lpn(5), Touch::Write);
        assert_eq!(pick(&mut policy), [2]);
        for (frame, lpn) in [(4, 12), (5, 13), (6, 14), (7, 15)] {
            policy.on_insert(frame, Lpn(lpn), Touch::Write);
        }
        assert_eq!(pick(&mut policy), [4, 5, 6, 7], "block 3 was filled in order: LRU compensation");
        for frame in 4..8 {
            policy.on_remove(frame, Lpn(12), Departure::Evicted);
        }
        assert_eq!(pick(&mut policy), [2]);
    }
}
