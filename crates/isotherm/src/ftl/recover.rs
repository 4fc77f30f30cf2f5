//! Rebuilding the map from the OOB areas, after everything in memory was lost.
//!
//! One scan of the medium finds, for every logical page, the version with the highest sequence number; tombstones then
//! take away what was trimmed later than it was written. Copies keep the number of their source, so either copy of a
//! collection that was cut short will do. Blocks that were open go on being filled. Cost: one read a programmed page (cause `recovery`).

use super::page::{PageFtl, PageMap};
use super::tombstones::{Extent, MapEntry, decode};
use crate::address::{BlockId, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::log::{LogOptions, LogStore, fatal};
use crate::nand::{Kind, Medium};
use crate::placement::Placement;
use crate::victim::VictimPolicy;
use std::collections::BTreeMap;

/// A tombstone page found by the scan.
pub(super) struct FoundTombstone {
    pub(super) at: Ppn,
    pub(super) slot: u32,
    pub(super) extents: Vec<Extent>,
}

/// What the scan knows of a logical page.
#[derive(Clone, Copy)]
pub(super) struct Version {
    /// One of its copies; [`Ppn::NONE`] where the page holds no data.
    pub(super) at: Ppn,
    pub(super) sequence: u64,
}

const UNKNOWN: Version = Version { at: Ppn::NONE, sequence: 0 };

/// Reads the OOB of every programmed page. Returns the newest version of each logical page, the tombstone pages in the
/// order of their writing, and the last sequence number given.
pub(super) fn scan<M: Medium>(
    medium: &mut M,
    logical_pages: u32,
) -> Result<(Vec<Version>, Vec<FoundTombstone>, u64), DeviceError> {
    let geometry = *medium.geometry();
    let mut versions = vec![UNKNOWN; logical_pages as usize];
    let mut tombstones: BTreeMap<(u64, u32), FoundTombstone> = BTreeMap::new();
    let mut last_sequence = 0;
    for block in (0..geometry.blocks).map(BlockId).filter(|b| !medium.is_bad(*b)).collect::<Vec<_>>() {
        let first = geometry.first_page(block).0;
        for at in (first..first + medium.programmed_pages(block)).map(Ppn) {
            let (owner, sequence) = (medium.owner(at), medium.sequence(at));
            last_sequence = last_sequence.max(sequence);
            match owner.kind() {
                Kind::Data if owner.address() < logical_pages => {
                    let known = &mut versions[owner.address() as usize];
                    if known.at == Ppn::NONE || sequence > known.sequence {
                        *known = Version { at, sequence };
                    }
                }
                Kind::Tombstone => {
                    let mut content = Vec::new();
                    medium.read_meta(at, &mut content, Cause::Recovery).map_err(|e| fatal(e, 0))?;
                    let found = FoundTombstone { at, slot: owner.address(), extents: decode(&content) };
                    tombstones.insert((sequence, owner.address()), found);
                }
                _ => {}
            }
        }
    }
    let tombstones: Vec<_> = tombstones.into_values().collect();
    let trims = tombstones.iter().flat_map(|t| t.extents.iter().map(|e| e.sequence)).max();
    Ok((versions, tombstones, last_sequence.max(trims.unwrap_or(0))))
}

/// Applies the tombstones in the order of their writing. Returns, for each, how many pages it keeps trimmed.
pub(super) fn bury(versions: &mut [Version], entries: &mut [MapEntry], tombstones: &[FoundTombstone]) -> Vec<u32> {
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
        if version.at == Ppn::NONE || version.sequence < sequence {
            *version = UNKNOWN;
            entries[lpn as usize] = MapEntry::tombstone(tombstones[index].slot);
            live[index] += 1;
        }
    }
    live
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
        options: LogOptions,
    ) -> Result<Self, DeviceError> {
        let geometry = *medium.geometry();
        let (mut versions, tombstones, last_sequence) = scan(&mut medium, logical_pages)?;
        let mut map = PageMap::new(logical_pages, geometry.page_bytes(), geometry.blocks);
        let live = bury(&mut versions, &mut map.entries, &tombstones);
        let mut log = LogStore::restore(medium, placement, victim, options, last_sequence);
        for (lpn, version) in versions.iter().enumerate().filter(|(_, v)| v.at != Ppn::NONE) {
            assert!(version.sequence > 0, "this medium records no sequence numbers");
            map.entries[lpn] = MapEntry::page(version.at);
            map.mapped_pages += 1;
            log.adopt(version.at);
        }
        for (tombstone, live) in tombstones.into_iter().zip(live).filter(|(_, live)| *live > 0) {
            log.adopt(tombstone.at);
            map.tombstones.restore(tombstone.slot, tombstone.at, tombstone.extents, live);
        }
        log.finish_restore()?;
        Ok(Self::assemble(log, map, options.floor))
    }
}
