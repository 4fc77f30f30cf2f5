//! What programs are told of an export that fails.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use isotherm_export::ErrorKind;
use isotherm_fuse::drive::Options;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

use crate::fixture::{Mood, Stage, errno};

#[test]
fn errors_of_the_export_are_errnos_of_programs() {
    let Some(stage) = Stage::new(1 << 20) else { return };
    let file = stage.open();
    let kinds = [
        (ErrorKind::Io, libc::EIO),
        (ErrorKind::NoSpace, libc::ENOSPC),
        (ErrorKind::Invalid, libc::EINVAL),
        (ErrorKind::Unsupported, libc::EOPNOTSUPP),
        (ErrorKind::ReadOnly, libc::EROFS),
        (ErrorKind::Stopped, libc::ESHUTDOWN),
    ];
    for (kind, expected) in kinds {
        stage.export.set_mood(Mood::Fails(kind));
        assert_eq!(errno(file.read_at(&mut [0; 512], 0)), expected);
        assert_eq!(errno(file.write_at(&[0; 512], 0)), expected);
        assert_eq!(errno(file.sync_all()), expected);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        assert_eq!(fallocate(&file, punch, 0, 512).unwrap_err().raw_os_error(), expected);
        assert_eq!(seek(&file, SeekFrom::Data(0)).unwrap_err().raw_os_error(), expected);
        stage.export.set_mood(Mood::Well);
        file.write_all_at(&[1; 512], 0).unwrap();
    }
}

#[test]
fn whoever_runs_the_server_hears_the_message() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let on_error = Arc::new(move |file: &str, error: &isotherm_export::ExportError| {
        hearing.lock().unwrap().push(format!("{file}: {error}"));
    });
    let Some(stage) = Stage::with(1 << 20, &Options { on_error, ..Options::default() }) else { return };
    let file = stage.open();
    stage.export.set_mood(Mood::Fails(ErrorKind::Io));
    assert_eq!(errno(file.write_at(&[0; 512], 4096)), libc::EIO);
    assert_eq!(*heard.lock().unwrap(), ["disk: told to fail at 4096"]);
}

/// A thread that a panic ended would leave programs waiting for ever, each more than the last.
#[test]
fn a_panic_of_the_export_fails_its_request_only() {
    let Some(stage) = Stage::new(1 << 20) else { return };
    let file = stage.open();
    stage.export.set_mood(Mood::Panics);
    for _ in 0..10 {
        assert_eq!(errno(file.write_at(&[0; 512], 0)), libc::EIO);
    }
    stage.export.set_mood(Mood::Well);
    file.write_all_at(&[1; 512], 0).unwrap();
}
