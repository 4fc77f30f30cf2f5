//! What `sfs cp` keeps of a tree, beside what stands in the tree where it is mounted.

use super::{Stage, said};
use rustix::fs::{AtFlags, CWD, FileType, Mode, SeekFrom, Timespec, Timestamps, XattrFlags};
use rustix::fs::{getxattr, lgetxattr, llistxattr, lsetxattr, makedev, mknodat, seek, utimensat};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user `nobody`, and its group.
const NOBODY: u32 = 65534;
/// An ACL that gives another user rights, in Linux' encoding.
const ACL: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x05\0\x63\0\0\0\x04\0\x01\0\xff\xff\xff\xff\x10\0\x05\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
const ACL_ACCESS: &str = "system.posix_acl_access";
const ACL_DEFAULT: &str = "system.posix_acl_default";

/// Everything that can be told of a tree, by path; names of one node have the first of them.
fn tell(root: &Path) -> BTreeMap<PathBuf, String> {
    let (mut all, mut nodes, mut left) = (BTreeMap::new(), BTreeMap::new(), vec![PathBuf::from("")]);
    while let Some(path) = left.pop() {
        let place = if path.as_os_str().is_empty() { root.to_owned() } else { root.join(&path) };
        // Before it is read, which sets a time.
        let is = fs::symlink_metadata(&place).expect("it is there");
        let times = [is.atime(), is.atime_nsec(), is.mtime(), is.mtime_nsec()];
        let (first, times) = nodes.entry(is.ino()).or_insert((path.clone(), times));
        let kind = is.file_type();
        let size = if kind.is_dir() { 0 } else { is.len() };
        let mut text = format!("{first:?} {:o} {}:{} {size} {times:?}", is.mode(), is.uid(), is.gid());
        if kind.is_block_device() || kind.is_char_device() {
            text.push_str(&format!(" device {:x}", is.rdev()));
        } else if kind.is_symlink() {
            text.push_str(&format!(" to {:?}", fs::read_link(&place).expect("it is a link")));
        } else if kind.is_file() {
            let content = fs::read(&place).expect("it can be read");
            text.push_str(&format!(" {:?} data {:?}", checksum(&content), data_of(&place)));
        }
        let mut names = [0; 1024];
        let length = llistxattr(&place, &mut names).expect("attributes can be listed");
        let mut names: Vec<_> = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        for name in names {
            let mut value = [0; 1024];
            let length = lgetxattr(&place, name, &mut value).expect("it is there");
            text.push_str(&format!(" {}={:?}", String::from_utf8_lossy(name), &value[..length]));
        }
        if kind.is_dir() {
            let entries = fs::read_dir(&place).expect("it can be listed");
            let mut below: Vec<_> = entries.map(|entry| path.join(entry.expect("an entry").file_name())).collect();
            below.sort();
            left.extend(below.into_iter().rev());
        }
        all.insert(path, text);
    }
    all
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Where a file has data.
fn data_of(path: &Path) -> Vec<(u64, u64)> {
    let file = File::open(path).expect("it can be opened");
    let (mut all, mut at) = (Vec::new(), 0);
    while let Ok(from) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(from)).expect("the end is a hole");
        all.push((from, at));
    }
    all
}

/// A tree with everything that `cp -a` keeps.
fn grow(root: &Path) {
    let path = |name: &str| root.join(name);
    fs::create_dir_all(path("tree/folder")).expect("a folder");
    let file = File::create(path("tree/file")).expect("a file");
    file.write_all_at(b"content", 0).expect("there is room");
    file.write_all_at(&[7; 5000], 5 << 20).expect("there is room");
    file.set_len(9 << 20).expect("it can grow");
    for (name, other) in [("tree/folder/same", "tree/file"), ("outside", "tree/file")] {
        fs::hard_link(path(other), path(name)).expect("a link");
    }
    fs::write(path("tree/large"), vec![3; 3 << 20]).expect("there is room");
    symlink("../nowhere", path("tree/symlink")).expect("a link");
    fs::hard_link(path("tree/symlink"), path("tree/symlink too")).expect("a link");
    for (name, kind, device) in [
        ("tree/fifo", FileType::Fifo, 0),
        ("tree/socket", FileType::Socket, 0),
        ("tree/null", FileType::CharacterDevice, makedev(1, 3)),
        ("tree/disk", FileType::BlockDevice, makedev(259, 300_000)),
    ] {
        mknodat(CWD, path(name), kind, Mode::from(0o640), device).expect("a node");
    }
    fs::hard_link(path("tree/fifo"), path("tree/folder/fifo")).expect("a link");
    for (name, attribute, value) in [
        ("tree/file", "user.one", &b"1"[..]),
        ("tree/folder", "user.empty", b""),
        ("tree/symlink", "trusted.two", b"2"),
        ("tree/large", ACL_ACCESS, ACL),
        ("tree/folder", ACL_DEFAULT, ACL),
    ] {
        lsetxattr(path(name), attribute, value, XattrFlags::empty()).expect("it can be set");
    }
    for (number, name) in
        ["tree/file", "tree/symlink", "tree/fifo", "tree/null", "tree/folder", "tree"].iter().enumerate()
    {
        let number = number as i64;
        lchown(path(name), Some(1000 + number as u32), Some(2000)).expect("root may");
        if !name.contains("symlink") {
            fs::set_permissions(path(name), Permissions::from_mode(0o6751 - number as u32)).expect("root may");
        }
        let time = |seconds| Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
        let times = Timestamps { last_access: time(-number), last_modification: time(1_000_000_000 + number) };
        utimensat(CWD, path(name), &times, AtFlags::SYMLINK_NOFOLLOW).expect("root may");
    }
}

#[test]
fn a_copy_keeps_what_cp_keeps() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("noatime");
    grow(&stage.path("mnt"));
    let expected = tell(&stage.path("mnt/tree"));
    server.unmount();
    let names = |text: &str| expected.values().filter(|told| told.starts_with(text)).count();
    assert_eq!([names("\"file\""), names("\"symlink\""), names("\"fifo\"")], [2; 3], "{expected:#?}");
    assert_eq!(expected.values().filter(|told| told.contains("data [(0, 4096), (5242880, 5251072)]")).count(), 2);
    // What is made in this folder is given an ACL, which the copy does not have.
    let folder = stage.path("copies");
    fs::create_dir(&folder).expect("a folder");
    let probe = |attribute, value| lsetxattr(&folder, attribute, value, XattrFlags::empty());
    if let Err(error) = probe("user.probe", &b""[..]).and_then(|()| probe(ACL_DEFAULT, ACL)) {
        eprintln!("skipped: {}: keeps no attributes: {error}", folder.display());
        return;
    }
    stage.ok(&["cp", &stage.text("disk"), "/tree", &stage.text("copies/tree")]);
    let found = tell(&folder.join("tree"));
    for (path, told) in &expected {
        assert_eq!(found.get(path), Some(told), "{path:?}");
    }
    assert_eq!(found.len(), expected.len());
    // One file, of which another name is elsewhere.
    stage.ok(&["cp", &stage.text("disk"), "/outside", &stage.text("copies/one")]);
    assert_eq!(tell(&folder.join("one"))[Path::new("")].replace("\"\"", "\"file\""), expected[Path::new("file")]);
}

#[test]
fn who_may_not_give_files_away_copies_the_rest() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("noatime");
    grow(&stage.path("mnt"));
    server.unmount();
    for (name, mode) in [("", 0o755), ("disk", 0o644)] {
        fs::set_permissions(stage.path(name), Permissions::from_mode(mode)).expect("it is ours");
    }
    let folder = stage.path("copies");
    fs::create_dir(&folder).expect("a folder");
    lchown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may");
    // A copy that the user can execute, wherever it was built.
    fs::copy(env!("CARGO_BIN_EXE_isotherm"), stage.path("isotherm")).expect("there is room");
    let mut command = Command::new(stage.path("isotherm"));
    command.args(["sfs", "cp", &stage.text("disk"), "/tree", &stage.text("copies/tree")]).current_dir("/");
    let copied = command.uid(NOBODY).gid(NOBODY).output().expect("the program starts");
    assert_eq!(copied.status.code(), Some(1), "{}", said(&copied));
    let lines = said(&copied);
    for part in [
        "null: a special file, left out",
        "disk: a special file, left out",
        "symlink: the attribute trusted.two is lost",
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let is = fs::metadata(folder.join("tree/file")).expect("it is there");
    assert_eq!((is.uid(), is.mode() & 0o7777, is.len(), is.mtime()), (NOBODY, 0o751, 9 << 20, 1_000_000_000));
    assert_eq!(is.nlink(), 2);
    assert!(fs::metadata(folder.join("tree/folder/fifo")).expect("it is there").file_type().is_fifo());
    let mut value = [0; 100];
    let length = getxattr(folder.join("tree/large"), ACL_ACCESS, &mut value).expect("it is kept");
    assert_eq!(&value[..length], ACL);
}
