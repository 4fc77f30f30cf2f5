//! Static wear levelling: when the data that rests on little worn blocks moves to much worn ones.
//!
//! Data that is never overwritten keeps its block from being erased, while the others share the erases. A block that falls free
//! far ahead of the least worn ones takes over what they hold that was written longest ago, and rests with it; the blocks emptied
//! join those that are erased often. So every cold block is copied once for each time that the others come so far ahead, which is the
//! least that keeps a bound, and never many at a time. Data that moves has blocks of its own: among what collections copy, it would
//! be copied again with that.

use super::BlockStore;
use super::collector::{Mapping, collect};
use crate::address::{BlockId, Ppn, StreamId};
use crate::blocks::BlockState;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Medium, Move};
use crate::placement::Placement;
use crate::victim::VictimPolicy;

/// Erases between two moves as long as no block is beyond the threshold, so that a request seldom waits for one.
const ERASES_APART: u32 = 8;

/// Data that rests on a little worn block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resting {
    /// The block, or whatever the keeper of the blocks knows it by.
    pub(crate) index: u32,
    /// Erases of the block when it was looked at: another number means that the data rests no more.
    pub(crate) erases: u32,
}

/// Decides when content moves. Who keeps the blocks says which fall behind, and moves it.
#[derive(Clone, Debug)]
pub(crate) struct WearLeveler {
    threshold: Option<u32>,
    /// No block has been erased less often.
    least: u32,
    since_look: u32,
    since_move: u32,
    /// What is to move, the coldest last.
    behind: Vec<Resting>,
}

impl WearLeveler {
    /// Allows erase counts to differ by `threshold`; `None` switches levelling off.
    pub(crate) fn new(threshold: Option<u32>) -> Self {
        Self { threshold, least: 0, since_look: u32::MAX, since_move: u32::MAX, behind: Vec::new() }
    }

    /// A block was erased.
    #[inline(always)]
    pub(crate) fn on_erase(&mut self) {
        self.since_look = self.since_look.saturating_add(1);
        self.since_move = self.since_move.saturating_add(1);
    }

    /// Erases that a block must at most have had for its content to move to a free block that was erased `worn` times; `None` if
    /// nothing is to move now.
    #[inline(always)]
    pub(crate) fn limit_for(&self, worn: u32) -> Option<u32> {
        let threshold = self.threshold?;
        // Begins an eighth before the threshold: the blocks that are ahead come up to be levelled one after the other.
        let limit = worn.checked_sub((threshold - threshold / 8).max(1))?;
        let is_paced = self.since_move >= ERASES_APART || worn - self.least > threshold;
        (limit >= self.least && is_paced).then_some(limit)
    }

    /// Whether all of so many blocks should be looked at, to call [`WearLeveler::look`]: nothing is known to be behind. Once in
    /// blocks/16 erases, it costs a look at 16 blocks an erase.
    pub(crate) fn must_look(&self, blocks: u32) -> bool {
        self.behind.is_empty() && self.since_look >= blocks / 16
    }

    /// All blocks were looked at: the least worn one was erased `least` times, and these hold what should move, the coldest last.
    pub(crate) fn look(&mut self, least: u32, behind: Vec<Resting>) {
        (self.least, self.behind, self.since_look) = (least, behind, 0);
    }

    /// What should move next, of that which `rests` still.
    pub(crate) fn next(&mut self, rests: impl Fn(Resting) -> bool) -> Option<u32> {
        while let Some(next) = self.behind.pop() {
            if rests(next) {
                self.since_move = 0;
                return Some(next.index);
            }
        }
        None
    }
}

/// If the block that fell free last is far ahead of others, moves what one of those holds.
///
/// # Errors
/// No space, or faults of the medium.
pub(super) fn level_wear<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
) -> Result<(), DeviceError> {
    let Some(worn) = store.free.back() else { return Ok(()) };
    let Some(limit) = store.levelling.limit_for(store.blocks.erases(*worn)) else { return Ok(()) };
    // What a move takes comes out of the reserve as in ordinary cleaning, and it gives a block back.
    if (store.free.len() as u32) < store.options.floor {
        return Ok(());
    }
    let Some(block) = store.next_behind(limit) else { return Ok(()) };
    if store.blocks.state(block) == BlockState::Open {
        // A stream that is seldom written to keeps its block open for ever.
        store.close_block(store.blocks.stream(block), block, BlockState::Closed);
    }
    collect(store, map, block, Cause::Wear)
}

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// The block of data that was erased `limit` times at most and holds what was written longest ago.
    fn next_behind(&mut self, limit: u32) -> Option<BlockId> {
        let being_filled = self.levelled_block();
        let Self { blocks, levelling, data_streams, .. } = self;
        let is_behind = |block| {
            let holds_data = match blocks.state(block) {
                BlockState::Closed => true,
                BlockState::Open => blocks.stream(block).0 < *data_streams && Some(block) != being_filled,
                _ => false,
            };
            holds_data && blocks.erases(block) <= limit
        };
        let opened_at = |block: BlockId| match blocks.state(block) {
            BlockState::Open => 0,
            _ => blocks.pasts[block.0 as usize].opened_at,
        };
        let rests = |at: Resting| is_behind(BlockId(at.index)) && blocks.erases(BlockId(at.index)) == at.erases;
        if let Some(block) = levelling.next(rests) {
            return Some(BlockId(block));
        }
        if !levelling.must_look(blocks.blocks()) {
            return None;
        }
        let every = || (0..blocks.blocks()).map(BlockId);
        let usable = every().filter(|block| blocks.state(*block) != BlockState::Retired);
        let least = usable.map(|block| blocks.erases(block)).min().unwrap_or(0);
        let mut behind: Vec<BlockId> = every().filter(|block| is_behind(*block)).collect();
        behind.sort_by_key(|block| std::cmp::Reverse(opened_at(*block)));
        let resting = |block: BlockId| Resting { index: block.0, erases: blocks.erases(block) };
        levelling.look(least, behind.into_iter().map(resting).collect());
        levelling.next(|_| true).map(BlockId)
    }

    /// The slot of the block that levelled data fills: behind those of all streams. It is no stream of the placement, for whom the block
    /// is one of the stream whose data it holds.
    pub(super) fn levelled_slot(&self) -> StreamId {
        StreamId(self.data_streams + self.options.meta_streams)
    }

    /// The block that levelled data fills.
    fn levelled_block(&self) -> Option<BlockId> {
        let open = &self.open[usize::from(self.levelled_slot().0)];
        (open.next < open.end).then(|| self.medium.geometry().block_of(Ppn(open.next)))
    }

    /// Copies the pages of `moves`, all that is valid in `victim`, to the block that data of its stream fills when it is levelled.
    pub(super) fn copy_levelled(&mut self, victim: BlockId, moves: &mut [Move]) -> Result<(), DeviceError> {
        let stream = self.blocks.stream(victim);
        if let Some(block) = self.levelled_block()
            && self.blocks.stream(block) != stream
        {
            self.close_block(self.levelled_slot(), block, BlockState::Closed);
        }
        self.levelled_stream = stream;
        self.copy_run(self.levelled_slot(), moves, self.blocks.stamp(victim), Cause::Wear)?;
        self.drop_all(victim);
        Ok(())
    }
}
