//! Making a volume: what mkfs does.

use super::Volume;
use crate::device::Device;
use crate::format::superblock::Superblock;
use crate::log::{Log, LogSettings, OpenError};
use crate::store::{BLOCK_BYTES, StoreError};
use crate::tree::{FormatOptions, Tree};
use std::sync::Arc;

/// Makes an empty volume on `device`, as `superblock` divides it. What was there is lost.
///
/// # Errors
/// The device.
pub fn make(device: Arc<dyn Device>, superblock: &Superblock, options: &FormatOptions) -> Result<(), OpenError> {
    let write = |block: u32, bytes: &[u8]| {
        let offset = u64::from(block) * BLOCK_BYTES as u64;
        device.write(offset, bytes).map_err(|error| StoreError::Device(error.to_string()))
    };
    let flush = || device.flush().map_err(|error| StoreError::Device(error.to_string()));
    // A crash from here on leaves no volume, neither the old one nor a part of the new one.
    let nothing = [0; BLOCK_BYTES];
    for block in [0, 1, superblock.checkpoints[0], superblock.checkpoints[1]] {
        write(block, &nothing)?;
    }
    flush()?;
    let log = Log::create(device.clone(), superblock.clone(), LogSettings::default());
    let tree = Tree::format(log, options).map_err(StoreError::from)?;
    let now = options.now;
    let volume = Volume::over(tree, device.clone(), false, Box::new(move || now));
    volume.seated(|writer| volume.commit(writer, true))?;
    for copy in 0..2 {
        write(copy, &*superblock.encode())?;
    }
    flush()?;
    Ok(())
}
