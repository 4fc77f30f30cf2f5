//! Placements: which stream (open block) a page goes to. This is the hot/cold decision.
//!
//! A placement is one file plus one line in the table below (`placements!`). It sees host writes and the collector's copies, holds no
//! NAND, and keeps whatever it needs for each page itself, stating the memory.

mod rate_classes;

use crate::address::{BlockId, Lpn, StreamId};
use crate::bits::Bits;
use crate::blocks::{BlockTable, Streams};
use crate::registry::{Entry, Parameters, PolicyName, SpecError, find};
use crate::stats::Snapshot;
use std::sync::Arc;

pub use crate::future::Future;
pub use crate::hotness::history::{PageHistory, Wanted};
pub use asa::{AsaCounters, AsaResults};
pub use external::{CopyBatch, ExternalPlacement, SharedPlacement, WriteBatch};
pub use offline::lookaheads;

/// A page that the host writes.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite {
    /// The page.
    pub lpn: Lpn,
    /// Host page writes before this one.
    pub now: u64,
    /// Whether the page held data before.
    pub rewrite: bool,
}

/// A page that the collector copies.
#[derive(Clone, Copy, Debug)]
pub struct GcCopy {
    /// The page.
    pub lpn: Lpn,
    /// Host page writes so far.
    pub now: u64,
    /// Stream of the block that is being cleaned.
    pub from: StreamId,
    /// Stamp of that block (see [`crate::blocks::AgeBase`]), in host page writes.
    pub stamp: u64,
}

/// A block that was cleaned and is erased.
#[derive(Clone, Copy, Debug)]
pub struct Reclaim {
    /// The block.
    pub block: BlockId,
    /// Its stream.
    pub stream: StreamId,
    /// When its first page was written, in host page writes.
    pub opened_at: u64,
    /// Its stamp.
    pub stamp: u64,
    /// Host page writes so far.
    pub now: u64,
    /// Valid pages that had to be copied.
    pub valid: u32,
}

/// Where the next victim comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VictimSource {
    /// The victim policy looks at every closed block.
    Everywhere,
    /// The victim policy looks at the closed blocks that these streams filled.
    Within(Streams),
    /// The placement names a closed block itself.
    Block(BlockId),
}

/// Chooses the stream of every page.
///
/// # Contract
/// - Streams lie in `0..streams()`; the collector's copies go to at most `gc_streams()` different ones at a time.
/// - `host` is called once for every host page write, in order, unless `host_to` names a stream; `gc` once for every page of host data that a collection copies.
///   Where a collection fails halfway, pages for which `gc` was called stay where they were, and so does their block.
/// - Every block of `on_close` is named by one `on_reclaim` at most, with the same stream, and by none before.
/// - Choices depend on the calls so far and the seed alone.
pub trait Placement {
    /// Number of streams, each with an open block of its own.
    fn streams(&self) -> u16;
    /// Streams that collections write to: the collector keeps as many blocks free.
    fn gc_streams(&self) -> u16;
    /// What the placement judges by that is kept once for it and the victim policy.
    fn wanted(&self) -> Wanted {
        Wanted::default()
    }
    /// Drive writes of a workload that it may take until write amplification tells nothing any more of how the device was filled before, in order or
    /// at random: what was filled so was not sorted. 0 where two bring it within 7 % of what it
    /// becomes (`experiments/verdicts.py`).
    fn learns_for(&self) -> u32 {
        0
    }
    /// Stream of a page that the host writes. A placement that judges by the history records the write there.
    fn host(&mut self, write: &HostWrite, history: &mut PageHistory) -> StreamId;
    /// Stream of every page that the host writes, where neither page nor time matters. [`Placement::host`] need not be asked then.
    /// The same as long as it lives.
    fn host_to(&self) -> Option<StreamId> {
        None
    }
    /// Stream of every page that the collector copies, where the page does not matter. [`Placement::gc`] is not asked then.
    fn copies_to(&self) -> Option<StreamId> {
        None
    }
    /// Stream of a page that the collector copies.
    fn gc(&mut self, _copy: &GcCopy, _history: &PageHistory) -> StreamId {
        self.copies_to().expect("a placement names the stream of all copies, or of each")
    }
    /// Whether the placement asks who writes a page: then [`attribute`](Placement::attribute) is called before each write of a
    /// page by a request. The same as long as it lives.
    fn wants_sources(&self) -> bool {
        false
    }
    /// The host is about to write a page on behalf of `source`; behind a write buffer, [`host`](Placement::host) hears of the
    /// page later, if at all.
    fn attribute(&mut self, _lpn: Lpn, _source: u16) {}
    /// A page was trimmed.
    fn on_trim(&mut self, _lpn: Lpn) {}
    /// `stream` has filled a block, or a block that it filled was found after a loss of power: it may be cleaned from now on.
    fn on_close(&mut self, _block: BlockId, _stream: StreamId) {}
    /// A block that was closed has been cleaned, whoever chose it.
    fn on_reclaim(&mut self, _reclaim: &Reclaim) {}
    /// Where the next victim comes from, asked before every collection; `now` counts host page writes. A placement that gives
    /// its streams shares of the space names the one that exceeds its own.
    fn victim_source(&mut self, _now: u64) -> VictimSource {
        VictimSource::Everywhere
    }
    /// Whether the placement decides for many pages at a time: then [`announce`](Placement::announce) tells it of host writes ahead,
    /// where they are known, and [`announce_copies`](Placement::announce_copies) of the pages of a victim. The same as long as it lives.
    fn wants_batches(&self) -> bool {
        false
    }
    /// The host is about to write these pages, in this order, the first at the time `now`, and to trim none between. Announced
    /// writes that did not happen are forgotten.
    fn announce(&mut self, _lpns: &[Lpn], _now: u64) {}
    /// [`gc`](Placement::gc) is about to be called for these pages, in this order.
    fn announce_copies(&mut self, _lpns: &[Lpn], _now: u64, _from: StreamId, _stamp: u64) {}
    /// Why the placement could not decide, once that happened: its choices mean nothing from then on.
    fn failure(&self) -> Option<&str> {
        None
    }
    /// Brings what choices for `lpns` read towards the cache. Many at a time, because each call is a dispatch.
    #[inline(always)]
    fn prefetch(&self, _lpns: impl Iterator<Item = Lpn>) {}
    /// Pages whose metadata the last host write read, if it did. An FTL that keeps this metadata on flash charges the reads,
    /// then calls [`forget_metadata_reads`](Placement::forget_metadata_reads).
    #[inline(always)]
    fn metadata_reads(&self) -> Option<&Bits> {
        None
    }
    /// The reads have been charged.
    fn forget_metadata_reads(&mut self) {}
    /// Adds what the placement counted to `snapshot`.
    fn fill_snapshot(&self, _snapshot: &mut Snapshot) {}
    /// Checks what the placement keeps of closed blocks against `blocks`.
    ///
    /// # Errors
    /// Where they disagree.
    fn check(&self, _blocks: &BlockTable) -> Result<(), String> {
        Ok(())
    }
    /// Bytes that a drive's firmware would keep in DRAM for the placement, the history that is shared aside.
    fn memory_bytes(&self) -> u64;
    /// Bytes that the simulator keeps for it instead, the history aside.
    fn simulator_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

/// What a placement may need to be built.
#[derive(Clone, Debug)]
pub struct PlacementContext {
    /// Logical pages.
    pub logical_pages: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Page size in bytes.
    pub page_bytes: u32,
    /// Blocks of the array.
    pub blocks: u32,
    /// Seed of the run.
    pub seed: u64,
    /// When every page is written next; given only where a placement asks for it.
    pub future: Option<Arc<Future>>,
    /// What decides for the placement `external`.
    pub external: Option<SharedPlacement>,
}

/// How a placement is built, and what it has to be told for that.
#[derive(Clone, Copy)]
pub struct BuildPlacement {
    /// Builds it from its checked parameters.
    pub build: fn(&Parameters<'_>, &PlacementContext) -> Result<AnyPlacement, SpecError>,
    /// Whether, with these parameters, it has to be told the future ([`PlacementContext::future`]).
    pub needs_future: fn(&Parameters<'_>) -> bool,
}

impl BuildPlacement {
    /// A placement that judges by the past alone, as a drive has to.
    pub const fn online(build: fn(&Parameters<'_>, &PlacementContext) -> Result<AnyPlacement, SpecError>) -> Self {
        Self { build, needs_future: |_| false }
    }
}

/// Declares every placement, one line each (its module and its type): the enum that dispatches to it, and the table of entries.
/// The last group has no name that a user could give.
macro_rules! placements {
    ($($module:ident :: $variant:ident),* $(,)?; $unnamed:ident :: $other:ident in $held:ty) => {
        pub(crate) mod $unnamed;
        $(
            pub(crate) mod $module;
            pub use $module::$variant;
        )*

        /// Any placement: a branch instead of a virtual call.
        // A tag of its own: one hidden in a variant's pointer takes six instructions a call to read.
        #[repr(u8)]
        #[derive(Clone, Debug)]
        // A device has one: what a small variant wastes is nothing beside the tables, and a box would cost a load a call.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum AnyPlacement { $($variant($variant),)* $other($held) }

        impl Placement for AnyPlacement {
            fn streams(&self) -> u16 {
                match self { $(Self::$variant(placement) => placement.streams(),)* Self::$other(placement) => placement.streams() }
            }
            fn gc_streams(&self) -> u16 {
                match self { $(Self::$variant(placement) => placement.gc_streams(),)* Self::$other(placement) => placement.gc_streams() }
            }
            fn learns_for(&self) -> u32 {
                match self { $(Self::$variant(placement) => placement.learns_for(),)* Self::$other(placement) => placement.learns_for() }
            }
            fn wanted(&self) -> Wanted {
                match self { $(Self::$variant(placement) => placement.wanted(),)* Self::$other(placement) => placement.wanted() }
            }
            #[inline(always)]
            fn host(&mut self, write: &HostWrite, history: &mut PageHistory) -> StreamId {
                match self { $(Self::$variant(placement) => placement.host(write, history),)* Self::$other(placement) => placement.host(write, history) }
            }
            #[inline(always)]
            fn host_to(&self) -> Option<StreamId> {
                match self { $(Self::$variant(placement) => placement.host_to(),)* Self::$other(placement) => placement.host_to() }
            }
            fn copies_to(&self) -> Option<StreamId> {
                match self { $(Self::$variant(placement) => placement.copies_to(),)* Self::$other(placement) => placement.copies_to() }
            }
            #[inline(always)]
            fn gc(&mut self, copy: &GcCopy, history: &PageHistory) -> StreamId {
                match self { $(Self::$variant(placement) => placement.gc(copy, history),)* Self::$other(placement) => placement.gc(copy, history) }
            }
            fn wants_sources(&self) -> bool {
                match self { $(Self::$variant(placement) => placement.wants_sources(),)* Self::$other(placement) => placement.wants_sources() }
            }
            fn attribute(&mut self, lpn: Lpn, source: u16) {
                match self { $(Self::$variant(placement) => placement.attribute(lpn, source),)* Self::$other(placement) => placement.attribute(lpn, source) }
            }
            fn on_trim(&mut self, lpn: Lpn) {
                match self { $(Self::$variant(placement) => placement.on_trim(lpn),)* Self::$other(placement) => placement.on_trim(lpn) }
            }
            fn on_close(&mut self, block: BlockId, stream: StreamId) {
                match self { $(Self::$variant(placement) => placement.on_close(block, stream),)* Self::$other(placement) => placement.on_close(block, stream) }
            }
            fn victim_source(&mut self, now: u64) -> VictimSource {
                match self { $(Self::$variant(placement) => placement.victim_source(now),)* Self::$other(placement) => placement.victim_source(now) }
            }
            fn on_reclaim(&mut self, reclaim: &Reclaim) {
                match self { $(Self::$variant(placement) => placement.on_reclaim(reclaim),)* Self::$other(placement) => placement.on_reclaim(reclaim) }
            }
            fn wants_batches(&self) -> bool {
                match self { $(Self::$variant(placement) => placement.wants_batches(),)* Self::$other(placement) => placement.wants_batches() }
            }
            fn announce(&mut self, lpns: &[Lpn], now: u64) {
                match self { $(Self::$variant(placement) => placement.announce(lpns, now),)* Self::$other(placement) => placement.announce(lpns, now) }
            }
            fn announce_copies(&mut self, lpns: &[Lpn], now: u64, from: StreamId, stamp: u64) {
                match self { $(Self::$variant(placement) => placement.announce_copies(lpns, now, from, stamp),)* Self::$other(placement) => placement.announce_copies(lpns, now, from, stamp) }
            }
            fn failure(&self) -> Option<&str> {
                match self { $(Self::$variant(placement) => placement.failure(),)* Self::$other(placement) => placement.failure() }
            }
            #[inline(always)]
            fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
                match self { $(Self::$variant(placement) => placement.prefetch(lpns),)* Self::$other(placement) => placement.prefetch(lpns) }
            }
            #[inline(always)]
            fn metadata_reads(&self) -> Option<&Bits> {
                match self { $(Self::$variant(placement) => placement.metadata_reads(),)* Self::$other(placement) => placement.metadata_reads() }
            }
            fn forget_metadata_reads(&mut self) {
                match self { $(Self::$variant(placement) => placement.forget_metadata_reads(),)* Self::$other(placement) => placement.forget_metadata_reads() }
            }
            fn fill_snapshot(&self, snapshot: &mut Snapshot) {
                match self { $(Self::$variant(placement) => placement.fill_snapshot(snapshot),)* Self::$other(placement) => placement.fill_snapshot(snapshot) }
            }
            fn check(&self, blocks: &BlockTable) -> Result<(), String> {
                match self { $(Self::$variant(placement) => placement.check(blocks),)* Self::$other(placement) => placement.check(blocks) }
            }
            fn memory_bytes(&self) -> u64 {
                match self { $(Self::$variant(placement) => placement.memory_bytes(),)* Self::$other(placement) => placement.memory_bytes() }
            }
            fn simulator_bytes(&self) -> u64 {
                match self { $(Self::$variant(placement) => placement.simulator_bytes(),)* Self::$other(placement) => placement.simulator_bytes() }
            }
        }

        /// Every placement.
        pub const PLACEMENTS: &[Entry<BuildPlacement>] = &[$($module::ENTRY),*];
    };
}

placements! {
    single::Single,
    host_gc::HostGc,
    epoch::Epoch,
    ranges::Ranges,
    streams::BySource,
    offline::Offline,
    sepbit::SepBit,
    dac::Dac,
    multilog::MultiLog,
    mdc::MdcRates,
    midas::Midas,
    sfs::SfsGroups,
    by_hotness::ByHotness,
    asa::Asa,
    isotherm::ByLifetime;
    external::External in Box<external::External>
}

/// The entry of the placement that `name` names.
fn entry(name: &PolicyName) -> Result<&'static Entry<BuildPlacement>, SpecError> {
    // A program that embeds the simulator brings this one along; a list of what can be named has no place for it.
    if name.name == external::ENTRY.name { Ok(&external::ENTRY) } else { find(PLACEMENTS, "placement", name) }
}

/// Looks up a placement, and the keys of its parameters.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn check_placement(name: &PolicyName) -> Result<(), SpecError> {
    Parameters::new(name, entry(name)?.parameters).map(|_| ())
}

/// Whether the placement that `name` names has to be told the future (see [`PlacementContext::future`]). A name or parameter
/// that does not exist needs nothing: it is refused where it is built.
pub fn needs_future(name: &PolicyName) -> bool {
    let Ok(entry) = entry(name) else { return false };
    Parameters::new(name, entry.parameters).is_ok_and(|parameters| (entry.build.needs_future)(&parameters))
}

/// Builds the placement that `name` names.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn build_placement(name: &PolicyName, context: &PlacementContext) -> Result<AnyPlacement, SpecError> {
    let entry = entry(name)?;
    (entry.build.build)(&Parameters::new(name, entry.parameters)?, context)
}
