//! The cost of a hybrid map at each split: a sample of its logical blocks, and logs of every size run over it at once.
//!
//! A log reclaims its oldest block, so a page leaves it after as many log writes as it has pages, however often they were
//! overwritten meanwhile. If the page is still the newest version then, its logical block is merged, with everything of it
//! that is in the log: nothing else of the block is valid there any more. So a page has one bit for each size in whose log
//! it is valid, and a merge clears the bit of the whole block. Merges of sequential log blocks clear every bit.
//!
//! Reclaims go block by block, so that ages are counted in log blocks. O(1) a write, and O(splits) a log block's worth of writes.

use super::{Curve, Evenly, Grid, MapMisses, SPLITS, Share, decay};
use crate::address::Lpn;
use crate::dram::stack::LruStack;

/// Bytes of firmware state for one page that is followed: two links within the sample, 16 bits of validity, and its age.
pub const PAGE_BYTES: u64 = 8;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct LogCurve {
    blocks: Evenly,
    log2_pages_per_block: u8,
    stack: LruStack,
    /// Log blocks after which a page leaves each segment; the smallest log first.
    ages: [u32; SPLITS],
    /// Of each slot, one bit for each size: the page is valid in the log.
    valid: Vec<u16>,
    /// Of each slot: the log block that the page was written to last.
    written_in: Vec<u32>,
    /// Pages written to the log.
    now: u64,
    writes: Share,
    merges: Curve,
}

impl LogCurve {
    /// DRAM that following one logical block takes.
    pub fn least_bytes(pages_per_block: u32) -> u64 {
        u64::from(pages_per_block) * PAGE_BYTES
    }

    /// For the logs of a grid, over `logical_blocks` of `pages_per_block`, in at most `memory_bytes` of DRAM, which is
    /// enough for one. No log is longer than `log_blocks_max`.
    pub fn new(grid: &Grid, logical_blocks: u32, pages_per_block: u32, log_blocks_max: u32, memory_bytes: u64) -> Self {
        let pages = u64::from(pages_per_block);
        let blocks = Evenly {
            followed: (memory_bytes / (pages * PAGE_BYTES)).clamp(1, logical_blocks.into()),
            all: logical_blocks.into(),
        };
        let slots = (blocks.followed * pages) as u32;
        Self {
            blocks,
            log2_pages_per_block: pages_per_block.trailing_zeros() as u8,
            stack: LruStack::new(SPLITS as u8, slots),
            ages: grid.entries.map(|entries| entries.clamp(1, log_blocks_max)),
            valid: vec![0; slots as usize],
            written_in: vec![0; slots as usize],
            now: 0,
            writes: Share::default(),
            merges: [0.0; SPLITS],
        }
    }

    /// The slots of the logical block of `lpn`, if it is followed.
    #[inline(always)]
    fn row(&self, lpn: Lpn) -> Option<u32> {
        self.blocks.rank(lpn.0 >> self.log2_pages_per_block).map(|rank| rank << self.log2_pages_per_block)
    }

    #[inline(always)]
    fn slot(&self, lpn: Lpn) -> Option<u32> {
        self.row(lpn).map(|row| row | lpn.0 & ((1 << self.log2_pages_per_block) - 1))
    }

    #[inline(always)]
    pub(in crate::dram::partition) fn on_write(&mut self, lpn: Lpn, into_log: bool) {
        let slot = self.slot(lpn);
        let block = (self.now >> self.log2_pages_per_block) as u32;
        if into_log {
            if self.now & ((1 << self.log2_pages_per_block) - 1) == 0 {
                self.open(block);
            }
            self.now += 1;
            self.writes.all += 1.0;
        }
        let Some(slot) = slot else { return };
        if into_log {
            self.writes.followed += 1.0;
            self.written_in[slot as usize] = block;
            self.valid[slot as usize] = u16::MAX;
            self.stack.touch(slot);
        } else {
            self.forget(slot);
        }
    }

    /// Log block number `block` is opened: every log reclaims what has become too old for it.
    fn open(&mut self, block: u32) {
        for segment in 0..SPLITS as u8 {
            let age = self.ages[usize::from(segment)];
            while self.stack.oldest(segment).is_some_and(|slot| self.written_in[slot as usize] + age <= block) {
                let Some(slot) = self.stack.pass_on(segment) else { break };
                let bit = 1 << segment;
                if self.valid[slot as usize] & bit != 0 {
                    self.merges[usize::from(segment)] += 1.0;
                    let first = (slot >> self.log2_pages_per_block << self.log2_pages_per_block) as usize;
                    self.valid[first..first + (1 << self.log2_pages_per_block)].iter_mut().for_each(|v| *v &= !bit);
                }
            }
        }
    }

    #[inline(always)]
    fn forget(&mut self, slot: u32) {
        self.valid[slot as usize] = 0;
        self.stack.remove(slot);
    }

    pub(in crate::dram::partition) fn on_trim(&mut self, lpn: Lpn) {
        if let Some(slot) = self.slot(lpn) {
            self.forget(slot);
        }
    }

    /// The logical block of `lpn` was merged for another reason than room in the log.
    pub(in crate::dram::partition) fn on_merge(&mut self, lpn: Lpn) {
        if let Some(row) = self.row(lpn) {
            (row..row + (1 << self.log2_pages_per_block)).for_each(|slot| self.forget(slot));
        }
    }

    /// What the log of each split would have cost.
    pub fn misses(&self) -> MapMisses {
        MapMisses {
            reads: [0.0; SPLITS],
            evictions: [0.0; SPLITS],
            reclaims: self.merges.map(|merges| merges * self.writes.scale()),
        }
    }

    pub(in crate::dram::partition) fn decay(&mut self, factor: f64) {
        decay(&mut self.merges, factor);
        self.writes.decay(factor);
    }

    /// Bytes of firmware state.
    pub fn memory_bytes(&self) -> u64 {
        self.valid.len() as u64 * PAGE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::{BTreeMap, VecDeque};

    const PAGES: u32 = 8;
    const BLOCKS: u32 = 40;

    /// A log as FAST keeps it: whole blocks, the oldest is reclaimed.
    struct Log {
        blocks: usize,
        queue: VecDeque<Vec<(u32, u64)>>,
        /// When each page that is valid in the log was written.
        newest: BTreeMap<u32, u64>,
        merges: u64,
    }

    impl Log {
        fn write(&mut self, lpn: u32, now: u64) {
            if self.queue.back().is_none_or(|block| block.len() == PAGES as usize) {
                if self.queue.len() == self.blocks {
                    for (lpn, written_at) in self.queue.pop_front().unwrap() {
                        if self.newest.get(&lpn) == Some(&written_at) {
                            self.merges += 1;
                            self.merge(lpn / PAGES);
                        }
                    }
                }
                self.queue.push_back(Vec::new());
            }
            self.queue.back_mut().unwrap().push((lpn, now));
            self.newest.insert(lpn, now);
        }

        fn forget(&mut self, lpn: u32) {
            self.newest.remove(&lpn);
        }

        fn merge(&mut self, logical: u32) {
            self.newest.retain(|lpn, _| lpn / PAGES != logical);
        }
    }

    #[test]
    fn the_curve_counts_the_merges_of_a_log_of_each_size() {
        let entries = std::array::from_fn(|i| 1 + 3 * i as u32);
        let grid = Grid { mapping_bytes: [0; SPLITS], entries, frames: [1; SPLITS] };
        let mut curve = LogCurve::new(&grid, BLOCKS, PAGES, 40, u64::MAX);
        let mut logs = entries.map(|blocks| Log {
            blocks: blocks.min(40) as usize,
            queue: VecDeque::new(),
            newest: BTreeMap::new(),
            merges: 0,
        });
        let mut random = Random::new(29);
        for now in 0..60_000 {
            let lpn = (random.unit().powi(3) * f64::from(BLOCKS * PAGES)) as u32;
            match random.below(200) {
                0 => {
                    curve.on_merge(Lpn(lpn / PAGES * PAGES));
                    logs.iter_mut().for_each(|log| log.merge(lpn / PAGES));
                }
                1 => {
                    curve.on_trim(Lpn(lpn));
                    logs.iter_mut().for_each(|log| log.forget(lpn));
                }
                2 => {
                    curve.on_write(Lpn(lpn), false);
                    logs.iter_mut().for_each(|log| log.forget(lpn));
                }
                _ => {
                    curve.on_write(Lpn(lpn), true);
                    logs.iter_mut().for_each(|log| log.write(lpn, now));
                }
            }
        }
        let merges = curve.misses().reclaims;
        for (log, merges) in logs.iter().zip(merges) {
            assert_eq!(merges.round() as u64, log.merges, "{} blocks", log.blocks);
        }
    }
}
