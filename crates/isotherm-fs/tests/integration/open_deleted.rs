//! Full volumes of files that are all open and were deleted: nothing of them is lost, and nobody needs more room to free them than there is.

use crate::support::damage::{assert_repairs, forge, spoil};
use crate::support::failing::Failing;
use crate::support::volumes::{failure, make_on};
use isotherm_fs::check::{Repair, check};
use isotherm_fs::log::{Log, LogSettings};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::store::{Store, page_kind};
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, NewNode, ROOT, Time};
use std::sync::Arc;

/// A volume that is full of empty files, all of which are open and have been deleted, the file that `turn` says of their number at each turn.
/// Returns the volume, the files, and the blocks that were free before.
fn delete_open_files(device: Arc<MemoryDevice>, turn: impl Fn(usize, usize) -> usize) -> (Volume, Vec<u64>, u64) {
    let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it can be opened").0;
    let free = volume.statistics().expect("it answers").blocks_free;
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    let name = |file: usize| format!("file number {file}");
    let mut files = Vec::new();
    loop {
        match volume.make_node(Caller::default(), ROOT, name(files.len()).as_bytes(), node) {
            Ok(found) => files.push(found.ino),
            Err(error) => {
                assert_eq!(error, Errno::NOSPC, "{} files, {:?}", files.len(), failure(&volume));
                break;
            }
        }
    }
    let count = files.len();
    assert!(count as u64 > 11 * free, "{count} files");
    for number in 0..count {
        let gone = volume.unlink(ROOT, name(turn(number, count)).as_bytes());
        assert_eq!(gone, Ok(()), "file {number} of {count}: {:?}", failure(&volume));
    }
    (volume, files, free)
}

fn assert_free_again(volume: &Volume, free: u64) {
    assert_eq!(volume.checkpoint(), Ok(()));
    let left = volume.statistics().expect("it answers").blocks_free;
    assert!(left + free / 250 + 8 >= free, "{left} of {free} blocks are free");
    assert_eq!(volume.close(), Ok(()));
}

/// All nodes that a crash left without a name were freed before anything was written: where there were so many, the log had more to say of
/// that than there was room for, and the volume could not be mounted.
#[test]
fn a_full_volume_whose_files_were_all_open_and_deleted_is_mounted_after_a_crash() {
    let device = make_on(MemoryDevice::new(24 << 20), 256 << 10);
    // By a prime that does not divide their number, because it is larger: in no order.
    let (volume, _, free) = delete_open_files(device.clone(), |number, count| number * 7_368_787 % count);
    volume.sync().expect("the device works");
    drop(volume);
    let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it can be opened").0;
    assert_free_again(&volume, free);
}

/// Names that go give back no page of a directory before two thirds of them are gone, and nodes that are open stand on a list meanwhile:
/// where they went in the reverse order of their creation, which fills half of each of its pages, a third of them took all that may be
/// taken of the reserve.
#[test]
fn files_that_are_all_open_can_all_be_deleted_from_a_full_volume() {
    let device = make_on(MemoryDevice::new(40 << 20), 256 << 10);
    let (volume, files, free) = delete_open_files(device, |number, count| count - 1 - number);
    files.iter().for_each(|ino| volume.forget(*ino, 1));
    assert_free_again(&volume, free);
}

/// A page of a kind that the last checkpoint has, of the tree of orphans where it is one of names, is damaged for good.
fn spoil_page(device: &Arc<MemoryDevice>, kind: u8) {
    let settings = LogSettings { read_only: true, ..LogSettings::default() };
    let (mut log, _) = Log::open(device.clone(), settings).expect("it can be opened");
    // Behind the root pages.
    let mut from = 2;
    loop {
        let id = log.next_page(from).expect("it is whole").expect("there is one of the kind");
        let page = log.page(id).expect("it is whole");
        let is_of_orphans = page[8..16] == [0; 8];
        let entry = log.page_entry(id).expect("it is whole");
        if page[0] == kind && entry.is_stored() && (kind == page_kind::INODES || is_of_orphans) {
            return spoil(device, u64::from(entry.position) * 4096 + 100);
        }
        from = id + 1;
    }
}

/// A repair, too, freed all of them before anything was written, whatever it had to repair: "no segment is free for a checkpoint". Where a page of
/// the list of them was lost it also wrote the whole list anew, and listed each of them again.
#[test]
fn a_full_volume_whose_files_were_all_open_and_deleted_is_repaired() {
    type Damage = (&'static str, fn(&Arc<MemoryDevice>));
    const LIST: &str = "an index of the list";
    let device = make_on(MemoryDevice::new(24 << 20), 256 << 10);
    let (volume, files, free) = delete_open_files(device.clone(), |number, count| number * 7_368_787 % count);
    assert!(files.len() > 50_000, "{} files", files.len());
    volume.checkpoint().expect("the device works");
    drop(volume);
    let bytes = device.bytes();
    let damages: [Damage; 4] = [
        ("a count", |device| forge(device, |checkpoint| checkpoint.stored += 5)),
        ("inodes", |device| spoil_page(device, page_kind::INODES)),
        ("a leaf of the list", |device| spoil_page(device, page_kind::NAMES)),
        (LIST, |device| spoil_page(device, page_kind::NAMES_INDEX)),
    ];
    for (name, damage) in damages {
        println!("{name}: damaged");
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        damage(&device);
        if name == LIST {
            // What is done stays done, and the next repair goes on from there.
            for writes in [1, 20] {
                let failing = Arc::new(Failing::after(u64::MAX, writes, device.clone()));
                assert_eq!(check(failing, Repair::Yes).exit_code(), 8, "after {writes} writes");
            }
        }
        assert_repairs(&device);
        let volume = Volume::open(device, LogSettings::default(), Time::default).expect("it can be opened").0;
        assert_free_again(&volume, free);
    }
}
