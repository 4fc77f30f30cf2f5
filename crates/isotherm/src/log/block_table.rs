//! State of every block: a structure of arrays, since the collector scans one column at a time.

use crate::address::{BlockId, StreamId};
use crate::memory;
use crate::spec::AgeBase;

/// What a block is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum BlockState {
    /// Erased, or never used.
    #[default]
    Free,
    /// Being filled by a stream.
    Open,
    /// Full: a candidate for cleaning.
    Closed,
    /// Being emptied by the collector.
    Collecting,
    /// A program failed in it: to be emptied and retired before any other victim.
    Failing,
    /// Never to be used again.
    Retired,
}

/// The blocks of a log store. Policies read it; only the log store writes it.
#[derive(Clone, Debug)]
pub struct BlockTable {
    pages_per_block: u32,
    age_base: AgeBase,
    pub(super) states: Vec<BlockState>,
    pub(super) valid: Vec<u16>,
    pub(super) streams: Vec<StreamId>,
    /// What age counts from, in host page writes.
    pub(super) stamps: Vec<u64>,
    pub(super) erases: Vec<u32>,
}

impl BlockTable {
    pub(super) fn new(blocks: u32, pages_per_block: u32, age_base: AgeBase) -> Self {
        let blocks = blocks as usize;
        Self {
            pages_per_block,
            age_base,
            states: vec![BlockState::Free; blocks],
            valid: memory::zeroed_table(blocks),
            streams: vec![StreamId(0); blocks],
            stamps: memory::zeroed_table(blocks),
            erases: memory::zeroed_table(blocks),
        }
    }

    /// Number of blocks.
    #[inline(always)]
    pub fn blocks(&self) -> u32 {
        self.states.len() as u32
    }

    /// Pages in a block.
    #[inline(always)]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// What the block is doing.
    #[inline(always)]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.states[block.0 as usize]
    }

    /// Valid pages in the block.
    #[inline(always)]
    pub fn valid(&self, block: BlockId) -> u32 {
        u32::from(self.valid[block.0 as usize])
    }

    /// Valid pages of every block, for scans.
    pub fn valid_column(&self) -> &[u16] {
        &self.valid
    }

    /// The stream that filled the block.
    pub fn stream(&self, block: BlockId) -> StreamId {
        self.streams[block.0 as usize]
    }

    /// What the block's age counts from, in host page writes. Meaning: [`AgeBase`].
    #[inline(always)]
    pub fn stamp(&self, block: BlockId) -> u64 {
        self.stamps[block.0 as usize]
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
        self.erases[block.0 as usize]
    }

    /// Utilisation: valid pages over pages.
    #[inline(always)]
    pub fn utilisation(&self, block: BlockId) -> f64 {
        f64::from(self.valid(block)) / f64::from(self.pages_per_block)
    }

    /// Closed blocks in order of their number.
    pub fn closed(&self) -> impl Iterator<Item = BlockId> + '_ {
        (0..self.blocks()).map(BlockId).filter(|b| self.state(*b) == BlockState::Closed)
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        let per_block =
            size_of::<BlockState>() + size_of::<u16>() + size_of::<StreamId>() + size_of::<u64>() + size_of::<u32>();
        u64::from(self.blocks()) * per_block as u64
    }
}
