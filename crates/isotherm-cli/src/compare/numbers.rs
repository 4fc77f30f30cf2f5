//! The numbers of a comparison: what stands in its tables and exports, under which header, and what that means.

use crate::output;
use crate::table::Column;
use isotherm_eval::results::RunResult;

/// A number of a run.
#[derive(Clone, Copy)]
pub struct Number {
    /// Its column.
    pub column: Column,
    /// Its name in CSV, with the unit at the end.
    pub key: &'static str,
    /// Takes it out of a run.
    pub read: fn(&RunResult) -> Option<f64>,
    /// Writes it for people.
    pub show: fn(f64) -> String,
}

const fn number(
    (header, note, rank): (&'static str, &'static str, u8),
    key: &'static str,
    read: fn(&RunResult) -> Option<f64>,
    show: fn(f64) -> String,
) -> Number {
    Number { column: Column { header, note, rank }, key, read, show }
}

/// Pages that were programmed for the host, and those that were copied, by the device or by the log above it.
fn host_and_copies(run: &RunResult) -> (u64, u64) {
    let parts = run.pages_by_cause();
    let pages = |cause: &str| parts.iter().find(|part| part.0 == cause).map_or(0, |part| part.1);
    (pages("host"), pages("log cleaning") + run.gc_pages_copied)
}

fn others(run: &RunResult) -> Option<f64> {
    let (host, copies) = host_and_copies(run);
    Some((run.pages_programmed_total - host - copies) as f64).filter(|pages| *pages > 0.0)
}

/// Whether requests are smaller than pages: then bytes and pages tell different stories.
pub fn has_small_requests(run: &RunResult) -> bool {
    run.host_pages_partly_written > 0
}

/// A latency in nanoseconds; none below a log, where requests are the log's own and not to be compared with those of the host.
fn latency(run: &RunResult, ns: Option<u64>) -> Option<f64> {
    ns.filter(|_| run.below.is_none()).map(|ns| ns as f64)
}

fn three(value: f64) -> String {
    output::real(Some(value), 3)
}

fn whole(value: f64) -> String {
    output::whole(value.round() as u64)
}

fn per_cent(value: f64) -> String {
    output::per_cent(Some(value), 1)
}

fn time(ns: f64) -> String {
    output::time(Some(ns))
}

/// What is written, and what it wears. Which of the first two comes first depends on the requests.
pub const WRITES: [Number; 17] = [
    number(
        ("WA", "write amplification: pages programmed for each page that the host wrote", 0),
        "write_amplification",
        |run| run.write_amplification,
        three,
    ),
    number(
        ("WA in bytes", "bytes programmed on flash for each byte that the host wrote", 0),
        "write_amplification_bytes",
        |run| run.write_amplification_bytes.filter(|_| has_small_requests(run)),
        three,
    ),
    number(
        ("WA at end", "the same in the last window (--measure-last)", 1),
        "write_amplification_last",
        |run| run.write_amplification_last.filter(|_| run.workload.measure_last_pages.is_some()),
        three,
    ),
    number(
        ("copies", "pages that cleaning moved", 2),
        "pages_copied",
        |run| Some(host_and_copies(run).1 as f64),
        whole,
    ),
    number(
        ("map, merges", "pages programmed for neither the host nor cleaning: the map, merges, logs of trims", 5),
        "other_pages_programmed",
        others,
        whole,
    ),
    number(
        ("host pages", "pages programmed for the host's writes", 6),
        "host_pages_programmed",
        |run| Some(host_and_copies(run).0 as f64),
        whole,
    ),
    number(("victims", "blocks that cleaning took", 3), "gc_count", |run| Some(run.gc_count as f64), whole),
    number(
        ("dead", "mean share of a victim's pages that held nothing valid: the more, the cheaper", 4),
        "victim_invalid_share_mean",
        |run| run.victim_invalid_share_mean,
        per_cent,
    ),
    number(("erases", "", 6), "erase_count_total", |run| Some(run.erase_count.total as f64), whole),
    number(
        ("per block", "mean erases of a block", 7),
        "erase_count_mean",
        |run| Some(run.erase_count.mean),
        |erases| output::real(Some(erases), 1),
    ),
    number(
        ("least", "erases of the block with the fewest", 8),
        "erase_count_min",
        |run| Some(run.erase_count.min as f64),
        whole,
    ),
    number(
        ("most", "erases of the block with the most", 8),
        "erase_count_max",
        |run| Some(run.erase_count.max as f64),
        whole,
    ),
    number(
        ("DWPD", "drive writes a day that the flash endures: TBW / (logical bytes x 5 years x 365.25 days)", 3),
        "drive_writes_per_day",
        |run| run.lifetime.drive_writes_per_day,
        |writes| output::significant(Some(writes)),
    ),
    number(
        ("TBW", "terabytes that the host can write: physical bytes x endurance / write amplification in bytes", 9),
        "terabytes_written_bytes",
        |run| run.lifetime.terabytes_written_bytes,
        |bytes| output::significant(Some(bytes / 1e12)),
    ),
    number(
        ("years", "life at the trace's rate: TBW / (host bytes written / duration of the trace)", 9),
        "lifetime_years",
        |run| run.lifetime.years,
        |years| output::significant(Some(years)),
    ),
    number(
        ("live peak", "most logical pages that held data at a time", 9),
        "live_share_peak",
        |run| Some(run.verdict.live_share_peak),
        per_cent,
    ),
    number(
        ("live mean", "the same on the mean over the host's writes", 9),
        "live_share_mean",
        |run| Some(run.verdict.live_share_mean),
        per_cent,
    ),
];

/// What it costs in time.
pub const TIMES: [Number; 12] = [
    number(
        ("flash/page", "flash time for each page that the host wrote or read", 0),
        "flash_time_per_host_page_ns",
        |run| run.flash_time_per_host_page_ns,
        time,
    ),
    number(
        ("B per flash s", "bytes that the host wrote for each second of flash time", 1),
        "write_throughput_bytes_per_second",
        |run| run.write_throughput_bytes_per_second,
        output::bytes,
    ),
    number(
        ("B per s", "bytes that the host wrote for each second that passed on the device", 1),
        "elapsed_write_throughput_bytes_per_second",
        |run| run.elapsed_write_throughput_bytes_per_second,
        output::bytes,
    ),
    number(("read P50", "", 4), "read_latency_p50_ns", |run| latency(run, run.latency_ns.read.p50), time),
    number(("read P99", "", 3), "read_latency_p99_ns", |run| latency(run, run.latency_ns.read.p99), time),
    number(("read P99.9", "", 5), "read_latency_p999_ns", |run| latency(run, run.latency_ns.read.p999), time),
    number(("read max", "", 6), "read_latency_max_ns", |run| latency(run, run.latency_ns.read.max), time),
    number(("write P50", "", 4), "write_latency_p50_ns", |run| latency(run, run.latency_ns.write.p50), time),
    number(("write P99", "", 2), "write_latency_p99_ns", |run| latency(run, run.latency_ns.write.p99), time),
    number(("write P99.9", "", 5), "write_latency_p999_ns", |run| latency(run, run.latency_ns.write.p999), time),
    number(("write max", "", 6), "write_latency_max_ns", |run| latency(run, run.latency_ns.write.max), time),
    number(
        ("simulated/s", "host writes that the simulator carried out in a second", 7),
        "simulator_host_writes_per_second",
        |run| Some(run.simulator_host_writes_per_second),
        output::count,
    ),
];
