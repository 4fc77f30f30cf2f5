//! Per block, the sums over its live pages of a weight and of a time, kept in O(1) a write.
//!
//! A block's rate of updates is then `sum(w) / (n x now - sum(t))`: the mean of the weights over the mean of the ages. SFS
//! calls it segment hotness (weights are write counts, times are creations); MDC's update rate is the same with weight 2
//! and the time of the last update but one. What a page added is kept beside it, so that its death takes away exactly
//! that, and a copy carries it along.

use super::VictimContext;
use crate::address::{BlockId, Ppn};
use crate::log::block_table::BlockTable;
use crate::memory;

/// Weight and time of one page, in host page writes modulo 2^32 (a run is expected to stay below that).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Share {
    pub(super) weight: u32,
    pub(super) time: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: u64,
    time: u64,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct LiveSums {
    log2_pages_per_block: u32,
    shares: Vec<Share>,
    sums: Vec<Sums>,
}

impl LiveSums {
    pub(super) fn new(context: &VictimContext) -> Self {
        let pages = context.blocks as usize * context.pages_per_block as usize;
        Self {
            log2_pages_per_block: context.pages_per_block.trailing_zeros(),
            shares: memory::zeroed_table(pages),
            sums: memory::zeroed_table(context.blocks as usize),
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, at: Ppn, share: Share) {
        self.shares[at.0 as usize] = share;
        let sums = &mut self.sums[(at.0 >> self.log2_pages_per_block) as usize];
        sums.weight += u64::from(share.weight);
        sums.time += u64::from(share.time);
    }

    #[inline(always)]
    pub(super) fn copy(&mut self, source: Ppn, target: Ppn) {
        self.add(target, self.shares[source.0 as usize]);
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, at: Ppn) {
        let share = self.shares[at.0 as usize];
        let sums = &mut self.sums[(at.0 >> self.log2_pages_per_block) as usize];
        sums.weight -= u64::from(share.weight);
        sums.time -= u64::from(share.time);
    }

    /// Sum of the weights of a block's live pages.
    #[inline(always)]
    pub(super) fn weight(&self, block: BlockId) -> u64 {
        self.sums[block.0 as usize].weight
    }

    /// Updates a page and host page write of the block's live pages; the ages count from one, so that it is finite.
    #[inline(always)]
    pub(super) fn rate(&self, block: BlockId, blocks: &BlockTable, now: u64) -> f64 {
        let sums = self.sums[block.0 as usize];
        let ages = (u64::from(blocks.valid(block)) * (now + 1)).saturating_sub(sums.time).max(1);
        sums.weight as f64 / ages as f64
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.shares.len() * size_of::<Share>() + self.sums.len() * size_of::<Sums>()) as u64
    }
}
