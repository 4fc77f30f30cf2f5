//! What is kept of every block: its validity and state in one record, and columns of what is asked for less often.

pub(crate) mod lists;
pub(crate) mod queues;
mod validity;

use crate::address::{BlockId, StreamId};
use crate::device::{BlockPhase, BlockView};
use crate::memory;
use serde::{Deserialize, Serialize};
use validity::Validity;

/// Streams that lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    /// The first of them.
    pub first: StreamId,
    /// The last of them.
    pub last: StreamId,
}

impl Streams {
    /// Every stream.
    pub const ALL: Self = Self { first: StreamId(0), last: StreamId(u16::MAX) };

    /// `stream` alone.
    pub fn only(stream: StreamId) -> Self {
        Self { first: stream, last: stream }
    }

    /// Whether `stream` is one of them.
    #[inline(always)]
    pub fn contains(self, stream: StreamId) -> bool {
        (self.first..=self.last).contains(&stream)
    }
}

/// What the age of a block counts from, for victim policies that weigh age. It matters most where survivors of collections have
/// blocks of their own: under static Zipf traffic and cost-benefit, a stream for copies costs a WA of 2.65 by `sealed`, 2.69 by
/// `last_invalidation` and 3.58 by `closed`, by which blocks of survivors look so old that they are cleaned while nearly full
/// (`tests/integration/separation.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgeBase {
    /// Since the block was closed; pages that a collection copied keep the age of the block they came from.
    Closed,
    /// Since the youngest page in it was written by the host.
    Youngest,
    /// Since a page in it was last invalidated.
    LastInvalidation,
    /// Since the block was closed, whatever is in it: pages that a collection copied are as young as their new block.
    #[default]
    Sealed,
}

/// What a block is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum BlockState {
    /// Erased, or never used.
    #[default]
    Free,
    /// Being filled by a stream.
    Open,
    /// Full: the victim policy may choose it.
    Closed,
    /// Full, and filled by a meta stream: cleaned when the meta streams' area is full, and never for room for data.
    ClosedMeta,
    /// Being emptied by the collector.
    Collecting,
    /// A program failed in it: to be emptied and retired before any other victim.
    Failing,
    /// Never to be used again.
    Retired,
}

impl BlockState {
    /// Every state, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] =
        [Self::Free, Self::Open, Self::Closed, Self::ClosedMeta, Self::Collecting, Self::Failing, Self::Retired];
}

impl From<BlockState> for BlockPhase {
    fn from(state: BlockState) -> Self {
        match state {
            BlockState::Free => Self::Free,
            BlockState::Open => Self::Open,
            BlockState::Closed => Self::Closed,
            BlockState::ClosedMeta | BlockState::Collecting | BlockState::Failing => Self::Reserved,
            BlockState::Retired => Self::Retired,
        }
    }
}

/// The blocks of a block store. Policies read it; only the block store writes it.
#[derive(Clone, Debug)]
pub struct BlockTable {
    age_base: AgeBase,
    pub(crate) validity: Validity,
    pub(crate) pasts: Vec<Past>,
}

/// What happened to a block and when, in host page writes: side by side, since a collection needs all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    /// What its age counts from.
    pub(crate) stamp: u64,
    /// When its first page was written.
    pub(crate) opened_at: u64,
    /// Times that it was erased.
    pub(crate) erases: u32,
}

impl BlockTable {
    pub(crate) fn new(blocks: u32, log2_pages_per_block: u8, age_base: AgeBase) -> Self {
        let validity = Validity::new(blocks, log2_pages_per_block);
        let blocks = blocks as usize;
        Self { age_base, validity, pasts: memory::table(blocks, Past::default()) }
    }

    /// Number of blocks.
    #[inline(always)]
    pub fn blocks(&self) -> u32 {
        self.validity.blocks()
    }

    /// Pages in a block.
    #[inline(always)]
    pub fn pages_per_block(&self) -> u32 {
        self.validity.pages_per_block()
    }

    /// What the block is doing.
    #[inline(always)]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.validity.state(block)
    }

    /// Valid pages in the block.
    #[inline(always)]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.validity.count(block)
    }

    /// The stream that filled the block.
    pub fn stream(&self, block: BlockId) -> StreamId {
        self.validity.stream(block)
    }

    /// What the block's age counts from, in host page writes. Meaning: [`AgeBase`].
    #[inline(always)]
    pub fn stamp(&self, block: BlockId) -> u64 {
        self.pasts[block.0 as usize].stamp
    }

    /// Age of the block's data at `now`, in host page writes.
    #[inline(always)]
    pub fn age(&self, block: BlockId, now: u64) -> u64 {
        now.saturating_sub(self.stamp(block))
    }

    /// What age counts from.
    pub fn age_base(&self) -> AgeBase {
        self.age_base
    }

    /// Times that the block was erased.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.pasts[block.0 as usize].erases
    }

    /// Times that each block was erased, in order of their number.
    pub(crate) fn every_erases(&self) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        self.pasts.iter().map(|past| past.erases)
    }

    /// Utilisation: valid pages over pages.
    #[inline(always)]
    pub fn utilisation(&self, block: BlockId) -> f64 {
        f64::from(self.valid(block)) / f64::from(self.pages_per_block())
    }

    /// Brings the columns of `block` towards the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: BlockId) {
        memory::prefetch(&self.pasts, block.0 as usize);
    }

    /// Closed blocks that the victim policy may choose, in order of their number.
    pub fn closed(&self) -> impl Iterator<Item = BlockId> + '_ {
        (0..self.blocks()).map(BlockId).filter(|b| self.state(*b) == BlockState::Closed)
    }

    /// Closed blocks that `streams` filled and that the victim policy may choose, in order of their number.
    pub fn closed_of(&self, streams: Streams) -> impl Iterator<Item = BlockId> + '_ {
        self.closed().filter(move |b| streams.contains(self.stream(*b)))
    }

    /// Closed blocks of every sort, in order of their number.
    pub(crate) fn full(&self) -> impl Iterator<Item = BlockId> + '_ {
        let is_full = |state| matches!(state, BlockState::Closed | BlockState::ClosedMeta);
        (0..self.blocks()).map(BlockId).filter(move |b| is_full(self.state(*b)))
    }

    /// Every block, for those who watch.
    pub(crate) fn views(&self) -> Vec<BlockView> {
        let view = |block| BlockView {
            phase: self.state(block).into(),
            stream: self.stream(block).0,
            valid: self.valid(block),
            erases: self.erases(block),
            stamp: self.stamp(block),
        };
        (0..self.blocks()).map(BlockId).map(view).collect()
    }

    /// Bytes of the table, without what only fills words up. The stream counts as two, though it lies where a header has room.
    pub fn bytes(&self) -> u64 {
        let columns = size_of::<StreamId>() + 2 * size_of::<u64>() + size_of::<u32>();
        self.validity.bytes() + u64::from(self.blocks()) * columns as u64
    }
}
