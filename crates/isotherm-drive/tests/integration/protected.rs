//! Drives with power-loss protection: what their write buffer holds outlives a loss of power, and a flush programs nothing.

use crate::support::journal::{Journal, Step, apply};
use crate::support::{PAGE, blank};
use isotherm::random::Random;
use isotherm_drive::image::{Disk, about, check};
use isotherm_drive::{Drive, DriveError, DriveOptions};
use isotherm_export::{ErrorKind, Export as _};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a flush may take to begin its sync.
const PATIENCE: Duration = Duration::from_secs(20);

const PROTECTED: &[&str] = &["dram.size=8KiB", "dram.power_loss_protection=true"];

fn open(disk: impl Disk) -> Result<Arc<Drive>, DriveError> {
    Drive::on(disk, DriveOptions::default()).map(Arc::new)
}

fn page_of(drive: &Arc<Drive>, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE as usize];
    drive.handle(0).read(page * PAGE, &mut bytes).unwrap();
    bytes
}

fn write(drive: &Arc<Drive>, page: u64, fill: u8) {
    drive.handle(0).write(page * PAGE, &vec![fill; PAGE as usize], false).unwrap();
}

#[test]
fn a_flush_programs_nothing_and_a_crash_loses_nothing_that_was_flushed() {
    let journal = Journal::without_steps(blank(PROTECTED));
    let drive = open(journal.clone()).unwrap();
    (0..10).for_each(|page| write(&drive, page, 7));
    drive.handle(0).flush().unwrap();
    (0..3).for_each(|page| write(&drive, page, 8));
    drive.handle(0).trim(9 * PAGE, PAGE, false).unwrap();
    drive.handle(0).flush().unwrap();
    assert_eq!(drive.totals().programs.total(), 0, "flash has not even seen the page that was trimmed");
    // As `kill -9`: nobody hands anything over.
    let crashed = Journal::without_steps(journal.bytes());
    let drive = open(crashed.clone()).unwrap();
    for page in 0..10 {
        let fill = match page {
            0..3 => 8,
            9 => 0,
            _ => 7,
        };
        assert_eq!(page_of(&drive, page), vec![fill; PAGE as usize], "page {page}");
    }
    // What the buffer held was written to flash then, and later content counts.
    assert_eq!(drive.totals().programs.total(), 9);
    write(&drive, 0, 9);
    drive.handle(0).flush().unwrap();
    drive.close().unwrap();
    drop(drive);
    assert_eq!(page_of(&open(crashed).unwrap(), 0), vec![9; PAGE as usize]);
}

/// Flash has no room for what the buffer held: it stays saved, and is read from there each time.
#[test]
fn a_worn_out_drive_keeps_what_its_buffer_held() {
    let sets = [PROTECTED, &["device.endurance=4"]].concat();
    let journal = Journal::without_steps(blank(&sets));
    let drive = open(journal.clone()).unwrap();
    let (mut random, mut held) = (Random::new(5), [0u8; 64]);
    let lost = loop {
        let (page, fill) = (random.below(64), random.below(255) as u8 + 1);
        let handle = drive.handle(0);
        match handle.write(page * PAGE, &vec![fill; PAGE as usize], false).and_then(|_| handle.flush()) {
            Ok(_) => held[page as usize] = fill,
            Err(_) => break page,
        }
    };
    drop(drive);
    let mut crashed = Journal::without_steps(journal.bytes());
    for end in 0..3 {
        let drive = open(crashed.clone()).unwrap_or_else(|error| panic!("opened {end} times: {error}"));
        for (page, fill) in (0..).zip(held).filter(|(page, _)| *page != lost) {
            assert_eq!(page_of(&drive, page), vec![fill; PAGE as usize], "page {page}, opened {end} times");
        }
        let refused = drive.handle(0).write(0, &vec![1; PAGE as usize], false).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ReadOnly, "{refused}");
        assert_eq!(drive.handle(0).trim(0, PAGE, false).unwrap_err().kind, ErrorKind::ReadOnly);
        drive.handle(0).flush().unwrap();
        match end {
            0 => drive.close().unwrap(),
            1 => drive.cut_power().unwrap(),
            _ => drop(drive),
        }
        crashed = Journal::without_steps(crashed.bytes());
    }
}

#[test]
fn a_power_cut_keeps_what_was_never_flushed() {
    let journal = Journal::without_steps(blank(PROTECTED));
    let drive = open(journal.clone()).unwrap();
    (0..40).for_each(|page| write(&drive, page, page as u8 + 1));
    drive.cut_power().unwrap();
    drop(drive);
    let drive = open(journal).unwrap();
    (0..40).for_each(|page| assert_eq!(page_of(&drive, page), vec![page as u8 + 1; PAGE as usize], "page {page}"));
}

#[test]
fn a_saved_page_that_is_damaged_is_named_and_never_replaced_by_an_older_one() {
    let journal = Journal::without_steps(blank(PROTECTED));
    let drive = open(journal.clone()).unwrap();
    for fill in [7, 8] {
        write(&drive, 5, fill);
        drive.handle(0).flush().unwrap();
    }
    // So that a record tells that page 5 was durable.
    drive.handle(0).flush().unwrap();
    let crashed = Journal::without_steps(journal.bytes());
    let frames_at = about(&crashed).unwrap().layout.frames_at as usize;
    crashed.change(|bytes| {
        let at = frames_at + bytes[frames_at..].iter().position(|byte| *byte == 8).unwrap();
        bytes[at] ^= 1;
    });
    assert_eq!(check(&crashed).unwrap().damaged_frames, [5]);
    let error = open(crashed).err().unwrap().to_string();
    assert!(error.contains("LPN 5"), "{error}");
}

/// A disk whose syncs wait until they are allowed, and say that they do.
struct Gate {
    inner: Journal,
    begun: Mutex<Sender<()>>,
    allowed: Mutex<Receiver<()>>,
}

impl Disk for Gate {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.punch(offset, length)
    }
    fn sync(&self) -> io::Result<()> {
        let _ = self.begun.lock().unwrap().send(());
        // Whoever has gone allows all.
        let _ = self.allowed.lock().unwrap().recv();
        self.inner.sync()
    }
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        self.inner.next_data(offset)
    }
}

/// Flushes of two clients, while the disk is at the first one's sync: the page that it saved is not written over.
#[test]
fn a_frame_is_not_saved_twice_between_two_syncs() {
    let before = blank(PROTECTED);
    let layout = about(&Journal::without_steps(before.clone())).unwrap().layout;
    let journal = Journal::new(before.clone());
    let (begun, begins) = channel();
    let (allow, allowed) = channel();
    let gate = Gate { inner: journal.clone(), begun: Mutex::new(begun), allowed: Mutex::new(allowed) };
    (0..2).for_each(|_| allow.send(()).unwrap());
    let drive = open(gate).unwrap();
    begins.try_iter().for_each(drop);
    let flush_version = |fill| {
        write(&drive, 0, fill);
        drive.handle(0).flush().unwrap();
    };
    std::thread::scope(|scope| {
        allow.send(()).unwrap();
        flush_version(1);
        begins.recv_timeout(PATIENCE).expect("a flush syncs");
        let first = scope.spawn(|| flush_version(2));
        begins.recv_timeout(PATIENCE).expect("a flush syncs");
        let second = scope.spawn(|| flush_version(3));
        // Long enough for the second to save its version, if it did not wait.
        std::thread::sleep(Duration::from_millis(200));
        drop(allow);
        first.join().unwrap();
        second.join().unwrap();
    });
    let mut since_sync = Vec::new();
    let mut bytes = before;
    for step in journal.steps() {
        match &step {
            Step::Write { offset, data } if (layout.saves_at..layout.saves_mirror_at).contains(offset) => {
                let frame = (offset - layout.saves_at) / (2 * data.len() as u64);
                assert!(!since_sync.contains(&frame), "frame {frame}");
                since_sync.push(frame);
            }
            Step::Sync => since_sync.clear(),
            _ => {}
        }
        apply(&mut bytes, &step);
    }
    assert_eq!(page_of(&open(Journal::without_steps(bytes)).unwrap(), 0), vec![3; PAGE as usize]);
}
