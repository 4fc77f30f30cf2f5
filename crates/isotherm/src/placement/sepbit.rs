//! SepBIT: separation by inferred block invalidation time (Wang et al., FAST'22).
//!
//! A host write whose page's last life was shorter than `l` is short-lived (class 0), any other is long-lived (class 1);
//! copies out of class 0 go to class 2, other copies by the page's age: below 4 l, below 16 l, or above (classes 3, 4, 5).
//! `l` is the mean life of the last 16 collected segments of class 0, infinite until there were as many: time counts host page
//! writes, a segment lives from its first page until it is collected. First writes are long-lived.
//!
//! Departure: the publication bounds its memory by a queue of recently written addresses; here the time of every page's last
//! write is kept, which its authors state to be equivalent in the decision.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Reclaim};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "sepbit",
    summary: "host writes by the page's last life, copies by age, both against the life of class-0 segments; six streams",
    paper: "Wang et al., SepBIT, FAST'22",
    memory: "4 bytes a logical page",
    parameters: &[],
    build: BuildPlacement::online(|_, context| Ok(AnyPlacement::SepBit(SepBit::new(context.logical_pages)))),
};

/// Collected segments over which `l` is a mean.
const LIVES: u32 = 16;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SepBit {
    /// Time of each page's last write, in host page writes modulo 2^32.
    last_writes: Vec<u32>,
    /// `l`, in host page writes.
    threshold: u64,
    lives_sum: u64,
    lives: u32,
}

impl SepBit {
    fn new(logical_pages: u32) -> Self {
        let last_writes = memory::zeroed_table(logical_pages as usize);
        Self { last_writes, threshold: u64::MAX, lives_sum: 0, lives: 0 }
    }
}

impl Placement for SepBit {
    fn streams(&self) -> u16 {
        6
    }
    fn gc_streams(&self) -> u16 {
        4
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        let last = std::mem::replace(&mut self.last_writes[write.lpn.0 as usize], write.now as u32);
        let life = u64::from((write.now as u32).wrapping_sub(last));
        StreamId(u16::from(!(write.rewrite && life < self.threshold)))
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        if copy.from == StreamId(0) {
            return StreamId(2);
        }
        let age = u64::from((copy.now as u32).wrapping_sub(self.last_writes[copy.lpn.0 as usize]));
        let class = [4, 16].iter().take_while(|factor| age >= self.threshold.saturating_mul(**factor)).count();
        StreamId(3 + class as u16)
    }
    fn on_reclaim(&mut self, reclaim: &Reclaim) {
        if reclaim.stream != StreamId(0) {
            return;
        }
        self.lives += 1;
        self.lives_sum += reclaim.now - reclaim.opened_at;
        if self.lives == LIVES {
            self.threshold = self.lives_sum / u64::from(LIVES);
            (self.lives, self.lives_sum) = (0, 0);
        }
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.last_writes, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        self.last_writes.len() as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::BlockId;

    #[test]
    fn classes_follow_the_life_of_collected_segments() {
        let mut placement = SepBit::new(4);
        let write = |placement: &mut SepBit, now, rewrite| {
            placement.host(&HostWrite { lpn: Lpn(1), now, rewrite }, &mut PageHistory::default()).0
        };
        assert_eq!(write(&mut placement, 0, false), 1);
        assert_eq!(write(&mut placement, 500, true), 0, "without a collection every life is short");
        for _ in 0..LIVES {
            placement.on_reclaim(&Reclaim {
                block: BlockId(0),
                stream: StreamId(0),
                opened_at: 900,
                stamp: 0,
                now: 1000,
                valid: 0,
            });
        }
        assert_eq!(write(&mut placement, 599, true), 0);
        assert_eq!(write(&mut placement, 699, true), 1);
        let mut copy = |from, now| {
            placement.gc(&GcCopy { lpn: Lpn(1), now, from: StreamId(from), stamp: 0 }, &PageHistory::default()).0
        };
        assert_eq!(copy(0, 700), 2);
        assert_eq!([copy(1, 1098), copy(5, 1099), copy(3, 2298), copy(3, 2299)], [3, 4, 4, 5]);
    }
}
