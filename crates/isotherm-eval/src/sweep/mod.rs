//! Sweeps: every point of an experiment file, on all cores, resumable.
//!
//! A point is one run, or one measurement of hot data identification; its result is a file of its own, named by a hash of
//! everything that determines it (the program, the trace's content, the specification, the seed). A sweep that was stopped goes on where it was: points whose files are whole and hold the
//! same specification are not run again. A point that cannot run has a file that says why, and is tried again by the next sweep. When all points are
//! there, they are combined into one results file.

mod experiment_file;
mod findings;
mod hotness;
mod identity;
mod points;
mod shard;
mod task;

pub use experiment_file::{Axis, AxisValue, ExperimentFile, TraceEntry};
pub use points::{Origin, Points};
pub use shard::Shard;
pub use task::{Task, TaskResult};

use self::identity::Hash;
use crate::control::Control;
use crate::error::EvalError;
use crate::files;
use crate::pool::{self, Job, Named as _, Surveys, Work as _};
use crate::results::{ResultsFile, SCHEMA_VERSION, Skipped, TraceSummary, published_rows};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file of one point: what was asked, and what came of it.
#[derive(Serialize, Deserialize)]
struct PointFile {
    /// Canonical text of everything that determines the run.
    identity: String,
    /// The result, under the name of its kind.
    #[serde(flatten)]
    result: TaskResult,
}

/// What a sweep will do.
pub struct Sweep {
    /// The points, in the order of the experiment's axes.
    pub jobs: Vec<Job<Task>>,
    /// Traces that were left out, and why.
    pub left_out: Vec<String>,
    /// Jobs that have no finished file yet, by position.
    pub missing: Vec<usize>,
    unset: Vec<String>,
    finished: Vec<Option<TaskResult>>,
    /// What determines each job.
    identities: Vec<String>,
    folder: PathBuf,
}

fn point_path(folder: &Path, identity: &str) -> PathBuf {
    folder.join("points").join(format!("{:016x}.json", Hash::of(identity).0))
}

/// A finished point, if its file is whole and its own.
fn finished(folder: &Path, identity: &str) -> Option<TaskResult> {
    let bytes = std::fs::read(point_path(folder, identity)).ok()?;
    let point: PointFile = serde_json::from_slice(&bytes).ok()?;
    (point.identity == identity).then_some(point.result)
}

impl Sweep {
    /// Plans a sweep into `folder`; with `resume`, finished points are taken from there.
    ///
    /// # Errors
    /// The experiment asks for what does not exist, or the folder cannot be written.
    pub fn plan(experiment: &ExperimentFile, folder: &Path, resume: bool) -> Result<Self, EvalError> {
        let points = Points::of(experiment, &Origin::default())?;
        Self::of(points, folder, resume)
    }

    /// Plans a sweep of `points` into `folder`; with `resume`, finished points are taken from there.
    ///
    /// # Errors
    /// A trace cannot be read, or the folder cannot be written.
    pub fn of(points: Points, folder: &Path, resume: bool) -> Result<Self, EvalError> {
        files::writable_folder(&folder.join("points"))?;
        let identities = points.identities()?;
        let taken = |result: &TaskResult| resume && !result.is_skipped();
        let finished: Vec<Option<TaskResult>> =
            identities.iter().map(|identity| finished(folder, identity).filter(taken)).collect();
        let missing = (0..points.jobs.len()).filter(|&at| finished[at].is_none()).collect();
        let Points { jobs, left_out, unset, .. } = points;
        Ok(Self { jobs, left_out, missing, unset, finished, identities, folder: folder.to_owned() })
    }

    /// Leaves to others what is not of `shard`.
    pub fn take(&mut self, shard: Shard) {
        self.missing.retain(|at| shard.holds(*at));
    }

    /// Looks again for points that others have finished; whether all are there now.
    pub fn look_again(&mut self) -> bool {
        for (at, result) in self.finished.iter_mut().enumerate().filter(|(_, result)| result.is_none()) {
            *result = finished(&self.folder, &self.identities[at]);
        }
        self.finished.iter().all(Option::is_some)
    }

    /// The jobs that are missing.
    pub fn missing_jobs(&self) -> Vec<Job<Task>> {
        self.missing.iter().map(|&at| self.jobs[at].clone()).collect()
    }

    /// Runs what is missing. Every finished point is on disk before the next one of its worker starts. Why a point cannot run
    /// is told among the results.
    ///
    /// # Errors
    /// Every trace is left out, a trace cannot be read, a file cannot be written, or the user stopped; points finished so far are kept.
    pub fn run(&mut self, surveys: &Surveys, control: &Control) -> Result<(), EvalError> {
        self.has_a_trace()?;
        let jobs = self.missing_jobs();
        let results = pool::run_each(&jobs, surveys, control, |at, result| {
            let identity = &self.identities[self.missing[at]];
            let point = PointFile { identity: identity.clone(), result: TaskResult::of(result, &jobs[at].label)? };
            files::write_whole(&point_path(&self.folder, identity), files::to_json(&point).as_bytes())?;
            Ok(point.result)
        })?;
        for (at, result) in self.missing.drain(..).zip(results) {
            self.finished[at] = Some(result);
        }
        Ok(())
    }

    /// Refuses to go on with nothing at all. A plan without a point can still be shown.
    fn has_a_trace(&self) -> Result<(), EvalError> {
        match self.unset.first() {
            Some(first) if self.jobs.is_empty() => {
                Err(EvalError::NoTrace { variables: self.unset.join(" and "), first: first.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The results that there are of `shard`, without what the whole experiment asks of them.
    pub fn part(&self, shard: Shard, command: &str) -> ResultsFile {
        let here = self.finished.iter().enumerate().filter(|(at, _)| shard.holds(*at));
        let results = here.filter_map(|(at, result)| Some((&self.jobs[at], result.clone()?)));
        results_file(command, results)
    }

    /// The combined results, once every point is there.
    ///
    /// # Errors
    /// Every trace is left out, a trace cannot be read any more, or no point can run.
    ///
    /// # Panics
    /// If a point is missing (a caller's bug).
    pub fn combine(self, experiment: &ExperimentFile, command: &str) -> Result<ResultsFile, EvalError> {
        self.has_a_trace()?;
        let mut traces: Vec<TraceSummary> = Vec::new();
        for job in &self.jobs {
            let key = job.spec.survey_key();
            if traces.iter().all(|t| t.name != key.trace.name) {
                traces.push(TraceSummary::from(&key.trace.profile(key.page_bytes)?));
            }
        }
        let every =
            self.finished.into_iter().map(|result| result.expect("a sweep is combined after all its points have run"));
        let file = results_file(command, self.jobs.iter().zip(every));
        if let Some(first) = file.skipped.first().filter(|_| file.runs.is_empty() && file.hotness.is_empty()) {
            let Skipped { label, reason } = first.clone();
            return Err(EvalError::NoPoint { label, reason });
        }
        let mut description = experiment.report();
        let is_whole = self.left_out.is_empty() && file.skipped.is_empty();
        description.findings = findings::computed(&description.findings, &file.runs, is_whole)?;
        description.findings.extend(self.left_out);
        description.published = published_rows(&experiment.published, &file.runs)?;
        Ok(ResultsFile { traces, experiment: Some(description), ..file })
    }
}

/// A file of results and nothing else.
fn results_file<'a>(command: &str, results: impl Iterator<Item = (&'a Job<Task>, TaskResult)>) -> ResultsFile {
    let (mut runs, mut hotness, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (job, mut result) in results {
        // A point may have been written by another experiment that has the same one under other names.
        result.name(&job.label, &job.axes);
        match result {
            TaskResult::Run(run) => runs.push(*run),
            TaskResult::Hotness(measured) => hotness.push(*measured),
            TaskResult::Skipped(reason) => skipped.push(reason),
        }
    }
    ResultsFile {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        traces: Vec::new(),
        experiment: None,
        hotness,
        replicates: Vec::new(),
        skipped,
        runs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = r#"
        title = "A test"
        paper = "None"
        seed = 3
        [base]
        device.over_provisioning = "10%"
        [[traces]]
        label = "uniform"
        source = "synth:uniform,pages=4096,writes=20000"
        [[axes]]
        name = "victim"
        values = [{ label = "greedy", set = ["gc.victim=greedy"] }, { label = "fifo", set = ["gc.victim=fifo"] }]
        [[figures]]
        title = "WA"
        kind = "bars"
        x = "victim"
        y = "write_amplification"
    "#;

    fn experiment() -> ExperimentFile {
        ExperimentFile::parse("test.toml", EXPERIMENT).unwrap()
    }

    #[test]
    fn a_stopped_sweep_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::default();
        let mut sweep = Sweep::plan(&experiment(), folder.path(), true).unwrap();
        assert_eq!(sweep.missing, [0, 1]);
        sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &control).unwrap();
        let first = sweep.combine(&experiment(), "a command").unwrap();
        assert_eq!(first.runs.len(), 2);
        assert!(first.runs[1].write_amplification > first.runs[0].write_amplification, "FIFO loses to greedy");

        // One point lost, one torn: both run again, and the results are the same.
        let points: Vec<_> =
            std::fs::read_dir(folder.path().join("points")).unwrap().map(|p| p.unwrap().path()).collect();
        assert_eq!(points.len(), 2);
        let text = std::fs::read_to_string(&points[0]).unwrap();
        std::fs::write(&points[0], &text[..text.len() / 2]).unwrap();
        let mut again = Sweep::plan(&experiment(), folder.path(), true).unwrap();
        assert_eq!(again.missing.len(), 1);
        again.run(&Surveys::of(&again.jobs).unwrap(), &control).unwrap();
        let mut second = again.combine(&experiment(), "a command").unwrap();
        for (a, b) in second.runs.iter_mut().zip(&first.runs) {
            a.simulator_elapsed_ns = b.simulator_elapsed_ns;
            a.simulator_host_writes_per_second = b.simulator_host_writes_per_second;
        }
        assert_eq!(second, first);

        assert_eq!(Sweep::plan(&experiment(), folder.path(), false).unwrap().missing, [0, 1], "without resume all run");
    }

    #[test]
    fn a_point_that_cannot_run_is_skipped_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let small = "{ label = \"fifo\", set = [\"device.logical_size=1MiB\"] }";
        let text = EXPERIMENT.replacen("{ label = \"fifo\", set = [\"gc.victim=fifo\"] }", small, 1);
        let experiment = ExperimentFile::parse("test.toml", &text).unwrap();
        for _ in 0..2 {
            let mut sweep = Sweep::plan(&experiment, folder.path(), true).unwrap();
            assert!(sweep.missing.contains(&1), "what was skipped is tried again");
            sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &Control::default()).unwrap();
            assert_eq!(sweep.part(Shard::ALL, "a command").skipped.len(), 1);
            let results = sweep.combine(&experiment, "a command").unwrap();
            assert_eq!(results.runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>(), ["uniform, greedy"]);
            assert_eq!(results.skipped[0].label, "uniform, fifo");
            assert!(results.skipped[0].reason.contains("logical"), "{}", results.skipped[0].reason);
        }
        // Whoever finishes last finds why others have nothing.
        let mut other = Sweep::plan(&experiment, folder.path(), true).unwrap();
        assert!(other.look_again());
        assert_eq!(other.part(Shard::ALL, "a command").skipped.len(), 1);
    }

    /// The experiment with a published number whose `ours` has these members.
    fn with_published(ours: &str) -> ExperimentFile {
        let number = format!("[[published]]\nfigure = \"F\"\nwhat = \"W\"\nvalue = 2.0\nours = {{ {ours} }}");
        ExperimentFile::parse("test.toml", &format!("{EXPERIMENT}\n{number}")).unwrap()
    }

    #[test]
    fn published_numbers_stand_beside_what_the_runs_gave() {
        let folder = tempfile::tempdir().unwrap();
        let row = |ours: &str| {
            let experiment = with_published(ours);
            let mut sweep = Sweep::plan(&experiment, folder.path(), true).unwrap();
            sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &Control::default()).unwrap();
            let results = sweep.combine(&experiment, "a command").unwrap();
            (results.experiment.unwrap().published[0].clone(), results.runs)
        };
        let (of_fifo, runs) = row("y = 'write_amplification', at = { victim = 'fifo' }");
        let [greedy, fifo] = [0, 1].map(|run: usize| runs[run].write_amplification.unwrap());
        assert_eq!((of_fifo.ours, of_fifo.ratio, of_fifo.runs), (Some(fifo), Some(fifo / 2.0), 1));
        let of = |ours: &str| row(ours).0.ours.unwrap();
        let base = "relative_to = { victim = 'greedy' }";
        assert_eq!(of(&format!("y = 'write_amplification', at = {{ victim = 'fifo' }}, {base}")), fifo / greedy);
        assert_eq!(of(&format!("y = 'write_amplification', of = 'max', {base}")), fifo / greedy);
        assert_eq!(of("y = 'write_amplification', of = 'mean'"), (greedy + fifo) / 2.0);
        assert_eq!(of("y = 'gc_count', where_least = 'write_amplification'"), runs[0].gc_count as f64);
        let both = "relative_to = { victim = ['greedy', 'fifo'] }, base = 'max'";
        assert_eq!(of(&format!("y = 'write_amplification', at = {{ victim = 'greedy' }}, {both}")), greedy / fifo);
        assert_eq!(of("y = 'latency_distribution.write.0.count', of = 'min'"), {
            let first = |run: usize| runs[run].latency_distribution.write[0].count;
            first(0).min(first(1)) as f64
        });
        let series = &runs[0].series;
        let late = series.host_pages_written.iter().zip(&series.gc_count).filter(|(end, _)| **end > 10_000);
        let late: Vec<f64> = late.map(|(_, count)| *count as f64).collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let of_late = "y = 'series.gc_count', at = { victim = 'greedy' }, pages = [10000, 20000]";
        assert_eq!(of(of_late), mean);
        assert_eq!(of(&format!("{of_late}, {base}, base_pages = [10000, 20000]")), 1.0);
        assert_ne!(of(&format!("{of_late}, {base}, base_pages = [0, 10000]")), 1.0);
    }

    #[test]
    fn published_numbers_that_mean_no_run_or_several_are_refused_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let error = |ours: &str| {
            let planned = Sweep::plan(&with_published(ours), folder.path(), true).map(|_| ());
            planned.unwrap_err().to_string()
        };
        assert!(error("y = 'gc_count'").contains("2 points are meant"));
        assert!(error("y = 'gc_count', at = { victim = 'lifo' }").contains("\"lifo\" on the axis \"victim\""));
        let several = "y = 'gc_count', of = 'max', relative_to = { victim = ['greedy', 'fifo'] }";
        assert!(error(several).contains("relative_to means 2"));
        let unnamed = format!(
            "{}\n[[published]]\nfigure = \"F\"\nwhat = \"W\"\nvalue = 2.0\nours = {{ y = \"gc_count\" }}",
            EXPERIMENT.replacen("paper = \"None\"", "", 1)
        );
        assert!(ExperimentFile::parse("test.toml", &unnamed).unwrap_err().to_string().contains("of which publication"));
    }

    /// The results of the experiment with these findings, and with a trace that is not at hand where it is not whole.
    fn with_findings(findings: &str, is_whole: bool) -> Result<ResultsFile, EvalError> {
        let findings = format!("title = \"A test\"\nfindings = [{findings}]");
        let mut text = EXPERIMENT.replacen("title = \"A test\"", &findings, 1);
        if !is_whole {
            let absent =
                "[[traces]]\nlabel = \"absent\"\nsource = \"$ISOTHERM_A_VARIABLE_THAT_NOBODY_SETS/b.csv\"\n[[axes]]";
            text = text.replacen("[[axes]]", absent, 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let experiment = ExperimentFile::parse("test.toml", &text).unwrap();
        let mut sweep = Sweep::plan(&experiment, folder.path(), false).unwrap();
        sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &Control::default()).unwrap();
        sweep.combine(&experiment, "a command")
    }

    #[test]
    fn findings_are_computed_from_the_points_or_not_told() {
        let findings = r#"
            "Greedy has {write_amplification | victim=greedy}, FIFO {write_amplification | victim=fifo / write_amplification | victim=greedy} times that; {gc_count | trace=uniform} victims.",
            "A sentence without a number.","#;
        let absent = r#""There is no {gc_count | trace=absent} that is absent.","#;
        for (findings, is_whole) in [(findings.to_owned(), true), (format!("{findings}{absent}"), false)] {
            let results = with_findings(&findings, is_whole).unwrap();
            let wa: Vec<f64> = results.runs.iter().map(|run| run.write_amplification.unwrap()).collect();
            let told = &results.experiment.unwrap().findings;
            let expected = format!("Greedy has {:.2}, FIFO {:.2} times that;", wa[0], wa[1] / wa[0]);
            assert!(told[0].starts_with(&expected) && told[0].contains(" to "), "{told:?}");
            assert!(told.iter().all(|finding| !finding.contains("is absent")), "{told:?}");
            assert_eq!(told.contains(&"A sentence without a number.".to_owned()), is_whole, "{told:?}");
            assert_eq!(told.iter().any(|finding| finding.contains("2 findings are left out: ")), !is_whole, "{told:?}");
        }
    }

    #[test]
    fn a_finding_takes_what_it_needs_of_several_runs_and_of_lists() {
        let findings = r#""{victim of least write_amplification}, {victim of most write_amplification}; {in % more: most write_amplification / least write_amplification | victim=greedy or fifo}; {in % less: write_amplification | victim!=fifo / write_amplification | victim=fifo}; {mean gc_count}; {in %: mean verdict.gc_ran}; {series.gc_count[10000..20000 pages] | victim=greedy}; {victim_histogram.count[..5] | victim=greedy}; {in %: victim_histogram.count[5..] | victim=greedy / victim_histogram.count[..]}; {in us: flash_time_ns | victim=greedy}; {latency_distribution.write.0.count | victim=greedy}""#;
        let results = with_findings(findings, true).unwrap();
        let [greedy, fifo] = [0, 1].map(|run: usize| &results.runs[run]);
        let [less, more] = [greedy, fifo].map(|run| run.write_amplification.unwrap());
        let ends = greedy.series.host_pages_written.iter().zip(&greedy.series.gc_count);
        let late: Vec<u64> =
            ends.filter(|(end, _)| (10_001..=20_000).contains(*end)).map(|(_, count)| *count).collect();
        let histogram = &greedy.victim_histogram.count;
        let [first, rest] = [&histogram[..5], &histogram[5..]].map(|some| some.iter().sum::<u64>() as f64);
        let numbers = [
            (more / less - 1.0) * 100.0,
            (1.0 - less / more) * 100.0,
            (greedy.gc_count + fifo.gc_count) as f64 / 2.0,
            100.0,
            late.iter().sum::<u64>() as f64 / late.len() as f64,
            first,
            rest / (first + rest) * 100.0,
            greedy.flash_time_ns as f64 / 1000.0,
            greedy.latency_distribution.write[0].count as f64,
        ];
        let told = &results.experiment.as_ref().unwrap().findings[0];
        let mut parts = told.split("; ");
        assert_eq!(parts.next(), Some("greedy, fifo"), "{told}");
        for (part, number) in parts.by_ref().zip(numbers) {
            let part: f64 = part.parse().unwrap();
            assert!((part - number).abs() <= number.abs() * 0.005, "{part} for {number}: {told}");
        }
        assert_eq!(told.matches("; ").count(), numbers.len(), "{told}");

        let error = with_findings("\"{gc_cuont | victim=fifo}\"", true).unwrap_err().to_string();
        assert!(error.contains("the run uniform, fifo has no number at `gc_cuont`"), "{error}");
    }

    #[test]
    fn a_trace_that_has_changed_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.csv");
        let write = |first: u64| {
            let rows: String = (0..4000u64).map(|i| format!("{i},W,{},4096\n", (first + i) * 7 % 500 * 4096)).collect();
            std::fs::write(&trace, rows).unwrap();
        };
        write(0);
        let text = EXPERIMENT.replace("synth:uniform,pages=4096,writes=20000", trace.to_str().unwrap());
        let experiment = ExperimentFile::parse("test.toml", &text).unwrap();
        let mut sweep = Sweep::plan(&experiment, folder.path(), true).unwrap();
        sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &Control::default()).unwrap();
        assert!(Sweep::plan(&experiment, folder.path(), true).unwrap().missing.is_empty());
        write(1);
        assert_eq!(Sweep::plan(&experiment, folder.path(), true).unwrap().missing, [0, 1]);
    }

    #[test]
    fn a_file_of_another_specification_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let mut sweep = Sweep::plan(&experiment(), folder.path(), true).unwrap();
        sweep.run(&Surveys::of(&sweep.jobs).unwrap(), &Control::default()).unwrap();
        let (a, b) = (point_path(folder.path(), &sweep.identities[0]), point_path(folder.path(), &sweep.identities[1]));
        std::fs::copy(a, b).unwrap();
        assert_eq!(Sweep::plan(&experiment(), folder.path(), true).unwrap().missing, [1]);
    }
}
