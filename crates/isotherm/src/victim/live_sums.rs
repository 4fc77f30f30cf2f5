//! Per block, the sums of [`HeatSums`] over its live pages, kept in O(1) a write.
//!
//! SFS's segment hotness uses them with write counts and times of creation; MDC's update rate is the same with two writes since
//! the last update but one. What a page added is kept beside it, so that its death takes away exactly that.

use super::VictimContext;
use crate::address::{BlockId, Ppn};
use crate::blocks::BlockTable;
use crate::hotness::heat::{Heat, HeatSums};
use crate::memory;

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct LiveSums {
    log2_pages_per_block: u32,
    heats: Vec<Heat>,
    sums: Vec<HeatSums>,
}

impl LiveSums {
    pub(super) fn new(context: &VictimContext) -> Self {
        let pages = context.blocks as usize * context.pages_per_block as usize;
        Self {
            log2_pages_per_block: context.pages_per_block.trailing_zeros(),
            heats: memory::table(pages, Default::default()),
            sums: memory::table(context.blocks as usize, Default::default()),
        }
    }

    #[inline(always)]
    fn sums_of(&mut self, at: Ppn) -> &mut HeatSums {
        &mut self.sums[(at.0 >> self.log2_pages_per_block) as usize]
    }

    /// A page became live.
    #[inline(always)]
    pub(super) fn add(&mut self, at: Ppn, heat: Heat) {
        self.heats[at.0 as usize] = heat;
        self.sums_of(at).add(heat);
    }

    /// A live page moved.
    #[inline(always)]
    pub(super) fn relocate(&mut self, source: Ppn, target: Ppn) {
        self.add(target, self.heats[source.0 as usize]);
        self.remove(source);
    }

    /// A page died.
    #[inline(always)]
    pub(super) fn remove(&mut self, at: Ppn) {
        let heat = self.heats[at.0 as usize];
        self.sums_of(at).remove(heat);
    }

    /// Brings what the deaths of `pages` will touch towards the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, pages: impl Iterator<Item = Ppn>) {
        pages.for_each(|at| memory::prefetch(&self.heats, at.0 as usize));
    }

    /// Sum of the counts of a block's live pages.
    #[inline(always)]
    pub(super) fn writes(&self, block: BlockId) -> u64 {
        self.sums[block.0 as usize].writes()
    }

    /// Mean count over mean age of a block's live pages.
    #[inline(always)]
    pub(super) fn hotness(&self, block: BlockId, blocks: &BlockTable, now: u64) -> f64 {
        self.sums[block.0 as usize].hotness(blocks.valid(block), now)
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.heats.len() * size_of::<Heat>() + self.sums.len() * size_of::<HeatSums>()) as u64
    }
}
