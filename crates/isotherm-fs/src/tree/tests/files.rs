//! Content of files.

use isotherm_vfs::{Allocation, Change, OpenFlags, SeekFrom};

use super::*;
use crate::store::{BLOCK_BYTES, BlockReader};
use crate::tree::{AccessTimes, Piece};

const RESERVE: Allocation = Allocation::Reserve { keep_size: false };
const RESERVE_KEEP: Allocation = Allocation::Reserve { keep_size: true };
const LARGEST: u64 = (1 << 32) * 4096;

fn file(tree: &mut Tree<MemoryStore>) -> Ino {
    tree.make(ROOT, "f", FileKind::Regular)
}

fn size(size: u64) -> Change {
    Change { size: Some(size), ..Change::default() }
}

/// Blocks at every height of the map, down to the last of 16 TiB; the map is gone with them.
#[test]
fn files_reach_16_tib() {
    let mut tree = tree();
    let file = file(&mut tree);
    let before = tree.store().space().free;
    let places =
        [0, 7, 8, 262, 263, 8 + 255 * 1020 - 1, 8 + 255 * 1020, 8 + 255 * 1020 * 1020, (1 << 32) - 1].map(|b| b * 4096);
    for (i, at) in places.iter().enumerate() {
        tree.put(file, *at, &[i as u8 + 1; 4096]).unwrap();
        assert_whole(&mut tree);
    }
    assert_eq!(tree.inode(file).unwrap().height, 4);
    assert_eq!(tree.attributes(file).unwrap().size, LARGEST);
    assert_eq!(tree.attributes(file).unwrap().blocks_512, 8 * places.len() as u64);
    let mut tree = tree.reopen();
    for (i, at) in places.iter().enumerate() {
        assert_eq!(tree.read(file, *at, 4096).unwrap(), [i as u8 + 1; 4096]);
        assert_eq!(tree.seek(file, *at, SeekFrom::Data).unwrap(), *at);
    }
    assert_eq!(tree.seek(file, 264 * 4096, SeekFrom::Data).unwrap(), places[5]);
    assert_eq!(errno(tree.put(file, LARGEST - 1, &[1; 2])), Errno::FBIG);
    assert_eq!(errno(tree.put(file, u64::MAX, &[1; 2])), Errno::FBIG);
    assert_eq!(errno(tree.change(CALLER, file, size(LARGEST + 1))), Errno::FBIG);
    assert_eq!(errno(tree.allocate(file, LARGEST, 1, RESERVE)), Errno::FBIG);
    tree.allocate(file, 4096, LARGEST - 4096, Allocation::PunchHole).unwrap();
    let inode = tree.inode(file).unwrap();
    assert_eq!((inode.root, inode.height, inode.blocks, inode.size), (0, 0, 1, LARGEST));
    assert_whole(&mut tree);
    tree.change(CALLER, file, size(0)).unwrap();
    assert_eq!(tree.store().space().free, before);
}

/// Bytes behind a cut are zeros when the file grows again, by whatever makes it grow.
#[test]
fn what_was_cut_does_not_come_back() {
    let grow: [fn(&mut Tree<MemoryStore>, Ino); 5] = [
        |tree, file| assert_eq!(tree.change(CALLER, file, size(6000)).unwrap().size, 6000),
        |tree, file| assert_eq!(tree.put(file, 5990, &[0; 10]).unwrap(), 5990),
        |tree, file| assert_eq!(tree.put(file, 3000, &[0; 3000]).unwrap(), 3000),
        |tree, file| tree.allocate(file, 5000, 1000, RESERVE).unwrap(),
        |tree, file| tree.allocate(file, 5000, 1000, Allocation::ZeroRange { keep_size: false }).unwrap(),
    ];
    for (i, grow) in grow.iter().enumerate() {
        for is_stored in [false, true] {
            let mut tree = tree();
            let file = file(&mut tree);
            tree.put(file, 0, &[1; 6000]).unwrap();
            tree.store_mut().write_out(|_| is_stored);
            tree.change(CALLER, file, size(100)).unwrap();
            grow(&mut tree, file);
            assert_eq!(tree.whole(file), [&[1; 100][..], &[0; 5900]].concat(), "way {i}");
            assert_whole(&mut tree);
        }
    }
}

#[test]
fn reading_stops_at_the_end_and_holes_are_zeros() {
    let mut tree = tree();
    let file = file(&mut tree);
    tree.put(file, 10_000, &[1; 10]).unwrap();
    assert_eq!(tree.read(file, 10_005, 100).unwrap(), [1; 5]);
    assert!(tree.read(file, 20_000, 100).unwrap().is_empty());
    assert!(tree.read(file, u64::MAX, 100).unwrap().is_empty());
    assert_eq!(tree.whole(file), [&[0; 10_000][..], &[1; 10]].concat());
    assert_eq!(tree.attributes(file).unwrap().blocks_512, 8);
    assert_eq!(errno(tree.read(ROOT, 0, 1)), Errno::ISDIR);
}

/// Blocks that follow one another on the device are one piece, which the reader fetches without the lock.
#[test]
fn a_plan_joins_neighbours() {
    let mut tree = tree();
    let file = file(&mut tree);
    let data: Vec<u8> = (0..40_000_u32).map(|i| (i / 7) as u8).collect();
    tree.put(file, 0, &data).unwrap();
    tree.store_mut().write_out(|_| true);
    tree.settle_all().unwrap();
    let plan = tree.read_plan(file, 5000, 30_000, false).unwrap();
    assert_eq!(plan.length, 30_000);
    let mut out = Vec::new();
    for piece in &plan.pieces {
        let Piece::Stored { blocks, bytes } = piece else { panic!("{piece:?}") };
        let mut run = vec![0; blocks.len() * BLOCK_BYTES];
        tree.store().reader().read_blocks(blocks[0].position, &mut run).unwrap();
        out.extend_from_slice(&run[bytes.clone()]);
    }
    assert!(plan.pieces.len() <= 2, "{}", plan.pieces.len());
    assert_eq!(out, data[5000..35_000]);
}

#[test]
fn space_is_set_aside_punched_and_zeroed() {
    let mut tree = tree();
    let file = file(&mut tree);
    tree.put(file, 0, &[1; 3 * 4096]).unwrap();
    tree.allocate(file, 4096, 10 * 4096, RESERVE_KEEP).unwrap();
    assert_eq!(tree.attributes(file).unwrap().size, 3 * 4096);
    assert_eq!(tree.attributes(file).unwrap().blocks_512, 11 * 8);
    tree.allocate(file, 4096, 10 * 4096, RESERVE).unwrap();
    assert_eq!(tree.attributes(file).unwrap().size, 11 * 4096);
    assert_eq!(tree.seek(file, 0, SeekFrom::Hole).unwrap(), 3 * 4096);
    assert_eq!(errno(tree.seek(file, 3 * 4096, SeekFrom::Data)), Errno::NXIO);
    assert_eq!(errno(tree.seek(file, 11 * 4096, SeekFrom::Hole)), Errno::NXIO);
    tree.allocate(file, 4000, 5000, Allocation::PunchHole).unwrap();
    assert_eq!(tree.attributes(file).unwrap().blocks_512, 10 * 8);
    assert_eq!(tree.seek(file, 4, SeekFrom::Hole).unwrap(), 4096);
    assert_eq!(tree.seek(file, 4096, SeekFrom::Data).unwrap(), 2 * 4096);
    assert_eq!(tree.read(file, 0, 3 * 4096).unwrap(), [&[1; 4000][..], &[0; 5000], &[1; 3288]].concat());
    tree.allocate(file, 1, 3 * 4096, Allocation::ZeroRange { keep_size: true }).unwrap();
    assert_eq!(tree.read(file, 0, 4 * 4096).unwrap(), [&[1][..], &[0; 4 * 4096 - 1]].concat());
    assert_eq!(tree.attributes(file).unwrap().blocks_512, 11 * 8);
    assert_eq!(errno(tree.allocate(file, 0, 0, RESERVE)), Errno::INVAL);
    assert_eq!(errno(tree.allocate(ROOT, 0, 1, RESERVE)), Errno::ISDIR);
    assert_whole(&mut tree);
}

/// On a full volume a reservation takes nothing, a write that needs space changes nothing, one that needs none goes through,
/// and removing gives space back.
#[test]
fn a_full_volume_refuses_whole_requests() {
    let mut tree = tree_of(400);
    tree.batch_pages = 1;
    let file = file(&mut tree);
    tree.put(file, 0, &[1; 200 * 4096]).unwrap();
    tree.store_mut().write_out(|_| true);
    tree.settle_all().unwrap();
    let free = tree.store().space().free;
    assert_eq!(errno(tree.put(file, 100 * 4096, &[2; 400 * 4096])), Errno::NOSPC);
    assert_eq!(errno(tree.allocate(file, 0, 390 * 4096, RESERVE)), Errno::NOSPC);
    assert_eq!(errno(tree.allocate(file, 0, 1 << 40, RESERVE)), Errno::NOSPC);
    assert_eq!(tree.store().space().free, free);
    assert_eq!(tree.whole(file), [1; 200 * 4096]);
    tree.allocate(file, 0, (200 + free - 2) * 4096, RESERVE).unwrap();
    assert!(tree.store().space().free < 3);
    tree.put(file, 150 * 4096, &[3; 100 * 4096]).unwrap();
    assert_eq!(tree.read(file, 150 * 4096, 100 * 4096).unwrap(), [3; 100 * 4096]);
    assert_whole(&mut tree);
    tree.unlink(ROOT, b"f").unwrap();
    assert_whole(&mut tree);
    assert!(tree.store().space().free > 380);
}

#[test]
fn ranges_are_copied() {
    let mut tree = tree();
    let from = file(&mut tree);
    let to = tree.make(ROOT, "to", FileKind::Regular);
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 11) as u8).collect();
    tree.put(from, 0, &data).unwrap();
    assert_eq!(tree.copy_range((from, 100), (to, 77), 1 << 40).unwrap(), 3_000_000 - 100);
    assert_eq!(tree.read(to, 77, 3_000_000).unwrap(), data[100..]);
    assert_eq!(tree.copy_range((from, 0), (from, 2_000_000), 1_000_000).unwrap(), 1_000_000);
    assert_eq!(errno(tree.copy_range((from, 0), (from, 999), 1000)), Errno::INVAL);
    assert_eq!(tree.copy_range((from, 4_000_000), (to, 0), 1000).unwrap(), 0);
    assert_whole(&mut tree);
}

#[test]
fn writing_takes_privileges_where_the_request_says_so() {
    let mut tree = tree();
    let file = file(&mut tree);
    tree.set_xattr(CALLER, file, b"security.capability", b"c", Default::default()).unwrap();
    for (before, after) in [(0o6755, 0o755), (0o6745, 0o2745)] {
        tree.change(CALLER, file, Change { permissions: Some(before), ..Change::default() }).unwrap();
        tree.put(file, 0, b"x").unwrap();
        assert_eq!(tree.attributes(file).unwrap().permissions, before);
        tree.write(file, 0, b"x", WriteFlags { kills_privileges: true, append: false }).unwrap();
        assert_eq!(tree.attributes(file).unwrap().permissions, after);
    }
    assert_eq!(errno(tree.xattr(file, b"security.capability")), Errno::NODATA);
    let truncate = OpenFlags { write: true, truncate: true, kills_privileges: true, ..OpenFlags::default() };
    tree.change(CALLER, file, Change { permissions: Some(0o4711), ..Change::default() }).unwrap();
    tree.open(file, truncate).unwrap();
    let attributes = tree.attributes(file).unwrap();
    assert_eq!((attributes.permissions, attributes.size), (0o711, 0));
    assert_whole(&mut tree);
}

/// Reading sets the time of access when it is not later than the last change, and then not again for a day.
#[test]
fn access_times_are_relative() {
    let mut tree = tree();
    let file = file(&mut tree);
    tree.put(file, 0, b"x").unwrap();
    let mut read_at = |seconds, times| {
        tree.set_now(time(seconds));
        tree.set_access_times(times, true);
        tree.read(file, 0, 1).unwrap();
        tree.attributes(file).unwrap().accessed
    };
    assert_eq!(read_at(5, AccessTimes::Never), time(1));
    assert_eq!(read_at(10, AccessTimes::Relative), time(10));
    assert_eq!(read_at(20, AccessTimes::Relative), time(10));
    assert_eq!(read_at(10 + 86_400, AccessTimes::Relative), time(10 + 86_400));
    assert_eq!(read_at(20 + 86_400, AccessTimes::Strict), time(20 + 86_400));
    let mut tree = tree.reopen();
    assert_eq!(tree.attributes(file).unwrap().accessed, time(20 + 86_400));
}

/// Opening to read sets the time of access by the rules of reading, and says whether it did; that of directories can be left alone.
#[test]
fn opening_to_read_sets_access_times() {
    let mut tree = tree();
    let file = file(&mut tree);
    tree.put(file, 0, b"x").unwrap();
    let mut open_at = |seconds, flags, times| {
        tree.set_now(time(seconds));
        tree.set_access_times(times, true);
        let opened = tree.open(file, flags).unwrap();
        tree.release(file).unwrap();
        (opened.sets_access_time, tree.attributes(file).unwrap().accessed)
    };
    let read = OpenFlags { read: true, ..OpenFlags::default() };
    let write = OpenFlags { write: true, ..OpenFlags::default() };
    assert_eq!(open_at(5, read, AccessTimes::Never), (false, time(1)));
    assert_eq!(open_at(6, write, AccessTimes::Strict), (false, time(1)));
    assert_eq!(open_at(10, read, AccessTimes::Relative), (true, time(10)));
    assert_eq!(open_at(20, read, AccessTimes::Relative), (false, time(10)));
    assert_eq!(open_at(10 + 86_400, read, AccessTimes::Relative), (true, time(10 + 86_400)));
    assert_eq!(open_at(20 + 86_400, read, AccessTimes::Strict), (true, time(20 + 86_400)));
    // O_NOATIME.
    let quiet = OpenFlags { keeps_access_time: true, ..read };
    assert_eq!(open_at(25 + 86_400, quiet, AccessTimes::Strict), (false, time(20 + 86_400)));
    // Cutting is a change, which the opening comes after.
    let cut = OpenFlags { truncate: true, read: true, ..write };
    assert_eq!(open_at(30 + 86_400, cut, AccessTimes::Relative), (true, time(30 + 86_400)));

    let directory = tree.make(ROOT, "directory", FileKind::Directory);
    let mut use_at = |seconds, of_directories| {
        tree.set_now(time(seconds));
        tree.set_access_times(AccessTimes::Strict, of_directories);
        let opened = tree.open_directory(directory).unwrap();
        let opened_at = tree.attributes(directory).unwrap().accessed;
        tree.set_now(time(seconds + 1));
        tree.read_directory(directory, 0, &mut |_| true).unwrap();
        tree.release_directory(directory).unwrap();
        (opened.sets_access_time, opened_at, tree.attributes(directory).unwrap().accessed)
    };
    let made = time(30 + 86_400);
    assert_eq!(use_at(100_000, false), (false, made, made));
    assert_eq!(use_at(200_000, true), (true, time(200_000), time(200_001)));
    // That is for directories alone.
    tree.set_now(time(300_000));
    tree.set_access_times(AccessTimes::Strict, false);
    assert!(tree.open(file, read).unwrap().sets_access_time);
    assert_eq!(tree.attributes(file).unwrap().accessed, time(300_000));
}

/// What is copied takes no more space than it did, and says where its holes are.
#[test]
fn a_copy_has_the_holes_of_its_source() {
    let mut tree = tree();
    let (from, to) = (tree.make(ROOT, "from", FileKind::Regular), tree.make(ROOT, "to", FileKind::Regular));
    tree.put(from, 1_000_000, &[1; 10_000]).unwrap();
    tree.change(CALLER, from, Change { size: Some(3_000_000), ..Change::default() }).unwrap();
    tree.put(to, 4096, &[2; 20_000]).unwrap();
    assert_eq!(tree.copy_range((from, 0), (to, 0), u64::MAX).unwrap(), 3_000_000);
    assert_eq!(tree.whole(to), tree.whole(from));
    assert_eq!(tree.attributes(to).unwrap().blocks_512, tree.attributes(from).unwrap().blocks_512);
    for (at, whence) in [(0, SeekFrom::Data), (1_000_000, SeekFrom::Hole), (2_000_000, SeekFrom::Data)] {
        assert_eq!(tree.seek(to, at, whence).ok(), tree.seek(from, at, whence).ok());
    }
    assert_whole(&mut tree);
}
