//! FIFO (the circular log): the block that was closed first, whatever it holds. O(1).

use super::{AnyVictim, BuildVictim, NONE, VictimPolicy};
use crate::address::{BlockId, StreamId};
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
    build: |_, context| Ok(AnyVictim::Fifo(Fifo { order: BlockLists::new(context.blocks, 1), within: Vec::new() })),
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Fifo {
    order: BlockLists,
    /// The same for each group of streams that was asked for.
    within: Vec<(Streams, BlockLists)>,
}

impl Fifo {
    /// The lists that a block of this stream is in.
    fn orders_of(&mut self, stream: StreamId) -> impl Iterator<Item = &mut BlockLists> {
        let within =
            self.within.iter_mut().filter(move |(streams, _)| streams.contains(stream)).map(|(_, order)| order);
        std::iter::once(&mut self.order).chain(within)
    }
}

impl VictimPolicy for Fifo {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.orders_of(blocks.stream(block)).for_each(|order| order.push_back(0, block));
    }
    fn on_invalidate(&mut self, _: BlockId, _: &BlockTable) {}
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.orders_of(blocks.stream(block)).for_each(|order| order.remove(0, block));
    }
    fn pick(&mut self, _: &BlockTable, _: u64) -> Option<BlockId> {
        self.order.head(0)
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let at = self.within.iter().position(|(of, _)| *of == streams).unwrap_or_else(|| {
            let mut order = BlockLists::new(blocks.blocks(), 1);
            self.order.iter(0).filter(|b| streams.contains(blocks.stream(*b))).for_each(|b| order.push_back(0, b));
            self.within.push((streams, order));
            self.within.len() - 1
        });
        self.within[at].1.head(0)
    }
    fn memory_bytes(&self) -> u64 {
        self.order.bytes() + self.within.iter().map(|(_, order)| order.bytes()).sum::<u64>()
    }
}
