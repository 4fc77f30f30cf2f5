//! Random: any closed block, all equally likely. The lower reference of every comparison of victim policies.

use super::closed_set::ClosedSets;
use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::random::Random;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "random",
    summary: "any closed block",
    paper: "Van Houdt, SIGMETRICS'13",
    memory: "8 bytes a block",
    parameters: NONE,
    build: |_, context| {
        Ok(AnyVictim::RandomVictim(RandomVictim {
            closed: ClosedSets::new(context.blocks),
            random: Random::new(context.seed),
        }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct RandomVictim {
    closed: ClosedSets,
    random: Random,
}

impl VictimPolicy for RandomVictim {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.closed.insert(block, blocks);
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.closed.remove(block, blocks);
    }
    fn pick(&mut self, _: &BlockTable, _: u64) -> Option<BlockId> {
        self.closed.draw(&mut self.random)
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let group = self.closed.group(blocks, streams);
        self.closed.draw_of(group, &mut self.random)
    }
    fn memory_bytes(&self) -> u64 {
        self.closed.bytes()
    }
}
