//! What a crash leaves of data that reached the log before anybody made it durable.

use crate::support::sample::{add, empty, mount, write};
use isotherm_fs::check::{Options, Place, check};
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Allocation, Caller, Change, FileKind, FileSystem, Handle, ROOT, SeekFrom};
use std::sync::Arc;

const BLOCK: u64 = 4096;

/// Groups are written when they fill a segment, and a size with the last of its data: after a crash in between blocks lie behind the end of
/// the file. They take no space any more when the volume is mounted again, whether roll-forward meets them or a checkpoint came after
/// them.
#[test]
fn blocks_that_a_crash_leaves_behind_the_end_of_a_file_are_given_back() {
    given_back_after_a_crash(false);
}

#[test]
fn blocks_before_a_checkpoint_are_given_back_too() {
    given_back_after_a_crash(true);
}

fn given_back_after_a_crash(has_checkpoint: bool) {
    let device = empty();
    let volume = mount(device.clone(), false);
    let (file, new) = (add(&volume, ROOT, "file", FileKind::Regular), add(&volume, ROOT, "new", FileKind::Regular));
    write(&volume, file, 0, &[1; 10_000]);
    volume
        .allocate(Caller::default(), file, 0, 290 * BLOCK, 5 * BLOCK, Allocation::Reserve { keep_size: true })
        .expect("there is room");
    volume.fsync(file, false).expect("the device works");
    volume.checkpoint().expect("the device works");
    let facts = |volume: &dyn FileSystem| {
        let of = |ino| volume.attributes(ino).map(|is| (is.size, is.blocks_512)).expect("it is there");
        (of(file), of(new), volume.statistics().expect("no panic").blocks_free)
    };
    let before = facts(&volume);
    let written = || volume.figures().expect("no panic").counters.data_blocks;
    let data_before = written();
    for block in 10..210 {
        write(&volume, file, block * BLOCK, &[2; BLOCK as usize]);
        write(&volume, new, block * BLOCK, &[3; BLOCK as usize]);
    }
    // Full groups reach the log; what is left of each file keeps its size from being written.
    volume.write_groups().expect("the device works");
    let figures = volume.figures().expect("no panic");
    assert!(written() > data_before + 200 && figures.blocks_waiting > 0, "{figures:#?}");
    if has_checkpoint {
        // A checkpoint that writes no data: the kernel asks for free segments to be discarded after it.
        volume.discard_free(0..u64::MAX, 1).expect("the device works");
        assert!(volume.figures().expect("no panic").blocks_waiting > 0);
    }
    drop(volume);

    let volume = mount(device.clone(), false);
    assert_eq!(facts(&volume), before);
    // They do not come back when the file grows over them, and what was set aside there is kept.
    write(&volume, file, 300 * BLOCK, b"end");
    assert_eq!(volume.seek(file, 3 * BLOCK, SeekFrom::Data), Ok(300 * BLOCK));
    assert_eq!(volume.attributes(file).expect("it is there").blocks_512, before.0.1 + 8);
    volume.close().expect("the device works");
    drop(volume);
    let report = check(device, Options { verifies_data: true, ..Options::default() });
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
}

/// Blocks that wait in memory were counted in the inode that a later transaction logged, and after a crash nothing counted them
/// anew: the log had no data of this file.
#[test]
fn blocks_that_waited_are_not_counted_after_a_crash() {
    for has_checkpoint in [false, true] {
        let device = empty();
        let volume = mount(device.clone(), false);
        let (file, other) =
            (add(&volume, ROOT, "file", FileKind::Regular), add(&volume, ROOT, "other", FileKind::Regular));
        let punch = |volume: &dyn FileSystem, first: u64, blocks: u64| {
            let (caller, handle) = (Caller::default(), Handle::default());
            volume
                .allocate(caller, file, handle, first * BLOCK, blocks * BLOCK, Allocation::PunchHole)
                .expect("there is room");
        };
        write(&volume, file, 0, &[1; 40 * BLOCK as usize]);
        punch(&volume, 0, 20);
        volume.close().expect("the device works");
        drop(volume);

        let volume = mount(device.clone(), false);
        write(&volume, file, 3 * BLOCK, &[2; 5 * BLOCK as usize]);
        punch(&volume, 30, 2);
        // One of those that wait, and space for two more of them and a hole.
        punch(&volume, 3, 1);
        let reserve = Allocation::Reserve { keep_size: true };
        volume
            .allocate(Caller::default(), file, Handle::default(), 6 * BLOCK, 3 * BLOCK, reserve)
            .expect("there is room");
        let blocks = |volume: &dyn FileSystem| volume.attributes(file).expect("it is there").blocks_512 / 8;
        assert_eq!(blocks(&volume), 18 + 4 + 1);
        write(&volume, other, 0, b"synced");
        volume.fsync(other, false).expect("the device works");
        if has_checkpoint {
            // One that writes no data.
            volume.discard_free(0..u64::MAX, 1).expect("the device works");
        }
        drop(volume);

        let report = check(device.clone(), Options::default());
        assert!(report.findings.iter().all(|finding| finding.place == Place::Log), "{:#?}", report.findings);
        let volume = mount(device.clone(), false);
        assert_eq!(blocks(&volume), 18 + 3);
        volume.change(Caller::default(), file, Change { size: Some(0), ..Change::default() }).expect("it is there");
        assert_eq!(blocks(&volume), 0);
        volume.close().expect("the device works");
        drop(volume);
        assert_eq!(check(device, Options::default()).findings, []);
    }
}

/// A file whose block is in the log, and waits again, changed: nothing settles its inode, and the next checkpoint puts the block out of
/// roll-forward's sight.
#[test]
fn a_block_that_was_written_and_waits_again_is_counted_after_a_crash() {
    let device = empty();
    let volume = mount(device.clone(), false);
    let [file, other] = ["file", "other"].map(|name| add(&volume, ROOT, name, FileKind::Regular));
    volume.checkpoint().expect("the device works");
    let data_blocks = || volume.figures().expect("no panic").counters.data_blocks;
    let before = data_blocks();
    write(&volume, file, 0, &[1; BLOCK as usize]);
    // Until there are so many that some are written.
    (0..).take_while(|_| data_blocks() == before).for_each(|block| write(&volume, other, block * BLOCK, &[2; 4096]));
    write(&volume, file, 0, b"again");
    checkpoint_without_data(&volume);
    drop(volume);
    mount(device.clone(), false).close().expect("the device works");
    assert_eq!(check(device, Options::default()).findings, []);
}

fn checkpoint_without_data(volume: &Volume) {
    volume.discard_free(0..u64::MAX, 1).expect("the device works");
}

/// Makes names and attributes durable, by a checkpoint or without, and leaves the volume as a crash does, whose traces are no error.
fn crash(volume: Volume, device: &Arc<MemoryDevice>, has_checkpoint: bool) {
    if has_checkpoint {
        checkpoint_without_data(&volume);
    } else {
        volume.fsync_directory(ROOT).expect("the device works");
    }
    drop(volume);
    let report = check(device.clone(), Options::default());
    assert_eq!(report.exit_code(), 0, "{:#?}", report.findings);
}

/// A file whose block is in the log, and that waits again, is listed to be counted after a crash. When it grew, it was taken off the
/// list, because nothing lay behind its end.
#[test]
fn a_file_that_grows_before_its_blocks_are_counted_stays_to_be_counted_after_a_crash() {
    for has_checkpoint in [false, true] {
        let device = empty();
        let volume = mount(device.clone(), false);
        let [file, other] = ["file", "other"].map(|name| add(&volume, ROOT, name, FileKind::Regular));
        write(&volume, file, 9 * BLOCK, b"end");
        volume.checkpoint().expect("the device works");
        let data_blocks = || volume.figures().expect("no panic").counters.data_blocks;
        let before = data_blocks();
        write(&volume, file, 0, &[1; BLOCK as usize]);
        // Until there are so many that some are written.
        (0..)
            .take_while(|_| data_blocks() == before)
            .for_each(|block| write(&volume, other, block * BLOCK, &[2; 4096]));
        write(&volume, file, 0, b"again");
        checkpoint_without_data(&volume);
        write(&volume, file, 30 * BLOCK, b"more");
        crash(volume, &device, has_checkpoint);
        mount(device.clone(), false).close().expect("the device works");
        assert_eq!(check(device, Options::default()).findings, []);
    }
}

/// A file whose data a checkpoint has behind the end that is in its page is listed, to be given that back after a crash. When it was cut, it was
/// taken off the list, because nothing lay behind the end that was known in memory: after a crash all that was left of the data stayed
/// behind the end until the file grew or went.
#[test]
fn a_file_that_is_cut_before_its_size_is_settled_is_given_back_after_a_crash() {
    cut_before_it_is_settled(1, 200);
}

/// The same for a cut that takes several transactions, one of which lists it as to be gone on with.
#[test]
fn a_file_that_is_cut_in_portions_before_its_size_is_settled_is_given_back_too() {
    cut_before_it_is_settled(255, 320);
}

/// A file of so many blocks at a distance, of which 40 are left.
fn cut_before_it_is_settled(distance: u64, blocks: u64) {
    for (grows, has_checkpoint) in [(false, false), (false, true), (true, false), (true, true)] {
        let device = empty();
        let volume = mount(device.clone(), false);
        let file = add(&volume, ROOT, "file", FileKind::Regular);
        volume.checkpoint().expect("the device works");
        let blocks_of = |volume: &dyn FileSystem| volume.attributes(file).expect("it is there").blocks_512 / 8;
        let at = |block: u64| block * distance * BLOCK;
        (0..blocks).for_each(|block| write(&volume, file, at(block), &[1; BLOCK as usize]));
        volume.write_groups().expect("the device works");
        write(&volume, file, at(7), b"waits");
        checkpoint_without_data(&volume);
        let cut = Change { size: Some(at(40)), ..Change::default() };
        volume.change(Caller::default(), file, cut).expect("it is there");
        assert!(blocks_of(&volume) == 40 && volume.figures().expect("no panic").blocks_waiting > 0);
        if grows {
            write(&volume, file, at(50), b"waits");
        }
        crash(volume, &device, has_checkpoint);
        let volume = mount(device.clone(), false);
        let place = format!("grows: {grows}, with a checkpoint: {has_checkpoint}");
        assert_eq!((volume.attributes(file).expect("it is there").size, blocks_of(&volume)), (0, 0), "{place}");
        volume.close().expect("the device works");
        drop(volume);
        assert_eq!(check(device, Options::default()).findings, [], "{place}");
    }
}
