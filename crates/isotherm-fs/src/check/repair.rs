//! Repairs, from below, each level before the one above it is looked at.

use super::log::{named_positions, place};
use super::report::{Action, Place};
use super::{Options, Repair, bits, places, settings};
use crate::device::Device;
use crate::format::summary::{BlockName, Record};
use crate::log::census::{Census, FaultKind};
use crate::log::segment_reader::SegmentReader;
use crate::log::{GivenUp, Log, OpenError, read_superblock};
use crate::store::{BLOCK_BYTES, Page, Slot, StoreError};
use crate::tree::{ROOT_PAGES, Tree};
use crate::volume::Volume;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Repairs what can be repaired. Returns what people may miss.
pub(super) fn repair(device: &Arc<dyn Device>, options: Options) -> Result<Vec<Action>, OpenError> {
    mend_superblocks(&**device)?;
    let mut actions = Vec::new();
    bits::mend_tables(&**device, &mut actions)?;
    let mut given_up = GivenUp::default();
    let (mut log, mut census) = open(device, options, &mut given_up, &mut actions)?;
    // What is mended leads to more that can be read, and mended.
    while bits::mend_blocks(&**device, &mut log, &census, &mut actions)? {
        (log, census) = open(device, options, &mut given_up, &mut actions)?;
    }
    if census.lacks_tables() {
        // Without them nobody knows what is in use, and a checkpoint would make that final.
        return Ok(actions);
    }
    log.recount(&census);
    mend_entries(&mut log, &census, &mut actions)?;
    mend_shared(&**device, &mut log, &census, &mut actions)?;
    let strays = find_strays(&**device, &mut log, &census, &mut actions)?;
    let census = log.census(false);
    log.recount(&census);
    if !strays.is_empty() {
        // Writes behind a summary that is lost would not be found either.
        log.close_segment();
    }
    for (record, position, content) in strays {
        log.adopt(&record, position, content)?;
    }
    let mut tree = Tree::open_store(log).map_err(StoreError::from)?;
    tree.set_now(options.now);
    for (place, what) in tree.repair().map_err(StoreError::from)? {
        actions.push(Action { place: place.into(), what });
    }
    let now = options.now;
    let volume = Volume::over(tree, device.clone(), false, Box::new(move || now));
    volume.recover()?;
    volume.free_unlisted()?;
    volume.close()?;
    Ok(actions)
}

/// Opens the log. What stands in the way is mended where a single bit had turned, and given up where not.
fn open(
    device: &Arc<dyn Device>,
    options: Options,
    given_up: &mut GivenUp,
    actions: &mut Vec<Action>,
) -> Result<(Log, Census), OpenError> {
    loop {
        match Log::open_without(device.clone(), settings(Repair::Yes), given_up) {
            Ok((mut log, recovery)) => {
                // Whoever reads these would get an error; a census that reads data names them, and they may be mended.
                let census = log.census(options.verifies_data || recovery.unreadable_blocks > 0);
                return Ok((log, census));
            }
            Err(OpenError::UnreadablePage { id, entry }) => {
                if bits::mend(&**device, entry)? {
                    actions.push(bits::action(Place::Page(id)));
                } else if ROOT_PAGES.contains(&id) {
                    return Err(OpenError::UnreadablePage { id, entry });
                } else {
                    // A later copy may tell all of it: if none does, the census finds that it cannot be read.
                    given_up.pages.insert(id);
                }
            }
            Err(OpenError::LostWrites(lost)) => {
                if bits::mend_summary(&**device, &read_superblock(&**device)?, &lost)? {
                    actions.push(bits::action(Place::Log));
                } else {
                    given_up.lost_writes = true;
                    let what = format!(
                        "writes {} to {} are given up: what was synced with them is lost",
                        lost.first, lost.last
                    );
                    actions.push(Action { place: Place::Log, what });
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Writes a copy of the superblock that is damaged anew.
fn mend_superblocks(device: &dyn Device) -> Result<(), StoreError> {
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
fn mend_entries(log: &mut Log, census: &Census, actions: &mut Vec<Action>) -> Result<(), StoreError> {
    let lost: HashSet<BlockName> = census.faults.iter().map(|fault| fault.name).collect();
    for fault in &census.faults {
        match (fault.name, fault.kind) {
            (_, FaultKind::Shared) => {}
            (BlockName::Page(_), kind) => lose(log, fault.name, kind == FaultKind::Unreadable, actions)?,
            (BlockName::Data(page, _), FaultKind::OutOfRange) if !lost.contains(&BlockName::Page(page)) => {
                lose(log, fault.name, false, actions)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Of entries that lead to the same block, the one that the summary of its write names is right.
fn mend_shared(
    device: &dyn Device,
    log: &mut Log,
    census: &Census,
    actions: &mut Vec<Action>,
) -> Result<(), StoreError> {
    let shared: BTreeSet<u32> =
        census.faults.iter().filter(|fault| fault.kind == FaultKind::Shared).map(|fault| fault.position).collect();
    let superblock = log.superblock().clone();
    let reader = SegmentReader::new(device, &superblock);
    let segments: BTreeSet<u32> = shared.iter().filter_map(|position| superblock.segment_of(*position)).collect();
    let mut owners: BTreeMap<u32, BlockName> = BTreeMap::new();
    for summary in segments.into_iter().flat_map(|segment| reader.summaries(segment).collect::<Vec<_>>()) {
        let named = (summary.first_block()..).zip(summary.records.iter().map(|record| record.name));
        owners.extend(named.filter(|(position, _)| shared.contains(position)));
    }
    let mut is_owned = BTreeSet::new();
    let mut others = Vec::new();
    for (entry, name) in log.names_at(&shared) {
        let position = entry.position;
        let is_owner = owners.get(&position).is_none_or(|owner| *owner == name);
        if !is_owner || !is_owned.insert(position) {
            others.push(name);
        }
    }
    others.into_iter().try_for_each(|name| lose(log, name, false, actions))
}

/// A block, what it is, and where it lies.
type Stray = (Record, u32, Arc<Page>);

/// Blocks in use that no summary names, to be written elsewhere; entries of file data that lead to something else become holes.
fn find_strays(
    device: &dyn Device,
    log: &mut Log,
    census: &Census,
    actions: &mut Vec<Action>,
) -> Result<Vec<Stray>, StoreError> {
    let superblock = log.superblock().clone();
    let mut unnamed = BTreeSet::new();
    for (number, count) in (0..).zip(&census.segments).filter(|(_, count)| count.referenced > 0) {
        let named = named_positions(device, log, number);
        if (named.len() as u32) < count.referenced {
            let first = superblock.segment_start(number);
            unnamed.extend((first..first + superblock.segment_blocks).filter(|position| !named.contains(position)));
        }
    }
    let reader = SegmentReader::new(device, &superblock);
    let mut strays = Vec::new();
    for (entry, name) in log.names_at(&unnamed) {
        let content = reader.read_blocks(entry.position, 1).ok().and_then(|mut blocks| blocks.pop());
        let whole = content.filter(|content| crc32c::crc32c(&**content) == entry.checksum);
        match whole {
            Some(content) => {
                strays.push((Record { name, heat: entry.heat, checksum: entry.checksum }, entry.position, content));
            }
            None => lose(log, name, true, actions)?,
        }
    }
    Ok(strays)
}

/// A page becomes zeros, a block of file data a hole.
fn lose(log: &mut Log, name: BlockName, is_counted: bool, actions: &mut Vec<Action>) -> Result<(), StoreError> {
    let what = match name {
        BlockName::Page(id) if !ROOT_PAGES.contains(&id) => {
            log.reset_page(id, is_counted)?;
            "what stood in it is lost"
        }
        BlockName::Data(page, index) => {
            log.drop_entry(Slot { page, index })?;
            "the block of file data is a hole now"
        }
        _ => return Ok(()),
    };
    actions.push(Action { place: place(name), what: what.into() });
    Ok(())
}
