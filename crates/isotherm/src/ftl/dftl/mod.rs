//! DFTL: the page map on flash, in translation pages, and the part of it in use in DRAM (Gupta, Kim & Urgaonkar, "DFTL: a
//! flash translation layer employing demand-based selective caching of page-level address mappings").
//!
//! A look-up that misses the cached mapping table ([`cmt`]) reads the translation page that the directory points to; the
//! entry that leaves is written back if it is dirty. Translation pages are pages of the same block store, in a stream of their
//! own ([`translation`]), so that any placement and any victim policy runs. Their blocks are an area of fixed size, cleaned on
//! its own, the emptiest block first: cleaning one of them for data would free a block that the area takes back at once. Data
//! is therefore collected exactly as under the page-mapped FTL, whatever the cache. A new device is formatted: every
//! translation page is written once and maps nothing.
//!
//! Departures from the paper: the map is rebuilt from the OOB areas after a loss of power ([`recover`]), so that dirty
//! entries need no flush; trims rewrite translation pages directly; under `write_miss=dirty` the old page of a write is
//! known without a flash read, as the text on adaptive partitioning assumes. O(1) a look-up.

pub mod cmt;
mod counters;
mod design;
mod options;
mod recover;
mod space;
#[cfg(test)]
mod tests;
mod translation;

pub use counters::{MappingCounters, MappingResults};
pub(super) use design::DemandDesign;
pub use design::DftlDesign;
pub(super) use options::SHARED_PARAMETERS;
pub use options::{DemandOptions, PARAMETERS, TranslationSpace, WriteMiss};
pub use translation::{DemandMap, Writeback};

use super::page::idle_blocks;
use super::page_map::{PageMap, write_tombstones};
use super::{Ftl, ReadDesign};
use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::{BlockView, DeviceError};
use crate::nand::{Medium, PageMut, PageRef};
use crate::placement::Placement;
use crate::registry::Entry;
use crate::stats::{Snapshot, WearSummary};
use crate::store::{BlockStore, StoreOptions, collect_idle, fatal, make_room};
use crate::victim::VictimPolicy;
use cmt::Cmt;
use translation::Layout;

pub(super) const ENTRY: Entry<ReadDesign> = Entry {
    name: "dftl",
    summary: "page-mapped, the map on flash and the entries in use in DRAM",
    paper: "Gupta, Kim & Urgaonkar, DFTL (ASPLOS 2009)",
    memory: "8 bytes a logical page and 8 to 32 bytes a cached entry",
    parameters: &PARAMETERS,
    build: |parameters, wishes| Ok(DftlDesign { map: DemandOptions::read(parameters, wishes)? }.into()),
};

/// Hears of every look-up of the map: what ghost caches are built on.
pub trait MapObserver {
    /// Whether `on_moves` is of interest: the moves are kept for it.
    const HEARS_MOVES: bool = false;
    /// The entry of `lpn` was looked up for a read or a write of the host.
    fn on_access(&mut self, lpn: Lpn, is_write: bool, hit: bool);
    /// The entry of `lpn` has left DRAM.
    fn on_evict(&mut self, lpn: Lpn);
    /// A collection moved these pages, so that their entries, cached or not, have changed.
    fn on_moves(&mut self, _moved: &[Lpn]) {}
}

impl MapObserver for () {
    #[inline(always)]
    fn on_access(&mut self, _: Lpn, _: bool, _: bool) {}
    #[inline(always)]
    fn on_evict(&mut self, _: Lpn) {}
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Dftl<M, P, V, O = ()> {
    store: BlockStore<M, P, V>,
    map: DemandMap,
    options: DemandOptions,
    observer: O,
    /// Blocks that background cleaning keeps free.
    idle_blocks: u32,
}

impl<M: Medium, P: Placement, V: VictimPolicy, O: MapObserver> Dftl<M, P, V, O> {
    /// Formats an empty device of `logical_pages`. `store_options` has one stream of its own for translation pages.
    ///
    /// # Errors
    /// Faults of the medium while it is formatted.
    ///
    /// # Panics
    /// If `store_options` has no stream for translation pages.
    pub fn new(
        medium: M,
        placement: P,
        victim: V,
        logical_pages: u32,
        store_options: StoreOptions,
        options: DemandOptions,
        observer: O,
    ) -> Result<Self, DeviceError> {
        assert_eq!(store_options.meta_streams, 1, "translation pages need a stream of their own");
        let geometry = *medium.geometry();
        let pages = PageMap::new(logical_pages, geometry.page_bytes(), geometry.blocks);
        let store = BlockStore::new(medium, placement, victim, store_options);
        let mut ftl = Self::assemble(store, pages, store_options.floor, options, observer);
        for page in 0..ftl.map.layout.pages() {
            ftl.map.rewrite(page, &mut ftl.store)?;
        }
        Ok(ftl)
    }

    fn assemble(store: BlockStore<M, P, V>, pages: PageMap, floor: u32, options: DemandOptions, observer: O) -> Self {
        let logical_pages = pages.entries.len() as u32;
        let page_bytes = store.medium().geometry().page_bytes();
        let layout = Layout::new(logical_pages, page_bytes, options.translation_entry_bytes);
        let entries = |bytes| options.entries(bytes, logical_pages, page_bytes);
        let cache = Cmt::new(
            options.replacement,
            logical_pages,
            entries(options.cache_bytes),
            entries(options.cache_bytes.max(options.cache_bytes_max)),
        );
        Self {
            map: DemandMap::new(pages, cache, layout, &options, O::HEARS_MOVES),
            idle_blocks: idle_blocks(store.blocks().blocks(), floor),
            store,
            options,
            observer,
        }
    }

    /// Gives the map `bytes` of DRAM from now on, at most what it was built for; entries that do not fit any more leave.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    pub fn set_cache_bytes(&mut self, bytes: u64) -> Result<(), DeviceError> {
        let page_bytes = self.store.medium().geometry().page_bytes();
        self.map.cache.set_capacity(self.options.entries(bytes, self.logical_pages(), page_bytes));
        self.options.cache_bytes = bytes;
        while let Some(lpn) = self.map.cache.evict_excess() {
            self.observer.on_evict(lpn);
            self.map.write_back(lpn, &mut self.store)?;
        }
        Ok(())
    }

    /// DRAM that the map may use: cached entries, directory, and what else the options charge to it.
    pub fn cache_bytes(&self) -> u64 {
        self.options.cache_bytes
    }

    /// DRAM of the map that does not depend on how many entries are cached: the directory and the samples.
    pub fn mapping_bytes_fixed(&self) -> u64 {
        self.options.fixed_bytes(self.map.layout.logical_pages, self.store.medium().geometry().page_bytes())
    }

    /// The options in force.
    pub fn options(&self) -> &DemandOptions {
        &self.options
    }

    /// The cached mapping table.
    pub fn cmt(&self) -> &Cmt {
        &self.map.cache
    }

    /// Hits, misses and what they cost.
    pub fn counters(&self) -> &MappingCounters {
        &self.map.counters
    }

    /// What observes look-ups.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// What observes look-ups, to change it.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Looks `lpn` up, and brings its entry into DRAM.
    #[inline(always)]
    fn touch(&mut self, lpn: Lpn, is_write: bool, fetch: bool) -> Result<(), DeviceError> {
        let hit = self.map.cache.access(lpn);
        self.observer.on_access(lpn, is_write, hit);
        if hit {
            self.map.counters.hits += 1;
            return Ok(());
        }
        self.miss(lpn, fetch)
    }

    #[inline(never)]
    fn miss(&mut self, lpn: Lpn, fetch: bool) -> Result<(), DeviceError> {
        self.map.counters.misses += 1;
        if let Some(evicted) = self.map.cache.reserve(lpn) {
            self.observer.on_evict(evicted);
            let written = self.map.write_back(evicted, &mut self.store);
            if written.is_err() {
                // What cannot be written may not leave.
                self.map.cache(evicted);
            }
            written?;
        }
        if fetch {
            self.fetch(lpn)?;
        }
        self.map.cache(lpn);
        Ok(())
    }

    /// Reads the translation page that has the entry of `lpn`.
    fn fetch(&mut self, lpn: Lpn) -> Result<(), DeviceError> {
        self.map.counters.fetches += 1;
        self.map.read(self.map.layout.page_of(lpn.0), &mut self.store, Cause::Translation)
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy, O: MapObserver> Ftl for Dftl<M, P, V, O> {
    type Medium = M;

    fn logical_pages(&self) -> u32 {
        self.map.layout.logical_pages
    }

    fn writes_runs(&self) -> bool {
        false
    }
    fn write_run(&mut self, _: &[Lpn]) -> usize {
        0
    }
    fn wants_batches(&self) -> bool {
        self.store.placement().wants_batches()
    }
    fn announce(&mut self, lpns: &[Lpn]) {
        self.store.announce(lpns);
    }
    fn check_policies(&self) -> Result<(), DeviceError> {
        self.store.check_policies()
    }
    fn wants_sources(&self) -> bool {
        self.store.placement().wants_sources()
    }
    fn attribute(&mut self, lpn: Lpn, source: u16) {
        self.store.placement_mut().attribute(lpn, source);
    }
    #[inline(always)]
    fn begin_write(&mut self, pages: u32) {
        self.store.begin_write(pages);
    }
    #[inline(always)]
    fn looks_at_many_tables(&self) -> bool {
        true
    }
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        self.map.pages.prefetch(lpns);
        lpns.iter().for_each(|lpn| self.map.cache.prefetch(*lpn));
        self.store.prefetch(lpns.iter().copied());
    }

    #[inline(always)]
    fn prefetch_pages(&self, lpns: &[Lpn]) {
        self.map.pages.prefetch_pages(lpns, &self.store);
    }

    #[inline(always)]
    fn end_request(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    #[inline(always)]
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.map.pages.is_mapped(lpn)
    }

    #[inline(always)]
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, M>, cause: Cause) -> Result<bool, DeviceError> {
        match self.touch(lpn, false, true) {
            // A device without room for what would have to leave the cache answers all the same, and keeps nothing.
            Err(error) if error.is_out_of_room() => self.fetch(lpn)?,
            touched => touched?,
        }
        let Some(at) = self.map.pages.entries[lpn.0 as usize].mapped() else { return Ok(false) };
        self.store.medium_mut().read(at, out, cause).map_err(|e| fatal(e, lpn.0))?;
        Ok(true)
    }

    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, M>, cause: Cause) -> Result<(), DeviceError> {
        self.touch(lpn, true, self.options.write_miss == WriteMiss::Fetch)?;
        let stream = self.store.place(lpn, self.map.pages.is_mapped(lpn));
        if self.store.placement().metadata_reads().is_some() {
            self.map.read_samples(&mut self.store)?;
        }
        make_room(&mut self.store, &mut self.map, stream)?;
        let at = self.store.append_host(stream, lpn, page, cause)?;
        self.map.set_dirty(lpn);
        self.map.pages.commit(lpn, at, &mut self.store);
        if O::HEARS_MOVES && !self.map.moved.is_empty() {
            self.observer.on_moves(&self.map.moved);
            self.map.moved.clear();
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        let sequence = self.store.next_sequence();
        let end = lpn.0 + pages;
        let mut at = lpn.0;
        while at < end {
            // One translation page after another: a collection in between finds at most one of them waiting.
            let page_end = self.map.layout.lpns(self.map.layout.page_of(at)).end.min(end);
            for lpn in at..page_end {
                if self.map.pages.trim(lpn, sequence, &mut self.store) {
                    self.map.mark_dirty(Lpn(lpn));
                    if self.map.pages.tombstones.are_due() {
                        write_tombstones(&mut self.store, &mut self.map)?;
                    }
                }
            }
            self.map.write_pending(&mut self.store)?;
            at = page_end;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.map.pages.tombstones.is_waiting() { write_tombstones(&mut self.store, &mut self.map) } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.flush()
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        collect_idle(&mut self.store, &mut self.map, budget_ns, self.idle_blocks)
    }

    fn medium(&self) -> &M {
        self.store.medium()
    }

    fn medium_mut(&mut self) -> &mut M {
        self.store.medium_mut()
    }

    fn into_medium(self) -> M {
        self.store.into_medium()
    }

    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        self.store.fill_snapshot(snapshot);
        snapshot.mapped_pages = self.map.pages.mapped_pages;
        snapshot.sections.put(self.map.counters);
        let page_bytes = self.store.medium().geometry().page_bytes();
        let fixed = self.options.fixed_bytes(self.logical_pages(), page_bytes);
        let entries = u64::from(self.map.cache.capacity()) * u64::from(self.options.cached_bytes());
        snapshot.dram.push(("cmt", entries));
        snapshot.dram.push(("directory", fixed - self.options.sample_bytes));
        if self.options.sample_bytes > 0 {
            snapshot.dram.push(("samples", self.options.sample_bytes));
        }
    }

    fn wear(&self) -> WearSummary {
        self.store.wear()
    }

    fn blocks(&self) -> Vec<BlockView> {
        self.store.blocks().views()
    }

    fn check(&self) -> Result<(), String> {
        self.store.check()?;
        self.map.check(&self.store)
    }
}
