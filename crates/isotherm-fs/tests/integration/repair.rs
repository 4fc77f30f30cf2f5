//! Repairs: what is repaired is clean, and reads as before but for what was lost.

use crate::support::damage::{
    assert_repairs, errors, field, flip, forge, forge_page, forge_raw_page, metadata, position_of_page, spoil,
};
use crate::support::random::Random;
use crate::support::sample::{Sample, mount, read_all, sample};
use isotherm_fs::check::{Finding, Options, Place, Repair, check};
use isotherm_fs::format::checkpoint::Checkpoint;
use isotherm_fs::format::entry::Entry;
use isotherm_fs::format::summary::BlockName;
use isotherm_fs::log::read_superblock;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::store::Store;
use std::sync::Arc;

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

/// The root pages and the table of pages among them.
#[test]
fn a_bit_that_turned_alone_is_turned_back() {
    let golden = sample(true);
    let all = read_all(&golden.device).expect("it is whole");
    let bytes = golden.device.bytes();
    let mut random = Random(5);
    let mut mended = std::collections::BTreeSet::new();
    for (name, position) in metadata(&golden.device).1 {
        let device = Arc::new(MemoryDevice::of(bytes.clone()));
        flip(&device, u64::from(position) * 4096 + random.below(4096), random.below(8) as u32);
        if check(device.clone(), Repair::No).findings.is_empty() {
            continue;
        }
        let report = assert_repairs(&device);
        assert_eq!(report.actions.len(), 1, "{name:?}: {:#?}", report.actions);
        assert!(report.actions[0].what.contains("one bit had turned"), "{name:?}: {}", report.actions[0]);
        let mut after = read_all(&device).expect("it is whole");
        after.remove(&b"/made after the repair"[..]);
        after.insert(Vec::new(), all[&Vec::new()].clone());
        assert_eq!(after, all, "{name:?}");
        mended.insert(format!("{name:?}"));
    }
    for name in [BlockName::Table(0), BlockName::Page(0), BlockName::Page(1)] {
        assert!(mended.contains(&format!("{name:?}")), "{name:?} was not among those that were mended");
    }
    assert!(mended.len() > 20, "{mended:?}");
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
        spoil(&device, u64::from(position) * 4096 + 100);
        let before = check(device.clone(), Repair::No);
        if before.findings.is_empty() {
            continue;
        }
        if id < 2 {
            assert!(before.is_beyond_repair, "{:#?}", before.findings);
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
        let volume = mount(device.clone(), true);
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
    spoil(&device, u64::from(position_of_page(&device, leaf)) * 4096 + 2000);
    let report = assert_repairs(&device);
    let cut = report.actions.iter().find(|action| action.place == Place::Inode(large)).expect("it is told");
    assert!(cut.what.contains(&format!("{} bytes", 263 * 4096)), "{cut}");
    let volume = mount(device.clone(), true);
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

#[test]
fn what_is_wrong_in_the_tree_is_mended() {
    type Change = fn(&Sample, &mut [u8; 4096]);
    type Which = fn(&Sample) -> u64;
    let changes: [(&str, Which, Change); 10] = [
        ("links", |s| s.with_xattrs, |s, page| page[field(s.with_xattrs, 4)] = 9),
        ("parent", |s| s.inner, |s, page| page[field(s.inner, 112)] ^= 1),
        ("links of a directory", |s| s.directory, |s, page| page[field(s.directory, 4)] = 1),
        ("mode", |s| s.large, |s, page| page[field(s.large, 1)] = 0x30),
        ("kind", |s| s.large, |s, page| page[field(s.large, 1)] = 0x10),
        ("deleted", |s| s.inner, |s, page| page[field(s.inner, 0)..][..144].fill(0)),
        ("map", |s| s.large, |s, page| page[field(s.large, 100)] = 9),
        ("number of blocks", |s| s.large, |s, page| page[field(s.large, 24)] ^= 1),
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

/// Bytes of pages are others, and every checksum fits: what a fault of the program or of memory would leave.
#[test]
fn whatever_stands_in_a_page_is_found_and_mended() {
    let bytes = sample(true).device.bytes();
    let golden = Arc::new(MemoryDevice::of(bytes.clone()));
    let pages: Vec<u32> = {
        let volume = mount(golden.clone(), true);
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
            assert!(report.exit_code() <= 1, "seed {seed}: {:#?}", report.findings);
            continue;
        }
        found += 1;
        if report.exit_code() == 1 {
            assert!(!before.is_beyond_repair, "seed {seed}: {:#?}", before.findings);
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
