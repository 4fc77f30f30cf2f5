//! Random requests to a volume, each compared with the model in memory; and what is there when it is mounted again.

use std::sync::Arc;

use isotherm_fs::device::Device;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::{Volume, make};
use isotherm_vfs::Time;
use isotherm_vfs::exercise::{Generator, apply, compare, compare_trees};
use isotherm_vfs::memory::MemoryFileSystem;

const DEVICE_BYTES: u64 = 96 << 20;
const OPERATIONS: usize = 2500;

fn empty() -> Arc<MemoryDevice> {
    let wishes = Wishes {
        segment_bytes: Some(512 << 10),
        erase_block_bytes: 0,
        label: "exercise".into(),
        data_checksums: true,
        uuid: [3; 16],
        created_seconds: 1,
    };
    let device = Arc::new(MemoryDevice::new(DEVICE_BYTES));
    let superblock = divide(device.length(), &wishes).expect("it can be divided");
    let options = FormatOptions { hash_key: [5; 16], permissions: 0o755, ..FormatOptions::default() };
    make(&device, &superblock, &options).expect("the device works");
    device
}

fn mount(device: &Arc<MemoryDevice>) -> Volume<MemoryDevice> {
    let settings = LogSettings { cache_bytes: 4 << 20, ..LogSettings::default() };
    Volume::open(device.clone(), settings, Time::default).expect("it can be opened").0
}

#[test]
fn a_volume_answers_as_the_model_does() {
    for seed in 0..12 {
        let operations = || {
            let generator = if seed % 3 == 0 { Generator::new(seed) } else { Generator::with_small_files(seed) };
            generator.take(OPERATIONS)
        };
        let (device, model) = (empty(), MemoryFileSystem::default());
        let volume = mount(&device);
        compare(&volume, &model, operations(), 100).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        volume.close().unwrap();
        drop(volume);
        let volume = mount(&device);
        compare_trees(&volume, &model).unwrap_or_else(|error| panic!("seed {seed}, mounted again: {error}"));

        for operation in operations().take(200) {
            assert_eq!(apply(&volume, &operation), apply(&model, &operation), "seed {seed}: {operation:?}");
        }
    }
}
