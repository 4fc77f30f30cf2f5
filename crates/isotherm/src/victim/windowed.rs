//! Windowed greedy: the emptiest among the `window` blocks that were closed first. Window 1 is FIFO, a window of all
//! blocks is greedy. O(window) a pick.

use super::{AnyVictim, BuildVictim, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::blocks::lists::BlockLists;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "windowed",
    summary: "the emptiest among the blocks that were closed first (windowed greedy)",
    paper: "Hu et al., SYSTOR'09",
    memory: "8 bytes a block",
    parameters: &[
        Parameter::integer("window", 1..=1_000_000, "64").help("blocks at the old end of the log that are considered")
    ],
    build: |parameters, context| {
        let window = parameters.integer("window") as usize;
        Ok(AnyVictim::Windowed(Windowed { order: BlockLists::new(context.blocks, 1), window }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Windowed {
    order: BlockLists,
    window: usize,
}

impl VictimPolicy for Windowed {
    fn on_close(&mut self, block: BlockId, _: &BlockTable) {
        self.order.push_back(0, block);
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.order.remove(0, block);
    }
    fn pick(&mut self, blocks: &BlockTable, _: u64) -> Option<BlockId> {
        self.order.iter(0).take(self.window).min_by_key(|b| blocks.valid(*b))
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let within = self.order.iter(0).filter(|b| streams.contains(blocks.stream(*b)));
        within.take(self.window).min_by_key(|b| blocks.valid(*b))
    }
    fn memory_bytes(&self) -> u64 {
        self.order.bytes()
    }
}
