//! The experiments of the project: each file can be planned, point by point.

use std::path::Path;
use std::process::Command;

#[test]
fn every_experiment_can_be_planned() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut planned = 0;
    for entry in root.join("experiments").read_dir().unwrap() {
        let file = entry.unwrap().path();
        // Hot data identification has a command of its own, `isotherm hotness`.
        if file.ends_with("mbf.toml") {
            continue;
        }
        let mut sweep = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let output = sweep.current_dir(&root).arg("sweep").arg(&file).arg("--dry-run").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", file.display());
        planned += 1;
    }
    assert!(planned > 10, "{planned} experiments were found");
}
