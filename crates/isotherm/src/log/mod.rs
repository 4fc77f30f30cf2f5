//! The log store: units written out of place into blocks, several of which are open at a time, and a collector.
//!
//! One type serves NAND and segments of a device, because it is generic over a [`Medium`]. It owns the blocks, the open
//! block of every stream, the validity bitmap and the policies; whoever maps addresses ([`Mapping`]) sits above it and
//! hears of every page that the collector moves.

pub mod block_table;
mod collector;
mod validity;

pub use collector::{Mapping, collect_idle, collect_worn, make_room};

use crate::address::{BlockId, Lpn, Ppn, StreamId};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::tombstones::TombstoneSpace;
use crate::memory;
use crate::nand::{Kind, Medium, MediumError, Move, Oob, Owner, PageRef};
use crate::placement::{HostWrite, Placement, Reclaim};
use crate::spec::AgeBase;
use crate::stats::{CollectorCounters, Snapshot, VICTIM_BUCKETS, WearSummary};
use crate::victim::{VictimPolicy, Written};
use block_table::{BlockState, BlockTable};
use std::collections::VecDeque;

/// How a log store behaves.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Free blocks below which a collection must run before a host stream opens another.
    pub floor: u32,
    /// What the age of a block counts from.
    pub age: AgeBase,
    /// Streams beyond the placement's own, for pages that the FTL composes (translation pages).
    pub meta_streams: u16,
    /// Blocks that these streams may fill. Blocks that they do not fill yet are parked for them, so that data finds the same
    /// free blocks whether they are filled or not; beyond, their own emptiest block is cleaned. The victim policy does not
    /// see these blocks: cleaning one for data would free a block that is parked at once.
    pub meta_blocks: u32,
    /// Difference of erase counts that static wear levelling allows; `None` switches it off.
    pub wear_threshold: Option<u32>,
}

/// The open block of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct OpenBlock {
    /// Next page to program; equal to `end` when the stream has no room.
    next: u32,
    /// One past the last page.
    end: u32,
    /// Host page writes when the first page was written.
    opened_at: u64,
    /// Pages that a collection copied in, and the sum of the stamps of the blocks they came from.
    copied: u64,
    copied_stamps: u64,
    /// Newest stamp among the pages.
    youngest: u64,
}

/// A log-structured store of pages over a medium. `P` places pages, `V` picks victims.
#[derive(Clone, Debug)]
pub struct LogStore<M, P, V> {
    medium: M,
    placement: P,
    victim: V,
    options: LogOptions,
    blocks: BlockTable,
    /// When each block was opened, in host page writes.
    opened_at: Vec<u64>,
    valid_pages: u64,
    open: Vec<OpenBlock>,
    free: VecDeque<BlockId>,
    failing: Vec<BlockId>,
    /// Blocks that meta streams fill or have filled.
    meta_blocks: Vec<BlockId>,
    /// Free blocks that are kept for meta streams, until they fill as many as they may.
    parked: VecDeque<BlockId>,
    /// Pages programmed in blocks that are not free, valid or not.
    used_pages: u64,
    /// Host page writes so far: the clock of every policy.
    now: u64,
    sequence: u64,
    erases_since_wear_check: u32,
    counters: CollectorCounters,
    moves: Vec<Move>,
    /// The victim that the policy named in advance, whose map entries have been prefetched.
    foreseen: Option<BlockId>,
    /// What [`VictimPolicy::watches_pages`] says, here because every write asks.
    watches_pages: bool,
}

/// Turns a medium's failure that no retry mends into the device's.
pub(crate) fn fatal(error: MediumError, lpn: u32) -> DeviceError {
    match error {
        MediumError::PowerLost => DeviceError::PowerLost,
        _ => DeviceError::Unreadable { lpn },
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> LogStore<M, P, V> {
    /// An empty store: every good block of the medium is free.
    pub fn new(medium: M, placement: P, victim: V, options: LogOptions) -> Self {
        let geometry = *medium.geometry();
        let streams = usize::from(placement.streams()) + usize::from(options.meta_streams);
        let mut blocks = BlockTable::new(geometry.blocks, geometry.log2_pages_per_block, options.age);
        let mut free = VecDeque::with_capacity(geometry.blocks as usize);
        for block in (0..geometry.blocks).map(BlockId) {
            blocks.erases[block.0 as usize] = medium.erase_count(block);
            if medium.is_bad(block) {
                blocks.validity.set_state(block, BlockState::Retired);
            } else {
                free.push_back(block);
            }
        }
        let watches_pages = victim.watches_pages();
        let mut log = Self {
            medium,
            placement,
            victim,
            options,
            blocks,
            opened_at: memory::zeroed_table(geometry.blocks as usize),
            valid_pages: 0,
            open: vec![OpenBlock::default(); streams],
            free,
            failing: Vec::new(),
            meta_blocks: Vec::with_capacity(options.meta_blocks as usize + 4),
            parked: VecDeque::with_capacity(options.meta_blocks as usize + 4),
            used_pages: 0,
            now: 0,
            sequence: 0,
            erases_since_wear_check: 0,
            counters: CollectorCounters::default(),
            moves: Vec::with_capacity(geometry.pages_per_block() as usize),
            foreseen: None,
            watches_pages,
        };
        log.park();
        log
    }

    /// A store over a medium that holds data. Blocks with pages in them are closed, but partly written ones go on being
    /// filled, one a stream: else every loss of power would cost their rest, and a collection that was cut short the room
    /// that it counted on. Nothing is valid yet: [`LogStore::adopt`] tells what is, and [`LogStore::finish_restore`] ends it.
    pub fn restore(medium: M, placement: P, victim: V, options: LogOptions, last_sequence: u64) -> Self {
        let mut log = Self::new(medium, placement, victim, options);
        log.free.append(&mut log.parked);
        log.free.retain(|block| log.medium.programmed_pages(*block) == 0);
        let pages_per_block = log.medium.geometry().pages_per_block();
        let mut partly_written = Vec::new();
        for block in (0..log.blocks.blocks()).map(BlockId) {
            let written = log.medium.programmed_pages(block);
            if written == 0 || log.blocks.state(block) == BlockState::Retired {
                continue;
            }
            log.used_pages += u64::from(written);
            log.restore_sort(block);
            if written < pages_per_block {
                partly_written.push((written, block));
            }
        }
        partly_written.sort_unstable();
        for (written, block) in partly_written {
            log.reopen(block, written);
        }
        log.sequence = last_sequence;
        log.park();
        log
    }

    /// Closes a block as one of meta streams or of data. Which stream filled it is not known any more: it counts as the first
    /// of its sort.
    fn restore_sort(&mut self, block: BlockId) {
        let first = self.medium.geometry().first_page(block);
        let is_meta = self.options.meta_streams > 0 && self.medium.owner(first).kind() == Kind::Translation;
        let stream = if is_meta { self.meta_stream(0) } else { StreamId(0) };
        if is_meta {
            self.meta_blocks.push(block);
        }
        self.blocks.streams[block.0 as usize] = stream;
        self.blocks.validity.set_state(block, self.closed_state(stream));
    }

    /// Gives a partly written block to a stream of its sort that has none.
    fn reopen(&mut self, block: BlockId, written: u32) {
        let data_streams = usize::from(self.placement.streams());
        let is_meta = self.is_meta(self.blocks.stream(block));
        let mut streams = if is_meta { data_streams..self.open.len() } else { 0..data_streams };
        let Some(stream) = streams.find(|s| self.open[*s].next == self.open[*s].end) else { return };
        let geometry = self.medium.geometry();
        let first = geometry.first_page(block).0;
        let end = first + geometry.pages_per_block();
        self.open[stream] = OpenBlock { next: first + written, end, ..OpenBlock::default() };
        self.blocks.validity.set_state(block, BlockState::Open);
        self.blocks.streams[block.0 as usize] = StreamId(stream as u16);
    }

    /// A page of a store being restored is valid.
    pub fn adopt(&mut self, at: Ppn) {
        self.blocks.validity.set(at);
        self.valid_pages += 1;
        self.victim.on_program(at, Written::Meta(self.now));
    }

    /// All valid pages are told: blocks become candidates for cleaning. A collection that was cut short may have used up
    /// the reserve, so blocks without valid pages are erased until it is there again.
    ///
    /// # Errors
    /// Loss of power.
    pub fn finish_restore(&mut self) -> Result<(), DeviceError> {
        // What was invalidated before the loss is whatever was programmed and is not valid now.
        self.counters.invalidated_pages = self.medium.counters().programmed().total() - self.valid_pages;
        for block in self.blocks.full().collect::<Vec<_>>() {
            if self.blocks.valid(block) == 0 && self.free.len() as u32 <= self.options.floor {
                self.release(block, Cause::Recovery, 0)?;
            } else if self.blocks.state(block) == BlockState::Closed {
                self.victim.on_close(block, &self.blocks);
                self.placement.on_close(block, self.blocks.stream(block));
            }
        }
        Ok(())
    }

    /// The medium below.
    pub fn medium(&self) -> &M {
        &self.medium
    }
    /// The medium below, to read it.
    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }
    /// Gives the medium back, and forgets everything in memory.
    pub fn into_medium(self) -> M {
        self.medium
    }
    /// The placement.
    pub fn placement(&self) -> &P {
        &self.placement
    }
    /// The placement, for an FTL that keeps metadata for it.
    pub fn placement_mut(&mut self) -> &mut P {
        &mut self.placement
    }
    /// The blocks.
    pub fn blocks(&self) -> &BlockTable {
        &self.blocks
    }
    /// What the collector did.
    pub fn counters(&self) -> &CollectorCounters {
        &self.counters
    }
    /// Host page writes so far.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.now
    }
    /// Valid pages of every kind.
    pub fn valid_pages(&self) -> u64 {
        self.valid_pages
    }
    /// Free blocks.
    pub fn free_blocks(&self) -> u32 {
        (self.free.len() + self.parked.len()) as u32
    }
    /// Whether a page is valid.
    pub fn is_valid(&self, at: Ppn) -> bool {
        self.blocks.validity.is_valid(at)
    }
    /// The first stream beyond the placement's own.
    pub fn meta_stream(&self, index: u16) -> StreamId {
        StreamId(self.placement.streams() + index)
    }

    /// The next sequence number.
    #[inline(always)]
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Brings what an overwrite of the page at `at` will touch towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, at: Ppn) {
        self.blocks.validity.prefetch(at);
    }

    /// Stream of a host write.
    #[inline(always)]
    pub fn place(&mut self, lpn: Lpn, rewrite: bool) -> StreamId {
        self.placement.host(&HostWrite { lpn, now: self.now, rewrite })
    }

    /// Whether a stream is one of those beyond the placement's.
    fn is_meta(&self, stream: StreamId) -> bool {
        stream.0 >= self.placement.streams()
    }

    /// What a block is once `stream` has filled it.
    fn closed_state(&self, stream: StreamId) -> BlockState {
        if self.is_meta(stream) { BlockState::ClosedMeta } else { BlockState::Closed }
    }

    /// Parks free blocks as long as meta streams may fill more than they do. Blocks take turns: what meta streams give back
    /// has gone to the end of the queue that this takes the first of.
    fn park(&mut self) {
        while self.meta_blocks.len() + self.parked.len() < self.options.meta_blocks as usize {
            let Some(block) = self.free.pop_front() else { return };
            self.parked.push_back(block);
        }
    }

    /// The emptiest block of the meta streams, once they fill more than they may, or as much and `stream` is one of them.
    fn excess_meta_block(&self, stream: StreamId) -> Option<BlockId> {
        let excess = self.meta_blocks.len() as i64 - i64::from(self.options.meta_blocks);
        if excess < 0 || (excess == 0 && !self.is_meta(stream)) {
            return None;
        }
        let closed = self.meta_blocks.iter().filter(|b| self.blocks.state(**b) == BlockState::ClosedMeta);
        closed
            .copied()
            .min_by_key(|b| self.blocks.valid(*b))
            .filter(|b| self.blocks.valid(*b) < self.blocks.pages_per_block())
    }

    /// The emptiest block, once so few are free that a collection might not find the room it needs: losses of power in the
    /// middle of collections come to that, and then no policy may choose a full block. A collection takes a block for copies
    /// and, with meta streams, up to two for what the map writes.
    fn emergency_victim(&self) -> Option<BlockId> {
        if self.free_blocks() > 2 * u32::from(self.options.meta_streams) {
            return None;
        }
        let emptiest = self.blocks.full().min_by_key(|b| self.blocks.valid(*b));
        emptiest.filter(|b| self.blocks.valid(*b) < self.blocks.pages_per_block())
    }

    #[inline(always)]
    fn has_room(&self, stream: StreamId) -> bool {
        let open = &self.open[usize::from(stream.0)];
        open.next < open.end
    }

    /// Programs a page of host data and advances the clock. Room must have been made ([`make_room`]).
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
            self.victim.on_program(at, Written::Host(lpn, self.now));
        }
        self.now += 1;
        Ok(at)
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
                self.victim.on_program(at, Written::Meta(self.now));
                return Ok(at);
            }
        }
    }

    /// The page that `stream` programs next; another stream's where no block is left to open.
    #[inline(always)]
    fn next_page(&mut self, stream: &mut StreamId) -> Result<Ppn, DeviceError> {
        if !self.has_room(*stream) {
            *stream = self.open_block(*stream)?;
        }
        Ok(Ppn(self.open[usize::from(stream.0)].next))
    }

    /// The page at `at`, the next of `stream`, was programmed with this result; false if another must be tried.
    #[inline(always)]
    fn appended(&mut self, stream: StreamId, at: Ppn, result: Result<(), MediumError>) -> Result<bool, DeviceError> {
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
            Err(MediumError::PowerLost) => Err(DeviceError::PowerLost),
            Err(_) => {
                self.abandon(stream, self.medium.geometry().block_of(at));
                Ok(false)
            }
        }
    }

    /// The next page of `block` failed: it is not to be trusted any more, and what it holds is moved before anything else
    /// is cleaned.
    fn abandon(&mut self, stream: StreamId, block: BlockId) {
        self.open[usize::from(stream.0)].next += 1;
        self.used_pages += 1;
        self.close_block(stream, block, BlockState::Failing);
        self.failing.push(block);
    }

    /// Gives `stream` a free block; where none is left, names another stream that has room.
    fn open_block(&mut self, stream: StreamId) -> Result<StreamId, DeviceError> {
        let (first, second) =
            if self.is_meta(stream) { (&mut self.parked, &mut self.free) } else { (&mut self.free, &mut self.parked) };
        let Some(block) = first.pop_front().or_else(|| second.pop_front()) else {
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
        self.blocks.streams[block.0 as usize] = stream;
        if self.is_meta(stream) {
            self.meta_blocks.push(block);
        }
        Ok(stream)
    }

    fn close_block(&mut self, stream: StreamId, block: BlockId, state: BlockState) {
        let open = &mut self.open[usize::from(stream.0)];
        let pages = u64::from(open.next - self.medium.geometry().first_page(block).0);
        let host_pages = pages - open.copied;
        self.blocks.stamps[block.0 as usize] = match self.options.age {
            // Pages written by the host date from now; copies keep the age of the block they came from.
            AgeBase::Closed => (host_pages * self.now + open.copied_stamps) / pages.max(1),
            AgeBase::Youngest if host_pages > 0 => self.now,
            AgeBase::Youngest => open.youngest,
            AgeBase::LastInvalidation | AgeBase::Sealed => self.now,
        };
        self.opened_at[block.0 as usize] = open.opened_at;
        *open = OpenBlock::default();
        self.blocks.validity.set_state(block, state);
        if state == BlockState::Closed {
            self.victim.on_close(block, &self.blocks);
            self.placement.on_close(block, stream);
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
            self.blocks.stamps[block.0 as usize] = self.now;
        }
        if state == BlockState::Closed {
            self.victim.on_invalidate(block, &self.blocks);
        }
    }

    /// Erases a block whose `valid` pages have moved, and frees it, or retires it if it failed.
    fn release(&mut self, block: BlockId, cause: Cause, valid: u32) -> Result<(), DeviceError> {
        let index = block.0 as usize;
        debug_assert_eq!(self.blocks.valid(block), 0);
        self.used_pages -= u64::from(self.medium.programmed_pages(block));
        let failing = self.blocks.state(block) == BlockState::Failing;
        let is_meta = self.is_meta(self.blocks.stream(block));
        // Neither a failing block nor one that is erased while a store is restored was ever told as closed.
        let placement_knows = self.blocks.state(block) == BlockState::Collecting && !is_meta;
        let usable = match self.medium.erase(block, cause) {
            Ok(()) => !failing,
            Err(MediumError::PowerLost) => return Err(DeviceError::PowerLost),
            Err(_) => false,
        };
        if is_meta {
            self.meta_blocks.retain(|b| *b != block);
        }
        self.blocks.erases[index] = self.medium.erase_count(block);
        self.erases_since_wear_check += 1;
        if usable {
            self.blocks.validity.set_state(block, BlockState::Free);
            self.free.push_back(block);
            self.park();
        } else {
            self.blocks.validity.set_state(block, BlockState::Retired);
            self.counters.retired_blocks += 1;
        }
        if placement_knows {
            self.placement.on_reclaim(&Reclaim {
                block,
                stream: self.blocks.stream(block),
                opened_at: self.opened_at[index],
                stamp: self.blocks.stamp(block),
                now: self.now,
                valid,
            });
        }
        Ok(())
    }

    /// Adds medium, collector, time and tables to `snapshot`.
    pub fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.medium = *self.medium.counters();
        snapshot.collector = self.counters;
        snapshot.time = self.medium.time();
        self.placement.fill_snapshot(snapshot);
        snapshot.valid_pages = self.valid_pages;
        snapshot.free_blocks = self.free_blocks();
        snapshot.dram.push(("placement", self.placement.memory_bytes()));
        snapshot.dram.push(("victim", self.victim.memory_bytes()));
        snapshot.dram.push(("blocks", self.blocks.bytes() + self.opened_at.len() as u64 * 8));
    }

    /// Why no page can be written.
    fn no_space(&self) -> DeviceError {
        let retired = self.counters.retired_blocks;
        if retired > 0 {
            return DeviceError::WornOut { retired_blocks: retired as u32, blocks: self.blocks.blocks() };
        }
        DeviceError::NoSpace {
            detail: format!(
                "{} of {} pages are valid, {} blocks are free, {} streams hold open blocks",
                self.valid_pages,
                self.medium.geometry().pages(),
                self.free_blocks(),
                self.open.iter().filter(|o| o.next < o.end).count()
            ),
        }
    }

    /// Counts a victim.
    fn count_victim(&mut self, block: BlockId) {
        let pages = u64::from(self.blocks.pages_per_block());
        let invalid = pages - u64::from(self.blocks.valid(block));
        self.counters.collections += 1;
        self.counters.victim_invalid_pages += invalid;
        self.counters.victim_pages += pages;
        self.counters.victim_histogram[(invalid * (VICTIM_BUCKETS as u64 - 1) / pages) as usize] += 1;
    }

    /// Erase counts over the blocks.
    pub fn wear(&self) -> WearSummary {
        let erases = &self.blocks.erases;
        let total: u64 = erases.iter().map(|e| u64::from(*e)).sum();
        WearSummary {
            total,
            min: erases.iter().copied().min().unwrap_or(0),
            max: erases.iter().copied().max().unwrap_or(0),
            mean: total as f64 / erases.len().max(1) as f64,
        }
    }

    /// Bytes of the simulator's tables: medium, blocks, bitmap and policies.
    pub fn table_bytes(&self) -> u64 {
        self.medium.table_bytes()
            + self.blocks.bytes()
            + self.opened_at.len() as u64 * 8
            + self.victim.memory_bytes()
            + self.placement.memory_bytes()
    }

    /// Checks the conservation laws: every page programmed is valid, was invalidated, or was spoiled; columns agree with
    /// the bitmap, and blocks with the medium.
    ///
    /// # Errors
    /// The law that is broken.
    pub fn check(&self) -> Result<(), String> {
        let law = |holds: bool, text: &dyn Fn() -> String| if holds { Ok(()) } else { Err(text()) };
        let programmed = self.medium.counters().programmed().total();
        let accounted = self.valid_pages + self.counters.invalidated_pages;
        law(programmed == accounted, &|| format!("{programmed} programs, {accounted} pages valid or invalidated"))?;
        let (mut used, mut valid) = (0, 0);
        for block in (0..self.blocks.blocks()).map(BlockId) {
            let mut bits = 0;
            self.blocks.validity.for_each_valid(block, |_| bits += 1);
            valid += u64::from(bits);
            let (state, written) = (self.blocks.state(block), self.medium.programmed_pages(block));
            law(bits == self.blocks.valid(block), &|| {
                format!("{block}: {bits} bits, {} valid", self.blocks.valid(block))
            })?;
            law(bits <= written, &|| format!("{block}: {bits} valid of {written} programmed"))?;
            law(state != BlockState::Free || written == 0, &|| format!("{block} is free with {written} pages"))?;
            if state != BlockState::Retired {
                used += u64::from(written);
            }
        }
        law(valid == self.valid_pages, &|| format!("{valid} valid bits, {} valid pages", self.valid_pages))?;
        law(used == self.used_pages, &|| format!("{used} pages programmed, {} accounted", self.used_pages))?;
        self.placement.check(&self.blocks)
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> TombstoneSpace for LogStore<M, P, V> {
    fn append_tombstone(&mut self, owner: Owner, content: &[u8]) -> Result<Ppn, DeviceError> {
        self.append_meta(StreamId(0), owner, content, Cause::Trim)
    }

    fn invalidate_tombstone(&mut self, at: Ppn) {
        self.invalidate(at);
    }
}
