//! One run: a trace, brought to a device, replayed, judged.
//!
//! The life of a run: survey the trace where its span or length is needed, derive the logical size, plan the device and check
//! the memory it needs, build it, write filler and preconditioning, replay the trace batch by batch on the calling thread,
//! check the conservation laws, and turn snapshots into a [`RunResult`]. Everything counted before the trace starts is
//! subtracted. A run is a pure function of its [`RunSpec`], simulator timing aside.

use crate::fold::{AddressMode, Folding};
use crate::precondition::Precondition;
use crate::recorder::{Recorder, Recording, ratio};
use crate::results::{DeviceSummary, RunResult, Workload};
use crate::source::{BATCH, Survey, TraceSource, pages_of};
use crate::verdict::{Evidence, judge};
use crate::{future, laws, lifetime, measure, memory, precondition};
use isotherm::build::{self, Environment, Plan};
use isotherm::cause::Cause;
use isotherm::device::{Device, DeviceError};
use isotherm::placement::needs_future;
use isotherm::quantity::ByteSize;
use isotherm::registry::{PolicyName, SpecError};
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::stats::{Latencies, Snapshot};
use isotherm_trace::TraceError;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A request asks for what the device does not have.
    #[error("{trace}: request {request}: {source}")]
    Device {
        /// The trace.
        trace: String,
        /// Number of the request in the trace, from 1 (of its batch's first request where the device cannot tell).
        request: u64,
        /// What the device says.
        source: DeviceError,
    },
    /// Too little memory.
    #[error("{what} needs {needed} of memory, but {available} is available; {fix}")]
    Memory {
        /// What would be allocated.
        what: String,
        /// How much.
        needed: ByteSize,
        /// How much there is.
        available: ByteSize,
        /// What to change.
        fix: &'static str,
    },
    /// A conservation law is broken: a bug of the simulator.
    #[error(
        "internal error: a conservation law is broken ({0}); this is a bug of isotherm, please report it with the command"
    )]
    Law(String),
    /// A file cannot be written or read.
    #[error("{path}: cannot {action}: {source}; {fix}")]
    File {
        /// The file.
        path: String,
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// The user stopped the run.
    #[error("interrupted; files written so far are whole")]
    Interrupted,
}

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The trace.
    pub trace: TraceSource,
    /// The device.
    pub device: DeviceSpec,
    /// How the trace is brought to it.
    pub replay: Replay,
    /// Seed of every random choice.
    pub seed: u64,
}

/// How a trace is brought to a device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// What is done with addresses past the device's end.
    pub address: AddressMode,
    /// Share of the logical capacity that holds filler pages, never updated: 0 to below 1.
    pub fill: isotherm::quantity::Share,
    /// What is written before the measured run.
    pub precondition: Precondition,
    /// Times that the trace is replayed, at least 1.
    pub repeat: u32,
    /// Host page writes of the last window; the whole run unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_last: Option<u64>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            address: AddressMode::Refuse,
            fill: isotherm::quantity::Share(0.0),
            precondition: Precondition::None,
            repeat: 1,
            measure_last: None,
        }
    }
}

/// How a run is watched and stopped from outside.
#[derive(Debug, Default)]
pub struct Control {
    /// Host pages submitted so far, over all runs that share this control.
    pub pages_done: AtomicU64,
    /// Set to stop at the next batch.
    pub stop: AtomicBool,
}

/// A run that is ready to start: everything that can be refused has been looked at.
pub struct Prepared<'a> {
    spec: &'a RunSpec,
    device_spec: DeviceSpec,
    plan: Plan,
    folding: Folding,
    active_bytes: u64,
    /// Host page writes of one replay, where that was surveyed.
    page_writes: u64,
    /// Host page writes after which the last window starts.
    last_window_from: u64,
}

/// Surveys the trace as far as the run needs it. Runs over the same trace, page size and folding may share the survey.
///
/// # Errors
/// The trace cannot be read.
pub fn survey(spec: &RunSpec) -> Result<Option<Survey>, RunError> {
    let needed = spec.device.device.logical_size.is_none()
        || spec.replay.fill.0 > 0.0
        || spec.replay.precondition != Precondition::None
        || spec.replay.measure_last.is_some()
        || spec.replay.address == AddressMode::Compact
        || needs_future(&spec.device.placement.name);
    let compact = spec.replay.address == AddressMode::Compact;
    needed.then(|| spec.trace.survey(spec.device.device.page_size.0, compact)).transpose()
}

/// Checks everything that can be checked before memory is allocated.
///
/// # Errors
/// Wrong options, an impossible device, a trace that does not fit, too little memory.
pub fn prepare<'a>(spec: &'a RunSpec, survey: Option<&Survey>) -> Result<Prepared<'a>, RunError> {
    let page_bytes = spec.device.device.page_size.0;
    let fill = spec.replay.fill.0;
    if !(0.0..1.0).contains(&fill) {
        let problem = format!("{} is out of range", spec.replay.fill);
        return Err(SpecError::new("--fill", problem, "allowed: 0 % to below 100 %").into());
    }
    if spec.replay.repeat == 0 {
        return Err(SpecError::new("--repeat", "0 replays nothing", "allowed: 1 or more").into());
    }
    // What the trace needs of the address space, in bytes.
    let needs = survey.map(|s| match &s.touched {
        Some(touched) => touched.count() * page_bytes,
        None => s.span_bytes.next_multiple_of(page_bytes),
    });
    let default_bytes = || ((needs.unwrap_or(0) as f64 / (1.0 - fill)) as u64).next_multiple_of(page_bytes);
    let logical_bytes = spec.device.device.logical_size.map_or_else(default_bytes, |size| size.0);
    let mut device_spec = spec.device.clone();
    device_spec.device.logical_size = Some(ByteSize(logical_bytes));
    let mut known = device_spec.clone();
    if needs_future(&known.placement.name) {
        // Its streams follow from the future, which is read when the run starts; all else can be checked now.
        known.placement.name = PolicyName::plain("single");
    }
    let environment = Environment { logical_bytes, seed: spec.seed, future: None };
    let plan = build::plan(&known, &environment)?;

    let active_bytes = match spec.device.device.logical_size {
        _ if fill == 0.0 => logical_bytes,
        None => needs.unwrap_or(0).max(page_bytes),
        Some(_) => (((logical_bytes / page_bytes) as f64 * (1.0 - fill)).floor() as u64 * page_bytes).max(page_bytes),
    };
    if let Some(needs) = needs.filter(|&n| n > active_bytes && spec.replay.address != AddressMode::Wrap) {
        let problem = format!("the trace needs {needs} bytes, but {active_bytes} are left for it beside the filler");
        let fix = "give a larger --logical-size, a smaller --fill, or fold addresses with --address wrap or compact";
        return Err(SpecError::new(&spec.trace.name, problem, fix).into());
    }
    let folding = match (spec.replay.address, survey.and_then(|s| s.touched.clone())) {
        (AddressMode::Refuse, _) => Folding::Refuse,
        (AddressMode::Compact, Some(touched)) => Folding::Compact(touched),
        _ => Folding::Wrap(active_bytes),
    };
    let page_writes = survey.map_or(0, |s| s.page_writes);
    let total = page_writes * u64::from(spec.replay.repeat);
    let last_window_from = match spec.replay.measure_last {
        Some(0) => return Err(SpecError::new("--measure-last", "0 measures nothing", "allowed: 1 or more").into()),
        Some(last) => total.saturating_sub(last),
        None => 0,
    };
    memory::admit("the device", plan.memory_bytes, "give a smaller --logical-size, or --address compact")?;
    Ok(Prepared { spec, device_spec, plan, folding, active_bytes, page_writes, last_window_from })
}

/// Where a replay stands.
struct Session<'a> {
    prepared: &'a Prepared<'a>,
    plan: Plan,
    device: Box<dyn Device>,
    control: &'a Control,
    recorder: Recorder,
    requests: u64,
    pages: u64,
    skipped_lines: u64,
    duration_ns: u64,
    /// Counters at the start of the last window, and latencies up to it, once it is reached.
    mark: Option<(Snapshot, Latencies)>,
}

/// Why the device could not carry on, when it could not: a result with a reason, not an error.
pub type Stopped = Option<String>;

/// Submits a batch whose first request is number `first` of the trace.
///
/// # Errors
/// A request that the device cannot take. Out of space and worn out are results.
pub fn submit(device: &mut dyn Device, batch: &[Request], trace: &str, first: u64) -> Result<Stopped, RunError> {
    match device.submit(batch) {
        Ok(()) => Ok(None),
        Err(error @ (DeviceError::NoSpace { .. } | DeviceError::WornOut { .. })) => Ok(Some(error.to_string())),
        Err(source) => {
            let within = if let DeviceError::OutOfRange { request, .. } = &source { *request as u64 } else { 0 };
            Err(RunError::Device { trace: trace.to_owned(), request: first + within, source })
        }
    }
}

impl Prepared<'_> {
    /// Memory that the device will take.
    pub fn memory_bytes(&self) -> u64 {
        self.plan.memory_bytes
    }

    /// The device in numbers.
    pub fn device_summary(&self) -> DeviceSummary {
        summary(&self.plan)
    }

    /// Runs.
    ///
    /// # Errors
    /// The trace cannot be read, a request does not fit the device, a conservation law is broken, the user stopped.
    pub fn run(&self, control: &Control) -> Result<RunResult, RunError> {
        let spec = self.spec;
        let environment = Environment {
            logical_bytes: u64::from(self.plan.logical_pages) * u64::from(self.plan.geometry.page_bytes()),
            seed: spec.seed,
            future: future::of(
                spec,
                &self.folding,
                self.active_bytes,
                u64::from(self.plan.logical_pages),
                self.page_writes,
            )?,
        };
        let plan = build::plan(&self.device_spec, &environment)?;
        let mut device = build::build(&self.device_spec, &environment)?;
        let prepared = precondition::write(&mut *device, spec, &self.folding, self.active_bytes, control)?;
        device.reset_latencies();
        let start = device.snapshot();
        let erases = device.block_erases();

        let recorder = Recorder::new(&start, device.logical_pages(), device.page_bytes());
        let mut session = Session {
            prepared: self,
            plan,
            device,
            control,
            recorder,
            requests: 0,
            pages: 0,
            skipped_lines: 0,
            duration_ns: 0,
            mark: (self.last_window_from == 0).then(|| (start.clone(), Latencies::default())),
        };
        let began = Instant::now();
        let stopped = match prepared.stopped {
            Some(reason) => Some(reason),
            // Arrivals start when every plane is surely idle again after preconditioning.
            None => session.replay(start.time.total_ns())?,
        };
        let elapsed_ns = began.elapsed().as_nanos() as u64;

        let end = session.device.snapshot();
        laws::check(&*session.device, start.host.pages_written + session.pages, stopped.is_some())
            .map_err(RunError::Law)?;
        let workload = Workload {
            address: spec.replay.address.name().to_owned(),
            fill_share: spec.replay.fill.0,
            precondition: spec.replay.precondition.name().to_owned(),
            precondition_pages_written: start.host.pages_written,
            precondition_steady: prepared.steady,
            repeat: spec.replay.repeat,
            measure_last_pages: spec.replay.measure_last,
        };
        Ok(session.result(workload, &start, &end, &erases, stopped, elapsed_ns))
    }
}

fn summary(plan: &Plan) -> DeviceSummary {
    DeviceSummary {
        logical_pages: u64::from(plan.logical_pages),
        physical_pages: u64::from(plan.physical_pages),
        reserve_blocks: u64::from(plan.reserve_blocks),
        blocks: u64::from(plan.geometry.blocks),
        pages_per_block: u64::from(plan.geometry.pages_per_block()),
        page_bytes: u64::from(plan.geometry.page_bytes()),
        streams: u64::from(plan.streams),
        over_provisioning: plan.over_provisioning,
        spare: plan.spare,
        simulator_memory_bytes: plan.memory_bytes,
    }
}

impl Session<'_> {
    /// Replays the trace as often as asked; `base_ns` is added to arrivals.
    fn replay(&mut self, base_ns: u64) -> Result<Stopped, RunError> {
        let prepared = self.prepared;
        let mut batch = Vec::with_capacity(BATCH);
        for _ in 0..prepared.spec.replay.repeat {
            let mut reader = prepared.spec.trace.open()?;
            let shift_ns = base_ns + self.duration_ns;
            let mut last_ns = 0;
            loop {
                batch.clear();
                if reader.fill(&mut batch, self.recorder.room().min(BATCH as u64) as usize)? == 0 {
                    break;
                }
                if self.control.stop.load(Ordering::Relaxed) {
                    return Err(RunError::Interrupted);
                }
                last_ns = batch.last().map_or(last_ns, |r| r.arrival_ns);
                if shift_ns > 0 {
                    batch.iter_mut().for_each(|r| r.arrival_ns += shift_ns);
                }
                let read = batch.len() as u64;
                prepared.folding.fold(&mut batch);
                if let stopped @ Some(_) = self.step(&mut batch)? {
                    return Ok(stopped);
                }
                self.requests += read;
            }
            self.duration_ns += last_ns;
            self.skipped_lines += reader.skipped();
        }
        Ok(None)
    }

    /// Carries out one batch, cut where the last window starts.
    fn step(&mut self, batch: &mut Vec<Request>) -> Result<Stopped, RunError> {
        let trace = &self.prepared.spec.trace.name;
        let pages = self.recorder.count(batch);
        let mut rest = 0;
        if self.mark.is_none() && self.pages + pages > self.prepared.last_window_from {
            rest = cut_at_page(batch, self.prepared.last_window_from - self.pages, self.device.page_bytes());
            if let stopped @ Some(_) = submit(&mut *self.device, &batch[..rest], trace, self.requests + 1)? {
                return Ok(stopped);
            }
            self.mark = Some((self.device.snapshot(), self.device.latencies().clone()));
            self.device.reset_latencies();
        }
        let stopped = submit(&mut *self.device, &batch[rest..], trace, self.requests + rest as u64 + 1)?;
        self.pages += pages;
        self.control.pages_done.fetch_add(pages, Ordering::Relaxed);
        if self.recorder.window_is_full() {
            self.recorder.close_window(&self.device.snapshot());
        }
        Ok(stopped)
    }

    /// Turns what was counted into a result.
    fn result(
        self,
        workload: Workload,
        start: &Snapshot,
        end: &Snapshot,
        erases_before: &[u32],
        stopped: Stopped,
        elapsed_ns: u64,
    ) -> RunResult {
        let Prepared { spec, device_spec, .. } = self.prepared;
        let plan = self.plan;
        let device = summary(&plan);
        let mut recording: Recording = self.recorder.finish(end);
        let (window_start, earlier) = self.mark.unwrap_or_else(|| (start.clone(), Latencies::default()));
        let last_window = measure::window(&window_start, end, self.device.latencies());
        let latencies = measure::joined(earlier, self.device.latencies());
        let verdict = judge(&Evidence {
            window_start: &window_start,
            end,
            recording: &recording,
            logical_pages: device.logical_pages,
            streams: u64::from(plan.streams),
            skipped_lines: self.skipped_lines,
            stopped: stopped.as_deref(),
        });
        let programmed = measure::programmed(start, end);
        let read = measure::pages_read(start, end);
        let time = measure::flash_time(start, end);
        let (erase_count, erase_distribution) = measure::erases(erases_before, &self.device.block_erases());
        let host = measure::host(start, end);
        let media_bytes_written = programmed.total() * device.page_bytes;
        let write_amplification_bytes = ratio(media_bytes_written as f64, host.bytes_written as f64);
        let endurance = device_spec.device.endurance;
        let dram: Map<String, Value> = end.dram.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect();
        RunResult {
            label: format!("{}, {}", device_spec.placement.name, device_spec.gc.victim),
            axes: Map::new(),
            trace: spec.trace.name.clone(),
            spec: device_spec.clone(),
            seed: spec.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workload,
            write_amplification_last: ratio(
                last_window.pages_programmed_total as f64,
                last_window.host_pages_written as f64,
            ),
            last_window,
            host_requests: self.requests,
            host_pages_written: host.pages_written,
            host_pages_read: host.pages_read,
            host_pages_trimmed: host.pages_trimmed,
            host_pages_partly_written: host.pages_partly_written,
            host_bytes_written: host.bytes_written,
            host_bytes_read: host.bytes_read,
            host_bytes_trimmed: host.bytes_trimmed,
            media_bytes_written,
            media_bytes_read: read.total() * device.page_bytes,
            media_bytes_erased: erase_count.total * device.pages_per_block * device.page_bytes,
            pages_programmed: measure::by_cause(&programmed),
            pages_programmed_total: programmed.total(),
            pages_read: measure::by_cause(&read),
            gc_pages_copied: programmed[Cause::Gc],
            write_amplification: ratio(programmed.total() as f64, host.pages_written as f64),
            write_amplification_bytes,
            gc_count: end.collector.collections - start.collector.collections,
            gc_count_background: end.collector.background_collections - start.collector.background_collections,
            victim_invalid_share_mean: measure::victim_invalid_share(start, end),
            displaced_pages: end.collector.displaced_pages - start.collector.displaced_pages,
            retired_blocks: end.collector.retired_blocks,
            flash_time_ns: time.total_ns(),
            flash_time_parts_ns: measure::time_parts(&time),
            flash_time_per_host_page_ns: ratio(time.total_ns() as f64, (host.pages_written + host.pages_read) as f64),
            write_throughput_bytes_per_second: ratio(host.bytes_written as f64 * 1e9, time.total_ns() as f64),
            latency_ns: measure::latency(&latencies),
            dram_bytes: end.dram.iter().map(|d| d.1).sum(),
            dram_parts_bytes: dram,
            lifetime: lifetime::lifetime(
                &device,
                endurance,
                write_amplification_bytes,
                host.bytes_written,
                self.duration_ns,
            ),
            percent_used: (endurance > 0).then(|| 100.0 * erase_count.mean / f64::from(endurance)),
            erase_count,
            stopped,
            verdict,
            series: recording.series(),
            victim_histogram: measure::victims(start, end),
            block_utilisation: measure::utilisation(&self.device.block_valid_pages(), plan.geometry.pages_per_block()),
            erase_distribution,
            latency_distribution: measure::latency_distribution(&latencies),
            write_heat: recording.take_heat(),
            device,
            mapping: None,
            asa: None,
            buffer: None,
            split: None,
            merges: None,
            log: None,
            below: None,
            write_amplification_end_to_end: None,
            simulator_elapsed_ns: elapsed_ns,
            simulator_host_writes_per_second: host.pages_written as f64 * 1e9 / elapsed_ns.max(1) as f64,
        }
    }
}

/// Cuts a batch after its first `pages` page writes and returns where its second part starts. A write that crosses the cut
/// becomes two.
fn cut_at_page(batch: &mut Vec<Request>, pages: u64, page_bytes: u32) -> usize {
    let page_bytes = u64::from(page_bytes);
    let mut left = pages;
    for at in 0..batch.len() {
        let request = batch[at];
        if request.op != Op::Write {
            continue;
        }
        if left == 0 {
            return at;
        }
        let touched = pages_of(&request, page_bytes);
        if touched > left {
            let cut = (request.offset / page_bytes + left) * page_bytes;
            let first_part = cut - request.offset;
            batch[at].length = first_part;
            batch.insert(at + 1, Request { offset: cut, length: request.length - first_part, ..request });
            return at + 1;
        }
        left -= touched;
    }
    batch.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_exactly_at_a_page_even_inside_a_request() {
        let write = |offset, length| Request { arrival_ns: 0, offset, length, op: Op::Write };
        let read = Request { op: Op::Read, ..write(0, 4096) };
        let batch = vec![read, write(0, 4096), read, write(512, 12288), write(0, 1)];
        for pages in 0..=6 {
            let mut cut = batch.clone();
            let at = cut_at_page(&mut cut, pages, 4096);
            let count = |part: &[Request]| -> u64 {
                part.iter().filter(|r| r.op == Op::Write).map(|r| pages_of(r, 4096)).sum()
            };
            assert_eq!((count(&cut[..at]), count(&cut[at..])), (pages, 6 - pages));
            assert_eq!(cut.iter().map(|r| r.length).sum::<u64>(), batch.iter().map(|r| r.length).sum::<u64>());
        }
    }
}
