//! Empty volumes on small devices.

use isotherm_fs::device::Device;
use isotherm_fs::format::superblock::Superblock;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::{Volume, make};
use std::sync::Arc;

/// How a device of so many bytes is divided.
pub fn superblock(device_bytes: u64, segment_bytes: u64) -> Superblock {
    let wishes = Wishes {
        segment_bytes: Some(segment_bytes),
        erase_block_bytes: 0,
        label: "sample".into(),
        data_checksums: true,
        uuid: [9; 16],
        created_seconds: 1,
    };
    divide(device_bytes, &wishes).expect("it can be divided")
}

/// Puts an empty volume on a device.
pub fn make_on<D: Device>(device: D, segment_bytes: u64) -> Arc<D> {
    let device = Arc::new(device);
    let options = FormatOptions { hash_key: [5; 16], permissions: 0o755, ..FormatOptions::default() };
    make(device.clone(), &superblock(device.length(), segment_bytes), &options).expect("the device works");
    device
}

/// Why nothing can be written to a volume any more.
pub fn failure(volume: &Volume) -> Option<String> {
    volume.inspect(|tree| tree.store().failure().map(str::to_owned)).expect("no panic")
}
