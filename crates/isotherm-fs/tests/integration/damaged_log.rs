//! Damage in what roll-forward reads: writes that were durable are not mistaken for the torn end of the log.

use crate::support::damage::{errors, flip, position_of_page, spoil, writes_since_checkpoint};
use crate::support::sample::{add, empty, mount, open, read_all, write};
use isotherm_fs::check::{Options, Repair, check};
use isotherm_fs::format::summary::{BlockName, Summary};
use isotherm_fs::log::OpenError;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Errno, FileKind, FileSystem, Handle, Ino, ROOT};
use std::sync::Arc;

const FILES: usize = 12;
const FILE_BYTES: usize = 3 * 4096;

/// What a crash leaves after so many files were made and synced, one after the other.
struct Crashed {
    bytes: Vec<u8>,
    files: Vec<Ino>,
    /// The writes since the last checkpoint, in order.
    writes: Vec<Summary>,
}

fn crashed() -> Crashed {
    let device = empty();
    // Inodes beyond the first page, which are on the device when the last mount begins.
    let volume = mount(device.clone(), false);
    for i in 0..40 {
        add(&volume, ROOT, &format!("older {i}"), FileKind::Regular);
    }
    volume.close().expect("the device works");
    let volume = mount(device.clone(), false);
    let files = (0..FILES)
        .map(|i| {
            let ino = add(&volume, ROOT, &format!("file {i}"), FileKind::Regular);
            write(&volume, ino, 0, &[i as u8 + 1; FILE_BYTES]);
            volume.fsync(ino, false).expect("the device works");
            ino
        })
        .collect();
    drop(volume);
    let bytes = device.bytes();
    let writes = writes_since_checkpoint(&*device);
    Crashed { bytes, files, writes }
}

impl Crashed {
    fn device(&self) -> Arc<MemoryDevice> {
        Arc::new(MemoryDevice::of(self.bytes.clone()))
    }
}

/// The first byte of each file that is whole; the error of reading it.
fn read_files(volume: &Volume, files: &[Ino]) -> Vec<Result<u8, Errno>> {
    let read = |ino: &Ino| {
        let mut content = Vec::new();
        volume.read(*ino, Handle::default(), 0, FILE_BYTES as u32, &mut content)?;
        assert!(content.len() == FILE_BYTES && content.iter().all(|byte| *byte == content[0]), "file {ino}");
        Ok(content[0])
    };
    files.iter().map(read).collect()
}

fn whole() -> Vec<Result<u8, Errno>> {
    (1..=FILES as u8).map(Ok).collect()
}

#[test]
fn a_block_that_was_durable_costs_itself_alone() {
    let crashed = crashed();
    assert_eq!(read_files(&open(crashed.device(), false).expect("a crash is no damage"), &crashed.files), whole());
    let (mut lost, mut torn) = (0, 0);
    for summary in &crashed.writes {
        for (position, record) in (summary.first_block()..).zip(&summary.records) {
            let device = crashed.device();
            spoil(&device, u64::from(position) * 4096);
            let is_data = matches!(record.name, BlockName::Data(..));
            let is_last = summary.sequence == crashed.writes.last().expect("there are some").sequence;
            let report = check(device.clone(), Repair::No);
            let volume = open(device.clone(), false).expect("it can be opened");
            let found = read_files(&volume, &crashed.files);
            if is_last {
                // Nothing says that it was ever durable.
                assert_eq!((report.exit_code(), &found[..FILES - 1]), (0, &whole()[..FILES - 1]), "{record:?}");
                assert!(found[FILES - 1].is_err(), "{record:?}: the file had no name before");
                torn += 1;
                continue;
            }
            assert_eq!(report.exit_code(), if is_data { 4 } else { 0 }, "{record:?}: {:?}", report.findings);
            let wrong: Vec<_> = found.iter().zip(whole()).filter(|(found, whole)| *found != whole).collect();
            assert_eq!(wrong.len(), usize::from(is_data), "{record:?}: {found:?}");
            assert!(wrong.iter().all(|(found, _)| **found == Err(Errno::IO)), "{record:?}: {found:?}");
            let figures = volume.figures().expect("no panic");
            assert_eq!(figures.read_errors, u64::from(is_data), "{record:?}");
            assert_eq!(figures.last_read_error.is_some_and(|why| why.contains("checksum")), is_data, "{record:?}");
            lost += 1;
        }
    }
    assert!(lost >= 3 * (FILES - 1) && torn >= 3, "{lost} blocks damaged, {torn} of the last write");
}

#[test]
fn a_bit_of_such_a_block_is_turned_back() {
    let crashed = crashed();
    for summary in &crashed.writes[..crashed.writes.len() - 1] {
        let device = crashed.device();
        flip(&device, u64::from(summary.first_block()) * 4096 + 77, 3);
        let report = check(device.clone(), Repair::Yes);
        assert_eq!(report.exit_code(), 1, "{:?} {:?}", report.findings, report.actions);
        let after = check(device.clone(), Options { verifies_data: true, ..Options::default() });
        assert_eq!(after.findings, [], "write {}", summary.sequence);
        assert_eq!(read_files(&mount(device, true), &crashed.files), whole());
    }
}

#[test]
fn without_a_summary_later_writes_are_not_given_up_silently() {
    let crashed = crashed();
    let count = crashed.writes.len();
    for (index, summary) in crashed.writes.iter().enumerate() {
        let at = u64::from(summary.position) * 4096;
        let summary_bytes = 64 + 24 * summary.records.len() as u64 + summary.redo.len() as u64;
        // The last writes: of the last none says that it was durable, and of the one before only that.
        let is_known = index + 1 < count;
        for byte in (0..64).chain((64..summary_bytes).step_by(13)) {
            let device = crashed.device();
            flip(&device, at + byte, byte as u32 % 8);
            if !is_known {
                assert_eq!(check(device.clone(), Repair::No).exit_code(), 0, "byte {byte}");
                continue;
            }
            let refused = open(device.clone(), false).err();
            let refused = refused.unwrap_or_else(|| panic!("write {index} of {count}, byte {byte}: opened"));
            assert!(matches!(refused, OpenError::LostWrites(_)), "byte {byte}: {refused}");
            assert!(open(device.clone(), true).is_ok(), "what is there can be read");
            assert_eq!(check(device.clone(), Repair::No).exit_code(), 4);
            let report = check(device.clone(), Repair::Yes);
            assert_eq!(report.exit_code(), 1, "byte {byte}: {:?} {:?}", report.findings, report.actions);
            assert_eq!(read_files(&mount(device, false), &crashed.files), whole(), "write {index}, byte {byte}");
        }
        if is_known {
            let device = crashed.device();
            spoil(&device, at + 70);
            let report = check(device.clone(), Repair::Yes);
            assert_eq!(report.exit_code(), 1, "{:?} {:?}", report.findings, report.actions);
            let said = report.actions.iter().any(|action| action.what.contains("given up"));
            assert!(said, "{:?}", report.actions);
            let found = read_files(&mount(device.clone(), false), &crashed.files);
            let there = found.iter().take_while(|found| found.is_ok()).count();
            assert!(
                found[there..].iter().all(Result::is_err) && there >= index.saturating_sub(1),
                "{index}: {found:?}"
            );
            assert_eq!(check(device, Repair::No).findings, []);
        }
    }
}

#[test]
fn pages_that_roll_forward_changes_are_mended_or_given_up() {
    let device = empty();
    let volume = mount(device.clone(), false);
    let files: Vec<Ino> = (0..100).map(|i| add(&volume, ROOT, &format!("file {i}"), FileKind::Regular)).collect();
    files.iter().for_each(|ino| write(&volume, *ino, 0, b"content"));
    volume.close().expect("the device works");
    let changed = files[80];
    let page = (changed / 16) as u32;
    let at = u64::from(position_of_page(&device, page)) * 4096;
    let volume = mount(device.clone(), false);
    write(&volume, changed, 0, b"changed");
    volume.fsync(changed, false).expect("the device works");
    drop(volume);
    let bytes = device.bytes();
    let before = read_all(&device).expect("a crash is no damage");
    // Of the page as the last mount found it: its first checkpoint may have written it anew.
    for byte in (0..4096).step_by(97) {
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        flip(&device, at + byte, byte as u32 % 8);
        let refused = open(device.clone(), false).err();
        assert!(
            matches!(refused, Some(OpenError::UnreadablePage { id, .. }) if id == page),
            "byte {byte}: {refused:?}"
        );
        let report = check(device.clone(), Repair::Yes);
        assert_eq!(report.exit_code(), 1, "byte {byte}: {:?} {:?}", report.findings, report.actions);
        assert_eq!(read_all(&device).as_ref(), Ok(&before), "byte {byte}");
    }
    let device = Arc::new(MemoryDevice::of(bytes));
    spoil(&device, at + 200);
    let refused = open(device.clone(), false).expect_err("the page is changed").to_string();
    for says in [&format!("page {page},"), "fsck.sfs -y mends it, or goes on without it", "with -o ro"] {
        assert!(refused.contains(says), "{refused}");
    }
    let volume = mount(device.clone(), true);
    for ino in &files {
        let mut content = Vec::new();
        let found = volume.read(*ino, Handle::default(), 0, 7, &mut content).map(|()| content);
        assert_eq!(found.ok().as_deref(), ((ino / 16) as u32 != page).then_some(&b"content"[..]), "inode {ino}");
    }
    drop(volume);
    let report = check(device.clone(), Repair::Yes);
    assert_eq!(report.exit_code(), 1, "{:?} {:?}", report.findings, report.actions);
    assert_eq!(errors(&check(device.clone(), Repair::No)), Vec::<&isotherm_fs::check::Finding>::new());
    let after = read_all(&device).expect("it can be read");
    let lost = before.keys().filter(|name| !after.contains_key(*name)).count();
    assert!(lost <= 16, "{lost} files are gone with one page of sixteen");
}
