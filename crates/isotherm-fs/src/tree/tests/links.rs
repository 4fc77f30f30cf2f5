//! Nodes: links, owners, extended attributes, ACLs; and what a check finds when they are damaged.

use isotherm_vfs::{Change, OpenFlags, RenameMode, SetXattr};

use super::*;
use crate::store::{PageId, Purpose};
use crate::tree::inode::{Inode, place};

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A file without a name lives as long as it is open or referred to, and one crash later it is gone.
#[test]
fn an_open_file_outlives_its_name() {
    let mut tree = tree();
    let made = tree.create(CALLER, ROOT, b"f", node(FileKind::Regular), OpenFlags::default()).unwrap();
    let file = made.0.ino;
    let before = tree.store().space().free;
    tree.put(file, 0, &[1; 100_000]).unwrap();
    tree.unlink(ROOT, b"f").unwrap();
    tree.forget(file, 1).unwrap();
    assert_eq!(tree.whole(file), [1; 100_000]);
    assert_eq!(errno(tree.link(file, ROOT, b"again")), Errno::NOENT);
    assert_whole(&mut tree);
    let mut after = Tree::open_store(tree.store().crash(|_| true)).unwrap();
    assert_eq!(after.recover_orphans().unwrap(), 1);
    assert_eq!(errno(after.attributes(file)), Errno::STALE);
    assert_whole(&mut after);
    tree.release(file).unwrap();
    assert_eq!(errno(tree.attributes(file)), Errno::STALE);
    assert_whole(&mut tree);
    assert_eq!(tree.store().space().free, before + 1, "the page of the name and those of the file are free");
}

/// Deleting open files takes space for the list of them, on a full volume too: where they go in the order of their numbers, that is full pages.
#[test]
fn the_list_of_orphans_fills_its_pages() {
    const FILES: u64 = 2000;
    let mut tree = tree();
    let files: Vec<Ino> = (0..FILES).map(|i| tree.make(ROOT, &i.to_string(), FileKind::Regular)).collect();
    files.iter().for_each(|ino| tree.nodes.open(*ino));
    (0..FILES).for_each(|i| tree.unlink(ROOT, i.to_string().as_bytes()).unwrap());
    assert_whole(&mut tree);
    let before = tree.store().space().free;
    files.iter().for_each(|ino| tree.release(*ino).unwrap());
    // 15 inodes in a page, and 204 records, the last of which may be nearly empty.
    let pages = FILES / 15 + FILES / 204 + 2;
    let freed = tree.store().space().free - before;
    assert!(freed <= pages, "{freed} pages of {pages}");
    assert_whole(&mut tree);
}

#[test]
fn create_opens_what_is_there() {
    let mut tree = tree();
    let create = |tree: &mut Tree<MemoryStore>, name: &[u8], exclusive, truncate| {
        let flags = OpenFlags { exclusive, truncate, write: true, ..OpenFlags::default() };
        tree.create(CALLER, ROOT, name, node(FileKind::Regular), flags).map(|made| made.0)
    };
    let file = create(&mut tree, b"f", true, false).unwrap().ino;
    tree.put(file, 0, b"data").unwrap();
    assert_eq!(errno(create(&mut tree, b"f", true, false)), Errno::EXIST);
    assert_eq!(create(&mut tree, b"f", false, false).unwrap().size, 4);
    assert_eq!(create(&mut tree, b"f", false, true).unwrap().size, 0);
    tree.make(ROOT, "d", FileKind::Directory);
    assert_eq!(errno(create(&mut tree, b"d", false, false)), Errno::ISDIR);
}

#[test]
fn group_and_bit_of_a_set_group_id_directory_are_inherited() {
    let mut tree = tree();
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    let change = Change { permissions: Some(0o2777), gid: Some(50), ..Change::default() };
    tree.change(CALLER, directory, change).unwrap();
    let mut make = |name: &[u8], kind, permissions, caller| {
        let new = NewNode { kind, permissions, umask: 0o027, device: 5 };
        let made = tree.make_node(caller, directory, name, new).unwrap();
        (made.permissions, made.gid, made.uid, made.device)
    };
    let stranger = Caller { uid: 9, gid: 9, pid: 1 };
    assert_eq!(make(b"a", FileKind::Directory, 0o777, stranger), (0o2750, 50, 9, 0));
    assert_eq!(make(b"b", FileKind::Regular, 0o2777, stranger), (0o750, 50, 9, 0));
    assert_eq!(make(b"c", FileKind::Regular, 0o2767, stranger), (0o2740, 50, 9, 0));
    assert_eq!(make(b"e", FileKind::Regular, 0o2777, CALLER), (0o2750, 50, 0, 0));
    assert_eq!(make(b"f", FileKind::CharacterDevice, 0o600, CALLER), (0o600, 50, 0, 5));
    assert_whole(&mut tree);
}

#[test]
fn default_acls_stand_in_for_the_umask() {
    let mut tree = tree();
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    let default = acl(&[(1, 7, 0), (2, 6, 1000), (4, 5, 0), (16, 7, 0), (32, 0, 0)]);
    tree.set_xattr(CALLER, directory, DEFAULT, &default, SetXattr::Any).unwrap();
    let new = |kind| NewNode { kind, permissions: 0o666, umask: 0o077, device: 0 };
    let file = tree.make_node(CALLER, directory, b"f", new(FileKind::Regular)).unwrap();
    assert_eq!(file.permissions, 0o660);
    let access = acl(&[(1, 6, 0), (2, 6, 1000), (4, 5, 0), (16, 6, 0), (32, 0, 0)]);
    assert_eq!(tree.xattr(file.ino, ACCESS).unwrap(), access);
    assert_eq!(errno(tree.xattr(file.ino, DEFAULT)), Errno::NODATA);
    let inner = tree.make_node(CALLER, directory, b"i", new(FileKind::Directory)).unwrap();
    assert_eq!(tree.xattr(inner.ino, DEFAULT).unwrap(), default);
    let link = tree.symlink(CALLER, directory, b"s", b"target").unwrap();
    assert_eq!((tree.xattrs(link.ino).unwrap().len(), link.permissions), (0, 0o777));

    let change = Change { permissions: Some(0o640), ..Change::default() };
    tree.change(CALLER, file.ino, change).unwrap();
    let changed = acl(&[(1, 6, 0), (2, 6, 1000), (4, 5, 0), (16, 4, 0), (32, 0, 0)]);
    assert_eq!(tree.xattr(file.ino, ACCESS).unwrap(), changed);
    let stranger = Caller { uid: 9, gid: 9, pid: 1 };
    tree.change(CALLER, file.ino, Change { permissions: Some(0o2640), ..Change::default() }).unwrap();
    tree.set_xattr(stranger, file.ino, ACCESS, &acl(&[(1, 7, 0), (4, 5, 0), (32, 1, 0)]), SetXattr::Any).unwrap();
    assert_eq!(tree.attributes(file.ino).unwrap().permissions, 0o751);
    assert_eq!(errno(tree.xattr(file.ino, ACCESS)), Errno::NODATA);
    assert_eq!(errno(tree.set_xattr(CALLER, file.ino, ACCESS, &[2, 0], SetXattr::Any)), Errno::INVAL);
    assert_eq!(errno(tree.set_xattr(CALLER, file.ino, DEFAULT, &default, SetXattr::Any)), Errno::ACCESS);
    for name in ["system.other", "other", "other.name", "user.", "user"] {
        let set = tree.set_xattr(CALLER, file.ino, name.as_bytes(), b"", SetXattr::Any);
        assert_eq!(errno(set), Errno::OPNOTSUPP, "{name}");
    }
    assert_whole(&mut tree);
}

#[test]
fn extended_attributes_have_limits() {
    let mut tree = tree();
    let file = tree.make(ROOT, "f", FileKind::Regular);
    let set = |tree: &mut Tree<MemoryStore>, name: &[u8], length| {
        tree.set_xattr(CALLER, file, name, &vec![b'v'; length], SetXattr::Any)
    };
    let name = |length: usize| [b"user.", vec![b'n'; length - 5].as_slice()].concat();
    set(&mut tree, &name(255), 65_536).unwrap();
    assert_eq!(errno(set(&mut tree, &name(256), 1)), Errno::RANGE);
    assert_eq!(errno(set(&mut tree, b"user.m", 65_537)), Errno::TOOBIG);
    assert_eq!(errno(set(&mut tree, b"user.m", 65_536)), Errno::NOSPC);
    set(&mut tree, b"user.m", (128 << 10) - 65_536 - 255 - 5 - 11).unwrap();
    let mut tree = tree.reopen();
    assert_eq!(tree.xattr(file, &name(255)).unwrap().len(), 65_536);
    assert_eq!(tree.xattrs(file).unwrap().len(), 2);
    assert_whole(&mut tree);
    tree.remove_xattr(file, b"user.m").unwrap();
    tree.remove_xattr(file, &name(255)).unwrap();
    assert_eq!(tree.inode(file).unwrap().xattrs, 0);
    assert_whole(&mut tree);
}

#[test]
fn symbolic_links_have_targets_of_up_to_4095_bytes() {
    let mut tree = tree();
    for length in [1, 4080, 4081, 4095] {
        let target = vec![b't'; length];
        let link = tree.symlink(CALLER, ROOT, format!("l{length}").as_bytes(), &target).unwrap();
        assert_eq!(tree.read_link(link.ino).unwrap(), target);
        assert_eq!(link.size, length as u64);
    }
    assert_eq!(errno(tree.symlink(CALLER, ROOT, b"l", &[b't'; 4096])), Errno::NAMETOOLONG);
    assert_eq!(errno(tree.symlink(CALLER, ROOT, b"l", b"")), Errno::NOENT);
    assert_eq!(errno(tree.read_link(ROOT)), Errno::INVAL);
    assert_whole(&mut tree);
}

#[test]
fn directories_move_with_what_is_below() {
    let mut tree = tree();
    let a = tree.make(ROOT, "a", FileKind::Directory);
    let b = tree.make(a, "b", FileKind::Directory);
    let c = tree.make(b, "c", FileKind::Directory);
    let rename = |tree: &mut Tree<MemoryStore>, from: (Ino, &str), to: (Ino, &str), mode| {
        tree.rename(from.0, from.1.as_bytes(), to.0, to.1.as_bytes(), mode)
    };
    let replace = RenameMode::Replace;
    assert_eq!(errno(rename(&mut tree, (ROOT, "a"), (c, "x"), replace)), Errno::INVAL);
    assert_eq!(errno(rename(&mut tree, (ROOT, "a"), (a, "x"), replace)), Errno::INVAL);
    assert_eq!(errno(rename(&mut tree, (b, "c"), (ROOT, "a"), replace)), Errno::NOTEMPTY);
    assert_eq!(errno(rename(&mut tree, (ROOT, "a"), (b, "c"), RenameMode::Exchange)), Errno::INVAL);
    assert_eq!(errno(rename(&mut tree, (b, "c"), (ROOT, "a"), RenameMode::Exchange)), Errno::INVAL);
    tree.set_now(time(50));
    rename(&mut tree, (a, "b"), (ROOT, "b"), replace).unwrap();
    assert_eq!(tree.find(b, "..").unwrap().ino, ROOT);
    assert_eq!((tree.attributes(ROOT).unwrap().links, tree.attributes(a).unwrap().links), (4, 2));
    for ino in [ROOT, a, b] {
        assert_eq!(tree.attributes(ino).unwrap().changed, time(50));
    }
    assert_eq!(tree.attributes(b).unwrap().modified, time(1));
    let file = tree.make(c, "f", FileKind::Regular);
    rename(&mut tree, (c, "f"), (ROOT, "a"), RenameMode::Exchange).unwrap();
    assert_eq!((tree.find(ROOT, "a").unwrap().ino, tree.find(c, "f").unwrap().ino), (file, a));
    assert_eq!(tree.find(a, "..").unwrap().ino, c);
    assert_whole(&mut tree);
}

/// In an overlay's upper layer: whatever moves, a character device 0:0 of the caller's is left.
#[test]
fn a_whiteout_is_left_where_a_name_was() {
    let mut tree = tree();
    let directory = tree.make(ROOT, "d", FileKind::Directory);
    tree.make(ROOT, "f", FileKind::Regular);
    let caller = Caller { uid: 3, gid: 4, pid: 1 };
    let whiteout = |replaces| RenameMode::Whiteout { caller, replaces };
    for (name, new_name) in [("f", "g"), ("d", "e")] {
        let moved = tree.find(ROOT, name).unwrap().ino;
        tree.store_mut().record_history();
        tree.rename(ROOT, name.as_bytes(), ROOT, new_name.as_bytes(), whiteout(false)).unwrap();
        assert_eq!(tree.store_mut().take_history().len(), 1, "a crash leaves both or neither");
        assert_eq!(tree.find(ROOT, new_name).unwrap().ino, moved);
        let left = tree.find(ROOT, name).unwrap();
        assert_eq!((left.kind, left.permissions, left.device, left.links), (FileKind::CharacterDevice, 0, 0, 1));
        assert_eq!((left.uid, left.gid), (3, 4));
    }
    assert_eq!(tree.attributes(ROOT).unwrap().links, 3);
    assert_eq!(errno(tree.rename(ROOT, b"g", ROOT, b"f", whiteout(false))), Errno::EXIST);
    assert_eq!(errno(tree.rename(ROOT, b"e", directory, b"f", whiteout(true))), Errno::INVAL);
    // A whiteout is replaced like any other file, and its node is gone.
    let inodes = |tree: &mut Tree<MemoryStore>| {
        let has = tree.statistics().unwrap();
        has.inodes - has.inodes_free
    };
    let before = inodes(&mut tree);
    tree.rename(ROOT, b"g", ROOT, b"f", whiteout(true)).unwrap();
    assert_eq!((tree.find(ROOT, "g").unwrap().kind, inodes(&mut tree)), (FileKind::CharacterDevice, before));
    assert_whole(&mut tree);
}

/// Changes bytes of a page behind the tree's back.
fn spoil(tree: &mut Tree<MemoryStore>, id: PageId, change: impl FnOnce(&mut crate::store::Page)) {
    tree.store.begin(Purpose::Grow).unwrap();
    change(tree.store.page_mut(id).unwrap());
    tree.store.commit();
}

fn spoil_inode(tree: &mut Tree<MemoryStore>, ino: Ino, change: impl FnOnce(&mut Inode)) {
    let (id, at) = place(ino).unwrap();
    spoil(tree, id, |page| {
        let mut inode = Inode::decode(page, at).unwrap().unwrap();
        change(&mut inode);
        inode.encode(page, at);
    });
}

#[test]
fn a_check_finds_what_is_wrong() {
    let made = || {
        let mut tree = tree();
        let directory = tree.make(ROOT, "d", FileKind::Directory);
        let file = tree.make(directory, "f", FileKind::Regular);
        tree.put(file, 0, &[1; 300 * 4096]).unwrap();
        tree.set_xattr(CALLER, file, b"user.x", b"y", SetXattr::Any).unwrap();
        assert_whole(&mut tree);
        (tree, directory, file)
    };
    let (mut tree, _, file) = made();
    spoil_inode(&mut tree, file, |inode| inode.links = 2);
    assert_eq!(tree.kinds(), [FindingKind::Links]);
    let (mut tree, _, file) = made();
    spoil_inode(&mut tree, file, |inode| inode.blocks -= 1);
    assert_eq!(tree.kinds(), [FindingKind::BlockCount]);
    let (mut tree, directory, _) = made();
    spoil_inode(&mut tree, directory, |inode| inode.size = 2);
    assert_eq!(tree.kinds(), [FindingKind::Names]);
    let (mut tree, directory, file) = made();
    spoil_inode(&mut tree, directory, |inode| inode.parent = file);
    assert!(tree.kinds().contains(&FindingKind::Names));
    let (mut tree, _, file) = made();
    spoil_inode(&mut tree, file, |inode| inode.xattrs = 0);
    assert_eq!(tree.kinds(), [FindingKind::Reach]);
    let (mut tree, _, file) = made();
    spoil_inode(&mut tree, file, |inode| inode.xattrs = 77);
    assert!(tree.kinds().contains(&FindingKind::Page));
    let (mut tree, _, file) = made();
    spoil_inode(&mut tree, file, |inode| inode.height = 3);
    assert!(tree.kinds().contains(&FindingKind::Map));
    spoil_inode(&mut tree, file, |inode| inode.height = 2);
    let inode = tree.inode(file).unwrap();
    let leaf = tree.slot(file, &inode, 8).unwrap().unwrap().page;
    spoil(&mut tree, leaf, |page| page[4] = 1);
    assert_eq!(tree.kinds(), [FindingKind::Map]);
    let (mut tree, directory, _) = made();
    let root = tree.inode(directory).unwrap().root;
    spoil(&mut tree, root, |page| page[4090] ^= 1);
    assert!(tree.kinds().contains(&FindingKind::Names));
    let (mut tree, _, _) = made();
    spoil(&mut tree, 0, |page| page[2] |= 1 << 7);
    assert_eq!(tree.kinds(), [FindingKind::Room]);
    let (mut tree, _, _) = made();
    spoil(&mut tree, 1, |page| (page[8], page[12]) = (1, 1));
    assert_eq!(tree.kinds(), [FindingKind::Room]);
    let (mut tree, _, _) = made();
    spoil(&mut tree, 1, |page| page[16] += 1);
    assert_eq!(tree.kinds(), [FindingKind::Inode]);
    let (mut tree, _, file) = made();
    tree.nodes.open(file);
    let directory = tree.find(ROOT, "d").unwrap().ino;
    tree.unlink(directory, b"f").unwrap();
    let list = crate::tree::root_page::orphans(&mut tree.store).unwrap();
    spoil(&mut tree, 1, |page| page[28..32].fill(0));
    assert_eq!(tree.kinds(), [FindingKind::Orphans, FindingKind::Reach]);
    assert_ne!(list, 0);
}
