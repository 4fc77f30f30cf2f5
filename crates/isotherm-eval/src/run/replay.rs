//! The run itself: batches from the trace to the device, cut exactly where the last window starts.

use super::outcome::{Measured, result};
use super::precondition;
use super::submit::{Stopped, submit};
use super::{Prepared, future, known_rates};
use crate::control::Control;
use crate::error::EvalError;
use crate::heat::HeatRecorder;
use crate::laws;
use crate::recorder::{Recorder, ratio};
use crate::results::{RunResult, Workload};
use crate::source::{BATCH, page_writes};
use crate::verdict::{Setting, Source};
use isotherm::build::Environment;
use isotherm::device::{Observe, Replay};
use isotherm::placement::lookaheads;
use isotherm::request::Request;
use isotherm::stats::{Latencies, Snapshot};
use isotherm_sfs::SystemSpec;
use isotherm_trace::LeadingTrims;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A write amplification at which no other lookahead is tried.
const NOTHING_TO_GAIN: f64 = 1.002;

/// Where a replay stands.
struct Session<'a> {
    prepared: &'a Prepared<'a>,
    device: &'a mut dyn Replay,
    control: &'a Control,
    tells_progress: bool,
    recorder: Recorder,
    heat: HeatRecorder,
    /// Page writes of the host before the measured run.
    pages_before: u64,
    /// Requests read, and those of them that do not begin and end with whole sectors.
    read: u64,
    ragged: u64,
    /// Where the last window starts within the batch at hand, if a write was cut in two there.
    cut_at: Option<usize>,
    requests: u64,
    pages: u64,
    skipped_lines: u64,
    leading_trims: LeadingTrims,
    duration_ns: u64,
    /// Counters at the start of the last window, and latencies up to it, once it is reached.
    mark: Option<(Snapshot, Latencies)>,
}

impl Prepared<'_> {
    /// Runs. Where the placement reads ahead and leaves open how far, each lookahead that fits the device is tried, and the run that writes
    /// least counts.
    ///
    /// # Errors
    /// The trace cannot be read, a request does not fit the device, a conservation law is broken, the user stopped.
    pub fn run(&self, control: &Control) -> Result<RunResult, EvalError> {
        let spec = self.spec;
        let geometry = self.plan.geometry;
        let logical_pages = self.plan.logical_pages;
        let environment = Environment {
            logical_bytes: u64::from(logical_pages) * u64::from(geometry.page_bytes()),
            seed: spec.seed,
            future: future::of(spec, &self.folding, &self.layout, logical_pages.into(), self.page_writes)?,
            placement: spec.policies.placement.clone(),
            victim: spec.policies.victim.clone(),
        };
        let Some(future) = &environment.future else {
            return self.run_with(&self.device_spec, &environment, (control, true));
        };
        let mut device_spec = self.device_spec.clone();
        let names =
            lookaheads(&device_spec.placement.name, future, logical_pages, geometry.pages_per_block(), geometry.blocks);
        let mut best: Option<RunResult> = None;
        for name in names {
            device_spec.placement.name = name;
            // Whoever watches was told of the pages of one run.
            let is_told = best.is_none();
            let result = self.run_with(&device_spec, &environment, (control, is_told))?;
            let writes = |result: &RunResult| result.write_amplification_last.unwrap_or(f64::INFINITY);
            if best.as_ref().is_none_or(|best| writes(&result) < writes(best)) {
                best = Some(result);
            }
            if best.as_ref().is_some_and(|best| writes(best) < NOTHING_TO_GAIN) {
                break;
            }
        }
        Ok(best.expect("there is one name at least"))
    }

    /// Runs with this specification of the device.
    fn run_with(
        &self,
        device_spec: &SystemSpec,
        environment: &Environment,
        (control, tells_progress): (&Control, bool),
    ) -> Result<RunResult, EvalError> {
        let spec = self.spec;
        let plan = isotherm_sfs::plan(device_spec, environment)?;
        let mut device = isotherm_sfs::build(device_spec, environment)?;
        let is_pattern = spec.trace.is_synthetic();
        let pattern_pages = self.touched_pages.filter(|_| is_pattern);
        let prepared = precondition::write(&mut *device, spec, &self.folding, &self.layout, pattern_pages, control)?;
        device.reset_latencies();
        let start = device.snapshot();
        let erases_before = device.block_erases();

        let recorder = Recorder::new(&start, device.page_bytes());
        let heat = HeatRecorder::new(device.logical_pages(), device.page_bytes());
        let mut session = Session {
            prepared: self,
            device: &mut *device,
            control,
            tells_progress,
            recorder,
            heat,
            pages_before: start.host.pages_written,
            read: 0,
            ragged: 0,
            cut_at: None,
            requests: 0,
            pages: 0,
            skipped_lines: 0,
            leading_trims: LeadingTrims::default(),
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

        let Session { recorder, heat, requests, read, ragged, pages, skipped_lines, duration_ns, mark, .. } = session;
        let LeadingTrims { requests: leading_trims_dropped, bytes: leading_trimmed_bytes_dropped } =
            session.leading_trims;
        laws::check(&*device, start.host.pages_written + pages, stopped.is_some()).map_err(EvalError::Law)?;
        let end = device.snapshot();
        Ok(result(&Measured {
            trace: &spec.trace.name,
            seed: spec.seed,
            setting: Setting {
                replay: &spec.replay,
                source: if is_pattern { Source::Pattern } else { Source::Trace },
                size_given: spec.device.device.logical_size.is_some(),
                log_fills: spec.log_filler() > 0.0,
                page_bytes: u64::from(plan.geometry.page_bytes()),
                touched_pages: self.touched_pages,
                filler_pages: self.layout.filler.count(),
                precondition_replays: prepared.replays,
                pages_before: start.host.pages_written,
                learns_for: plan.learns_for,
            },
            plan,
            device_spec,
            known_rates: known_rates::of(self, &plan),
            below: isotherm_sfs::plan_below(device_spec, environment)?.map(|(spec, plan)| (spec.into(), plan)),
            device: &*device as &dyn Observe,
            workload: Workload {
                address: spec.replay.address.name().to_owned(),
                fill_share: self.layout.filler.count() as f64 / f64::from(plan.logical_pages),
                precondition: spec.replay.precondition.name().to_owned(),
                precondition_pages_written: start.host.pages_written,
                precondition_steady: prepared.steady,
                repeat: spec.replay.repeat,
                leading_trims_dropped,
                leading_trimmed_bytes_dropped,
                measure_last_pages: spec.replay.measure_last,
            },
            recording: recorder.finish(&end),
            heat: heat.finish(),
            start,
            end,
            clock_ns: None,
            erases_before,
            mark,
            requests,
            ragged_share: ratio(ragged as f64, read as f64).unwrap_or(0.0),
            skipped_lines,
            duration_ns,
            stopped,
            elapsed_ns,
        }))
    }
}

impl Session<'_> {
    /// Replays the trace as often as asked; `base_ns` is added to arrivals.
    fn replay(&mut self, base_ns: u64) -> Result<Stopped, EvalError> {
        let prepared = self.prepared;
        let mut batch = Vec::with_capacity(BATCH);
        for replays in 0..u64::from(prepared.spec.replay.repeat) {
            let mut reader = prepared.spec.trace.open_replay(replays)?;
            // A request of the next replay comes after the last of this one.
            let shift_ns = base_ns + self.duration_ns + replays;
            let (mut first_ns, mut last_ns) = (None, 0);
            loop {
                batch.clear();
                if reader.fill(&mut batch, BATCH)? == 0 {
                    break;
                }
                self.control.go_on()?;
                self.leading_trims = reader.leading_trims();
                let first_ns = *first_ns.get_or_insert(batch[0].arrival_ns);
                last_ns = batch[batch.len() - 1].arrival_ns - first_ns;
                if shift_ns != first_ns {
                    batch.iter_mut().for_each(|r| r.arrival_ns = r.arrival_ns - first_ns + shift_ns);
                }
                let read = batch.len() as u64;
                self.read += read;
                self.ragged += batch.iter().filter(|r| (r.offset | r.length) % SECTOR_BYTES != 0).count() as u64;
                prepared.folding.fold(&mut batch);
                if let stopped @ Some(_) = self.step(&mut batch)? {
                    self.stop(&mut batch);
                    self.duration_ns += batch.last().map_or(0, |request| request.arrival_ns - shift_ns);
                    return Ok(stopped);
                }
                self.heat.add(&batch);
                self.requests += read;
            }
            self.recorder.end_replay(&self.device.snapshot());
            self.duration_ns += last_ns;
            self.skipped_lines += reader.skipped();
        }
        Ok(None)
    }

    /// Counts what was carried out of the last batch, by the pages that the device counted, and cuts the batch there.
    fn stop(&mut self, batch: &mut Vec<Request>) {
        let page_bytes = u64::from(self.device.page_bytes());
        let in_batch: u64 = batch.iter().map(|request| page_writes(request, page_bytes)).sum();
        let not_taken = self.pages_before + self.pages - self.device.snapshot().host.pages_written;
        let taken = in_batch.saturating_sub(not_taken);
        let mut left = taken;
        let fails = |request: &Request| {
            let pages = page_writes(request, page_bytes);
            let fits = pages <= left;
            left -= if fits { pages } else { 0 };
            !fits
        };
        let whole = batch.iter().position(fails).unwrap_or(batch.len());
        // The two parts of a write that was cut are one request.
        let parts = usize::from(self.cut_at.is_some_and(|at| whole >= at));
        self.requests += (whole - parts) as u64;
        let end = cut_at_page(batch, taken, self.device.page_bytes());
        self.heat.add(&batch[..end]);
        batch.truncate(whole.max(1));
    }

    /// Carries out one batch, cut where the last window starts.
    fn step(&mut self, batch: &mut Vec<Request>) -> Result<Stopped, EvalError> {
        let page_bytes = u64::from(self.device.page_bytes());
        let pages = batch.iter().map(|request| page_writes(request, page_bytes)).sum();
        let before = self.pages;
        self.pages += pages;
        let (mut rest, mut rest_pages) = (0, pages);
        self.cut_at = None;
        if self.mark.is_none() && self.pages > self.prepared.last_window_from {
            let length = batch.len();
            let first_pages = self.prepared.last_window_from - before;
            rest = cut_at_page(batch, first_pages, self.device.page_bytes());
            rest_pages -= first_pages;
            self.cut_at = (batch.len() > length).then_some(rest);
            if let stopped @ Some(_) = self.submit(&batch[..rest], first_pages, self.requests + 1)? {
                return Ok(stopped);
            }
            self.mark = Some((self.device.snapshot(), self.device.latencies().clone()));
            self.device.reset_latencies();
        }
        let stopped = self.submit(&batch[rest..], rest_pages, self.requests + rest as u64 + 1)?;
        if self.tells_progress {
            self.control.pages_done.fetch_add(pages, Ordering::Relaxed);
        }
        Ok(stopped)
    }

    /// Submits requests that write `pages` in all, of which the first is number `number` of the trace, in parts that end where a
    /// window of the recording does.
    fn submit(&mut self, requests: &[Request], mut pages: u64, mut number: u64) -> Result<Stopped, EvalError> {
        let trace = &self.prepared.spec.trace.name;
        let page_bytes = u64::from(self.device.page_bytes());
        let mut rest = requests;
        while pages >= self.recorder.room() {
            let (end, written) = part_that_writes(rest, self.recorder.room(), page_bytes);
            self.recorder.count(written);
            if let stopped @ Some(_) = submit(self.device, &rest[..end], trace, number)? {
                return Ok(stopped);
            }
            self.recorder.close_window(&self.device.snapshot());
            (rest, pages, number) = (&rest[end..], pages - written, number + end as u64);
        }
        self.recorder.count(pages);
        if rest.is_empty() { Ok(None) } else { submit(self.device, rest, trace, number) }
    }
}

/// Addresses and lengths of block devices are multiples of this.
const SECTOR_BYTES: u64 = 512;

/// The shortest head of `requests` that writes `pages` or more: its length, and what it writes.
fn part_that_writes(requests: &[Request], pages: u64, page_bytes: u64) -> (usize, u64) {
    let mut written = 0;
    for (at, request) in requests.iter().enumerate() {
        written += page_writes(request, page_bytes);
        if written >= pages {
            return (at + 1, written);
        }
    }
    (requests.len(), written)
}

/// Cuts a batch after its first `pages` page writes and returns where its second part starts. A request that crosses the cut
/// becomes two.
fn cut_at_page(batch: &mut Vec<Request>, pages: u64, page_bytes: u32) -> usize {
    let page_bytes = u64::from(page_bytes);
    let mut left = pages;
    for at in 0..batch.len() {
        let request = batch[at];
        let written = page_writes(&request, page_bytes);
        if written == 0 {
            continue;
        }
        if left == 0 {
            return at;
        }
        if written > left {
            // Of zeros, the first page is one that is written.
            let cut = (request.offset / page_bytes + left) * page_bytes;
            let first_part = cut - request.offset;
            batch[at].length = first_part;
            batch.insert(at + 1, Request { offset: cut, length: request.length - first_part, ..request });
            return at + 1;
        }
        left -= written;
    }
    batch.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::request::Op;

    #[test]
    fn a_batch_is_cut_exactly_at_a_page_even_inside_a_request() {
        let write =
            |offset, length| Request { arrival_ns: 0, offset, length, op: Op::Write, source: 0, durable: false };
        let read = Request { op: Op::Read, ..write(0, 4096) };
        let zeros = Request { op: Op::WriteZeroes, ..write(512, 12288) };
        let whole_zeros = Request { op: Op::WriteZeroes, ..write(4096, 8192) };
        let batch = vec![read, write(0, 4096), read, write(512, 12288), whole_zeros, zeros, write(0, 1)];
        for pages in 0..=8 {
            let mut cut = batch.clone();
            let at = cut_at_page(&mut cut, pages, 4096);
            let count = |part: &[Request]| -> u64 { part.iter().map(|r| page_writes(r, 4096)).sum() };
            assert_eq!((count(&cut[..at]), count(&cut[at..])), (pages, 8 - pages));
            assert_eq!(cut.iter().map(|r| r.length).sum::<u64>(), batch.iter().map(|r| r.length).sum::<u64>());
        }
    }
}
