//! The page-mapped FTL: every logical page anywhere, the whole map in DRAM.
//!
//! The map is one array of 32-bit entries. A write appends to the stream that the placement names, then points the entry
//! there and invalidates the old page, in this order, so that a loss of power finds either version.

use super::page_map::{PageMap, RUN, write_tombstones};
use super::{Design, Found, Ftl, FtlParts, ReadDesign, Receive, Reserve, Uses};
use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::{BlockView, DeviceError};
use crate::nand::{Medium, PageMut, PageRef};
use crate::placement::Placement;
use crate::registry::{Entry, SpecError};
use crate::stats::{Snapshot, WearSummary};
use crate::store::{BlockStore, StoreOptions, collect_idle, fatal, make_room};
use crate::victim::VictimPolicy;

pub(super) const ENTRY: Entry<ReadDesign> = Entry {
    name: "page",
    summary: "page-mapped, the whole map in DRAM",
    paper: "Ban, US patent 5937425",
    memory: "4 bytes a logical page",
    parameters: &[],
    build: |_, _| Ok(PageDesign.into()),
};

/// The page-mapped FTL, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageDesign;

impl Design for PageDesign {
    fn uses(&self) -> Uses {
        Uses { placement: true, victim: true, shared_dram: false }
    }
    fn reserve(&self, for_copies: u32) -> Reserve {
        Reserve { least: 1, default: for_copies }
    }
    fn build<M: Medium + Send + 'static, R: Receive<M>>(
        &self,
        parts: FtlParts<M>,
        receive: R,
    ) -> Result<R::Output, SpecError> {
        let FtlParts { medium, found, placement, victim, plan, .. } = parts;
        receive.take(match found {
            Found::Nothing => PageFtl::new(medium, placement, victim, plan.logical_pages, plan.store),
            Found::Written => PageFtl::recover(medium, placement, victim, plan.logical_pages, plan.store)?,
        })
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct PageFtl<M, P, V> {
    pub(super) store: BlockStore<M, P, V>,
    pub(super) map: PageMap,
    /// Blocks that background cleaning keeps free.
    idle_blocks: u32,
}

impl<M: Medium, P: Placement, V: VictimPolicy> PageFtl<M, P, V> {
    /// An empty device of `logical_pages`.
    pub fn new(medium: M, placement: P, victim: V, logical_pages: u32, options: StoreOptions) -> Self {
        let geometry = *medium.geometry();
        Self {
            map: PageMap::new(logical_pages, geometry.page_bytes(), geometry.blocks),
            idle_blocks: idle_blocks(geometry.blocks, options.floor),
            store: BlockStore::new(medium, placement, victim, options),
        }
    }

    pub(super) fn assemble(store: BlockStore<M, P, V>, map: PageMap, floor: u32) -> Self {
        let idle_blocks = idle_blocks(store.blocks().blocks(), floor);
        Self { store, map, idle_blocks }
    }
}

/// Background cleaning stops at one block in a hundred beyond the floor.
pub(super) fn idle_blocks(blocks: u32, floor: u32) -> u32 {
    floor + (blocks / 100).max(1)
}

impl<M: Medium, P: Placement, V: VictimPolicy> Ftl for PageFtl<M, P, V> {
    type Medium = M;

    fn logical_pages(&self) -> u32 {
        self.map.entries.len() as u32
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
        self.store.places_each_page()
    }
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        self.map.prefetch(lpns);
        self.store.prefetch(lpns.iter().copied());
    }

    #[inline(always)]
    fn prefetch_pages(&self, lpns: &[Lpn]) {
        self.map.prefetch_pages(lpns, &self.store);
    }

    #[inline(always)]
    fn end_request(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    #[inline(always)]
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.map.is_mapped(lpn)
    }

    #[inline(always)]
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, M>, cause: Cause) -> Result<bool, DeviceError> {
        let Some(at) = self.map.entries[lpn.0 as usize].mapped() else { return Ok(false) };
        self.store.medium_mut().read(at, out, cause).map_err(|e| fatal(e, lpn.0))?;
        Ok(true)
    }

    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, M>, cause: Cause) -> Result<(), DeviceError> {
        let stream = self.store.place(lpn, self.map.is_mapped(lpn));
        make_room(&mut self.store, &mut self.map, stream)?;
        let at = self.store.append_host(stream, lpn, page, cause)?;
        self.map.commit(lpn, at, &mut self.store);
        Ok(())
    }

    fn writes_runs(&self) -> bool {
        self.store.appends_runs()
    }

    #[inline(always)]
    fn write_run(&mut self, lpns: &[Lpn]) -> usize {
        let (at, count) = self.store.append_run(&lpns[..lpns.len().min(RUN)]);
        self.map.commit_run(&lpns[..count], at, &mut self.store);
        self.store.fetch_coming(count as u32, &self.map);
        count
    }

    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        let sequence = self.store.next_sequence();
        for lpn in lpn.0..lpn.0 + pages {
            if self.map.trim(lpn, sequence, &mut self.store) && self.map.tombstones.are_due() {
                write_tombstones(&mut self.store, &mut self.map)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.map.tombstones.is_waiting() { write_tombstones(&mut self.store, &mut self.map) } else { Ok(()) }
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
        snapshot.mapped_pages = self.map.mapped_pages;
        snapshot.dram.push(("map", self.map.entries.len() as u64 * 4));
    }

    fn wear(&self) -> WearSummary {
        self.store.wear()
    }

    fn blocks(&self) -> Vec<BlockView> {
        self.store.blocks().views()
    }

    fn check(&self) -> Result<(), String> {
        self.store.check()?;
        self.map.check(&self.store, 0)
    }
}
