//! `compare` where things go wrong: combinations that cannot be, readers that go away, disks that are full.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: &str = "synth:uniform,pages=4Ki,writes=20k";

fn compare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    command.arg("compare").args(arguments).env("COLUMNS", "80").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn done(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    output
}

fn results(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("results.json")).unwrap()).unwrap()
}

fn labels(results: &Value) -> Vec<&str> {
    results["runs"].as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect()
}

#[test]
fn what_cannot_be_is_skipped_with_a_note_and_the_rest_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let placements = ["--placement", "single,epoch:length=1,gc=extra", "--out", out];
    let output = done(compare(&[&[SMALL, "--op", "0.2%,20%"], &placements[..]].concat()));
    let said = text(&output.stderr);
    assert!(said.contains("epoch:length=1,gc=extra, OP 0.2 %: skipped:") && said.contains("--op"), "{said}");
    let found = results(folder.path());
    assert_eq!(found["runs"].as_array().unwrap().len(), 3);
    assert_eq!(found["skipped"][0]["label"], "epoch:length=1,gc=extra, OP 0.2 %");
    assert!(std::fs::read_to_string(folder.path().join("report.html")).unwrap().contains("could not be run"));

    let none =
        compare(&[SMALL, "--op", "0.2%", "--placement", "epoch:length=1,gc=extra", "--out", out]).output().unwrap();
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));

    // What a run makes for files that never come, it removes; what was there before stays.
    let new = folder.path().join("new/deeper");
    let arguments = [SMALL, "--op", "0.2%", "--placement", "epoch:length=1,gc=extra", "--out", new.to_str().unwrap()];
    assert_eq!(compare(&arguments).output().unwrap().status.code(), Some(2));
    assert!(!folder.path().join("new").exists() && folder.path().exists());

    let logs = done(compare(&[SMALL, "--log", "sfs:segment=64KiB,in_place", "--out", out]));
    assert!(text(&logs.stderr).contains("in_place: skipped:"), "{}", text(&logs.stderr));
    assert_eq!(labels(&results(folder.path())), ["sfs:segment=64KiB"]);

    // A trace that cannot be opened is told by the exit code as well.
    let traces = compare(&["/nowhere/trace.csv", SMALL, "--placement", "single", "--out", out]).output().unwrap();
    assert_eq!(traces.status.code(), Some(2));
    assert!(text(&traces.stderr).contains("trace: skipped: /nowhere/trace.csv"), "{}", text(&traces.stderr));
    assert_eq!(labels(&results(folder.path())), ["uniform: single"]);
}

#[test]
fn a_run_that_fails_midway_does_not_lose_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("far.csv");
    let rows: String = (0..3000u64).map(|i| format!("{i},W,{},4096\n", i % 1500 * 4096)).collect();
    std::fs::write(&trace, rows).unwrap();
    let out = folder.path().join("out");
    // Past the end of the drive only the second trace writes, which is found out as it runs.
    let near = "synth:uniform,pages=1Ki,writes=9k";
    let options = ["--logical-size", "4MiB", "--placement", "single", "--out", out.to_str().unwrap()];
    let output = compare(&[&[near, trace.to_str().unwrap()], &options[..]].concat()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("far: single: failed:") && said.contains("past"), "{said}");
    assert_eq!(labels(&results(&out)), ["uniform: single"]);
}

#[test]
fn computing_goes_on_when_nobody_reads() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let mut child = compare(&[SMALL, "--out", out]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(results(folder.path())["runs"].as_array().unwrap().len(), 8);
}

#[test]
fn tables_come_before_files_and_files_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ["--placement", "single", "--out", out.to_str().unwrap()];
    done(compare(&[&[SMALL], &options[..]].concat()));
    // The report's place is taken by a folder: the table is there all the same.
    std::fs::remove_file(out.join("report.html")).unwrap();
    std::fs::create_dir(out.join("report.html")).unwrap();
    let output = compare(&[&[SMALL, "--export", "/dev/full/table.md"], &options[..]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "what cannot be written is refused before anything runs");
    assert!(output.stdout.is_empty());
    let full = compare(&[&[SMALL], &options[..]].concat()).output().unwrap();
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stdout).contains("valid"), "the table comes first: {}", text(&full.stdout));
    assert!(text(&full.stderr).contains("report.html"), "{}", text(&full.stderr));
}

/// Files that may not grow stand for a disk that is full: not even the folders are left.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_folders_behind() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/out");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let limited = |words: &[&str]| {
        let output = Command::new("sh").args(["-c", script, "sh", env!("CARGO_BIN_EXE_isotherm")]).args(words).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("report.html"), "{}", text(&output.stderr));
    };
    limited(&["compare", SMALL, "--placement", "single", "--svg", "--out", out.to_str().unwrap()]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let kept = folder.path().join("kept");
    done(compare(&[SMALL, "--placement", "single", "--out", kept.to_str().unwrap()]));
    let [results, report] = [kept.join("results.json"), folder.path().join("new/report.html")];
    limited(&["report", results.to_str().unwrap(), "--svg", "--out", report.to_str().unwrap()]);
    assert!(!folder.path().join("new").exists());
}

#[test]
fn a_terminal_that_cannot_be_written_does_not_lose_the_results() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let output = compare(&[SMALL, "--json", "--out", out]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("standard output"), "{}", text(&output.stderr));
    assert_eq!(results(folder.path())["runs"].as_array().unwrap().len(), 8);
}

#[test]
fn a_pipe_is_read_as_often_as_need_be() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..30_000u64).map(|i| format!("{i},W,{},4096\n", i * 7919 % 1000 * 4096)).collect();
    let file = folder.path().join("trace.csv");
    std::fs::write(&file, &rows).unwrap();
    let out = folder.path().join("out");
    let options = ["--placement", "single,host_gc", "--op", "28%", "--out", out.to_str().unwrap()];
    let mut child =
        compare(&[&["-"], &options[..]].concat()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(rows.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let piped = results(&out);
    done(compare(&[&[file.to_str().unwrap()], &options[..]].concat()));
    let read = results(&out);
    for (a, b) in piped["runs"].as_array().unwrap().iter().zip(read["runs"].as_array().unwrap()) {
        assert_eq!(a["pages_programmed"], b["pages_programmed"]);
    }
    let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let repeat = ["run", "-", "--op", "28%", "--repeat", "2", "--json"];
    let mut child = run.args(repeat).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(rows.as_bytes()).unwrap();
    let mut json = String::new();
    child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["host_pages_written"], 60_000);
}

#[test]
fn tables_fit_eighty_columns_and_wide_ones_hold_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let arguments = [
        SMALL,
        "--placement",
        "single,epoch:length=1,gc=extra",
        "--victim",
        "greedy,cost_benefit",
        "--op",
        "20%",
        "--out",
        out,
    ];
    let narrow = text(&done(compare(&arguments)).stdout);
    let lines: Vec<&str> = narrow.lines().filter(|line| !line.starts_with(out)).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{narrow}");
    let header = |start: &str| *lines.iter().find(|line| line.starts_with(start)).unwrap();
    assert_eq!(
        header("writes ").split_whitespace().collect::<Vec<_>>(),
        ["writes", "WA", "copies", "victims", "dead", "DWPD", "valid"]
    );
    assert!(narrow.contains("\n8 more columns with --wide\n"), "{narrow}");
    assert!(narrow.contains("dead: mean share of a victim's pages that held nothing valid"), "{narrow}");
    let wide = text(&done(compare(&[&arguments[..], &["--wide"]].concat())).stdout);
    assert!(wide.contains("per block  least  most") && !wide.contains("with --wide"), "{wide}");
    let mut roomy = compare(&arguments);
    roomy.env("COLUMNS", "200");
    assert!(text(&done(roomy).stdout).contains("per block  least  most"));
}

#[test]
fn small_writes_are_counted_in_bytes_first() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let trace = folder.path().join("small.csv");
    let rows: String = (0..40_000u64).map(|i| format!("{i},W,{},512\n", i * 7919 % 4000 * 512)).collect();
    std::fs::write(&trace, rows).unwrap();
    let output = done(compare(&[trace.to_str().unwrap(), "--placement", "single", "--op", "50%", "--out", out]));
    let text = text(&output.stdout);
    let header = text.lines().find(|line| line.starts_with("writes ")).unwrap();
    assert!(header.split_whitespace().collect::<Vec<_>>().starts_with(&["writes", "WA", "in", "pages"]), "{header}");
    let row = text.lines().skip_while(|line| !line.starts_with("writes ")).nth(2).unwrap();
    let numbers: Vec<f64> = row.split_whitespace().skip(1).take(2).map(|n| n.parse().unwrap()).collect();
    assert!((numbers[0] / numbers[1] - 8.0).abs() < 0.01, "512 bytes are an eighth of a page: {row}");
}

#[test]
fn several_traces_and_seeds_have_tables_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let export = folder.path().join("table.csv");
    let arguments = [
        SMALL,
        "synth:zipf,theta=1,pages=4Ki,writes=20k",
        "--placement",
        "single,host_gc",
        "--op",
        "20%",
        "--seeds",
        "3",
        "--out",
        out,
        "--export",
        export.to_str().unwrap(),
    ];
    let shown = text(&done(compare(&arguments)).stdout);
    assert!(shown.contains("\nuniform\n\nwrites") && shown.contains("\nzipf\n\nwrites"), "{shown}");
    assert!(shown.contains(" \u{b1} "), "{shown}");
    let found = results(folder.path());
    assert_eq!(found["runs"].as_array().unwrap().len(), 12);
    assert_eq!(found["traces"].as_array().unwrap().len(), 6, "each seed draws the workload anew");
    let replicates = found["replicates"].as_array().unwrap();
    assert_eq!(replicates.len(), 4);
    for of_device in replicates {
        assert_eq!(of_device["seeds"], serde_json::json!([1, 2, 3]));
        let values: Vec<f64> = found["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["label"] == of_device["label"])
            .map(|run| run["write_amplification"].as_f64().unwrap())
            .collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        let estimate = &of_device["values"]["write_amplification"];
        assert!((estimate["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
        // Student's t for two degrees of freedom is 4.303.
        assert!((estimate["confidence_95"].as_f64().unwrap() / (4.3027 * deviation / 3f64.sqrt()) - 1.0).abs() < 1e-3);
    }
    let table = std::fs::read_to_string(&export).unwrap();
    assert_eq!(table.lines().count(), 5);
    // What people read fits a page; intervals of numbers that are all the same are nought.
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let files = ["table.md", "table.tex"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let options = ["--export", &files[0], "--export", &files[1]];
    let lines_of = |more: &[&str]| {
        done(compare(&[&arguments[..], &options, more].concat()));
        (read("table.md"), read("table.tex"))
    };
    let (narrow, tex) = lines_of(&[]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 110), "80 letters and the bars between: {narrow}");
    assert!(
        narrow.starts_with("| trace | device | WA | ") && narrow.contains(" more columns with --wide\n"),
        "{narrow}"
    );
    assert!(tex.contains(" & WA & ") && tex.contains("\n% ") && tex.contains(" more columns with --wide\n"), "{tex}");
    let (wide, tex) = lines_of(&["--wide"]);
    assert!(wide.contains("| host pages |") && !wide.contains("with --wide") && !tex.contains("with --wide"), "{wide}");
    assert!(wide.contains("| 20 000 \u{b1} 0 |") && !wide.contains("e-"), "{wide}");
    assert!(
        table.starts_with("trace,device,seeds,valid,write_amplification,write_amplification.confidence_95,"),
        "{table}"
    );
    crate::command::known_to_the_schema(&found);
}

/// A process that overwrites little, often, and one that overwrites much, seldom: apart they cost less than together.
#[test]
fn streams_of_a_trace_separate_what_its_processes_write() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let trace = folder.path().join("two.csv");
    let row = |i: u64| {
        let draw = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20;
        let (page, process) = if i.is_multiple_of(10) { (400 + draw % 3600, 9) } else { (draw % 400, 7) };
        format!("{i},W,{},4096,s{process}\n", page * 4096)
    };
    let rows: String = (0..120_000).map(row).collect();
    std::fs::write(&trace, format!("ts_ns,op,offset,length,stream\n{rows}")).unwrap();
    let options = ["--placement", "single,streams:count=2", "--victim", "cost_benefit", "--op", "20%", "--out", out];
    done(compare(&[&[trace.to_str().unwrap()], &options[..]].concat()));
    let found = results(folder.path());
    assert_eq!(labels(&found), ["streams:count=2", "single"]);
    let copies: Vec<u64> =
        found["runs"].as_array().unwrap().iter().map(|run| run["gc_pages_copied"].as_u64().unwrap()).collect();
    assert!(copies[0] * 3 < copies[1] * 2, "streams save a third of the copies at least: {copies:?}");
}

#[test]
fn a_light_run_is_no_plain_yes_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let light = ["synth:uniform,pages=16Ki,writes=300k", "--placement", "single", "--logical-size", "128MiB"];
    let (md, csv) = (at("table.md"), at("table.csv"));
    let files = ["--out", &at("out"), "--export", &md, "--export", &csv, "--wide"];
    let said = text(&done(compare(&[&light[..], &files].concat())).stdout);
    let row = said.lines().find(|line| line.starts_with("single")).unwrap();
    assert!(row.ends_with(" light"), "{row}");
    assert!(said.contains("valid: light is valid, but"), "{said}");
    for column in ["TBW: ", "years: life at the trace's rate", "live peak", "live mean"] {
        // The workload has no times, and so no life in years.
        assert_eq!(said.contains(column), !column.starts_with("years"), "{column}: {said}");
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert!(read(&md).contains("| light |") && read(&md).contains("\nvalid: light is valid, but"), "{}", read(&md));
    assert!(read(&csv).contains("single,1,light,"), "{}", read(&csv));
    let report = read(&at("out/report.html"));
    assert!(report.contains("In the column Valid, light is valid, but") && report.contains("TBW = "), "{report}");
}

#[test]
fn what_latencies_leave_out_stands_under_their_table_once() {
    let folder = tempfile::tempdir().unwrap();
    let fast = "synth:uniform,pages=4Ki,writes=20k,rate=1000000";
    let arguments = ["--placement", "single,host_gc", "--out", folder.path().to_str().unwrap()];
    let said = |mode: &str| {
        let said = text(&done(compare(&[&[fast, "--set", mode], &arguments[..]].concat())).stdout);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let serial = said("timing.mode=serial");
    assert_eq!(serial.matches("latencies: a latency is the time of").count(), 1, "{serial}");
    assert_eq!(said("timing.mode=open").matches("the drive cannot keep up").count(), 2, "each by its own figures");
    let report = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(report.contains("the drive cannot keep up"), "the report says it too");
}
