//! When those who sync are answered.

use crate::support::gated::Gated;
use crate::support::sample::node;
use crate::support::volumes::make_on;
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, Handle, Ino, ROOT, Result, Time, WriteFlags};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{self, JoinHandle};

/// A volume with three files that have something to be synced, on a device whose flushes wait.
struct Stage {
    device: Arc<Gated>,
    volume: Arc<Volume>,
    files: [Ino; 3],
}

impl Stage {
    fn new() -> Self {
        let device = Arc::new(Gated::over(make_on(MemoryDevice::new(24 << 20), 256 << 10)));
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
