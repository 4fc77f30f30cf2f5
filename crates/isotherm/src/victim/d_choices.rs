//! d-choices: the emptiest of d closed blocks drawn at random. With d around 10 it is close to greedy, at O(d) and without
//! any order to keep.

use super::closed_set::ClosedSets;
use super::{AnyVictim, BuildVictim, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::random::Random;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "d_choices",
    summary: "the emptiest of d blocks drawn at random",
    paper: "Van Houdt, SIGMETRICS'13; Li, Lee & Lui, SIGMETRICS'13",
    memory: "8 bytes a block",
    parameters: &[Parameter::integer("d", 1..=1000, "10").help("blocks drawn for each victim")],
    build: |parameters, context| {
        Ok(AnyVictim::DChoices(DChoices {
            closed: ClosedSets::new(context.blocks),
            random: Random::new(context.seed),
            draws: parameters.integer("d"),
        }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct DChoices {
    closed: ClosedSets,
    random: Random,
    draws: u64,
}

impl VictimPolicy for DChoices {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.closed.insert(block, blocks);
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.closed.remove(block, blocks);
    }
    fn pick(&mut self, blocks: &BlockTable, _: u64) -> Option<BlockId> {
        (0..self.draws).map_while(|_| self.closed.draw(&mut self.random)).min_by_key(|b| blocks.valid(*b))
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let group = self.closed.group(blocks, streams);
        let drawn = (0..self.draws).map_while(|_| self.closed.draw_of(group, &mut self.random));
        drawn.min_by_key(|b| blocks.valid(*b))
    }
    fn memory_bytes(&self) -> u64 {
        self.closed.bytes()
    }
}
