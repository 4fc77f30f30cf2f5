//! Directories.

use super::*;
use crate::tree::name_page;

fn listed(tree: &mut Tree<MemoryStore>, ino: Ino) -> Vec<(Vec<u8>, u64)> {
    let mut names = Vec::new();
    tree.read_directory(ino, 0, &mut |entry| {
        names.push((entry.name.to_vec(), entry.cookie));
        true
    })
    .unwrap();
    names
}

#[test]
fn a_new_tree_is_whole_and_has_a_root() {
    let mut tree = tree();
    assert_whole(&mut tree);
    let root = tree.attributes(ROOT).unwrap();
    assert_eq!((root.links, root.kind, root.permissions, root.size), (2, FileKind::Directory, 0o755, 0));
    assert_eq!(listed(&mut tree, ROOT), [(b".".to_vec(), 1), (b"..".to_vec(), 2)]);
    let statistics = tree.statistics().unwrap();
    assert_eq!(statistics.inodes - statistics.inodes_free, 1);
}

/// The height of the tree grows to three levels and comes back to none; pages are given back.
#[test]
fn many_names_come_and_go() {
    let mut tree = tree();
    let pages = |tree: &Tree<MemoryStore>| tree.store().space().free;
    let before = pages(&tree);
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    let count = 20_000;
    let name = |i: u32| format!("a rather long name of a file, so that leaves hold few of them: {i:0150}");
    let file = tree.make(directory, &name(0), FileKind::Regular);
    for i in 1..count {
        tree.link(file, directory, name(i).as_bytes()).unwrap();
    }
    tree.forget(file, u64::from(count)).unwrap();
    let inode = tree.inode(directory).unwrap();
    let root = tree.store.page(inode.root).unwrap();
    assert_eq!(name_page::level(&root), 2);
    assert_whole(&mut tree);
    assert_eq!(listed(&mut tree, directory).len(), count as usize + 2);
    for i in 0..count {
        assert_eq!(tree.find(directory, &name(i)).unwrap().ino, file);
    }
    for i in (0..count).filter(|i| i % 10 != 0) {
        tree.unlink(directory, name(i).as_bytes()).unwrap();
    }
    assert_whole(&mut tree);
    assert_eq!(tree.attributes(file).unwrap().links, count / 10);
    let left = tree.store().space().total - pages(&tree);
    assert!(left < 400, "a tenth of the names takes {left} pages");
    for i in (0..count).step_by(10) {
        tree.unlink(directory, name(i).as_bytes()).unwrap();
    }
    assert_eq!(tree.inode(directory).unwrap().root, 0);
    tree.remove_directory(ROOT, b"d").unwrap();
    assert_whole(&mut tree);
    assert_eq!(pages(&tree), before);
}

#[test]
fn names_of_one_hash_are_told_apart() {
    let store = MemoryStore::new(10_000);
    let mut tree = Tree::format(store, &FormatOptions { hash_dropped_bits: 54, ..options() }).unwrap();
    let made: Vec<Ino> = (0..300)
        .map_while(|i| {
            let node = tree.make_node(CALLER, ROOT, format!("f{i}").as_bytes(), node(FileKind::Regular));
            node.ok().map(|node| node.ino)
        })
        .collect();
    assert!(made.len() >= 256, "256 names of a hash fit: {}", made.len());
    let full = tree.make_node(CALLER, ROOT, format!("f{}", made.len()).as_bytes(), node(FileKind::Regular));
    assert_eq!(errno(full), Errno::NOSPC);
    for (i, ino) in made.iter().enumerate() {
        assert_eq!(tree.find(ROOT, &format!("f{i}")).unwrap().ino, *ino);
    }
    tree.unlink(ROOT, b"f7").unwrap();
    assert_eq!(errno(tree.find(ROOT, "f7")), Errno::NOENT);
    assert_eq!(tree.find(ROOT, "f8").unwrap().ino, made[8]);
    tree.make(ROOT, "another", FileKind::Regular);
    assert_whole(&mut tree);
}

/// A listing in small steps, while other names come and go, shows every name that stays exactly once.
#[test]
fn a_listing_survives_changes() {
    let mut tree = tree();
    for i in 0..500 {
        tree.make(ROOT, &format!("stays{i}"), FileKind::Fifo);
    }
    let (mut cookie, mut seen, mut round) = (0, Vec::new(), 0);
    loop {
        let mut taken = 0;
        tree.read_directory(ROOT, cookie, &mut |entry| {
            taken += 1;
            if taken <= 7 {
                seen.push(entry.name.to_vec());
                cookie = entry.cookie;
            }
            taken <= 7
        })
        .unwrap();
        if taken == 0 {
            break;
        }
        tree.make(ROOT, &format!("comes{round}"), FileKind::Fifo);
        if round % 2 == 1 {
            tree.unlink(ROOT, format!("comes{}", round - 1).as_bytes()).unwrap();
        }
        round += 1;
    }
    let mut stays: Vec<_> = seen.iter().filter(|name| name.starts_with(b"stays")).collect();
    assert_eq!(stays.len(), 500);
    stays.sort();
    stays.dedup();
    assert_eq!(stays.len(), 500);
}

#[test]
fn names_have_their_rules() {
    let mut tree = tree();
    let long = "n".repeat(256);
    let fits = "n".repeat(255);
    let file = tree.make(ROOT, &fits, FileKind::Regular);
    assert_eq!(tree.find(ROOT, &fits).unwrap().ino, file);
    assert_eq!(errno(tree.find(ROOT, &long)), Errno::NAMETOOLONG);
    assert_eq!(errno(tree.make_node(CALLER, ROOT, long.as_bytes(), node(FileKind::Fifo))), Errno::NAMETOOLONG);
    assert_eq!(errno(tree.make_node(CALLER, ROOT, fits.as_bytes(), node(FileKind::Fifo))), Errno::EXIST);
    assert_eq!(errno(tree.make_node(CALLER, ROOT, b"a/b", node(FileKind::Fifo))), Errno::INVAL);
    assert_eq!(errno(tree.lookup(file, b"x")), Errno::NOTDIR);
    assert_eq!(errno(tree.unlink(ROOT, b"none")), Errno::NOENT);
    assert_eq!(errno(tree.attributes(999)), Errno::IO);
    assert_eq!(errno(tree.attributes(16)), Errno::STALE);
    assert_eq!(errno(tree.attributes(2 * 16)), Errno::STALE);
    assert_eq!(tree.find(ROOT, ".").unwrap().ino, ROOT);
    assert_eq!(tree.find(ROOT, "..").unwrap().ino, ROOT);
}

/// A directory that was removed while it was open is there, empty, and takes no names.
#[test]
fn a_removed_directory_is_empty() {
    let mut tree = tree();
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    tree.open_directory(directory).unwrap();
    assert_eq!(tree.attributes(ROOT).unwrap().links, 3);
    tree.remove_directory(ROOT, b"d").unwrap();
    assert_eq!(tree.attributes(ROOT).unwrap().links, 2);
    assert_eq!(tree.attributes(directory).unwrap().links, 0);
    assert_eq!(listed(&mut tree, directory), []);
    assert_eq!(errno(tree.make_node(CALLER, directory, b"x", node(FileKind::Regular))), Errno::NOENT);
    assert_whole(&mut tree);
    tree.release_directory(directory).unwrap();
    assert_eq!(errno(tree.attributes(directory)), Errno::STALE);
    assert_whole(&mut tree);
    assert_eq!(tree.nodes.held(), 0);
}

#[test]
fn readdir_plus_refers_to_what_was_taken() {
    let mut tree = tree();
    let file = tree.make(ROOT, "f", FileKind::Regular);
    tree.read_directory_plus(ROOT, 0, &mut |entry, attributes| entry.ino == attributes.ino).unwrap();
    assert_eq!(tree.nodes.held(), 1);
    tree.unlink(ROOT, b"f").unwrap();
    assert_eq!(tree.attributes(file).unwrap().links, 0);
    tree.forget(file, 1).unwrap();
    assert_eq!(errno(tree.attributes(file)), Errno::STALE);
    assert_whole(&mut tree);
}

/// Numbers are used again, with another generation; pages of inodes that are empty go.
#[test]
fn inode_numbers_come_back_with_another_generation() {
    let mut tree = tree();
    let before = tree.store().space().free;
    let mut last = 0;
    for i in 0..200 {
        last = tree.make(ROOT, &format!("f{i}"), FileKind::Socket);
    }
    let generation = tree.attributes(last).unwrap().generation;
    tree.unlink(ROOT, b"f199").unwrap();
    let again = tree.make(ROOT, "again", FileKind::Socket);
    assert_eq!(again, last);
    assert_ne!(tree.attributes(again).unwrap().generation, generation);
    assert_whole(&mut tree);
    for i in 0..199 {
        tree.unlink(ROOT, format!("f{i}").as_bytes()).unwrap();
    }
    tree.unlink(ROOT, b"again").unwrap();
    assert_whole(&mut tree);
    assert_eq!(tree.store().space().free, before);
}
