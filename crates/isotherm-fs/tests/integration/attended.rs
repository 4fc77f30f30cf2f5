//! Volumes that a thread looks after, as when they are mounted, while others write.

use crate::support::random::Random;
use crate::support::sample::node;
use crate::support::thin::Thin;
use crate::support::volumes::make_on;
use isotherm_fs::check::{Options, check};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::{Background, Intervals, Volume};
use isotherm_vfs::{Caller, FileKind, FileSystem, Handle, ROOT, Time, WriteFlags};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;

/// Content of a block that tells which file it is of, and which of its writes.
fn content(file: u64, block: u64, version: u32) -> Vec<u8> {
    let stamp = file << 56 | block << 32 | u64::from(version);
    stamp.to_le_bytes().repeat(512)
}

/// Several threads overwrite files that fill most of a volume, and sync them now and then, while it is cleaned: everybody comes to an
/// end, and each block holds its last version. Mounted again, so does each block that was synced.
#[test]
fn who_writes_and_syncs_while_a_volume_is_cleaned_is_served() {
    let device = make_on(MemoryDevice::new(24 << 20), 256 << 10);
    let settings = || LogSettings { cache_bytes: 1 << 20, ..LogSettings::default() };
    let volume = Arc::new(Volume::open(device.clone(), settings(), Time::default).expect("it is new").0);
    let often = Intervals { write: Duration::from_millis(20), checkpoint: Duration::from_millis(300) };
    let background = Background::start(volume.clone(), often).expect("a thread");
    let free = volume.statistics().expect("no panic").blocks_free;
    let blocks = free * 85 / 100 / THREADS;
    let write = |volume: &Volume, ino, file, block, version| {
        let content = content(file, block, version);
        volume.write(ino, Handle::default(), block * 4096, &content, WriteFlags::default()).expect("it has room");
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|file| {
            let volume = volume.clone();
            thread::spawn(move || {
                let name = format!("file {file}");
                let made = volume.make_node(Caller::default(), ROOT, name.as_bytes(), node(FileKind::Regular));
                let ino = made.expect("it has room").ino;
                let mut versions = vec![0; blocks as usize];
                (0..blocks).for_each(|block| write(&volume, ino, file, block, 0));
                let mut random = Random(file + 1);
                for step in 0..4 * blocks as u32 {
                    let block = random.below(blocks);
                    versions[block as usize] = step;
                    write(&volume, ino, file, block, step);
                    if step % 50 == 0 {
                        volume.fsync(ino, true).expect("the device works");
                    }
                }
                volume.fsync(ino, true).expect("the device works");
                (ino, versions)
            })
        })
        .collect();
    let files: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let cleaned = volume.figures().expect("no panic").counters.segments_cleaned;
    assert!(cleaned > 100, "{cleaned} segments cleaned: the volume is too empty");
    drop(background);
    let holds_all = |volume: &Volume| {
        for (file, (ino, versions)) in (0..).zip(&files) {
            for (block, version) in (0..).zip(versions) {
                let mut found = Vec::new();
                volume.read(*ino, Handle::default(), block * 4096, 4096, &mut found).expect("it is there");
                assert_eq!(found[..8], content(file, block, *version)[..8], "block {block} of file {file}");
            }
        }
    };
    holds_all(&volume);
    // As a crash leaves it: everything was synced last.
    drop(volume);
    let report = check(device.clone(), Options { verifies_data: true, ..Options::default() });
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
    holds_all(&Volume::open(device, settings(), Time::default).expect("it is whole").0);
}

/// The thread may leave at once, and others go on without it.
#[test]
fn a_volume_is_written_after_nobody_looks_after_it_any_more() {
    let device = make_on(MemoryDevice::new(24 << 20), 256 << 10);
    let volume = Arc::new(Volume::open(device, LogSettings::default(), Time::default).expect("it is new").0);
    for _ in 0..20 {
        drop(Background::start(volume.clone(), Intervals::default()).expect("a thread"));
    }
    let made = volume.make_node(Caller::default(), ROOT, b"file", node(FileKind::Regular)).expect("it has room");
    // More than may wait in memory.
    for offset in 0..8 {
        let data = vec![1; 1 << 20];
        volume.write(made.ino, Handle::default(), offset << 20, &data, WriteFlags::default()).expect("it has room");
    }
    let figures = volume.figures().expect("no panic");
    assert!(figures.counters.data_blocks > 0, "nothing was written");
}

/// Rolling forward is bounded by what is written, not by the time between checkpoints alone: after 640 MiB of log there is one.
#[test]
fn a_checkpoint_comes_after_640_mib_of_log_whatever_the_time() {
    const MIB: u64 = 1 << 20;
    // So large that nothing is cleaned, for which there would be a checkpoint too.
    let device = make_on(Thin::new(4096 * MIB), MIB);
    let volume = Arc::new(Volume::open(device, LogSettings::default(), Time::default).expect("it is new").0);
    let never = Duration::from_secs(86_400);
    let background =
        Background::start(volume.clone(), Intervals { write: never, checkpoint: never }).expect("a thread");
    let made = volume.make_node(Caller::default(), ROOT, b"file", node(FileKind::Regular)).expect("it has room");
    let counters = || volume.figures().expect("no panic").counters;
    let before = counters().checkpoints;
    let mut written = 0;
    let mut write = |until: u64| {
        for part in written..until {
            let content = vec![part as u8; MIB as usize];
            volume
                .write(made.ino, Handle::default(), part * MIB, &content, WriteFlags::default())
                .expect("it has room");
        }
        written = until;
        // All of it reaches the log, which makes no checkpoint.
        volume.fsync(made.ino, true).expect("the device works");
    };
    write(610);
    // As often as the background looks, and more.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(counters().checkpoints, before, "there is a checkpoint too early");
    assert_eq!(counters().segments_cleaned, 0);
    write(660);
    let start = Instant::now();
    while counters().checkpoints == before {
        assert!(start.elapsed() < Duration::from_secs(20), "there is no checkpoint");
        thread::sleep(Duration::from_millis(20));
    }
    drop(background);
    assert_eq!((counters().checkpoints, counters().segments_cleaned), (before + 1, 0));
}
