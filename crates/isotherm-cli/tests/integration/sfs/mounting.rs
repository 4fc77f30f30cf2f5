//! `sfs mount` as programs and people call it: what is left behind when it fails, and where its server speaks.

use super::{PATIENCE, Stage, is_mounted, said};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_volume_whose_root_cannot_be_read_is_not_left_mounted() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("rw");
    fs::write(stage.path("mnt/a-name-like-no-other"), b"").expect("there is room");
    server.unmount();
    let mut disk = fs::read(stage.path("disk")).expect("the volume");
    let name = b"a-name-like-no-other";
    for block in disk.chunks_mut(4096) {
        if block.windows(name.len()).any(|window| window == name) {
            block.fill(0xa5);
        }
    }
    fs::write(stage.path("disk"), disk).expect("a file");
    let failed = stage.run(&["mount", &stage.text("disk"), &stage.text("mnt")]);
    assert_eq!(failed.status.code(), Some(2), "{}", said(&failed));
    assert!(said(&failed).contains("root directory"), "{}", said(&failed));
    assert!(!is_mounted(&stage.path("mnt")));
    // Its server has ended.
    let start = Instant::now();
    stage.run(&["fsck", "-y", &stage.text("disk")]);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_mount_that_nobody_waits_for_any_more_is_not_made() {
    let Some(stage) = Stage::that_mounts() else { return };
    let other = stage.path("other");
    fs::create_dir(&other).expect("a folder");
    let held = stage.lock();
    let mut client = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["sfs", "mount", &stage.text("disk"), &stage.text("other")])
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    client.kill().expect("it waits");
    client.wait().expect("it was killed");
    std::thread::sleep(Duration::from_millis(500));
    drop(held);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert!(!is_mounted(&other), "mounted although nobody waits");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(stage.ok(&["fsck", "-y", &stage.text("disk")]).contains("clean"));
}

#[test]
fn a_server_works_in_the_root_directory_and_names_its_device_in_full() {
    let Some(stage) = Stage::that_mounts() else { return };
    let mounted = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["sfs", "mount", "disk", "mnt", "--messages", "said"])
        .current_dir(stage.path(""))
        .output()
        .expect("the program starts");
    assert_eq!(mounted.status.code(), Some(0), "{}", said(&mounted));
    let disk = stage.path("disk").canonicalize().expect("it is there");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts can be listed");
    assert!(mounts.lines().any(|line| line.starts_with(&format!("{} ", disk.display()))), "{mounts}");
    let of_server = fs::read_dir("/proc").expect("processes").filter_map(|entry| {
        let folder = entry.ok()?.path();
        let words = fs::read_to_string(folder.join("cmdline")).ok()?;
        let is_here = words.contains("serve\0disk\0mnt\0") && words.contains("--background");
        let said = fs::read_link(folder.join("fd/2")).ok()?;
        (is_here && said == stage.path("said").canonicalize().ok()?).then_some(folder)
    });
    let servers: Vec<_> = of_server.collect();
    assert_eq!(servers.len(), 1, "one server writes its messages there");
    assert_eq!(fs::read_link(servers[0].join("cwd")).expect("it runs").as_os_str(), "/");
}

/// As on other file systems: a write ends where free space does.
#[test]
fn large_writes_fill_a_volume_to_its_last_block() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve("rw");
    let path = stage.path("mnt/file");
    let mut file = fs::File::create(&path).expect("a file");
    let data: Vec<u8> = (0..3 << 20).map(|at: u32| (at / 4096) as u8).collect();
    let (mut written, full) = (0, Some(ErrorKind::StorageFull));
    let mut fill = |bytes: usize| loop {
        match file.write(&data[written % (1 << 20)..][..bytes]) {
            Ok(count) => written += count,
            Err(error) => break Some(error.kind()),
        }
    };
    assert_eq!(fill(1 << 20), full);
    let large = fs::metadata(&path).expect("it is there").len();
    assert_eq!(fill(4096), full);
    assert_eq!(fs::metadata(&path).expect("it is there").len(), large, "a block was left");
    let found = fs::read(&path).expect("it can be read");
    assert!(found.chunks(1 << 20).all(|chunk| *chunk == data[..chunk.len()]));
    drop(file);
    server.unmount();
    assert!(stage.ok(&["fsck", &stage.text("disk"), "--data"]).contains("clean"));
}

/// Files of the lower layer go and move, and stay so when the overlay is mounted again.
#[test]
fn a_volume_is_the_upper_layer_of_an_overlay() {
    let Some(stage) = Stage::that_mounts() else { return };
    let kinds = fs::read_to_string("/proc/filesystems").expect("they can be listed");
    if !kinds.lines().any(|line| line.trim() == "nodev\toverlay") {
        return writeln!(std::io::stderr(), "skipped: this kernel has no overlays").expect("standard error is open");
    }
    let server = stage.serve("suid,dev");
    for name in ["mnt/upper", "mnt/work", "lower", "lower/folder", "merged"] {
        fs::create_dir(stage.path(name)).expect("there is room");
    }
    for name in ["lower/removed", "lower/moved", "lower/folder/inner"] {
        fs::write(stage.path(name), name).expect("there is room");
    }
    let layers = ["lowerdir=lower", "upperdir=mnt/upper", "workdir=mnt/work", "redirect_dir=on"].join(",");
    let on_merged = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).arg("merged").current_dir(stage.path("")).status();
        assert!(status.expect("it starts").success(), "{words:?}");
    };
    on_merged(&["mount", "-t", "overlay", "overlay", "-o", &layers]);
    fs::remove_file(stage.path("merged/removed")).expect("it is there");
    for (from, to) in [("merged/moved", "merged/new"), ("merged/folder", "merged/other")] {
        fs::rename(stage.path(from), stage.path(to)).expect("there is room");
    }
    on_merged(&["umount"]);
    for name in ["removed", "moved", "folder"] {
        let left = fs::symlink_metadata(stage.path("mnt/upper").join(name)).expect("a whiteout is left");
        assert!(left.file_type().is_char_device() && left.rdev() == 0, "{name}");
    }
    on_merged(&["mount", "-t", "overlay", "overlay", "-o", &layers]);
    let names = fs::read_dir(stage.path("merged")).expect("a folder").map(|entry| entry.expect("a name").file_name());
    assert_eq!(names.collect::<BTreeSet<_>>(), ["new", "other"].map(OsString::from).into());
    let found = |name: &str| fs::read_to_string(stage.path(name)).expect("it has moved");
    assert_eq!(found("merged/new"), "lower/moved");
    assert_eq!(found("merged/other/inner"), "lower/folder/inner");
    on_merged(&["umount"]);
    server.unmount();
}

/// A sparse image has less space than it says: what was synced is kept, and it is told once what to do.
#[test]
fn an_image_on_a_full_file_system_is_told_of() {
    let Some(stage) = Stage::that_mounts() else { return };
    let (small, disk, said) = (stage.text("small"), stage.text("small/disk"), stage.text("said"));
    let run = |words: &[&str]| assert!(Command::new(words[0]).args(&words[1..]).status().expect("it starts").success());
    fs::create_dir(&small).expect("a folder");
    run(&["mount", "-t", "tmpfs", "-o", "size=12M", "tmpfs", &small]);
    stage.ok(&["mkfs", &disk, "--size", "64MiB"]);
    stage.ok(&["mount", &disk, &stage.text("mnt"), "--messages", &said]);
    let path = |number: u8| stage.path(&format!("mnt/{number}"));
    let content = |number: u8| vec![number + 1; 700_000];
    let write = |number| {
        let mut file = fs::File::create(path(number))?;
        file.write_all(&content(number)).and_then(|()| file.sync_all())
    };
    let (kept, failed) = (0..).find_map(|number| Some((number, write(number).err()?))).expect("it ends");
    assert_eq!(failed.raw_os_error(), Some(Errno::IO.raw_os_error()), "{failed}");
    assert!(kept > 5, "{kept} files had room");
    // What is there can be read, and nothing is changed any more.
    assert_eq!(fs::read(path(0)).expect("it was synced"), content(0));
    assert_eq!(fs::remove_file(path(0)).expect_err("nothing changes").raw_os_error(), Some(Errno::IO.raw_os_error()));
    std::thread::sleep(Duration::from_secs(1));
    let told = fs::read_to_string(&said).expect("it was made");
    assert_eq!(told.lines().count(), 1, "{told}");
    let names_it = told.starts_with(&disk) && told.contains("make room in the file system that holds its file");
    assert!(names_it, "{told}");
    run(&["umount", &stage.text("mnt")]);
    run(&["mount", "-o", "remount,size=100M", &small]);
    stage.ok(&["mount", &disk, &stage.text("mnt")]);
    for number in 0..kept {
        assert_eq!(fs::read(path(number)).expect("it was synced"), content(number), "file {number}");
    }
    run(&["umount", &stage.text("mnt")]);
    assert!(stage.ok(&["fsck", "-n", "--data", &disk]).contains("clean"));
    run(&["umount", &small]);
}

#[test]
fn what_is_no_volume_is_neither_synced_nor_given_an_attribute() {
    let stage = Stage::new();
    let folder = stage.text("mnt");
    for words in [["sync", &folder], ["stats", &folder], ["files", &folder]] {
        let refused = stage.run(&words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", said(&refused));
        assert!(said(&refused).contains("no volume"), "{words:?}: {}", said(&refused));
        let mut names = [0; 1024];
        let length = rustix::fs::listxattr(stage.path("mnt"), &mut names).unwrap_or(0);
        assert!(!String::from_utf8_lossy(&names[..length]).contains("sfs"), "{words:?}: an attribute is left");
    }
}
