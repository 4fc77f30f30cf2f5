//! The page-mapped FTL: every logical page anywhere, the whole map in DRAM.
//!
//! The map is one array of 32-bit entries. A write appends to the stream that the placement names, then points the entry
//! there and invalidates the old page, in this order, so that a loss of power finds either version.

use super::tombstones::{MapEntry, Tombstones};
use super::{Ftl, FtlOptions, ReadFtl};
use crate::address::{BlockId, Lpn, StreamId};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::log::{LogOptions, LogStore, Mapping, collect_idle, fatal, make_room};
use crate::memory;
use crate::nand::{Kind, Medium, Move, Owner, PageMut, PageRef};
use crate::placement::Placement;
use crate::registry::Entry;
use crate::stats::{Snapshot, WearSummary};
use crate::victim::VictimPolicy;

pub(super) const ENTRY: Entry<ReadFtl> = Entry {
    name: "page",
    summary: "page-mapped, the whole map in DRAM",
    paper: "Ban, US patent 5937425",
    memory: "4 bytes a logical page",
    parameters: &[],
    build: |_, _| Ok(FtlOptions::Page),
};

/// The map, apart from the log store so that both can change while a page moves.
#[derive(Clone, Debug)]
pub struct PageMap {
    pub(super) entries: Vec<MapEntry>,
    pub(super) mapped_pages: u64,
    pub(super) tombstones: Tombstones,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct PageFtl<M, P, V> {
    pub(super) log: LogStore<M, P, V>,
    pub(super) map: PageMap,
    /// Blocks that background cleaning keeps free.
    idle_blocks: u32,
}

impl PageMap {
    pub(super) fn new(logical_pages: u32, page_bytes: u32, blocks: u32) -> Self {
        Self {
            entries: memory::table(logical_pages as usize, MapEntry::NONE),
            mapped_pages: 0,
            tombstones: Tombstones::new(page_bytes, blocks),
        }
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> Mapping<M, P, V> for PageMap {
    #[inline(always)]
    fn prefetch(&self, owner: Owner) {
        memory::prefetch(&self.entries, owner.address() as usize);
    }

    #[inline(always)]
    fn relocate(&mut self, _: &mut LogStore<M, P, V>, moves: &[Move]) -> Result<(), DeviceError> {
        for entry in moves {
            let address = entry.owner.address();
            match entry.owner.kind() {
                Kind::Data => self.entries[address as usize] = MapEntry::page(entry.to),
                Kind::Tombstone => self.tombstones.relocate(address, entry.to),
                kind => unreachable!("a page-mapped FTL writes no {kind:?} pages"),
            }
        }
        Ok(())
    }

    fn before_erase(&mut self, log: &mut LogStore<M, P, V>, block: BlockId) -> Result<(), DeviceError> {
        if self.tombstones.is_exposed(block) {
            self.tombstones.write_page(&mut self.entries, log)?;
        }
        Ok(())
    }
}

impl<M: Medium, P: Placement, V: VictimPolicy> PageFtl<M, P, V> {
    /// An empty device of `logical_pages`.
    pub fn new(medium: M, placement: P, victim: V, logical_pages: u32, options: LogOptions) -> Self {
        let geometry = *medium.geometry();
        Self {
            map: PageMap::new(logical_pages, geometry.page_bytes(), geometry.blocks),
            idle_blocks: idle_blocks(geometry.blocks, options.floor),
            log: LogStore::new(medium, placement, victim, options),
        }
    }

    pub(super) fn assemble(log: LogStore<M, P, V>, map: PageMap, floor: u32) -> Self {
        let idle_blocks = idle_blocks(log.blocks().blocks(), floor);
        Self { log, map, idle_blocks }
    }

    /// Writes the waiting trims, with room made for each page of them.
    fn write_waiting(&mut self) -> Result<(), DeviceError> {
        while self.map.tombstones.is_waiting() {
            make_room(&mut self.log, &mut self.map, StreamId(0))?;
            self.map.tombstones.write_page(&mut self.map.entries, &mut self.log)?;
        }
        Ok(())
    }

    /// Writes the waiting trims, and packs tombstone pages anew where they have piled up.
    fn write_tombstones(&mut self) -> Result<(), DeviceError> {
        self.write_waiting()?;
        if self.map.tombstones.wants_compaction() {
            let old = self.map.tombstones.live_slots();
            self.map.tombstones.unpack(&old, &mut self.map.entries);
            self.write_waiting()?;
            self.map.tombstones.drop_slots(&old, &mut self.log);
        }
        Ok(())
    }
}

/// Background cleaning stops at one block in a hundred beyond the floor.
fn idle_blocks(blocks: u32, floor: u32) -> u32 {
    floor + (blocks / 100).max(1)
}

impl<M: Medium, P: Placement, V: VictimPolicy> Ftl for PageFtl<M, P, V> {
    type Medium = M;

    fn logical_pages(&self) -> u32 {
        self.map.entries.len() as u32
    }

    #[inline(always)]
    fn prefetch_entry(&self, lpn: Lpn) {
        memory::prefetch(&self.map.entries, lpn.0 as usize);
    }

    #[inline(always)]
    fn prefetch_page(&self, lpn: Lpn) {
        if let Some(at) = self.map.entries.get(lpn.0 as usize).and_then(|e| e.mapped()) {
            self.log.prefetch(at);
        }
    }

    #[inline(always)]
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, M>, cause: Cause) -> Result<bool, DeviceError> {
        let Some(at) = self.map.entries[lpn.0 as usize].mapped() else { return Ok(false) };
        self.log.medium_mut().read(at, out, cause).map_err(|e| fatal(e, lpn.0))?;
        Ok(true)
    }

    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, M>) -> Result<(), DeviceError> {
        let rewrite = self.map.entries[lpn.0 as usize].mapped().is_some();
        let stream = self.log.place(lpn, rewrite);
        make_room(&mut self.log, &mut self.map, stream)?;
        let at = self.log.append_host(stream, lpn, page)?;
        // Read only now: making room may have moved the old page.
        let old = std::mem::replace(&mut self.map.entries[lpn.0 as usize], MapEntry::page(at));
        match old.mapped() {
            Some(old) => self.log.invalidate(old),
            None => {
                self.map.mapped_pages += 1;
                self.map.tombstones.forget(old, &mut self.log);
            }
        }
        Ok(())
    }

    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        let sequence = self.log.next_sequence();
        for lpn in lpn.0..lpn.0 + pages {
            let Some(at) = self.map.entries[lpn as usize].mapped() else { continue };
            let block = self.log.medium().geometry().block_of(at);
            self.map.tombstones.trim(lpn, &mut self.map.entries[lpn as usize], block, sequence);
            self.map.mapped_pages -= 1;
            self.log.invalidate(at);
            self.log.placement_mut().on_trim(Lpn(lpn));
            if self.map.tombstones.page_is_full() {
                self.write_tombstones()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.map.tombstones.is_waiting() { self.write_tombstones() } else { Ok(()) }
    }

    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        collect_idle(&mut self.log, &mut self.map, budget_ns, self.idle_blocks)
    }

    fn medium(&self) -> &M {
        self.log.medium()
    }

    fn medium_mut(&mut self) -> &mut M {
        self.log.medium_mut()
    }

    fn into_medium(self) -> M {
        self.log.into_medium()
    }

    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        self.log.fill_snapshot(snapshot);
        snapshot.mapped_pages = self.map.mapped_pages;
        snapshot.dram.push(("map", self.map.entries.len() as u64 * 4));
    }

    fn wear(&self) -> WearSummary {
        self.log.wear()
    }

    fn block_valid_pages(&self) -> Vec<u32> {
        self.log.blocks().closed().map(|b| self.log.blocks().valid(b)).collect()
    }

    fn check(&self) -> Result<(), String> {
        self.log.check()?;
        let mut mapped = 0;
        for (lpn, entry) in self.map.entries.iter().enumerate() {
            let Some(at) = entry.mapped() else { continue };
            mapped += 1;
            if !self.log.is_valid(at) || self.log.medium().owner(at) != Owner::new(Kind::Data, lpn as u32) {
                return Err(format!("LPN {lpn} maps to {at:?}, which does not hold it"));
            }
        }
        let pages = mapped + self.map.tombstones.pages() as u64;
        if mapped != self.map.mapped_pages || pages != self.log.valid_pages() {
            return Err(format!(
                "{mapped} pages are mapped, {} counted, {pages} expected valid",
                self.map.mapped_pages
            ));
        }
        Ok(())
    }
}
