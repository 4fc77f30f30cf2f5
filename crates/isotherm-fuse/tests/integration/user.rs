//! Mounting without root, which goes through `fusermount3`.

use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use isotherm_fuse::Ending;

use crate::fixture::{Stage, can_mount, has_programs, skip};

/// Set for the process that is started as another user.
const AS_USER: &str = "ISOTHERM_TEST_AS_USER";
/// The user `nobody`, and its group.
const NOBODY: &str = "65534";

/// The part that runs as another user: the test below starts it.
#[test]
fn mounts_as_a_user() {
    if std::env::var_os(AS_USER).is_none() {
        return;
    }
    assert!(!rustix::process::geteuid().is_root());
    let mut stage = Stage::new(1 << 20).expect("the test that started this has looked");
    let file = stage.open();
    file.write_all_at(b"written by a user", 5).unwrap();
    let mut found = [0; 17];
    file.read_exact_at(&mut found, 5).unwrap();
    assert_eq!(&found, b"written by a user");
    file.sync_all().unwrap();
    drop(file);
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);

    let mut stage = Stage::new(1 << 20).expect("the test that started this has looked");
    let file = stage.open();
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_millis(100)).unwrap(), Ending::Forced);
    drop(file);
}

#[test]
fn users_mount_with_the_helper() {
    if !rustix::process::geteuid().is_root() {
        // Every other test is this one already.
        return;
    }
    if !has_programs(&["fusermount3", "unshare", "setpriv", "mount", "mknod"]) {
        return;
    }
    // In a namespace of their own, users may open the device whatever its mode is on this machine.
    let Some(folder) = can_mount() else { return };
    let script = r#"
        mount -t tmpfs tmpfs "$1" && mknod -m 666 "$1/fuse" c 10 229 && mount --bind "$1/fuse" /dev/fuse || exit 77
        shift
        setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups test -x "$1" || exit 78
        exec setpriv --reuid "$NOBODY" --regid "$NOBODY" --clear-groups "$@" "#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([folder.path(), &std::env::current_exe().unwrap()])
        .args(["--exact", "user::mounts_as_a_user", "--nocapture"])
        .env(AS_USER, "1")
        .env("NOBODY", NOBODY)
        .output()
        .unwrap();
    match output.status.code() {
        Some(77) => skip("no mount namespace with a device of its own can be had").unwrap_or_default(),
        Some(78) => skip("the user nobody cannot start this program where it lies").unwrap_or_default(),
        _ => {
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
    }
}
