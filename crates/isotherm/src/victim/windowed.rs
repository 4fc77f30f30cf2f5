//! Windowed greedy: the emptiest among the blocks that were closed first, the longest such among equals. The window is a share of the
//! closed blocks, so that it means the same on a device of any size: 0 (one block) is FIFO, 1 is greedy.
//!
//! The blocks of the window are kept in lists by their count of valid pages. The window grows and shrinks by a block at its younger end
//! as blocks are closed and cleaned, and an overwrite in it moves a block from one list to the next. O(1) a pick.
//! Placements that divide the space ask for the best block of some streams: there is a window over the blocks of each group
//! of streams that was asked for, and one over all.

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
    memory: "16 bytes a block",
    parameters: &[Parameter::share("window", 0.0..=1.0, "25%")
        .help("share of the closed blocks, the oldest, that is considered; 0: one block")],
    build: |parameters, context| {
        let share = parameters.share("window");
        let all = Window::new(Streams::ALL, share, context.blocks, context.pages_per_block);
        Ok(AnyVictim::Windowed(Windowed { all, within: Vec::new() }))
    },
};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Windowed {
    all: Window,
    within: Vec<Window>,
}

/// The closed blocks of some streams.
#[derive(Clone, Debug)]
struct Window {
    streams: Streams,
    share: f64,
    /// All of them, as they were closed.
    order: BlockLists,
    /// Those of the window, by their valid pages.
    inside: BlockLists,
    /// The last block in the order that is inside.
    youngest: Option<BlockId>,
    /// No block inside has fewer valid pages than this.
    lowest: usize,
    pages_per_block: u32,
}

impl Window {
    fn new(streams: Streams, share: f64, blocks: u32, pages_per_block: u32) -> Self {
        Self {
            streams,
            share,
            order: BlockLists::new(blocks, 1),
            inside: BlockLists::new(blocks, pages_per_block as usize + 1),
            youngest: None,
            lowest: 0,
            pages_per_block,
        }
    }

    fn insert(&mut self, block: BlockId, valid: u32) {
        self.inside.push_back(valid as usize, block);
        self.lowest = self.lowest.min(valid as usize);
    }

    /// Moves the younger end to where it belongs.
    fn fit(&mut self, blocks: &BlockTable) {
        let closed = self.order.length();
        let width = ((closed as f64 * self.share) as usize).clamp(1.min(closed), closed);
        while self.inside.length() < width {
            let next = self.youngest.map_or_else(|| self.order.head(0), |block| self.order.after(block));
            let block = next.expect("more blocks are closed than are inside");
            self.insert(block, blocks.valid(block));
            self.youngest = Some(block);
        }
        while self.inside.length() > width {
            let block = self.youngest.expect("a block is inside");
            self.inside.remove(blocks.valid(block) as usize, block);
            self.youngest = self.order.before(block);
        }
    }

    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.order.push_back(0, block);
        self.fit(blocks);
    }

    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        if self.inside.contains(block) {
            let valid = blocks.valid(block);
            self.inside.remove(valid as usize + 1, block);
            self.insert(block, valid);
        }
    }

    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        if self.inside.contains(block) {
            self.inside.remove(blocks.valid(block) as usize, block);
            if self.youngest == Some(block) {
                self.youngest = self.order.before(block);
            }
        }
        self.order.remove(0, block);
        self.fit(blocks);
    }

    fn emptiest(&mut self) -> Option<BlockId> {
        while self.lowest <= self.pages_per_block as usize {
            if let Some(block) = self.inside.head(self.lowest) {
                return Some(block);
            }
            self.lowest += 1;
        }
        None
    }

    fn bytes(&self) -> u64 {
        self.order.bytes() + self.inside.bytes()
    }
}

impl Windowed {
    /// The windows that a block lies in.
    #[inline(always)]
    fn windows_of(&mut self, block: BlockId, blocks: &BlockTable) -> impl Iterator<Item = &mut Window> {
        let stream = blocks.stream(block);
        std::iter::once(&mut self.all).chain(self.within.iter_mut().filter(move |w| w.streams.contains(stream)))
    }
}

impl VictimPolicy for Windowed {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.windows_of(block, blocks).for_each(|window| window.on_close(block, blocks));
    }
    #[inline(always)]
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.windows_of(block, blocks).for_each(|window| window.on_invalidate(block, blocks));
    }
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.windows_of(block, blocks).for_each(|window| window.on_remove(block, blocks));
    }
    fn pick(&mut self, _: &BlockTable, _: u64) -> Option<BlockId> {
        self.all.emptiest()
    }
    fn pick_within(&mut self, blocks: &BlockTable, _: u64, streams: Streams) -> Option<BlockId> {
        let at = self.within.iter().position(|window| window.streams == streams).unwrap_or_else(|| {
            let mut window = Window::new(streams, self.all.share, blocks.blocks(), self.all.pages_per_block);
            let closed = self.all.order.iter(0).filter(|block| streams.contains(blocks.stream(*block)));
            closed.for_each(|block| window.on_close(block, blocks));
            self.within.push(window);
            self.within.len() - 1
        });
        self.within[at].emptiest()
    }
    fn memory_bytes(&self) -> u64 {
        self.all.bytes() + self.within.iter().map(Window::bytes).sum::<u64>()
    }
}
