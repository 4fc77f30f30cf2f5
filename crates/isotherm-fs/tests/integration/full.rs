//! Volumes that are kept full by writes as large as the kernel sends them: they refuse, and never break.

use crate::support::random::Random;
use crate::support::slow::Slow;
use crate::support::volumes::{failure, make_on};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::{Background, Intervals, Volume};
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, NewNode, OpenFlags, ROOT, Time, WriteFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The largest write that the kernel sends.
const REQUEST_BYTES: u64 = 1 << 20;
const FILES: u64 = 12;

fn volume(device_bytes: u64, segment_bytes: u64) -> Volume {
    volume_with(device_bytes, segment_bytes, LogSettings::default())
}

fn volume_with(device_bytes: u64, segment_bytes: u64, settings: LogSettings) -> Volume {
    let device = make_on(MemoryDevice::new(device_bytes), segment_bytes);
    Volume::open(device, settings, Time::default).expect("it can be opened").0
}

#[test]
fn a_full_volume_refuses_large_writes_and_never_breaks() {
    for (device_bytes, segment_bytes) in
        [(7 << 20, 256 << 10), (9 << 20, 256 << 10), (16 << 20, 256 << 10), (20 << 20, 512 << 10), (64 << 20, 1 << 20)]
    {
        let mut refused = 0;
        for seed in 0..20 {
            let volume = volume(device_bytes, segment_bytes);
            let free = volume.statistics().expect("it answers").blocks_free;
            let mut random = Random(seed);
            let open = |file: u64| {
                let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
                let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
                let (found, opened) =
                    volume.create(Caller::default(), ROOT, format!("f{file}").as_bytes(), node, flags)?;
                Ok::<_, Errno>((found.ino, opened.handle))
            };
            for step in 0..400 {
                let place = format!("{device_bytes} bytes, segments of {segment_bytes}, seed {seed}, step {step}");
                let file = random.below(FILES);
                let Ok((ino, handle)) = open(file) else { continue };
                let length = if random.chance(50) { REQUEST_BYTES } else { 1 + random.below(100_000) };
                let offset = random.below(device_bytes / 4);
                let written =
                    volume.write(ino, handle, offset, &vec![step as u8; length as usize], WriteFlags::default());
                refused += u32::from(written == Err(Errno::NOSPC));
                assert!(matches!(written, Ok(()) | Err(Errno::NOSPC)), "{place}: {written:?}, {:?}", failure(&volume));
                if random.chance(20) {
                    assert_eq!(volume.fsync(ino, false), Ok(()), "{place}: {:?}", failure(&volume));
                }
                volume.release(ino, handle);
                volume.forget(ino, 1);
                if random.chance(8) {
                    let gone = volume.unlink(ROOT, format!("f{file}").as_bytes());
                    assert!(matches!(gone, Ok(()) | Err(Errno::NOENT)), "{place}: {gone:?}, {:?}", failure(&volume));
                }
                if random.chance(10) {
                    assert_eq!(volume.clean_ahead(), Ok(()), "{place}");
                }
            }
            for file in 0..FILES {
                let gone = volume.unlink(ROOT, format!("f{file}").as_bytes());
                assert!(matches!(gone, Ok(()) | Err(Errno::NOENT)), "{gone:?}, {:?}", failure(&volume));
            }
            volume.close().expect("it is closed");
            let left = volume.statistics().expect("it answers").blocks_free;
            assert!(left + 2 >= free, "{left} of {free} blocks are free when everything is deleted");
        }
        assert!(refused > 20, "{device_bytes} bytes: {refused} writes were refused: the volumes were not full");
    }
}

/// A directory of hundreds of thousands of empty files once left segments nearly empty that nobody cleaned, until there was none for a
/// checkpoint: the volume, three quarters of which were free, could neither be written nor mounted any more.
#[test]
fn names_alone_fill_a_volume_and_can_all_be_deleted() {
    fill_with_names(false, Duration::ZERO);
}

/// While the thread that looks after the volume makes a checkpoint, requests go on.
#[test]
fn names_alone_fill_a_volume_that_is_looked_after() {
    fill_with_names(true, Duration::ZERO);
}

/// The longer a checkpoint takes, the more pages become dirty meanwhile: all of them have room at the next one.
#[test]
fn names_alone_fill_a_volume_on_a_slow_device() {
    fill_with_names(true, Duration::from_micros(300));
}

fn fill_with_names(is_attended: bool, pause: Duration) {
    for (device_bytes, segment_bytes, directories) in
        [(12 << 20, 256 << 10, 1), (24 << 20, 256 << 10, 1), (24 << 20, 256 << 10, 40), (32 << 20, 512 << 10, 2)]
    {
        let device = make_on(Slow::new(device_bytes, pause), segment_bytes);
        let open = || Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it can be opened").0;
        let volume = Arc::new(open());
        let look_after = |volume: &Arc<Volume>| {
            is_attended.then(|| Background::start(volume.clone(), Intervals::default()).expect("a thread"))
        };
        let background = look_after(&volume);
        let place = format!("{device_bytes} bytes, segments of {segment_bytes}, {directories} directories");
        let node = |kind| NewNode { kind, permissions: 0o755, umask: 0, device: 0 };
        let free = volume.statistics().expect("it answers").blocks_free;
        let make =
            |parent, name: String, kind| volume.make_node(Caller::default(), parent, name.as_bytes(), node(kind));
        let parents: Vec<u64> = (0..directories)
            .map(|number| make(ROOT, format!("d{number}"), FileKind::Directory).expect("there is room").ino)
            .collect();
        let mut made = 0;
        loop {
            match make(parents[made % directories], format!("file number {made}"), FileKind::Regular) {
                Ok(found) => volume.forget(found.ino, 1),
                Err(error) => {
                    assert_eq!(error, Errno::NOSPC, "{place}: {made} files, {:?}", failure(&volume));
                    break;
                }
            }
            made += 1;
        }
        let left = volume.statistics().expect("it answers").blocks_free;
        assert!(left < free / 8, "{place}: {made} files, {left} of {free} blocks are free, and it is full");
        drop(background);
        drop(volume);
        // As after a crash.
        let volume = Arc::new(open());
        let background = look_after(&volume);
        let found = (0..made).rev().filter(|file| {
            let gone = volume.unlink(parents[file % directories], format!("file number {file}").as_bytes());
            assert!(matches!(gone, Ok(()) | Err(Errno::NOENT)), "{place}: {gone:?}, {:?}", failure(&volume));
            gone.is_ok()
        });
        assert!(found.count() > made / 2, "{place}: most were durable");
        for number in 0..directories {
            volume.remove_directory(ROOT, format!("d{number}").as_bytes()).expect("it is empty");
        }
        drop(background);
        volume.close().expect("it is closed");
        let left = volume.statistics().expect("it answers").blocks_free;
        // The table of pages stays as long as it was: an entry of 16 bytes for each page.
        let table = free / 250 + 1;
        assert!(left + table + 2 >= free, "{place}: {left} of {free} blocks are free when everything is deleted");
    }
}

/// Small files that are all deleted, faster than anything is written, once made a redo log that had no room in what was free before the
/// next checkpoint: the volume, most segments of which held nothing, could not be written any more.
#[test]
fn small_files_fill_a_volume_and_are_deleted_at_once() {
    fill_with_small_files(&[(128, 256), (24, 256), (160, 256), (64, 512), (96, 1024)], 3000, false);
}

/// The same while the volume is looked after.
#[test]
fn small_files_fill_a_volume_that_is_looked_after() {
    fill_with_small_files(&[(128, 256), (8, 256), (64, 512)], 3000, true);
}

/// Files that hold nothing, more of which have room.
#[test]
fn empty_files_that_are_held_without_a_name_are_let_go_at_once() {
    fill_with_small_files(&[(32, 256)], 0, false);
}

/// On volumes of so many MiB with segments of so many KiB.
fn fill_with_small_files(shapes: &[(u64, u64)], bytes: usize, is_attended: bool) {
    for (device_mib, segment_kib) in shapes {
        let device = make_on(MemoryDevice::new(device_mib << 20), segment_kib << 10);
        let seconds = AtomicI64::new(1);
        let clock = move || Time { seconds: seconds.fetch_add(1, Ordering::Relaxed), nanoseconds: 0 };
        let volume = Arc::new(Volume::open(device, LogSettings::default(), clock).expect("it can be opened").0);
        let intervals = Intervals { write: Duration::from_millis(300), ..Intervals::default() };
        let background = is_attended.then(|| Background::start(volume.clone(), intervals).expect("a thread"));
        let free = volume.statistics().expect("it answers").blocks_free;
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let node = |kind| NewNode { kind, permissions: 0o755, umask: 0, device: 0 };
        for round in 0..2 {
            let place =
                || format!("{device_mib} MiB, segments of {segment_kib} KiB, round {round}: {:?}", failure(&volume));
            let mut files = Vec::new();
            loop {
                let name = format!("sm{}", files.len());
                let made = volume.create(Caller::default(), ROOT, name.as_bytes(), node(FileKind::Regular), flags);
                let written = made.and_then(|(found, opened)| {
                    files.push(found.ino);
                    let content = vec![1; bytes];
                    let written = volume.write(found.ino, opened.handle, 0, &content, WriteFlags::default());
                    volume.release(found.ino, opened.handle);
                    written
                });
                if let Err(error) = written {
                    assert_eq!(error, Errno::NOSPC, "{}", place());
                    break;
                }
            }
            assert!(files.len() as u64 > free / 2, "{}", place());
            // Each is read once, which sets its time of access.
            for ino in &files {
                let opened = volume.open(*ino, OpenFlags { read: true, ..OpenFlags::default() });
                volume.release(*ino, opened.expect("it is there").handle);
            }
            if round > 0 {
                assert_eq!(volume.checkpoint(), Ok(()), "{}", place());
            }
            // The kernel refers to a file until it has no name, and to one that a program has open for longer.
            let is_held = |number: usize| number % 2 < round;
            for (number, ino) in files.iter().enumerate() {
                assert_eq!(volume.unlink(ROOT, format!("sm{number}").as_bytes()), Ok(()), "file {number}, {}", place());
                if !is_held(number) {
                    volume.forget(*ino, 1);
                }
            }
            for (_, ino) in files.iter().enumerate().filter(|(number, _)| is_held(*number)) {
                volume.forget(*ino, 1);
            }
            let name = format!("d{round}");
            let made = volume.make_node(Caller::default(), ROOT, name.as_bytes(), node(FileKind::Directory));
            assert!(made.is_ok(), "{}", place());
            assert_eq!(volume.sync(), Ok(()), "{}", place());
            assert_eq!(volume.checkpoint(), Ok(()), "{}", place());
            let left = volume.statistics().expect("it answers").blocks_free;
            assert!(left + free / 250 + 8 >= free, "{left} of {free} blocks are free, {}", place());
        }
        drop(background);
        assert_eq!(volume.close(), Ok(()), "{}", device_mib);
    }
}

/// Several programs at a time fill a slow volume with files of a block or none, and delete some again; everything can be deleted in the end.
#[test]
fn a_slow_volume_that_several_fill_stays_writable() {
    const THREADS: u64 = 4;
    for device_bytes in [8 << 20, 12 << 20, 24 << 20] {
        let device = make_on(Slow::new(device_bytes, Duration::from_micros(300)), 256 << 10);
        let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it can be opened").0;
        let volume = Arc::new(volume);
        let background = Background::start(volume.clone(), Intervals::default()).expect("a thread");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let volume = &volume;
                scope.spawn(move || fill_and_delete(volume, thread, &format!("{device_bytes} bytes, thread {thread}")));
            }
        });
        drop(background);
        assert_eq!(volume.close(), Ok(()));
    }
}

fn fill_and_delete(volume: &Volume, seed: u64, place: &str) {
    let mut random = Random(seed);
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    let name = |number: u64| format!("file {seed} {number}").into_bytes();
    let (mut made, mut refused) = (0, 0);
    while refused < 200 {
        let place = format!("{place}, {made} files, {refused} refused");
        match volume.create(Caller::default(), ROOT, &name(made), node, flags) {
            Ok((found, opened)) => {
                if random.chance(30) {
                    let written = volume.write(found.ino, opened.handle, 0, &[7; 4096], WriteFlags::default());
                    let is_told = matches!(written, Ok(()) | Err(Errno::NOSPC));
                    assert!(is_told, "{place}: {written:?}, {:?}", failure(volume));
                }
                volume.release(found.ino, opened.handle);
                volume.forget(found.ino, 1);
                made += 1;
            }
            Err(error) => {
                assert_eq!(error, Errno::NOSPC, "{place}: {:?}", failure(volume));
                refused += 1;
                let gone = volume.unlink(ROOT, &name(random.below(made.max(1))));
                assert!(matches!(gone, Ok(()) | Err(Errno::NOENT)), "{place}: {gone:?}, {:?}", failure(volume));
            }
        }
    }
    for number in 0..made {
        let gone = volume.unlink(ROOT, &name(number));
        assert!(matches!(gone, Ok(()) | Err(Errno::NOENT)), "{place}, file {number}: {gone:?}, {:?}", failure(volume));
    }
}

/// Blocks that are overwritten in an order that leaves whole segments empty, so fast that no checkpoint comes between but those that the
/// log asks for.
#[test]
fn segments_that_are_empty_are_found_before_room_for_a_checkpoint_runs_out() {
    for (device_bytes, blocks, stride, clean_ahead) in [
        (96 << 20, 12_000, 7919, false),
        (64 << 20, 9_000, 7919, true),
        (64 << 20, 12_000, 1, false),
        (32 << 20, 4_000, 1013, true),
        (16 << 20, 1_800, 7, false),
    ] {
        let volume = volume(device_bytes, 256 << 10);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) = volume.create(Caller::default(), ROOT, b"f", node, flags).expect("there is room");
        let mut random = Random(1);
        for step in 0..5 * blocks {
            // Half of the time in order, half of it a few blocks again and again.
            let at = if step % (2 * blocks) < blocks { step * stride % blocks } else { random.below(blocks / 8) };
            let written = volume.write(found.ino, opened.handle, at * 4096, &[step as u8; 4096], WriteFlags::default());
            assert_eq!(written, Ok(()), "{device_bytes} bytes, step {step}: {:?}", failure(&volume));
            if clean_ahead && step % 97 == 0 {
                assert_eq!(volume.clean_ahead(), Ok(()), "{device_bytes} bytes, step {step}: {:?}", failure(&volume));
            }
        }
        volume.release(found.ino, opened.handle);
        volume.close().expect("it is closed");
    }
}

/// A volume whose files take nearly all that it offers goes on being overwritten: a few blocks often, all others now and then.
#[test]
fn a_volume_that_is_nearly_full_is_overwritten_for_ever() {
    for (device_bytes, segment_bytes, is_synced) in [
        (256 << 20, 512 << 10, false),
        (64 << 20, 256 << 10, false),
        (64 << 20, 256 << 10, true),
        (20 << 20, 256 << 10, false),
    ] {
        let volume = volume(device_bytes, segment_bytes);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) = volume.create(Caller::default(), ROOT, b"f", node, flags).expect("there is room");
        let blocks = volume.statistics().expect("it answers").blocks_free * 97 / 100;
        let mut random = Random(1);
        for step in 0..4 * blocks {
            let hot = random.chance(70);
            let at = if step < blocks { step } else { random.below(if hot { blocks / 10 } else { blocks }) };
            let written = volume.write(found.ino, opened.handle, at * 4096, &[step as u8; 4096], WriteFlags::default());
            let place = format!("{device_bytes} bytes, step {step} of {blocks} blocks, synced: {is_synced}");
            assert_eq!(written, Ok(()), "{place}: {:?}", failure(&volume));
            if is_synced && step % 8 == 0 {
                assert_eq!(volume.fsync(found.ino, false), Ok(()), "{place}: {:?}", failure(&volume));
            }
        }
        volume.release(found.ino, opened.handle);
        volume.close().expect("it is closed");
    }
}

/// Small files are made durable again and again beside one that is overwritten at random and never synced, while segments are cleaned: what
/// of that one waits fills many segments, holds a few blocks of many others, and must not take the room to clean on.
#[test]
fn files_are_synced_while_segments_are_cleaned_beside_one_that_is_not_synced() {
    const SYNCED: u64 = 3;
    for (device_bytes, share) in [(64u64 << 20, 84), (64 << 20, 65), (24 << 20, 80)] {
        let device = make_on(MemoryDevice::new(device_bytes), 256 << 10);
        let volume = Arc::new(Volume::open(device, LogSettings::default(), Time::default).expect("it can be opened").0);
        let background = Background::start(volume.clone(), Intervals::default()).expect("a thread");
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let make = |number: u64| {
            volume
                .create(Caller::default(), ROOT, format!("f{number}").as_bytes(), node, flags)
                .expect("there is room")
                .0
                .ino
        };
        let files: Vec<u64> = (0..=SYNCED).map(make).collect();
        let blocks = volume.statistics().expect("it answers").blocks_free * share / 100;
        let content = [7; 16 * 4096];
        let is_over = AtomicBool::new(false);
        let place = || format!("{device_bytes} bytes, {share} %: {:?}", failure(&volume));
        std::thread::scope(|scope| {
            for number in 1..=SYNCED {
                let (volume, file, is_over, place) = (&volume, files[number as usize], &is_over, &place);
                scope.spawn(move || {
                    let mut random = Random(number);
                    while !is_over.load(Ordering::Relaxed) {
                        let (at, length) = (random.below(100) * 4096, [80, 4800, 20_000][random.below(3) as usize]);
                        let written = volume.write(file, 0, at, &content[..length], WriteFlags::default());
                        assert_eq!(written.and_then(|()| volume.fsync(file, false)), Ok(()), "{}", place());
                        std::thread::sleep(Duration::from_micros(300));
                    }
                });
            }
            let mut random = Random(0);
            let written = (0..15_000).try_for_each(|_| {
                let length = if random.chance(50) { 4096 } else { content.len() };
                volume.write(files[0], 0, random.below(blocks) * 4096, &content[..length], WriteFlags::default())
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(written, Ok(()), "{}", place());
        });
        drop(background);
        assert_eq!(volume.close(), Ok(()));
    }
}

/// A checkpoint writes the dirty pages of the map, so that it serves several segments that were cleaned, which hold little.
#[test]
fn segments_that_hold_little_are_cleaned_several_at_a_time() {
    for settings in ["sfs", "lfs"] {
        let (device_bytes, segment_bytes) = (128u64 << 20, 256 << 10);
        let settings = LogSettings::parse(settings).expect("it is a log");
        let volume = volume_with(device_bytes, segment_bytes, settings);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) = volume.create(Caller::default(), ROOT, b"f", node, flags).expect("there is room");
        // Half of the device is in use, two fifths of that are overwritten at random.
        let blocks = device_bytes / 4096;
        let mut random = Random(1);
        let mut write = |step: u64| {
            let at = if step < blocks / 2 { step } else { random.below(blocks / 5) };
            let written = volume.write(found.ino, opened.handle, at * 4096, &[step as u8; 4096], WriteFlags::default());
            assert_eq!(written, Ok(()), "{:?}", failure(&volume));
        };
        let counters = || volume.counters().expect("it answers");
        (0..2 * blocks).for_each(&mut write);
        let before = counters();
        (2 * blocks..4 * blocks).for_each(&mut write);
        let after = counters();
        let count = |key: &str| after[key].as_u64().unwrap() - before[key].as_u64().unwrap();
        let (cleaned, checkpoints) = (count("segments_cleaned"), count("checkpoints"));
        assert!(cleaned >= 2 * checkpoints && checkpoints > 10, "{cleaned} cleaned, {checkpoints} checkpoints");
        volume.release(found.ino, opened.handle);
        volume.close().expect("it is closed");
    }
}

/// Volumes of many shapes under every victim policy: what `df` offers is written, and overwritten in different ways.
#[test]
fn volumes_of_any_shape_stay_writable_when_they_are_full() {
    let logs = ["sfs", "lfs", "lfs:victim=greedy", "sfs:victim=cost_benefit", "sfs:groups=8", "sfs:victim=greedy"];
    let shapes = if std::env::var_os("ISOTHERM_SOAK").is_some() { 600 } else { 24 };
    for seed in 0..shapes {
        let mut random = Random(seed);
        let log = logs[random.below(logs.len() as u64) as usize];
        let segment_bytes = (256 << 10) << random.below(3);
        let device_bytes = segment_bytes * (40 + random.below(200)) + random.below(segment_bytes) / 4096 * 4096;
        let mut settings = LogSettings::parse(log).expect("the registry has it");
        if random.chance(30) {
            settings.cache_bytes = 1 << 20;
        }
        let volume = volume_with(device_bytes, segment_bytes, settings);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) = volume.create(Caller::default(), ROOT, b"f", node, flags).expect("there is room");
        let percent = 85 + random.below(14);
        let blocks = volume.statistics().expect("it answers").blocks_free * percent / 100;
        let (hot_chance, hot_share) = (random.below(101), 2 + random.below(20));
        let (sync_every, longest) = ([0, 1, 8, 200][random.below(4) as usize], 1 + random.below(24));
        let cleans_ahead = random.chance(50);
        let place = format!(
            "seed {seed}: {log}, {device_bytes} bytes, segments of {segment_bytes}, {percent} % full, synced every {sync_every}"
        );
        let mut written = 0;
        let mut step = 0;
        while written < 4 * blocks {
            let region = if random.chance(hot_chance) { blocks / hot_share } else { blocks };
            let at = if written < blocks { written } else { random.below(region) };
            let count = longest.min(blocks - at);
            let content = vec![step as u8; (count * 4096) as usize];
            let result = volume.write(found.ino, opened.handle, at * 4096, &content, WriteFlags::default());
            assert_eq!(result, Ok(()), "{place}, step {step}: {:?}", failure(&volume));
            if sync_every > 0 && step % sync_every == 0 {
                assert_eq!(volume.fsync(found.ino, false), Ok(()), "{place}, step {step}: {:?}", failure(&volume));
            }
            if cleans_ahead && step % 31 == 0 {
                assert_eq!(volume.clean_ahead(), Ok(()), "{place}, step {step}: {:?}", failure(&volume));
            }
            written += count;
            step += 1;
        }
        volume.release(found.ino, opened.handle);
        volume.close().expect("it is closed");
    }
}

/// The same, while segments are cleaned ahead by a thread of its own.
#[test]
fn volumes_stay_writable_while_another_thread_cleans() {
    let shapes = if std::env::var_os("ISOTHERM_SOAK").is_some() { 300 } else { 8 };
    for seed in 0..shapes {
        let mut random = Random(seed);
        let segment_bytes = (256 << 10) << random.below(3);
        let device_bytes = segment_bytes * (100 + random.below(200));
        let volume = volume(device_bytes, segment_bytes);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) = volume.create(Caller::default(), ROOT, b"f", node, flags).expect("there is room");
        let percent = 40 + random.below(59);
        let blocks = volume.statistics().expect("it answers").blocks_free * percent / 100;
        let sync_every = [0, 8, 200][random.below(3) as usize];
        let hot_chance = random.below(101);
        let place = format!(
            "seed {seed}: {device_bytes} bytes, segments of {segment_bytes}, {percent} %, synced every {sync_every}"
        );
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(volume.clean_ahead(), Ok(()), "{place}: {:?}", failure(&volume));
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            let result: Result<(), (u64, Errno)> = (0..4 * blocks).try_for_each(|step| {
                let region = if random.chance(hot_chance) { blocks / 10 } else { blocks };
                let at = random.below(region) * 4096;
                volume
                    .write(found.ino, opened.handle, at, &[step as u8; 4096], WriteFlags::default())
                    .map_err(|error| (step, error))?;
                if sync_every > 0 && step % sync_every == 0 {
                    volume.fsync(found.ino, false).map_err(|error| (step, error))?;
                }
                Ok(())
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(result, Ok(()), "{place}: {:?}", failure(&volume));
        });
        volume.release(found.ino, opened.handle);
        assert_eq!(volume.close(), Ok(()), "{place}: {:?}", failure(&volume));
    }
}
