//! CAT (cost-age-times): the least `u/(1-u) x 1/age x erases`, so that among equals the least worn block is chosen.
//!
//! Age, utilisation and wear move independently, so no order can be kept; but the score only falls with time, so a list of
//! the best blocks serves many picks (`shortlist`). The choice equals that of a full scan.

use super::shortlist::Shortlists;
use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "cat",
    summary: "the least u/(1-u) x 1/age x erases (cost-age-times)",
    paper: "Chiang & Chang, J. Systems and Software 1999",
    memory: "17 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::Cat(Cat { shortlists: Shortlists::with_room(context.blocks) })),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Cat {
    shortlists: Shortlists,
}

/// The larger, the better a victim: the negative of what is to be least.
fn score(blocks: &BlockTable, block: BlockId, now: u64) -> f64 {
    let utilisation = blocks.utilisation(block);
    // Age and erases start at one: a product with zero would hide the other factors.
    let (age, erases) = (blocks.age(block, now) as f64 + 1.0, f64::from(blocks.erases(block)) + 1.0);
    -(utilisation / (1.0 - utilisation) / age * erases)
}

impl VictimPolicy for Cat {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        if blocks.valid(block) < blocks.pages_per_block() {
            self.on_invalidate(block, blocks);
        }
    }
    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.shortlists.offer(block, blocks, |block, now| score(blocks, block, now));
    }
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.shortlists.remove(block);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.pick_within(blocks, now, Streams::ALL)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.shortlists.best(blocks, streams, now, |block, now| score(blocks, block, now))
    }
    fn memory_bytes(&self) -> u64 {
        self.shortlists.bytes()
    }
}
