//! Greedy: the block with the fewest valid pages, the longest such among equals.
//!
//! Moving every block from list to list at every overwrite would cost three cache misses a write on a large device, for
//! nothing: almost all blocks are far too full to be chosen. So only *candidates*, blocks at or below a ceiling of valid
//! pages, are kept in queues by their count; an overwrite elsewhere costs one comparison. When the candidates run out, one
//! scan of the valid column sets a new ceiling that lets in a fixed share of the blocks. The choice is that of a full
//! sort: a block above the ceiling is never fuller than a candidate is empty. Amortised cost of a pick: O(1).

use super::shortlist::Shortlists;
use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::queues::BlockQueues;
use crate::blocks::{BlockState, BlockTable, Streams};
use crate::registry::Entry;

/// The ceiling lets in at least this share of the closed blocks (1/64), so that a scan serves many picks.
const CANDIDATE_SHARE_LOG2: u32 = 6;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "greedy",
    summary: "the block with the fewest valid pages, of several the one that came down to so few first",
    paper: "Rosenblum & Ousterhout, SOSP'91; Menon 1995",
    memory: "8 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::Greedy(Greedy::new(context.blocks, context.pages_per_block))),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Greedy {
    queues: BlockQueues,
    /// Candidates have at most this many valid pages; -1 before the first scan.
    ceiling: i32,
    /// No candidate has fewer valid pages than this.
    lowest: usize,
    /// Candidates right after the last scan.
    scanned: usize,
    picks_since_scan: u64,
    /// For picks among some streams: the orders above are over all blocks.
    within: Shortlists,
}

impl Greedy {
    /// A policy for a device of this shape.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self {
            queues: BlockQueues::new(blocks, pages_per_block as usize + 1),
            ceiling: -1,
            lowest: 0,
            scanned: 0,
            picks_since_scan: 0,
            within: Shortlists::new(),
        }
    }

    #[inline(always)]
    fn is_candidate(&self, valid: u32) -> bool {
        valid as i32 <= self.ceiling
    }

    fn insert(&mut self, block: BlockId, valid: usize) {
        self.queues.push(valid, block);
        self.lowest = self.lowest.min(valid);
    }

    /// Sets the ceiling anew and queues the candidates below it: those of before first, in their order, then in order of their number.
    fn scan(&mut self, blocks: &BlockTable) {
        let mut histogram = vec![0u32; blocks.pages_per_block() as usize + 1];
        let mut closed = 0;
        for block in blocks.closed() {
            histogram[blocks.valid(block) as usize] += 1;
            closed += 1;
        }
        let wanted = (closed >> CANDIDATE_SHARE_LOG2).max(16);
        let mut candidates = 0;
        let full = histogram.len() - 1;
        self.ceiling = -1;
        for (valid, count) in histogram[..full].iter().enumerate() {
            candidates += count;
            self.ceiling = valid as i32;
            if candidates >= wanted {
                break;
            }
        }
        let mut found: Vec<BlockId> = blocks.closed().filter(|block| self.is_candidate(blocks.valid(*block))).collect();
        found.sort_by_key(|block| self.queues.joined(*block));
        self.queues.clear();
        self.lowest = full;
        for block in found {
            self.insert(block, blocks.valid(block) as usize);
        }
        self.scanned = self.queues.length();
        self.picks_since_scan = 0;
    }

    fn lowest_candidate(&mut self) -> Option<BlockId> {
        while self.lowest as i32 <= self.ceiling {
            if let Some(block) = self.queues.head(self.lowest) {
                return Some(block);
            }
            self.lowest += 1;
        }
        None
    }

    /// Many more candidates than wanted make every overwrite move a block between queues: then a scan pays.
    fn too_many(&self, blocks: &BlockTable) -> bool {
        let many = (blocks.blocks() as usize >> CANDIDATE_SHARE_LOG2).max(16) * 4;
        let candidates = self.queues.length();
        candidates > many.max(self.scanned + self.scanned / 2)
            || (candidates > many && self.picks_since_scan > u64::from(blocks.blocks() / 4))
            || self.queues.is_worn()
    }
}

/// What greedy looks for the most of.
#[inline(always)]
fn emptiness(blocks: &BlockTable, block: BlockId) -> f64 {
    -f64::from(blocks.valid(block))
}

impl VictimPolicy for Greedy {
    #[inline(always)]
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        let valid = blocks.valid(block);
        if self.is_candidate(valid) {
            self.insert(block, valid as usize);
        }
        if valid < blocks.pages_per_block() {
            self.within.offer(block, blocks, |block, _| emptiness(blocks, block));
        }
    }

    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        let valid = blocks.valid(block);
        if self.is_candidate(valid) {
            let valid = valid as usize;
            if self.is_candidate(valid as u32 + 1) {
                self.queues.change(valid + 1, valid, block);
                self.lowest = self.lowest.min(valid);
            } else {
                self.insert(block, valid);
            }
        }
        self.within.offer(block, blocks, |block, _| emptiness(blocks, block));
    }

    #[inline(always)]
    fn heeds_up_to(&self) -> u32 {
        if self.within.is_empty() { self.ceiling.max(0) as u32 } else { u32::MAX }
    }

    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.within.remove(block);
        if self.queues.contains(block) {
            self.queues.remove(blocks.valid(block) as usize, block);
        }
    }

    fn pick(&mut self, blocks: &BlockTable, _now: u64) -> Option<BlockId> {
        self.picks_since_scan += 1;
        if self.too_many(blocks) {
            self.scan(blocks);
        }
        let found = self.lowest_candidate().or_else(|| {
            self.scan(blocks);
            self.lowest_candidate()
        });
        debug_assert!(found.is_none_or(|b| blocks.state(b) == BlockState::Closed));
        found
    }

    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.within.best(blocks, streams, now, |block, _| emptiness(blocks, block))
    }

    fn upcoming(&mut self) -> Option<BlockId> {
        self.lowest_candidate()
    }

    fn following(&mut self) -> Option<BlockId> {
        let mut fuller = self.lowest + 1..=self.ceiling.max(0) as usize;
        self.queues.after_head(self.lowest).or_else(|| fuller.find_map(|valid| self.queues.head(valid)))
    }

    fn memory_bytes(&self) -> u64 {
        self.queues.bytes_as_lists() + self.within.bytes()
    }

    fn simulator_bytes(&self) -> u64 {
        self.queues.bytes() + self.within.bytes()
    }
}
