//! `isotherm trace` as scripts use it: data on stdout, words on stderr, 2 for what the user can mend.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn isotherm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    command.arg("trace").args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    isotherm(arguments).output().expect("the binary runs")
}

/// A capture that is checked in.
fn capture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name).to_str().expect("a path").to_owned()
}

#[test]
fn info_prints_one_json_object_and_nothing_else() {
    let output = run(&["info", "--json", &capture("raw/raw-fio-device.blktrace.bin.zst")]);
    assert!(output.status.success() && output.stderr.is_empty());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(value["format"], "blktrace");
    assert_eq!(value["requests"], 2320);
    assert_eq!(value["writes"]["bytes"], 61_177_856);
}

#[test]
fn info_begins_with_the_sanity_line() {
    let output = run(&["info", &capture("rocksdb-overwrite-xfs.csv.zst")]);
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().next().expect("a line");
    assert!(
        line.starts_with("csv trace: 148.8 k requests")
            && line.contains("footprint 1.5 GiB")
            && line.contains("0 skipped, 1 leading trim of 1.5 GiB dropped")
            && line.ends_with("--keep-leading-trim keeps it)"),
        "{line}"
    );
}

#[test]
fn convert_and_back_keeps_the_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let workload = "synth:hotcold:0.1/0.9,pages=1000,writes=5000,reads=0.5,rate=700";
    assert!(run(&["gen", workload, &path("a.csv")]).status.success());
    assert!(run(&["convert", &path("a.csv"), &path("b.parquet")]).status.success());
    assert!(run(&["convert", &path("b.parquet"), &path("c.csv")]).status.success());
    assert_eq!(std::fs::read(path("a.csv")).expect("a"), std::fs::read(path("c.csv")).expect("c"));
    let again = run(&["convert", &path("a.csv"), &path("b.parquet")]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
    assert!(run(&["convert", "--force", &path("a.csv"), &path("b.parquet")]).status.success());
}

#[test]
fn mistakes_exit_with_2_and_name_the_place_and_the_fix() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = folder.path().join("bad.csv").to_str().expect("a path").to_owned();
    std::fs::write(&bad, "0,W,0,512\n1,W,-5,512\n").expect("a file");
    for (arguments, part) in [
        (&["info", "/no/such/trace"][..], "check the path"),
        (&["info", "synth:zipf,thetta=2"], "unknown parameter \"thetta\""),
        (&["info", &bad], "bad.csv: line 2, column 5: offset \"-5\" is negative"),
        (&["gen", "trace.csv", "other.csv"], "write synth:PATTERN"),
        (&["info", "--format", "nonsense", &bad], "choose from csv, parquet"),
        (&["info", "--sort", "quickly", &bad], "choose from declared, refuse, memory"),
        (&["info", "--page-size", "5000", &bad], "a power of two"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(part), "{arguments:?}: \"{part}\" is not in: {words}");
    }
    let skipped = run(&["head", "--skip-bad", "1", &bad]);
    assert_eq!(skipped.stdout, b"ts_ns,op,offset,length\n0,W,0,512\n");
}

#[test]
fn a_reader_that_stops_is_no_error() {
    let mut child = isotherm(&["head", "-n", "10000000", "synth:uniform,writes=1G"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ts_ns,op,offset,length\n");
    assert!(child.wait().expect("it ends").success());
    let mut words = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
    assert!(words.is_empty(), "{words}");
}

#[test]
fn split_writes_a_file_for_each_volume_that_is_replayed_as_the_volume_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    // Tencent's form: seconds, sectors, sectors, 1 = write, volume.
    let line = |i: u64| format!("{},{},8,1,{}\n", i / 100, 8 * (i * i % 1009), 1283 + i % 3);
    std::fs::write(path("cloud.csv"), (0..3000).map(line).collect::<String>()).expect("a trace");
    let output = run(&["split", &path("cloud.csv"), &path("volumes")]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("3 volumes: 3000 requests from tencent"), "{told}");
    let footprint = |arguments: &[&str]| {
        let profile = run(&[&["info", "--json"], arguments].concat()).stdout;
        serde_json::from_slice::<serde_json::Value>(&profile).expect("one object")["footprint_pages"].clone()
    };
    let alone = footprint(&["--volume", "1284", &path("cloud.csv")]);
    assert!(alone.as_u64().is_some_and(|pages| pages > 0), "{alone}");
    assert_eq!(footprint(&[&path("volumes/1284.csv.zst")]), alone);
    for (wrong, words) in [
        (vec!["split", &path("cloud.csv"), &path("volumes")], "exists already"),
        (vec!["split", &path("volumes/1284.csv.zst"), &path("other")], "no volumes"),
        (vec!["split", "--form", "parquet", &path("cloud.csv"), &path("other")], "csv.zst"),
        (vec!["split", "synth:uniform,pages=9,writes=9", &path("other")], "no volumes"),
    ] {
        let output = run(&wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
        assert!(!Path::new(&path("other")).exists());
    }
}

/// Who asks is in both canonical forms, so that streams place alike by either.
#[test]
fn a_trace_in_parquet_has_the_streams_of_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let row = |at: u64| {
        // One asks in turn over a few pages, the other at random over many.
        let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let page = if at.is_multiple_of(2) { at / 2 % 64 } else { 64 + (mixed >> 40) % 4096 };
        format!("{at},W,{},4096,s{}\n", page * 4096, at % 2)
    };
    let rows: String = (0..40_000).map(row).collect();
    std::fs::write(path("a.csv"), format!("ts_ns,op,offset,length,stream\n{rows}")).expect("a");
    assert!(run(&["convert", &path("a.csv"), &path("a.parquet")]).status.success());
    let written = |name: &str, placement: &str| {
        let binary = env!("CARGO_BIN_EXE_isotherm");
        let options = ["--pages-per-block", "32", "--op", "20%", "--placement", placement, "--json"];
        let output = Command::new(binary).args(["run", &path(name)]).args(options).output().expect("isotherm runs");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a result");
        result["gc_pages_copied"].as_u64().expect("a number")
    };
    let by_text = written("a.csv", "streams");
    assert_eq!(written("a.parquet", "streams"), by_text);
    assert_ne!(written("a.parquet", "single"), by_text, "streams place otherwise");
    let notes = |trace: &str, verb: &str| {
        let options = ["--pages-per-block", "16", "--op", "20%", "--placement", "streams", "--victim", "greedy"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let output = command.current_dir(folder.path()).args([verb, trace]).args(options).output();
        String::from_utf8_lossy(&output.expect("isotherm runs").stderr).into_owned()
    };
    for verb in ["run", "compare"] {
        let told = notes("synth:uniform,pages=4Ki,writes=20k", verb);
        assert!(told.contains("streams: placement: the trace names no more than one who asks"), "{verb}: {told}");
        assert!(!notes(&path("a.parquet"), verb).contains("who asks"), "{verb}");
    }
}

/// The heading decides: numbers under `stream` are streams, and stay streams when they are converted.
#[test]
fn streams_may_be_plain_numbers_under_a_heading_and_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let rows = "0,W,0,4096,7\n1,W,4096,4096,9\n2,R,0,4096,7\n";
    std::fs::write(path("a.csv"), format!("ts_ns,op,offset,length,stream\n{rows}")).expect("a");
    assert!(run(&["convert", &path("a.csv"), &path("b.csv")]).status.success());
    let kept = "ts_ns,op,offset,length,stream\n0,W,0,4096,s0\n1,W,4096,4096,s1\n2,R,0,4096,s0\n";
    assert_eq!(std::fs::read_to_string(path("b.csv")).expect("b"), kept);
    assert!(run(&["convert", &path("b.csv"), &path("c.csv")]).status.success());
    assert_eq!(std::fs::read_to_string(path("c.csv")).expect("c"), kept);
    assert!(run(&["convert", &path("b.csv"), &path("d.parquet")]).status.success());
    assert!(run(&["convert", &path("d.parquet"), &path("f.csv")]).status.success());
    assert_eq!(std::fs::read_to_string(path("f.csv")).expect("f"), kept, "by way of Parquet");
    // Without the heading, the same rows are Alibaba's.
    std::fs::write(path("bare.csv"), rows).expect("bare");
    let bare = run(&["convert", &path("bare.csv"), &path("e.csv")]);
    assert!(String::from_utf8_lossy(&bare.stderr).contains("3 requests from alibaba"), "{bare:?}");
}
