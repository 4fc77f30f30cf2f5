//! Real captures: the figures that were taken when they were made must come out of the readers.

use isotherm_trace::{OpenOptions, profile};
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
    match std::env::var_os("ISOTHERM_TRACES") {
        Some(folder) => agree(&Path::new(&folder).join("captures")),
        None => println!("skipped: ISOTHERM_TRACES names no folder of traces"),
    }
}
