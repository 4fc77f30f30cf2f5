//! Page LRU: the page touched longest ago leaves. Reads of buffered pages count as touches; pages are not kept for reading.
//!
//! The buffer of adaptive partitioning (section III.C: "a page-level LRU buffer replacement algorithm"). O(1).

use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, NONE, Touch};
use crate::address::Lpn;
use crate::dram::list::{Links, List};
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "lru",
    summary: "the page touched longest ago leaves",
    paper: "Adaptive partitioning, section III.C",
    memory: "8 bytes a frame",
    parameters: NONE,
    build: |_, context| Ok(AnyBuffer::Lru(Lru::new(context.frames))),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    list: List,
}

impl Lru {
    pub(super) fn new(frames: u32) -> Self {
        Self { links: Links::new(frames), list: List::default() }
    }
}

impl BufferPolicy for Lru {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, _: Lpn, _: Touch) {
        self.list.push_newest(&mut self.links, frame);
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, _: Lpn, _: Touch) {
        self.list.touch(&mut self.links, frame);
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
    fn the_page_touched_longest_ago_leaves() {
        let mut policy = Lru::new(3);
        for frame in 0..3 {
            policy.on_insert(frame, Lpn(frame), Touch::Write);
        }
        policy.on_touch(0, Lpn(0), Touch::Read);
        let mut victims = Vec::new();
        policy.pick(&mut victims);
        assert_eq!(victims, [1]);
    }
}
