//! What a run leaves behind: the structures of `results.json`, which scripts and the report read.
//!
//! The keys are a stable interface (`schema/results-v1.schema.json`): they are added to, never renamed. A key carries its
//! unit at its end. A number that has no value (a mean over nothing) is `null`, never NaN and never a made-up zero.
//! The same inputs give the same bytes, apart from the two keys that begin with `simulator_`.

mod distribution;
mod experiment;
mod hotness;
mod published;
mod replicates;
pub mod schema;
mod sections;

pub use distribution::{BlockHistogram, LatencyBucket, LatencyDistribution, Series, VictimHistogram, WriteHeat};
pub use experiment::{Experiment, Figure, FigureKind, Joined, Published, TraceNote};
pub use hotness::{
    HotnessCost, HotnessExperiment, HotnessMeasure, HotnessPoint, HotnessResult, HotnessSeries, HotnessSettings,
    HotnessSweep, PublishedChange, SchemeAgreement,
};
pub(crate) use published::Read;
pub use published::{Ours, PublishedNumber, PublishedRow, Reduction, rows as published_rows};
pub use replicates::{Estimate, Replicates, Skipped};
pub use sections::{SectionResults, sections};

use crate::steady;
use isotherm_sfs::SystemSpec;
use isotherm_sfs::snapshot::LogSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the schema. It moves when a key changes its meaning or goes away; new keys do not move it.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole `results.json`: runs, or measurements of hot data identification, with what they share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultsFile {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of isotherm that wrote the file.
    pub version: String,
    /// Command line that repeats the runs.
    pub command: String,
    /// The traces that the runs replayed, each once.
    pub traces: Vec<TraceSummary>,
    /// What a sweep asked, and how it is drawn; absent for `run` and `compare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// Measurements of hot data identification, in the order of their points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hotness: Vec<HotnessResult>,
    /// Runs that differ in their seed alone, taken together; empty where each ran once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicates: Vec<Replicates>,
    /// What was asked for and has no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// The runs, best first for `compare`, in the order of their points for `sweep`.
    pub runs: Vec<RunResult>,
}

/// What a trace holds, as one pass over it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// File name or synthetic description, as given. Runs name their trace by this.
    pub name: String,
    /// Format found.
    pub format: String,
    /// Requests of every kind.
    pub requests: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Trim requests.
    pub trims: u64,
    /// Flush requests.
    pub flushes: u64,
    /// Bytes of read requests.
    pub read_bytes: u64,
    /// Bytes of write requests.
    pub written_bytes: u64,
    /// Bytes of trim requests.
    pub trimmed_bytes: u64,
    /// One past the last byte touched: the default logical size.
    pub span_bytes: u64,
    /// Bytes of distinct pages read or written.
    pub footprint_bytes: u64,
    /// Bytes of distinct pages written.
    pub written_footprint_bytes: u64,
    /// Share of read and write requests that do not begin and end on a page boundary.
    pub unaligned_share: f64,
    /// Page size in which the footprint and alignment are counted.
    pub page_bytes: u64,
    /// Bytes written over the bytes of the distinct pages written.
    pub overwrite_factor: f64,
    /// Time from the first to the last arrival.
    pub duration_ns: u64,
    /// Lines or records that could not be read and were skipped by permission.
    pub skipped_lines: u64,
    /// Trims at the head that were taken as mkfs's and dropped. They count nowhere else.
    pub leading_trims_dropped: u64,
    /// Bytes of these.
    pub leading_trimmed_bytes_dropped: u64,
}

/// How the trace was brought to the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Address folding: `refuse`, `wrap` or `compact`.
    pub address: String,
    /// Share of the logical capacity that holds filler pages, never updated.
    pub fill_share: f64,
    /// Preconditioning: `none`, `sequential`, `random` or `trace`.
    pub precondition: String,
    /// Host pages written before the measured run: filler and preconditioning.
    pub precondition_pages_written: u64,
    /// Whether the device was steady when preconditioning ended; `null` where that was not asked.
    pub precondition_steady: Option<bool>,
    /// Times that the trace was replayed.
    pub repeat: u32,
    /// Trims at the trace's head that were taken as mkfs's and dropped from each replay. They count nowhere else.
    #[serde(default)]
    pub leading_trims_dropped: u64,
    /// Bytes of these.
    #[serde(default)]
    pub leading_trimmed_bytes_dropped: u64,
    /// Host page writes at the end of the run that are reported as the last window; `null` means the whole run.
    pub measure_last_pages: Option<u64>,
}

/// The device that was simulated, in numbers that the specification leaves to be derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Logical pages (U).
    pub logical_pages: u64,
    /// Physical pages that over-provisioning counts (T).
    pub physical_pages: u64,
    /// Blocks that the collector keeps free on top of T.
    pub reserve_blocks: u64,
    /// Blocks in all, the reserve included.
    pub blocks: u64,
    /// Pages in one block (a superblock where striped).
    pub pages_per_block: u64,
    /// Bytes in one page.
    pub page_bytes: u64,
    /// Streams that the placement writes to, each with an open block.
    pub streams: u64,
    /// (T-U)/U.
    pub over_provisioning: f64,
    /// (T-U)/T.
    pub spare: f64,
    /// Memory that the simulator needs for it.
    pub simulator_memory_bytes: u64,
}

/// One run: one trace on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What tells this run from its neighbours, for tables and legends: `epoch, greedy, OP 7 %`.
    pub label: String,
    /// Value of each axis that was varied, by the axis's name; empty for a single run.
    #[serde(default)]
    pub axes: Map<String, Value>,
    /// Name of the trace.
    pub trace: String,
    /// The device's specification, every key in force.
    pub spec: SystemSpec,
    /// Seed of every random choice.
    pub seed: u64,
    /// Version of isotherm.
    pub version: String,
    /// How the trace was replayed.
    pub workload: Workload,
    /// The device in numbers.
    pub device: DeviceSummary,

    /// The last window alone (the whole run unless `--measure-last` is given).
    pub last_window: WindowResult,

    /// Requests carried out, of every kind.
    pub host_requests: u64,
    /// Pages touched by host writes.
    pub host_pages_written: u64,
    /// Pages touched by host reads.
    pub host_pages_read: u64,
    /// Whole pages that the host trimmed.
    pub host_pages_trimmed: u64,
    /// Page writes that covered only a part of their page.
    pub host_pages_partly_written: u64,
    /// Bytes that the host wrote (NVMe: Data Units Written).
    pub host_bytes_written: u64,
    /// Bytes that the host read (NVMe: Data Units Read).
    pub host_bytes_read: u64,
    /// Bytes of the host's trims.
    pub host_bytes_trimmed: u64,
    /// Bytes programmed on flash.
    pub media_bytes_written: u64,
    /// Bytes read from flash, for any cause.
    pub media_bytes_read: u64,
    /// Bytes of erased blocks.
    pub media_bytes_erased: u64,

    /// Pages programmed by cause; copies inside the array included. They sum to `pages_programmed_total`.
    pub pages_programmed: Map<String, Value>,
    /// Pages programmed in all.
    pub pages_programmed_total: u64,
    /// Pages read by cause; copies inside the array included.
    pub pages_read: Map<String, Value>,
    /// Pages moved by garbage collection.
    pub gc_pages_copied: u64,
    /// Pages programmed for each page that the host wrote, over the whole measured run.
    pub write_amplification: Option<f64>,
    /// The same over the last window (the whole run unless `--measure-last` is given).
    pub write_amplification_last: Option<f64>,
    /// What write amplification tends to where the rates of all pages are known, each rate has blocks of its own, and the spare space is
    /// divided as is best, by a closed form; for page-mapped drives and synthetic workloads whose writes are independent draws from fixed
    /// rates. No bound: who knows when each page dies may write less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification_known_rates: Option<f64>,
    /// Bytes programmed for each byte that the host wrote: larger where the host writes less than a page at a time.
    pub write_amplification_bytes: Option<f64>,

    /// Victims collected.
    pub gc_count: u64,
    /// Of these, in idle time.
    pub gc_count_background: u64,
    /// Mean share of invalid pages in victims.
    pub victim_invalid_share_mean: Option<f64>,
    /// Pages that went to another stream than the placement asked for, as no free block was left.
    pub displaced_pages: u64,
    /// Erases over the blocks during the measured run.
    pub erase_count: EraseCount,
    /// Blocks that failed.
    pub retired_blocks: u64,

    /// Time of the flash array, as counts times latencies.
    pub flash_time_ns: u64,
    /// The same by kind: `read`, `program`, `erase`, `transfer`.
    pub flash_time_parts_ns: Map<String, Value>,
    /// The same by what it was spent for: `host`, `gc` (merges included), `map` (hotness samples included) and `other`, each
    /// `_read` and `_program`, and `erase` and `transfer`.
    #[serde(default)]
    pub flash_time_by_work_ns: Map<String, Value>,
    /// Flash time for each page that the host wrote or read.
    pub flash_time_per_host_page_ns: Option<f64>,
    /// Host bytes written for each second of flash time.
    pub write_throughput_bytes_per_second: Option<f64>,
    /// Time from the start of the measured run until the last flash operation ended, where operations queue.
    #[serde(default)]
    pub elapsed_ns: Option<u64>,
    /// Host bytes written for each second of that time.
    #[serde(default)]
    pub elapsed_write_throughput_bytes_per_second: Option<f64>,
    /// Latency of requests by operation.
    pub latency_ns: LatencyByOperation,
    /// What latencies leave out under the time model, or why they mean little, in words; `null` where there is nothing to say.
    pub latency_note: Option<String>,

    /// DRAM that the simulated controller needs.
    pub dram_bytes: u64,
    /// The same by table.
    pub dram_parts_bytes: Map<String, Value>,
    /// Lifetime in vendors' terms.
    pub lifetime: Lifetime,
    /// NVMe's Percentage Used that this run cost: mean erases of a block over its endurance, in per cent; `null` where no
    /// endurance is given.
    pub percent_used: Option<f64>,

    /// Why the device stopped before the trace ended (out of space, worn out); `null` where it did not.
    pub stopped: Option<String>,
    /// Whether the run means something, and if not, why.
    pub verdict: Verdict,

    /// Counters over time.
    pub series: Series,
    /// Victims by their share of invalid pages.
    pub victim_histogram: VictimHistogram,
    /// Closed blocks by their valid pages, at the end.
    pub block_utilisation: BlockHistogram,
    /// Blocks by their erases during the measured run.
    pub erase_distribution: BlockHistogram,
    /// Requests by latency.
    pub latency_distribution: LatencyDistribution,
    /// Host writes by address and time.
    pub write_heat: WriteHeat,

    /// What parts that only some devices have counted, each under its own key.
    #[serde(flatten)]
    pub sections: SectionResults,
    /// The device below the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Box<RunResult>>,
    /// Product of the log's and the device's write amplification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_amplification_end_to_end: Option<f64>,

    /// Wall time of the measured run. Differs from run to run.
    pub simulator_elapsed_ns: u64,
    /// Host page writes simulated in one second. Differs from run to run.
    pub simulator_host_writes_per_second: f64,
}

/// The last window of a run, beside the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    /// Pages touched by host writes.
    pub host_pages_written: u64,
    /// Pages touched by host reads.
    pub host_pages_read: u64,
    /// Pages programmed by cause.
    pub pages_programmed: Map<String, Value>,
    /// Pages programmed in all.
    pub pages_programmed_total: u64,
    /// Victims collected.
    pub gc_count: u64,
    /// Mean share of invalid pages in victims.
    pub victim_invalid_share_mean: Option<f64>,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Time of the flash array.
    pub flash_time_ns: u64,
    /// Latency of requests by operation.
    pub latency_ns: LatencyByOperation,
}

/// Erases over all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EraseCount {
    /// Sum over the blocks.
    pub total: u64,
    /// Least erased block.
    pub min: u64,
    /// Mean over the blocks.
    pub mean: f64,
    /// Most erased block.
    pub max: u64,
    /// Erases by which the most worn block is ahead of the least worn one at the end, of all since the device was new.
    #[serde(default)]
    pub spread: u64,
}

/// Latency of requests by operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyByOperation {
    /// Reads.
    pub read: LatencySummary,
    /// Reads that found nothing and took no flash time: they count in no latency.
    pub read_unmapped_count: u64,
    /// Writes.
    pub write: LatencySummary,
    /// Trims.
    pub trim: LatencySummary,
    /// Flushes.
    pub flush: LatencySummary,
}

impl RunResult {
    /// Pages programmed by cause. To a device below a log, the log is the host: that part is what the host wrote, what the log
    /// moved (`log cleaning`), and the log's own summaries, checkpoints and padding (`log metadata`).
    pub fn pages_by_cause(&self) -> Vec<(String, u64)> {
        let log = self.sections.get::<LogSnapshot>();
        let mut parts = Vec::new();
        for (cause, pages) in &self.pages_programmed {
            let pages = pages.as_u64().unwrap_or(0);
            match log.as_ref().filter(|_| cause == "host" && self.below.is_some()) {
                Some(log) => {
                    let host = log.host_blocks_logged.min(pages);
                    let cleaned = log.blocks_cleaned.min(pages - host);
                    parts.push((cause.clone(), host));
                    parts.push(("log cleaning".to_owned(), cleaned));
                    parts.push(("log metadata".to_owned(), pages - host - cleaned));
                }
                None => parts.push((cause.replace('_', " "), pages)),
            }
        }
        parts.retain(|(cause, pages)| *pages > 0 || cause == "host");
        parts
    }
}

impl RunResult {
    /// What is to be told wherever latencies are: what they leave out or why they mean little, and how many reads are in none.
    pub fn latency_notes(&self) -> Vec<String> {
        let latency = &self.latency_ns;
        let is_timed = latency.read.count + latency.write.count > 0;
        let unmapped = latency.read_unmapped_count;
        let unmapped = match unmapped {
            0 => None,
            1 => Some("1 read found nothing and is in no latency".to_owned()),
            reads => Some(format!("{reads} reads found nothing and are in no latency")),
        };
        self.latency_note.clone().filter(|_| is_timed).into_iter().chain(unmapped).collect()
    }
}

/// Latency in nanoseconds; all `null` where no request was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Requests timed.
    pub count: u64,
    /// Mean, to three digits: each request counts as the middle of its place in the histogram that percentiles are taken from.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// 99.99th percentile.
    pub p9999: Option<u64>,
    /// Slowest request.
    pub max: Option<u64>,
}

/// Lifetime of the device under this workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Erases that a block endures.
    pub endurance_erases: u64,
    /// Whether the endurance was assumed because the specification gives none.
    pub endurance_assumed: bool,
    /// Host bytes until the endurance is spent (TBW, in bytes).
    pub terabytes_written_bytes: Option<f64>,
    /// Drive writes per day over the warranty time (DWPD).
    pub drive_writes_per_day: Option<f64>,
    /// Warranty time in which DWPD counts.
    pub warranty_years: f64,
    /// Years at the rate of this trace; `null` where the trace has no times.
    pub years: Option<f64>,
    /// The formulas, to be printed beside the numbers.
    pub formulas: Vec<String>,
}

/// Whether a run means something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Every point is met.
    pub valid: bool,
    /// Each point that is not met, in words; empty where valid.
    pub reasons: Vec<String>,
    /// Host writes since the device was new, preconditioning included, over the logical size.
    pub drive_writes: f64,
    /// The same within the last window.
    pub drive_writes_window: f64,
    /// Whether garbage collection ran in the last window.
    pub gc_ran: bool,
    /// Whether write amplification was steady by SNIA's rule over the last window, phases of the workload and the filling of an
    /// empty device included. A valid run is steady by its whole replays, which this says nothing of.
    pub steady: bool,
    /// Write amplification in each quarter of the last window.
    pub write_amplification_quarters: Vec<Option<f64>>,
    /// Write amplification of each whole replay of the trace within the last window.
    pub write_amplification_replays: Vec<Option<f64>>,
    /// Most logical pages that held data at a time in the last window, over all of them: 0 to 1.
    pub live_share_peak: f64,
    /// Mean of the same over the host's writes.
    pub live_share_mean: f64,
    /// Why a valid result says little about a full device, in words; `null` where it was full enough.
    pub light: Option<String>,
    /// Why a valid result says little about later replays, in words: it is the first of an empty device, or counts in what was written before the device was steady; `null` elsewhere.
    pub first_replay: Option<String>,
    /// Lowest and highest write amplification among the 32 equal parts of the last window, without those of the first of several
    /// replays of an empty device; `null` where it has fewer.
    pub write_amplification_range: Option<[f64; 2]>,
}

impl Verdict {
    /// Lowest and highest write amplification where they lie further apart than a steady device's rounds may: a workload
    /// that comes in phases can be steady as a whole all the same.
    pub fn swing(&self) -> Option<[f64; 2]> {
        self.write_amplification_range.filter(|[least, most]| !steady::is_within_excursion(*least, *most))
    }
}
