//! From what was counted to a result.

use super::prepare::summary;
use super::submit::Stopped;
use crate::heat::HeatRecorder;
use crate::recorder::{Recorder, Recording, ratio};
use crate::results::{RunResult, SectionResults, Workload, WriteHeat};
use crate::verdict::{Evidence, Setting, judge};
use crate::{lifetime, measure};
use isotherm::build::{Plan, ftl_design};
use isotherm::device::Observe;
use isotherm::ftl::{Design as _, Uses};
use isotherm::nand::timing::TimeMode;
use isotherm::stats::{Counter, Latencies, Snapshot};
use isotherm_sfs::SystemSpec;
use isotherm_sfs::snapshot::LogSnapshot;
use serde_json::Map;

/// What a replay leaves behind.
pub(super) struct Measured<'a> {
    /// Name of the trace.
    pub trace: &'a str,
    /// Seed of every random choice.
    pub seed: u64,
    /// How the trace came to the device, for the verdict.
    pub setting: Setting<'a>,
    /// The device that was built for it.
    pub plan: Plan,
    /// Its specification.
    pub device_spec: &'a SystemSpec,
    /// What its write amplification would tend to with known rates.
    pub known_rates: Option<f64>,
    /// The device below the log, where there is one: specification and plan.
    pub below: Option<(SystemSpec, Plan)>,
    /// The device at its end.
    pub device: &'a dyn Observe,
    /// How the trace was brought to it.
    pub workload: Workload,
    /// Counters over time.
    pub recording: Recording,
    /// Writes by address and time.
    pub heat: WriteHeat,
    /// Counters when the measured run started, and at its end.
    pub start: Snapshot,
    /// See `start`.
    pub end: Snapshot,
    /// Where the clock of arrivals stood when the measured run started; none for a trace, whose first request a replay moves there.
    pub clock_ns: Option<u64>,
    /// Erases of each block when the measured run started.
    pub erases_before: Vec<u32>,
    /// Counters at the start of the last window, and the latencies up to it.
    pub mark: Option<(Snapshot, Latencies)>,
    /// Requests carried out.
    pub requests: u64,
    /// Share of the requests that do not begin and end with whole sectors.
    pub ragged_share: f64,
    /// Lines of the trace that were skipped.
    pub skipped_lines: u64,
    /// Trace time.
    pub duration_ns: u64,
    /// Why the device stopped early.
    pub stopped: Stopped,
    /// Wall time.
    pub elapsed_ns: u64,
}

/// Turns what was counted into a result.
pub(super) fn result(measured: &Measured<'_>) -> RunResult {
    let Measured { device, device_spec, start, end, .. } = measured;
    let shape = summary(&measured.plan);
    let (window_start, earlier) = measured.mark.clone().unwrap_or_else(|| (start.clone(), Latencies::default()));
    let last_window = measure::window(&window_start, end, device.latencies());
    let latencies = measure::joined(earlier, device.latencies());
    let verdict = judge(&Evidence {
        window_start: &window_start,
        end,
        recording: &measured.recording,
        logical_pages: shape.logical_pages,
        physical_pages: shape.physical_pages,
        streams: shape.streams,
        skipped_lines: measured.skipped_lines,
        ragged_share: measured.ragged_share,
        stopped: measured.stopped.as_deref(),
        setting: &measured.setting,
    });
    let programmed = measure::programmed(start, end);
    let read = measure::pages_read(start, end);
    let time = end.time.since(&start.time);
    let host = end.host.since(&start.host);
    let (erase_count, erase_distribution) = measure::erases(&measured.erases_before, &device.block_erases());
    let media_bytes_written = programmed.total() * shape.page_bytes;
    let write_amplification_bytes = ratio(media_bytes_written as f64, host.bytes_written as f64);
    let endurance = device_spec.device.endurance;
    let elapsed_ns = end.busy_until_ns.map(|end_ns| {
        let before_ns = start.busy_until_ns.unwrap_or(0);
        let start_ns = match (device_spec.timing.mode, measured.clock_ns) {
            // In an open loop the first request of a trace arrives once everything before is surely done.
            (TimeMode::Open, None) => start.time.total_ns(),
            // A host's arrives at any time from now on, and waits for what was asked for before.
            (TimeMode::Open, Some(clock_ns)) => clock_ns.max(before_ns),
            // In a closed one, at once.
            _ => before_ns,
        };
        end_ns.saturating_sub(start_ns)
    });
    let (time_ns, host_pages) = (time.total_ns() as f64, (host.pages_written + host.pages_read) as f64);
    RunResult {
        label: label(device_spec),
        axes: Map::new(),
        trace: measured.trace.to_owned(),
        spec: (*device_spec).clone(),
        seed: measured.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: measured.workload.clone(),
        write_amplification_last: ratio(
            last_window.pages_programmed_total as f64,
            last_window.host_pages_written as f64,
        ),
        last_window,
        host_requests: measured.requests,
        host_pages_written: host.pages_written,
        host_pages_read: host.pages_read,
        host_pages_trimmed: host.pages_trimmed,
        host_pages_partly_written: host.pages_partly_written,
        host_bytes_written: host.bytes_written,
        host_bytes_read: host.bytes_read,
        host_bytes_trimmed: host.bytes_trimmed,
        media_bytes_written,
        media_bytes_read: read.total() * shape.page_bytes,
        media_bytes_erased: erase_count.total * shape.pages_per_block * shape.page_bytes,
        pages_programmed: measure::by_cause(&programmed),
        pages_programmed_total: programmed.total(),
        pages_read: measure::by_cause(&read),
        gc_pages_copied: measure::pages_copied(&programmed),
        write_amplification: ratio(programmed.total() as f64, host.pages_written as f64),
        write_amplification_known_rates: measured.known_rates,
        write_amplification_bytes,
        gc_count: end.collector.collections - start.collector.collections,
        gc_count_background: end.collector.background_collections - start.collector.background_collections,
        victim_invalid_share_mean: measure::victim_invalid_share(start, end),
        displaced_pages: end.collector.displaced_pages - start.collector.displaced_pages,
        retired_blocks: end.collector.retired_blocks,
        flash_time_ns: time.total_ns(),
        flash_time_parts_ns: measure::time_parts(&time),
        flash_time_by_work_ns: measure::time_by_work(&time, &read, &programmed),
        flash_time_per_host_page_ns: ratio(time_ns, host_pages),
        write_throughput_bytes_per_second: ratio(host.bytes_written as f64 * 1e9, time_ns),
        elapsed_ns,
        elapsed_write_throughput_bytes_per_second: elapsed_ns
            .and_then(|elapsed_ns| ratio(host.bytes_written as f64 * 1e9, elapsed_ns as f64)),
        latency_ns: measure::latency(&latencies),
        latency_note: latency_note(measured, device_spec.timing.mode, elapsed_ns),
        dram_bytes: end.dram.iter().map(|item| item.1).sum(),
        dram_parts_bytes: measure::memory_parts(&end.dram),
        lifetime: lifetime::lifetime(
            &shape,
            (endurance, &device_spec.timing.preset),
            // A log over nothing wears nothing.
            write_amplification_bytes.filter(|_| device_spec.log.is_none() || measured.below.is_some()),
            host.bytes_written,
            measured.duration_ns,
        ),
        percent_used: (endurance > 0).then(|| 100.0 * erase_count.mean / f64::from(endurance)),
        erase_count,
        stopped: measured.stopped.clone(),
        verdict,
        series: measured.recording.series(),
        victim_histogram: measure::victims(start, end),
        block_utilisation: measure::utilisation(&device.blocks(), measured.plan.geometry.pages_per_block()),
        erase_distribution,
        latency_distribution: measure::latency_distribution(&latencies),
        write_heat: measured.heat.clone(),
        device: shape,
        sections: SectionResults::between(&start.sections, &end.sections),
        write_amplification_end_to_end: end_to_end(start, end),
        below: below(measured),
        simulator_elapsed_ns: measured.elapsed_ns,
        simulator_host_writes_per_second: host.pages_written as f64 * 1e9 / measured.elapsed_ns.max(1) as f64,
    }
}

/// A drive whose work ends later than this share of the trace's time after the last arrival cannot keep up.
const BACKLOG_MAX: f64 = 0.05;

/// What is to be known beside latencies: what the time model leaves out, or that they show a growing queue.
fn latency_note(measured: &Measured<'_>, mode: TimeMode, elapsed_ns: Option<u64>) -> Option<String> {
    match mode {
        TimeMode::None | TimeMode::Closed => None,
        TimeMode::Serial => Some(
            "a latency is the time of a request's own operations, cleaning that it waits for included; requests do not wait for \
             one another, and planes do not work side by side (timing.mode open and closed count both)"
                .to_owned(),
        ),
        TimeMode::Open => {
            let backlog_ns = elapsed_ns?.saturating_sub(measured.duration_ns) as f64;
            (backlog_ns > BACKLOG_MAX * measured.duration_ns as f64).then(|| {
                format!(
                    "the drive cannot keep up with the trace: its work ends {:.3} s after the last of {:.3} s of arrivals, so that \
                     latencies grow with the length of the trace and say nothing of the drive; use timing.mode closed, or a \
                     faster drive",
                    backlog_ns / 1e9,
                    measured.duration_ns as f64 / 1e9
                )
            })
        }
    }
}

/// What tells the device from its neighbours: its policies, or the FTL where that brings its own.
fn label(spec: &SystemSpec) -> String {
    if let Some(log) = &spec.log {
        return format!("{} over {}", log.name, log.below);
    }
    let uses =
        ftl_design(&spec.ssd()).map_or(Uses { placement: true, victim: true, shared_dram: false }, |ftl| ftl.uses());
    let placer = if uses.placement { &spec.placement.name } else { &spec.ftl.name };
    if uses.victim { format!("{placer}, {}", spec.gc.victim) } else { placer.to_string() }
}

/// Product of the log's write amplification and that of the device below it.
fn end_to_end(start: &Snapshot, end: &Snapshot) -> Option<f64> {
    let (first, last): (&LogSnapshot, &LogSnapshot) = (start.sections.get()?, end.sections.get()?);
    let log = last.counters.since(&first.counters).write_amplification();
    let device = match (&first.below, &last.below) {
        (Some(start), Some(end)) => {
            let pages = end.host.pages_written - start.host.pages_written;
            measure::programmed(start, end).total() as f64 / pages as f64
        }
        _ => 1.0,
    };
    Some(log * device).filter(|wa| wa.is_finite())
}

/// The device below a log as a run of its own: its host is the log. Its series is empty, since time is recorded above.
fn below(measured: &Measured<'_>) -> Option<Box<RunResult>> {
    let (device_spec, plan) = measured.below.as_ref()?;
    let of = |snapshot: &Snapshot| snapshot.sections.get::<LogSnapshot>().and_then(|log| log.below.clone());
    let (start, end) = (of(&measured.start)?, of(&measured.end)?);
    let mark = measured.mark.as_ref().and_then(|(at, latencies)| Some((of(at)?, latencies.clone())));
    Some(Box::new(result(&Measured {
        trace: measured.trace,
        seed: measured.seed,
        setting: measured.setting.clone(),
        plan: *plan,
        device_spec,
        known_rates: None,
        below: None,
        device: measured.device,
        workload: measured.workload.clone(),
        recording: Recorder::new(&start, plan.geometry.page_bytes()).finish(&end),
        heat: HeatRecorder::new(plan.logical_pages, plan.geometry.page_bytes()).finish(),
        start,
        end,
        clock_ns: measured.clock_ns,
        erases_before: measured.erases_before.clone(),
        mark,
        requests: measured.requests,
        ragged_share: measured.ragged_share,
        skipped_lines: measured.skipped_lines,
        duration_ns: measured.duration_ns,
        stopped: measured.stopped.clone(),
        elapsed_ns: measured.elapsed_ns,
    })))
}
