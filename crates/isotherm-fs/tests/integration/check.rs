//! fsck: a volume that is in order is clean, every damage is found, and what is repaired is clean and reads as before but for what
//! was lost.

use crate::support::random::Random;
use crate::support::sample::{DEVICE_BYTES, Sample, add, empty, mount, read_all, sample, write};
use isotherm_fs::check::{Finding, Options, Place, Repair, Report, Severity, check};
use isotherm_fs::device::Device;
use isotherm_fs::format::checkpoint::Checkpoint;
use isotherm_fs::format::entry::Entry;
use isotherm_fs::format::summary::{BlockName, blocks};
use isotherm_fs::log::segment_reader::SegmentReader;
use isotherm_fs::log::{Log, LogSettings, read_checkpoints, read_superblock};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::store::Store;
use isotherm_vfs::{Caller, Change, FileKind, FileSystem, SetXattr};
use std::collections::BTreeSet;
use std::sync::Arc;

fn flip(device: &MemoryDevice, byte: u64, bit: u32) {
    let mut content = [0];
    device.read(byte, &mut content).expect("it is within the device");
    device.write(byte, &[content[0] ^ 1 << bit]).expect("it is within the device");
}

fn errors(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.severity != Severity::Note).collect()
}

/// A repair leaves a clean volume, and says that it has corrected something.
#[track_caller]
fn assert_repairs(device: &Arc<MemoryDevice>) -> Report {
    let before = check(device.clone(), Repair::No);
    assert_eq!(before.exit_code(), 4, "{:#?}", before.findings);
    let report = check(device.clone(), Repair::Yes);
    assert_eq!(report.exit_code(), 1, "{:#?} {:#?}", report.findings, report.actions);
    assert!(report.findings.iter().all(|finding| finding.is_repaired), "{:#?}", report.findings);
    let after = check(device.clone(), Options { verifies_data: true, ..Options::default() });
    assert_eq!(after.findings, [], "after a repair");
    // It can be used.
    let volume = mount(device, false);
    add(&volume, 1, "made after the repair", FileKind::Regular);
    volume.close().expect("the device works");
    assert_eq!(check(device.clone(), Repair::No).findings, []);
    report
}

/// The newest checkpoint is another one, as a fault of the program would have left it.
fn forge(device: &MemoryDevice, change: impl FnOnce(&mut Checkpoint)) {
    let superblock = read_superblock(device).expect("it is whole");
    let found = read_checkpoints(device, &superblock).expect("the device works");
    let mut checkpoint = found.into_iter().flatten().max_by_key(|found| found.number).expect("there is one");
    change(&mut checkpoint);
    let place = superblock.checkpoints[(checkpoint.number % 2) as usize];
    device.write(u64::from(place) * 4096, &checkpoint.encode()).expect("it fits");
}

/// The newest copy of a page is another one, checksums included.
fn forge_page(device: &Arc<MemoryDevice>, id: u32, change: impl FnOnce(&mut [u8; 4096])) {
    let volume = mount(device, false);
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
fn metadata(device: &MemoryDevice) -> (BTreeSet<u32>, Vec<(BlockName, u32)>) {
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
fn position_of_page(device: &Arc<MemoryDevice>, id: u32) -> u32 {
    let settings = LogSettings { read_only: true, ..LogSettings::default() };
    let (mut log, _) = Log::open(device.clone(), settings).expect("it can be opened");
    log.entry_of_page(id).expect("it is there").position
}

#[test]
fn a_volume_in_order_is_clean() {
    let device = empty();
    assert_eq!(check(device.clone(), Repair::No).findings, []);
    for closes in [true, false] {
        let Sample { device, .. } = sample(closes);
        let bytes = device.bytes();
        let report = check(device.clone(), Options { verifies_data: true, ..Options::default() });
        assert!(report.is_clean(), "{:#?}", report.findings);
        assert_eq!(report.findings.is_empty(), closes, "{:#?}", report.findings);
        assert_eq!((report.exit_code(), device.bytes() == bytes), (0, true));
        assert!(report.pages > 20 && report.data_blocks > 300, "{report:?}");
        let all = read_all(&device);
        let report = check(device.clone(), Repair::Yes);
        assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
        assert_eq!(check(device.clone(), Repair::No).findings, []);
        assert_eq!(read_all(&device), all);
    }
}

/// Random operations; the device is looked at after each fsync, as if power failed then.
#[test]
fn what_a_crash_leaves_is_clean() {
    let mut rolled_forward = 0;
    for seed in 0..6 {
        let device = empty();
        let volume = mount(&device, false);
        let mut random = Random(seed);
        let files: Vec<u64> = (0..12).map(|i| add(&volume, 1, &format!("file {i}"), FileKind::Regular)).collect();
        for step in 0..700u64 {
            let ino = files[random.below(12) as usize];
            match random.below(40) {
                0 => {
                    volume.write_groups().expect("the device works");
                    volume.clean_ahead().expect("the device works");
                }
                1 => volume.checkpoint().expect("the device works"),
                2 => {
                    let change = Change { size: Some(random.below(1 << 20)), ..Change::default() };
                    volume.change(Caller::default(), ino, change).expect("there is room");
                }
                3 => {
                    let name = format!("more {}", random.below(20));
                    match volume.unlink(1, name.as_bytes()) {
                        Ok(()) => {}
                        Err(_) => drop(add(&volume, 1, &name, FileKind::Regular)),
                    }
                }
                // Many bytes of the redo log at once.
                6..=9 => {
                    let value = vec![step as u8; random.below(50_000) as usize];
                    let how = SetXattr::default();
                    volume.set_xattr(Caller::default(), ino, b"user.value", &value, how).expect("there is room");
                }
                4 | 5 => {
                    volume.fsync(ino, false).expect("the device works");
                    let crashed = Arc::new(MemoryDevice::of(device.bytes()));
                    let report = check(crashed.clone(), Repair::No);
                    assert!(report.is_clean(), "seed {seed}, step {step}: {:#?}", report.findings);
                    rolled_forward += report.recovery.map_or(0, |recovery| recovery.writes);
                    assert_eq!(check(crashed.clone(), Repair::Yes).exit_code(), 0);
                    assert_eq!(check(crashed, Repair::No).findings, [], "seed {seed}, step {step}");
                }
                _ => {
                    let length = random.below(40_000) as usize;
                    write(&volume, ino, random.below(400_000), &vec![step as u8; length]);
                }
            }
        }
    }
    assert!(rolled_forward > 500, "{rolled_forward} writes were rolled forward");
}

#[test]
fn every_flipped_bit_of_metadata_is_found_or_does_no_harm() {
    let Sample { device, .. } = sample(true);
    let golden = read_all(&device).expect("it is whole");
    let (positions, _) = metadata(&device);
    let (mut flips, mut silent) = (0, 0);
    let mut random = Random(1);
    for position in positions {
        // What a flip comes to does not depend on where in the block it is, but for fixed places.
        for part in 0..64 {
            let byte = u64::from(position) * 4096 + part * 64 + random.below(64);
            let bit = random.below(8) as u32;
            flip(&device, byte, bit);
            let report = check(device.clone(), Repair::No);
            if report.findings.is_empty() {
                silent += 1;
                if part % 16 == 0 {
                    assert_eq!(read_all(&device).as_ref(), Ok(&golden), "byte {byte}, bit {bit}");
                }
            }
            flips += 1;
            flip(&device, byte, bit);
        }
    }
    println!("{flips} bits flipped, {silent} of them in blocks that nothing refers to");
    assert!(flips > 5000 && silent < flips / 2, "{flips} flips, {silent} silent");
}

#[test]
fn a_device_that_was_cut_or_holds_garbage_is_an_error() {
    let Sample { device, .. } = sample(true);
    let bytes = device.bytes();
    for length in [0, 4095, 8192, DEVICE_BYTES / 2, DEVICE_BYTES - (1 << 20)] {
        let cut = Arc::new(MemoryDevice::of(bytes[..length as usize].to_vec()));
        for repair in [Repair::No, Repair::Yes] {
            let report = check(cut.clone(), repair);
            assert!(report.exit_code() >= 4, "{length} bytes: {:?}", report.findings);
        }
    }
    let mut random = Random(7);
    for _ in 0..20 {
        let garbage: Vec<u8> = (0..1 << 17).flat_map(|_| random.next().to_le_bytes()).collect();
        let report = check(Arc::new(MemoryDevice::of(garbage.clone())), Repair::Yes);
        assert_eq!(report.exit_code(), 8, "{:?}", report.findings);
        // Garbage from some place on: whatever that is, it ends.
        let mut partly = bytes.clone();
        let from = random.below(DEVICE_BYTES) as usize;
        let length = garbage.len().min(partly.len() - from);
        partly[from..from + length].copy_from_slice(&garbage[..length]);
        let device = Arc::new(MemoryDevice::of(partly));
        let before = check(device.clone(), Repair::No).exit_code();
        let after = check(device.clone(), Repair::Yes);
        assert!(after.exit_code() <= before.max(1), "{from}: {before} {:#?}", after.findings);
        if after.exit_code() < 4 {
            assert_eq!(check(device, Repair::No).exit_code(), 0);
        }
    }
}

#[test]
fn a_copy_of_the_superblock_is_made_anew() {
    for copy in 0..2 {
        let Sample { device, .. } = sample(true);
        let all = read_all(&device);
        flip(&device, copy * 4096 + 70, 3);
        let report = assert_repairs(&device);
        assert_eq!(errors(&report)[0].place, Place::Superblock(copy as u8));
        assert_eq!(all.map(|all| all.len()), read_all(&device).map(|all| all.len() - 1));
    }
}

#[test]
fn a_damaged_checkpoint_is_a_note_and_two_are_the_end() {
    let Sample { device, .. } = sample(true);
    let superblock = read_superblock(&*device).expect("it is whole");
    let found = read_checkpoints(&*device, &superblock).expect("the device works");
    let older = found.iter().position(|a| a.as_ref().is_some_and(|a| !a.is_clean)).expect("one is older");
    flip(&device, u64::from(superblock.checkpoints[older]) * 4096 + 20, 1);
    let report = check(device.clone(), Repair::No);
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
    assert_eq!(report.findings[0].place, Place::Checkpoint(older as u8));
    flip(&device, u64::from(superblock.checkpoints[1 - older]) * 4096 + 20, 1);
    assert_eq!(check(device, Repair::Yes).exit_code(), 4);
}

#[test]
fn counters_are_counted_anew() {
    type Change = fn(&mut Checkpoint);
    let changes: [Change; 11] = [
        |checkpoint| checkpoint.stored += 5,
        |checkpoint| checkpoint.reserved = 0,
        |checkpoint| checkpoint.pages -= 3,
        |checkpoint| checkpoint.roots[0].used += 1,
        |checkpoint| checkpoint.segments.iter_mut().filter(|s| s.referenced > 0).for_each(|s| s.referenced += 1),
        |checkpoint| checkpoint.segments.iter_mut().filter(|s| s.referenced > 1).for_each(|s| s.referenced -= 1),
        |checkpoint| checkpoint.segments.iter_mut().filter(|s| s.writes > 0).for_each(|s| s.writes -= 1),
        |checkpoint| checkpoint.segments[3].times += 9,
        |checkpoint| checkpoint.queue.truncate(checkpoint.queue.len() - 1),
        |checkpoint| {
            let used = (0..).zip(&checkpoint.segments).find(|(_, s)| s.state == 2 && s.referenced > 0);
            let used = used.expect("something is in use").0;
            checkpoint.segments[used as usize].state = 0;
        },
        |checkpoint| checkpoint.segments.iter_mut().filter(|s| s.state == 2).for_each(|s| s.state = 1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let Sample { device, .. } = sample(true);
        let all = read_all(&device);
        forge(&device, change);
        println!("change {number}");
        assert_repairs(&device);
        let mut after = read_all(&device).expect("it is whole");
        after.remove(&b"/made after the repair"[..]);
        let root = after.insert(Vec::new(), String::new());
        let mut all = all.expect("it is whole");
        assert_ne!(all.insert(Vec::new(), String::new()), root, "its times differ");
        assert_eq!(after, all, "change {number}");
    }
}

#[test]
fn every_page_that_is_lost_leaves_a_volume_that_can_be_used() {
    let golden = sample(true);
    let bytes = golden.device.bytes();
    let (_, pages) = metadata(&golden.device);
    let (mut lost, mut gone) = (0, 0);
    for (name, position) in pages {
        let BlockName::Page(id) = name else { continue };
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        flip(&device, u64::from(position) * 4096 + 100, 0);
        let before = check(device.clone(), Repair::No);
        if before.findings.is_empty() {
            continue;
        }
        if id < 2 {
            assert_eq!(check(device, Repair::Yes).exit_code(), 4);
            continue;
        }
        let report = assert_repairs(&device);
        assert!(!report.actions.is_empty(), "page {id}: {:#?}", report.findings);
        lost += 1;
        gone += report.actions.iter().filter(|action| action.what.contains("which there is not")).count();
    }
    assert!(lost > 20 && gone > 10, "{lost} pages were lost, and {gone} names");
}

#[test]
fn a_file_whose_map_is_damaged_is_cut_and_the_report_says_so() {
    let Sample { device, large, .. } = sample(true);
    let leaf = {
        let volume = mount(&device, true);
        volume
            .inspect(|tree| {
                let store = tree.store_mut();
                let mut id = 0;
                // The second leaf: entries of the blocks from 8 + 255 on.
                while let Some(found) = store.next_page(id).expect("it is whole") {
                    let page = store.page(found).expect("it is whole");
                    if page[0] == 1 && page[4] == 1 && page[8..16] == large.to_le_bytes() {
                        return found;
                    }
                    id = found + 1;
                }
                panic!("the file has a second leaf")
            })
            .expect("no panic")
    };
    flip(&device, u64::from(position_of_page(&device, leaf)) * 4096 + 2000, 5);
    let report = assert_repairs(&device);
    let cut = report.actions.iter().find(|action| action.place == Place::Inode(large)).expect("it is told");
    assert!(cut.what.contains(&format!("{} bytes", 263 * 4096)), "{cut}");
    let volume = mount(&device, true);
    let attributes = volume.inspect(|tree| tree.attributes(large).expect("it is there")).expect("no panic");
    assert_eq!(attributes.size, 263 * 4096);
    let content = volume.inspect(|tree| tree.read(large, 0, 263 * 4096).expect("it is there")).expect("no panic");
    assert_eq!(content[3 * 4096], 4 - 1);
    assert!(content[3 * 4096..4 * 4096].iter().all(|byte| *byte == 3));
}

#[test]
fn blocks_that_no_summary_names_are_written_anew() {
    let Sample { device, .. } = sample(true);
    let all = read_all(&device).expect("it is whole");
    let bytes = device.bytes();
    let superblock = read_superblock(&*device).expect("it is whole");
    let mut rewritten = 0;
    for segment in 0..superblock.segments {
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        let position = superblock.segment_start(segment);
        flip(&device, u64::from(position) * 4096 + 17, 0);
        if check(device.clone(), Repair::No).findings.is_empty() {
            continue;
        }
        let report = assert_repairs(&device);
        assert!(report.findings.iter().all(|finding| finding.place == Place::Segment(segment)), "{report:#?}");
        let mut after = read_all(&device).expect("it is whole");
        after.remove(&b"/made after the repair"[..]);
        after.insert(Vec::new(), all[&Vec::new()].clone());
        assert_eq!(after, all);
        rewritten += 1;
    }
    assert!(rewritten > 5, "{rewritten} segments were in use");
}

#[test]
fn entries_that_lead_astray_become_holes() {
    for (position, kind) in [(u32::MAX - 1, "out of the volume"), (3, "out of the volume"), (0, "something else")] {
        let Sample { device, large, .. } = sample(true);
        let id = (large / 16) as u32;
        let first = 1 + (large % 16 - 1) as usize * 17;
        let superblock = read_superblock(&*device).expect("it is whole");
        forge_raw_page(&device, id, |page| {
            let mut entry = Entry::at(page, first);
            let other = Entry::at(page, first + 3).position;
            assert!(superblock.segment_of(other).is_some());
            entry.position = if position == 0 { other } else { position };
            entry.put(page, first);
        });
        let report = assert_repairs(&device);
        let is_told = |finding: &&Finding| finding.what.contains(kind) && matches!(finding.place, Place::Slot(_));
        assert!(report.findings.iter().any(|finding| is_told(&finding)), "{:#?}", report.findings);
    }
}

/// A page is changed where it lies, and what leads to it: its entry, the entry of its table page, the checkpoint, the summary.
fn forge_raw_page(device: &Arc<MemoryDevice>, id: u32, change: impl FnOnce(&mut [u8; 4096])) {
    let position = position_of_page(device, id);
    let superblock = read_superblock(&**device).expect("it is whole");
    let mut page = [0; 4096];
    device.read(u64::from(position) * 4096, &mut page).expect("it is within the device");
    change(&mut page);
    device.write(u64::from(position) * 4096, &page).expect("it is within the device");
    let found = read_checkpoints(&**device, &superblock).expect("the device works");
    let newest = found.into_iter().flatten().max_by_key(|found| found.number).expect("there is one");
    let root = newest.roots[(id / 256) as usize].entry;
    let mut table = [0; 4096];
    device.read(u64::from(root.position) * 4096, &mut table).expect("it is within the device");
    let mut entry = Entry::at(&table, (id % 256) as usize);
    entry.checksum = crc32c::crc32c(&page);
    entry.put(&mut table, (id % 256) as usize);
    device.write(u64::from(root.position) * 4096, &table).expect("it is within the device");
    forge(device, |checkpoint| checkpoint.roots[(id / 256) as usize].entry.checksum = crc32c::crc32c(&table));
}

#[test]
fn what_is_wrong_in_the_tree_is_mended() {
    type Change = fn(&Sample, &mut [u8; 4096]);
    type Which = fn(&Sample) -> u64;
    let changes: [(&str, Which, Change); 9] = [
        ("links", |s| s.with_xattrs, |s, page| page[field(s.with_xattrs, 4)] = 9),
        ("parent", |s| s.inner, |s, page| page[field(s.inner, 112)] ^= 1),
        ("links of a directory", |s| s.directory, |s, page| page[field(s.directory, 4)] = 1),
        ("mode", |s| s.large, |s, page| page[field(s.large, 1)] = 0x30),
        ("kind", |s| s.large, |s, page| page[field(s.large, 1)] = 0x10),
        ("deleted", |s| s.inner, |s, page| page[field(s.inner, 0)..][..144].fill(0)),
        ("blocks", |s| s.large, |s, page| page[field(s.large, 100)] = 9),
        ("target", |s| s.link, |s, page| page[field(s.link, 16)] ^= 1),
        ("ring", |_| 16, |_, page| page[8] ^= 3),
    ];
    for (name, ino, change) in changes {
        let sample = sample(true);
        println!("{name}");
        forge_page(&sample.device, (ino(&sample) / 16) as u32, |page| change(&sample, page));
        assert_repairs(&sample.device);
    }
}

/// Where a field of an inode's attributes stands in its page.
fn field(ino: u64, at: usize) -> usize {
    16 + (ino % 16 - 1) as usize * 272 + 128 + at
}

#[test]
fn nodes_without_a_name_are_found_again() {
    let sample = sample(true);
    // The directory leads to no names any more.
    forge_page(&sample.device, (sample.directory / 16) as u32, |page| {
        page[field(sample.directory, 96)..][..4].fill(0);
        page[field(sample.directory, 16)..][..8].fill(0);
    });
    let report = assert_repairs(&sample.device);
    assert!(report.actions.len() > 50, "{:#?}", report.actions);
    let all = read_all(&sample.device).expect("it is whole");
    let large = format!("/lost+found/#{}/large", sample.inner).into_bytes();
    assert!(
        all.contains_key(&large),
        "{:?}",
        all.keys().map(|path| path.escape_ascii().to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn damaged_data_is_found_where_it_is_asked_for() {
    let Sample { device, large, .. } = sample(true);
    let position = {
        let volume = mount(&device, true);
        let plan = volume.inspect(|tree| tree.read_plan(large, 0, 4096).expect("it is there")).expect("no panic");
        match &plan.pieces[0] {
            isotherm_fs::tree::Piece::Stored { blocks, .. } => blocks[0].position,
            other => panic!("{other:?}"),
        }
    };
    flip(&device, u64::from(position) * 4096, 0);
    assert_eq!(check(device.clone(), Repair::No).findings, []);
    let report = check(device, Options { verifies_data: true, ..Options::default() });
    assert_eq!((report.exit_code(), report.findings.len()), (4, 1), "{:#?}", report.findings);
}

/// Bytes of pages are others, and every checksum fits: what a fault of the program or of memory would leave.
#[test]
fn whatever_stands_in_a_page_is_found_and_mended() {
    let bytes = sample(true).device.bytes();
    let golden = Arc::new(MemoryDevice::of(bytes.clone()));
    let pages: Vec<u32> = {
        let volume = mount(&golden, true);
        volume
            .inspect(|tree| {
                let mut all = Vec::new();
                while let Some(id) = tree.store_mut().next_page(all.last().map_or(0, |id| id + 1)).expect("whole") {
                    all.push(id);
                }
                all
            })
            .expect("no panic")
    };
    let rounds = if std::env::var_os("ISOTHERM_SOAK").is_some() { 100_000 } else { 600 };
    let (mut found, mut mended) = (0, 0);
    for seed in 0..rounds {
        let mut random = Random(seed);
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        for _ in 0..=random.below(3) {
            let id = pages[random.below(pages.len() as u64) as usize];
            forge_raw_page(&device, id, |page| {
                for _ in 0..=random.below(4) {
                    // Headers more often than the rest.
                    let at = if random.chance(40) { random.below(32) } else { random.below(4096) };
                    page[at as usize] = if random.chance(50) { random.next() as u8 } else { random.below(8) as u8 };
                }
            });
        }
        let before = check(device.clone(), Repair::No);
        let report = check(device.clone(), Repair::Yes);
        if before.exit_code() == 0 {
            assert_eq!(report.exit_code(), 0, "seed {seed}: {:#?}", report.findings);
            continue;
        }
        found += 1;
        if report.exit_code() == 1 {
            mended += 1;
            let options = Options { verifies_data: false, ..Options::default() };
            assert_eq!(check(device.clone(), options).findings, [], "seed {seed}");
            let _ = read_all(&device);
        } else {
            println!("seed {seed}: {:?}", report.findings.iter().filter(|f| !f.is_repaired).collect::<Vec<_>>());
        }
    }
    println!("{found} of {rounds} were found, {mended} of them mended");
    assert!(found > rounds / 3 && mended > found / 10 * 9, "{found} of {rounds} were found, {mended} of them mended");
}
