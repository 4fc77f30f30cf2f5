//! Where a file system can be mounted, and how a mount ends.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isotherm_fuse::drive::{DiskFile, Options, mount};
use isotherm_fuse::{Ending, MountError};

use crate::fixture::{Recorder, Stage, can_mount, errno, has_programs, run};

fn problem(files: Vec<DiskFile>, mountpoint: &Path, options: &Options) -> String {
    mount(files, mountpoint, options).unwrap_err().to_string()
}

fn is_mounted(path: &Path) -> bool {
    let path = format!(" {} ", path.display());
    fs::read_to_string("/proc/self/mounts").unwrap().lines().any(|line| line.contains(&path))
}

#[test]
fn names_and_threads_are_checked_before_anything_is_mounted() {
    let file = |name| DiskFile::new(Recorder::new(4096)).named(name);
    let nowhere = Path::new("/nowhere");
    for name in ["", ".", "..", "a/b"] {
        assert!(problem(vec![file(name)], nowhere, &Options::default()).contains("is no name for a file"), "{name}");
    }
    let twins = vec![file("a"), file("b"), file("a")];
    assert!(problem(twins, nowhere, &Options::default()).contains("two files have the name \"a\""));
    let options = Options { threads: 0, ..Options::default() };
    assert_eq!(problem(vec![file("a")], nowhere, &options), "threads: 0 is not in 1..=64");
    assert!(problem(vec![file("a")], nowhere, &Options::default()).contains("/nowhere: no such directory"));
}

#[test]
fn a_mount_names_itself_and_a_second_one_is_refused() {
    let Some(stage) = Stage::new(1 << 20) else { return };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(&*stage.folder().to_string_lossy())).unwrap();
    assert!(line.starts_with("isotherm ") && line.contains(" fuse.isotherm "), "{line}");
    let again = mount(vec![DiskFile::new(Recorder::new(4096))], stage.folder(), &Options::default()).unwrap_err();
    assert!(matches!(again, MountError::Mountpoint { .. }) && again.to_string().contains("mounted here already"));
}

#[test]
fn several_exports_are_several_files() {
    let Some(folder) = can_mount() else { return };
    let exports = [Recorder::new(8192), Recorder::new(1 << 20)];
    let file = |name, export: &Arc<Recorder>| DiskFile::new(Arc::clone(export) as _).named(name);
    let files = vec![file("small", &exports[0]), file("large", &exports[1])];
    let mounted = mount(files, folder.path(), &Options::default()).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["large", "small"]);
    let open = |name| fs::OpenOptions::new().read(true).write(true).open(folder.path().join(name)).unwrap();
    let (small, large) = (open("small"), open("large"));
    assert_eq!((small.metadata().unwrap().len(), large.metadata().unwrap().len()), (8192, 1 << 20));
    large.write_all_at(b"large", 0).unwrap();
    assert!(exports[0].calls().is_empty());
    assert_eq!(exports[1].calls().len(), 1);
    drop((small, large));
    assert_eq!(mounted.unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);
}

#[test]
fn unmounting_ends_the_server_and_frees_the_mountpoint() {
    let Some(mut stage) = Stage::new(1 << 20) else { return };
    for _ in 0..3 {
        assert!(is_mounted(stage.folder()));
        assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_secs(5)).unwrap(), Ending::Clean);
        assert!(!is_mounted(stage.folder()));
        assert_eq!(Arc::strong_count(&stage.export), 1, "the server still holds the export");
        let file = DiskFile::new(Arc::clone(&stage.export) as _);
        stage.mounted = Some(mount(vec![file], stage.folder(), &Options::default()).unwrap());
    }
    drop(stage.mounted.take());
    assert!(!is_mounted(stage.folder()));
    assert_eq!(Arc::strong_count(&stage.export), 1);
}

#[test]
fn a_file_that_stays_open_is_taken_away() {
    let Some(mut stage) = Stage::new(1 << 20) else { return };
    let file = stage.open();
    file.write_all_at(b"x", 0).unwrap();
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_millis(100)).unwrap(), Ending::Forced);
    assert!(!is_mounted(stage.folder()));
    if rustix::process::geteuid().is_root() {
        assert_eq!(errno(file.read_at(&mut [0; 512], 0)), libc::ENOTCONN);
        assert_eq!(Arc::strong_count(&stage.export), 1, "the server still holds the export");
    }
}

#[test]
fn a_file_that_is_closed_in_time_is_not() {
    let Some(mut stage) = Stage::new(1 << 20) else { return };
    let file = stage.open();
    let closing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(file);
    });
    assert_eq!(stage.mounted.take().unwrap().unmount(Duration::from_secs(10)).unwrap(), Ending::Clean);
    closing.join().unwrap();
}

#[test]
fn somebody_else_may_unmount_it() {
    let Some(mut stage) = Stage::new(1 << 20) else { return };
    let is_root = rustix::process::geteuid().is_root();
    let (program, option) = if is_root { ("umount", "--no-mtab") } else { ("fusermount3", "-u") };
    if !has_programs(&[program]) {
        return;
    }
    let mut mounted = stage.mounted.take().unwrap();
    assert!(mounted.wait(Duration::from_millis(10)));
    run(program, &[option, stage.folder().to_str().unwrap()]);
    assert!(!mounted.wait(Duration::from_secs(10)));
    assert_eq!(mounted.unmount(Duration::ZERO).unwrap(), Ending::Clean);
}
