//! What a served drive writes down: replayed, a device of the same specification counts the same.

use super::stage::{Server, Stage};
use super::tools::{client, python, run};
use crate::command;
use serde_json::Value;
use std::path::Path;

/// Reads, writes of all sizes, discards, zeros and flushes.
fn load(server: &Server, fio: &Path, python: &Path) {
    let uri = format!("--uri={}", server.uri());
    let common = ["--name=x", "--ioengine=nbd", "--randrepeat=1", "--size=16m", &uri];
    for options in [
        &["--rw=write", "--bs=128k", "--iodepth=4"][..],
        &["--rw=randrw", "--rwmixread=20", "--bsrange=512-16k", "--iodepth=16", "--io_size=40m", "--fsync=50"],
        &["--rw=randtrim", "--bs=8k", "--io_size=1m"],
        &[
            "--rw=randwrite",
            "--bs=4k",
            "--iodepth=32",
            "--random_distribution=zipf:1.1",
            "--io_size=24m",
            "--norandommap",
        ],
    ] {
        run(fio, &[&common[..], options].concat());
    }
    server.script(
        python,
        "h.zero(1 << 20, 0)\nh.zero(9216, 512)\nh.zero(1024, 5120)\nh.zero(1 << 20, 2 << 20, nbd.CMD_FLAG_NO_HOLE)\nh.pwrite(b'x' * 5120, 512, nbd.CMD_FLAG_FUA)\nh.flush()",
    );
}

/// Serves a device with these options, and replays the record of it.
fn replays_the_same(device: &[&str]) {
    let (Some(fio), Some(python)) = (client("fio"), python()) else { return };
    let device = [&["--logical-size", "16MiB", "--op", "25%", "--seed", "7"], device].concat();
    let stage = Stage::with(&device);
    let record = stage.path("record.csv");
    let server = stage.serve(&["--record", &record]);
    load(&server, &fio, &python);
    let served = server.json(&["stats"], &[]);
    assert!(server.stop().contains("record.csv: "));
    let replayed = command::run(&[&[record.as_str(), "--keep-leading-trim"], &device[..]].concat());
    // But for requests: the record ends with the flush of the server that stops.
    let keys = [
        "host_pages_written",
        "host_pages_read",
        "host_pages_trimmed",
        "host_pages_partly_written",
        "host_bytes_written",
        "host_bytes_read",
        "host_bytes_trimmed",
        "pages_programmed",
        "pages_programmed_total",
        "pages_read",
        "gc_count",
        "erase_count",
    ];
    for key in keys {
        assert!(served.get(key).is_some(), "no {key} in {served}");
        assert_eq!(served[key], replayed[key], "{key} of {device:?}");
    }
    let more_than = |key: &str, least: u64| assert!(served[key].as_u64() > Some(least), "{key}: {}", served[key]);
    more_than("host_pages_written", 16_000);
    more_than("host_pages_trimmed", 300);
    let cleaned = |value: &Value| value["pages_programmed_total"].as_u64() > value["host_pages_written"].as_u64();
    assert!(cleaned(&served), "no block was cleaned: {}", served["pages_programmed"]);
}

#[test]
fn a_page_mapped_drive_and_its_record_count_the_same() {
    replays_the_same(&["--placement", "sepbit", "--victim", "cost_benefit"]);
}

#[test]
fn a_dftl_drive_and_its_record_count_the_same() {
    replays_the_same(&["--ftl", "dftl:cache=16KiB"]);
}

#[test]
fn an_asa_drive_and_its_record_count_the_same() {
    replays_the_same(&["--ftl", "asa:cache=64KiB,samples=512"]);
}

#[test]
fn a_fast_drive_and_its_record_count_the_same() {
    replays_the_same(&["--ftl", "fast"]);
}

#[test]
fn a_buffered_drive_and_its_record_count_the_same() {
    replays_the_same(&["--dram", "1MiB", "--placement", "dac"]);
}

#[test]
fn handles_are_told_apart_in_the_record_and_on_flash() {
    let Some(python) = python() else { return };
    let stage = Stage::with(&["--logical-size", "16MiB", "--op", "25%", "--placement", "streams:count=2"]);
    let plan = stage.path("plan.json");
    std::fs::write(&plan, r#"{"ranges": [{"offset": 8388608, "length": 1048576, "handle": 1}]}"#).unwrap();
    let record = stage.path("record.csv");
    let server = stage.serve(&["--record", &record, "--handles", "2", "--plan", &plan]);
    let write = |export: &str, page: u64| {
        let script = format!("h.pwrite(b'x' * 4096, {page} * 4096)");
        run(&python, &["-m", "nbd", "--uri", &server.uri_of(export), "-c", &script]);
    };
    write("disk/0", 10);
    write("disk/1", 11);
    // All see one drive; the plan says whose a page of the whole is.
    write("disk", 12);
    write("disk", 2048);
    let script = "assert h.pread(16384, 9 * 4096) == bytes(4096) + b'x' * 12288";
    run(&python, &["-m", "nbd", "--uri", &server.uri_of("disk/1"), "-c", script]);
    assert_eq!(server.json(&["fdp", "configs"], &["-o", "json"])["configs"][0]["nruh"], 2);
    server.stop();
    let text = std::fs::read_to_string(&record).unwrap();
    let mut lines = text.lines();
    let column = lines.next().unwrap().split(',').position(|name| name == "stream").expect("a column stream");
    let writes: Vec<(u64, &str)> = lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|fields| fields[1] == "W")
        .map(|fields| (fields[2].parse::<u64>().unwrap() / 4096, fields[column]))
        .collect();
    assert_eq!(writes, [(10, "s0"), (11, "s1"), (12, "s0"), (2048, "s1")], "{text}");
}

/// A record is read while it grows, and after its writer was killed: what was served more than a second before is there. One that was
/// cut in its last piece says so, and gives what is whole.
#[test]
fn a_record_stays_readable_after_a_kill() {
    let Some(fio) = client("fio") else { return };
    for (ending, streams) in [("csv", "1"), ("csv.gz", "2"), ("csv.zst", "1")] {
        let stage = Stage::with(&["--logical-size", "16MiB", "--op", "25%"]);
        let record = stage.path(&format!("record.{ending}"));
        let server = stage.serve(&["--record", &record, "--handles", streams]);
        let uri = format!("--uri={}", server.uri());
        let writes = |count: u32| {
            let io_size = format!("--io_size={}k", 4 * count);
            let size = ["--name=x", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--size=16m", &uri, &io_size];
            run(&fio, &size);
        };
        let info = |options: &[&str]| -> Value {
            let output = command::isotherm(&[&["trace", "info", &record, "--json"], options].concat());
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).expect("JSON")
        };
        // The first piece may have nothing but the heading.
        let is_empty = || !std::fs::metadata(&record).is_ok_and(|file| file.len() > 200);
        let write_requests = || if is_empty() { 0 } else { info(&[])["writes"]["requests"].as_u64().unwrap() };
        writes(300);
        // Nothing was flushed, and no batch is full: a second is what a piece waits for.
        let start = std::time::Instant::now();
        while write_requests() < 300 {
            assert!(start.elapsed().as_secs() < 30, "what was served is not written down");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let first_piece = std::fs::metadata(&record).unwrap().len();
        writes(200);
        let start = std::time::Instant::now();
        while write_requests() < 500 {
            assert!(start.elapsed().as_secs() < 30, "what was served is not written down");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        server.kill();
        assert_eq!(write_requests(), 500, "{ending}");
        if ending == "csv" {
            continue;
        }
        let whole = std::fs::read(&record).unwrap();
        std::fs::write(&record, &whole[..(first_piece as usize + whole.len()) / 2]).unwrap();
        let output = command::isotherm(&["trace", "info", &record, "--json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("truncated after line ") && said.contains("--skip-bad 1"), "{said}");
        let read = info(&["--skip-bad", "1"]);
        let found = read["writes"]["requests"].as_u64().unwrap();
        assert!((300..500).contains(&found), "{found} of 500, {first_piece} bytes whole");
    }
}

#[test]
fn a_drive_that_cannot_be_opened_leaves_no_record() {
    let stage = Stage::new();
    let record = stage.path("record.csv.zst");
    let server = stage.start(&[&stage.image(), "--record", &record]);
    assert!(server.said().contains("d.flash"), "{}", server.said());
    assert!(!Path::new(&record).exists());
}
