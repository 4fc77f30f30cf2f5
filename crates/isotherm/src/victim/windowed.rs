//! Windowed greedy: the emptiest among the blocks that were closed first. The window is a share of the closed blocks, so that
//! it means the same on a device of any size: 0 (one block) is FIFO, 1 is greedy. O(window) a pick.

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
    parameters: &[Parameter::share("window", 0.0..=1.0, "25%")
        .help("share of the closed blocks, the oldest, that is considered; 0: one block")],
    build: |parameters, context| {
        let window = parameters.share("window");
        Ok(AnyVictim::Windowed(Windowed { order: BlockLists::new(context.blocks, 1), window }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Windowed {
    order: BlockLists,
    window: f64,
}

impl Windowed {
    /// Blocks that are considered.
    fn width(&self) -> usize {
        ((self.order.length() as f64 * self.window) as usize).max(1)
    }
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
        self.order.iter(0).take(self.width()).min_by_key(|b| blocks.valid(*b))
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let within = self.order.iter(0).filter(|b| streams.contains(blocks.stream(*b)));
        within.take(self.width()).min_by_key(|b| blocks.valid(*b))
    }
    fn memory_bytes(&self) -> u64 {
        self.order.bytes()
    }
}
