//! The numbers of a run by name: the keys of results, and short names of those that people ask for.

use isotherm_eval::columns::{Column, columns};
use isotherm_eval::results::ResultsFile;
use std::collections::BTreeMap;

/// Short names, each with its key. The first ones are shown where they changed, though nobody asked for them.
const SHORT: [(&str, &str); 30] = [
    ("wa", "write_amplification"),
    ("wa_last", "write_amplification_last"),
    ("wa_bytes", "write_amplification_bytes"),
    ("wa_end_to_end", "write_amplification_end_to_end"),
    ("copies", "gc_pages_copied"),
    ("collections", "gc_count"),
    ("victim_invalid", "victim_invalid_share_mean"),
    ("erases", "erase_count.total"),
    ("erases_max", "erase_count.max"),
    ("flash_time", "flash_time_ns"),
    ("elapsed", "elapsed_ns"),
    ("mean_write", "latency_ns.write.mean"),
    ("p50_write", "latency_ns.write.p50"),
    ("p90_write", "latency_ns.write.p90"),
    ("p99_write", "latency_ns.write.p99"),
    ("p999_write", "latency_ns.write.p999"),
    ("p9999_write", "latency_ns.write.p9999"),
    ("max_write", "latency_ns.write.max"),
    ("mean_read", "latency_ns.read.mean"),
    ("p50_read", "latency_ns.read.p50"),
    ("p90_read", "latency_ns.read.p90"),
    ("p99_read", "latency_ns.read.p99"),
    ("p999_read", "latency_ns.read.p999"),
    ("p9999_read", "latency_ns.read.p9999"),
    ("max_read", "latency_ns.read.max"),
    ("dram", "dram_bytes"),
    ("tbw", "lifetime.terabytes_written_bytes"),
    ("dwpd", "lifetime.drive_writes_per_day"),
    ("years", "lifetime.years"),
    ("programs", "pages_programmed_total"),
];

/// What says how a run was made, or how fast this machine was: no result.
const NOT_RESULTS: [&str; 6] = ["spec.", "below.spec.", "simulator_", "below.simulator_", "axes.", "workload."];

/// The key of a name: of a short one what it stands for, of others the name itself.
pub fn key_of(name: &str) -> String {
    SHORT.iter().find(|short| short.0 == name).map_or(name, |short| short.1).to_owned()
}

/// The short name of a key, or the key.
pub fn short(key: &str) -> &str {
    SHORT.iter().find(|short| short.1 == key).map_or(key, |short| short.0)
}

/// Whether a number is shown where it changed, though nobody asked for it.
pub fn is_main(key: &str) -> bool {
    SHORT.iter().any(|short| short.1 == key)
}

/// The short names, for help.
pub fn short_names() -> String {
    SHORT.map(|short| short.0).join(", ")
}

/// The numbers of a run by key.
pub type Numbers = BTreeMap<String, f64>;

/// The numbers of each run.
pub fn numbers(file: &ResultsFile) -> Vec<Numbers> {
    let mut all = vec![Numbers::new(); file.runs.len()];
    for (key, column) in columns(file) {
        if key == "seed" || NOT_RESULTS.iter().any(|prefix| key.starts_with(prefix)) {
            continue;
        }
        let values: Vec<Option<f64>> = match column {
            Column::Whole(values) => values.into_iter().map(|value| value.map(|value| value as f64)).collect(),
            Column::Real(values) => values,
            Column::Text(_) => continue,
        };
        for (numbers, value) in all.iter_mut().zip(values) {
            if let Some(value) = value {
                numbers.insert(key.clone(), value);
            }
        }
    }
    all
}
