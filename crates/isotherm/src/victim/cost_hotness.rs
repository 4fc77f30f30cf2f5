//! Cost-hotness: the largest `(1-u) / (2 u Hs)` (Min et al., "SFS: random write considered harmful in solid state
//! drives", FAST'12).
//!
//! `Hs` is the hotness of a block's live pages: their write counts over their ages since creation, `sum(Wb) / (n T - sum(Tb))`.
//! A page is created by its first write; a trim is not told apart from an overwrite, so a page that is written again after
//! a trim goes on where it stopped. Pages that the FTL composed count one write.

use super::live_sums::LiveSums;
use super::shortlist::Shortlists;
use super::{AnyVictim, BuildVictim, NONE, PageHistory, VictimContext, VictimPolicy, Written};
use crate::address::{BlockId, Lpn, Ppn};
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::hotness::heat::{AgeFrom, Heat};
use crate::memory;
use crate::nand::Move;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "cost_hotness",
    summary: "the largest (1-u) / (2 u Hs), Hs being write counts over ages of the live pages",
    paper: "Min et al., SFS, FAST'12",
    memory: "8 bytes a logical page, 8 bytes a page, 33 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::CostHotness(CostHotness::new(context))),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct CostHotness {
    /// Writes and creation of every logical page; no writes before the first.
    history: Vec<Heat>,
    live: LiveSums,
    shortlists: Shortlists,
    now: u64,
}

impl CostHotness {
    /// A policy for a device of this shape.
    pub fn new(context: &VictimContext) -> Self {
        Self {
            history: memory::table(context.logical_pages as usize, Default::default()),
            live: LiveSums::new(context),
            shortlists: Shortlists::with_room(context.blocks),
            now: 0,
        }
    }
}

#[inline(always)]
fn score(live: &LiveSums, blocks: &BlockTable, block: BlockId, now: u64) -> f64 {
    if blocks.valid(block) == 0 {
        return f64::INFINITY;
    }
    let utilisation = blocks.utilisation(block);
    (1.0 - utilisation) / (2.0 * utilisation * live.hotness(block, blocks, now))
}

impl VictimPolicy for CostHotness {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        if blocks.valid(block) < blocks.pages_per_block() {
            self.on_invalidate(block, blocks);
        }
    }
    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        let live = &self.live;
        self.shortlists.offer(block, blocks, |block, now| score(live, blocks, block, now));
    }
    fn watches_pages(&self) -> bool {
        true
    }
    #[inline(always)]
    fn on_program(&mut self, at: Ppn, written: Written, _: &mut PageHistory) {
        match written {
            Written::Host(lpn, now) => {
                self.now = now;
                let page = &mut self.history[lpn.0 as usize];
                page.on_write(now as u32, AgeFrom::Created);
                self.live.add(at, *page);
            }
            Written::Meta(now) => self.live.add(at, Heat { writes: 1, time: now as u32 }),
        }
    }
    fn on_copies(&mut self, moves: &[Move]) {
        moves.iter().for_each(|page| self.live.relocate(page.from, page.to));
    }
    #[inline(always)]
    fn on_page_death(&mut self, at: Ppn) {
        self.live.remove(at);
    }
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.shortlists.remove(block);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.pick_within(blocks, now, Streams::ALL)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        let live = &self.live;
        self.shortlists.best(blocks, streams, now, |block, now| score(live, blocks, block, now))
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        lpns.for_each(|lpn| memory::prefetch(&self.history, lpn.0 as usize));
    }
    #[inline(always)]
    fn prefetch_pages(&self, pages: impl Iterator<Item = Ppn>) {
        self.live.prefetch(pages);
    }
    fn memory_bytes(&self) -> u64 {
        self.history.len() as u64 * size_of::<Heat>() as u64 + self.live.bytes() + self.shortlists.bytes()
    }
}
