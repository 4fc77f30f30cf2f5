//! Pages come and go: programs into open blocks, blocks that open, close and are erased, and pages that become invalid.

use super::{BlockStore, OpenBlock};
use crate::address::{BlockId, Lpn, Ppn, StreamId};
use crate::blocks::AgeBase;
use crate::blocks::BlockState;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Kind, Medium, MediumError, Oob, Owner, PageRef};
use crate::placement::Placement;
use crate::store::tombstones::TombstoneSpace;
use crate::victim::{VictimPolicy, Written};

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// Programs a page of host data and advances the clock. Room must have been made ([`super::make_room`]).
    ///
    /// # Errors
    /// Loss of power, or no space.
    #[inline(always)]
    pub fn append_host(
        &mut self,
        stream: StreamId,
        lpn: Lpn,
        page: PageRef<'_, M>,
        cause: Cause,
    ) -> Result<Ppn, DeviceError> {
        let oob = Oob { owner: Owner::new(Kind::Data, lpn.0), sequence: self.next_sequence() };
        let mut stream = stream;
        let at = loop {
            let at = self.next_page(&mut stream)?;
            let result = self.medium.program(at, oob, page, cause);
            if self.appended(stream, at, result)? {
                break at;
            }
        };
        if self.watches_pages {
            self.victim.on_program(at, Written::Host(lpn, self.now), &mut self.history);
        }
        self.now += 1;
        Ok(at)
    }

    /// Whether [`BlockStore::append_run`] is of use: nothing below wants to hear of each host write by itself.
    pub fn appends_runs(&self) -> bool {
        self.appends_runs
    }

    /// Programs as many pages of host data as need no look at anything but the open block, and advances the clock: the first of
    /// `lpns`, up to the last page but one of the block. Returns where the first of them went and how many there were. Only where
    /// [`BlockStore::appends_runs`]; [`BlockStore::count_run`] ends the run.
    #[inline(always)]
    pub(crate) fn append_run(&mut self, lpns: &[Lpn]) -> (Ppn, usize) {
        let stream = self.placement.host_to().expect("runs are appended where the page does not matter");
        let open = &mut self.open[usize::from(stream.0)];
        let at = Ppn(open.next);
        let room = (open.end - open.next).saturating_sub(1) as usize;
        let count = lpns.len().min(room);
        if count == 0 || (self.free.len() as u32) < self.options.floor || !self.failing.is_empty() {
            return (at, 0);
        }
        let pages = count as u64;
        self.medium.program_run(&lpns[..count], at, self.sequence + 1, Cause::Host);
        open.next += count as u32;
        self.blocks.validity.set_run(at, count as u32);
        self.sequence += pages;
        self.used_pages += pages;
        self.now += pages;
        (at, count)
    }

    /// What the victim policy says of deaths that it need not hear of, for [`BlockStore::invalidate_heeded`].
    #[inline(always)]
    pub(crate) fn heeded(&self) -> u32 {
        self.victim.heeds_up_to()
    }

    /// As [`BlockStore::invalidate`] for the old pages of a run, one after the other, but that [`BlockStore::count_run`] counts them.
    #[inline(always)]
    pub(crate) fn invalidate_heeded(&mut self, pages: &[Ppn], heeded: u32) {
        let mut rest = pages;
        loop {
            let (cleared, is_heeded) = self.blocks.validity.clear_until(rest, heeded);
            if !is_heeded {
                return;
            }
            self.heed_death(self.medium.geometry().block_of(rest[cleared - 1]));
            rest = &rest[cleared..];
        }
    }

    /// A run of so many pages was appended, and so many old ones hold no current data any more.
    #[inline(always)]
    pub(crate) fn count_run(&mut self, appended: usize, dead: u64) {
        self.valid_pages = self.valid_pages + appended as u64 - dead;
        self.counters.invalidated_pages += dead;
    }

    /// Programs a page that the FTL composed. Room must have been made, or the collector's reserve is used.
    ///
    /// # Errors
    /// Loss of power, or no space.
    pub fn append_meta(
        &mut self,
        stream: StreamId,
        owner: Owner,
        content: &[u8],
        cause: Cause,
    ) -> Result<Ppn, DeviceError> {
        let oob = Oob { owner, sequence: self.next_sequence() };
        let mut stream = stream;
        loop {
            let at = self.next_page(&mut stream)?;
            let result = self.medium.program_meta(at, oob, content, cause);
            if self.appended(stream, at, result)? {
                self.victim.on_program(at, Written::Meta(self.now), &mut self.history);
                return Ok(at);
            }
        }
    }

    /// The page that `stream` programs next; another stream's where no block is left to open.
    #[inline(always)]
    pub(super) fn next_page(&mut self, stream: &mut StreamId) -> Result<Ppn, DeviceError> {
        if !self.has_room(*stream) {
            *stream = self.open_block(*stream)?;
        }
        Ok(Ppn(self.open[usize::from(stream.0)].next))
    }

    /// The page at `at`, the next of `stream`, was programmed with this result; false if another must be tried.
    #[inline(always)]
    pub(super) fn appended(
        &mut self,
        stream: StreamId,
        at: Ppn,
        result: Result<(), MediumError>,
    ) -> Result<bool, DeviceError> {
        match result {
            Ok(()) => {
                let open = &mut self.open[usize::from(stream.0)];
                open.next += 1;
                let full = open.next == open.end;
                self.used_pages += 1;
                self.blocks.validity.set(at);
                self.valid_pages += 1;
                if full {
                    self.close_block(stream, self.medium.geometry().block_of(at), self.closed_state(stream));
                }
                Ok(true)
            }
            Err(error) => match error.stop() {
                Some(stop) => Err(stop),
                None => {
                    self.abandon(stream, self.medium.geometry().block_of(at));
                    Ok(false)
                }
            },
        }
    }

    /// The next page of `block` failed: it is not to be trusted any more, and what it holds is moved before anything else
    /// is cleaned.
    pub(super) fn abandon(&mut self, stream: StreamId, block: BlockId) {
        self.open[usize::from(stream.0)].next += 1;
        self.used_pages += 1;
        self.close_block(stream, block, BlockState::Failing);
        self.failing.push(block);
    }

    /// Gives `stream` a free block; where none is left, names another stream that has room.
    pub(super) fn open_block(&mut self, stream: StreamId) -> Result<StreamId, DeviceError> {
        let is_levelled = stream == self.levelled_slot();
        let taken = if is_levelled {
            self.free.pop_back()
        } else if self.is_meta(stream) {
            self.parked.pop_front().or_else(|| self.free.pop_front())
        } else {
            self.free.pop_front().or_else(|| self.parked.pop_front())
        };
        let Some(block) = taken else {
            let other = (0..self.open.len()).find(|s| self.open[*s].next < self.open[*s].end);
            self.counters.displaced_pages += 1;
            return other.map(|s| StreamId(s as u16)).ok_or_else(|| self.no_space());
        };
        debug_assert_eq!(self.blocks.state(block), BlockState::Free);
        if let Some(next) = self.free.front() {
            self.prefetch_block(*next);
        }
        let geometry = self.medium.geometry();
        let first = geometry.first_page(block).0;
        self.open[usize::from(stream.0)] = OpenBlock {
            next: first,
            end: first + geometry.pages_per_block(),
            opened_at: self.now,
            ..OpenBlock::default()
        };
        self.blocks.validity.set_state(block, BlockState::Open);
        self.blocks.validity.set_stream(block, if is_levelled { self.levelled_stream } else { stream });
        if self.is_meta(stream) {
            self.meta_blocks.push(block);
        }
        Ok(stream)
    }

    pub(super) fn close_block(&mut self, stream: StreamId, block: BlockId, state: BlockState) {
        let open = &mut self.open[usize::from(stream.0)];
        let pages = u64::from(open.next - self.medium.geometry().first_page(block).0);
        let host_pages = pages - open.copied;
        let past = &mut self.blocks.pasts[block.0 as usize];
        past.opened_at = open.opened_at;
        past.stamp = match self.options.age {
            // Pages written by the host date from now; copies keep the age of the block they came from.
            AgeBase::Closed => (host_pages * self.now + open.copied_stamps) / pages.max(1),
            AgeBase::Youngest if host_pages > 0 => self.now,
            AgeBase::Youngest => open.youngest,
            AgeBase::LastInvalidation | AgeBase::Sealed => self.now,
        };
        // What a block that closes early does not hold, nothing can hold before it is erased.
        self.used_pages += u64::from(open.end - open.next);
        *open = OpenBlock::default();
        self.blocks.validity.set_state(block, state);
        if state == BlockState::Closed {
            self.victim.on_close(block, &self.blocks);
            self.placement.on_close(block, self.blocks.stream(block));
        }
    }

    /// The page at `at` holds no current data any more.
    #[inline(always)]
    pub fn invalidate(&mut self, at: Ppn) {
        let block = self.medium.geometry().block_of(at);
        let state = self.blocks.validity.clear(at);
        self.valid_pages -= 1;
        self.counters.invalidated_pages += 1;
        if self.watches_pages {
            self.victim.on_page_death(at);
        }
        if self.options.age == AgeBase::LastInvalidation {
            self.blocks.pasts[block.0 as usize].stamp = self.now;
        }
        if state == BlockState::Closed {
            self.victim.on_invalidate(block, &self.blocks);
        }
    }

    /// Erases a block whose valid pages have moved, and frees it, or retires it if it failed.
    pub(super) fn release(&mut self, block: BlockId, cause: Cause) -> Result<(), DeviceError> {
        debug_assert_eq!(self.blocks.valid(block), 0);
        let failing = self.blocks.state(block) == BlockState::Failing;
        let usable = match self.medium.erase(block, cause) {
            Ok(()) => !failing,
            Err(error) => match error.stop() {
                Some(stop) => return Err(stop),
                None => false,
            },
        };
        self.used_pages -= u64::from(self.blocks.pages_per_block());
        if self.is_meta(self.blocks.stream(block)) {
            self.meta_blocks.retain(|b| *b != block);
        }
        self.blocks.pasts[block.0 as usize].erases = self.medium.erase_count(block);
        self.levelling.on_erase();
        if usable {
            self.blocks.validity.set_state(block, BlockState::Free);
            self.free.push_back(block);
            self.park();
        } else {
            self.blocks.validity.set_state(block, BlockState::Retired);
            self.counters.retired_blocks += 1;
        }
        Ok(())
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> TombstoneSpace for BlockStore<M, P, V> {
    fn append_tombstone(&mut self, owner: Owner, content: &[u8]) -> Result<Ppn, DeviceError> {
        self.append_meta(StreamId(0), owner, content, Cause::Trim)
    }

    fn invalidate_tombstone(&mut self, at: Ppn) {
        self.invalidate(at);
    }
}
