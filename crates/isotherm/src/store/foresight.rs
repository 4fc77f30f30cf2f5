//! What the next collections will need, brought towards the cache while the present one or the host's writes go on.

use super::{BlockStore, Mapping};
use crate::address::{BlockId, Lpn, PageSet, Ppn};
use crate::nand::{Kind, Medium};
use crate::placement::Placement;
use crate::victim::VictimPolicy;

/// Pages of the coming victim whose owners are prefetched: more than this would only evict what is needed first.
const MOST_PREFETCHED_PAGES: u32 = 256;

/// The block that is likely to be cleaned next. Where the map is a plain table and runs of pages are written, one entry of its pages is
/// fetched with each page that is programmed, by the host or by the collection before it: all of them at once are more lines than a core
/// waits for, and what is wanted next would stand behind them. Elsewhere a write wants so many places of its own that entries among them cost more
/// than all at once (ASA-FTL and DFTL 15 %).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coming {
    block: Option<BlockId>,
    /// The block that is likely to be cleaned after it.
    after: Option<BlockId>,
    /// Words of its valid pages that have been taken up.
    words: usize,
    /// What is left of the last of them.
    pub(super) pages: PageSet,
}

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// Brings what the map keeps of `victim`, which is cleaned now, towards the cache, as far as that has not been done, and names the block that
    /// is likely to be chosen after it.
    pub(super) fn foresee(&mut self, victim: BlockId, map: &mut impl Mapping<M, P, V>) {
        let mut next = None;
        if self.coming.block == Some(victim) {
            self.fetch_coming(u32::MAX, map);
            while self.coming.words < self.blocks.validity.bits(victim).len() {
                self.fetch_coming(u32::MAX, map);
            }
            next = self.coming.after;
        } else {
            self.prefetch_map(victim, map);
        }
        self.expect(next, map);
    }

    /// Asks the victim policy what it will choose next, and after that.
    pub(super) fn look_ahead(&mut self, map: &mut impl Mapping<M, P, V>) {
        let next = self.victim.upcoming();
        if next != self.coming.block {
            self.expect(next, map);
        }
        self.coming.after = self.victim.following();
        if let Some(after) = self.coming.after {
            self.prefetch_block(after);
        }
    }

    /// `block` is likely to be cleaned next.
    fn expect(&mut self, block: Option<BlockId>, map: &mut impl Mapping<M, P, V>) {
        self.coming = Coming { block, ..Coming::default() };
        if let Some(block) = block
            && (!self.appends_runs || map.entries().is_none())
        {
            self.prefetch_map(block, map);
            self.coming.words = usize::MAX;
        }
    }

    /// Takes up the next word of the coming block's valid pages where nothing is left of the last; whether there is something.
    #[inline(always)]
    pub(super) fn take_up_coming(&mut self) -> bool {
        let Coming { block, words, pages, .. } = &mut self.coming;
        if !pages.has_pages()
            && let Some(block) = *block
            && let Some(bits) = self.blocks.validity.bits(block).get(*words)
        {
            let first = self.medium.geometry().first_page(block).0 + 64 * *words as u32;
            *pages = PageSet::new(Ppn(first), *bits);
            *words += 1;
        }
        pages.has_pages()
    }

    /// So many pages were programmed: as many entries of the block that is cleaned next are fetched.
    #[inline(always)]
    pub(crate) fn fetch_coming(&mut self, pages: u32, map: &impl Mapping<M, P, V>) {
        for _ in 0..pages {
            let Some(at) = self.coming.pages.next() else {
                if self.take_up_coming() {
                    continue;
                }
                return;
            };
            map.prefetch(self.medium.owner(at));
        }
    }

    /// A page of `block`, which the victim policy heeds, has died.
    #[inline(never)]
    pub(super) fn heed_death(&mut self, block: BlockId) {
        self.victim.on_invalidate(block, &self.blocks);
        if self.coming.block.is_some_and(|next| self.blocks.valid(block) < self.blocks.valid(next)) {
            self.prefetch_block(block);
            self.coming = Coming { block: Some(block), after: self.coming.block, ..Coming::default() };
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
