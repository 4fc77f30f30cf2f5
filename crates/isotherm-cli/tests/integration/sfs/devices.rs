//! Which files and devices a volume is made on, and which are left alone.

use super::{Stage, said};
use std::fs;
use std::process::Command;

#[test]
fn a_drive_of_more_pages_than_one_answer_tells_of_gets_a_volume() {
    let Some(stage) = Stage::that_mounts() else { return };
    let server = stage.serve_with(&[&stage.text("mnt"), "--on", "sim:--logical-size 5GiB --op 10% --ftl page"]);
    fs::write(stage.path("mnt/file"), b"there is room").expect("a volume");
    server.unmount();
}

#[test]
fn what_holds_something_else_is_left_alone_unless_forced() {
    let stage = Stage::new();
    let image = stage.text("other");
    for (offset, mark, name) in [
        (1080, &b"\x53\xef"[..], "ext4"),
        (0, b"XFSB", "XFS"),
        (0x1_0040, b"_BHRfS_M", "btrfs"),
        (4086, b"SWAPSPACE2", "swap"),
        (512, b"EFI PART", "GPT"),
        (510, b"\x55\xaa", "partition table"),
    ] {
        let mut bytes = vec![0; 64 << 20];
        bytes[offset..offset + mark.len()].copy_from_slice(mark);
        fs::write(&image, &bytes).expect("a file");
        let refused = stage.run(&["mkfs", &image]);
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", said(&refused));
        assert!(said(&refused).contains(name) && said(&refused).contains("--force"), "{}", said(&refused));
        assert!(fs::read(&image).expect("it is there") == bytes, "{name}: it was written to");
        // A wish that cannot be fulfilled costs nothing either.
        let odd = stage.run(&["mkfs", &image, "--force", "--segment", "300KB"]);
        assert_eq!(odd.status.code(), Some(2), "{name}: {}", said(&odd));
        assert!(fs::read(&image).expect("it is there") == bytes, "{name}: it was written to");
        stage.ok(&["mkfs", &image, "--force"]);
        let after = fs::read(&image).expect("it is there");
        assert_ne!(&after[offset..offset + mark.len()], mark, "{name}: the mark is left");
        assert!(stage.ok(&["fsck", &image]).contains("clean"), "{name}");
    }
}

/// A loop device over a file, for as long as it lives.
struct Loop(String);

impl Loop {
    /// None where this machine cannot have one.
    fn over(file: &str) -> Option<Self> {
        let output = Command::new("losetup").args(["--find", "--show", file]).output().ok()?;
        output.status.success().then(|| Self(String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_device_that_is_mounted_is_left_alone_even_if_forced() {
    let Some(stage) = Stage::that_mounts() else { return };
    fs::write(stage.path("ext4"), vec![0; 64 << 20]).expect("a file");
    let made = Command::new("mkfs.ext4").arg("-q").arg(stage.path("ext4")).status();
    let device = Loop::over(&stage.text("ext4"));
    let (Ok(true), Some(device)) = (made.map(|status| status.success()), device) else { return };
    let mount = stage.path("mnt");
    let mounted = Command::new("mount").arg(&device.0).arg(&mount).status().expect("mount starts");
    assert!(mounted.success(), "ext4 cannot be mounted");
    for words in [["mkfs", "--force", &device.0], ["mkfs", &device.0, "-f"], ["fsck", "-y", &device.0]] {
        let refused = stage.run(&words);
        let code = if words[0] == "mkfs" { 2 } else { 8 };
        assert_eq!(refused.status.code(), Some(code), "{words:?}: {}", said(&refused));
        assert!(said(&refused).contains("in use"), "{words:?}: {}", said(&refused));
    }
    // A check that writes nothing may look at it.
    assert!(!said(&stage.run(&["fsck", "-n", &device.0])).contains("in use"));
}

/// Both would write to the same volume.
#[test]
fn a_file_and_a_loop_device_over_it_are_mounted_once() {
    let Some(stage) = Stage::that_mounts() else { return };
    let disk = stage.text("disk");
    let Some(device) = Loop::over(&disk) else { return };
    fs::create_dir(stage.path("second")).expect("a folder");
    let second = stage.text("second");
    for (first, other) in [(&device.0, &disk), (&disk, &device.0)] {
        stage.ok(&["mount", first, &stage.text("mnt")]);
        for words in [vec!["mount", other, &second], vec!["fsck", "-y", other], vec!["mkfs", "--force", other]] {
            let refused = stage.run(&words);
            assert!(
                !refused.status.success() && said(&refused).contains("is mounted on"),
                "{words:?}: {}",
                said(&refused)
            );
        }
        let unmounted = Command::new("umount").arg(stage.path("mnt")).status().expect("umount starts");
        assert!(unmounted.success());
    }
    assert!(stage.ok(&["fsck", "-n", &disk]).contains("clean"));
}

#[test]
fn a_file_that_was_made_for_a_volume_goes_where_it_cannot_hold_one() {
    let stage = Stage::new();
    for words in [vec!["--size", "1MiB"], vec!["--size", "64MiB", "--segment", "300KB"]] {
        let refused = stage.run(&[&["mkfs", &stage.text("new")][..], &words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", said(&refused));
        assert!(!stage.path("new").exists(), "{words:?}");
    }
    // One that was there stays.
    fs::write(stage.path("small"), b"mine").expect("a file");
    for words in [vec![], vec!["--size", "64MiB"]] {
        let refused = stage.run(&[&["mkfs", &stage.text("small")][..], &words].concat());
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", said(&refused));
        assert_eq!(fs::read(stage.path("small")).expect("it is there"), b"mine");
    }
}
