//! What access to a file leaves behind: times, as reads of a volume set them, and privileges, which changes take.

use crate::support::sample::{add, empty, mount, write};
use isotherm_fs::log::LogSettings;
use isotherm_fs::volume::Volume;
use isotherm_vfs::memory::{MemoryFileSystem, Options};
use isotherm_vfs::{
    Allocation, Caller, Change, Errno, FileKind, FileSystem, Handle, NewNode, OpenFlags, ROOT, RenameMode, Result,
    SetXattr, Time,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Who opened with `O_NOATIME` reads without a trace; who did not open so sets the time, which was due all along.
#[test]
fn a_read_sets_the_time_of_access_unless_its_handle_says_otherwise() {
    let seconds = Arc::new(AtomicI64::new(1));
    let clock = seconds.clone();
    let now = move || Time { seconds: clock.load(Ordering::Relaxed), nanoseconds: 0 };
    let volume = Volume::open(empty(), LogSettings::default(), now).expect("it is new").0;
    let ino = add(&volume, ROOT, "file", FileKind::Regular);
    write(&volume, ino, 0, b"content");
    seconds.store(5, Ordering::Relaxed);
    // Opened to write: only reading sets the time.
    let open = |keeps_access_time| {
        let flags = OpenFlags { write: true, keeps_access_time, ..OpenFlags::default() };
        volume.open(ino, flags).expect("it is there").handle
    };
    let accessed_after = |handle| {
        volume.read(ino, handle, 0, 7, &mut Vec::new()).expect("the device works");
        volume.attributes(ino).expect("it is there").accessed.seconds
    };
    assert_eq!(accessed_after(open(true)), 1);
    assert_eq!(accessed_after(open(false)), 5);
    // Following a link is reading it.
    let link = volume.symlink(Caller::default(), ROOT, b"link", b"file").expect("there is room");
    seconds.store(9, Ordering::Relaxed);
    volume.read_link(link.ino).expect("the device works");
    let found = volume.attributes(link.ino).expect("it is there");
    assert_eq!((found.accessed.seconds, found.changed.seconds), (9, 5));
}

/// A request that changes a file, on behalf of somebody.
type Request<'a> = &'a dyn Fn(Caller) -> Result<()>;

/// What changes a file takes set-user-ID and set-group-ID, unless root does it; who opens a file has no say in what the kernel asks for on
/// its behalf.
fn changes_take_privileges(files: &dyn FileSystem) {
    let node = NewNode { kind: FileKind::Regular, permissions: 0o6777, umask: 0, device: 0 };
    let [from, to] =
        [b"from", b"to  "].map(|name| files.make_node(Caller::default(), ROOT, name, node).expect("there is room").ino);
    files.write(from, Handle::default(), 0, &[7; 20_000], Default::default()).expect("there is room");
    let at = Handle::default();
    let (root, user) = (Caller::default(), Caller { uid: 1000, gid: 1000, pid: 0 });
    let reserve = Allocation::Reserve { keep_size: false };
    let zeros = Allocation::ZeroRange { keep_size: true };
    let changes: [(&str, Request<'_>); 4] = [
        ("copies", &|who| files.copy_range(who, (from, 0), (to, 100), 9000).map(drop)),
        ("allocates", &|who| files.allocate(who, to, at, 0, 30_000, reserve)),
        ("punches", &|who| files.allocate(who, to, at, 0, 5000, Allocation::PunchHole)),
        ("zeros", &|who| files.allocate(who, to, at, 0, 5000, zeros)),
    ];
    for (what, change) in changes {
        for (who, left) in [(root, 0o6777), (user, 0o777)] {
            let full = Change { permissions: Some(0o6777), ..Change::default() };
            files.change(root, to, full).expect("it is there");
            change(who).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            assert_eq!(files.attributes(to).expect("it is there").permissions, left, "{what}, {who:?}");
        }
    }
}

#[test]
fn a_volume_takes_privileges_with_every_change() {
    changes_take_privileges(&mount(empty(), false));
}

#[test]
fn memory_takes_privileges_with_every_change() {
    changes_take_privileges(&MemoryFileSystem::new(Options::default()));
}

/// No ACL is what there is without one.
#[test]
fn an_acl_that_is_not_there_can_be_removed() {
    let volume = mount(empty(), false);
    let ino = add(&volume, ROOT, "file", FileKind::Regular);
    for name in [b"system.posix_acl_access", &b"system.posix_acl_default"[..]] {
        assert_eq!(volume.remove_xattr(ino, name), Ok(()));
    }
    assert_eq!(volume.remove_xattr(ino, b"user.none"), Err(Errno::NODATA));
    assert_eq!(volume.set_xattr(Caller::default(), ino, b"user.none", b"", SetXattr::Any), Ok(()));
}

/// Programs save a file by writing another and renaming it: that works on a full volume, whoever has the old one open.
#[test]
fn a_name_is_replaced_on_a_full_volume() {
    let volume = mount(empty(), false);
    let made: Vec<_> = (0..40).map(|number| add(&volume, ROOT, &format!("f{number}"), FileKind::Regular)).collect();
    for ino in &made {
        volume.write(*ino, Handle::default(), 0, &[7; 5000], Default::default()).expect("there is room");
    }
    let filler = add(&volume, ROOT, "filler", FileKind::Regular);
    let mut at = 0;
    for step in [1 << 20, 4096] {
        while volume.write(filler, Handle::default(), at, &vec![1; step], Default::default()).is_ok() {
            at += step as u64;
        }
    }
    for pair in 0..20 {
        let [old, new] = [2 * pair, 2 * pair + 1].map(|number| format!("f{number}").into_bytes());
        // Somebody refers to the file that goes.
        volume.lookup(ROOT, &new).expect("it is there");
        assert_eq!(volume.rename(ROOT, &old, ROOT, &new, RenameMode::Replace), Ok(()), "pair {pair}");
    }
}
