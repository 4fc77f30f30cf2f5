//! File systems on a loop device over the file: made, filled, trimmed, checked, and read again.
//!
//! The threads that serve the file are not the one that waits for the kernel here: it could not answer what it waits for.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isotherm_fuse::Ending;
use isotherm_fuse::loop_device::{LoopDevice, LoopError, LoopOptions};
use tempfile::TempDir;

use crate::fixture::{Call, Stage, has_programs, run, skip, skip_privilege};

const MIB: u64 = 1 << 20;

/// A file system mounted from a device; unmounted when this is dropped, also by a panic.
struct MountedDevice {
    folder: TempDir,
}

impl MountedDevice {
    fn new(device: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        run("mount", &[text(device), text(folder.path())]);
        Self { folder }
    }
}

impl Drop for MountedDevice {
    fn drop(&mut self) {
        let unmount = |options: &[&str]| {
            Command::new("umount").args(options).arg(self.folder.path()).status().is_ok_and(|status| status.success())
        };
        // A panic may have left files open; then the device is freed when they are closed.
        let _ = unmount(&[]) || unmount(&["--lazy"]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A loop device over the stage's file, or the reason why there is none.
fn attach(stage: &Stage, options: &LoopOptions) -> Option<LoopDevice> {
    match LoopDevice::attach(&stage.path(), options) {
        Err(error @ (LoopError::NotRoot | LoopError::NoDevice(_) | LoopError::NoProgram)) => skip(&error.to_string()),
        device => Some(device.unwrap()),
    }
}

/// Every file below a folder with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).unwrap() {
            let entry = entry.unwrap();
            let path = inner.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == OsStr::new("lost+found") => {}
                true => folders.push(path),
                false => drop(files.insert(path, fs::read(entry.path()).unwrap())),
            }
        }
    }
    files
}

/// A source tree of a few megabytes: a copy of this repository's crates, which other tests may write to meanwhile.
fn tree() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    run("cp", &["-r", text(crates), text(&folder.path().join("crates"))]);
    folder
}

fn survives(size_bytes: u64, sector_bytes: u32, make: &[&str], check: &[&str]) {
    if !has_programs(&[make[0], check[0], "mount", "umount", "fstrim", "cp"]) {
        return;
    }
    let Some(mut stage) = Stage::new(size_bytes) else { return };
    let options = LoopOptions { sector_bytes, ..LoopOptions::default() };
    let Some(device) = attach(&stage, &options) else { return };
    run(make[0], &[&make[1..], &[text(device.path())]].concat());

    let source = tree();
    let mounted = MountedDevice::new(device.path());
    let folder = mounted.folder.path();
    run("cp", &["-r", text(source.path()), text(&folder.join("kept"))]);
    run("cp", &["-r", text(source.path()), text(&folder.join("removed"))]);
    run("sync", &["-f", text(folder)]);
    assert!(stage.export.calls().contains(&Call::Flush), "sync did not flush the drive");
    fs::remove_dir_all(folder.join("removed")).unwrap();
    drop(mounted);

    // Mounted anew, no space waits for the log of removed files, which XFS would not trim.
    let mounted = MountedDevice::new(device.path());
    let folder = mounted.folder.path();
    stage.export.calls();
    run("fstrim", &["-v", text(folder)]);
    let trimmed = stage.export.calls().iter().filter(|call| matches!(call, Call::Trim { .. })).count();
    assert!(trimmed > 0, "fstrim trimmed nothing");
    let expected = content(source.path());
    assert!(content(&folder.join("kept")) == expected);
    drop(mounted);
    run(check[0], &[&check[1..], &[text(device.path())]].concat());
    device.detach().unwrap();

    // What a new device finds was all in the file.
    let Some(device) = attach(&stage, &options) else { return };
    let mounted = MountedDevice::new(device.path());
    assert!(content(&mounted.folder.path().join("kept")) == expected);
    assert!(!mounted.folder.path().join("removed").exists());
    drop(mounted);
    device.detach().unwrap();
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);
}

#[test]
fn ext4_survives() {
    survives(256 * MIB, 512, &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_survives() {
    survives(512 * MIB, 4096, &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

#[test]
fn btrfs_survives() {
    survives(512 * MIB, 4096, &["mkfs.btrfs", "-q"], &["btrfs", "check", "--readonly"]);
}

#[test]
fn a_loop_device_has_the_sectors_and_the_discards_of_the_file() {
    let programs = ["blkdiscard", "blockdev"];
    if !has_programs(&programs) {
        return;
    }
    let Some(stage) = Stage::new(16 * MIB) else { return };
    for sector_bytes in [512, 4096] {
        let Some(device) = attach(&stage, &LoopOptions { sector_bytes, ..LoopOptions::default() }) else { return };
        let told = |option| String::from_utf8(run("blockdev", &[option, text(device.path())]).stdout).unwrap();
        assert_eq!(told("--getss").trim(), sector_bytes.to_string());
        assert_eq!(told("--getsize64").trim(), (16 * MIB).to_string());
        stage.export.calls();
        run("blkdiscard", &["--offset", "1048576", "--length", "8388608", text(device.path())]);
        let trims: Vec<_> = stage.export.calls();
        let trim = |call: &Call| match *call {
            Call::Trim { offset, length, .. } if offset >= MIB && offset + length <= 9 * MIB => length,
            _ => 0,
        };
        assert_eq!(trims.iter().map(trim).sum::<u64>(), 8 * MIB, "{trims:?}");
        device.detach().unwrap();
    }
}

#[test]
fn zeros_that_keep_their_space_are_not_trimmed() {
    if !has_programs(&["blkdiscard"]) {
        return;
    }
    let Some(stage) = Stage::new(16 * MIB) else { return };
    let Some(device) = attach(&stage, &LoopOptions::default()) else { return };
    stage.export.calls();
    // blkdiscard asks for zeros that keep their space (BLKZEROOUT).
    run("blkdiscard", &["--zeroout", "--length", "1048576", text(device.path())]);
    let calls = stage.export.calls();
    assert!(calls.contains(&Call::Zero { offset: 0, length: MIB, may_trim: false }), "{calls:?}");
}

/// Or a machine short of memory would stop: see `write_back.rs`.
#[test]
fn threads_that_serve_do_not_wait_for_write_back() {
    let Some(stage) = Stage::new(16 * MIB) else { return };
    let Some(device) = attach(&stage, &LoopOptions::default()) else { return };
    if rustix::process::configure_io_flusher_behavior(true).is_err() {
        return skip_privilege("threads cannot be told to carry out write-back without CAP_SYS_RESOURCE");
    }
    run("dd", &["if=/dev/zero", &format!("of={}", text(device.path())), "bs=4096", "count=1", "oflag=direct"]);
    assert!(stage.export.is_by_flusher());
}

#[test]
fn a_device_in_use_says_so_and_goes_when_it_is_closed() {
    let Some(mut stage) = Stage::new(16 * MIB) else { return };
    let Some(device) = attach(&stage, &LoopOptions::default()) else { return };
    let open = fs::File::open(device.path()).unwrap();
    let path = device.path().to_owned();
    let error = device.detach().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: still in use, probably mounted; the kernel detaches it when its last user closes it",
            path.display()
        )
    );
    drop(open);
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);
}

#[test]
fn a_file_that_is_missing_is_named() {
    let missing = Path::new("/nowhere/disk");
    match LoopDevice::attach(missing, &LoopOptions::default()) {
        Err(LoopError::Program(said)) => assert!(said.contains("/nowhere/disk"), "{said}"),
        Err(error) => skip(&error.to_string()).unwrap_or_default(),
        Ok(device) => panic!("{device:?}"),
    }
}
