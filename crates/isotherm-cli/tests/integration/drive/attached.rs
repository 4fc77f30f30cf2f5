//! `drive attach`: a drive as a block device of this machine, with a file system on it.

use super::stage::Stage;
use super::tools::{both, can_attach};
use crate::command::isotherm;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An image that is attached; given back at the end, also by a panic.
struct Attached {
    stage: Stage,
    device: String,
    folder: PathBuf,
}

impl Attached {
    fn new(options: &[&str]) -> Self {
        let stage = Stage::with(&["--logical-size", "64MiB", "--op", "15%", "--placement", "sepbit"]);
        let folder = PathBuf::from(stage.path("files"));
        std::fs::create_dir(&folder).unwrap();
        let mut attached = Self { stage, device: String::new(), folder };
        attached.attach(options);
        attached
    }

    fn attach(&mut self, options: &[&str]) {
        let image = self.stage.image();
        self.device = self.stage.ok(&[&["attach", image.as_str()], options].concat()).trim().to_owned();
        assert!(self.device.starts_with("/dev/loop"), "{}", self.device);
    }

    fn mount(&self) {
        must("mount", &[&self.device, self.folder.to_str().unwrap()]);
    }

    fn umount(&self) {
        must("umount", &[self.folder.to_str().unwrap()]);
    }

    fn stats(&self) -> Value {
        serde_json::from_str(&self.stage.ok(&["stats", &self.stage.image()])).unwrap()
    }

    /// Detaches, and looks for anything that is left.
    #[track_caller]
    fn detach(&self) {
        self.stage.ok(&["detach", &self.stage.image()]);
        self.is_given_back();
    }

    #[track_caller]
    fn is_given_back(&self) {
        for ending in ["ctl", "mnt", "log"] {
            assert!(!Path::new(&self.stage.path(&format!("d.{ending}"))).exists(), "d.{ending} is left");
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&self.stage.path("")), "a mount is left: {mounts}");
        let loops = must("losetup", &["--list", "--noheadings", "--output", "NAME,BACK-FILE"]);
        assert!(!loops.contains(&self.stage.path("")), "a loop device is left: {loops}");
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let quiet = |program: &str, arguments: &[&str]| drop(Command::new(program).args(arguments).output());
        if std::thread::panicking() {
            quiet("umount", &["--lazy", self.folder.to_str().unwrap()]);
            quiet("losetup", &["--detach", &self.device]);
            drop(isotherm(&["drive", "stop", &self.stage.image()]));
            quiet("umount", &["--lazy", &self.stage.path("d.mnt")]);
        }
    }
}

/// The process that serves an image.
#[track_caller]
fn server_of(image: &str) -> String {
    let is_it = |process: &String| {
        let said = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        ["drive", "serve", image].iter().all(|word| said.split('\0').any(|said| said == *word))
    };
    let mut names = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.find(is_it).expect("the image is served")
}

#[track_caller]
fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", both(&output));
    both(&output)
}

#[test]
fn a_file_system_lives_on_it_and_trims_reach_the_drive() {
    if can_attach(&["mkfs.ext4", "e2fsck", "fstrim"]).is_none() {
        return;
    }
    let mut attached = Attached::new(&["--sector-size", "4096"]);
    must("mkfs.ext4", &["-q", &attached.device]);
    attached.mount();
    let bytes: Vec<u8> = (0..8_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for name in ["kept", "removed"] {
        std::fs::write(attached.folder.join(name), &bytes).unwrap();
    }
    must("sync", &["-f", attached.folder.to_str().unwrap()]);
    std::fs::remove_file(attached.folder.join("removed")).unwrap();
    must("sync", &["-f", attached.folder.to_str().unwrap()]);
    let before = attached.stats()["host_pages_trimmed"].as_u64().unwrap();
    must("fstrim", &[attached.folder.to_str().unwrap()]);
    let trimmed = attached.stats()["host_pages_trimmed"].as_u64().unwrap() - before;
    assert!(trimmed >= 8_000_000 / 4096 - 1, "fstrim discarded {trimmed} pages");
    // In use: nothing is taken away from those who use it.
    let refused = isotherm(&["drive", "detach", &attached.stage.image()]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("still in use, probably mounted"), "{}", both(&refused));
    assert!(std::fs::read(attached.folder.join("kept")).unwrap() == bytes);
    attached.umount();
    // The kernel has given the loop device back by itself at the unmount, as told.
    attached.detach();

    attached.attach(&[]);
    must("e2fsck", &["-f", "-n", &attached.device]);
    attached.mount();
    assert!(std::fs::read(attached.folder.join("kept")).unwrap() == bytes);
    attached.umount();
    attached.detach();
}

#[test]
fn a_second_attach_is_refused_and_leaves_the_first_alone() {
    if can_attach(&[]).is_none() {
        return;
    }
    let attached = Attached::new(&[]);
    let refused = isotherm(&["drive", "attach", &attached.stage.image()]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("detach it first"), "{}", both(&refused));
    must("dd", &[&format!("if={}", attached.device), "of=/dev/null", "bs=1M", "count=4", "status=none"]);
    attached.detach();
    let refused = isotherm(&["drive", "detach", &attached.stage.image()]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("no drive is served"), "{}", both(&refused));
    // What cannot be served leaves nothing either.
    let image = attached.stage.image();
    std::fs::write(&image, "no image").unwrap();
    let refused = isotherm(&["drive", "attach", &image]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("isotherm drive create"), "{}", both(&refused));
    attached.is_given_back();
}

#[test]
fn a_drive_that_is_served_but_not_attached_is_left_alone_by_detach() {
    let stage = Stage::with(&["--logical-size", "16MiB", "--op", "15%"]);
    let server = stage.serve(&[]);
    let refused = isotherm(&["drive", "detach", &stage.image()]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("d.flash is served, but not attached; `isotherm drive stop"), "{}", both(&refused));
    assert!(server.stop().contains("the drive was shut down"), "detach stopped it");
}

#[test]
fn what_a_dead_server_left_is_named_by_attach_and_removed_by_detach() {
    if can_attach(&["mkfs.ext4"]).is_none() {
        return;
    }
    let mut attached = Attached::new(&[]);
    must("mkfs.ext4", &["-q", &attached.device]);
    let image = attached.stage.image();
    must("kill", &["-9", &server_of(&image)]);
    let start = std::time::Instant::now();
    while std::os::unix::net::UnixStream::connect(attached.stage.path("d.ctl")).is_ok() {
        assert!(start.elapsed().as_secs() < 30, "the server lives on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let refused = isotherm(&["drive", "attach", &image]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains(&format!("`isotherm drive detach {image}`")), "{}", both(&refused));
    attached.detach();
    // The image is as after a loss of power, and all else is as before.
    attached.attach(&[]);
    attached.detach();
}
