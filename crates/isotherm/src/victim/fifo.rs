//! FIFO (the circular log): the block that was closed first, whatever it holds. O(1).

use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::BlockId;
use crate::blocks::BlockTable;
use crate::blocks::Streams;
use crate::blocks::lists::BlockLists;
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildVictim> = Entry {
    name: "fifo",
    summary: "the block that was closed first",
    paper: "Desnoyers, SYSTOR'12; Xiang & Kurkoski 2012",
    memory: "8 bytes a block",
    parameters: NONE,
    build: |_, context| Ok(AnyVictim::Fifo(Fifo { order: BlockLists::new(context.blocks, 1) })),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Fifo {
    order: BlockLists,
}

impl VictimPolicy for Fifo {
    fn on_close(&mut self, block: BlockId, _: &BlockTable) {
        self.order.push_back(0, block);
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, _: &BlockTable) {
        self.order.remove(0, block);
    }
    fn pick(&mut self, _: &BlockTable, _: u64) -> Option<BlockId> {
        self.order.head(0)
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        self.order.iter(0).find(|b| streams.contains(blocks.stream(*b)))
    }
    fn memory_bytes(&self) -> u64 {
        self.order.bytes()
    }
}
