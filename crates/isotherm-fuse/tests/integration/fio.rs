//! fio's verification: every block carries a checksum, and is read back at the end.

use crate::fixture::{Stage, has_programs, run};

#[test]
fn fio_finds_what_it_wrote() {
    if !has_programs(&["fio"]) {
        return;
    }
    for (engine, depth, blocks) in [("psync", 1, "4k-4k"), ("libaio", 32, "512-64k")] {
        let Some(stage) = Stage::new(64 << 20) else { return };
        let path = stage.path();
        run(
            "fio",
            &[
                "--name=verify",
                &format!("--filename={}", path.display()),
                &format!("--ioengine={engine}"),
                &format!("--iodepth={depth}"),
                &format!("--bsrange={blocks}"),
                "--direct=1",
                "--rw=randwrite",
                "--size=64m",
                "--io_size=96m",
                "--verify=crc32c",
                "--verify_fatal=1",
                // Else it leaves a file where the test runs.
                "--verify_state_save=0",
                "--randseed=1",
                "--output-format=terse",
            ],
        );
    }
}
