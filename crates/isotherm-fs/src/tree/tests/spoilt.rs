//! Pages with wrong bytes: a check says so or finds them harmless, and requests fail or go through. Nothing panics or runs for ever.

use isotherm_vfs::Change;
use proptest::prelude::*;

use super::*;
use crate::store::{PageId, Purpose, page_kind};
use crate::tree::is_entry;

fn made() -> Tree<MemoryStore> {
    let mut tree = tree();
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    for i in 0..200 {
        tree.make(directory, &format!("a name that is long enough for several leaves {i}"), FileKind::Fifo);
    }
    let file = tree.make(directory, "f", FileKind::Regular);
    tree.put(file, 0, &[1; 300 * 4096]).unwrap();
    tree.put(file, 1 << 41, &[1; 10]).unwrap();
    tree.set_xattr(CALLER, file, b"user.x", &[b'y'; 9000], Default::default()).unwrap();
    let link = tree.symlink(CALLER, ROOT, b"l", &[b't'; 4095]).unwrap();
    tree.unlink(ROOT, b"l").unwrap();
    tree.settle_all().unwrap();
    assert_eq!(tree.attributes(link.ino).unwrap().links, 0);
    tree
}

fn pages(tree: &mut Tree<MemoryStore>) -> Vec<PageId> {
    (0..).map_while(|id| tree.store.next_page(id).unwrap().filter(|next| *next == id)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn wrong_bytes_are_no_panic(wrong in prop::collection::vec((any::<u32>(), 0..4096_usize, any::<u8>(), any::<bool>()), 1..6)) {
        let mut tree = made();
        let pages = pages(&mut tree);
        tree.store.begin(Purpose::Grow).unwrap();
        for (page, at, value, in_header) in wrong {
            let page = tree.store.page_mut(pages[page as usize % pages.len()]).unwrap();
            let at = if in_header { at % 64 } else { at };
            // Entries are the store's, which has checksums for them; so is what makes a slot an entry.
            if !is_entry(page, (at / 16) as u8) && at != 0 && page[0] != page_kind::INODES {
                page[at] = value;
            }
        }
        tree.store.commit();
        drop(tree.check().unwrap());
        let Ok(mut tree) = Tree::open_store(tree.into_store()) else { return Ok(()) };
        drop(tree.recover_orphans());
        drop(tree.make_node(CALLER, ROOT, b"new", node(FileKind::Regular)));
        if let Ok(directory) = tree.find(ROOT, "d") {
            drop(tree.unlink(directory.ino, b"a name that is long enough for several leaves 7"));
            if let Ok(file) = tree.find(directory.ino, "f") {
                drop(tree.set_xattr(CALLER, file.ino, b"user.z", b"z", Default::default()));
                drop(tree.change(CALLER, file.ino, Change { size: Some(5), ..Change::default() }));
            }
        }
    }
}

/// Changes bytes of all pages behind the tree's back.
fn spoil_all(tree: &mut Tree<MemoryStore>, change: impl Fn(&mut crate::store::Page)) {
    let pages = pages(tree);
    tree.store.begin(Purpose::Grow).unwrap();
    pages.into_iter().for_each(|id| change(tree.store.page_mut(id).unwrap()));
    tree.store.commit();
}

/// Its count fell below zero, in fuzzing.
#[test]
fn a_map_that_counts_fewer_children_than_it_has_is_damaged() {
    for count in [0, u16::MAX] {
        let mut tree = made();
        let directory = tree.find(ROOT, "d").unwrap().ino;
        let file = tree.find(directory, "f").unwrap().ino;
        spoil_all(&mut tree, |page| {
            if page[0] == page_kind::MAP_INDEX {
                page[2..4].copy_from_slice(&u16::to_le_bytes(count));
            }
        });
        // A leaf goes, or comes.
        let done = match count {
            0 => tree.change(CALLER, file, Change { size: Some(5), ..Change::default() }).map(drop),
            _ => tree.put(file, 1 << 31, &[1]).map(drop),
        };
        let said = format!("{:?}", done.unwrap_err());
        assert!(said.contains("children"), "{said}");
    }
}

/// A key below that of its hash was taken for a large number, in fuzzing.
#[test]
fn names_out_of_order_are_damaged() {
    let mut said = Vec::new();
    // A binary search passes by some slots, which differ from leaf to leaf.
    for slot in 0..8 {
        let mut tree = made();
        let directory = tree.find(ROOT, "d").unwrap().ino;
        spoil_all(&mut tree, |page| {
            if page[0] == page_kind::NAMES && page[2] > slot + 1 {
                let record = |slot: u8| {
                    let at = 16 + 2 * usize::from(slot);
                    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
                };
                let (this, next) = (record(slot), record(slot + 1));
                // This is another name, so that a search goes on to the next record, whose key is 0.
                page[this + 18] ^= 1;
                page[next..next + 8].fill(0);
            }
        });
        let names = (0..200).map(|i| format!("a name that is long enough for several leaves {i}"));
        said.extend(names.filter_map(|name| tree.find(directory, &name).err()).map(|error| format!("{error:?}")));
    }
    assert!(said.iter().any(|error| error.contains("out of order")), "{said:?}");
}
