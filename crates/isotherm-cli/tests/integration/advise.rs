//! Advice from outside: its files, its errors, and that what it promises is what a replay gives.

use crate::command::{isotherm, run};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const SQLITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/sqlite-wal-ext4.csv.zst");

/// Half of the writes go around a log, the others anywhere in eight times as much.
fn database(folder: &Path, log_pages: u64) -> String {
    let mut text = String::from("ts_ns,op,offset,length\n");
    let mut state = 1u64;
    for at in 0..120 * log_pages {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = if at % 2 == 0 { at / 2 % log_pages } else { log_pages + (state >> 33) % (8 * log_pages) };
        text.push_str(&format!("{},W,{},4096\n", at * 1_000_000, page * 4096));
    }
    let path = folder.join("database.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn error_of(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_a_plan_promises_is_what_its_replay_gives() {
    let folder = tempfile::tempdir().unwrap();
    let trace = database(folder.path(), 1024);
    let out = folder.path().join("advice");
    let output =
        isotherm(&["advise", &trace, "--drive", "client-tlc-1t", "--fill", "100%", "--out", out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for word in ["as it is", "handles by address", "firmware", "knows the future", "life"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // Without a terminal there is a line for each stage.
    let stages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stages.lines().any(|line| line.ends_with(" changes")), "{stages}");
    assert!(!stages.contains(['\r', '\u{1b}']), "{stages:?}");
    let advice: Value = serde_json::from_slice(&std::fs::read(out.join("advice.json")).unwrap()).unwrap();
    let rows = advice["rows"].as_array().unwrap();
    let mut replayed = 0;
    for plan in std::fs::read_dir(out.join("plans")).unwrap().map(|entry| entry.unwrap().path()) {
        let command = std::fs::read_to_string(plan.join("replay.txt")).unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[..2], ["isotherm", "run"]);
        let result = run(&words[2..]);
        let found = result["write_amplification_last"].as_f64().unwrap();
        let promised = |row: &&Value| (row["write_amplification"].as_f64().unwrap() / found - 1.0).abs() < 1e-9;
        assert!(rows.iter().any(|row| promised(&row)), "{found} stands in no row: {said}");
        replayed += 1;
    }
    assert!(replayed > 0, "{said}");
    let mut scheme =
        std::fs::read_dir(out.join("plans")).unwrap().map(|entry| entry.unwrap().path().join("fio-dp-scheme.txt"));
    let scheme = std::fs::read_to_string(scheme.find(|path| path.exists()).unwrap()).unwrap();
    // The grammar of fio's manual: start, end, index.
    let mut expected = 0;
    for line in scheme.lines() {
        let numbers: Vec<u64> = line.split(", ").map(|number| number.parse().unwrap()).collect();
        assert_eq!((numbers.len(), numbers[0]), (3, expected), "{scheme}");
        expected = numbers[1];
    }
    let page = std::fs::read_to_string(out.join("advice.html")).unwrap();
    assert!(page.contains("What to do") && page.contains("Who writes, and who is copied"));
}

#[test]
fn json_is_all_that_is_printed_and_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let trace = database(folder.path(), 512);
    let print = |out: &str| {
        let out = folder.path().join(out);
        let output = isotherm(&["advise", &trace, "--fill", "90%", "--json", "--out", out.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let written = std::fs::read(out.join("advice.json")).unwrap();
        assert_eq!(output.stdout, written);
        written
    };
    let first = print("a");
    assert!(first == print("b"), "two answers to one question differ");
    let advice: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(advice["advice_version"], 1);
    assert!(advice["life_inputs"]["formulas"][0].as_str().unwrap().starts_with("TBW = "));
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let problem = |arguments: &[&str]| error_of(&isotherm(&[&["advise", "--out", out], arguments].concat()));
    assert!(problem(&[SQLITE, "--drive", "tape"]).contains("tlc-1.92t"));
    assert!(problem(&[SQLITE, "--fill", "0%"]).contains("--fill"));
    assert!(problem(&[SQLITE, "--untouched", "100%"]).contains("--untouched"));
    for (option, value) in
        [("--handles", "17"), ("--scale-rate", "0"), ("--pe-cycles", "0"), ("--warranty-years", "0"), ("--op", "0.01")]
    {
        let said = problem(&[SQLITE, option, value]);
        assert!(said.contains(&format!("{option}: {value} is out of range")), "{said}");
    }
    assert!(!Path::new(out).exists(), "a wrong option leaves nothing behind");
    assert!(problem(&["nowhere.csv"]).contains("nowhere.csv"));
    assert!(problem(&[SQLITE, "--capacity", "512MiB"]).contains("--capacity"));
    assert!(problem(&[SQLITE, "--placement", "nothing"]).contains("nothing"));
    assert!(problem(&["synth:uniform,pages=512,writes=10k"]).contains("512 pages"));
    let reads = path("reads.csv", "ts_ns,op,offset,length\n0,R,0,4096\n");
    assert!(problem(&[&reads]).contains("writes nothing"));
    let btrfs = path("map.txt", "Filesystem type is: 9123683e\n");
    assert!(problem(&[SQLITE, "--file-map", &btrfs]).contains("btrfs"));
    let smart = path("smart.json", "{\"data_units_written\": 7}");
    assert!(problem(&[SQLITE, "--smart-before", &smart, "--smart-after", &smart]).contains("wrote nothing"));
    assert!(problem(&[SQLITE, "--smart-before", &smart]).contains("--smart-after"));
    let plan = path("plan.json", "{}");
    let run = |arguments: &[&str]| error_of(&isotherm(&[&["run", SQLITE, "--plan"], arguments].concat()));
    assert!(run(&[&plan]).contains("it is no plan"));
    assert!(run(&["nowhere.json"]).contains("nowhere.json"));
}

#[test]
fn files_and_a_real_drive_stand_beside_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let trace = database(folder.path(), 1024);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The file system begins at 1 MiB: the log has blocks 256 to 767 of the disk and half of itself is outside of the file.
    let map = write(
        "map.txt",
        "Filesystem type is: ef53\nFile size of /db/wal is 2097152 (512 blocks of 4096 bytes)\n   0:        0..     511:          0..       511:    512:             \
         last,eof\nFile size of /db/tree is 33554432 (8192 blocks of 4096 bytes)\n   0:        0..    8191:        768..      8959:   8192:             last,eof\n",
    );
    let before = write("before.json", "{\"hbmw\": 1000, \"mbmw\": 5000}");
    let after = write("after.json", "{\"hbmw\": 2001000, \"mbmw\": 4205000}");
    let out = folder.path().join("out");
    let mut arguments = vec!["advise", &trace, "--fill", "100%", "--json", "--out", out.to_str().unwrap()];
    arguments.extend([
        "--file-map",
        &map,
        "--partition-offset",
        "1MiB",
        "--smart-before",
        &before,
        "--smart-after",
        &after,
    ]);
    let output = isotherm(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let advice: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(advice["calibration"]["write_amplification"], 2.1);
    assert!(advice["calibration"]["text"].as_str().unwrap().contains("2.10 bytes of flash"));
    let files = advice["files"].as_array().unwrap();
    let file =
        |name: &str| files.iter().find(|file| file["name"] == name).unwrap_or_else(|| panic!("{name}: {files:?}"));
    assert_eq!(file("/db/wal")["pages"], 512);
    assert!((file("/db/wal")["write_share"].as_f64().unwrap() - 0.25).abs() < 0.01);
    let copies = |name: &str| file(name)["copy_share"].as_f64().unwrap();
    assert!(copies("/db/tree") > 10.0 * copies("/db/wal"), "{files:?}");
}
