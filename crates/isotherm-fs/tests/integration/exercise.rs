//! Random requests to a volume, each compared with the model in memory; and what is there when it is mounted again.

use crate::support::volumes::make_on;
use std::sync::Arc;

use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::Time;
use isotherm_vfs::exercise::{Generator, apply, compare, compare_trees};
use isotherm_vfs::memory::MemoryFileSystem;

const DEVICE_BYTES: u64 = 96 << 20;
const OPERATIONS: usize = 2500;

fn empty() -> Arc<MemoryDevice> {
    make_on(MemoryDevice::new(DEVICE_BYTES), 512 << 10)
}

fn mount(device: &Arc<MemoryDevice>) -> Volume {
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
