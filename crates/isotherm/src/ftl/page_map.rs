//! The map of every logical page and its tombstones: what the page-mapped FTL keeps in DRAM, and what a demand-paged FTL
//! keeps in its translation pages.

use crate::address::{BlockId, Lpn, Ppn, StreamId};
use crate::device::DeviceError;
use crate::memory;
use crate::nand::{Kind, Medium, Move, Owner};
use crate::placement::Placement;
use crate::store::tombstones::{MapEntry, Tombstones};
use crate::store::{BlockStore, Mapping, make_room};
use crate::victim::VictimPolicy;

/// Pages that are committed at once, at most.
pub(super) const RUN: usize = 8;

/// The map, apart from the block store so that both can change while a page moves.
#[derive(Clone, Debug)]
pub struct PageMap {
    pub(super) entries: Vec<MapEntry>,
    pub(super) mapped_pages: u64,
    pub(super) tombstones: Tombstones,
}

/// A mapping over a [`PageMap`], whatever else it keeps.
pub(super) trait OverPageMap<M, P, V>: Mapping<M, P, V> {
    /// The page map inside.
    fn page_map(&mut self) -> &mut PageMap;
}

impl PageMap {
    pub(super) fn new(logical_pages: u32, page_bytes: u32, blocks: u32) -> Self {
        Self::of(memory::table(logical_pages as usize, MapEntry::NONE), page_bytes, blocks)
    }

    /// A map with these entries. What is mapped is not counted yet, and its tombstones are not known.
    pub(super) fn of(entries: Vec<MapEntry>, page_bytes: u32, blocks: u32) -> Self {
        Self { entries, mapped_pages: 0, tombstones: Tombstones::new(page_bytes, blocks) }
    }

    #[inline(always)]
    pub(super) fn is_mapped(&self, lpn: Lpn) -> bool {
        self.entries[lpn.0 as usize].mapped().is_some()
    }

    /// Brings the entries of `lpns` towards the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, lpns: &[Lpn]) {
        lpns.iter().for_each(|lpn| memory::prefetch(&self.entries, lpn.0 as usize));
    }

    /// Brings the state of the pages that hold `lpns` now towards the cache.
    #[inline(always)]
    pub(super) fn prefetch_pages<M: Medium, P: Placement, V: VictimPolicy>(
        &self,
        lpns: &[Lpn],
        store: &BlockStore<M, P, V>,
    ) {
        // What is not mapped gives a number beyond every page, for which nothing is prefetched: no branch, no wait for it.
        let pages = lpns.iter().filter_map(|lpn| self.entries.get(lpn.0 as usize));
        store.prefetch_pages(pages.map(|entry| entry.page_if_mapped()));
    }

    /// Points `lpn` to the page that was just written for it, and invalidates the old one.
    #[inline(always)]
    pub(super) fn commit<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        lpn: Lpn,
        at: Ppn,
        store: &mut BlockStore<M, P, V>,
    ) {
        // Read only now: making room may have moved the old page.
        let old = std::mem::replace(&mut self.entries[lpn.0 as usize], MapEntry::page(at));
        match old.mapped() {
            Some(old) => store.invalidate(old),
            None => {
                self.mapped_pages += 1;
                self.tombstones.forget(old, store);
            }
        }
    }

    /// As [`PageMap::commit`] for at most [`RUN`] pages that were written one after the other from `at` on.
    #[inline(always)]
    pub(super) fn commit_run<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        lpns: &[Lpn],
        at: Ppn,
        store: &mut BlockStore<M, P, V>,
    ) {
        let heeded = store.heeded();
        let (mut before, entries) = ([MapEntry::NONE; RUN], &mut self.entries[..]);
        // First all entries, then all old pages: either loop waits for one table, and has little else to do.
        for ((lpn, at), before) in lpns.iter().zip(at.0..).zip(&mut before) {
            *before = std::mem::replace(&mut entries[lpn.0 as usize], MapEntry::page(Ppn(at)));
        }
        let mut old = before.map(MapEntry::page_if_mapped);
        let before = &before[..lpns.len()];
        // So it is nearly always, once a device is full.
        if MapEntry::are_mapped(before) {
            store.invalidate_heeded(&old[..lpns.len()], heeded);
            store.count_run(lpns.len(), lpns.len() as u64);
            return;
        }
        let (mut dead, mut all_dead) = (0, 0);
        for before in before {
            match before.mapped() {
                Some(page) => {
                    old[dead] = page;
                    dead += 1;
                }
                None => {
                    // A page of trims may die with its last one: after what died before.
                    store.invalidate_heeded(&old[..dead], heeded);
                    all_dead += std::mem::take(&mut dead);
                    self.tombstones.forget(*before, store);
                }
            }
        }
        store.invalidate_heeded(&old[..dead], heeded);
        all_dead += dead;
        store.count_run(lpns.len(), all_dead as u64);
        self.mapped_pages += (lpns.len() - all_dead) as u64;
    }

    /// Logs the trim of `lpn`; false if it held no data.
    pub(super) fn trim<M: Medium, P: Placement, V: VictimPolicy>(
        &mut self,
        lpn: u32,
        sequence: u64,
        store: &mut BlockStore<M, P, V>,
    ) -> bool {
        let Some(at) = self.entries[lpn as usize].mapped() else { return false };
        let block = store.medium().geometry().block_of(at);
        self.tombstones.trim(lpn, &mut self.entries[lpn as usize], block, sequence);
        self.mapped_pages -= 1;
        store.invalidate(at);
        store.trimmed(Lpn(lpn));
        true
    }

    /// Checks that every mapped page is valid and its own, and that nothing else but `other_pages` is valid.
    pub(super) fn check<M: Medium, P: Placement, V: VictimPolicy>(
        &self,
        store: &BlockStore<M, P, V>,
        other_pages: u64,
    ) -> Result<(), String> {
        let mut mapped = 0;
        for (lpn, entry) in self.entries.iter().enumerate() {
            let Some(at) = entry.mapped() else { continue };
            mapped += 1;
            if !store.is_valid(at) || store.medium().owner(at) != Owner::new(Kind::Data, lpn as u32) {
                return Err(format!("LPN {lpn} maps to {at:?}, which does not hold it"));
            }
        }
        let pages = mapped + self.tombstones.pages() as u64 + other_pages;
        if mapped != self.mapped_pages || pages != store.valid_pages() {
            return Err(format!(
                "{mapped} pages are mapped, {} counted; {pages} expected valid, {} are",
                self.mapped_pages,
                store.valid_pages()
            ));
        }
        Ok(())
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> Mapping<M, P, V> for PageMap {
    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        memory::prefetch(&self.entries, owner.address() as usize);
    }

    #[inline(always)]
    fn entries(&mut self) -> Option<&mut [MapEntry]> {
        Some(&mut self.entries)
    }

    #[inline(always)]
    fn relocate(&mut self, _: &mut BlockStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError> {
        for entry in moves {
            let address = entry.owner.address();
            match entry.owner.kind() {
                Kind::Data => self.entries[address as usize] = MapEntry::page(entry.to),
                Kind::Tombstone => self.tombstones.relocate(address, entry.to),
                // Translation pages are the business of whoever writes them; nothing unreadable is ever valid.
                Kind::Translation | Kind::Unreadable => {}
            }
        }
        Ok(())
    }

    fn before_erase(&mut self, store: &mut BlockStore<M, P, V>, block: BlockId) -> Result<(), DeviceError> {
        if self.tombstones.is_exposed(block) {
            self.tombstones.write_page(&mut self.entries, store)?;
        }
        Ok(())
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> OverPageMap<M, P, V> for PageMap {
    fn page_map(&mut self) -> &mut PageMap {
        self
    }
}

/// Writes the waiting trims, and packs tombstone pages anew where they have piled up.
///
/// # Errors
/// No space, or faults of the medium.
pub(super) fn write_tombstones<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl OverPageMap<M, P, V>,
) -> Result<(), DeviceError> {
    write_waiting(store, map)?;
    if map.page_map().tombstones.wants_compaction() {
        let pages = map.page_map();
        let old = pages.tombstones.live_slots();
        pages.tombstones.unpack(&old, &mut pages.entries);
        write_waiting(store, map)?;
        map.page_map().tombstones.drop_slots(&old, store);
    }
    Ok(())
}

/// Writes the waiting trims, with room made for each page of them.
fn write_waiting<M: Medium, P: Placement, V: VictimPolicy>(
    store: &mut BlockStore<M, P, V>,
    map: &mut impl OverPageMap<M, P, V>,
) -> Result<(), DeviceError> {
    while map.page_map().tombstones.is_waiting() {
        // Making room may itself write a page of trims; then there may be nothing left to write.
        make_room(store, map, StreamId(0))?;
        let pages = map.page_map();
        pages.tombstones.write_page(&mut pages.entries, store)?;
    }
    Ok(())
}
