//! Crashes behind checkpoints of volumes so full that requests are held back while segments are cleaned.

use crate::support::random::Random;
use crate::support::recording::{Content, Event, RecordingDevice};
use crate::support::volumes::{make_on, superblock};
use isotherm_fs::check::{Options, check};
use isotherm_fs::log::LogSettings;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Allocation, Caller, Errno, FileKind, FileSystem, Handle, Ino, NewNode, ROOT, Time, WriteFlags};
use std::sync::Arc;

const SEGMENT_BYTES: u64 = 256 << 10;
const BLOCK: u64 = 4096;

/// Fills a volume with files, and goes on writing to these at random: where there is no room, holes are punched.
fn fill_and_write(volume: &Volume, random: &mut Random, files: u64, steps: u64) {
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    let make = |number: u64| {
        let made = volume.make_node(Caller::default(), ROOT, format!("f{number}").as_bytes(), node);
        made.expect("there is room").ino
    };
    let files: Vec<Ino> = (0..files).map(make).collect();
    let free = volume.statistics().expect("it answers").blocks_free;
    let blocks_max = free / files.len() as u64;
    for _ in 0..steps {
        let file = files[random.below(files.len() as u64) as usize];
        let (at, length) = (random.below(2 * blocks_max) * BLOCK, (1 + random.below(12)) * BLOCK);
        let written = volume.write(file, Handle::default(), at, &vec![7; length as usize], WriteFlags::default());
        if written == Err(Errno::NOSPC) {
            let punched =
                volume.allocate(Caller::default(), file, Handle::default(), at, 8 * BLOCK, Allocation::PunchHole);
            assert_eq!(punched, Ok(()));
        } else {
            assert_eq!(written, Ok(()));
        }
        if random.chance(6) {
            assert_eq!(volume.fsync(file, false), Ok(()));
        }
    }
}

/// What a crash leaves is whole when it is mounted, and only a mount has to do something for that.
fn assert_whole(device_bytes: u64, content: Content, place: &str) {
    let device = Arc::new(RecordingDevice::new(device_bytes, content));
    let report = check(device.clone(), Options::default());
    assert_eq!(report.exit_code(), 0, "{place}: {:?}", report.findings);
    let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it is whole").0;
    let found = volume.inspect(|tree| tree.check()).expect("no panic").expect("memory");
    assert_eq!(found, [], "{place}");
}

/// Whatever a crash behind a checkpoint leaves is whole. Roll-forward meets none of the blocks before it: of a file that goes on being written
/// nothing counted them, once that had grown. Requests are held back for many of these checkpoints.
#[test]
fn a_crash_behind_any_checkpoint_of_a_full_volume_leaves_it_whole() {
    for (seed, device_mib, files, steps) in [(3, 8, 40, 2500), (1, 12, 150, 1200)] {
        let device_bytes = device_mib << 20;
        let start = make_on(RecordingDevice::new(device_bytes, Content::default()), SEGMENT_BYTES).parts().0;
        let device = Arc::new(RecordingDevice::new(device_bytes, start.clone()));
        let volume = Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it is new").0;
        fill_and_write(&volume, &mut Random(seed), files, steps);
        drop(volume);
        let checkpoints = superblock(device_bytes, SEGMENT_BYTES).checkpoints.map(|block| u64::from(block) * BLOCK);
        let (_, events) = device.parts();
        let mut content = start;
        let mut visited = 0;
        for (number, event) in events.iter().enumerate() {
            content.apply(event, |_| true);
            if matches!(event, Event::Write { offset, .. } if checkpoints.contains(offset)) {
                visited += 1;
                assert_whole(device_bytes, content.clone(), &format!("seed {seed}, event {number}"));
            }
        }
        assert!(visited > 100, "seed {seed}: {visited} checkpoints");
    }
}
