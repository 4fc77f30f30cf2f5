//! Static wear levelling: when the data that rests on little worn blocks moves to much worn ones.
//!
//! Data that is never overwritten keeps its block from being erased, while the others share the erases. A block that falls free
//! far ahead of the least worn ones takes over what they hold that was written longest ago, and rests with it; the blocks emptied
//! join those that are erased often. So every cold block is copied once for each time that the others come so far ahead, which is the
//! least that keeps a bound, and never many at a time. Data that moves has blocks of its own: among what collections copy, it would
//! be copied again with that.

use super::collector::{Mapping, collect};
use super::{BlockStore, OpenBlock};
use crate::address::{BlockId, Ppn, StreamId};
use crate::blocks::BlockState;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::clock::Clock as _;
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
    /// No block that is in use has been erased less often.
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

    /// Erases that a block must at most have had for its content to move to a free block that was erased `worn` times; `None` if no
    /// block had so few.
    #[inline(always)]
    pub(crate) fn limit_for(&self, worn: u32) -> Option<u32> {
        let threshold = self.threshold?;
        // Begins an eighth before the threshold: the blocks that are ahead come up to be levelled one after the other.
        let limit = worn.checked_sub((threshold - threshold / 8).max(1))?;
        (limit >= self.least).then_some(limit)
    }

    /// Whether content may move from a block with so many `erases` to one with `worn`: not too soon after the last, unless the two are
    /// beyond the threshold.
    pub(crate) fn is_time(&self, erases: u32, worn: u32) -> bool {
        self.since_move >= ERASES_APART || self.threshold.is_some_and(|threshold| worn - erases > threshold)
    }

    /// Content moves now.
    pub(crate) fn on_move(&mut self) {
        self.since_move = 0;
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
    pub(crate) fn next(&mut self, rests: impl Fn(Resting) -> bool) -> Option<Resting> {
        while let Some(next) = self.behind.last() {
            if rests(*next) {
                return Some(*next);
            }
            self.behind.pop();
        }
        None
    }
}

/// If the block that fell free last is far ahead of others, moves what one of those holds. Returns the time that the flash takes for
/// it, in nanoseconds.
///
/// # Errors
/// No space, or faults of the medium.
pub(super) fn level_wear<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl Mapping<M, P, V>,
) -> Result<u64, DeviceError> {
    let Some(worn) = store.free.back().map(|block| store.blocks.erases(*block)) else { return Ok(0) };
    let Some(limit) = store.levelling.limit_for(worn) else { return Ok(0) };
    // What a move takes comes out of the reserve as in ordinary cleaning, and it gives a block back.
    if (store.free.len() as u32) < store.options.floor || store.exchange_parked(limit, worn) {
        return Ok(0);
    }
    let Some(block) = store.next_behind(limit) else { return Ok(0) };
    if !store.levelling.is_time(store.blocks.erases(block), worn) {
        return Ok(0);
    }
    store.levelling.on_move();
    if store.blocks.state(block) == BlockState::Open {
        let slot =
            if Some(block) == store.levelled_block() { store.levelled_slot() } else { store.blocks.stream(block) };
        store.close_block(slot, block, store.closed_state(slot));
    }
    let cost_ns = store.medium.clock().collection_ns(store.blocks.valid(block));
    collect(store, map, block, Cause::Wear)?;
    Ok(cost_ns)
}

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// Of the blocks that were erased `limit` times at most, the one whose content has rested longest.
    fn next_behind(&mut self, limit: u32) -> Option<BlockId> {
        let Self { blocks, levelling, open, medium, now, .. } = self;
        let geometry = medium.geometry();
        let opened_at = |block: BlockId| match blocks.state(block) {
            BlockState::Closed | BlockState::ClosedMeta => Some(blocks.pasts[block.0 as usize].opened_at),
            BlockState::Open => {
                let is_this = |open: &&OpenBlock| open.next < open.end && geometry.block_of(Ppn(open.next)) == block;
                open.iter().find(is_this).map(|open| open.opened_at)
            }
            _ => None,
        };
        // What was written since the device could have been written once is as likely to be hot.
        let rests = |block| opened_at(block).is_some_and(|at| *now - at >= u64::from(geometry.pages()));
        let is_as_it_was = |at: Resting| {
            let block = BlockId(at.index);
            blocks.erases(block) == at.erases && at.erases <= limit && rests(block)
        };
        if let Some(next) = levelling.next(is_as_it_was) {
            return Some(BlockId(next.index));
        }
        if !levelling.must_look(blocks.blocks()) {
            return None;
        }
        let every = || (0..blocks.blocks()).map(BlockId);
        let in_use = every().filter(|block| blocks.state(*block) != BlockState::Retired);
        let least = in_use.map(|block| blocks.erases(block)).min().unwrap_or(0);
        let mut behind: Vec<BlockId> =
            every().filter(|block| blocks.erases(*block) <= limit && rests(*block)).collect();
        behind.sort_by_key(|block| std::cmp::Reverse(opened_at(*block)));
        let resting = |block: BlockId| Resting { index: block.0, erases: blocks.erases(block) };
        levelling.look(least, behind.into_iter().map(resting).collect());
        levelling.next(|_| true).map(|next| BlockId(next.index))
    }

    /// Keeps the block that fell free last, erased `worn` times, for meta streams in the place of one that was erased `limit` times at
    /// most, if there is one: what is kept for them rests too.
    fn exchange_parked(&mut self, limit: u32, worn: u32) -> bool {
        if !self.levelling.is_time(worn, worn) {
            return false;
        }
        let Some(at) = self.parked.iter().position(|block| self.blocks.erases(*block) <= limit) else { return false };
        let Some(last) = self.free.back_mut() else { return false };
        std::mem::swap(last, &mut self.parked[at]);
        self.levelling.on_move();
        true
    }

    /// The slot of the block that levelled data fills: behind those of all streams. It is no stream of the placement, for whom the block
    /// is one of the stream whose data it holds.
    pub(super) fn levelled_slot(&self) -> StreamId {
        StreamId(self.data_streams + self.options.meta_streams)
    }

    /// The block that levelled data fills.
    pub(super) fn levelled_block(&self) -> Option<BlockId> {
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
