//! Rebuilding a demand-paged map after a loss of power.
//!
//! Data pages and tombstones give the map, exactly as for the page-mapped FTL; translation pages are then read (cause
//! `recovery`) and those that say something else, because entries were dirty when power was lost, are written anew. The
//! cache starts empty. On a device that is worn out they wait, and it can be read. Cost: a scan, one read a translation page, one program for each of them that is out of date.

use super::super::recover::{rebuild, scan};
use super::{DemandOptions, Dftl, MapObserver};
use crate::address::{Lpn, Ppn};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::Medium;
use crate::placement::Placement;
use crate::store::StoreOptions;
use crate::victim::VictimPolicy;

impl<M: Medium, P: Placement, V: VictimPolicy, O: MapObserver> Dftl<M, P, V, O> {
    /// Rebuilds the device that `medium` holds. Policies and the cache start anew.
    ///
    /// # Errors
    /// Faults of the medium.
    ///
    /// # Panics
    /// If the medium does not record sequence numbers but holds data: it cannot be recovered.
    pub fn recover(
        medium: M,
        placement: P,
        victim: V,
        logical_pages: u32,
        store_options: StoreOptions,
        options: DemandOptions,
        observer: O,
    ) -> Result<Self, DeviceError> {
        let mut ftl = Self::reassemble(medium, placement, victim, logical_pages, store_options, options, observer)?;
        ftl.update_translation_pages()?;
        Ok(ftl)
    }

    /// The device as the medium tells it, without a write: translation pages may be missing or out of date.
    pub(super) fn reassemble(
        mut medium: M,
        placement: P,
        victim: V,
        logical_pages: u32,
        store_options: StoreOptions,
        options: DemandOptions,
        observer: O,
    ) -> Result<Self, DeviceError> {
        let translation_pages = options.translation_pages(logical_pages, medium.geometry().page_bytes());
        let mut found = scan(&mut medium, logical_pages, translation_pages)?;
        let directory = std::mem::take(&mut found.translation_pages);
        let (pages, mut store) = rebuild(found, medium, placement, victim, store_options);
        directory.iter().filter(|at| **at != Ppn::NONE).for_each(|at| store.adopt(*at));
        store.finish_restore()?;
        let mut ftl = Self::assemble(store, pages, store_options.floor, options, observer);
        ftl.map.directory = directory;
        Ok(ftl)
    }

    /// Writes every translation page that is missing or out of date, as far as there is room.
    pub(super) fn update_translation_pages(&mut self) -> Result<(), DeviceError> {
        // All of them are looked at before any is written: a collection that makes room reads and writes others.
        let mut outdated = Vec::new();
        for page in 0..self.map.layout.pages() {
            if self.map.directory[page as usize] == Ppn::NONE {
                outdated.push(page);
                continue;
            }
            self.map.read(page, &mut self.store, Cause::Recovery)?;
            let stale: Vec<u32> = self.map.differences(page).collect();
            if !stale.is_empty() {
                outdated.push(page);
            }
            stale.into_iter().for_each(|lpn| self.map.set_dirty(Lpn(lpn)));
        }
        for (done, page) in outdated.iter().enumerate() {
            match self.map.rewrite(*page, &mut self.store) {
                Err(error) if error.is_out_of_room() && !self.map.is_unformatted() => {
                    // A device that is worn out can be read all the same. What could not be written waits, as it does after a
                    // collection, for room that never comes.
                    outdated[done..].iter().for_each(|page| self.map.defer(*page));
                    return Ok(());
                }
                written => written?,
            }
        }
        Ok(())
    }
}
