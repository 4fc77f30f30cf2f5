//! What the next collections will need, brought towards the cache while the present one or the host's writes go on.

use super::{BlockStore, Mapping};
use crate::address::{BlockId, Lpn, Ppn};
use crate::nand::{Kind, Medium};
use crate::placement::Placement;
use crate::victim::VictimPolicy;

/// Pages of the coming victim whose owners are prefetched: more than this would only evict what is needed first.
const MOST_PREFETCHED_PAGES: u32 = 256;

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// Brings what the map keeps of the block that is likely to be chosen after `victim` towards the cache, and names it: that arrives
    /// while the victim's pages, which have come, are moved.
    pub(super) fn foresee(&mut self, victim: BlockId, map: &impl Mapping<M, P, V>) -> Option<BlockId> {
        let next = if self.victim.upcoming() == Some(victim) { self.victim.following() } else { None }?;
        self.prefetch_map(next, map);
        Some(next)
    }

    /// Asks the victim policy what it will choose next, and brings what a collection of it needs towards the cache, unless it is `known`
    /// and that was done.
    pub(super) fn look_ahead(&mut self, known: Option<BlockId>, map: &impl Mapping<M, P, V>) {
        self.foreseen = self.victim.upcoming();
        if let Some(next) = self.foreseen {
            if known != Some(next) {
                self.prefetch_map(next, map);
            }
            if let Some(following) = self.victim.following() {
                self.prefetch_block(following);
            }
        }
    }

    /// As [`BlockStore::look_ahead`], once more between two collections: when the pages that were just appended, `count` from `at` on,
    /// come near the end of the open block. What dies since the last collection may make another block the next victim.
    #[inline(always)]
    pub(crate) fn look_again(&mut self, at: Ppn, count: usize, map: &impl Mapping<M, P, V>) {
        /// So many pages before the end of a block: what is prefetched then arrives, and little changes any more.
        const NEAR: u32 = 16;
        let geometry = self.medium.geometry();
        let left = geometry.pages_per_block() - geometry.index_in_block(at);
        let comes_near = left > NEAR && left <= NEAR + count as u32;
        // What was foreseen and stays the next is in the cache already.
        if comes_near && self.victim.upcoming() != self.foreseen {
            self.look_ahead(None, map);
        }
    }

    /// A page of `block`, which the victim policy heeds, has died.
    #[inline(never)]
    pub(super) fn heed_death(&mut self, block: BlockId) {
        self.victim.on_invalidate(block, &self.blocks);
        if self.foreseen.is_some_and(|next| self.blocks.valid(block) < self.blocks.valid(next)) {
            self.prefetch_block(block);
        }
    }

    /// Brings what the map and the placement keep of the valid pages of `block` towards the cache.
    pub(super) fn prefetch_map(&self, block: BlockId, map: &impl Mapping<M, P, V>) {
        self.blocks.validity.for_each_valid(block, |from| map.prefetch(self.medium.owner(from)));
        if self.placement.copies_to().is_some() {
            return;
        }
        let lpns = || {
            let owners = self.blocks.validity.valid_pages(block).map(|from| self.medium.owner(from));
            owners.filter(|owner| owner.kind() == Kind::Data).map(|owner| Lpn(owner.address()))
        };
        self.placement.prefetch(lpns());
        if self.placement.wanted().anything() {
            self.history.prefetch(lpns());
        }
    }

    /// Brings what is kept of `block` towards the cache, owners of its pages first.
    #[inline(always)]
    pub(super) fn prefetch_block(&self, block: BlockId) {
        const OWNERS_PER_LINE: u32 = 16;
        let first = self.medium.geometry().first_page(block).0;
        let pages = self.medium.geometry().pages_per_block().min(MOST_PREFETCHED_PAGES);
        self.blocks.validity.prefetch(Ppn(first));
        for at in (first..first + pages).step_by(OWNERS_PER_LINE as usize) {
            self.medium.prefetch_owner(Ppn(at));
        }
        self.medium.prefetch_block(block);
        self.blocks.prefetch(block);
    }
}
