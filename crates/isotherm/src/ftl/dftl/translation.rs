//! Translation pages, their directory, and what of the map is newer in DRAM than on flash.
//!
//! [`PageMap`] holds the newest map. An entry is *dirty* while its translation page on flash says something else, one bit a
//! logical page. Between operations every dirty entry is cached, so that
//! - an eviction writes the translation page of a dirty entry: all its dirty entries at once (`batch`), or one (`single`);
//! - a collection turns the cached entries of moved pages dirty and leaves them (lazy copying), and rewrites each
//!   translation page that holds others of them once (batch update).
//!
//! Where the medium keeps content, translation pages carry real entries, and whenever one is read, every entry of it that
//! is not dirty is checked against the map, which is its shadow. Cost of a rewrite: one read and one program on flash, and
//! O(entries a page / 64) here.

use super::super::page_map::{OverPageMap, PageMap};
use super::DemandOptions;
use super::cmt::Cmt;
use super::counters::MappingCounters;
use crate::address::{BlockId, Lpn, Ppn};
use crate::bits::Bits;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::memory;
use crate::nand::{Kind, Medium, Move, Owner};
use crate::placement::Placement;
use crate::store::tombstones::MapEntry;
use crate::store::{BlockStore, Mapping, fatal, make_room};
use crate::victim::VictimPolicy;

/// What an eviction writes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writeback {
    /// All dirty entries of the translation page.
    Batch,
    /// The entry that leaves.
    Single,
}

/// The numbered translation pages of a map: which LPNs share one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) logical_pages: u32,
    log2_entries_per_page: u8,
    entry_bytes: u32,
}

impl Layout {
    pub(super) fn new(logical_pages: u32, page_bytes: u32, entry_bytes: u32) -> Self {
        debug_assert!(page_bytes.is_power_of_two() && entry_bytes.is_power_of_two());
        Self { logical_pages, log2_entries_per_page: (page_bytes / entry_bytes).trailing_zeros() as u8, entry_bytes }
    }

    /// Translation pages of the whole map.
    pub(super) fn pages(self) -> u32 {
        self.logical_pages.div_ceil(1 << self.log2_entries_per_page)
    }

    /// The translation page of `lpn`.
    #[inline(always)]
    pub(super) fn page_of(self, lpn: u32) -> u32 {
        lpn >> self.log2_entries_per_page
    }

    /// The LPNs of a translation page.
    #[inline(always)]
    pub(super) fn lpns(self, page: u32) -> std::ops::Range<u32> {
        let first = page << self.log2_entries_per_page;
        first..first.saturating_add(1 << self.log2_entries_per_page).min(self.logical_pages)
    }
}

/// Which entries a rewrite of a translation page brings up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Update {
    All,
    One(u32),
}

/// Sampled translation pages ahead of the one that is read whose owners are prefetched.
const PAGES_AHEAD: usize = 12;

/// The demand-paged map: the whole of it, and what of it is in DRAM, dirty, and where on flash.
#[derive(Clone, Debug)]
pub struct DemandMap {
    pub(super) pages: PageMap,
    pub(super) cache: Cmt,
    pub(super) layout: Layout,
    /// The directory (GTD): where each translation page is.
    pub(super) directory: Vec<Ppn>,
    /// Entries that are newer here than in their translation page.
    dirty: Bits,
    /// How many of them each translation page has.
    dirty_entries: Vec<u32>,
    /// Cached entries of each translation page.
    cached: Vec<u32>,
    /// Translation pages with dirty entries that are not cached; empty between operations.
    pending: Vec<u32>,
    is_pending: Vec<bool>,
    /// Translation pages that a sample of the placement needs; empty between operations.
    sampled: Vec<u32>,
    writeback: Writeback,
    /// Collections read translation pages before they copy, because the placement needs what they hold.
    reads_before_copies: bool,
    /// LPNs of pages that collections moved, for an observer that wants them.
    pub(super) moved: Vec<Lpn>,
    keeps_moves: bool,
    pub(super) counters: MappingCounters,
    content: Vec<u8>,
}

impl DemandMap {
    pub(super) fn new(pages: PageMap, cache: Cmt, layout: Layout, options: &DemandOptions, keeps_moves: bool) -> Self {
        Self {
            pages,
            cache,
            layout,
            directory: vec![Ppn::NONE; layout.pages() as usize],
            dirty: Bits::new(layout.logical_pages as usize),
            dirty_entries: memory::zeroed_table(layout.pages() as usize),
            cached: memory::zeroed_table(layout.pages() as usize),
            pending: Vec::with_capacity(layout.pages() as usize),
            is_pending: memory::zeroed_table(layout.pages() as usize),
            sampled: Vec::new(),
            writeback: options.writeback,
            reads_before_copies: options.reads_before_copies,
            moved: Vec::new(),
            keeps_moves,
            counters: MappingCounters::default(),
            content: Vec::new(),
        }
    }

    /// Brings an entry into DRAM: room for it must have been reserved.
    pub(super) fn cache(&mut self, lpn: Lpn) {
        self.cache.insert(lpn);
        self.cached[self.layout.page_of(lpn.0) as usize] += 1;
    }

    /// The entry of `lpn` has left DRAM: its translation page is written if it was dirty.
    pub(super) fn write_back<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        lpn: Lpn,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<(), DeviceError> {
        let page = self.layout.page_of(lpn.0);
        // The rest of the page must be read unless all of it was in DRAM.
        let lpns = self.layout.lpns(page);
        let whole = self.cached[page as usize] == lpns.end - lpns.start && self.writeback == Writeback::Batch;
        self.cached[page as usize] -= 1;
        if !self.dirty.contains(lpn.0) {
            return Ok(());
        }
        let stream = store.meta_stream(0);
        make_room(store, self, stream)?;
        // A collection that made the room may have written this very page.
        if !self.dirty.contains(lpn.0) {
            return Ok(());
        }
        if !whole {
            self.counters.writeback_reads += 1;
            self.read(page, store, Cause::Translation)?;
        }
        let update = if self.writeback == Writeback::Batch { Update::All } else { Update::One(lpn.0) };
        let written = self.program(page, update, store)?;
        self.counters.writebacks += 1;
        self.counters.entries_written_back += u64::from(written);
        Ok(())
    }

    /// Reads a translation page and, where its content is kept, checks it against the map.
    pub(super) fn read<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        page: u32,
        store: &mut BlockStore<M, P, V>,
        cause: Cause,
    ) -> Result<(), DeviceError> {
        let at = self.directory[page as usize];
        if at == Ppn::NONE {
            // Lost while the device was formatted: it is about to be written for the first time.
            return Ok(());
        }
        store
            .medium_mut()
            .read_meta(at, &mut self.content, cause)
            .map_err(|e| fatal(e, self.layout.lpns(page).start))?;
        if cfg!(debug_assertions) && cause != Cause::Recovery {
            let wrong = self.differences(page).find(|lpn| !self.dirty.contains(*lpn));
            assert!(wrong.is_none(), "translation page {page} is wrong about LPN {wrong:?}");
        }
        Ok(())
    }

    /// Reads the translation pages of the pages that the placement has just sampled, each once: those whose entry is cached
    /// cost nothing.
    pub(super) fn read_samples<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<(), DeviceError> {
        let Some(sampled) = store.placement().metadata_reads() else { return Ok(()) };
        let entries_per_page = 1usize << self.layout.log2_entries_per_page;
        if store.medium().counts_meta_reads() && entries_per_page.is_multiple_of(64) {
            let count = self.cache.ranges_lacking_some(sampled, entries_per_page);
            store.placement_mut().forget_metadata_reads();
            store.medium_mut().count_meta_reads(count, Cause::Sampling);
            return Ok(());
        }
        let mut pages = std::mem::take(&mut self.sampled);
        pages.clear();
        pages.extend((0..self.layout.pages()).filter(|page| self.cache.lacks_some(sampled, self.layout.lpns(*page))));
        store.placement_mut().forget_metadata_reads();
        let read = pages.iter().enumerate().try_for_each(|(index, page)| {
            if let Some(coming) = pages.get(index + PAGES_AHEAD) {
                store.medium().prefetch_owner(self.directory[*coming as usize]);
            }
            self.read(*page, store, Cause::Sampling)
        });
        self.sampled = pages;
        read
    }

    /// LPNs for which the translation page read last says something else than the map.
    pub(super) fn differences(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let stored = self.content.chunks_exact(self.layout.entry_bytes as usize);
        self.layout.lpns(page).zip(stored).filter_map(|(lpn, bytes)| {
            let stored = u32::from_le_bytes(bytes[..4].try_into().expect("an entry has four bytes of map"));
            (stored != encode(self.pages.entries[lpn as usize])).then_some(lpn)
        })
    }

    /// Puts the page's entries into `content`: all as they are now, or one of them, over what was read.
    fn compose(&mut self, page: u32, update: Update) {
        let (lpns, bytes) = (self.layout.lpns(page), self.layout.entry_bytes as usize);
        self.content.resize((1 << self.layout.log2_entries_per_page) * bytes, 0);
        let updated = match update {
            Update::All => lpns.clone(),
            Update::One(lpn) => lpn..lpn + 1,
        };
        for lpn in updated {
            let at = (lpn - lpns.start) as usize * bytes;
            self.content[at..at + 4].copy_from_slice(&encode(self.pages.entries[lpn as usize]).to_le_bytes());
        }
    }

    /// Programs a translation page anew and returns how many entries this made clean.
    fn program<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        page: u32,
        update: Update,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<u32, DeviceError> {
        if store.medium().keeps_content() {
            self.compose(page, update);
        } else {
            self.content.clear();
        }
        let owner = Owner::new(Kind::Translation, page);
        let at = store.append_meta(store.meta_stream(0), owner, &self.content, Cause::Translation)?;
        let old = std::mem::replace(&mut self.directory[page as usize], at);
        if old != Ppn::NONE {
            store.invalidate(old);
        }
        let dirty_entries = &mut self.dirty_entries[page as usize];
        let before = *dirty_entries;
        match update {
            Update::All if before > 0 => {
                let lpns = self.layout.lpns(page);
                self.dirty.remove_range(lpns.start, lpns.end);
                *dirty_entries = 0;
            }
            Update::All => {}
            Update::One(lpn) => *dirty_entries -= u32::from(self.dirty.remove(lpn)),
        }
        Ok(before - *dirty_entries)
    }

    /// Writes a translation page as the map is now, whatever flash holds: when the device is formatted, and after a loss of
    /// power.
    pub(super) fn rewrite<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        page: u32,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<(), DeviceError> {
        let stream = store.meta_stream(0);
        make_room(store, self, stream)?;
        self.counters.rewrites += 1;
        self.program(page, Update::All, store)?;
        Ok(())
    }

    /// The entry of `lpn` is newer here than in its translation page.
    #[inline(always)]
    pub(super) fn set_dirty(&mut self, lpn: Lpn) {
        let is_new = self.dirty.insert(lpn.0);
        self.dirty_entries[self.layout.page_of(lpn.0) as usize] += u32::from(is_new);
    }

    /// The map of `lpn` has changed: its entry in DRAM becomes dirty, or its translation page has to be written soon.
    #[inline(always)]
    pub(super) fn mark_dirty(&mut self, lpn: Lpn) {
        self.set_dirty(lpn);
        if !self.cache.contains(lpn) {
            self.defer(self.layout.page_of(lpn.0));
        }
    }

    /// Whether a translation page has never been written.
    pub(super) fn is_unformatted(&self) -> bool {
        self.directory.contains(&Ppn::NONE)
    }

    /// A translation page has to be written soon.
    #[inline(always)]
    pub(super) fn defer(&mut self, page: u32) {
        if !std::mem::replace(&mut self.is_pending[page as usize], true) {
            self.pending.push(page);
        }
    }

    /// Writes the translation pages that wait, with room made for each: not from within a collection.
    pub(super) fn write_pending<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<(), DeviceError> {
        while !self.pending.is_empty() {
            let stream = store.meta_stream(0);
            make_room(store, self, stream)?;
            self.write_one_pending(true, store)?;
        }
        Ok(())
    }

    /// Writes one of the translation pages that wait, if any does.
    fn write_one_pending<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        read: bool,
        store: &mut BlockStore<M, P, V>,
    ) -> Result<(), DeviceError> {
        let Some(page) = self.pending.last().copied() else { return Ok(()) };
        if read {
            self.counters.update_reads += 1;
            self.read(page, store, Cause::Translation)?;
        }
        self.program(page, Update::All, store)?;
        self.pending.pop();
        self.is_pending[page as usize] = false;
        self.counters.updates += 1;
        Ok(())
    }

    /// Checks that dirty entries are cached, or wait with their translation page to be written after a collection; that the
    /// columns agree, and that the directory points to valid pages.
    pub(super) fn check<M: Medium, P: Placement, V: VictimPolicy>(
        &self,
        store: &BlockStore<M, P, V>,
    ) -> Result<(), String> {
        let is_kept = |lpn: u32| self.cache.contains(Lpn(lpn)) || self.is_pending[self.layout.page_of(lpn) as usize];
        if let Some(lpn) = self.dirty.iter().find(|lpn| !is_kept(*lpn)) {
            return Err(format!("LPN {lpn} is dirty, and neither cached nor about to be written"));
        }
        let mut dirty_entries = vec![0; self.dirty_entries.len()];
        self.dirty.iter().for_each(|lpn| dirty_entries[self.layout.page_of(lpn) as usize] += 1);
        if dirty_entries != self.dirty_entries {
            return Err("the dirty entries of a translation page are miscounted".to_owned());
        }
        let mut cached = vec![0; self.cached.len()];
        self.cache.iter().for_each(|lpn| cached[self.layout.page_of(lpn.0) as usize] += 1);
        if cached != self.cached || self.cache.len() > self.cache.capacity() {
            return Err(format!("{} entries are cached, columns differ", self.cache.len()));
        }
        for (page, at) in self.directory.iter().enumerate() {
            if !store.is_valid(*at) || store.medium().owner(*at) != Owner::new(Kind::Translation, page as u32) {
                return Err(format!("the directory says {at:?} of translation page {page}, which does not hold it"));
            }
        }
        self.pages.check(store, self.directory.len() as u64)
    }
}

/// An entry as translation pages hold it. Trims are told by tombstones, and a trimmed page is unmapped here.
fn encode(entry: MapEntry) -> u32 {
    entry.mapped().unwrap_or(Ppn::NONE).0
}

impl<M: Medium, P: Placement, V: VictimPolicy> Mapping<M, P, V> for DemandMap {
    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        memory::prefetch(&self.pages.entries, owner.address() as usize);
    }

    fn before_copy(&mut self, store: &mut BlockStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError> {
        if !self.reads_before_copies {
            return Ok(());
        }
        for entry in moves.iter().filter(|m| m.owner.kind() == Kind::Data) {
            if !self.cache.contains(Lpn(entry.owner.address())) {
                self.defer(self.layout.page_of(entry.owner.address()));
            }
        }
        if store.medium().counts_meta_reads() {
            let count = self.pending.len() as u64;
            self.counters.update_reads += count;
            store.medium_mut().count_meta_reads(count, Cause::Translation);
            return Ok(());
        }
        for index in 0..self.pending.len() {
            self.counters.update_reads += 1;
            self.read(self.pending[index], store, Cause::Translation)?;
        }
        Ok(())
    }

    fn relocate(&mut self, store: &mut BlockStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError> {
        self.pages.relocate(store, moves)?;
        for entry in moves {
            match entry.owner.kind() {
                Kind::Data => {
                    let lpn = Lpn(entry.owner.address());
                    // Where translation pages were read before the copies, those of entries that are not cached wait already.
                    if self.reads_before_copies {
                        self.set_dirty(lpn)
                    } else {
                        self.mark_dirty(lpn)
                    }
                    if self.keeps_moves {
                        self.moved.push(Lpn(entry.owner.address()));
                    }
                }
                // Known before the first is read: pages of data that moved along are updated where they are now.
                Kind::Translation => self.directory[entry.owner.address() as usize] = entry.to,
                Kind::Tombstone | Kind::Unreadable => {}
            }
        }
        while !self.pending.is_empty() {
            self.write_one_pending(!self.reads_before_copies, store)?;
        }
        Ok(())
    }

    fn before_erase(&mut self, store: &mut BlockStore<M, P, V>, block: BlockId) -> Result<(), DeviceError> {
        self.pages.before_erase(store, block)
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> OverPageMap<M, P, V> for DemandMap {
    fn page_map(&mut self) -> &mut PageMap {
        &mut self.pages
    }
}
