//! When those who sync are answered.

use crate::support::gated::Gated;
use crate::support::sample::node;
use crate::support::slow::Slow;
use crate::support::volumes::make_on;
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, Handle, Ino, ROOT, Result, Time, WriteFlags};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const SEGMENT_BYTES: u64 = 256 << 10;

/// A volume with three files that have something to be synced, on a device whose flushes wait.
struct Stage {
    device: Arc<Gated>,
    volume: Arc<Volume>,
    files: [Ino; 3],
}

impl Stage {
    fn new() -> Self {
        let device = Arc::new(Gated::over(make_on(MemoryDevice::new(24 << 20), SEGMENT_BYTES)));
        let volume = Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it is new").0;
        let files = [b"1", b"2", b"3"].map(|name| {
            let made = volume.make_node(Caller::default(), ROOT, name, node(FileKind::Regular)).expect("it has room");
            volume.write(made.ino, Handle::default(), 0, &[7; 4096], WriteFlags::default()).expect("it has room");
            made.ino
        });
        device.close();
        Self { device, volume: Arc::new(volume), files }
    }

    /// Syncs a file without waiting for it.
    fn sync(&self, file: usize) -> Receiver<Result<()>> {
        let (tell, told) = channel();
        self.volume.fsync_then(
            self.files[file],
            true,
            Box::new(move |done| tell.send(done).expect("it is waited for")),
        );
        told
    }

    /// Has a thread sync the first file, and waits until it flushes.
    fn sync_first(self: &Arc<Self>) -> (JoinHandle<()>, Receiver<Result<()>>) {
        let (tell, told) = channel();
        let stage = self.clone();
        let thread = thread::spawn(move || {
            let tell = move |done| tell.send(done).expect("it is waited for");
            stage.volume.fsync_then(stage.files[0], true, Box::new(tell));
        });
        self.device.wait_for(1);
        (thread, told)
    }
}

#[test]
fn a_sync_is_answered_after_the_flush_that_follows_it() {
    let stage = Arc::new(Stage::new());
    let (thread, first) = stage.sync_first();
    // Nobody waits here, and both are served by one flush after this one.
    let others = [stage.sync(1), stage.sync(2)];
    assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
    stage.device.let_one_through();
    stage.device.wait_for(2);
    assert_eq!(first.recv(), Ok(Ok(())));
    assert_eq!([0, 1].map(|other| others[other].try_recv()), [Err(TryRecvError::Empty); 2]);
    stage.device.let_one_through();
    assert_eq!(others.map(|other| other.recv()), [Ok(Ok(())); 2]);
    thread.join().expect("no panic");
}

/// Writes a file of so many segments' blocks, which nobody has synced.
fn write_file(volume: &Volume, name: &[u8], segments: u64) -> Ino {
    let made = volume.make_node(Caller::default(), ROOT, name, node(FileKind::Regular)).expect("it has room");
    let data = vec![8; (segments * SEGMENT_BYTES) as usize];
    volume.write(made.ino, Handle::default(), 0, &data, WriteFlags::default()).expect("it has room");
    made.ino
}

/// Segments that hold blocks of one group.
fn segments_of_groups(volume: &Volume) -> u64 {
    volume.figures().expect("no panic").groups.iter().map(|group| group.segments).sum()
}

#[test]
fn a_sync_writes_what_it_asks_for_however_much_of_others_waits() {
    let stage = Arc::new(Stage::new());
    write_file(&stage.volume, b"much", 4);
    stage.device.open(false);
    assert_eq!(stage.sync(0).recv(), Ok(Ok(())));
    let figures = stage.volume.figures().expect("no panic");
    assert_eq!((figures.counters.data_blocks, segments_of_groups(&stage.volume)), (1, 0));
}

#[test]
fn what_is_synced_is_written_by_groups_where_these_fill_segments() {
    let stage = Arc::new(Stage::new());
    let much = write_file(&stage.volume, b"much", 4);
    stage.device.open(false);
    assert_eq!(stage.volume.fsync(much, true), Ok(()));
    // What summaries take of four segments goes into a fifth, mixed.
    let figures = stage.volume.figures().expect("no panic");
    assert_eq!((figures.blocks_waiting, segments_of_groups(&stage.volume)), (3, 4));
}

/// A volume whose device takes so long for each write that there is time to ask for something meanwhile, and a file on it.
fn on_slow_device(pause: Duration) -> (Arc<Slow>, Volume, Ino) {
    let device = make_on(Slow::new(24 << 20, pause), SEGMENT_BYTES);
    let volume = Volume::open(device.clone(), LogSettings::default(), Time::default).expect("it is new").0;
    let small = volume.make_node(Caller::default(), ROOT, b"small", node(FileKind::Regular)).expect("it has room").ino;
    (device, volume, small)
}

#[test]
fn a_sync_is_answered_between_two_segments_of_a_checkpoint() {
    const SEGMENTS: u64 = 12;
    let (_, volume, small) = on_slow_device(Duration::from_millis(50));
    write_file(&volume, b"much", SEGMENTS);
    thread::scope(|scope| {
        let checkpoints = scope.spawn(|| volume.checkpoint());
        while segments_of_groups(&volume) == 0 {
            thread::yield_now();
        }
        assert_eq!(volume.fsync(small, true), Ok(()));
        let written = segments_of_groups(&volume);
        assert!(written < SEGMENTS, "it was answered after {written} segments");
        assert_eq!(checkpoints.join().expect("no panic"), Ok(()));
    });
    assert_eq!((segments_of_groups(&volume), volume.figures().expect("no panic").blocks_waiting), (SEGMENTS, 0));
}

#[test]
fn a_sync_is_answered_between_two_segments_that_are_discarded() {
    const SEGMENTS: u64 = 12;
    let (device, volume, small) = on_slow_device(Duration::from_millis(50));
    let much = write_file(&volume, b"much", SEGMENTS);
    volume.checkpoint().expect("it has room");
    volume.unlink(ROOT, b"much").expect("it is there");
    volume.forget(much, 1);
    let before = device.discards();
    thread::scope(|scope| {
        let checkpoints = scope.spawn(|| volume.checkpoint());
        while device.discards() == before {
            thread::yield_now();
        }
        assert_eq!(volume.fsync(small, true), Ok(()));
        let discards = device.discards() - before;
        assert!(discards < SEGMENTS, "it was answered after {discards} discards");
        assert_eq!(checkpoints.join().expect("no panic"), Ok(()));
    });
    assert!(device.discards() - before >= SEGMENTS);
}

#[test]
fn a_segment_that_a_sync_takes_before_it_is_discarded_is_not_discarded() {
    const DELETED: u64 = 60;
    let (device, volume, _) = on_slow_device(Duration::from_millis(20));
    let much = write_file(&volume, b"much", DELETED);
    let space = volume.statistics().expect("no panic");
    write_file(&volume, b"rest", space.blocks_available * 4096 / SEGMENT_BYTES);
    volume.checkpoint().expect("it has room");
    let free = u64::from(volume.figures().expect("no panic").segments_free);
    volume.unlink(ROOT, b"much").expect("it is there");
    volume.forget(much, 1);
    let before = device.discards();
    // Those that were free before are written first, then eight of those to be discarded: in the time that discarding these takes it is asked for.
    let segments = free + 8;
    assert!(2 * segments < DELETED, "{free} are free");
    let taken = thread::scope(|scope| {
        let checkpoints = scope.spawn(|| volume.checkpoint());
        while device.discards() == before {
            thread::yield_now();
        }
        let taken = write_file(&volume, b"taken", segments);
        assert_eq!(volume.fsync(taken, true), Ok(()));
        assert_eq!(checkpoints.join().expect("no panic"), Ok(()));
        taken
    });
    drop(volume);
    let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it was synced").0;
    let mut found = Vec::new();
    volume.read(taken, Handle::default(), 0, (segments * SEGMENT_BYTES) as u32, &mut found).expect("it is there");
    assert!(found.len() as u64 == segments * SEGMENT_BYTES && found.iter().all(|byte| *byte == 8));
}

#[test]
fn a_flush_that_fails_is_told_to_all_who_wait() {
    let stage = Arc::new(Stage::new());
    let (thread, first) = stage.sync_first();
    let others = [stage.sync(1), stage.sync(2)];
    stage.device.open(true);
    assert_eq!(first.recv(), Ok(Err(Errno::IO)));
    for other in others {
        assert!(other.recv().expect("it is told").is_err());
    }
    thread.join().expect("no panic");
    assert!(stage.sync(1).recv().expect("it is told").is_err(), "nothing is written any more");
}

#[test]
fn whoever_waits_while_a_volume_is_closed_is_answered() {
    let stage = Arc::new(Stage::new());
    let (thread, first) = stage.sync_first();
    let other = stage.sync(1);
    let closes = {
        let volume = stage.volume.clone();
        thread::spawn(move || volume.close())
    };
    stage.device.open(false);
    assert_eq!((first.recv(), other.recv()), (Ok(Ok(())), Ok(Ok(()))));
    thread.join().expect("no panic");
    assert_eq!(closes.join().expect("no panic"), Ok(()));
}
