//! Images on a disk that is full: a small file system in memory.

use super::stage::Stage;
use super::tools::{both, can_attach, python, run};
use crate::command::isotherm;
use std::path::Path;

/// A stage whose folder is a file system of 32 MiB.
struct Small(Stage);

impl Small {
    fn new() -> Self {
        let stage = Self(Stage::new());
        run(Path::new("mount"), &["-t", "tmpfs", "-o", "size=32m", "none", &stage.0.path("")]);
        stage.0.ok(&["create", &stage.0.image(), "--logical-size", "64MiB", "--op", "15%"]);
        stage
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.path("ballast")).unwrap();
        let full = std::io::copy(&mut std::io::repeat(1), &mut file).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").args(["--lazy", &self.0.path("")]).output();
    }
}

#[test]
fn writes_are_refused_while_there_is_no_room_and_all_else_goes_on() {
    let (Some(python), Some(())) = (python(), can_attach(&[])) else { return };
    let small = Small::new();
    let server = small.0.serve(&[]);
    let script = "
import errno
def page(number):
    return number.to_bytes(4, 'little') * 1024
def refused(number):
    try:
        h.pwrite(page(number), number * 4096)
    except nbd.Error as error:
        assert error.errnum == errno.ENOSPC, error
        return True
    return False
";
    let until_full = "
written = next(number for number in range(16384) if refused(number))
h.flush()
assert all(h.pread(4096, number * 4096) == page(number) for number in range(written))
print(written)
";
    let written = server.script(&python, &format!("{script}{until_full}"));
    assert!((2_000..8_192).contains(&written.trim().parse::<u32>().unwrap()), "{written} pages fit on 32 MiB");
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["critical_warning"], 1 << 3);
    // Room for the pages that are written over comes from a discard, for others from the disk.
    let discarded = "
h.trim(4 << 20, 0)
h.flush()
assert h.pread(4096, 0) == bytes(4096)
";
    server.script(&python, &format!("{script}{discarded}"));
    run(Path::new("mount"), &["-o", "remount,size=64m", &small.0.path("")]);
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["critical_warning"], 0);
    server.script(&python, &format!("{script}assert not refused(16000)\nh.flush()"));
    assert!(server.stop().contains("the drive was shut down"));
    assert!(small.0.ok(&["check", &small.0.image()]).contains("nothing is damaged"));
    let server = small.0.serve(&[]);
    let kept = format!(
        "
for number in range(1024, {}):
    assert h.pread(4096, number * 4096) == page(number), number
assert h.pread(4096, 16000 * 4096) == page(16000)
",
        written.trim()
    );
    server.script(&python, &format!("{script}{kept}"));
    server.stop();
}

/// What others write in the meantime is nothing that a drive can keep room from.
#[test]
fn a_disk_that_fills_under_a_request_stops_the_drive_and_everybody_hears_of_it() {
    let (Some(python), Some(())) = (python(), can_attach(&[])) else { return };
    let small = Small::new();
    let server = small.0.serve(&[]);
    server.script(&python, "h.pwrite(b'x' * (1 << 20), 0)\nh.flush()\nh.pwrite(b'y' * (32 << 10), 8 << 20)");
    small.fill();
    let script = "
import errno
try:
    h.flush()
    assert False, 'flushed'
except nbd.Error as error:
    assert error.errnum in (errno.ENOSPC, errno.EIO), error
";
    server.script(&python, script);
    assert_eq!(server.json(&["smart-log"], &["-o", "json"])["critical_warning"], 1 << 2 | 1 << 3);
    let stopped = isotherm(&["drive", "stop", &small.0.image()]);
    assert_eq!(stopped.status.code(), Some(2), "{}", both(&stopped));
    assert!(both(&stopped).contains("because its image failed"), "{}", both(&stopped));
    assert!(server.ended_with(2).contains("because its image failed"));
    std::fs::remove_file(small.0.path("ballast")).unwrap();
    let server = small.0.serve(&[]);
    server.script(&python, "assert h.pread(1 << 20, 0) == b'x' * (1 << 20)");
    server.stop();
}
