//! Cost-benefit: the largest `age x (1-u) / 2u`.
//!
//! For equal utilisation the oldest block wins, so that one heap by stamp for each count of valid pages holds every
//! possible winner at its top: a pick compares tops only, O(pages per block), and a block moves in O(log blocks) when it
//! loses a page. The choice equals that of a full scan.

use super::shortlist::Shortlists;
use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "cost_benefit",
    summary: "the largest age x (1-u) / 2u; what age counts from is set by gc.age",
    paper: "Rosenblum & Ousterhout, SOSP'91; Kawaguchi et al., USENIX'95",
    memory: "20 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::CostBenefit(CostBenefit::new(context.blocks, context.pages_per_block))),
};

/// Mark of a block that is in no heap.
const OUT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stamp: u64,
    block: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct CostBenefit {
    /// A binary min-heap by stamp for each count of valid pages.
    heaps: Vec<Vec<Key>>,
    positions: Vec<u32>,
    /// One bit for each heap that is not empty.
    occupied: Vec<u64>,
    /// For picks among some streams: the heaps are over all blocks.
    within: Shortlists,
}

impl CostBenefit {
    /// A policy for a device of this shape.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        let counts = pages_per_block as usize + 1;
        Self {
            heaps: vec![Vec::new(); counts],
            positions: vec![OUT; blocks as usize],
            occupied: vec![0; counts.div_ceil(64)],
            within: Shortlists::new(),
        }
    }

    fn insert(&mut self, heap: usize, key: Key) {
        self.occupied[heap / 64] |= 1 << (heap % 64);
        let at = self.heaps[heap].len();
        self.heaps[heap].push(key);
        self.positions[key.block as usize] = at as u32;
        self.sift_up(heap, at);
    }

    fn remove(&mut self, heap: usize, block: BlockId) {
        let at = std::mem::replace(&mut self.positions[block.0 as usize], OUT) as usize;
        let last = self.heaps[heap].pop().expect("a block that is removed was inserted");
        if self.heaps[heap].is_empty() {
            self.occupied[heap / 64] &= !(1 << (heap % 64));
        }
        if last.block != block.0 {
            self.heaps[heap][at] = last;
            self.positions[last.block as usize] = at as u32;
            let at = self.sift_up(heap, at);
            self.sift_down(heap, at);
        }
    }

    fn swap(&mut self, heap: usize, a: usize, b: usize) {
        let keys = &mut self.heaps[heap];
        keys.swap(a, b);
        self.positions[keys[a].block as usize] = a as u32;
        self.positions[keys[b].block as usize] = b as u32;
    }

    fn sift_up(&mut self, heap: usize, mut at: usize) -> usize {
        while at > 0 && self.heaps[heap][at] < self.heaps[heap][(at - 1) / 2] {
            self.swap(heap, at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        at
    }

    fn sift_down(&mut self, heap: usize, mut at: usize) {
        loop {
            let keys = &self.heaps[heap];
            let Some(left) = keys.get(2 * at + 1) else { return };
            let child = if keys.get(2 * at + 2).is_some_and(|right| right < left) { 2 * at + 2 } else { 2 * at + 1 };
            if keys[at] <= keys[child] {
                return;
            }
            self.swap(heap, at, child);
            at = child;
        }
    }

    /// Counts of valid pages for which there is a block, ascending.
    fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.occupied.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }
}

/// Infinite where nothing is to be copied.
fn score(blocks: &BlockTable, block: BlockId, now: u64) -> f64 {
    if blocks.valid(block) == 0 {
        return f64::INFINITY;
    }
    let utilisation = blocks.utilisation(block);
    blocks.age(block, now) as f64 * (1.0 - utilisation) / (2.0 * utilisation)
}

impl VictimPolicy for CostBenefit {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.insert(blocks.valid(block) as usize, Key { stamp: blocks.stamp(block), block: block.0 });
        if blocks.valid(block) < blocks.pages_per_block() {
            self.within.offer(block, blocks, |block, now| score(blocks, block, now));
        }
    }

    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        let valid = blocks.valid(block) as usize;
        self.remove(valid + 1, block);
        self.insert(valid, Key { stamp: blocks.stamp(block), block: block.0 });
        self.within.offer(block, blocks, |block, now| score(blocks, block, now));
    }

    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.within.remove(block);
        self.remove(blocks.valid(block) as usize, block);
    }

    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        let pages = blocks.pages_per_block() as usize;
        let mut best: Option<(f64, BlockId)> = None;
        for valid in self.counts() {
            let block = BlockId(self.heaps[valid][0].block);
            if valid == 0 {
                return Some(block);
            }
            let score = score(blocks, block, now);
            if valid < pages && best.is_none_or(|(most, _)| score > most) {
                best = Some((score, block));
            }
        }
        best.map(|(_, block)| block)
    }

    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.within.best(blocks, streams, now, |block, now| score(blocks, block, now))
    }

    fn memory_bytes(&self) -> u64 {
        // Each block has a position and at most one key.
        self.positions.len() as u64 * (4 + 16) + self.within.bytes()
    }
}
