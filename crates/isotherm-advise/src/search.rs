//! The search: candidates are tried on samples of the addresses first, those that are surely worse are dropped, the rest is
//! simulated in full.
//!
//! A sample is a part of the addresses, drawn by hash, with the drive made smaller in proportion. The parts are disjoint, so that
//! the ratios of a candidate's write amplification to that of the drive as it is are independent observations, and have a confidence
//! interval by Student's t. A candidate is dropped where the lower end of its interval lies more than 2 % above the best of its
//! kind; kinds whose candidates do not stand for one another ([`Kind::is_choice`]) are simulated in full. Where all candidates can be simulated in full within moderate time, none is dropped.

use crate::change::{Change, Kind};
use crate::question::{PAGE_BYTES, Question, Situation};
use crate::view::{Sample, View};
use isotherm::nand::timing::{TIMINGS, TimeMode};
use isotherm_eval::results::{Estimate, RunResult};
use isotherm_eval::{
    Control, EvalError, Job, Replay, RunSpec, Survey, SurveyKey, Surveys, estimate, run_each, startable,
};
use serde::Serialize;

/// Host page writes, over all candidates, up to which none is dropped: a minute or less on two cores.
const PAGES_IN_FULL: u64 = 300_000_000;
/// Samples that a candidate is tried on.
const SAMPLES: u64 = 4;
/// Logical pages of a sample at least.
const SAMPLE_PAGES_MIN: u64 = 1 << 16;
/// Parts of the addresses at most.
const PARTS_MAX: u64 = 64;
/// Bytes of the addresses that are in or out of a sample together.
const EXTENT_BYTES: u64 = 1 << 20;
/// A candidate that may be better than this, over the best of its kind, is kept.
const MARGIN: f64 = 0.02;
/// Fewest handles within this of the best are told: more handles cost the application more.
pub const ENOUGH: f64 = 0.01;
/// Candidates of a kind that are simulated in full at most.
const KEPT_MAX: usize = 5;
/// Channels, dies and planes of a drive whose latencies are told, as drives of the market have at least.
const PLANES: (u16, u16, u16) = (8, 4, 2);
/// Times that a run that is not steady is made twice as long.
const LONGER_MAX: u32 = 2;

/// A candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its kind.
    pub kind: Kind,
    /// What it is, for people.
    pub what: String,
    /// The change.
    pub change: Change,
}

/// A candidate with its run.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The candidate.
    pub candidate: Candidate,
    /// How the trace was brought to the drive.
    pub replay: Replay,
    /// Its run.
    pub run: RunResult,
}

impl Tried {
    /// Pages programmed for each page that the host wrote, over the last two replays; below a log for each that reached it, over the whole
    /// run. What the log's cache of dirty blocks absorbs is left out: it has its share of the simulated drive, which is as small as the
    /// trace, and no host has as large a share of a whole one.
    pub fn write_amplification(&self) -> f64 {
        let last = self.run.write_amplification_end_to_end.or(self.run.write_amplification_last);
        last.unwrap_or(f64::INFINITY)
    }

    /// The same in bytes.
    pub fn write_amplification_bytes(&self) -> f64 {
        let per_page = match (self.run.write_amplification_bytes, self.run.write_amplification) {
            (Some(bytes), Some(pages)) if self.run.below.is_none() => bytes / pages,
            _ => self.run.host_pages_written as f64 * 4096.0 / self.run.host_bytes_written.max(1) as f64,
        };
        self.write_amplification() * per_page
    }
}

/// A candidate that samples showed to be worse, or that cannot be.
#[derive(Clone, Debug, Serialize)]
pub struct Dropped {
    /// What it is.
    pub what: String,
    /// Its write amplification over that of the drive as it is, by samples; none where it cannot be.
    pub ratio: Option<Estimate>,
    /// Why it was dropped.
    pub reason: String,
}

/// Tries candidates in a situation.
pub struct Search<'a> {
    /// What is asked.
    pub question: &'a Question,
    /// The situation.
    pub situation: &'a Situation,
    /// The survey of the whole trace.
    pub survey: &'a Survey,
    /// What watches.
    pub control: &'a Control,
    /// What was dropped so far.
    pub dropped: Vec<Dropped>,
    /// Runs so far, and the host page writes that they were asked for.
    pub runs: u64,
    /// Host page writes of these.
    pub pages: u64,
}

impl Search<'_> {
    /// Runs every specification; what cannot be has a reason instead.
    fn run(&mut self, specs: Vec<RunSpec>) -> Result<Vec<Result<RunResult, EvalError>>, EvalError> {
        let jobs: Vec<Job<RunSpec>> = specs
            .into_iter()
            .enumerate()
            .map(|(at, spec)| Job { spec, label: at.to_string(), axes: Default::default() })
            .collect();
        let surveys = Surveys::of(&jobs)?;
        let count = jobs.len();
        let (jobs, refused) = startable(jobs, &surveys);
        self.runs += jobs.len() as u64;
        self.pages += surveys.pages(&jobs).unwrap_or(0);
        let at = |job: &Job<RunSpec>| job.label.parse::<usize>().expect("the label is a number");
        let mut results: Vec<Option<Result<RunResult, EvalError>>> = (0..count).map(|_| None).collect();
        for (job, reason) in refused {
            results[at(&job)] = Some(Err(reason));
        }
        for (job, result) in jobs.iter().zip(run_each(&jobs, &surveys, self.control, |_, result| Ok(result))?) {
            results[at(job)] = Some(result);
        }
        Ok(results.into_iter().map(|result| result.expect("every job was refused or run")).collect())
    }

    /// Simulates candidates in full, those that are not steady for longer.
    ///
    /// # Errors
    /// The trace cannot be read, or the user stopped. A candidate that cannot be is dropped.
    pub fn in_full(&mut self, candidates: Vec<Candidate>) -> Result<Vec<Tried>, EvalError> {
        let mut left: Vec<(usize, Candidate, u32)> =
            candidates.into_iter().enumerate().map(|(at, candidate)| (at, candidate, self.situation.replays)).collect();
        let mut done: Vec<(usize, Tried)> = Vec::new();
        for round in 0..=LONGER_MAX {
            let specs: Vec<RunSpec> = left
                .iter()
                .map(|(_, candidate, replays)| {
                    let mut spec =
                        candidate.change.run(self.question, self.situation, &self.question.trace, self.survey);
                    spec.replay.repeat = *replays;
                    spec
                })
                .collect();
            let brought: Vec<Replay> = specs.iter().map(|spec| spec.replay.clone()).collect();
            let mut again = Vec::new();
            let results = std::mem::take(&mut left).into_iter().zip(brought).zip(self.run(specs)?);
            for (((at, candidate, replays), replay), result) in results {
                match result {
                    Ok(run) if is_unsteady(&run) && round < LONGER_MAX => again.push((at, candidate, 2 * replays)),
                    Ok(run) => done.push((at, Tried { candidate, replay, run })),
                    Err(reason) => {
                        self.dropped.push(Dropped { what: candidate.what, ratio: None, reason: reason.to_string() });
                    }
                }
            }
            left = again;
            if left.is_empty() {
                break;
            }
        }
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, tried)| tried).collect())
    }

    /// Write amplification over the last `pages` host page writes of the trace, for each of these changes; none where it has no
    /// value.
    ///
    /// # Errors
    /// As [`Search::in_full`].
    pub fn last_third(&mut self, tried: &[&Tried], pages: u64) -> Result<Vec<Option<f64>>, EvalError> {
        let specs = tried.iter().map(|tried| {
            let mut spec = tried.candidate.change.run(self.question, self.situation, &self.question.trace, self.survey);
            spec.replay.repeat = tried.run.workload.repeat;
            spec.replay.measure_last = Some(pages);
            spec
        });
        let specs = specs.collect();
        Ok(self.run(specs)?.into_iter().map(|run| run.ok()?.write_amplification_last).collect())
    }

    /// The latency that 99.9 % of the writes do not exceed, for each of these, with planes that work side by side and requests that
    /// wait for one another: at the trace's own times, or with 32 requests outstanding where the drive as it is, the first of them,
    /// cannot keep up with these. None below a log, and for all where the trace has no times or it would take long. Beside them how
    /// they were timed.
    ///
    /// # Errors
    /// As [`Search::in_full`].
    pub fn latencies(&mut self, tried: &[&Tried]) -> Result<(Vec<Option<u64>>, Option<TimeMode>), EvalError> {
        if self.survey.duration_ns > 0 && self.pages_in_full(tried.len()) <= PAGES_IN_FULL {
            for mode in [TimeMode::Open, TimeMode::Closed] {
                let specs = tried.iter().map(|tried| self.timed(tried, mode)).collect();
                let p999 = |run: RunResult| {
                    let is_told = run.below.is_none() && run.stopped.is_none() && run.latency_note.is_none();
                    run.last_window.latency_ns.write.p999.filter(|_| is_told)
                };
                let told: Vec<Option<u64>> = self.run(specs)?.into_iter().map(|run| p999(run.ok()?)).collect();
                if told.first().is_some_and(Option::is_some) {
                    return Ok((told, Some(mode)));
                }
            }
        }
        Ok((vec![None; tried.len()], None))
    }

    /// The same drive with planes and queues.
    fn timed(&self, tried: &Tried, mode: TimeMode) -> RunSpec {
        let mut spec = tried.candidate.change.run(self.question, self.situation, &self.question.trace, self.survey);
        let device = &mut spec.device.device;
        (device.channels, device.dies_per_channel, device.planes_per_die) = PLANES;
        let planes = u32::from(PLANES.0) * u32::from(PLANES.1) * u32::from(PLANES.2);
        device.pages_per_block = (device.pages_per_block / planes).max(2);
        let (block_pages, drive) = (device.pages_per_block, &self.question.drive);
        let timing = &mut spec.device.timing;
        timing.mode = mode;
        let latency = TIMINGS.iter().find(|entry| entry.name == drive.timing).map(|entry| entry.build.latency);
        if let Some(latency) = latency {
            // One program writes several pages of ours; and erases take the share of the time that they take with real blocks.
            let each = u64::from(drive.pages_per_program);
            timing.program_ns = Some(latency.program_ns / each);
            timing.transfer_ns = Some(latency.transfer_ns / each);
            timing.erase_ns = Some(latency.erase_ns * u64::from(block_pages) / u64::from(drive.block_pages));
        }
        spec
    }

    /// Host page writes that simulating `count` candidates in full takes.
    fn pages_in_full(&self, count: usize) -> u64 {
        let replay = self.situation.page_writes * u64::from(self.situation.replays);
        count as u64 * (self.situation.logical_pages + replay)
    }

    /// The candidates that are worth simulating in full.
    ///
    /// # Errors
    /// As [`Search::in_full`].
    pub fn screen(&mut self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, EvalError> {
        let parts = (self.situation.logical_pages / SAMPLE_PAGES_MIN).min(PARTS_MAX);
        if self.question.exhaustive || self.pages_in_full(candidates.len()) <= PAGES_IN_FULL || parts < 2 * SAMPLES {
            return Ok(candidates);
        }
        let (candidates, mut worth): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.kind.is_choice());
        let as_it_is = Change::default();
        let mut specs = Vec::new();
        for index in 0..SAMPLES {
            let sample = Some(Sample { extent_bytes: EXTENT_BYTES, index, of: parts });
            let trace = View { sample, ..View::default() }.of(&self.question.trace).into_memory()?;
            let survey = SurveyKey { trace: trace.clone(), page_bytes: PAGE_BYTES, touched: true }.survey()?;
            for change in std::iter::once(&as_it_is).chain(candidates.iter().map(|candidate| &candidate.change)) {
                specs.push(change.run(self.question, self.situation, &trace, &survey));
            }
        }
        let count = candidates.len() + 1;
        let results = self.run(specs)?;
        let wa = |sample: usize, at: usize| {
            let run = results[sample * count + at].as_ref().ok()?;
            run.write_amplification_end_to_end.or(run.write_amplification_last)
        };
        let ratios: Vec<Option<Estimate>> = (1..count)
            .map(|at| {
                let ratios: Option<Vec<f64>> =
                    (0..SAMPLES as usize).map(|sample| Some(wa(sample, at)? / wa(sample, 0)?)).collect();
                estimate(&ratios?)
            })
            .collect();
        let (kept, dropped) = judge(&candidates, &ratios);
        self.dropped.extend(dropped);
        worth.extend(kept.into_iter().map(|at| candidates[at].clone()));
        Ok(worth)
    }
}

/// Which candidates, by number, are worth simulating in full, and what is dropped, by their ratios on samples.
fn judge(candidates: &[Candidate], ratios: &[Option<Estimate>]) -> (Vec<usize>, Vec<Dropped>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let mut kinds: Vec<Kind> = candidates.iter().map(|candidate| candidate.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let mut of_kind: Vec<usize> = (0..candidates.len()).filter(|at| candidates[*at].kind == kind).collect();
        let mean = |at: &usize| ratios[*at].as_ref().map_or(f64::INFINITY, |ratio| ratio.mean);
        of_kind.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        let best = of_kind.first().map_or(f64::INFINITY, mean);
        // Of those that are about as good as the best, those with the fewest handles will be told.
        let is_as_good = |at: &usize| mean(at) <= best * (1.0 + ENOUGH);
        of_kind.sort_by_key(|at| (!is_as_good(at), if is_as_good(at) { candidates[*at].change.handles() } else { 0 }));
        for (rank, at) in of_kind.into_iter().enumerate() {
            let low = ratios[at].as_ref().map(|ratio| ratio.mean - ratio.confidence_95.unwrap_or(0.0));
            let reason = match low {
                // What cannot be is told by the run in full.
                None => None,
                Some(low) if low > best * (1.0 + MARGIN) => {
                    Some("samples show it to be surely worse than the best of its kind".to_owned())
                }
                Some(_) if rank >= KEPT_MAX => Some(format!("{KEPT_MAX} others of its kind are better on samples")),
                Some(_) => None,
            };
            match reason {
                Some(reason) => {
                    dropped.push(Dropped { what: candidates[at].what.clone(), ratio: ratios[at], reason });
                }
                None => kept.push(at),
            }
        }
    }
    kept.sort_unstable();
    (kept, dropped)
}

/// Whether a run's only fault is that it did not last long enough.
fn is_unsteady(run: &RunResult) -> bool {
    let verdict = &run.verdict;
    run.stopped.is_none() && !verdict.valid && verdict.reasons.iter().all(|reason| reason.starts_with("not steady"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, PlanSize, Rule};
    use std::sync::Arc;

    #[test]
    fn of_those_that_stand_for_one_another_what_is_surely_worse_is_dropped() {
        let candidate = |kind, what: &str| Candidate { kind, what: what.to_owned(), change: Change::default() };
        let four = |around: f64, apart: f64| estimate(&[around - apart, around, around, around + apart]);
        let firmware = |what| candidate(Kind::Firmware, what);
        let mut candidates =
            vec![firmware("best"), firmware("surely worse"), firmware("perhaps better"), firmware("impossible")];
        let mut ratios = vec![four(0.80, 0.001), four(0.90, 0.001), four(0.90, 0.1), None];
        // Each kind has a best of its own.
        candidates.push(candidate(Kind::HandlesBySize, "of another kind"));
        ratios.push(four(0.95, 0.001));
        let (kept, dropped) = judge(&candidates, &ratios);
        assert_eq!(kept, [0, 2, 3, 4]);
        assert_eq!(dropped.iter().map(|dropped| dropped.what.as_str()).collect::<Vec<_>>(), ["surely worse"]);
        // Alike as they may be, no more than so many of a kind go on: those with the fewest handles, and then the best.
        let many: Vec<Candidate> = (0..9u16)
            .map(|at| {
                let sizes = (0..=at % 8 + 1).map(|handle| PlanSize { up_to_bytes: None, handle });
                let plan = Some(Arc::new(Plan::new(Rule::Size(sizes.collect()), Vec::new())));
                Candidate { change: Change { plan, ..Change::default() }, ..candidate(Kind::HandlesBySize, "") }
            })
            .collect();
        let ratio = |at: u16| if at < 3 { 0.91 - f64::from(at) * 1e-4 } else { 0.90 - f64::from(at) * 1e-4 };
        let ratios: Vec<_> = (0..9).map(|at| four(ratio(at), 0.01)).collect();
        let (kept, dropped) = judge(&many, &ratios);
        // The last has two handles, as the first: within 1 % of the best are it and those from the fourth on, and none before.
        assert_eq!((kept, dropped.len()), (vec![3, 4, 5, 6, 8], 9 - KEPT_MAX));
    }
}
