//! Merges: how log blocks become data blocks.
//!
//! - *Switch*: the SW block holds its whole logical block; it becomes the data block, and the old one is erased.
//! - *Partial*: the SW block holds the front of it; the rest is copied behind, then as above.
//! - *Full*: every mapped page of a logical block, wherever it lies, is copied to a new data block; the old one is erased.
//!
//! Until a merge is complete all its sources stand, so that a loss of power at any point loses nothing. The map follows
//! page by page: a target whose program fails is one more source for the next attempt.

use super::block_pool::{BlockPool, Role, succeeded};
use super::log_blocks::SequentialBlock;
use super::{FastFtl, LogObserver, NO_BLOCK, RESERVE_BLOCKS};
use crate::address::{BlockId, Lpn, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::memory;
use crate::nand::clock::Clock as _;
use crate::nand::{Kind, Medium, MediumError, Move, Owner};
use crate::stats::VICTIM_BUCKETS;
use crate::store::Resting;
use crate::store::tombstones::MapEntry;

impl<M: Medium, O: LogObserver> FastFtl<M, O> {
    /// Copies the newest versions of the pages of `logical`, from index `from` to the last mapped one, to their places in
    /// `target`; holes are filled. False if a program failed: `target` is failing then, and the map points into it as far
    /// as it got.
    fn gather(&mut self, logical: u32, target: BlockId, from: u32, cause: Cause) -> Result<bool, DeviceError> {
        let pages = self.pages_of(logical);
        let mapped = |entry: &MapEntry| entry.mapped().is_some();
        let end = self.entries[pages.clone()].iter().rposition(mapped).map_or(0, |last| last + 1);
        let (mut next, mut complete) = (pages.start + from as usize, true);
        while complete && next < pages.start + end {
            let at = Ppn(self.log.pool.first_page(target).0 + (next - pages.start) as u32);
            let (programmed, result) = if mapped(&self.entries[next]) {
                self.copy_mapped(next..pages.start + end, at, cause)
            } else {
                let result = Self::program_filler(&mut self.log.pool.medium, at, cause);
                self.merges.filler_pages += u64::from(result.is_ok());
                (usize::from(result.is_ok()), result)
            };
            complete = succeeded(result)?;
            next += programmed;
            // A copy leaves its source invalid; a filler never was valid. Either way one page is invalid more.
            self.log.pool.invalidated_pages += programmed as u64;
            match cause {
                Cause::PartialMerge => self.merges.partial_pages += programmed as u64,
                Cause::FullMerge => self.merges.full_pages += programmed as u64,
                _ => {}
            }
        }
        if !complete {
            self.log.pool.mark_failing(target);
        }
        Ok(complete)
    }

    /// Copies the mapped pages that `lpns` begins with to `target` and on. Returns how many were copied before a failure.
    #[inline(always)]
    fn copy_mapped(
        &mut self,
        lpns: std::ops::Range<usize>,
        target: Ppn,
        cause: Cause,
    ) -> (usize, Result<(), MediumError>) {
        self.moves.clear();
        let mapped = self.entries[lpns.clone()].iter().map_while(|entry| entry.mapped());
        let owners = (lpns.start as u32..).map(|lpn| Owner::new(Kind::Data, lpn));
        self.moves.extend(mapped.zip(owners).map(|(from, owner)| Move { owner, from, to: Ppn::NONE }));
        let (copied, result) = self.log.pool.medium.copy_run(&self.moves, target, cause);
        for (entry, at) in self.entries[lpns][..copied].iter_mut().zip(target.0..) {
            *entry = MapEntry::page(Ppn(at));
        }
        (copied, result)
    }

    /// Moves every mapped page of `logical` to a new data block and erases the old one, and the SW block if `logical`
    /// owns it.
    pub(super) fn full_merge(&mut self, logical: u32, cause: Cause) -> Result<(), DeviceError> {
        let old = self.data_blocks[logical as usize];
        let mut abandoned = Vec::new();
        let is_mapped = self.entries[self.pages_of(logical)].iter().any(|e| e.mapped().is_some());
        let target = loop {
            if !is_mapped {
                break NO_BLOCK;
            }
            let taken = match cause {
                Cause::Wear => self.log.pool.take_most_worn(Role::Data),
                _ => self.log.pool.take(Role::Data),
            };
            let target = match taken {
                Ok(target) => target,
                Err(error) => {
                    // What was copied is current where it is now, as in any block of the log.
                    abandoned.into_iter().for_each(|block| self.log.adopt(block, false));
                    return Err(error);
                }
            };
            if self.gather(logical, target, 0, cause)? {
                break target;
            }
            abandoned.push(target);
        };
        self.data_blocks[logical as usize] = target;
        self.merges.full += u64::from(cause == Cause::FullMerge);
        let sequential = self.log.sequential.take_if(|s| s.logical == logical).map(|s| s.block);
        let mut emptied = abandoned.into_iter().chain(sequential).chain((old != NO_BLOCK).then_some(old));
        while let Some(block) = emptied.next() {
            if let Err(error) = self.release(block, cause) {
                // No room for the trims that must be written first: the log keeps these blocks until there is.
                std::iter::once(block).chain(emptied).for_each(|block| self.log.adopt(block, false));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Merges the SW block, if there is one, in the cheapest way that its content allows; in a full merge if a page of it
    /// `is_rewritten`.
    pub(super) fn merge_sequential(&mut self, is_rewritten: bool) -> Result<(), DeviceError> {
        let Some(current) = self.log.sequential else { return Ok(()) };
        let pages = self.pages_of(current.logical);
        let cause = if is_rewritten || !self.is_in_order(current) {
            Cause::FullMerge
        } else if current.next as usize == pages.len() {
            Cause::SwitchMerge
        } else {
            Cause::PartialMerge
        };
        if cause == Cause::FullMerge
            || cause == Cause::PartialMerge && !self.gather(current.logical, current.block, current.next, cause)?
        {
            let next = self.log.pool.medium.programmed_pages(current.block);
            self.log.sequential = Some(SequentialBlock { next, ..current });
            self.full_merge(current.logical, Cause::FullMerge)?;
        } else {
            match cause {
                Cause::SwitchMerge => self.merges.switch += 1,
                _ => self.merges.partial += 1,
            }
            self.log.sequential = None;
            self.log.pool.assign(current.block, Role::Data);
            let old = std::mem::replace(&mut self.data_blocks[current.logical as usize], current.block);
            if old != NO_BLOCK {
                self.release(old, cause)?;
            }
        }
        self.observer.on_merge(Lpn(pages.start as u32));
        // Trims that had to be written before an erase may have opened a log block too many.
        self.keep_to_limit(false)
    }

    /// Whether the SW block can become a data block: each page that it should hold lies in it, or is not mapped at all. A
    /// page that a failed or torn program spoiled leaves its logical page elsewhere.
    fn is_in_order(&self, current: SequentialBlock) -> bool {
        let first = self.log.pool.first_page(current.block).0;
        let entries = &self.entries[self.pages_of(current.logical)][..current.next as usize];
        entries.iter().zip(first..).all(|(entry, at)| entry.mapped().is_none_or(|found| found.0 == at))
    }

    /// Reclaims a random-write log block: merges every logical block with a valid page in it, then erases it.
    pub(super) fn reclaim(&mut self) -> Result<(), DeviceError> {
        let Some(victim) = self.log.pop_victim() else { return Ok(()) };
        let emptied = self.empty_log_block(victim);
        if emptied.is_err() {
            self.log.put_back(victim);
        }
        emptied
    }

    fn empty_log_block(&mut self, victim: BlockId) -> Result<(), DeviceError> {
        let mut pages = std::mem::take(&mut self.victim_pages);
        self.list_valid(victim, &mut pages);
        self.count_victim(pages.len() as u64);
        for (owner, _) in pages.iter().filter(|(owner, _)| owner.kind() == Kind::Data) {
            self.observer.on_reclaim(Lpn(owner.address()));
        }
        self.repack_trims(&pages)?;
        for (index, &(owner, at)) in pages.iter().enumerate() {
            if let Some((next, _)) = pages.get(index + 1).filter(|(next, _)| next.kind() == Kind::Data) {
                self.prefetch_merge(Lpn(next.address()));
            }
            // An earlier merge may have moved the page along with its logical block.
            let lpn = Lpn(owner.address());
            if owner.kind() == Kind::Data && self.entries[lpn.0 as usize].mapped() == Some(at) {
                self.full_merge(self.logical_block(lpn), Cause::FullMerge)?;
                self.merges.full_of_reclaims += 1;
            }
        }
        self.victim_pages = pages;
        self.release(victim, Cause::Gc)
    }

    /// Packs the trims of a victim's tombstone pages anew, together with those that wait: fewer pages hold them then.
    fn repack_trims(&mut self, pages: &[(Owner, Ppn)]) -> Result<(), DeviceError> {
        let is_tombstone = |page: &&(Owner, Ppn)| page.0.kind() == Kind::Tombstone;
        let slots: Vec<u32> = pages.iter().filter(is_tombstone).map(|(owner, _)| owner.address()).collect();
        if !slots.is_empty() {
            self.tombstones.unpack(&slots, &mut self.entries);
            self.write_waiting()?;
            self.tombstones.drop_slots(&slots, &mut self.log);
        }
        Ok(())
    }

    /// Brings what a merge of the page's logical block will touch towards the cache.
    fn prefetch_merge(&self, lpn: Lpn) {
        let logical = self.logical_block(lpn);
        if let Some(block) = self.data_blocks.get(logical as usize).filter(|b| **b != NO_BLOCK) {
            let pages = self.pages_of(logical);
            // Sixteen entries of four bytes fill a cache line.
            for index in (0..pages.len()).step_by(16) {
                memory::prefetch(&self.entries, pages.start + index);
                self.log.pool.medium.prefetch_owner(Ppn(self.log.pool.first_page(*block).0 + index as u32));
            }
        }
    }

    /// The pages of a random-write log block that are valid, with their owners.
    fn list_valid(&self, block: BlockId, pages: &mut Vec<(Owner, Ppn)>) {
        pages.clear();
        let first = self.log.pool.first_page(block).0;
        let end = first + self.log.pool.medium.programmed_pages(block);
        pages.extend((first..end).map(Ppn).map(|at| (self.log.pool.medium.owner(at), at)).filter(|(owner, at)| {
            let address = owner.address();
            match owner.kind() {
                Kind::Data => self.entries[address as usize].mapped() == Some(*at),
                Kind::Tombstone => self.tombstones.is_at(address, *at),
                Kind::Translation | Kind::Unreadable => false,
            }
        }));
    }

    fn count_victim(&mut self, valid: u64) {
        let pages = u64::from(self.log.pool.medium.geometry().pages_per_block());
        let invalid = pages - valid;
        self.collector.collections += 1;
        self.collector.victim_invalid_pages += invalid;
        self.collector.victim_pages += pages;
        self.collector.victim_histogram[(invalid * (VICTIM_BUCKETS as u64 - 1) / pages) as usize] += 1;
    }

    /// Erases a block that holds nothing valid. Trims of its data that still wait are written first, or a loss of power
    /// could bring back data older than they are.
    fn release(&mut self, block: BlockId, cause: Cause) -> Result<(), DeviceError> {
        if self.tombstones.is_exposed(block) {
            self.write_waiting()?;
        }
        self.log.pool.release(block, cause)
    }

    /// Static wear levelling ([`crate::store`]): free blocks that are far ahead of others take over what those hold as data blocks.
    pub(super) fn level_wear(&mut self) -> Result<(), DeviceError> {
        // A reclaim frees many blocks.
        loop {
            let pool = &self.log.pool;
            let worn = pool.most_erases();
            let Some(limit) = pool.levelling.limit_for(worn) else { return Ok(()) };
            if pool.free_blocks() < RESERVE_BLOCKS {
                return Ok(());
            }
            let Some(next) = self.next_behind(limit) else { return Ok(()) };
            if !self.log.pool.levelling.is_time(next.erases, worn) {
                return Ok(());
            }
            self.log.pool.levelling.on_move();
            self.full_merge(next.index, Cause::Wear)?;
        }
    }

    /// The logical block whose data block has been erased least often, `limit` times at most.
    fn next_behind(&mut self, limit: u32) -> Option<Resting> {
        let Self { data_blocks, log, .. } = self;
        let owner = log.sequential.map(|s| s.logical);
        let BlockPool { medium, levelling, .. } = &mut log.pool;
        let erases = |logical: u32| medium.erase_count(data_blocks[logical as usize]);
        let is_behind = |logical: u32| {
            data_blocks[logical as usize] != NO_BLOCK && owner != Some(logical) && erases(logical) <= limit
        };
        if let Some(next) = levelling.next(|at| is_behind(at.index) && erases(at.index) == at.erases) {
            return Some(next);
        }
        let blocks = medium.geometry().blocks;
        if !levelling.must_look(blocks) {
            return None;
        }
        let usable = (0..blocks).map(BlockId).filter(|block| !medium.is_bad(*block));
        let least = usable.map(|block| medium.erase_count(block)).min().unwrap_or(0);
        let mut behind: Vec<u32> = (0..data_blocks.len() as u32).filter(|logical| is_behind(*logical)).collect();
        behind.sort_by_key(|logical| std::cmp::Reverse(erases(*logical)));
        let resting = |logical| Resting { index: logical, erases: erases(logical) };
        levelling.look(least, behind.into_iter().map(resting).collect());
        levelling.next(|_| true)
    }

    /// Reclaims in idle time, so that one log block may be opened without a reclaim in the way of a request.
    pub(super) fn reclaim_idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        let mut left_ns = budget_ns;
        let mut attempts = self.log.random_blocks();
        while self.log.random_blocks() > 1 && self.log.random_blocks() >= self.log_blocks() && attempts > 0 {
            attempts -= 1;
            let Some(victim) = self.log.random().next() else { break };
            let mut pages = std::mem::take(&mut self.victim_pages);
            self.list_valid(victim, &mut pages);
            let mut logical: Vec<u32> =
                pages.iter().map(|(owner, _)| self.logical_block(Lpn(owner.address()))).collect();
            self.victim_pages = pages;
            logical.sort_unstable();
            logical.dedup();
            let medium = &self.log.pool.medium;
            let merge_ns = medium.clock().collection_ns(medium.geometry().pages_per_block());
            let cost_ns = logical.len() as u64 * merge_ns + medium.clock().collection_ns(0);
            if cost_ns > left_ns {
                break;
            }
            left_ns -= cost_ns;
            self.reclaim()?;
            self.collector.background_collections += 1;
        }
        Ok(())
    }
}
