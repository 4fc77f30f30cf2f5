//! The blocks of the hybrid map: which are free, what each is for, which fail; and the sums that conservation laws need.

use crate::address::{BlockId, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Medium, MediumError};
use crate::stats::WearSummary;
use crate::store::WearLeveler;
use std::collections::VecDeque;

/// What a block is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Role {
    /// Erased, or never used.
    Free,
    /// The data block of a logical block, or the target of a merge.
    Data,
    /// The sequential-write log block.
    Sequential,
    /// A random-write log block.
    Random,
    /// Never to be used again.
    Retired,
}

/// The medium with the state of its blocks. Free blocks are used in the order in which they fell free, but for wear levelling.
#[derive(Clone, Debug)]
pub(super) struct BlockPool<M> {
    pub(super) medium: M,
    roles: Vec<Role>,
    free: VecDeque<BlockId>,
    /// Blocks in which a program failed: their content is moved, then they are retired. A handful at most.
    failing: Vec<BlockId>,
    retired: u32,
    pub(super) levelling: WearLeveler,
    /// Pages now valid, of every kind.
    pub(super) valid_pages: u64,
    /// Pages that became invalid, fillers (which never were valid) included.
    pub(super) invalidated_pages: u64,
    /// Pages that erased blocks held.
    erased_pages: u64,
    /// Pages that failed programs spoiled.
    spoiled_pages: u64,
    /// Programs and copies that no block shows, from before this pool took the medium over.
    forgotten_programs: u64,
}

/// Whether an operation on a page succeeded; a failed one spoils its page. What is no failure of the page itself ends the work.
#[inline(always)]
pub(super) fn succeeded(result: Result<(), MediumError>) -> Result<bool, DeviceError> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => error.stop().map_or(Ok(false), Err),
    }
}

impl<M: Medium> BlockPool<M> {
    /// Takes over `medium`. Blocks without pages are free; the rest wait for [`BlockPool::assign`].
    pub(super) fn new(medium: M, wear_threshold: Option<u32>) -> Self {
        let blocks = medium.geometry().blocks;
        let mut pool = Self {
            roles: vec![Role::Free; blocks as usize],
            free: VecDeque::with_capacity(blocks as usize),
            failing: Vec::new(),
            retired: 0,
            levelling: WearLeveler::new(wear_threshold),
            valid_pages: 0,
            invalidated_pages: 0,
            erased_pages: 0,
            spoiled_pages: 0,
            forgotten_programs: 0,
            medium,
        };
        for block in (0..blocks).map(BlockId) {
            if pool.medium.is_bad(block) {
                pool.roles[block.0 as usize] = Role::Retired;
                pool.retired += 1;
            } else if pool.medium.programmed_pages(block) == 0 {
                pool.free.push_back(block);
            }
        }
        let on_blocks = pool.pages_on_blocks();
        // Torn pages lie on blocks without having been counted, so that the difference wraps below zero.
        pool.forgotten_programs = pool.medium.counters().programmed().total().wrapping_sub(on_blocks);
        pool
    }

    /// Gives a block found with pages on it its role.
    pub(super) fn assign(&mut self, block: BlockId, role: Role) {
        self.roles[block.0 as usize] = role;
    }

    #[inline(always)]
    pub(super) fn role(&self, block: BlockId) -> Role {
        self.roles[block.0 as usize]
    }

    /// Blocks that are not retired.
    pub(super) fn usable_blocks(&self) -> u32 {
        self.roles.len() as u32 - self.retired
    }

    pub(super) fn retired_blocks(&self) -> u32 {
        self.retired
    }

    pub(super) fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Of the blocks that fell free last, the one that was erased most often, by its place among the free ones.
    fn most_worn(&self) -> Option<usize> {
        /// So many are looked at: on a device that is not full, most blocks are free.
        const LAST: usize = 16;
        let last = self.free.len().saturating_sub(LAST)..self.free.len();
        last.max_by_key(|at| self.medium.erase_count(self.free[*at]))
    }

    /// Erases of the block that [`BlockPool::take_most_worn`] would take; 0 if none is free.
    pub(super) fn most_erases(&self) -> u32 {
        self.most_worn().map_or(0, |at| self.medium.erase_count(self.free[at]))
    }

    /// Takes the block that fell free first for `role`.
    pub(super) fn take(&mut self, role: Role) -> Result<BlockId, DeviceError> {
        let block = self.free.pop_front();
        self.give(block, role)
    }

    /// Takes a much worn block for `role`.
    pub(super) fn take_most_worn(&mut self, role: Role) -> Result<BlockId, DeviceError> {
        let block = self.most_worn().and_then(|at| self.free.remove(at));
        self.give(block, role)
    }

    fn give(&mut self, block: Option<BlockId>, role: Role) -> Result<BlockId, DeviceError> {
        let block = block.ok_or_else(|| self.no_space())?;
        debug_assert_eq!(self.role(block), Role::Free);
        self.roles[block.0 as usize] = role;
        Ok(block)
    }

    /// Erases a block that holds nothing valid, and frees it, or retires it if it failed.
    pub(super) fn release(&mut self, block: BlockId, cause: Cause) -> Result<(), DeviceError> {
        self.erased_pages += u64::from(self.medium.programmed_pages(block));
        let erased = succeeded(self.medium.erase(block, cause))?;
        self.levelling.on_erase();
        let failing = self.failing.iter().position(|b| *b == block).map(|at| self.failing.swap_remove(at)).is_some();
        if erased && !failing {
            self.roles[block.0 as usize] = Role::Free;
            self.free.push_back(block);
        } else {
            self.roles[block.0 as usize] = Role::Retired;
            self.retired += 1;
        }
        Ok(())
    }

    /// A program failed in `block`: it is retired once it is released.
    pub(super) fn mark_failing(&mut self, block: BlockId) {
        self.spoiled_pages += 1;
        self.failing.push(block);
    }

    pub(super) fn is_failing(&self, block: BlockId) -> bool {
        self.failing.contains(&block)
    }

    pub(super) fn failing_blocks(&self) -> u32 {
        self.failing.len() as u32
    }

    pub(super) fn has_failing(&self) -> bool {
        !self.failing.is_empty()
    }

    /// A page was programmed with data that is valid now.
    #[inline(always)]
    pub(super) fn count_valid(&mut self) {
        self.valid_pages += 1;
    }

    /// A valid page holds nothing current any more.
    #[inline(always)]
    pub(super) fn count_invalid(&mut self) {
        self.valid_pages -= 1;
        self.invalidated_pages += 1;
    }

    /// First page of a block.
    #[inline(always)]
    pub(super) fn first_page(&self, block: BlockId) -> Ppn {
        self.medium.geometry().first_page(block)
    }

    pub(super) fn wear(&self) -> WearSummary {
        let erases = || (0..self.roles.len() as u32).map(|b| self.medium.erase_count(BlockId(b)));
        let total: u64 = erases().map(u64::from).sum();
        WearSummary {
            total,
            min: erases().min().unwrap_or(0),
            max: erases().max().unwrap_or(0),
            mean: total as f64 / self.roles.len().max(1) as f64,
        }
    }

    /// Why no block can be had.
    pub(super) fn no_space(&self) -> DeviceError {
        let blocks = self.roles.len() as u32;
        if self.retired > 0 {
            return DeviceError::WornOut { retired_blocks: self.retired, blocks };
        }
        let of = |role| self.roles.iter().filter(|r| **r == role).count();
        DeviceError::NoSpace {
            detail: format!(
                "of {blocks} blocks {} are data blocks, {} are log blocks, {} are free",
                of(Role::Data),
                of(Role::Random) + of(Role::Sequential),
                self.free.len()
            ),
        }
    }

    fn pages_on_blocks(&self) -> u64 {
        let good = (0..self.roles.len() as u32).map(BlockId).filter(|b| self.role(*b) != Role::Retired);
        good.map(|b| u64::from(self.medium.programmed_pages(b))).sum()
    }

    /// Checks that programs equal what blocks show, and that free blocks are empty.
    pub(super) fn check(&self) -> Result<(), String> {
        let programs = self.medium.counters().programmed().total();
        let accounted = self.valid_pages + self.invalidated_pages;
        if programs != accounted {
            return Err(format!("{programs} programs, {accounted} pages valid or invalidated"));
        }
        let shown = self.erased_pages + self.pages_on_blocks() - self.spoiled_pages;
        if programs.wrapping_sub(self.forgotten_programs) != shown {
            return Err(format!("{programs} programs, blocks show {shown} since their erases"));
        }
        for block in &self.free {
            if self.role(*block) != Role::Free || self.medium.programmed_pages(*block) != 0 {
                return Err(format!("{block} is listed as free but is not"));
            }
        }
        let free = self.roles.iter().filter(|r| **r == Role::Free).count();
        if free != self.free.len() {
            return Err(format!("{free} blocks are free, {} are listed", self.free.len()));
        }
        Ok(())
    }
}
