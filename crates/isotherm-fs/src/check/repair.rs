//! Repairs, from below, each level before the one above it is looked at.

use super::report::{Action, Place};
use super::{Options, Repair, places, settings};
use crate::device::Device;
use crate::format::summary::BlockName;
use crate::log::census::{Census, FaultKind};
use crate::log::{Log, OpenError};
use crate::store::{BLOCK_BYTES, PageId, Slot, StoreError};
use crate::tree::{ROOT_PAGES, Tree};
use crate::volume::Volume;
use std::sync::Arc;

/// Repairs what can be repaired. Returns what people may miss.
pub(super) fn repair<D: Device>(device: &Arc<D>, options: Options) -> Result<Vec<Action>, OpenError> {
    mend_superblocks(&**device)?;
    let mut actions = Vec::new();
    let (mut log, _) = Log::open(device.clone(), settings(Repair::Yes))?;
    let census = log.census(false);
    if census.lacks_tables() {
        // Without them nobody knows what is in use, and a checkpoint would make that final.
        return Ok(actions);
    }
    log.recount(&census);
    mend_entries(&mut log, &census, &mut actions)?;
    let mut tree = Tree::open_store(log).map_err(StoreError::from)?;
    tree.set_now(options.now);
    for (place, what) in tree.repair().map_err(StoreError::from)? {
        actions.push(Action { place: place.into(), what });
    }
    let now = options.now;
    Volume::over(tree, device.clone(), false, move || now).close()?;
    Ok(actions)
}

/// Writes a copy of the superblock that is damaged anew.
fn mend_superblocks<D: Device>(device: &D) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Device(error.to_string());
    let copies = places::superblocks(device);
    let Some(whole) = copies.iter().flatten().next() else { return Ok(()) };
    for (number, copy) in (0..).zip(&copies) {
        if copy.as_ref() != Ok(whole) {
            device.write(number * BLOCK_BYTES as u64, &*whole.encode()).map_err(failed)?;
            device.flush().map_err(failed)?;
        }
    }
    Ok(())
}

/// Pages that cannot be read become zeros, blocks that lead nowhere holes: the tree then finds what it lacks. Without its root
/// pages there would be no tree, so these are left.
fn mend_entries<D: Device>(log: &mut Log<D>, census: &Census, actions: &mut Vec<Action>) -> Result<(), StoreError> {
    let is_lost = |id: PageId| census.faults.iter().any(|fault| fault.name == BlockName::Page(id));
    for fault in &census.faults {
        match fault.name {
            BlockName::Page(id) if !ROOT_PAGES.contains(&id) => {
                log.reset_page(id, fault.kind == FaultKind::Unreadable)?;
                actions.push(Action { place: Place::Page(id), what: "what stood in it is lost".into() });
            }
            BlockName::Data(page, index) if fault.kind != FaultKind::Unreadable && !is_lost(page) => {
                let slot = Slot { page, index };
                log.drop_entry(slot)?;
                actions.push(Action { place: Place::Slot(slot), what: "the block of file data is a hole now".into() });
            }
            _ => {}
        }
    }
    Ok(())
}
