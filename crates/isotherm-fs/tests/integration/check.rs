//! fsck: a volume that is in order is clean, and every damage is found.

use crate::support::damage::{flip, metadata, spoil};
use crate::support::failing::Failing;
use crate::support::random::Random;
use crate::support::sample::{DEVICE_BYTES, Sample, add, empty, mount, read_all, sample, write};
use isotherm_fs::check::{Options, Place, Repair, check};
use isotherm_fs::log::{read_checkpoints, read_superblock};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_vfs::{Caller, Change, FileKind, FileSystem, SetXattr};
use std::sync::Arc;

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
        assert_eq!((report.exit_code(), report.has_crashed(), device.bytes() == bytes), (0, !closes, true));
        assert!(report.pages > 20 && report.data_blocks > 300, "{report:?}");
        let all = read_all(&device);
        let report = check(device.clone(), Repair::Yes);
        assert_eq!((report.exit_code(), report.has_crashed()), (0, false), "{:#?}", report.findings);
        assert!(!report.findings.iter().any(|finding| finding.to_string().contains("repaired")));
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
        let volume = mount(device.clone(), false);
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
fn a_damaged_checkpoint_is_a_note_and_two_are_the_end() {
    let Sample { device, .. } = sample(true);
    let superblock = read_superblock(&*device).expect("it is whole");
    let found = read_checkpoints(&*device, &superblock).expect("the device works");
    let older = found.iter().position(|a| a.as_ref().is_some_and(|a| !a.is_clean)).expect("one is older");
    flip(&device, u64::from(superblock.checkpoints[older]) * 4096 + 20, 1);
    let report = check(device.clone(), Repair::No);
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
    assert_eq!(report.findings[0].place, Place::Checkpoint(older as u8));
    let repaired = Arc::new(MemoryDevice::of(device.bytes()));
    let report = check(repaired.clone(), Repair::Yes);
    assert!(
        report.exit_code() == 1 && report.findings[0].to_string().ends_with("(repaired)"),
        "{:#?}",
        report.findings
    );
    assert_eq!(check(repaired, Repair::No).findings, []);
    flip(&device, u64::from(superblock.checkpoints[1 - older]) * 4096 + 20, 1);
    assert!(check(device.clone(), Repair::No).is_beyond_repair);
    assert_eq!(check(device, Repair::Yes).exit_code(), 4);
}

#[test]
fn damaged_data_is_found_where_it_is_asked_for() {
    let Sample { device, large, .. } = sample(true);
    let position = {
        let volume = mount(device.clone(), true);
        let plan = volume.inspect(|tree| tree.read_plan(large, 0, 4096, true).expect("it is there")).expect("no panic");
        match &plan.pieces[0] {
            isotherm_fs::tree::Piece::Stored { blocks, .. } => blocks[0].position,
            other => panic!("{other:?}"),
        }
    };
    let at = u64::from(position) * 4096;
    let options = Options { verifies_data: true, ..Options::default() };
    let golden = read_all(&device).expect("it is whole");
    flip(&device, at, 0);
    assert_eq!(check(device.clone(), Repair::No).findings, []);
    let report = check(device.clone(), options);
    assert_eq!((report.exit_code(), report.findings.len()), (4, 1), "{:#?}", report.findings);
    // One bit is turned back; of two nobody knows which they were, and no other content takes their place.
    let repaired = check(device.clone(), Options { repair: Repair::Yes, ..options });
    assert_eq!((repaired.exit_code(), repaired.actions.len()), (1, 1), "{:#?}", repaired.findings);
    assert_eq!(read_all(&device), Ok(golden));
    spoil(&device, at);
    assert_eq!(check(device, Options { repair: Repair::Yes, ..options }).exit_code(), 4);
}

#[test]
fn a_device_that_fails_is_never_a_clean_volume() {
    let Sample { device, .. } = sample(true);
    for reads in 0..40 {
        let failing = |reads| Arc::new(Failing::after(reads, 0, device.clone()));
        let report = check(failing(reads), Repair::No);
        assert!(report.exit_code() >= 4, "{reads} reads: {:#?}", report.findings);
        if reads < 1 {
            assert_eq!(report.exit_code(), 8, "{:#?}", report.findings);
        }
    }
    // Reads work, writes do not.
    flip(&device, 70, 3);
    let failing = Arc::new(Failing::after(u64::MAX, 0, device));
    assert_eq!(check(failing, Repair::Yes).exit_code(), 8);
}
