//! The log blocks: one for sequential writes, many for random ones.
//!
//! Random-write blocks form a queue in the order of their opening; the youngest is being filled, the oldest is reclaimed
//! first. Tombstone pages go there too, since they need no place of their own.

use super::block_pool::{BlockPool, Role, succeeded};
use crate::address::{BlockId, Geometry, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Medium, MediumError, Oob, Owner, PageRef};
use crate::store::tombstones::TombstoneSpace;
use std::collections::VecDeque;

/// Bytes of a map entry of one log page.
const ENTRY_BYTES: u64 = 4;
/// Bytes beside the entries of one log block: its number and how far it is filled.
const TAG_BYTES: u64 = 4;

/// Bytes of the page map of one log block in the controller's DRAM: four a page, and a tag of four.
pub fn log_block_map_bytes(geometry: &Geometry) -> u64 {
    u64::from(geometry.pages_per_block()) * ENTRY_BYTES + TAG_BYTES
}

/// The sequential-write log block: pages 0 to `next` of one logical block, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequentialBlock {
    pub(super) block: BlockId,
    /// The logical block that owns it.
    pub(super) logical: u32,
    /// Index of the next page.
    pub(super) next: u32,
}

/// All log blocks, over the pool of blocks.
#[derive(Clone, Debug)]
pub(super) struct LogBlocks<M> {
    pub(super) pool: BlockPool<M>,
    pub(super) sequential: Option<SequentialBlock>,
    /// Random-write blocks, oldest first.
    random: VecDeque<BlockId>,
    /// Next page of the block being filled; equal to `end` when none is.
    next: u32,
    end: u32,
    sequence: u64,
}

impl<M: Medium> LogBlocks<M> {
    pub(super) fn new(pool: BlockPool<M>, last_sequence: u64) -> Self {
        let blocks = pool.medium.geometry().blocks as usize;
        Self {
            pool,
            sequential: None,
            random: VecDeque::with_capacity(blocks),
            next: 0,
            end: 0,
            sequence: last_sequence,
        }
    }

    /// The next sequence number.
    #[inline(always)]
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Whether the youngest random-write block has room and none has to be emptied for having failed.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.next < self.end && !self.pool.has_failing()
    }

    /// Random-write blocks in use.
    pub(super) fn random_blocks(&self) -> u32 {
        self.random.len() as u32
    }

    /// Random-write blocks, oldest first.
    pub(super) fn random(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.random.iter().copied()
    }

    /// The block being filled.
    pub(super) fn head(&self) -> Option<BlockId> {
        (self.next < self.end).then(|| self.pool.medium.geometry().block_of(Ppn(self.next)))
    }

    /// Takes a random-write block found on the medium as the youngest. Its rest is filled if it `is_head`.
    pub(super) fn adopt(&mut self, block: BlockId, is_head: bool) {
        self.pool.assign(block, Role::Random);
        self.random.push_back(block);
        if is_head {
            let first = self.pool.first_page(block).0;
            self.next = first + self.pool.medium.programmed_pages(block);
            self.end = first + self.pool.medium.geometry().pages_per_block();
        }
    }

    /// Takes the block to be reclaimed next out of the queue: one that failed, else the oldest.
    pub(super) fn pop_victim(&mut self) -> Option<BlockId> {
        let failing = self.random.iter().position(|b| self.pool.is_failing(*b));
        let victim = self.random.remove(failing.unwrap_or(0))?;
        if self.head() == Some(victim) {
            (self.next, self.end) = (0, 0);
        }
        Some(victim)
    }

    /// Puts a victim that could not be emptied back: the next one to be reclaimed.
    pub(super) fn put_back(&mut self, victim: BlockId) {
        self.random.push_front(victim);
    }

    /// Programs a page of data as the next of the random-write log, in another block where a program fails. Opens a block when
    /// there is no room, from the reserve if need be.
    #[inline(always)]
    pub(super) fn append_page(&mut self, oob: Oob, page: PageRef<'_, M>, cause: Cause) -> Result<Ppn, DeviceError> {
        loop {
            let at = self.next_page()?;
            let programmed = self.pool.medium.program(at, oob, page, cause);
            if self.appended(at, programmed)? {
                return Ok(at);
            }
        }
    }

    /// The page that is programmed next.
    #[inline(always)]
    fn next_page(&mut self) -> Result<Ppn, DeviceError> {
        if self.next == self.end {
            self.open()?;
        }
        Ok(Ppn(self.next))
    }

    /// The page at `at`, the next of the log, was programmed with this result; false if another must be tried.
    #[inline(always)]
    fn appended(&mut self, at: Ppn, result: Result<(), MediumError>) -> Result<bool, DeviceError> {
        let programmed = succeeded(result)?;
        self.next += 1;
        if programmed {
            self.pool.count_valid();
        } else {
            let block = self.pool.medium.geometry().block_of(at);
            self.pool.mark_failing(block);
            (self.next, self.end) = (0, 0);
        }
        Ok(programmed)
    }

    #[inline(never)]
    fn open(&mut self) -> Result<(), DeviceError> {
        let block = self.pool.take(Role::Random)?;
        self.adopt(block, true);
        Ok(())
    }
}

impl<M: Medium> TombstoneSpace for LogBlocks<M> {
    fn append_tombstone(&mut self, owner: Owner, content: &[u8]) -> Result<Ppn, DeviceError> {
        let oob = Oob { owner, sequence: self.next_sequence() };
        loop {
            let at = self.next_page()?;
            let programmed = self.pool.medium.program_meta(at, oob, content, Cause::Trim);
            if self.appended(at, programmed)? {
                return Ok(at);
            }
        }
    }

    fn invalidate_tombstone(&mut self, _: Ppn) {
        self.pool.count_invalid();
    }
}
