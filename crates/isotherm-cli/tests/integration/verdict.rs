//! What a verdict advises helps: following it changes what it complains about.

use crate::command::{isotherm, run};
use serde_json::Value;

/// What the verdict says: why it is not valid, and why it is light.
fn complaints(result: &Value) -> String {
    format!("{} {}", result["verdict"]["reasons"], result["verdict"]["light"])
}

/// The run with `arguments` complains about `problem` and advises each of `advice`; with it, it complains no more.
fn helps(arguments: &[&str], problem: &str, advice: &[&[&str]]) {
    let before = complaints(&run(arguments));
    assert!(before.contains(problem), "{before}");
    for followed in advice {
        assert!(before.contains(followed[0]), "{before} does not advise {followed:?}");
        let after = complaints(&run(&[arguments, followed].concat()));
        assert!(!after.contains(problem), "{followed:?} changes nothing: {after}");
    }
}

#[test]
fn a_run_that_is_too_short_is_repeated() {
    let short = ["synth:uniform,pages=16Ki,writes=20k"];
    helps(&short, "too short", &[&["--repeat", "4"], &["--precondition", "random"]]);
}

#[test]
fn a_device_that_never_cleans_is_filled_or_made_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let sparse = folder.path().join("sparse.csv");
    let rows: String = (0..20_000u64).map(|i| format!("{i},W,{},4096\n", (i * 7919 % 1000) << 18)).collect();
    std::fs::write(&sparse, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    let sparse = [sparse.to_str().unwrap()];
    helps(&sparse, "never ran", &[&["--address", "compact"], &["--fill", "90%"]]);
    helps(&sparse, "cleaning was cheap", &[&["--address", "compact"], &["--fill", "90%"]]);
}

#[test]
fn a_device_that_was_filling_is_preconditioned_or_the_trace_is_repeated() {
    let filling = ["synth:uniform,pages=16Ki,writes=40k"];
    helps(&filling, "not steady", &[&["--repeat", "3"], &["--precondition", "trace"]]);
}

#[test]
fn pages_that_are_only_read_are_written_by_preconditioning() {
    let folder = tempfile::tempdir().unwrap();
    let reads = folder.path().join("reads.csv");
    let row = |i: u64| match i % 2 {
        0 => format!("{i},W,{},4096\n", (i * 7919 % 1000) << 12),
        _ => format!("{i},R,{},4096\n", (1000 + i * 7919 % 1000) << 12),
    };
    let rows: String = (0..20_000).map(row).collect();
    std::fs::write(&reads, format!("ts_ns,op,offset,length\n{rows}")).unwrap();
    helps(
        &[reads.to_str().unwrap(), "--address", "compact"],
        "cleaning was cheap",
        &[&["--precondition", "sequential"]],
    );
}

/// A capture that begins with the discard of the whole device gives what it gives without it, whatever came before.
#[test]
fn the_discard_at_the_head_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, head: &str| {
        let path = folder.path().join(name);
        let rows: String = (1..60_000u64).map(|i| format!("{i},W,{},4096\n", (i * i % 7919) << 12)).collect();
        std::fs::write(&path, format!("ts_ns,op,offset,length\n{head}{rows}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (with, without) = (file("with.csv", "0,D,0,1073741824\n"), file("without.csv", ""));
    let wa = |trace: &str, more: &[&str]| {
        run(&[&[trace, "--address", "compact"], more].concat())["write_amplification"].clone()
    };
    for precondition in ["none", "sequential", "random", "trace"] {
        let more = ["--precondition", precondition];
        assert_eq!(wa(&with, &more), wa(&without, &more), "{precondition}");
    }
    let kept = wa(&with, &["--precondition", "random", "--keep-leading-trim"]);
    assert!(kept.as_f64().unwrap() < 0.98 * wa(&with, &["--precondition", "random"]).as_f64().unwrap());
}

#[test]
fn a_report_says_which_runs_are_light() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let arguments = ["compare", "synth:uniform,pages=16Ki,writes=300k", "--placement", "single", "--out", out];
    let report = |more: &[&str]| {
        let output = isotherm(&[&arguments, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(folder.path().join("report.html")).unwrap()
    };
    let light = "light: at most 50 % of the logical pages held data";
    assert!(report(&["--logical-size", "128MiB"]).contains(light));
    assert!(!report(&["--logical-size", "128MiB", "--fill", "90%"]).contains(light));
}
