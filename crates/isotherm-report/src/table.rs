//! The table of runs: which numbers of `results.json` stand in it, and how numbers are written for people.
//!
//! Columns name their number by its path in a run's JSON, so that what the page shows is what scripts read, by construction.

use crate::error::ReportError;
use crate::page::{Cell, Column, Table};
use isotherm_eval::results::{Estimate, Replicates, RunResult};
use serde_json::Value;

/// A column of the table of runs.
struct RunColumn {
    group: &'static str,
    title: &'static str,
    /// Path into the run's JSON, with dots.
    key: &'static str,
    /// Unit shown, and what one of it is in the unit of the JSON.
    unit: (&'static str, f64),
}

const fn column(group: &'static str, title: &'static str, key: &'static str, unit: (&'static str, f64)) -> RunColumn {
    RunColumn { group, title, key, unit }
}

const PLAIN: (&str, f64) = ("", 1.0);
const PERCENT: (&str, f64) = ("%", 0.01);
const MICROSECONDS: (&str, f64) = ("\u{b5}s", 1e3);
const MEGABYTES_PER_SECOND: (&str, f64) = ("MB/s", 1e6);
const TERABYTES: (&str, f64) = ("TB", 1e12);
const MEBIBYTES: (&str, f64) = ("MiB", 1_048_576.0);
const MILLIONS_PER_SECOND: (&str, f64) = ("M/s", 1e6);

/// What stands right of write amplification and its parts. A column without a single number is left out.
const COLUMNS: &[RunColumn] = &[
    column("Garbage collection", "victims", "gc_count", PLAIN),
    column("Garbage collection", "invalid in victims", "victim_invalid_share_mean", PERCENT),
    column("Garbage collection", "pages copied", "gc_pages_copied", PLAIN),
    column("Erases of a block", "total", "erase_count.total", PLAIN),
    column("Erases of a block", "min", "erase_count.min", PLAIN),
    column("Erases of a block", "mean", "erase_count.mean", PLAIN),
    column("Erases of a block", "max", "erase_count.max", PLAIN),
    column("Erases of a block", "spread since new", "erase_count.spread", PLAIN),
    column("Flash time", "per host page", "flash_time_per_host_page_ns", MICROSECONDS),
    column("Flash time", "written per second of flash time", "write_throughput_bytes_per_second", MEGABYTES_PER_SECOND),
    column("Elapsed time", "write throughput", "elapsed_write_throughput_bytes_per_second", MEGABYTES_PER_SECOND),
    column("Write latency", "P50", "latency_ns.write.p50", MICROSECONDS),
    column("Write latency", "P99", "latency_ns.write.p99", MICROSECONDS),
    column("Write latency", "P99.9", "latency_ns.write.p999", MICROSECONDS),
    column("Write latency", "max", "latency_ns.write.max", MICROSECONDS),
    column("Read latency", "P50", "latency_ns.read.p50", MICROSECONDS),
    column("Read latency", "P99", "latency_ns.read.p99", MICROSECONDS),
    column("Read latency", "P99.9", "latency_ns.read.p999", MICROSECONDS),
    column("Read latency", "max", "latency_ns.read.max", MICROSECONDS),
    column("Lifetime", "TBW", "lifetime.terabytes_written_bytes", TERABYTES),
    column("Lifetime", "years", "lifetime.years", PLAIN),
    column("Lifetime", "drive writes per day", "lifetime.drive_writes_per_day", PLAIN),
    column("Lifetime", "used by this run", "percent_used", ("%", 1.0)),
    column("Live pages", "peak", "verdict.live_share_peak", PERCENT),
    column("Live pages", "mean", "verdict.live_share_mean", PERCENT),
    column("Controller", "DRAM", "dram_bytes", MEBIBYTES),
    column("Simulator", "host writes", "simulator_host_writes_per_second", MILLIONS_PER_SECOND),
];

/// The table of all runs, in their order.
pub(crate) fn of_runs(runs: &[RunResult], caption: String) -> Result<Table, ReportError> {
    let json: Vec<Value> = runs.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let causes = causes(runs);
    let mut table = Table { caption, ..Table::default() };
    let text = |title: &str| Column { title: title.to_owned(), ..Column::default() };
    table.columns.push(text("Device"));
    let has_seeds = has_seeds(runs);
    table.columns.extend(has_seeds.then(|| text("Seed")));
    table.columns.push(text("Valid"));
    let whole = column("Write amplification", "whole run", "write_amplification", PLAIN);
    let last = column("Write amplification", "last window", "write_amplification_last", PLAIN);
    let bytes = column("Write amplification", "in bytes", "write_amplification_bytes", PLAIN);
    let shown: Vec<&RunColumn> = [&whole, &last, &bytes]
        .into_iter()
        .chain(COLUMNS)
        .filter(|c| json.iter().any(|run| number_at(run, c.key).is_some()))
        .collect();
    for c in &shown {
        table.columns.push(Column { group: c.group.into(), title: c.title.into(), unit: c.unit.0.into() });
    }
    for cause in &causes {
        table.columns.push(Column {
            group: "Pages programmed".into(),
            title: cause.replace('_', " "),
            unit: String::new(),
        });
    }
    for (run, json) in runs.iter().zip(&json) {
        let mut row = vec![Cell::text(&run.label)];
        row.extend(has_seeds.then(|| number_cell(json, "seed", 1.0)));
        row.push(Cell::text(run.verdict.words().join(", ")));
        row.extend(shown.iter().map(|c| number_cell(json, c.key, c.unit.1)));
        row.extend(causes.iter().map(|cause| number_cell(json, &format!("pages_programmed.{cause}"), 1.0)));
        table.rows.push(row);
    }
    Ok(table)
}

/// Whether runs of the same device differ in their seed.
pub(crate) fn has_seeds(runs: &[RunResult]) -> bool {
    let mut labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    labels.sort_unstable();
    labels.windows(2).any(|pair| pair[0] == pair[1])
}

/// Means over the seeds of each device, with half their confidence intervals; none where every device ran once.
pub(crate) fn of_replicates(replicates: &[Replicates]) -> Option<Table> {
    let all = [
        column("", "write amplification", "write_amplification", PLAIN),
        column("", "write amplification in bytes", "write_amplification_bytes", PLAIN),
    ];
    let shown: Vec<&RunColumn> = all
        .iter()
        .chain(COLUMNS)
        .filter(|c| replicates.iter().any(|device| device.values.contains_key(c.key)))
        .collect();
    let text = |title: &str| Column { title: title.to_owned(), ..Column::default() };
    let mut table = Table {
        title: "Means over seeds".to_owned(),
        caption: "Of each device, with 95 % confidence intervals by Student's t. Press a heading to sort by it."
            .to_owned(),
        columns: vec![text("Device"), text("Seeds")],
        rows: Vec::new(),
    };
    for c in &shown {
        table.columns.push(Column { group: c.group.into(), title: c.title.into(), unit: c.unit.0.into() });
    }
    for device in replicates {
        let cell = |c: &&RunColumn| {
            let Some(found) = device.values.get(c.key) else { return Cell::text("\u{2013}") };
            Cell { text: estimate(found, c.unit.1), value: Some(found.mean), key: c.key.to_owned() }
        };
        let mut row = vec![Cell::text(&device.label), Cell::text(device.seeds.len().to_string())];
        row.extend(shown.iter().map(cell));
        table.rows.push(row);
    }
    (!replicates.is_empty()).then_some(table)
}

/// Causes for which any run programmed a page, in the order of results.
fn causes(runs: &[RunResult]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        for (cause, pages) in &run.pages_programmed {
            if pages.as_u64().unwrap_or(0) > 0 && !names.contains(cause) {
                names.push(cause.clone());
            }
        }
    }
    names
}

/// What stands at a dotted path.
fn at<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(json, |at, key| at.get(key))
}

/// The number at a dotted path; absent where it is null or no number.
pub(crate) fn number_at(json: &Value, path: &str) -> Option<f64> {
    at(json, path)?.as_f64()
}

/// The counts at a dotted path; absent where there is no list of them.
pub(crate) fn counts_at(json: &Value, path: &str) -> Option<Vec<u64>> {
    at(json, path)?.as_array()?.iter().map(Value::as_u64).collect()
}

fn number_cell(json: &Value, key: &str, unit: f64) -> Cell {
    let value = number_at(json, key);
    let text = value.map_or_else(|| "\u{2013}".to_owned(), |v| number(v / unit));
    Cell { text, value, key: key.to_owned() }
}

/// Decimals of four significant digits; none for nought and for what is written with an exponent.
fn decimals(value: f64) -> Option<usize> {
    let magnitude = value.abs().log10().floor() as i32;
    (value != 0.0 && magnitude >= -4).then(|| (3 - magnitude).max(0) as usize)
}

/// A number for people: four significant digits, whole numbers whole, thousands apart.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "\u{2013}".to_owned();
    }
    match decimals(value) {
        _ if value.fract() == 0.0 => with_decimals(value, 0),
        Some(decimals) => with_decimals(value, decimals),
        None => format!("{value:.2e}"),
    }
}

/// A number with so many decimals, thousands apart.
fn with_decimals(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |d| ("-", d));
    let mut text = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        // A narrow space parts thousands: neither a decimal sign nor a place to break the line in any language.
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// A mean in units of `unit`, with half its confidence interval where it has one.
pub(crate) fn estimate(found: &Estimate, unit: f64) -> String {
    with_half(found.mean / unit, found.confidence_95.map(|half| half / unit))
}

/// A mean, with half its confidence interval where there is one, to as many decimals as the mean. Nought alone is a half without
/// decimals: seeds that gave the same number are told from those that nearly did.
pub(crate) fn with_half(mean: f64, half: Option<f64>) -> String {
    let Some(half) = half else { return number(mean) };
    let [mean, half] = match decimals(mean).filter(|_| half > 0.0) {
        Some(decimals) => {
            let decimals = if half < 0.5 { decimals.max(1) } else { decimals };
            [mean, half].map(|value| with_decimals(value, decimals))
        }
        None => [mean, half].map(number),
    };
    format!("{mean} \u{b1} {half}")
}

/// A number of bytes in the binary unit that suits it.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    UNITS
        .iter()
        .find(|u| value >= u.1)
        .map_or_else(|| format!("{value} B"), |(unit, size)| format!("{} {unit}", number(value as f64 / *size as f64)))
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_whole_numbers() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (1.23456, "1.235"),
            (12.3456, "12.35"),
            (1234.56, "1235"),
            (123_456.7, "123\u{202f}457"),
            (12_345_678.0, "12\u{202f}345\u{202f}678"),
            (0.012_345_6, "0.01235"),
            (-2.5, "-2.500"),
            (9.9996, "10.000"),
            (1e-7, "1.00e-7"),
            (f64::NAN, "\u{2013}"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(with_half(2.07, Some(0.004_345)), "2.070 \u{b1} 0.004");
        assert_eq!(with_half(12_345.6, Some(0.4)), "12\u{202f}345.6 \u{b1} 0.4");
        assert_eq!(with_half(300.0, Some(0.25)), "300.0 \u{b1} 0.2");
        assert_eq!(
            (with_half(2.0, Some(0.0)), with_half(0.0, Some(0.5))),
            ("2 \u{b1} 0".into(), "0 \u{b1} 0.5000".into())
        );
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(1_610_612_736), "1.500 GiB");
        assert_eq!(percent(0.075), "7.500 %");
    }
}
