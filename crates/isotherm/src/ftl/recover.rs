//! Rebuilding the map from the OOB areas, after everything in memory was lost.
//!
//! One scan of the medium finds, for every logical page, the version with the highest sequence number; tombstones then
//! take away what was trimmed later than it was written. Copies keep the number of their source, so either copy of a
//! collection that was cut short will do; the one in a block that is not full is taken, since that is where copies went and
//! the source is left to be cleaned. Blocks that were open are opened again. Cost: one read a programmed page (cause `recovery`).

use super::page::PageFtl;
use super::page_map::PageMap;
use crate::address::{BlockId, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::memory;
use crate::nand::{Kind, Medium};
use crate::placement::Placement;
use crate::store::tombstones::{Extent, MapEntry, decode};
use crate::store::{BlockStore, StoreOptions, fatal};
use crate::victim::VictimPolicy;
use std::collections::BTreeMap;

/// A tombstone page found by the scan.
pub(super) struct FoundTombstone {
    pub(super) at: Ppn,
    pub(super) slot: u32,
    pub(super) extents: Vec<Extent>,
}

/// Pages whose tables are fetched ahead.
const AHEAD: usize = 16;

/// Everything that one scan of the medium found.
pub(super) struct Found {
    /// Newest version of every logical page, one of its copies: the map, but for trims.
    pub(super) versions: Vec<MapEntry>,
    pub(super) tombstones: Vec<FoundTombstone>,
    /// Newest copy of every translation page; [`Ppn::NONE`] where there is none.
    pub(super) translation_pages: Vec<Ppn>,
    pub(super) last_sequence: u64,
}

/// Whether a page is newer than the version that is known; of two copies, one in a block that `is_full` says is not.
fn is_newer<M: Medium>(known: Option<Ppn>, sequence: u64, is_full: bool, medium: &M) -> bool {
    known.is_none_or(|known| {
        let known = medium.sequence(known);
        sequence > known || (sequence == known && !is_full)
    })
}

/// Reads the OOB of every programmed page.
///
/// # Errors
/// Faults of the medium.
pub(super) fn scan<M: Medium>(
    medium: &mut M,
    logical_pages: u32,
    translation_pages: u32,
) -> Result<Found, DeviceError> {
    let geometry = *medium.geometry();
    let mut versions = memory::table(logical_pages as usize, MapEntry::NONE);
    let mut translation = vec![Ppn::NONE; translation_pages as usize];
    let mut tombstones: BTreeMap<(u64, u32), FoundTombstone> = BTreeMap::new();
    let mut last_sequence = 0;
    for block in (0..geometry.blocks).map(BlockId).filter(|b| !medium.is_bad(*b)).collect::<Vec<_>>() {
        let first = geometry.first_page(block).0;
        let is_full = medium.programmed_pages(block) == geometry.pages_per_block();
        let end = first + medium.programmed_pages(block);
        for at in (first..end).map(Ppn) {
            if at.0 + (AHEAD as u32) < end {
                memory::prefetch(&versions, medium.owner(Ppn(at.0 + AHEAD as u32)).address() as usize);
            }
            let (owner, sequence) = (medium.owner(at), medium.sequence(at));
            let address = owner.address();
            last_sequence = last_sequence.max(sequence);
            match owner.kind() {
                Kind::Data if address < logical_pages => {
                    let known = &mut versions[address as usize];
                    if is_newer(known.mapped(), sequence, is_full, medium) {
                        *known = MapEntry::page(at);
                    }
                }
                Kind::Translation if address < translation_pages => {
                    let known = &mut translation[address as usize];
                    if is_newer(Some(*known).filter(|known| *known != Ppn::NONE), sequence, is_full, medium) {
                        *known = at;
                    }
                }
                Kind::Tombstone => {
                    let mut content = Vec::new();
                    medium.read_meta(at, &mut content, Cause::Recovery).map_err(|e| fatal(e, 0))?;
                    let found = FoundTombstone { at, slot: address, extents: decode(&content) };
                    tombstones.insert((sequence, address), found);
                }
                _ => {}
            }
        }
    }
    let tombstones: Vec<_> = tombstones.into_values().collect();
    let trims = tombstones.iter().flat_map(|t| t.extents.iter().map(|e| e.sequence)).max();
    Ok(Found {
        versions,
        tombstones,
        translation_pages: translation,
        last_sequence: last_sequence.max(trims.unwrap_or(0)),
    })
}

/// Applies the tombstones in the order of their writing. Returns, for each, how many pages it keeps trimmed.
pub(super) fn bury<M: Medium>(versions: &mut [MapEntry], tombstones: &[FoundTombstone], medium: &M) -> Vec<u32> {
    // The latest trim of each page, with the index of its tombstone; a trim packed anew is found in the newer page.
    let mut trims: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
    for (index, tombstone) in tombstones.iter().enumerate() {
        for extent in &tombstone.extents {
            for lpn in extent.start..extent.start + extent.count {
                let latest = trims.entry(lpn).or_insert((extent.sequence, index));
                if extent.sequence >= latest.0 {
                    *latest = (extent.sequence, index);
                }
            }
        }
    }
    let mut live = vec![0; tombstones.len()];
    for (lpn, (sequence, index)) in trims {
        let version = &mut versions[lpn as usize];
        if version.mapped().is_none_or(|at| medium.sequence(at) < sequence) {
            *version = MapEntry::tombstone(tombstones[index].slot);
            live[index] += 1;
        }
    }
    live
}

/// Rebuilds the page map and the block store from what a scan found. [`BlockStore::finish_restore`] is left to the caller,
/// who may have more pages to adopt.
///
/// # Panics
/// If the medium does not record sequence numbers but holds data: it cannot be recovered.
pub(super) fn rebuild<M: Medium, P: Placement, V: VictimPolicy>(
    mut found: Found,
    medium: M,
    placement: P,
    victim: V,
    options: StoreOptions,
) -> (PageMap, BlockStore<M, P, V>) {
    let geometry = *medium.geometry();
    let live = bury(&mut found.versions, &found.tombstones, &medium);
    let mut map = PageMap::of(found.versions, geometry.page_bytes(), geometry.blocks);
    let holds_data = map.entries.iter().any(|entry| entry.mapped().is_some());
    assert!(!holds_data || found.last_sequence > 0, "this medium records no sequence numbers");
    let mut store = BlockStore::restore(medium, placement, victim, options, found.last_sequence);
    for (lpn, at) in map.entries.iter().enumerate().filter_map(|(lpn, entry)| Some((lpn, entry.mapped()?))) {
        store.prefetch_pages(map.entries.get(lpn + AHEAD).and_then(|ahead| ahead.mapped()).into_iter());
        map.mapped_pages += 1;
        store.adopt(at);
    }
    for (tombstone, live) in found.tombstones.into_iter().zip(live).filter(|(_, live)| *live > 0) {
        store.adopt(tombstone.at);
        map.tombstones.restore(tombstone.slot, tombstone.at, tombstone.extents, live);
    }
    (map, store)
}

impl<M: Medium, P: Placement, V: VictimPolicy> PageFtl<M, P, V> {
    /// Rebuilds the device that `medium` holds. Policies start anew.
    ///
    /// # Errors
    /// Faults of the medium.
    ///
    /// # Panics
    /// If the medium does not record sequence numbers but holds data: it cannot be recovered.
    pub fn recover(
        mut medium: M,
        placement: P,
        victim: V,
        logical_pages: u32,
        options: StoreOptions,
    ) -> Result<Self, DeviceError> {
        let found = scan(&mut medium, logical_pages, 0)?;
        let (map, mut store) = rebuild(found, medium, placement, victim, options);
        store.finish_restore()?;
        Ok(Self::assemble(store, map, options.floor))
    }
}
