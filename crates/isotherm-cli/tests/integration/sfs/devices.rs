//! Which files and devices a volume is made on, and which are left alone.

use super::{Stage, can_mount};
use std::fs;

#[test]
fn a_drive_of_more_pages_than_one_answer_tells_of_gets_a_volume() {
    if !can_mount() {
        return;
    }
    let stage = Stage::new();
    let server = stage.serve_with(&[&stage.text("mnt"), "--on", "sim:--logical-size 5GiB --op 10% --ftl page"]);
    fs::write(stage.path("mnt/file"), b"there is room").expect("a volume");
    server.unmount();
}
