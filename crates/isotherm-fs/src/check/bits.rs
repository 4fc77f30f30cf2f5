//! Single bits that have turned, in a block that an entry leads to, or in a summary: its checksum tells which one.
//!
//! crc32c is linear: a block with one wrong bit has a checksum that differs from the right one by a number that belongs to the place of
//! this bit alone. An even number of wrong bits never looks like a single one, since x + 1 divides the polynomial; of odd numbers from three on
//! one in 65,536 does.

use super::log::place;
use super::report::{Action, Place};
use crate::device::Device;
use crate::format::entry::Entry;
use crate::format::summary::Summary;
use crate::format::superblock::Superblock;
use crate::log::census::{Census, FaultKind};
use crate::log::{Log, LostWrites, read_checkpoints, read_superblock};
use crate::store::{BLOCK_BYTES, Page, StoreError};
use std::ops::Range;

/// The polynomial of crc32c, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The bit that must turn for these bytes to have this checksum: its byte, and the bit of it.
fn turned_bit(bytes: &[u8], checksum: u32) -> Option<(usize, u32)> {
    let difference = crc32c::crc32c(bytes) ^ checksum;
    // What the last bit makes of the checksum, and each bit before it, one step of the register further.
    let steps =
        std::iter::successors(Some(POLYNOMIAL), |step| Some(step >> 1 ^ if step & 1 == 1 { POLYNOMIAL } else { 0 }));
    let from_end = steps.take(8 * bytes.len()).position(|step| step == difference)?;
    Some((bytes.len() - 1 - from_end / 8, 7 - from_end as u32 % 8))
}

/// The block that an entry leads to as it was before a bit of it turned; `None` if none has, or more than one.
fn mended(device: &dyn Device, entry: Entry) -> Option<Page> {
    let mut block = [0; BLOCK_BYTES];
    device.read(u64::from(entry.position) * BLOCK_BYTES as u64, &mut block).ok()?;
    let (byte, bit) = turned_bit(&block, entry.checksum)?;
    block[byte] ^= 1 << bit;
    Some(block)
}

/// Whether a single bit of the block that an entry leads to has turned.
pub(super) fn can_mend(device: &dyn Device, entry: Entry) -> bool {
    mended(device, entry).is_some()
}

/// Turns it back where it lies. Whatever a crash leaves of this write is the block of before or the right one. Returns whether there was one.
pub(super) fn mend(device: &dyn Device, entry: Entry) -> Result<bool, StoreError> {
    let failed = |error: std::io::Error| StoreError::Device(error.to_string());
    let Some(block) = mended(device, entry) else { return Ok(false) };
    device.write(u64::from(entry.position) * BLOCK_BYTES as u64, &block).map_err(failed)?;
    device.flush().map_err(failed)?;
    Ok(true)
}

/// What is said of it.
pub(super) fn action(place: Place) -> Action {
    Action { place, what: "one bit had turned, which its checksum told: it is as it was".into() }
}

/// Turns a bit of the summary back without which the log would end before writes that were durable. Returns whether there was one.
pub(super) fn mend_summary(
    device: &dyn Device,
    superblock: &Superblock,
    lost: &LostWrites,
) -> Result<bool, StoreError> {
    let failed = |error: std::io::Error| StoreError::Device(error.to_string());
    for position in lost.places.into_iter().flatten() {
        let is_it = |summary: &Summary| {
            (summary.tag, summary.incarnation, summary.sequence, summary.position)
                == (superblock.tag(), lost.incarnation, lost.first, position)
        };
        let Some(bytes) = mended_summary(device, superblock, position, is_it) else { continue };
        device.write(u64::from(position) * BLOCK_BYTES as u64, &bytes).map_err(failed)?;
        device.flush().map_err(failed)?;
        return Ok(true);
    }
    Ok(false)
}

/// The summary that begins at `position`, with one bit turned that makes it whole.
fn mended_summary(
    device: &dyn Device,
    superblock: &Superblock,
    position: u32,
    is_it: impl Fn(&Summary) -> bool,
) -> Option<Vec<u8>> {
    const MAGIC: Range<usize> = 0..4;
    const CHECKSUM: Range<usize> = 4..8;
    const COUNTS: Range<usize> = 20..28;
    let segment = superblock.segment_of(position)?;
    let room = superblock.segment_start(segment) + superblock.segment_blocks - position;
    let read = |count: usize| {
        let mut bytes = vec![0; count * BLOCK_BYTES];
        device.read(u64::from(position) * BLOCK_BYTES as u64, &mut bytes).ok()?;
        Some(bytes)
    };
    let first = read(1)?;
    // Those that tell how long it is are tried one by one, before the checksum can tell of any other.
    let tried = MAGIC.chain(COUNTS).flat_map(|byte| (0..8).map(move |bit| Some((byte, bit))));
    std::iter::once(None).chain(tried).find_map(|turned| {
        let mut block = first.clone();
        if let Some((byte, bit)) = turned {
            block[byte] ^= 1 << bit;
        }
        let (summary_blocks, records) = Summary::lengths(&block)?;
        if summary_blocks + records > room as usize {
            return None;
        }
        let mut bytes = read(summary_blocks)?;
        bytes[..BLOCK_BYTES].copy_from_slice(&block);
        if turned.is_none() {
            let checksum = u32::from_le_bytes(bytes[CHECKSUM].try_into().expect("four bytes"));
            let without: Vec<u8> = [&bytes[..CHECKSUM.start], &[0; 4], &bytes[CHECKSUM.end..]].concat();
            let right = crc32c::crc32c(&without);
            match turned_bit(&without, checksum) {
                Some((byte, bit)) => bytes[byte] ^= 1 << bit,
                None if (right ^ checksum).is_power_of_two() => bytes[CHECKSUM].copy_from_slice(&right.to_le_bytes()),
                None => return None,
            }
        }
        Summary::decode(&bytes).filter(&is_it).map(|_| bytes)
    })
}

/// Numbers and entries of the table pages of the newest checkpoint.
fn tables(device: &dyn Device) -> Result<Vec<(u32, Entry)>, StoreError> {
    let Ok(superblock) = read_superblock(device) else { return Ok(Vec::new()) };
    let found = read_checkpoints(device, &superblock)?;
    let newest = found.into_iter().flatten().max_by_key(|checkpoint| checkpoint.number);
    let entries = (0..).zip(newest.iter().flat_map(|checkpoint| &checkpoint.roots).map(|root| root.entry));
    Ok(entries.filter(|(_, entry)| superblock.segment_of(entry.position).is_some()).collect())
}

/// Whether [`mend_tables`] would find something.
pub(super) fn can_mend_tables(device: &dyn Device) -> bool {
    tables(device).is_ok_and(|tables| tables.into_iter().any(|(_, entry)| can_mend(device, entry)))
}

/// Mends the table pages of the newest checkpoint: without them the log may not open.
pub(super) fn mend_tables(device: &dyn Device, actions: &mut Vec<Action>) -> Result<(), StoreError> {
    for (number, entry) in tables(device)? {
        if mend(device, entry)? {
            actions.push(action(Place::Table(number)));
        }
    }
    Ok(())
}

/// Mends what a census could not read. Returns whether that was anything: the log must be opened anew then.
pub(super) fn mend_blocks(
    device: &dyn Device,
    log: &mut Log,
    census: &Census,
    actions: &mut Vec<Action>,
) -> Result<bool, StoreError> {
    let mut is_any = false;
    for fault in census.faults.iter().filter(|fault| fault.kind == FaultKind::Unreadable) {
        let Ok(Some(entry)) = log.entry_named(fault.name) else { continue };
        if mend(device, entry)? {
            actions.push(action(place(fault.name)));
            is_any = true;
        }
    }
    Ok(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_that_turned_is_found_wherever_it_is_and_never_in_two() {
        let right: Page = std::array::from_fn(|byte| (byte * 31 % 251) as u8);
        let checksum = crc32c::crc32c(&right);
        assert_eq!(turned_bit(&right, checksum), None);
        for (byte, bit) in (0..8 * BLOCK_BYTES).step_by(37).map(|bit| (bit / 8, bit as u32 % 8)) {
            let mut block = right;
            block[byte] ^= 1 << bit;
            assert_eq!(turned_bit(&block, checksum), Some((byte, bit)));
            block[77] ^= 1;
            assert_eq!(turned_bit(&block, checksum), None);
            // Nor in these three, as in most.
            block[3000] ^= 64;
            assert_eq!(turned_bit(&block, checksum), None);
        }
    }
}
