//! The block store: units written out of place into blocks, several of which are open at a time, and a collector.
//!
//! One type serves NAND and segments of a device, because it is generic over a [`Medium`]. It owns the blocks, the open
//! block of every stream, the validity bitmap and the policies; whoever maps addresses ([`Mapping`]) sits above it and
//! hears of every page that the collector moves.

mod append;
mod books;
mod collector;
mod copies;
mod foresight;
mod levelling;
mod restore;
pub mod tombstones;

pub use collector::{Mapping, collect_idle, make_room};
pub(crate) use levelling::{Resting, WearLeveler};

use crate::address::{BlockId, Lpn, Ppn, StreamId};
use crate::blocks::{AgeBase, BlockState, BlockTable};
use crate::device::DeviceError;
use crate::hotness::history::PageHistory;
use crate::nand::{Medium, MediumError, Move};
use crate::placement::{HostWrite, Placement};

use crate::stats::CollectorCounters;
use crate::victim::VictimPolicy;
use foresight::Coming;
use std::collections::VecDeque;

/// How a block store behaves.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
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
pub struct BlockStore<M, P, V> {
    medium: M,
    placement: P,
    victim: V,
    /// What both judge by, if one of them does.
    history: PageHistory,
    options: StoreOptions,
    blocks: BlockTable,
    valid_pages: u64,
    open: Vec<OpenBlock>,
    /// What [`Placement::streams`] says, here because every block and many pages ask.
    data_streams: u16,
    free: VecDeque<BlockId>,
    failing: Vec<BlockId>,
    /// Blocks that meta streams fill or have filled.
    meta_blocks: Vec<BlockId>,
    /// Free blocks that are kept for meta streams, until they fill as many as they may.
    parked: VecDeque<BlockId>,
    /// Pages that hold something, valid or not, and those that nothing can be programmed to before their block is erased, because it
    /// closed early.
    used_pages: u64,
    /// Host page writes so far: the clock of every policy.
    now: u64,
    sequence: u64,
    levelling: WearLeveler,
    /// Stream of the block that levelled data fills.
    levelled_stream: StreamId,
    counters: CollectorCounters,
    moves: Vec<Move>,
    coming: Coming,
    /// What [`VictimPolicy::watches_pages`] says, here because every write asks.
    watches_pages: bool,
    /// Whether the placement looks at each page that the host writes.
    places_each_page: bool,
    /// See [`BlockStore::appends_runs`].
    appends_runs: bool,
}

/// Turns a medium's failure that no retry mends into the device's.
pub(crate) fn fatal(error: MediumError, lpn: u32) -> DeviceError {
    error.stop().unwrap_or(DeviceError::Unreadable { lpn })
}

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// An empty store: every good block of the medium is free.
    pub fn new(medium: M, placement: P, victim: V, options: StoreOptions) -> Self {
        let geometry = *medium.geometry();
        let data_streams = placement.streams();
        let places_each_page = placement.host_to().is_none();
        // One more for what wear levelling moves.
        let slots = usize::from(data_streams) + usize::from(options.meta_streams) + 1;
        let mut blocks = BlockTable::new(geometry.blocks, geometry.log2_pages_per_block, options.age);
        let mut free = VecDeque::with_capacity(geometry.blocks as usize);
        let mut counters = CollectorCounters::default();
        for block in (0..geometry.blocks).map(BlockId) {
            blocks.pasts[block.0 as usize].erases = medium.erase_count(block);
            if medium.is_bad(block) {
                blocks.validity.set_state(block, BlockState::Retired);
                counters.retired_blocks += 1;
            } else {
                free.push_back(block);
            }
        }
        let watches_pages = victim.watches_pages();
        let appends_runs =
            !places_each_page && !watches_pages && options.age != AgeBase::LastInvalidation && medium.programs_runs();
        let mut store = Self {
            medium,
            history: PageHistory::new(placement.wanted().and(victim.wanted())),
            placement,
            victim,
            options,
            blocks,
            valid_pages: 0,
            open: vec![OpenBlock::default(); slots],
            data_streams,
            free,
            failing: Vec::new(),
            meta_blocks: Vec::with_capacity(options.meta_blocks as usize + 4),
            parked: VecDeque::with_capacity(options.meta_blocks as usize + 4),
            used_pages: 0,
            now: 0,
            sequence: 0,
            levelling: WearLeveler::new(options.wear_threshold),
            levelled_stream: StreamId(0),
            counters,
            moves: Vec::with_capacity(geometry.pages_per_block() as usize),
            coming: Coming::default(),
            watches_pages,
            places_each_page,
            appends_runs,
        };
        store.park();
        store
    }

    /// Whether the placement looks at each page that the host writes.
    #[inline(always)]
    pub(crate) fn places_each_page(&self) -> bool {
        self.places_each_page
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
        StreamId(self.data_streams + index)
    }

    /// The next sequence number.
    #[inline(always)]
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Brings what the policies will touch when `lpns` are written or copied towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, lpns: impl Iterator<Item = Lpn> + Clone) {
        self.placement.prefetch(lpns.clone());
        self.history.prefetch(lpns.clone());
        if self.watches_pages {
            self.victim.prefetch(lpns);
        }
    }

    /// Brings what overwrites of `pages` will touch towards the cache.
    #[inline(always)]
    pub fn prefetch_pages(&self, pages: impl Iterator<Item = Ppn> + Clone) {
        pages.clone().for_each(|at| self.blocks.validity.prefetch(at));
        if self.watches_pages {
            self.victim.prefetch_pages(pages);
        }
    }

    /// The host is about to write these pages and to trim none between, for a placement that wants to know ahead.
    pub fn announce(&mut self, lpns: &[Lpn]) {
        self.placement.announce(lpns, self.now);
    }

    /// Reports a policy that could not decide.
    ///
    /// # Errors
    /// What it said.
    pub fn check_policies(&self) -> Result<(), DeviceError> {
        match self.placement.failure().or_else(|| self.victim.failure()) {
            Some(detail) => Err(DeviceError::Policy { detail: detail.to_owned() }),
            None => Ok(()),
        }
    }

    /// A request of the host is about to write so many pages.
    #[inline(always)]
    pub fn begin_write(&mut self, pages: u32) {
        self.history.begin_write(pages);
    }

    /// Stream of a host write.
    #[inline(always)]
    pub fn place(&mut self, lpn: Lpn, rewrite: bool) -> StreamId {
        self.placement.host(&HostWrite { lpn, now: self.now, rewrite }, &mut self.history)
    }

    /// The host trimmed a page that held data.
    pub fn trimmed(&mut self, lpn: Lpn) {
        self.history.trim(lpn);
        self.placement.on_trim(lpn);
    }

    /// Whether a stream is one of those beyond the placement's.
    fn is_meta(&self, stream: StreamId) -> bool {
        (self.data_streams..self.data_streams + self.options.meta_streams).contains(&stream.0)
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
}
