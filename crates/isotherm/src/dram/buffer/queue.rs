//! Page LRU and FIFO: one list of pages, which differ in whether a touch makes a page the youngest of it.
//!
//! - `lru`: the page touched longest ago leaves. Reads of buffered pages count as touches; pages are not kept for reading.
//!   The buffer of adaptive partitioning (section III.C: "a page-level LRU buffer replacement algorithm").
//! - `fifo`: the page that entered first leaves, however often it was touched since.
//!
//! O(1).

use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, NONE, Touch};
use crate::address::Lpn;
use crate::dram::list::{Links, List};
use crate::registry::Entry;

pub(super) const LRU: Entry<BuildBuffer> = Entry {
    name: "lru",
    summary: "the page touched longest ago leaves",
    paper: "Adaptive partitioning, section III.C",
    memory: "8 bytes a frame",
    parameters: NONE,
    build: |_, context| Ok(AnyBuffer::Queue(Queue::new(context.frames, true))),
};

pub(super) const FIFO: Entry<BuildBuffer> = Entry {
    name: "fifo",
    summary: "the page that entered first leaves",
    paper: "the usual baseline",
    memory: "8 bytes a frame",
    parameters: NONE,
    build: |_, context| Ok(AnyBuffer::Queue(Queue::new(context.frames, false))),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Queue {
    links: Links,
    list: List,
    /// A touch makes a page the youngest: LRU.
    touch_renews: bool,
}

impl Queue {
    pub(super) fn new(frames: u32, touch_renews: bool) -> Self {
        Self { links: Links::new(frames), list: List::default(), touch_renews }
    }
}

impl BufferPolicy for Queue {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, _: Lpn, _: Touch) {
        self.list.push_newest(&mut self.links, frame);
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, _: Lpn, _: Touch) {
        if self.touch_renews {
            self.list.touch(&mut self.links, frame);
        }
    }
    #[inline(always)]
    fn on_remove(&mut self, frame: u32, _: Lpn, _: Departure) {
        self.list.remove(&mut self.links, frame);
    }
    #[inline(always)]
    fn pick(&mut self, victims: &mut Vec<u32>) {
        victims.extend(self.list.oldest());
    }
    #[inline(always)]
    fn upcoming(&self) -> [Option<u32>; 2] {
        let second = self.list.oldest().and_then(|oldest| self.links.newer(oldest));
        [second, second.and_then(|second| self.links.newer(second))]
    }
    fn memory_bytes(&self) -> u64 {
        self.links.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_makes_a_page_the_youngest_under_lru_and_changes_nothing_under_fifo() {
        for (touch_renews, leaves) in [(true, 1), (false, 0)] {
            let mut policy = Queue::new(3, touch_renews);
            for frame in 0..3 {
                policy.on_insert(frame, Lpn(frame), Touch::Write);
            }
            for touch in [Touch::Read, Touch::Write] {
                policy.on_touch(0, Lpn(0), touch);
            }
            let mut victims = Vec::new();
            policy.pick(&mut victims);
            assert_eq!(victims, [leaves]);
        }
    }
}
