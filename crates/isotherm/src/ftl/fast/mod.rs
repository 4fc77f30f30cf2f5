//! FAST: fully associative sector translation, a hybrid map.
//!
//! Data blocks are mapped by block: page `i` of a logical block lies on page `i` of its data block. Writes go to log
//! blocks, mapped by page. One of them takes sequential writes (SW), the others random ones (RW):
//!
//! - A write at the first page of a logical block opens the SW block for it; an SW block that exists is merged first.
//! - A write that continues the SW block in order goes there. One that rewrites a page already in it makes a full merge
//!   of its owner, one that skips ahead a partial merge; the write itself then goes to the RW log.
//! - Every other write goes to the RW log. With no room there, the oldest RW block is reclaimed: one full merge for each
//!   logical block with a valid page in it.
//!
//! Paper: Lee et al., "A log buffer-based flash translation layer using fully-associative sector translation" (2007), as
//! described and used by adaptive partitioning (section II-C). Departures:
//!
//! - *Holes.* NAND is programmed in order, so a merged block with an unmapped page before a mapped one needs something
//!   there: a filler page is programmed (counted in `filler_pages`). Behind the last mapped page the merge stops, since
//!   nothing is gained by programming pages that hold nothing; a sparse device therefore merges cheaper than a full one.
//! - *Partial merges* copy the newest version of each page, wherever it lies, so that one merge leaves no stale data block.
//! - *Trims* invalidate log and data pages and are logged in tombstone pages in the RW log. A reclaim packs the trims of
//!   its victim anew, so that they never fill the log.
//! - *Recovery* scans the OOB areas ([`FastFtl::recover`]); a page of an RW block is told from one of a data block by its place.
//! - `in_place_first_write` (off) writes a page that was never mapped straight to its place where NAND's order allows.
//!
//! Memory: the controller is charged four bytes a logical block for the block map, which is always resident, and
//! [`log_block_map_bytes`] for each RW block. The simulator itself keeps the place of every logical page in an array of
//! four bytes an entry, so that a look-up is one load where a controller searches the log's map. A write is O(1) but
//! for merges; a merge is O(pages per block).

mod block_pool;
mod check;
mod counters;
mod design;
mod log_blocks;
mod merge;
mod options;
mod recover;
mod space;

pub use counters::{MergeCounters, MergesResults};
pub use design::FastDesign;
pub use log_blocks::log_block_map_bytes;
pub(super) use options::ENTRY;
pub use options::{FastOptions, LogShare, RESERVE_BLOCKS};

use super::Ftl;
use crate::address::{BlockId, Lpn, Ppn};
use crate::cause::{ByCause, Cause};
use crate::device::{BlockView, DeviceError};
use crate::memory;
use crate::nand::clock::Clock as _;
use crate::nand::{Kind, Medium, MediumError, Move, Oob, Owner, PageMut, PageRef};
use crate::stats::{CollectorCounters, Snapshot, WearSummary};
use crate::store::fatal;
use crate::store::tombstones::{MapEntry, Tombstones};
use block_pool::{BlockPool, Role, succeeded};
use log_blocks::{LogBlocks, SequentialBlock};

/// No data block.
const NO_BLOCK: BlockId = BlockId(u32::MAX);

/// Hears of what goes into the log and out of it: what ghost log blocks are built on.
pub trait LogObserver {
    /// The host writes `lpn`. A hit finds an older version in the RW log, which no merge has to move any more; the new one
    /// goes `into_log` too, or elsewhere.
    fn on_write(&mut self, lpn: Lpn, is_hit: bool, into_log: bool);
    /// The sequential block of the logical block that begins with `first` was merged: none of it is in the RW log any more.
    fn on_merge(&mut self, first: Lpn);
    /// A reclaim moves `lpn` out of the RW log: its page was still valid in the victim.
    fn on_reclaim(&mut self, lpn: Lpn);
    /// The host discards `lpn`.
    fn on_trim(&mut self, lpn: Lpn);
}

impl LogObserver for () {
    #[inline(always)]
    fn on_write(&mut self, _: Lpn, _: bool, _: bool) {}
    #[inline(always)]
    fn on_merge(&mut self, _: Lpn) {}
    #[inline(always)]
    fn on_reclaim(&mut self, _: Lpn) {}
    #[inline(always)]
    fn on_trim(&mut self, _: Lpn) {}
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct FastFtl<M, O = ()> {
    log: LogBlocks<M>,
    /// Where each logical page lies: in its data block or in the log.
    entries: Vec<MapEntry>,
    /// The block map.
    data_blocks: Vec<BlockId>,
    mapped_pages: u64,
    tombstones: Tombstones,
    options: FastOptions,
    /// Whether the log could not be brought to its limit when that was last tried.
    beyond_limit: bool,
    log2_pages_per_block: u8,
    merges: MergeCounters,
    /// Programs and copies of the medium when the merges began to be counted.
    counted_from: ByCause,
    collector: CollectorCounters,
    /// Pages of the block being reclaimed that were valid when it was chosen.
    victim_pages: Vec<(Owner, Ppn)>,
    /// Pages that a merge copies in one run.
    moves: Vec<Move>,
    observer: O,
}

impl<M: Medium, O: LogObserver> FastFtl<M, O> {
    /// An empty device of `logical_pages`.
    ///
    /// # Panics
    /// If the medium is too small for the logical pages, one RW and one SW block and the reserve, or options are out of range.
    pub fn new(medium: M, logical_pages: u32, options: FastOptions, observer: O) -> Self {
        Self::over(BlockPool::new(medium, options.wear_threshold), logical_pages, options, observer, 0)
    }

    fn over(pool: BlockPool<M>, logical_pages: u32, options: FastOptions, observer: O, last_sequence: u64) -> Self {
        let geometry = *pool.medium.geometry();
        let logical_blocks = logical_pages.div_ceil(geometry.pages_per_block());
        assert!(options.reserve >= RESERVE_BLOCKS, "FAST keeps at least {RESERVE_BLOCKS} blocks free");
        let most = geometry.blocks.saturating_sub(logical_blocks + 1 + options.reserve);
        assert!((1..=most).contains(&options.log_blocks), "1 to {most} log blocks fit, not {}", options.log_blocks);
        Self {
            entries: memory::table(logical_pages as usize, MapEntry::NONE),
            data_blocks: vec![NO_BLOCK; logical_blocks as usize],
            mapped_pages: 0,
            tombstones: Tombstones::new(geometry.page_bytes(), geometry.blocks),
            options,
            beyond_limit: false,
            log2_pages_per_block: geometry.log2_pages_per_block,
            merges: MergeCounters::default(),
            counted_from: pool.medium.counters().programmed(),
            collector: CollectorCounters::default(),
            victim_pages: Vec::with_capacity(geometry.pages_per_block() as usize),
            moves: Vec::with_capacity(geometry.pages_per_block() as usize),
            observer,
            log: LogBlocks::new(pool, last_sequence),
        }
    }

    /// The most RW log blocks that can be asked for: what the data blocks, the SW block and the reserve leave, and no more
    /// than the good blocks have room for.
    pub fn log_blocks_max(&self) -> u32 {
        let taken = self.data_blocks.len() as u32 + 1 + self.options.reserve;
        self.log.pool.medium.geometry().blocks.saturating_sub(taken).min(self.log_blocks_possible())
    }

    /// RW log blocks that the good blocks have room for. Blocks that fail use up the reserve first, down to what merges need.
    fn log_blocks_possible(&self) -> u32 {
        let taken = self.data_blocks.len() as u32 + 1 + RESERVE_BLOCKS;
        self.log.pool.usable_blocks().saturating_sub(taken)
    }

    /// RW log blocks that may be in use now: as many as asked for, or as failed blocks leave room for.
    pub fn log_blocks(&self) -> u32 {
        self.options.log_blocks.min(self.log_blocks_possible())
    }

    /// What listens to the log.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// What listens to the log, to change it.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// DRAM of the block map, which is always resident: four bytes a logical block.
    pub fn block_map_bytes(&self) -> u64 {
        self.data_blocks.len() as u64 * 4
    }

    /// What reclaims of the log did.
    pub fn collector(&self) -> &CollectorCounters {
        &self.collector
    }

    /// Merges so far.
    pub fn merges(&self) -> &MergeCounters {
        &self.merges
    }

    /// RW log blocks that hold pages now.
    pub fn log_blocks_in_use(&self) -> u32 {
        self.log.random_blocks()
    }

    /// Changes the number of RW log blocks at run time, to `count` or the nearest number allowed, which is returned. A
    /// log that is larger is shrunk at once: its oldest blocks are reclaimed.
    ///
    /// # Errors
    /// Faults of the medium.
    pub fn set_log_blocks(&mut self, count: u32) -> Result<u32, DeviceError> {
        let before = self.options.log_blocks;
        self.options.log_blocks = count.clamp(1, self.log_blocks_max().max(1));
        if let Err(error) = self.keep_to_limit(false) {
            // A log that cannot shrink keeps its size.
            self.options.log_blocks = before;
            return Err(error);
        }
        Ok(self.log_blocks())
    }

    #[inline(always)]
    fn logical_block(&self, lpn: Lpn) -> u32 {
        lpn.0 >> self.log2_pages_per_block
    }

    /// Index of a page in its logical block.
    #[inline(always)]
    fn offset(&self, lpn: Lpn) -> u32 {
        lpn.0 & ((1 << self.log2_pages_per_block) - 1)
    }

    /// LPNs of a logical block; the last block may be short.
    #[inline(always)]
    fn pages_of(&self, logical: u32) -> std::ops::Range<usize> {
        let first = (logical as usize) << self.log2_pages_per_block;
        first..(first + (1 << self.log2_pages_per_block)).min(self.entries.len())
    }

    #[inline(always)]
    fn oob(&mut self, lpn: Lpn) -> Oob {
        Oob { owner: Owner::new(Kind::Data, lpn.0), sequence: self.log.next_sequence() }
    }

    /// `lpn` lies at `at` from now on. Its old place, if any, is invalid.
    #[inline(always)]
    fn point(&mut self, lpn: Lpn, at: Ppn) {
        let old = std::mem::replace(&mut self.entries[lpn.0 as usize], MapEntry::page(at));
        let role = |pool: &BlockPool<M>, at| pool.role(pool.medium.geometry().block_of(at));
        let into_log = role(&self.log.pool, at) == Role::Random;
        match old.mapped() {
            Some(old) => {
                let is_hit = role(&self.log.pool, old) == Role::Random;
                self.merges.log_hits += u64::from(is_hit);
                self.log.pool.count_invalid();
                self.observer.on_write(lpn, is_hit, into_log);
            }
            None => {
                self.observer.on_write(lpn, false, into_log);
                self.mapped_pages += 1;
                self.tombstones.forget(old, &mut self.log);
            }
        }
    }

    /// Writes a page to the RW log.
    #[inline(always)]
    fn write_random(&mut self, lpn: Lpn, page: PageRef<'_, M>, cause: Cause) -> Result<(), DeviceError> {
        if !self.log.has_room() {
            self.make_room()?;
        }
        let oob = self.oob(lpn);
        let at = self.log.append_page(oob, page, cause)?;
        self.point(lpn, at);
        Ok(())
    }

    /// Makes sure that the RW log can take a page.
    #[inline(never)]
    fn make_room(&mut self) -> Result<(), DeviceError> {
        self.level_wear()?;
        self.keep_to_limit(true)
    }

    /// Reclaims until no failing block is left and the log keeps to its limit, with a page to spare if `with_room`.
    /// Tombstones that had to be written in the middle of a merge may have opened a block too many.
    fn keep_to_limit(&mut self, with_room: bool) -> Result<(), DeviceError> {
        // The log could be full of trims that are all needed; two turns over it find that out.
        let mut attempts = 2 * self.log.random_blocks() + 2;
        self.beyond_limit = true;
        loop {
            let opening = u32::from(with_room && self.log.head().is_none());
            if !self.log.pool.has_failing() && self.log.random_blocks() + opening <= self.log_blocks() {
                self.beyond_limit = false;
                return Ok(());
            }
            if attempts == 0 || self.log_blocks() == 0 {
                return Err(self.log_is_full());
            }
            self.reclaim()?;
            attempts -= 1;
        }
    }

    /// Why the RW log cannot take a page though merges were tried: what is left in it is trims.
    fn log_is_full(&self) -> DeviceError {
        if self.log.pool.retired_blocks() > 0 || self.log_blocks() == 0 {
            return self.log.pool.no_space();
        }
        DeviceError::NoSpace {
            detail: format!(
                "the log may have {} blocks, and they are full of trims that are still needed; a larger log (log_blocks, or \
                 the map's share of the DRAM) holds more",
                self.log_blocks()
            ),
        }
    }

    /// Opens the SW block for `logical` and writes its first page, in another block where the program fails.
    fn start_sequential(
        &mut self,
        logical: u32,
        lpn: Lpn,
        page: PageRef<'_, M>,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        self.merge_sequential(false)?;
        loop {
            let block = self.log.pool.take(Role::Sequential)?;
            let (at, oob) = (self.log.pool.first_page(block), self.oob(lpn));
            if succeeded(self.log.pool.medium.program(at, oob, page, cause))? {
                self.log.sequential = Some(SequentialBlock { block, logical, next: 1 });
                self.log.pool.count_valid();
                self.point(lpn, at);
                return Ok(());
            }
            self.log.pool.mark_failing(block);
            self.log.pool.release(block, Cause::Host)?;
        }
    }

    /// Continues the SW block in order. A page that fails breaks the order for good: the owner is merged and the write
    /// goes to the RW log.
    #[inline(always)]
    fn continue_sequential(
        &mut self,
        current: SequentialBlock,
        lpn: Lpn,
        page: PageRef<'_, M>,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let (at, oob) = (Ppn(self.log.pool.first_page(current.block).0 + current.next), self.oob(lpn));
        if succeeded(self.log.pool.medium.program(at, oob, page, cause))? {
            self.log.sequential = Some(SequentialBlock { next: current.next + 1, ..current });
            self.log.pool.count_valid();
            self.point(lpn, at);
            return Ok(());
        }
        self.log.pool.mark_failing(current.block);
        self.merge_sequential(true)?;
        self.write_random(lpn, page, cause)
    }

    /// Writes a page that holds no data to its place in the data block, where that is the block's next page.
    fn write_in_place(
        &mut self,
        logical: u32,
        lpn: Lpn,
        page: PageRef<'_, M>,
        cause: Cause,
    ) -> Result<bool, DeviceError> {
        let offset = self.offset(lpn);
        let mut block = self.data_blocks[logical as usize];
        let owns_sequential = self.log.sequential.is_some_and(|s| s.logical == logical);
        let next = if block == NO_BLOCK { 0 } else { self.log.pool.medium.programmed_pages(block) };
        if self.entries[lpn.0 as usize].mapped().is_some() || owns_sequential || next != offset {
            return Ok(false);
        }
        if block == NO_BLOCK {
            block = self.log.pool.take(Role::Data)?;
            self.data_blocks[logical as usize] = block;
        }
        let (at, oob) = (Ppn(self.log.pool.first_page(block).0 + offset), self.oob(lpn));
        let programmed = succeeded(self.log.pool.medium.program(at, oob, page, cause))?;
        if programmed {
            self.log.pool.count_valid();
            self.point(lpn, at);
        } else {
            self.log.pool.mark_failing(block);
            self.full_merge(logical, Cause::FullMerge)?;
            self.keep_to_limit(false)?;
        }
        Ok(programmed)
    }

    /// Writes the waiting trims, of which there is a page at most.
    fn write_trims(&mut self) -> Result<(), DeviceError> {
        if !self.log.has_room() {
            // This may have to erase a block whose trims wait, and write them itself; nothing is left to write then.
            self.make_room()?;
        }
        self.write_waiting()
    }

    /// Writes the waiting trims where there is room, or into the reserve.
    fn write_waiting(&mut self) -> Result<(), DeviceError> {
        while self.tombstones.is_waiting() {
            self.tombstones.write_page(&mut self.entries, &mut self.log)?;
        }
        Ok(())
    }

    /// Programs a page that holds nothing, to keep NAND's order.
    fn program_filler(medium: &mut M, at: Ppn, cause: Cause) -> Result<(), MediumError> {
        let oob = Oob { owner: Owner::new(Kind::Unreadable, 0), sequence: 0 };
        medium.program_meta(at, oob, &[], cause)
    }
}

impl<M: Medium, O: LogObserver> Ftl for FastFtl<M, O> {
    type Medium = M;

    fn logical_pages(&self) -> u32 {
        self.entries.len() as u32
    }

    fn writes_runs(&self) -> bool {
        false
    }
    fn write_run(&mut self, _: &[Lpn]) -> usize {
        0
    }
    fn wants_batches(&self) -> bool {
        false
    }
    fn announce(&mut self, _: &[Lpn]) {}
    fn check_policies(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn wants_sources(&self) -> bool {
        false
    }
    fn attribute(&mut self, _: Lpn, _: u16) {}
    #[inline(always)]
    fn begin_write(&mut self, _: u32) {}
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        lpns.iter().for_each(|lpn| memory::prefetch(&self.entries, lpn.0 as usize));
    }

    #[inline(always)]
    fn prefetch_pages(&self, _: &[Lpn]) {}

    #[inline(always)]
    fn end_request(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    #[inline(always)]
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.entries[lpn.0 as usize].mapped().is_some()
    }

    #[inline(always)]
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, M>, cause: Cause) -> Result<bool, DeviceError> {
        let Some(at) = self.entries[lpn.0 as usize].mapped() else { return Ok(false) };
        self.log.pool.medium.read(at, out, cause).map_err(|e| fatal(e, lpn.0))?;
        Ok(true)
    }

    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, M>, cause: Cause) -> Result<(), DeviceError> {
        let (logical, offset) = (self.logical_block(lpn), self.offset(lpn));
        if self.options.in_place_first_write && self.write_in_place(logical, lpn, page, cause)? {
            return Ok(());
        }
        if offset == 0 {
            return self.start_sequential(logical, lpn, page, cause);
        }
        match self.log.sequential {
            Some(current) if current.logical == logical => {
                if offset == current.next {
                    return self.continue_sequential(current, lpn, page, cause);
                }
                self.merge_sequential(offset < current.next)?;
            }
            _ => {}
        }
        self.write_random(lpn, page, cause)
    }

    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        let sequence = self.log.next_sequence();
        for lpn in lpn.0..lpn.0 + pages {
            let entry = &mut self.entries[lpn as usize];
            let Some(at) = entry.mapped() else { continue };
            let block = self.log.pool.medium.geometry().block_of(at);
            self.tombstones.trim(lpn, entry, block, sequence);
            self.mapped_pages -= 1;
            self.log.pool.count_invalid();
            self.observer.on_trim(Lpn(lpn));
            // At most a page of trims waits, so that the reserve has room for it when a block must be erased.
            if self.tombstones.page_is_full() {
                self.write_trims()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.tombstones.is_waiting() { self.write_trims() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.flush()
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.reclaim_idle(budget_ns)
    }

    fn medium(&self) -> &M {
        &self.log.pool.medium
    }

    fn medium_mut(&mut self) -> &mut M {
        &mut self.log.pool.medium
    }

    fn into_medium(self) -> M {
        self.log.pool.medium
    }

    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        let pool = &self.log.pool;
        snapshot.medium = *pool.medium.counters();
        snapshot.collector = CollectorCounters {
            invalidated_pages: pool.invalidated_pages,
            retired_blocks: u64::from(pool.retired_blocks()),
            ..self.collector
        };
        snapshot.time = pool.medium.clock().time(pool.medium.counters());
        snapshot.busy_until_ns = pool.medium.clock().busy_until_ns();
        snapshot.valid_pages = pool.valid_pages;
        snapshot.mapped_pages = self.mapped_pages;
        snapshot.free_blocks = pool.free_blocks();
        snapshot.sections.put(self.merges);
        snapshot.dram.push(("block map", self.block_map_bytes()));
        let log_map = u64::from(self.log_blocks()) * log_block_map_bytes(pool.medium.geometry());
        snapshot.dram.push(("log map", log_map));
    }

    fn wear(&self) -> WearSummary {
        self.log.pool.wear()
    }

    fn blocks(&self) -> Vec<BlockView> {
        self.views()
    }

    fn check(&self) -> Result<(), String> {
        self.check_laws()
    }
}
