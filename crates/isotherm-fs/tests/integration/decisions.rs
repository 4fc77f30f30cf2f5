//! The segment machine under a file system and the one of the simulator decide the same: what the first was handed is recorded, and replayed.

use crate::support::random::Random;
use crate::support::volumes::make_on;
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::recording::recorder::{Recorder, read};
use isotherm_fs::recording::replay::{ReplayError, Replayed, replay};
use isotherm_fs::recording::{Digest, Event, Name, Scope};
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, NewNode, OpenFlags, ROOT, Time, WriteFlags};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

const DEVICE_BYTES: u64 = 24 << 20;
const SEGMENT_BYTES: u64 = 256 << 10;
const FILES: u64 = 6;
const STEPS: u32 = 700;
/// Blocks of a file that leave a third of the volume free, and that fill it.
const ROOMY: u64 = 500;
const FULL: u64 = 800;

/// Bytes that a test reads while somebody writes them.
#[derive(Clone, Default, Debug)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Mounts, works at random, unmounts if `closes`. Returns the recording and where the machine came to.
fn record(device: &Arc<MemoryDevice>, log: &str, seed: u64, blocks_of_file: u64, closes: bool) -> (Vec<u8>, Digest) {
    let settings = LogSettings { cache_bytes: 1 << 20, ..LogSettings::parse(log).expect("it is one") };
    let text = Shared::default();
    let recorder = Box::new(Recorder::new(text.clone()));
    let (volume, _) =
        Volume::open_observed(device.clone(), settings, Time::default, Some(recorder)).expect("it can be opened");
    let mut random = Random(seed);
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    for _ in 0..STEPS {
        let name = format!("f{}", random.below(FILES));
        let Ok((found, opened)) = volume.create(Caller::default(), ROOT, name.as_bytes(), node, flags) else {
            continue;
        };
        let (ino, handle) = (found.ino, opened.handle);
        for _ in 0..1 + random.below(24) {
            let hot = random.chance(75);
            let block = if hot { random.below(20) } else { random.below(blocks_of_file) };
            let length = 1 + random.below(if hot { 4096 } else { 30_000 });
            let written = volume.write(ino, handle, block * 4096, &vec![7; length as usize], WriteFlags::default());
            assert!(
                matches!(written, Ok(()) | Err(Errno::NOSPC)),
                "{log}, seed {seed}: {written:?}, {:?}",
                volume.inspect(|tree| tree.store().failure().map(str::to_owned))
            );
        }
        match random.below(40) {
            0..8 => volume.fsync(ino, random.chance(50)).expect("it is durable"),
            8 => volume.checkpoint().expect("it is durable"),
            9..14 => volume.write_groups().expect("it is written"),
            14..20 => volume.clean_ahead().expect("it is cleaned"),
            20 => volume.unlink(ROOT, name.as_bytes()).expect("it is there"),
            _ => {}
        }
        volume.release(ino, handle);
        volume.forget(ino, 1);
    }
    if closes {
        volume.close().expect("it is closed");
    }
    let digest = volume.inspect(|tree| Digest::of(tree.store().machine())).expect("no panic");
    drop(volume);
    let text = text.0.lock().expect("no panic").clone();
    (text, digest)
}

fn replayed(text: &[u8]) -> Result<Replayed, ReplayError> {
    replay(read(text))
}

fn events(text: &[u8]) -> Vec<Event> {
    read(text).map(|event| event.expect("it was recorded")).collect()
}

const LOGS: [&str; 5] = ["sfs", "sfs:groups=2,victim=greedy", "sfs:groups=6,defer=false", "lfs", "lfs:victim=greedy"];

#[test]
fn the_simulator_decides_as_the_file_system_did() {
    let (mut cleaned, mut groups) = (0, 0);
    for (log, seed) in LOGS.into_iter().zip(1..) {
        let device = make_on(MemoryDevice::new(DEVICE_BYTES), SEGMENT_BYTES);
        // Mounted again after an unmount, then after a crash: the second and the third recording begin in the middle.
        for (mount, closes) in [(0, true), (1, false), (2, true)] {
            let (text, digest) = record(&device, log, 10 * seed + mount, if mount == 2 { FULL } else { ROOMY }, closes);
            let replayed = replayed(&text).unwrap_or_else(|error| panic!("{log}, mount {mount}: {error}"));
            assert_eq!(replayed.digest, digest, "{log}, mount {mount}");
            assert_eq!(replayed.is_whole, closes, "{log}, mount {mount}");
            let events = events(&text);
            let is_seen = |what: fn(&Event) -> bool| events.iter().any(what);
            assert!(
                is_seen(|event| matches!(event, Event::Pass { scope: Scope::Chosen, .. })),
                "no fsync was recorded"
            );
            assert!(is_seen(|event| matches!(event, Event::Placed { cleaned: true, .. })), "nothing was cleaned");
            for kind in [Name::Data(0, 0), Name::Page(0), Name::Table(0)] {
                let is_of = |name: &Name| std::mem::discriminant(name) == std::mem::discriminant(&kind);
                let is_written =
                    |event: &Event| matches!(event, Event::Write { blocks, .. } if blocks.iter().any(is_of));
                assert!(events.iter().any(is_written), "{log}: no {kind:?} was written");
            }
            cleaned += replayed.victims;
            groups += events.iter().filter(|event| matches!(event, Event::Write { group: Some(1..), .. })).count();
        }
    }
    println!("{cleaned} victims, {groups} segments of a group that is not the coldest");
    assert!(cleaned > 300 && groups > 20, "{cleaned} victims, {groups} hot segments: the runs are too short");
}

#[test]
fn a_recording_that_was_changed_is_noticed() {
    let device = make_on(MemoryDevice::new(DEVICE_BYTES), SEGMENT_BYTES);
    let (text, _) = record(&device, "sfs", 5, ROOMY, true);
    let events = events(&text);
    let first = |what: &dyn Fn(&Event) -> bool| events.iter().rposition(what).expect("there is one");
    let replay_changed = |change: &dyn Fn(&mut Vec<Event>)| {
        let mut changed = events.clone();
        change(&mut changed);
        replay(changed.into_iter().map(Ok))
    };
    assert!(replay_changed(&|_| {}).is_ok());
    let tick = first(&|event| matches!(event, Event::Tick));
    assert!(replay_changed(&|events| drop(events.remove(tick))).is_err(), "a tick less");
    let victim = first(&|event| matches!(event, Event::Victim { segment: Some(_), .. }));
    let found = replay_changed(&|events| {
        if let Event::Victim { segment, .. } = &mut events[victim] {
            *segment = segment.map(|segment| segment ^ 1);
        }
    });
    assert!(matches!(found, Err(ReplayError::Differs { .. })), "another victim: {found:?}");
    let write = first(&|event| matches!(event, Event::Write { group: Some(_), .. }));
    let found = replay_changed(&|events| {
        if let Event::Write { group, .. } = &mut events[write] {
            *group = group.map(|group| group ^ 1);
        }
    });
    assert!(matches!(found, Err(ReplayError::Differs { .. })), "another group: {found:?}");
    let found = replay_changed(&|events| {
        if let Event::Start(start) = &mut events[0] {
            start.log = "lfs:victim=greedy".into();
        }
    });
    assert!(found.is_err(), "another log");
}

#[test]
fn a_recording_that_was_cut_off_is_replayed_as_far_as_it_goes() {
    let device = make_on(MemoryDevice::new(DEVICE_BYTES), SEGMENT_BYTES);
    let (text, _) = record(&device, "sfs", 6, ROOMY, true);
    let whole = replayed(&text).expect("it is whole");
    assert!(whole.is_whole);
    for length in (0..text.len()).step_by(text.len() / 200 + 1) {
        match replayed(&text[..length]) {
            Ok(part) => assert!(!part.is_whole && part.events < whole.events),
            Err(error) => {
                assert!(matches!(error, ReplayError::CutOff | ReplayError::NoStart), "{length} bytes: {error}");
            }
        }
    }
    assert!(matches!(replayed(b"{\"start\":1}\n"), Err(ReplayError::Read(_))));
    assert!(matches!(replayed(b"\"tick\"\n"), Err(ReplayError::NoStart)));
}
