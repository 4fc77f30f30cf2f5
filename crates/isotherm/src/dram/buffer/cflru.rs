//! CFLRU: clean pages leave first, if one lies in the window at the old end of the LRU order; else the oldest page leaves
//! (Park, Jung, Kang, Kim & Lee, "CFLRU: a replacement algorithm for flash memory").
//!
//! It is a policy for a buffer that holds pages for reading too, so pages that the host reads enter clean. A dropped clean
//! page costs a read later, a flushed dirty page a program now. The oldest clean page of the window is found in O(1): the
//! LRU order is kept as two lists, young pages and the window, and clean pages of the window are linked once more.

use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, Touch};
use crate::address::Lpn;
use crate::dram::list::{Links, List};
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "cflru",
    summary: "the oldest clean page of the window leaves, else the oldest page; keeps pages that are read",
    paper: "Park et al., CFLRU",
    memory: "18 bytes a frame",
    parameters: &[Parameter::real("window", 0.0..=1.0, "0.5")
        .help("share of the buffer, at its old end, in which clean pages leave first")],
    build: |parameters, context| {
        let window = parameters.real("window");
        Ok(AnyBuffer::Cflru(Cflru::new(context.frames, window)))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Cflru {
    links: Links,
    young: List,
    window: List,
    /// Clean frames of the window, in the window's order.
    clean_links: Links,
    clean: List,
    is_dirty: Vec<bool>,
    in_window: Vec<bool>,
    window_share: f64,
    /// Pages that may be young; the others form the window.
    young_most: u32,
}

impl Cflru {
    fn new(frames: u32, window_share: f64) -> Self {
        let mut policy = Self {
            links: Links::new(frames),
            young: List::default(),
            window: List::default(),
            clean_links: Links::new(frames),
            clean: List::default(),
            is_dirty: vec![false; frames as usize],
            in_window: vec![false; frames as usize],
            window_share,
            young_most: 0,
        };
        policy.set_capacity(frames);
        policy
    }

    /// Takes a frame out of the list that it is in.
    #[inline(always)]
    fn unlink(&mut self, frame: u32) {
        if !self.in_window[frame as usize] {
            return self.young.remove(&mut self.links, frame);
        }
        self.window.remove(&mut self.links, frame);
        self.in_window[frame as usize] = false;
        if !self.is_dirty[frame as usize] {
            self.clean.remove(&mut self.clean_links, frame);
        }
    }

    /// Moves the oldest young pages into the window.
    #[inline(always)]
    fn age(&mut self) {
        while self.young.length() > self.young_most {
            let frame = self.young.pop_oldest(&mut self.links).expect("a list longer than zero has an oldest slot");
            self.window.push_newest(&mut self.links, frame);
            self.in_window[frame as usize] = true;
            if !self.is_dirty[frame as usize] {
                self.clean.push_newest(&mut self.clean_links, frame);
            }
        }
    }

    fn enter(&mut self, frame: u32) {
        self.young.push_newest(&mut self.links, frame);
        self.age();
    }
}

impl BufferPolicy for Cflru {
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, _: Lpn, touch: Touch) {
        self.is_dirty[frame as usize] = touch == Touch::Write;
        self.enter(frame);
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, _: Lpn, touch: Touch) {
        self.unlink(frame);
        self.is_dirty[frame as usize] |= touch == Touch::Write;
        self.enter(frame);
    }
    fn on_clean(&mut self, frame: u32) {
        if !self.is_dirty[frame as usize] {
            return;
        }
        self.is_dirty[frame as usize] = false;
        if self.in_window[frame as usize] {
            // Its place among the clean ones is unknown in O(1): a page that was dirty until now counts as the youngest.
            self.clean.push_newest(&mut self.clean_links, frame);
        }
    }
    #[inline(always)]
    fn on_remove(&mut self, frame: u32, _: Lpn, _: Departure) {
        self.unlink(frame);
    }
    #[inline(always)]
    fn pick(&mut self, victims: &mut Vec<u32>) {
        let oldest = self.window.oldest().or(self.young.oldest());
        victims.extend(self.clean.oldest().or(oldest));
    }
    fn set_capacity(&mut self, frames: u32) {
        self.young_most = frames - (f64::from(frames) * self.window_share).round() as u32;
        self.age();
    }
    fn keeps_reads(&self) -> bool {
        true
    }
    fn memory_bytes(&self) -> u64 {
        self.links.bytes() + self.clean_links.bytes() + 2 * self.is_dirty.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(policy: &mut Cflru) -> u32 {
        let mut victims = Vec::new();
        policy.pick(&mut victims);
        victims[0]
    }

    #[test]
    fn a_clean_page_of_the_window_leaves_before_an_older_dirty_one() {
        let mut policy = Cflru::new(4, 0.5);
        for (frame, touch) in [(0, Touch::Write), (1, Touch::Read), (2, Touch::Read), (3, Touch::Write)] {
            policy.on_insert(frame, Lpn(frame), touch);
        }
        assert_eq!(victim(&mut policy), 1, "frames 0 and 1 are the window");
        policy.on_touch(1, Lpn(1), Touch::Write);
        assert_eq!(victim(&mut policy), 2, "the window is 0 and 2 now");
        policy.on_touch(2, Lpn(2), Touch::Write);
        assert_eq!(victim(&mut policy), 0, "0 and 3 are dirty: the older leaves");
        policy.on_clean(3);
        assert_eq!(victim(&mut policy), 3);
        policy.set_capacity(2);
        policy.on_clean(1);
        assert_eq!(victim(&mut policy), 3, "the window has grown over 1, which is younger than 3");
    }
}
