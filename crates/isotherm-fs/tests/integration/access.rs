//! Times of access, as reads of a volume set them.

use crate::support::sample::{add, empty, write};
use isotherm_fs::log::LogSettings;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{FileKind, FileSystem, OpenFlags, ROOT, Time};
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
}
