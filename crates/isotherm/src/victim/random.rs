//! Random: any closed block, all equally likely. The lower reference of every comparison of victim policies.

use super::closed_set::ClosedSet;
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
            closed: ClosedSet::new(context.blocks),
            random: Random::new(context.seed),
        }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct RandomVictim {
    closed: ClosedSet,
    random: Random,
}

impl VictimPolicy for RandomVictim {
    fn on_close(&mut self, block: BlockId, _: &BlockTable) {
        self.closed.insert(block);
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.closed.remove(block);
    }
    fn pick(&mut self, _: &BlockTable, _: u64) -> Option<BlockId> {
        let length = self.closed.length();
        (length > 0).then(|| self.closed.at(self.random.below(length as u64) as usize))
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        self.closed.draw(blocks, streams, &mut self.random)
    }
    fn memory_bytes(&self) -> u64 {
        self.closed.bytes()
    }
}
