//! A whole file system, mounted: what the kernel makes of a program's calls, and of the answers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isotherm_fuse::Ending;
use isotherm_fuse::files::FilesOptions;
use isotherm_vfs::Errno;
use isotherm_vfs::memory::{MemoryFileSystem, Options};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, RenameFlags, SeekFrom, StatxFlags, Timespec, Timestamps, XattrFlags, copy_file_range,
    fallocate, getxattr, listxattr, renameat_with, seek, setxattr, statx, utimensat,
};

use crate::fixture::{errno, has_programs, pattern, skip_privilege};
use crate::observed::{FILE_BYTES_MAX, Files};

/// Set for the process that is started as another user: the folder of the mount.
const AS_USER: &str = "ISOTHERM_TEST_FILES_AS_USER";
/// The user `nobody`, and its group.
const NOBODY: u32 = 65534;

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

#[test]
fn the_kernel_reads_half_a_mebibyte_ahead() {
    let Some(files) = Files::with(&FilesOptions::default()) else { return };
    let device = fs::metadata(files.path()).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    match fs::read_to_string(&setting) {
        Ok(kib) if rustix::process::geteuid().is_root() => assert_eq!(kib.trim(), "512"),
        _ => skip_privilege(&format!("{setting} cannot be set")),
    }
}

#[test]
fn content_is_where_it_was_put() {
    for writeback in [false, true] {
        let options = FilesOptions { writeback, ..FilesOptions::default() };
        let Some(files) = Files::with(&options) else { return };
        let (a, b) = (files.path().join("a"), files.path().join("b"));
        let file = open(&a);
        let data = pattern(1, 3 << 20);
        file.write_all_at(&data, 5000).unwrap();
        file.sync_all().unwrap();
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 1 << 20, 1 << 20).unwrap();
        // What the kernel has not written yet is unknown to the server: with a cache of that, all of a file is data.
        let (hole, data_from) = if writeback { (5000 + data.len() as u64, 1 << 20) } else { (1 << 20, 2 << 20) };
        assert_eq!(seek(&file, SeekFrom::Hole(10_000)).unwrap(), hole);
        assert_eq!(seek(&file, SeekFrom::Data(1 << 20)).unwrap(), data_from);
        let target = open(&b);
        let (mut from, mut to) = (5000, 7);
        while from < 5000 + data.len() as u64 {
            let rest = 5000 + data.len() - from as usize;
            assert!(copy_file_range(&file, Some(&mut from), &target, Some(&mut to), rest).unwrap() > 0);
        }
        let mut expected = data;
        expected[(1 << 20) - 5000..(2 << 20) - 5000].fill(0);
        assert!(fs::read(&b).unwrap()[7..] == expected);
        OpenOptions::new().append(true).open(&b).unwrap().write_all(b"end").unwrap();
        assert!(fs::read(&b).unwrap().ends_with(b"end"));
        // Past the kernel's cache, and with it.
        let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&a).unwrap();
        let mut found = vec![0; 100];
        file.write_all_at(b"new", 8192).unwrap();
        file.sync_data().unwrap();
        direct.read_exact_at(&mut found, 8192).unwrap();
        assert_eq!(&found[..3], b"new");
        assert_eq!(
            errno(fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096).map_err(Into::into)),
            libc::EOPNOTSUPP
        );
    }
}

/// As the kernel has it for file systems whose limit it knows: up to the end of the largest file, and an error from there on.
#[test]
fn a_write_ends_where_the_largest_file_does() {
    let Some(files) = Files::new() else { return };
    let path = |name: &str| files.path().join(name);
    let file = open(&path("file"));
    let data = pattern(1, 3 << 20);
    let size = || file.metadata().unwrap().len();
    // One request of several has room for a part of it: whole pages go on to the next page in the same request.
    let room = (2 << 20) + 4096;
    assert_eq!(file.write_at(&data, FILE_BYTES_MAX - room).unwrap(), room as usize);
    assert_eq!(size(), FILE_BYTES_MAX);
    let mut found = vec![0; room as usize + 1];
    assert_eq!(file.read_at(&mut found, FILE_BYTES_MAX - room).unwrap(), room as usize);
    assert!(found[..room as usize] == data[..room as usize]);
    for at in [FILE_BYTES_MAX, FILE_BYTES_MAX + (5 << 20)] {
        assert_eq!(errno(file.write_at(&data[..4096], at).map(drop)), libc::EFBIG);
    }
    // And a write of less than a page.
    let appends = OpenOptions::new().append(true).open(path("file")).unwrap();
    assert_eq!(errno((&appends).write(b"x").map(drop)), libc::EFBIG);
    file.set_len(FILE_BYTES_MAX - 3).unwrap();
    assert_eq!((&appends).write(b"four").unwrap(), 3);
    let other = open(&path("other"));
    other.write_all_at(&data, 0).unwrap();
    let copy = |mut to: u64| copy_file_range(&other, Some(&mut 0), &file, Some(&mut to), 10_000);
    assert_eq!(copy(FILE_BYTES_MAX - 5000).unwrap(), 5000);
    assert_eq!(errno(copy(FILE_BYTES_MAX).map(drop).map_err(Into::into)), libc::EFBIG);
    assert_eq!(size(), FILE_BYTES_MAX);
    // To the kernel a direct write is done, or it is not.
    file.set_len(0).unwrap();
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path("file")).unwrap();
    assert_eq!(errno(direct.write_at(&data[..8192], FILE_BYTES_MAX - 4096).map(drop)), libc::EFBIG);
    assert_eq!(size(), 0);
    assert_eq!(direct.write_at(&data[..4096], FILE_BYTES_MAX - 4096).unwrap(), 4096);
}

/// As on other file systems: a write ends where free space does, and the next one is told.
#[test]
fn a_write_that_does_not_fit_writes_what_does() {
    const ROOM: u64 = 3 << 19;
    let full = || MemoryFileSystem::new(Options { capacity_bytes: ROOM, ..Options::default() });
    let Some(files) = Files::of(&FilesOptions::default(), full()) else { return };
    let path = files.path().join("file");
    let file = open(&path);
    let data = pattern(1, 2 << 20);
    // Not at the edge of a block, so that pieces have to end there.
    assert_eq!(file.write_at(&data, 1000).unwrap(), ROOM as usize - 1000);
    assert_eq!(errno(file.write_at(&data[..4096], ROOM).map(drop)), libc::ENOSPC);
    // A direct write is done whole, or not at all: to the kernel a part of it is an error.
    file.set_len(1 << 20).unwrap();
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    assert_eq!(errno(direct.write_at(&data[..1 << 20], 1 << 20).map(drop)), libc::ENOSPC);
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    assert_eq!(direct.write_at(&data[..1 << 19], 1 << 20).unwrap(), 1 << 19);
    let found = fs::read(&path).unwrap();
    assert!(found[1000..1 << 20] == data[..(1 << 20) - 1000] && found[1 << 20..] == data[..1 << 19]);

    // What the kernel has cached it has taken: whoever asks for it to be durable is told that it is not.
    let Some(files) = Files::of(&FilesOptions { writeback: true, ..FilesOptions::default() }, full()) else { return };
    let file = open(&files.path().join("file"));
    file.write_all_at(&data, 0).unwrap();
    assert_eq!(errno(file.sync_all()), libc::ENOSPC);
}

#[test]
fn names_move_and_are_listed_once() {
    let Some(files) = Files::new() else { return };
    let path = |name: &str| files.path().join(name);
    fs::create_dir(path("d")).unwrap();
    let all: BTreeSet<OsString> = (0..3000).map(|i| OsString::from(format!("a rather long name {i}"))).collect();
    for name in &all {
        File::create(path("d").join(name)).unwrap();
    }
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(path("d")).unwrap() {
        let entry = entry.unwrap();
        assert!(seen.insert(entry.file_name()) && entry.file_type().unwrap().is_file());
        // Those that are gone take none that are still there with them.
        fs::remove_file(entry.path()).unwrap();
    }
    assert_eq!(seen, all);
    fs::remove_dir(path("d")).unwrap();

    fs::write(path("x"), "x").unwrap();
    fs::create_dir(path("y")).unwrap();
    renameat_with(CWD, path("x"), CWD, path("y"), RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(path("y")).unwrap(), b"x");
    let refused = renameat_with(CWD, path("x"), CWD, path("y"), RenameFlags::NOREPLACE);
    assert_eq!(errno(refused.map_err(Into::into)), libc::EEXIST);
    let whiteout = |from: &str, to: &str, more| {
        renameat_with(CWD, path(from), CWD, path(to), RenameFlags::WHITEOUT | more).map_err(Into::into)
    };
    fs::write(path("w"), "w").unwrap();
    whiteout("w", "moved", RenameFlags::NOREPLACE).unwrap();
    let left = fs::symlink_metadata(path("w")).unwrap();
    assert_eq!((left.mode(), left.rdev(), fs::read(path("moved")).unwrap()), (libc::S_IFCHR, 0, b"w".to_vec()));
    assert_eq!(errno(whiteout("moved", "w", RenameFlags::NOREPLACE)), libc::EEXIST);
    assert_eq!(errno(whiteout("moved", "w", RenameFlags::EXCHANGE)), libc::EINVAL);
    whiteout("moved", "w", RenameFlags::empty()).unwrap();
    assert_eq!(fs::read(path("w")).unwrap(), b"w");
    fs::hard_link(path("y"), path("x/link")).unwrap();
    assert_eq!(fs::metadata(path("y")).unwrap().nlink(), 2);
    symlink("y", path("s")).unwrap();
    assert_eq!(fs::read(path("s")).unwrap(), b"x");
    let orphan = open(&path("y"));
    fs::remove_file(path("y")).unwrap();
    fs::remove_file(path("x/link")).unwrap();
    orphan.write_all_at(b"still", 1).unwrap();
    let mut found = [0; 6];
    orphan.read_exact_at(&mut found, 0).unwrap();
    assert_eq!((&found, orphan.metadata().unwrap().nlink()), (b"xstill", 0));
}

#[test]
fn the_kernel_remembers_what_is_and_what_is_not_there() {
    let Some(files) = Files::new() else { return };
    let path = files.path().join("file");
    assert!(!path.exists());
    files.asked.count("lookup");
    assert!(!path.exists());
    assert_eq!(files.asked.count("lookup"), 0);
    fs::write(&path, "content").unwrap();
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert_eq!(size(&path), 7);
    for request in ["lookup", "attributes", "read"] {
        files.asked.count(request);
    }
    assert_eq!(fs::read(&path).unwrap(), b"content");
    files.asked.count("read");
    assert_eq!((fs::read(&path).unwrap().len(), size(&path)), (7, 7));
    assert_eq!((files.asked.count("lookup"), files.asked.count("read")), (0, 0));
    // A write is one request: what rights it takes the server sees to, and is asked for capabilities before the first alone.
    let file = open(&path);
    files.asked.count("write");
    files.asked.count("xattr");
    (0..10).for_each(|i| file.write_all_at(b"x", i * 4096).unwrap());
    assert_eq!(files.asked.count("write"), 10);
    let asked = files.asked.count("xattr");
    assert!(asked <= 1, "{asked}");
    File::create(&path).unwrap();
    assert_eq!(size(&path), 0);
}

#[test]
fn a_program_that_runs_is_not_cut() {
    if !has_programs(&["sleep", "cp"]) {
        return;
    }
    let Some(files) = Files::new() else { return };
    let program = files.path().join("program");
    let is_at = |folder: &str| Path::new(folder).join("sleep").is_file();
    let original = Path::new(["/usr/bin", "/bin"].into_iter().find(|folder| is_at(folder)).unwrap()).join("sleep");
    // By another process: what this one has open to write, children of tests beside this one hold too until they become programs.
    assert!(Command::new("cp").args([&original, &program]).status().unwrap().success());
    let mut child = Command::new(&program).arg("60").spawn().unwrap();
    let cut = File::options().read(true).custom_flags(libc::O_TRUNC).open(&program);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(errno(cut), libc::ETXTBSY);
    assert!(fs::read(&program).unwrap() == fs::read(&original).unwrap());
}

#[test]
fn times_and_attributes_are_what_was_set() {
    let Some(files) = Files::new() else { return };
    let path = files.path().join("file");
    File::create(&path).unwrap();
    for (seconds, nanoseconds) in [(-3, 250_000_000), (-1, 0), (0, 1), (1 << 33, 999_999_999)] {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        let is = fs::metadata(&path).unwrap();
        assert_eq!((is.mtime(), is.mtime_nsec()), (seconds, nanoseconds));
        assert_eq!((is.atime(), is.atime_nsec()), (seconds, nanoseconds));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o6751)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6751);
}

/// A single thread serves: it tells the kernel while the kernel waits for its answer.
#[test]
fn opening_to_read_sets_the_time_of_access_that_the_kernel_shows() {
    let options = FilesOptions { threads: 1, ..FilesOptions::default() };
    let Some(files) = Files::with(&options) else { return };
    let (path, folder) = (files.path().join("file"), files.path().join("folder"));
    fs::write(&path, "content").unwrap();
    fs::create_dir(&folder).unwrap();
    for path in [&path, &folder] {
        let accessed = || fs::metadata(path).map(|is| (is.atime(), is.atime_nsec())).unwrap();
        let made = accessed();
        // Opened only: no read reaches the server, whatever the kernel has cached.
        File::open(path).unwrap();
        let first = accessed();
        assert!(first > made, "{}", path.display());
        files.asked.count("attributes");
        File::open(path).unwrap();
        assert_eq!((accessed(), files.asked.count("attributes")), (first, 0));
    }
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(fs::read(&path).unwrap(), b"content");
    for request in ["read", "attributes"] {
        files.asked.count(request);
    }
    // Of a file that is changed, and whose content the kernel has.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"content");
    let after = fs::metadata(&path).unwrap();
    assert!((after.atime(), after.atime_nsec()) > (before.ctime(), before.ctime_nsec()));
    assert_eq!(files.asked.count("read"), 0);
}

/// The kernel asks for the time after it asked for the target; what it has of either it does not ask for again.
#[test]
fn following_a_link_sets_its_time_of_access() {
    let Some(files) = Files::new() else { return };
    let link = files.path().join("link");
    symlink("nowhere", &link).unwrap();
    let accessed = || fs::symlink_metadata(&link).map(|is| (is.atime(), is.atime_nsec())).unwrap();
    let made = accessed();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));
    let first = accessed();
    assert!(first > made);
    files.asked.count("read_link");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));
    assert_eq!((accessed(), files.asked.count("read_link")), (first, 0));
}

/// `O_NOATIME`: neither the opening nor a read that gets here sets the time, which is due to be set.
#[test]
fn who_opens_so_leaves_the_time_of_access() {
    let Some(files) = Files::with(&FilesOptions::default()) else { return };
    let path = files.path().join("file");
    fs::write(&path, "content").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let accessed = || fs::metadata(&path).map(|is| (is.atime(), is.atime_nsec())).unwrap();
    let made = accessed();
    let read = |flags| {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | flags).open(&path).unwrap();
        let mut out = Vec::new();
        file.read_to_end(&mut out).unwrap();
        assert_eq!(out, b"content");
    };
    files.asked.count("read");
    read(libc::O_NOATIME);
    assert!(files.asked.count("read") > 0);
    assert_eq!(accessed(), made);
    read(0);
    assert!(accessed() > made);
}

/// An ACL in Linux' encoding.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn a_default_acl_takes_the_place_of_the_umask() {
    const NONE: u32 = u32::MAX;
    let Some(files) = Files::new() else { return };
    let folder = files.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let default = acl(&[(1, 7, NONE), (2, 7, NOBODY), (4, 7, NONE), (16, 7, NONE), (32, 7, NONE)]);
    setxattr(&folder, "system.posix_acl_default", &default, XattrFlags::empty()).unwrap();
    let file = folder.join("file");
    OpenOptions::new().write(true).create_new(true).mode(0o666).open(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o666);
    let mut access = vec![0; 100];
    let length = getxattr(&file, "system.posix_acl_access", &mut access).unwrap();
    let expected = acl(&[(1, 6, NONE), (2, 7, NOBODY), (4, 7, NONE), (16, 6, NONE), (32, 6, NONE)]);
    assert_eq!(&access[..length], expected);
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let length = getxattr(&file, "system.posix_acl_access", &mut access).unwrap();
    assert_eq!(&access[..length], acl(&[(1, 6, NONE), (2, 7, NOBODY), (4, 7, NONE), (16, 0, NONE), (32, 0, NONE)]));
}

#[test]
fn a_panic_is_an_error_of_one_request() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let options = FilesOptions {
        on_panic: Arc::new(move |request| hears.lock().unwrap().push(request.to_owned())),
        threads: 1,
        ..FilesOptions::default()
    };
    let Some(files) = Files::with(&options) else { return };
    let path = files.path().join("file");
    fs::write(&path, "before").unwrap();
    files.asked.panic_in(Some("write"));
    assert_eq!(errno(fs::write(&path, "while")), libc::EIO);
    files.asked.panic_in(None);
    fs::write(&path, "after").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"after");
    assert_eq!(*heard.lock().unwrap(), ["write"]);
}

/// One thread serves all of this: nobody but the program waits for what is made durable.
#[test]
fn a_sync_waits_for_its_answer_and_keeps_nobody_else_waiting() {
    let Some(files) = Files::with(&FilesOptions { threads: 1, ..FilesOptions::default() }) else { return };
    let synced = [0, 1, 2].map(|number| {
        let file = File::create(files.path().join(number.to_string())).unwrap();
        file.write_all_at(b"content", 0).unwrap();
        file
    });
    files.asked.hold_answers();
    let waiting = synced.map(|file| std::thread::spawn(move || file.sync_all()));
    let answers = files.asked.held_answers(3);
    fs::write(files.path().join("other"), "content").unwrap();
    assert!(waiting.iter().all(|thread| !thread.is_finished()), "it was answered too early");
    // One that is dropped, as by a panic, is an error too.
    for (answer, how) in answers.into_iter().zip([Some(Ok(())), Some(Err(Errno::NOSPC)), None]) {
        if let Some(how) = how {
            answer(how);
        }
    }
    let told = waiting.map(|thread| thread.join().unwrap().map_or_else(|error| error.raw_os_error().unwrap(), |()| 0));
    assert_eq!(BTreeSet::from(told), BTreeSet::from([0, libc::ENOSPC, libc::EIO]));
}

#[test]
fn unmounting_syncs() {
    let Some(mut files) = Files::new() else { return };
    fs::write(files.path().join("file"), "content").unwrap();
    files.asked.count("sync");
    assert_eq!(files.mounted.take().unwrap().unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);
    assert_eq!(files.asked.count("sync"), 1);
}

/// The part that runs as another user: the test below starts it.
#[test]
fn as_another_user() {
    let Some(folder) = std::env::var_os(AS_USER) else { return };
    let path = |name: &str| Path::new(&folder).join(name);
    assert_eq!(rustix::process::geteuid().as_raw(), NOBODY);
    open(&path("written")).write_all(b"x").unwrap();
    OpenOptions::new().write(true).truncate(true).open(path("opened")).unwrap();
    OpenOptions::new().write(true).open(path("cut")).unwrap().set_len(1).unwrap();
    let mut names = vec![0; 100];
    let length = listxattr(path("written"), &mut names).unwrap();
    assert_eq!(&names[..length], b"user.one\0");
    assert_eq!(errno(fs::read(path("secret"))), libc::EACCES);
    let trimmed = Command::new("fstrim").arg(&folder).output().unwrap();
    assert!(!trimmed.status.success());
}

/// Something that is done to a file.
type Step<'a> = &'a dyn Fn(&File);

/// Root's changes leave set-user-ID, as on ext4, and take capabilities, which the kernel sees to.
#[test]
fn what_root_does_takes_capabilities_alone() {
    if !rustix::process::geteuid().is_root() {
        skip_privilege("capabilities of files need root");
        return;
    }
    let Some(files) = Files::new() else { return };
    let path = files.path().join("file");
    let other = open(&files.path().join("other"));
    other.write_all_at(&[7; 8192], 0).unwrap();
    let keeps = FallocateFlags::KEEP_SIZE;
    let changes: [(&str, Step<'_>); 6] = [
        ("write", &|file| file.write_all_at(b"x", 0).unwrap()),
        ("truncate", &|file| file.set_len(100).unwrap()),
        ("allocate", &|file| fallocate(file, FallocateFlags::empty(), 0, 30_000).unwrap()),
        ("punch", &|file| fallocate(file, FallocateFlags::PUNCH_HOLE | keeps, 0, 4096).unwrap()),
        ("zero", &|file| fallocate(file, FallocateFlags::ZERO_RANGE, 0, 4096).unwrap()),
        ("copy", &|file| {
            copy_file_range(&other, None, file, Some(&mut 0), 4096).unwrap();
        }),
    ];
    for (what, change) in changes {
        let file = open(&path);
        file.write_all_at(&[1; 8192], 0).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        // Version 2, cap_net_raw permitted.
        let value = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        setxattr(&path, "security.capability", &value, XattrFlags::empty()).unwrap();
        change(&file);
        let left = getxattr(&path, "security.capability", &mut [0; 20]).map(drop);
        assert_eq!(errno(left.map_err(Into::into)), libc::ENODATA, "{what}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6777, "{what}");
    }
}

#[test]
fn what_other_users_do_takes_rights_and_shows_less() {
    if !rustix::process::geteuid().is_root() {
        skip_privilege("becoming another user needs root");
        return;
    }
    if !has_programs(&["fstrim"]) {
        return;
    }
    let Some(files) = Files::new() else { return };
    let path = |name: &str| files.path().join(name);
    fs::set_permissions(files.path(), Permissions::from_mode(0o755)).unwrap();
    for name in ["written", "opened", "cut"] {
        fs::write(path(name), "content").unwrap();
        fs::set_permissions(path(name), Permissions::from_mode(0o6777)).unwrap();
        setxattr(path(name), "trusted.one", b"1", XattrFlags::empty()).unwrap();
        setxattr(path(name), "user.one", b"1", XattrFlags::empty()).unwrap();
    }
    fs::write(path("secret"), "content").unwrap();
    fs::set_permissions(path("secret"), Permissions::from_mode(0o600)).unwrap();
    files.asked.count("discard_free");
    // A copy that the user can execute, wherever the tests were built.
    let copy = tempfile::tempdir().unwrap();
    fs::set_permissions(copy.path(), Permissions::from_mode(0o755)).unwrap();
    fs::copy(std::env::current_exe().unwrap(), copy.path().join("tests")).unwrap();
    let mut child = Command::new(copy.path().join("tests"));
    child.args(["--exact", "files::as_another_user", "--nocapture"]).env(AS_USER, files.path()).current_dir("/");
    let output = child.uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    for name in ["written", "opened", "cut"] {
        // The kernel asks for nothing that it remembers: what it starts as a program has the mode that is told here.
        let found = statx(CWD, path(name), AtFlags::empty(), StatxFlags::MODE).unwrap();
        assert_eq!(found.stx_mode & 0o7777, 0o777, "{name}");
    }
    assert_eq!(files.asked.count("discard_free"), 0);
    // All, or a part, or what is large enough.
    let trim = |words: &[&str]| Command::new("fstrim").arg("-v").args(words).arg(files.path()).output().unwrap();
    for (words, bytes) in [
        (&[][..], 1_048_576),
        (&["-o", "1M", "-l", "8K"], 8192),
        (&["-o", "1056768", "-m", "4096"], 1_040_384),
        (&["-o", "2M"], 0),
        (&["-m", "8K"], 0),
    ] {
        let trimmed = trim(words);
        let said = String::from_utf8_lossy(&trimmed.stdout);
        assert!(said.contains(&format!("({bytes} bytes)")), "{words:?}: {trimmed:?}");
    }
    // Less than a block cannot.
    assert!(!trim(&["-l", "100"]).status.success());
    // A new owner takes the rights too, root's or not.
    fs::set_permissions(path("cut"), Permissions::from_mode(0o6777)).unwrap();
    std::os::unix::fs::chown(path("cut"), Some(1), Some(1)).unwrap();
    assert_eq!(fs::metadata(path("cut")).unwrap().mode() & 0o7777, 0o777);
}
