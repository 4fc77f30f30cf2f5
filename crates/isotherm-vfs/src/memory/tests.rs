//! What threads that meet leave behind, and what a server relies on.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use super::{MemoryFileSystem, Options};
use crate::exercise::{Generator, apply};
use crate::{
    Attributes, Caller, Change, Errno, FileKind, FileSystem, Ino, NewNode, OpenFlags, ROOT, RenameMode, WriteFlags,
};

const ROOT_USER: Caller = Caller { uid: 0, gid: 0, pid: 1 };

fn add(fs: &MemoryFileSystem, parent: Ino, name: &str, kind: FileKind) -> Attributes {
    let node = NewNode { kind, permissions: 0o755, umask: 0, device: 0 };
    fs.make_node(ROOT_USER, parent, name.as_bytes(), node).unwrap()
}

fn used(fs: &MemoryFileSystem) -> (u64, u64) {
    let has = fs.statistics().unwrap();
    (has.inodes - has.inodes_free, has.blocks - has.blocks_free)
}

/// Nodes that can be reached, with the names that lead to each and the directories in it.
fn reach(fs: &MemoryFileSystem) -> BTreeMap<Ino, (Attributes, u32, u32)> {
    let mut reached = BTreeMap::from([(ROOT, (fs.attributes(ROOT).unwrap(), 1, 0))]);
    let mut rest = vec![ROOT];
    while let Some(directory) = rest.pop() {
        let mut names = Vec::new();
        fs.read_directory_plus(directory, 0, &mut |entry, attributes| {
            if !matches!(entry.name, b"." | b"..") {
                names.push(*attributes);
            }
            true
        })
        .unwrap();
        for attributes in names {
            fs.forget(attributes.ino, 1);
            let node = reached.entry(attributes.ino).or_insert((attributes, 0, 0));
            node.1 += 1;
            if attributes.kind == FileKind::Directory {
                assert_eq!(node.1, 1, "a directory has two names");
                rest.push(attributes.ino);
                reached.get_mut(&directory).unwrap().2 += 1;
            }
        }
    }
    reached
}

#[test]
fn threads_that_meet_leave_a_tree() {
    let fs = MemoryFileSystem::default();
    thread::scope(|scope| {
        for seed in 0..4 {
            let fs = &fs;
            scope.spawn(move || {
                Generator::with_small_files(seed).take(10_000).for_each(|operation| drop(apply(fs, &operation)))
            });
        }
    });
    let reached = reach(&fs);
    assert!(reached.len() > 5);
    for (attributes, names, directories) in reached.values() {
        let links = if attributes.kind == FileKind::Directory { 2 + directories } else { *names };
        assert_eq!(attributes.links, links, "{attributes:?}");
    }
    let blocks = reached.values().map(|node| node.0.blocks_512 / 8).sum();
    assert_eq!(used(&fs), (reached.len() as u64, blocks));
}

#[test]
fn directories_that_threads_move_into_one_another_stay_a_tree() {
    let fs = MemoryFileSystem::default();
    let all: Vec<Ino> = (0..4).map(|i| add(&fs, ROOT, &format!("d{i}"), FileKind::Directory).ino).collect();
    thread::scope(|scope| {
        for turn in 0..4 {
            let (fs, all) = (&fs, &all);
            scope.spawn(move || {
                for i in 0..20_000_usize {
                    let from = [ROOT, all[i % 4], all[(i / 4 + turn) % 4]][i % 3];
                    let to = [all[(i / 3 + turn) % 4], ROOT, all[(i / 7) % 4]][(i + turn) % 3];
                    let name = format!("d{}", (i / 5 + turn) % 4);
                    let mode = if i % 5 == 0 { RenameMode::Exchange } else { RenameMode::NoReplace };
                    let other = if i % 5 == 0 { format!("d{}", i % 4) } else { name.clone() };
                    let _ = fs.rename(from, name.as_bytes(), to, other.as_bytes(), mode);
                    let _ = fs.lookup(to, b"..").map(|above| fs.forget(above.ino, 1));
                }
            });
        }
    });
    let reached = reach(&fs);
    assert_eq!(reached.keys().copied().collect::<Vec<_>>(), [&[ROOT][..], &all].concat());
    assert!(reached.values().all(|(attributes, _, directories)| attributes.links == 2 + directories));
}

/// Neither where there is no room for the whiteout, nor where there is and the rename fails.
#[test]
fn a_rename_that_fails_leaves_no_whiteout() {
    let fs = MemoryFileSystem::new(Options { inodes: 5, ..Options::default() });
    add(&fs, ROOT, "file", FileKind::Regular);
    let full = add(&fs, ROOT, "full", FileKind::Directory).ino;
    add(&fs, full, "inner", FileKind::Directory);
    let whiteout = RenameMode::Whiteout { caller: ROOT_USER, replaces: true };
    assert_eq!(fs.rename(full, b"inner", ROOT, b"file", whiteout), Err(Errno::NOTDIR));
    assert_eq!(used(&fs).0, 4);
    assert_eq!(fs.rename(ROOT, b"file", ROOT, b"moved", whiteout), Ok(()));
    assert_eq!(fs.lookup(ROOT, b"file").unwrap().kind, FileKind::CharacterDevice);
    assert_eq!(fs.rename(ROOT, b"moved", full, b"moved", whiteout), Err(Errno::NOSPC));
    assert_eq!(fs.lookup(ROOT, b"moved").unwrap().kind, FileKind::Regular);
    assert_eq!((fs.lookup(full, b"moved"), used(&fs).0), (Err(Errno::NOENT), 5));
}

#[test]
fn a_node_lives_as_long_as_somebody_knows_it() {
    let fs = MemoryFileSystem::default();
    let file = add(&fs, ROOT, "file", FileKind::Regular).ino;
    let opened = fs.open(file, OpenFlags { read: true, write: true, ..OpenFlags::default() }).unwrap();
    fs.write(file, opened.handle, 0, &[1; 5000], WriteFlags::default()).unwrap();
    fs.unlink(ROOT, b"file").unwrap();
    assert_eq!((fs.attributes(file).unwrap().links, used(&fs)), (0, (2, 2)));
    assert_eq!(fs.link(file, ROOT, b"again"), Err(Errno::NOENT));
    fs.forget(file, 1);
    let mut out = Vec::new();
    fs.read(file, opened.handle, 4990, 100, &mut out).unwrap();
    assert_eq!(out, [1; 10]);
    fs.release(file, opened.handle);
    assert_eq!((fs.attributes(file), used(&fs)), (Err(Errno::STALE), (1, 0)));
}

#[test]
fn a_listing_goes_on_where_it_was_whatever_comes_and_goes() {
    let fs = MemoryFileSystem::default();
    let name = |i: usize| format!("n{i}");
    for i in 0..200 {
        fs.forget(add(&fs, ROOT, &name(i), FileKind::Fifo).ino, 1);
    }
    let mut seen = BTreeSet::new();
    let mut cookie = 0;
    for step in 0..1000 {
        let mut last = cookie;
        let mut taken = 0;
        fs.read_directory(ROOT, cookie, &mut |entry| {
            taken += 1;
            if taken <= 7 {
                assert!(seen.insert(entry.name.to_vec()), "listed twice");
                last = entry.cookie;
            }
            taken <= 7
        })
        .unwrap();
        if last == cookie {
            break;
        }
        cookie = last;
        // Behind, at and before the cookie; those that end in 5 nobody touches.
        for i in (0..200).filter(|i| i % 10 != 5 && i % 20 == step % 20) {
            let _ = fs.unlink(ROOT, name(i).as_bytes());
        }
        if step < 10 {
            fs.forget(add(&fs, ROOT, &format!("new {step}"), FileKind::Fifo).ino, 1);
        }
    }
    assert!((0..200).filter(|i| i % 10 == 5).all(|i| seen.contains(name(i).as_bytes())));
}

#[test]
fn a_removed_directory_is_empty_and_stays_so() {
    let fs = MemoryFileSystem::default();
    let directory = add(&fs, ROOT, "d", FileKind::Directory).ino;
    let handle = fs.open_directory(directory).unwrap().handle;
    fs.remove_directory(ROOT, b"d").unwrap();
    fs.read_directory(directory, 0, &mut |_| panic!("nothing is there")).unwrap();
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    assert_eq!(fs.make_node(ROOT_USER, directory, b"f", node), Err(Errno::NOENT));
    assert_eq!(fs.lookup(directory, b".."), Err(Errno::NOENT));
    fs.release_directory(directory, handle);
    fs.forget(directory, 1);
    assert_eq!(used(&fs), (1, 0));
}

#[test]
fn what_there_is_no_room_for_is_refused() {
    let fs = MemoryFileSystem::new(Options { capacity_bytes: 8192, inodes: 3, ..Options::default() });
    let file = add(&fs, ROOT, "a", FileKind::Regular).ino;
    add(&fs, ROOT, "b", FileKind::Regular);
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    assert_eq!(fs.make_node(ROOT_USER, ROOT, b"c", node), Err(Errno::NOSPC));
    assert_eq!(fs.lookup(ROOT, b"c"), Err(Errno::NOENT));
    assert_eq!(fs.write(file, 0, 0, &[1; 8193], WriteFlags::default()), Err(Errno::NOSPC));
    fs.write(file, 0, 0, &[1; 8192], WriteFlags::default()).unwrap();
    fs.change(ROOT_USER, file, Change { size: Some(1), ..Change::default() }).unwrap();
    assert_eq!(used(&fs), (3, 1));
}

#[test]
fn reading_sets_the_time_of_access_once_after_a_change() {
    for keeps_access_times in [true, false] {
        let fs = MemoryFileSystem::new(Options { keeps_access_times, ..Options::default() });
        let file = add(&fs, ROOT, "a", FileKind::Regular).ino;
        fs.write(file, 0, 0, b"x", WriteFlags::default()).unwrap();
        let read = || {
            fs.read(file, 0, 0, 1, &mut Vec::new()).unwrap();
            fs.attributes(file).unwrap().accessed
        };
        let before = fs.attributes(file).unwrap().accessed;
        let first = read();
        assert_eq!(first > before, keeps_access_times);
        assert_eq!(read(), first);
    }
}

#[test]
fn opening_to_read_sets_the_time_of_access_as_reading_does() {
    let fs = MemoryFileSystem::default();
    let file = add(&fs, ROOT, "a", FileKind::Regular).ino;
    let accessed = |ino| fs.attributes(ino).unwrap().accessed;
    let made = accessed(file);
    let open = |read, write| fs.open(file, OpenFlags { read, write, ..OpenFlags::default() }).unwrap().sets_access_time;
    assert_eq!((open(false, true), accessed(file)), (false, made));
    assert!(open(true, true) && accessed(file) > made);
    let first = accessed(file);
    assert_eq!((open(true, false), accessed(file)), (false, first));
    // Nor does it, or a read by its handle, where that was asked for, though the time is due.
    fs.write(file, 0, 0, b"x", WriteFlags::default()).unwrap();
    let quiet = fs.open(file, OpenFlags { read: true, keeps_access_time: true, ..OpenFlags::default() }).unwrap();
    let read = |handle| fs.read(file, handle, 0, 1, &mut Vec::new()).map(|()| accessed(file)).unwrap();
    assert_eq!((quiet.sets_access_time, read(quiet.handle)), (false, first));
    assert!(read(0) > first);
    // A file that is made by opening it was not read.
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let create = || fs.create(ROOT_USER, ROOT, b"b", node, flags).unwrap();
    let (made, opened) = create();
    assert_eq!((opened.sets_access_time, made.accessed), (false, made.modified));
    let (found, opened) = create();
    assert!(opened.sets_access_time && found.accessed > made.accessed);
    assert_eq!([1, 2].map(|_| fs.open_directory(ROOT).unwrap().sets_access_time), [true, false]);
}
