//! What stands at fixed places: superblocks and checkpoints.

use super::report::{Place, Report, Severity};
use crate::device::Device;
use crate::format::superblock::{Superblock, SuperblockError};
use crate::log::{read_checkpoints, read_superblock};
use crate::store::BLOCK_BYTES;

/// Both copies of the superblock, as far as they are whole.
pub(super) fn superblocks(device: &dyn Device) -> [Result<Superblock, String>; 2] {
    let blocks = device.length() / BLOCK_BYTES as u64;
    [0, 1].map(|copy| {
        let mut block = [0; BLOCK_BYTES];
        device.read(copy * BLOCK_BYTES as u64, &mut block).map_err(|error| error.to_string())?;
        Superblock::decode(&block, blocks).map_err(|error| error.to_string())
    })
}

/// Returns the superblock, if there is one.
pub(super) fn check_superblocks(device: &dyn Device, report: &mut Report) -> Option<Superblock> {
    let superblock = match read_superblock(device) {
        Ok(superblock) => superblock,
        Err(error) => {
            let is_volume = matches!(
                error,
                crate::log::OpenError::Superblock(SuperblockError::Damaged(_) | SuperblockError::Short { .. })
            );
            let severity = if is_volume { Severity::Error } else { Severity::Operation };
            report.find(severity, Place::Device, error.to_string());
            return None;
        }
    };
    for (copy, found) in (0..).zip(superblocks(device)) {
        match found {
            Ok(found) if found == superblock => {}
            Ok(_) => report.find(Severity::Error, Place::Superblock(copy), "it is not as the other copy"),
            Err(error) => report.find(Severity::Error, Place::Superblock(copy), error),
        }
    }
    Some(superblock)
}

/// Returns whether one of them is whole.
pub(super) fn check_checkpoints(device: &dyn Device, superblock: &Superblock, report: &mut Report) -> bool {
    let found = match read_checkpoints(device, superblock) {
        Ok(found) => found,
        Err(error) => {
            report.find(Severity::Operation, Place::Device, error.to_string());
            return false;
        }
    };
    let newest = found.iter().flatten().max_by_key(|found| found.number);
    let Some(newest) = newest else {
        report.find(Severity::Error, Place::Volume, "neither checkpoint is whole");
        return false;
    };
    for (place, (found, first)) in (0..).zip(found.iter().zip(superblock.checkpoints)) {
        let what = match found {
            Some(found) if found.number % 2 == u64::from(place) => continue,
            Some(found) => format!("it has the number {}, which belongs to the other place", found.number),
            // A new volume has one.
            None if newest.number == 1 && is_empty(device, first) => continue,
            None => format!("it is damaged, or was being written when power failed; number {} is used", newest.number),
        };
        report.find(Severity::Note, Place::Checkpoint(place), what);
    }
    true
}

fn is_empty(device: &dyn Device, block: u32) -> bool {
    let mut bytes = [0; BLOCK_BYTES];
    device.read(u64::from(block) * BLOCK_BYTES as u64, &mut bytes).is_ok() && bytes.iter().all(|byte| *byte == 0)
}
