//! A tree of files whose pages have arbitrary bytes, as if no checksum guarded them: walks, look-ups, changes and a check come to an
//! end, with an error or without.
#![no_main]

use isotherm_fs::memory_store::MemoryStore;
use isotherm_fs::store::{PageId, Purpose, Store, page_kind};
use isotherm_fs::tree::{FormatOptions, Tree, is_entry};
use isotherm_fuzz_targets::node;
use isotherm_vfs::{Caller, Change, FileKind, Ino, ROOT, RenameMode, SetXattr, WriteFlags};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// Enough names for two levels.
const NAMES: u32 = 200;

fn name(number: u32) -> Vec<u8> {
    format!("a name that is long enough for several leaves {number}").into_bytes()
}

fn made() -> &'static (MemoryStore, Vec<PageId>) {
    static MADE: OnceLock<(MemoryStore, Vec<PageId>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut tree = Tree::format(MemoryStore::new(100_000), &FormatOptions::default()).expect("it is new");
        let caller = Caller::default();
        let mut make = |parent: Ino, name: &[u8], kind| {
            tree.make_node(caller, parent, name, node(kind)).expect("there is room").ino
        };
        let folder = make(ROOT, b"folder", FileKind::Directory);
        for number in 0..NAMES {
            make(folder, &name(number), FileKind::Fifo);
        }
        let file = make(folder, b"file", FileKind::Regular);
        for offset in [0, 1 << 20, 1 << 41] {
            tree.write(file, offset, &[1; 40_000], WriteFlags::default()).expect("there is room");
        }
        tree.set_xattr(caller, file, b"user.x", &[b'y'; 9000], SetXattr::default()).expect("there is room");
        let link = tree.symlink(caller, ROOT, b"link", &[b't'; 4095]).expect("there is room");
        tree.unlink(ROOT, b"link").expect("it is there");
        assert_eq!(tree.attributes(link.ino).expect("it is referred to").links, 0);
        tree.settle_all().expect("there is room");
        let mut store = tree.into_store();
        let mut pages = Vec::new();
        let mut from = Some(0);
        while let Some(id) = from.and_then(|from| store.next_page(from).expect("memory")) {
            pages.push(id);
            from = id.checked_add(1);
        }
        (store, pages)
    })
}

fn walk(tree: &mut Tree<MemoryStore>, folder: Ino, depth: u32) {
    let mut found: Vec<(Ino, Vec<u8>)> = Vec::new();
    let _ = tree.read_directory_plus(folder, 0, &mut |entry, _| {
        found.push((entry.ino, entry.name.to_vec()));
        found.len() < 1000
    });
    for (ino, name) in found.into_iter().filter(|(_, name)| !matches!(&name[..], b"." | b"..")) {
        let _ = tree.lookup(folder, &name);
        let _ = tree.read_link(ino);
        let _ = tree.xattrs(ino).map(|names| names.iter().map(|name| tree.xattr(ino, name).is_ok()).count());
        let _ = tree.read_plan(ino, 0, 1 << 16);
        if depth > 0 {
            walk(tree, ino, depth - 1);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (store, pages) = made();
    let mut store = store.clone();
    store.begin(Purpose::Grow).expect("it can be written");
    for change in data.chunks_exact(4) {
        let page = store.page_mut(pages[usize::from(change[0]) % pages.len()]).expect("it exists");
        let at = usize::from(u16::from_le_bytes([change[1], change[2]])) % 4096;
        // Entries are the store's, which has checksums for them; so is what makes a slot an entry.
        if !is_entry(page, (at / 16) as u8) && at != 0 && page[0] != page_kind::INODES {
            page[at] = change[3];
        }
    }
    store.commit();
    let Ok(mut tree) = Tree::open_store(store) else { return };
    let _ = tree.check();
    let _ = tree.recover_orphans();
    walk(&mut tree, ROOT, 3);
    let caller = Caller::default();
    let _ = tree.make_node(caller, ROOT, b"new", node(FileKind::Regular));
    let Ok(folder) = tree.lookup(ROOT, b"folder") else { return };
    for number in (0..NAMES).step_by(3) {
        let _ = tree.unlink(folder.ino, &name(number));
    }
    let _ = tree.rename(folder.ino, &name(1), ROOT, b"renamed", RenameMode::Replace);
    if let Ok(file) = tree.lookup(folder.ino, b"file") {
        let _ = tree.set_xattr(caller, file.ino, b"user.z", b"z", SetXattr::default());
        let _ = tree.write(file.ino, 1 << 30, &[2; 5000], WriteFlags::default());
        let _ = tree.change(caller, file.ino, Change { size: Some(5), ..Change::default() });
    }
    let _ = tree.check();
});
