//! Real captures: the figures that were taken when they were made must come out of the readers.

use isotherm_trace::{BlktraceAction, Op, OpenOptions, Request, TimeUnit, open, profile};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The traces that are checked in.
fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

fn agree(folder: &Path) {
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of traces") {
        let description = entry.expect("a folder").path();
        if description.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&description).expect("a description");
        let stated: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let trace = description.with_extension("csv.zst");
        let found = profile(trace.to_str().expect("a path"), &OpenOptions::default()).expect("a sound trace");
        let number = |key: &str| stated[key].as_u64().unwrap_or_else(|| panic!("{key} of {description:?}"));
        assert_eq!(found.requests, number("requests"), "{trace:?}");
        assert_eq!(found.reads.requests, number("reads"));
        assert_eq!(found.writes.requests, number("writes"));
        assert_eq!(found.trims.requests, number("discards"));
        assert_eq!(found.flushes, number("flushes"));
        assert_eq!(found.reads.bytes, number("read_bytes"));
        assert_eq!(found.writes.bytes, number("written_bytes"));
        assert_eq!(found.trims.bytes, number("discarded_bytes"));
        assert_eq!(found.written_pages * 4096, number("footprint_bytes"), "{trace:?}");
        assert!(found.span_bytes <= number("device_bytes"));
        let duration_s = stated["duration_s"].as_f64().expect("a duration");
        assert!((found.duration_ns as f64 / 1e9 - duration_s).abs() < 0.01);
        checked += 1;
    }
    assert!(checked > 0, "no trace in {folder:?}");
}

#[test]
fn checked_in_captures_have_the_figures_they_were_made_with() {
    agree(&traces());
    agree(&traces().join("raw"));
}

/// The captures that are too large to check in, where `ISOTHERM_TRACES` names a folder that has them.
#[test]
fn other_captures_have_the_figures_they_were_made_with() {
    if let Some(folder) = folder_in("ISOTHERM_TRACES") {
        agree(&folder);
    }
}

/// The folder that an environment variable names; the test that asks is skipped without it, and this says so.
fn folder_in(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        // Not `println!`: the test harness would swallow it.
        writeln!(std::io::stderr(), "skipped: {variable} names no folder").expect("standard error is open");
    }
    folder
}

/// Everything that one raw capture holds, by one of its forms.
fn read(path: &Path, options: &OpenOptions) -> Vec<Request> {
    let mut reader = open(path.to_str().expect("a path"), options).expect("a sound trace");
    let mut requests = Vec::new();
    while reader.fill(&mut requests, 1000).expect("sound rows") > 0 {}
    assert_eq!(reader.skipped(), 0);
    requests
}

/// Requests of one kind without their times, in one order whatever the times.
fn of_kind(requests: &[Request], op: Op) -> Vec<(u64, u64)> {
    let kind = requests.iter().filter(|request| request.op == op);
    let mut ranges: Vec<_> = kind.map(|request| (request.offset, request.length)).collect();
    ranges.sort_unstable();
    ranges
}

/// The 512-byte sectors that the ranges cover.
fn covered(ranges: &[(u64, u64)]) -> BTreeSet<u64> {
    ranges.iter().flat_map(|(offset, length)| offset / 512..(offset + length).div_ceil(512)).collect()
}

#[test]
fn binary_and_text_forms_of_one_capture_agree() {
    for name in ["raw-ext4-sqlite", "raw-fio-device"] {
        let form = |ending: &str| read(&traces().join("raw").join(format!("{name}.{ending}")), &OpenOptions::default());
        let canonical = form("csv.zst");
        for ending in ["blktrace.bin.zst", "blkparse.txt.zst"] {
            let other = form(ending);
            assert_eq!(other.len(), canonical.len(), "{name}.{ending}");
            for (index, pair) in other.iter().zip(&canonical).enumerate() {
                // The canonical form was written without who asks.
                assert_eq!(Request { source: 0, ..*pair.0 }, *pair.1, "{name}.{ending}, request {index}");
            }
        }
    }
}

#[test]
fn every_action_reads_the_same_from_binary_and_text() {
    for name in ["raw-ext4-sqlite", "raw-fio-device"] {
        for action in [BlktraceAction::Queue, BlktraceAction::Complete] {
            let options = OpenOptions { blktrace_action: action, ..OpenOptions::default() };
            let form = |ending: &str| read(&traces().join("raw").join(format!("{name}.{ending}")), &options);
            assert!(form("blktrace.bin.zst") == form("blkparse.txt.zst"), "{name} by {action:?}");
        }
    }
}

/// fio logged what its two jobs asked for; the block layer recorded what reached the device. Reads, trims and flushes are
/// the same. Writes went through the page cache, which merges them: they cover the same sectors.
#[test]
fn fio_logs_agree_with_what_the_device_saw() {
    let raw = traces().join("raw");
    let of = |ending: &str| {
        ["a", "b"]
            .map(|job| read(&raw.join(format!("raw-fio-device.{job}.{ending}.zst")), &OpenOptions::default()))
            .concat()
    };
    let (version_2, version_3) = (of("iolog.v2"), of("iolog.v3"));
    let device = read(&raw.join("raw-fio-device.csv.zst"), &OpenOptions::default());
    for op in [Op::Read, Op::Write, Op::Trim, Op::Flush] {
        let logged = of_kind(&version_2, op);
        assert_eq!(logged, of_kind(&version_3, op), "{op:?}");
        if op == Op::Write {
            assert_eq!(covered(&logged), covered(&of_kind(&device, op)));
        } else {
            assert_eq!(logged, of_kind(&device, op), "{op:?}");
        }
    }
}

/// Public samples: what each is detected as, and its number of requests (of rows that are requests).
#[test]
fn public_samples_are_detected_and_read_whole() {
    let Some(folder) = folder_in("ISOTHERM_SAMPLES") else { return };
    let plain = OpenOptions::default();
    let unit = |unit| OpenOptions { time_unit: Some(unit), ..OpenOptions::default() };
    // Two samples have a row that no reader should take: a negative offset, and a time before the start that wrapped.
    for (file, expected) in [
        ("wiscsee-sqlitewal-inserts-ext4.txt.zst", "line 113, column 14: offset \"-8388608\" is negative"),
        ("blkparse-ext4-java.txt.zst", "line 29662, column 21: time of 1266874889 s lies before the start"),
    ] {
        let bad = folder.join(file);
        let error = profile(bad.to_str().expect("a path"), &plain).expect_err("an absurd value").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let one_bad_row = OpenOptions { skip_bad: 1, ..OpenOptions::default() };
    for (file, options, format, requests, reads) in [
        ("msr-prxy_0-head20000.csv.zst", &plain, "msr", 20_000, None),
        ("financial1-head10000.ssdsim.ascii.zst", &unit(TimeUnit::Ns), "mqsim", 10_000, None),
        ("mqsim-tpcc-small.trace.zst", &unit(TimeUnit::Ns), "mqsim", 6999, None),
        ("ms-dtrs-300s.mqsim-us.trace.zst", &unit(TimeUnit::Us), "mqsim", 127_043, None),
        ("pcmark.disksim.trace.zst", &plain, "disksim", 56_088, None),
        ("postmark-aligned2.disksim.trace.zst", &plain, "disksim", 62_257, None),
        ("tencent-cbs-head50000.csv.zst", &plain, "tencent", 50_000, None),
        ("fiu-cheetah-head9997.blkparse.zst", &plain, "fiu", 9998, Some(8896)),
        ("blkparse-ext4-java.txt.zst", &one_bad_row, "blkparse", 9886, Some(9038)),
        ("wiscsee-sqlitewal-inserts-ext4.txt.zst", &one_bad_row, "wiscsee", 19_999, Some(48)),
        ("wiscsee-sqlitewal-update-ext4.txt.zst", &plain, "wiscsee", 5008, Some(4)),
        ("systor17-sample999.csv.zst", &plain, "systor", 999, Some(826)),
        ("nexus5-Installing_log181.txt.zst", &plain, "biotracer", 17_952, Some(312)),
    ] {
        let path = folder.join(file);
        let found = profile(path.to_str().expect("a path"), options).unwrap_or_else(|error| panic!("{error}"));
        println!("{file}: {}, {:.1} s", found.sanity_line(), found.duration_ns as f64 / 1e9);
        assert_eq!(found.format, format, "{file}");
        assert_eq!(found.skipped_rows, options.skip_bad, "{file}");
        assert!(found.requests == requests, "{file}: {} requests", found.requests);
        assert!(reads.is_none_or(|reads| found.reads.requests == reads), "{file}: {} reads", found.reads.requests);
    }
}
