//! What a comparison will run: every combination on every trace with every seed, looked at before anything runs; and its results,
//! parted by trace and by device again.

use crate::compare::{Choice, combine};
use crate::error::EvalError;
use crate::estimate::estimate;
use crate::pool::{Job, Surveys, startable};
use crate::results::{Estimate, RunResult, Skipped, TraceSummary};
use crate::run::RunSpec;
use isotherm_trace::{Profile, synth};
use serde_json::{Map, Value};

/// What parts the name of a trace from that of a device in a label.
pub const TRACE_FROM_DEVICE: &str = ": ";

/// The runs of a comparison.
#[derive(Default)]
pub struct Comparison {
    /// The runs that can start.
    pub jobs: Vec<Job<RunSpec>>,
    /// What is known of their traces.
    pub surveys: Surveys,
    /// The traces that can be read.
    pub traces: Vec<TraceSummary>,
    /// What cannot run.
    pub skipped: Vec<Skipped>,
    /// The reason for the first of these: the error, should nothing remain.
    pub first_problem: Option<EvalError>,
}

impl Comparison {
    /// Adds every combination of `axes` over `base`, on the trace of `base` and with `seeds` seeds from its own on. Among
    /// several traces, `name` is that of this one.
    ///
    /// # Errors
    /// A choice that no device has a use for, or that does not exist.
    pub fn add(
        &mut self,
        base: &RunSpec,
        name: Option<&str>,
        seeds: u64,
        axes: &[Vec<Choice>],
    ) -> Result<Vec<Profile>, EvalError> {
        let mut profiles = Vec::new();
        let trace = name.unwrap_or(&base.trace.name);
        for step in 0..seeds {
            let added = other_draw(base, step).and_then(|spec| {
                let profile = spec.trace.profile(spec.device.device.page_size.0)?;
                Ok((spec, profile))
            });
            let (spec, profile) = match added {
                Ok(added) => added,
                Err(problem) => {
                    self.skip(trace.to_owned(), problem);
                    return Ok(profiles);
                }
            };
            let combinations = combine(&spec, axes)?;
            if step == 0 {
                for (label, problem) in combinations.impossible {
                    self.skip(label, problem.into());
                }
            }
            let mut jobs = combinations.jobs;
            jobs.iter_mut().for_each(|job| rename(job, name, (seeds > 1).then_some(spec.seed)));
            match Surveys::of(&jobs) {
                Ok(surveys) => self.surveys.join(surveys),
                Err(problem) => {
                    self.skip(trace.to_owned(), problem);
                    return Ok(profiles);
                }
            }
            let (jobs, refused) = startable(jobs, &self.surveys);
            self.jobs.extend(jobs);
            refused.into_iter().for_each(|(job, problem)| self.skip(job.label, problem));
            let summary = TraceSummary::from(&profile);
            if self.traces.iter().all(|known| known.name != summary.name) {
                self.traces.push(summary);
            }
            profiles.push(profile);
        }
        Ok(profiles)
    }

    /// Notes that something has no result.
    pub fn skip(&mut self, label: String, problem: EvalError) {
        let reason = problem.to_string();
        if self.skipped.iter().all(|known| (&known.label, &known.reason) != (&label, &reason)) {
            self.skipped.push(Skipped { label, reason });
        }
        self.first_problem.get_or_insert(problem);
    }
}

/// The runs of one device on one trace: one for each seed.
#[derive(Clone, Debug)]
pub struct Device<'a> {
    /// Its name, without the trace's.
    pub name: &'a str,
    /// Its runs.
    pub runs: Vec<&'a RunResult>,
}

impl Device<'_> {
    /// A number over the seeds; nothing where no run has it.
    pub fn estimate(&self, read: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(|run| read(run)).collect();
        estimate(&values)
    }

    /// How many of its runs are valid.
    pub fn valid(&self) -> usize {
        self.runs.iter().filter(|run| run.verdict.valid).count()
    }

    /// Whether all of them are.
    pub fn is_valid(&self) -> bool {
        self.valid() == self.runs.len()
    }
}

/// The devices on one trace, in the order of their runs.
#[derive(Clone, Debug)]
pub struct OnTrace<'a> {
    /// Name of the trace among several; empty where there is one.
    pub trace: &'a str,
    /// The devices.
    pub devices: Vec<Device<'a>>,
}

impl<'a> OnTrace<'a> {
    /// Parts runs by trace and by device; traces stand in the order of `traces`.
    pub fn of(runs: &'a [RunResult], traces: &[TraceSummary]) -> Vec<Self> {
        let mut parts: Vec<(usize, Self)> = Vec::new();
        for run in runs {
            let (trace, name) = trace_and_device(run);
            let place = traces.iter().position(|known| known.name == run.trace).unwrap_or(usize::MAX);
            let part = match parts.iter().position(|(_, part)| part.trace == trace) {
                Some(at) => &mut parts[at],
                None => {
                    parts.push((place, Self { trace, devices: Vec::new() }));
                    parts.last_mut().expect("it was pushed")
                }
            };
            // Seeds draw workloads of their own.
            part.0 = part.0.min(place);
            let devices = &mut part.1.devices;
            match devices.iter_mut().find(|device| device.name == name) {
                Some(device) => device.runs.push(run),
                None => devices.push(Device { name, runs: vec![run] }),
            }
        }
        parts.sort_by_key(|(place, _)| *place);
        parts.into_iter().map(|(_, part)| part).collect()
    }
}

/// The name of the trace that a label begins with, where there are several, and what is left of the label.
fn trace_and_device(run: &RunResult) -> (&str, &str) {
    let named = || {
        let trace = run.axes.get("trace")?.as_str()?;
        Some((trace, run.label.strip_prefix(trace)?.strip_prefix(TRACE_FROM_DEVICE)?))
    };
    named().unwrap_or(("", &run.label))
}

/// `base` with a seed that is larger by `step`; the draws of a synthetic workload follow it.
fn other_draw(base: &RunSpec, step: u64) -> Result<RunSpec, EvalError> {
    let mut spec = RunSpec { seed: base.seed.wrapping_add(step), ..base.clone() };
    if let Some(workload) = base.trace.name.strip_prefix("synth:").filter(|_| step > 0) {
        let name = format!("synth:{}", synth::reseeded(workload, step)?);
        spec.trace = base.trace.clone().renamed(&name);
    }
    Ok(spec)
}

/// Tells a run from those on other traces and with other seeds.
fn rename(job: &mut Job<RunSpec>, trace: Option<&str>, seed: Option<u64>) {
    let mut axes = Map::new();
    if let Some(trace) = trace {
        axes.insert("trace".to_owned(), Value::from(trace));
        job.label = format!("{trace}{TRACE_FROM_DEVICE}{}", job.label);
    }
    axes.append(&mut job.axes);
    if let Some(seed) = seed {
        axes.insert("seed".to_owned(), Value::from(seed));
    }
    job.axes = axes;
}

/// Short names of traces, each its own: the file's without folder and endings, or the pattern's.
pub fn short_names(traces: &[String]) -> Vec<String> {
    let short = |trace: &String| match trace.strip_prefix("synth:") {
        Some(workload) => workload.split([',', ':', '+', '@']).next().unwrap_or(workload).to_owned(),
        None if trace == "-" => "standard input".to_owned(),
        None => {
            let file = trace.rsplit('/').next().unwrap_or(trace);
            let ends = [".zst", ".gz", ".csv", ".parquet", ".trace", ".txt"];
            ends.iter().fold(file, |name, end| name.strip_suffix(end).unwrap_or(name)).to_owned()
        }
    };
    let names: Vec<String> = traces.iter().map(short).collect();
    let own = |at: usize| match names.iter().filter(|name| **name == names[at]).count() {
        1 => names[at].clone(),
        _ => traces[at].clone(),
    };
    (0..traces.len()).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_told_apart() {
        let names = |traces: &[&str]| short_names(&traces.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["a/tpcc.csv.zst", "synth:zipf,theta=1"]), ["tpcc", "zipf"]);
        assert_eq!(names(&["a/x.csv", "b/x.csv", "c/y.csv"]), ["a/x.csv", "b/x.csv", "y"]);
    }
}
