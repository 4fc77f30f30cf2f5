//! Golden runs: every placement, victim policy, FTL, buffer, split and log over small synthetic traces must leave the results
//! that are written down in `golden/runs.txt`, to the byte.
//!
//! A change that is meant to move results writes the file anew and shows the difference in its commit:
//!
//! ```text
//! ISOTHERM_GOLDEN=write cargo test -p isotherm-cli golden
//! ```

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const EXPERIMENTS: [&str; 4] = ["policies", "maps", "splits", "logs"];

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// What may differ between two runs of the same build, or between two versions that count the same.
fn forget_what_may_differ(value: &mut Value) {
    match value {
        Value::Object(keys) => {
            keys.retain(|key, _| key != "version" && !key.starts_with("simulator_"));
            keys.values_mut().for_each(forget_what_may_differ);
        }
        Value::Array(values) => values.iter_mut().for_each(forget_what_may_differ),
        _ => {}
    }
}

/// A line for each run of an experiment: its name, figures that a reader can compare, and a hash of the whole result.
fn lines(experiment: &str, folder: &Path) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(experiment).with_extension("toml");
    let out = folder.join(experiment);
    let sweep = Command::new(env!("CARGO_BIN_EXE_isotherm")).arg("sweep").arg(file).arg("--out").arg(&out).output();
    let sweep = sweep.expect("the binary was built for this test");
    assert!(sweep.status.success(), "{experiment}: {}", String::from_utf8_lossy(&sweep.stderr));
    let text = std::fs::read_to_string(out.join("results.json")).expect("the sweep wrote its results");
    let mut results: Value = serde_json::from_str(&text).expect("results are JSON");
    let mut lines = String::new();
    for run in results["runs"].as_array_mut().expect("results have runs") {
        forget_what_may_differ(run);
        let hash = hash(&run.to_string());
        let (label, wa, erases) = (&run["label"], &run["write_amplification"], &run["erase_count"]["total"]);
        let wa = wa.as_f64().unwrap_or(f64::NAN);
        writeln!(lines, "{experiment}: {}: WA {wa:.4}, {erases} erases, {hash:016x}", label.as_str().unwrap_or("?"))
            .expect("writing to a string cannot fail");
    }
    lines
}

#[test]
fn golden_runs_leave_the_results_that_are_written_down() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let now: String = EXPERIMENTS.iter().map(|experiment| lines(experiment, folder.path())).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs.txt");
    if std::env::var_os("ISOTHERM_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&path, &now).expect("the golden runs can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden runs are written down");
    let differing: Vec<String> = golden
        .lines()
        .zip(now.lines())
        .filter(|(golden, now)| golden != now)
        .take(10)
        .map(|(golden, now)| format!("- {golden}\n+ {now}"))
        .collect();
    assert!(differing.is_empty(), "results have moved; the first ones:\n{}", differing.join("\n"));
    assert_eq!(golden.lines().count(), now.lines().count(), "the number of golden runs has changed");
}
