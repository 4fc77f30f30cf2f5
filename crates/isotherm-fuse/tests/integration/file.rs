//! What programs see of the file, and what the export is asked for it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};

use isotherm_fuse::drive::Options;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::fixture::{Call, Stage, errno, pattern};

const MIB: u64 = 1 << 20;
/// A size that is no multiple of a page.
const SIZE: u64 = 4 * MIB + 512;

fn read(file: &File, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; length];
    let found = file.read_at(&mut bytes, offset).unwrap();
    bytes.truncate(found);
    bytes
}

#[test]
fn reads_and_writes_at_odd_offsets_are_those_of_a_file() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    let mut model = vec![0; SIZE as usize];
    let numbers = pattern(7, 4000);
    for (round, draw) in numbers.chunks_exact(8).enumerate() {
        let draw = u64::from_le_bytes(draw.try_into().unwrap());
        let offset = draw % (SIZE - 1);
        let most = if round % 50 == 0 { SIZE } else { 20_000 };
        let length = (1 + (draw >> 24) % most).min(SIZE - offset);
        let range = offset as usize..(offset + length) as usize;
        if draw >> 63 == 0 {
            let data = pattern(draw, length as usize);
            file.write_all_at(&data, offset).unwrap();
            model[range].copy_from_slice(&data);
        } else {
            let mut found = vec![0xee; length as usize];
            file.read_exact_at(&mut found, offset).unwrap();
            assert!(found == model[range], "{length} bytes at {offset}");
        }
    }
    assert!(fs::read(stage.path()).unwrap() == model);
}

#[test]
fn reads_past_the_end_are_short_and_writes_there_find_no_space() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    assert_eq!(read(&file, SIZE - 100, 200).len(), 100);
    assert_eq!(read(&file, SIZE, 200).len(), 0);
    assert_eq!(read(&file, SIZE + MIB, 200).len(), 0);
    assert_eq!(file.write_at(&[1; 200], SIZE - 100).unwrap(), 100);
    assert_eq!(errno(file.write_at(&[1; 200], SIZE)), libc::ENOSPC);
    assert_eq!(errno(file.write_at(&[1; 200], SIZE + MIB)), libc::ENOSPC);
    assert_eq!(fs::metadata(stage.path()).unwrap().len(), SIZE);
}

#[test]
fn a_large_write_comes_in_requests_of_a_mebibyte() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let write = |data: &[u8]| {
        assert_eq!(stage.open().write_at(data, 0).unwrap(), data.len());
        stage.export.calls().len()
    };
    let bytes = vec![3; 4 * MIB as usize + 4096];
    let aligned = bytes.as_ptr().align_offset(4096);
    assert_eq!(write(&bytes[aligned..aligned + 4 * MIB as usize]), 4);
}

#[test]
fn fsync_is_a_flush_and_closing_is_not() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    file.write_all_at(b"x", 0).unwrap();
    assert_eq!(stage.export.calls(), [Call::Write { offset: 0, length: 1, durable: false }]);
    file.sync_all().unwrap();
    assert_eq!(stage.export.calls(), [Call::Flush]);
    file.sync_data().unwrap();
    assert_eq!(stage.export.calls(), [Call::Flush]);
    drop(file);
    assert_eq!(stage.export.calls(), []);
}

#[test]
fn synchronous_writes_are_durable_writes() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let write = Call::Write { offset: 4096, length: 512, durable: true };
    for flag in [libc::O_SYNC, libc::O_DSYNC] {
        let file = OpenOptions::new().write(true).custom_flags(flag).open(stage.path()).unwrap();
        file.write_all_at(&[1; 512], 4096).unwrap();
        assert!(stage.export.calls().contains(&write));
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 4096, 512).unwrap();
        assert!(stage.export.calls().contains(&Call::Trim { offset: 4096, length: 512, durable: true }));
    }
    let file = stage.open();
    pwritev2(&file, &[IoSlice::new(&[1; 512])], 4096, ReadWriteFlags::DSYNC).unwrap();
    assert!(stage.export.calls().contains(&write));
}

#[test]
fn punching_trims_and_reads_as_zeros() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    file.write_all_at(&vec![9; SIZE as usize], 0).unwrap();
    stage.export.calls();
    let punch = |offset, length| {
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length).unwrap();
        stage.export.calls()
    };
    assert_eq!(punch(5000, 10_000), [Call::Trim { offset: 5000, length: 10_000, durable: false }]);
    let bytes = read(&file, 0, 20_000);
    assert!((0..20_000).all(|at| (bytes[at] == 0) == (5000..15_000).contains(&at)));
    // What lies behind the end is no part of the file; punching it has no effect.
    assert_eq!(punch(SIZE - 512, MIB), [Call::Trim { offset: SIZE - 512, length: 512, durable: false }]);
    assert_eq!(punch(SIZE, MIB), []);
}

#[test]
fn zeroing_keeps_its_space_and_reserving_space_has_no_effect() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    file.write_all_at(&vec![9; SIZE as usize], 0).unwrap();
    stage.export.calls();
    for flags in [FallocateFlags::ZERO_RANGE, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE] {
        fallocate(&file, flags, 4096, 8192).unwrap();
        assert_eq!(stage.export.calls(), [Call::Zero { offset: 4096, length: 8192, may_trim: false }]);
        assert_eq!(read(&file, 4096, 8192), [0; 8192]);
    }
    for flags in [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE] {
        fallocate(&file, flags, 0, SIZE).unwrap();
        assert_eq!(stage.export.calls(), []);
    }
    assert_eq!(read(&file, 0, 4096), [9; 4096]);
}

#[test]
fn the_size_cannot_change() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    file.set_len(SIZE).unwrap();
    for size in [0, SIZE - 1, SIZE + 1] {
        assert_eq!(errno(file.set_len(size)), libc::EPERM);
    }
    assert_eq!(fallocate(&file, FallocateFlags::empty(), SIZE, 1), Err(Errno::PERM));
    assert_eq!(fallocate(&file, FallocateFlags::ZERO_RANGE, SIZE - 1, 2), Err(Errno::PERM));
    assert_eq!(fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096), Err(Errno::OPNOTSUPP));
    assert_eq!(errno(OpenOptions::new().write(true).truncate(true).open(stage.path())), libc::EPERM);
    let mut append = OpenOptions::new().append(true).open(stage.path()).unwrap();
    assert_eq!(errno(append.write(b"x")), libc::ENOSPC);
    assert_eq!(fs::metadata(stage.path()).unwrap().len(), SIZE);
    assert_eq!(stage.export.calls(), []);
}

#[test]
fn the_directory_cannot_change() {
    let Some(stage) = Stage::new(SIZE) else { return };
    // Root passes the directory's mode, and is refused by the file system itself; others by the mode.
    let is_refused = |errno| matches!(errno, libc::EPERM | libc::EACCES);
    assert!(is_refused(errno(fs::remove_file(stage.path()))));
    assert!(is_refused(errno(fs::rename(stage.path(), stage.folder().join("other")))));
    assert!(is_refused(errno(fs::hard_link(stage.path(), stage.folder().join("other")))));
    assert!(is_refused(errno(std::os::unix::fs::symlink("disk", stage.folder().join("other")))));
    assert!(is_refused(errno(File::create(stage.folder().join("other")))));
    assert!(is_refused(errno(fs::create_dir(stage.folder().join("other")))));
    assert!(is_refused(errno(fs::set_permissions(stage.path(), Permissions::from_mode(0o644)))));
    assert_eq!(errno(fs::metadata(stage.folder().join("other"))), libc::ENOENT);
    let names: Vec<_> = fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["disk"]);
}

#[test]
fn holes_are_found() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let file = stage.open();
    let found = |from| seek(&file, from);
    assert_eq!(found(SeekFrom::Data(0)), Err(Errno::NXIO));
    assert_eq!(found(SeekFrom::Hole(5)), Ok(5));
    for page in [3, 5, 6, 700] {
        file.write_all_at(&[1; 4096], page * 4096).unwrap();
    }
    assert_eq!(found(SeekFrom::Data(0)), Ok(3 * 4096));
    assert_eq!(found(SeekFrom::Hole(3 * 4096)), Ok(4 * 4096));
    assert_eq!(found(SeekFrom::Data(4 * 4096)), Ok(5 * 4096));
    assert_eq!(found(SeekFrom::Data(5 * 4096 + 7)), Ok(5 * 4096 + 7));
    assert_eq!(found(SeekFrom::Hole(5 * 4096 + 7)), Ok(7 * 4096));
    assert_eq!(found(SeekFrom::Data(7 * 4096)), Ok(700 * 4096));
    assert_eq!(found(SeekFrom::Data(701 * 4096)), Err(Errno::NXIO));
    assert_eq!(found(SeekFrom::Data(SIZE)), Err(Errno::NXIO));
    file.write_all_at(&[1; 512], SIZE - 512).unwrap();
    assert_eq!(found(SeekFrom::Hole(SIZE - 1)), Ok(SIZE));
}

#[test]
fn stat_tells_size_page_and_what_is_held() {
    let Some(stage) = Stage::new(SIZE) else { return };
    let before = fs::metadata(stage.path()).unwrap();
    assert_eq!((before.len(), before.blocks(), before.blksize(), before.mode()), (SIZE, 0, 4096, 0o100_600));
    stage.open().write_all_at(&[1; 8192], 4096).unwrap();
    let after = fs::metadata(stage.path()).unwrap();
    assert_eq!(after.blocks(), 8192 / 512);
    assert!(after.modified().unwrap() > before.modified().unwrap());
    let system = rustix::fs::statvfs(stage.path()).unwrap();
    assert_eq!((system.f_bsize, system.f_blocks, system.f_bfree), (4096, SIZE / 4096, 0));
}

#[test]
fn a_read_only_file_is_read_only() {
    let options = Options { read_only: true, ..Options::default() };
    let Some(stage) = Stage::with(SIZE, &options) else { return };
    assert_eq!(errno(OpenOptions::new().write(true).open(stage.path())), libc::EROFS);
    assert_eq!(fs::read(stage.path()).unwrap().len() as u64, SIZE);
    assert_eq!(fs::metadata(stage.path()).unwrap().mode(), 0o100_400);
}

#[test]
fn threads_do_not_disturb_each_other() {
    let Some(stage) = Stage::new(8 * MIB) else { return };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let stage = &stage;
            scope.spawn(move || {
                let file = stage.open();
                for round in 0..40 {
                    // Slices of all threads alternate, so that neighbours are written at the same time.
                    let offset = (round % 10 * 8 + thread) * 5000;
                    let data = pattern(thread * 1000 + round, 5000);
                    file.write_all_at(&data, offset).unwrap();
                    assert!(read(&file, offset, 5000) == data, "thread {thread}, round {round}");
                }
            });
        }
    });
}
