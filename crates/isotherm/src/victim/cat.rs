//! CAT (cost-age-times): the least `u/(1-u) x 1/age x erases`, so that among equals the least worn block is chosen.
//!
//! Age, utilisation and wear move independently, so no order can be kept: a pick scans the closed blocks, O(blocks).

use super::within::Within;
use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "cat",
    summary: "the least u/(1-u) x 1/age x erases (cost-age-times); scans all blocks",
    paper: "Chiang & Chang, J. Systems and Software 1999",
    memory: "none",
    parameters: NONE,
    build: |_, _| Ok(AnyVictim::Cat(Cat::default())),
};

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Cat {
    within: Within,
}

/// The smaller, the better a victim.
fn score(blocks: &BlockTable, block: BlockId, now: u64) -> f64 {
    let utilisation = blocks.utilisation(block);
    // Age and erases start at one: a product with zero would hide the other factors.
    let (age, erases) = (blocks.age(block, now) as f64 + 1.0, f64::from(blocks.erases(block)) + 1.0);
    utilisation / (1.0 - utilisation) / age * erases
}

impl VictimPolicy for Cat {
    fn on_close(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, _: BlockId, _: &BlockTable) {}

    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        let full = blocks.pages_per_block();
        let mut best: Option<(f64, BlockId)> = None;
        for block in blocks.closed().filter(|b| blocks.valid(*b) < full) {
            let score = score(blocks, block, now);
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, block));
            }
        }
        best.map(|(_, block)| block)
    }

    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.within.best(blocks, streams, |block| -score(blocks, block, now))
    }

    fn memory_bytes(&self) -> u64 {
        self.within.bytes()
    }
}
