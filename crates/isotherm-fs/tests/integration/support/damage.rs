//! Damage to volumes, and what is expected of its repair.

use super::sample::{add, mount};
use isotherm_fs::check::{Finding, Options, Repair, Report, Severity, check};
use isotherm_fs::device::Device;
use isotherm_fs::format::checkpoint::Checkpoint;
use isotherm_fs::format::entry::Entry;
use isotherm_fs::format::summary::{BlockName, Summary, blocks};
use isotherm_fs::format::superblock::Superblock;
use isotherm_fs::log::segment_reader::SegmentReader;
use isotherm_fs::log::{Log, LogSettings, read_checkpoints, read_superblock};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::store::Store;
use isotherm_vfs::FileKind;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn flip(device: &MemoryDevice, byte: u64, bit: u32) {
    let mut content = [0];
    device.read(byte, &mut content).expect("it is within the device");
    device.write(byte, &[content[0] ^ 1 << bit]).expect("it is within the device");
}

/// Damages a block so that no checksum tells what stood there.
pub fn spoil(device: &MemoryDevice, byte: u64) {
    flip(device, byte, 0);
    flip(device, byte + 9, 5);
}

pub fn errors(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.severity > Severity::Note).collect()
}

/// A repair leaves a clean volume, and says that it has corrected something.
#[track_caller]
pub fn assert_repairs(device: &Arc<MemoryDevice>) -> Report {
    let before = check(device.clone(), Repair::No);
    assert_eq!((before.exit_code(), before.is_beyond_repair), (4, false), "{:#?}", before.findings);
    let report = check(device.clone(), Repair::Yes);
    assert_eq!(report.exit_code(), 1, "{:#?} {:#?}", report.findings, report.actions);
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{:#?}", report.findings);
    let after = check(device.clone(), Options { verifies_data: true, ..Options::default() });
    assert_eq!(after.findings, [], "after a repair");
    // It can be used.
    let volume = mount(device.clone(), false);
    add(&volume, 1, "made after the repair", FileKind::Regular);
    volume.close().expect("the device works");
    assert_eq!(check(device.clone(), Repair::No).findings, []);
    report
}

/// The newest checkpoint, and where it says that everything lies.
pub fn newest_checkpoint(device: &dyn Device) -> (Superblock, Checkpoint) {
    let superblock = read_superblock(device).expect("it is whole");
    let found = read_checkpoints(device, &superblock).expect("the device works");
    let newest = found.into_iter().flatten().max_by_key(|found| found.number).expect("there is one");
    (superblock, newest)
}

/// The writes since the last checkpoint, in order.
pub fn writes_since_checkpoint(device: &dyn Device) -> Vec<Summary> {
    let (superblock, newest) = newest_checkpoint(device);
    let reader = SegmentReader::new(device, &superblock);
    let mut writes: Vec<Summary> =
        (0..superblock.segments).flat_map(|segment| reader.scan_summaries(segment, 0)).collect();
    writes.retain(|summary| summary.incarnation == newest.incarnation && summary.sequence > newest.sequence);
    writes.sort_by_key(|summary| summary.sequence);
    writes
}

/// The newest checkpoint is another one, as a fault of the program would have left it.
pub fn forge(device: &MemoryDevice, change: impl FnOnce(&mut Checkpoint)) {
    let (superblock, mut checkpoint) = newest_checkpoint(device);
    change(&mut checkpoint);
    let place = superblock.checkpoints[(checkpoint.number % 2) as usize];
    device.write(u64::from(place) * 4096, &checkpoint.encode()).expect("it fits");
}

/// The newest copy of a page is another one, checksums included.
pub fn forge_page(device: &Arc<MemoryDevice>, id: u32, change: impl FnOnce(&mut [u8; 4096])) {
    let volume = mount(device.clone(), false);
    volume
        .inspect(|tree| {
            let store = tree.store_mut();
            store.begin(isotherm_fs::store::Purpose::Shrink).expect("it can be written");
            change(store.page_mut(id).expect("it is there"));
            store.commit();
        })
        .expect("no panic");
    volume.close().expect("the device works");
}

/// Positions of the blocks of metadata: fixed places, summaries, pages and pages of the table.
pub fn metadata(device: &MemoryDevice) -> (BTreeSet<u32>, Vec<(BlockName, u32)>) {
    let superblock = read_superblock(device).expect("it is whole");
    let found = read_checkpoints(device, &superblock).expect("the device works");
    let mut positions = BTreeSet::from([0, 1]);
    for (checkpoint, first) in found.iter().zip(superblock.checkpoints) {
        let length = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.encode().len() / 4096);
        positions.extend(first..first + length as u32);
    }
    let reader = SegmentReader::new(device, &superblock);
    let mut pages = Vec::new();
    for summary in (0..superblock.segments).flat_map(|segment| reader.summaries(segment).collect::<Vec<_>>()) {
        positions.extend(summary.position..summary.position + blocks(summary.records.len(), summary.redo.len()) as u32);
        for (position, record) in (summary.first_block()..).zip(&summary.records) {
            if !matches!(record.name, BlockName::Data(..)) {
                positions.insert(position);
                pages.push((record.name, position));
            }
        }
    }
    (positions, pages)
}

/// Where the newest durable copy of a page lies.
pub fn position_of_page(device: &Arc<MemoryDevice>, id: u32) -> u32 {
    let settings = LogSettings { read_only: true, ..LogSettings::default() };
    let (mut log, _) = Log::open(device.clone(), settings).expect("it can be opened");
    log.page_entry(id).expect("it is there").position
}

/// A page is changed where it lies, and what leads to it: its entry, the entry of its table page, the checkpoint, the summary.
pub fn forge_raw_page(device: &Arc<MemoryDevice>, id: u32, change: impl FnOnce(&mut [u8; 4096])) {
    let position = position_of_page(device, id);
    let mut page = [0; 4096];
    device.read(u64::from(position) * 4096, &mut page).expect("it is within the device");
    change(&mut page);
    device.write(u64::from(position) * 4096, &page).expect("it is within the device");
    let (_, newest) = newest_checkpoint(&**device);
    let root = newest.roots[(id / 256) as usize].entry;
    let mut table = [0; 4096];
    device.read(u64::from(root.position) * 4096, &mut table).expect("it is within the device");
    let mut entry = Entry::at(&table, (id % 256) as usize);
    entry.checksum = crc32c::crc32c(&page);
    entry.put(&mut table, (id % 256) as usize);
    device.write(u64::from(root.position) * 4096, &table).expect("it is within the device");
    forge(device, |checkpoint| checkpoint.roots[(id / 256) as usize].entry.checksum = crc32c::crc32c(&table));
}

/// Where a field of an inode's attributes stands in its page.
pub fn field(ino: u64, at: usize) -> usize {
    16 + (ino % 16 - 1) as usize * 272 + 128 + at
}
