//! FIFO: the page that entered first leaves, however often it was touched since. O(1).

use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, NONE, Touch};
use crate::address::Lpn;
use crate::dram::list::{Links, List};
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "fifo",
    summary: "the page that entered first leaves",
    paper: "the usual baseline",
    memory: "8 bytes a frame",
    parameters: NONE,
    build: |_, context| Ok(AnyBuffer::Fifo(Fifo::new(context.frames))),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Fifo {
    links: Links,
    list: List,
}

impl Fifo {
    fn new(frames: u32) -> Self {
        Self { links: Links::new(frames), list: List::default() }
    }
}

impl BufferPolicy for Fifo {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, _: Lpn, _: Touch) {
        self.list.push_newest(&mut self.links, frame);
    }
    #[inline(always)]
    fn on_touch(&mut self, _: u32, _: Lpn, _: Touch) {}
    #[inline(always)]
    fn on_remove(&mut self, frame: u32, _: Lpn, _: Departure) {
        self.list.remove(&mut self.links, frame);
    }
    #[inline(always)]
    fn pick(&mut self, victims: &mut Vec<u32>) {
        victims.extend(self.list.oldest());
    }
    fn memory_bytes(&self) -> u64 {
        self.links.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_changes_nothing() {
        let mut policy = Fifo::new(2);
        policy.on_insert(0, Lpn(0), Touch::Write);
        policy.on_insert(1, Lpn(1), Touch::Write);
        policy.on_touch(0, Lpn(0), Touch::Write);
        let mut victims = Vec::new();
        policy.pick(&mut victims);
        assert_eq!(victims, [0]);
    }
}
