//! The points of a sweep, each of which can be run anywhere: a point is a pure function of its identity.
//!
//! Whoever hands points to workers that share no memory plans the same experiment on both sides, and compares identities: a
//! worker with another program or another trace under the same name is found out before it runs.

use super::identity::{Ground, Hash};
use super::task::{Task, TaskResult};
use super::{ExperimentFile, PointFile, findings};
use crate::control::Control;
use crate::error::EvalError;
use crate::files;
use crate::pool::{self, Job, Surveys, Work as _};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What points depend on beside their experiment.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The file that stands for the program; the one that runs where none is named.
    pub program: Option<PathBuf>,
    /// Files to read in place of what traces are named after, by the name.
    pub copies: BTreeMap<String, String>,
    /// Stops what reads traces.
    pub control: Option<Arc<Control>>,
}

/// See the module's text.
pub struct Points {
    /// The points, in the order of the experiment's axes.
    pub jobs: Vec<Job<Task>>,
    /// Traces that were left out, and why.
    pub left_out: Vec<String>,
    /// The variables that would name the folders of these.
    pub(super) unset: Vec<String>,
    ground: Ground,
    surveys: Mutex<Surveys>,
}

impl Points {
    /// The points of `experiment`.
    ///
    /// # Errors
    /// The experiment asks for what does not exist, or the program's file cannot be read.
    pub fn of(experiment: &ExperimentFile, origin: &Origin) -> Result<Self, EvalError> {
        let (mut jobs, left_out) = experiment.jobs()?;
        let axes: Vec<_> = jobs.iter().map(|job| &job.axes).collect();
        experiment.figures.iter().try_for_each(|figure| figure.check(&axes))?;
        let labels: Vec<&str> = experiment.traces.iter().map(|trace| trace.label.as_str()).collect();
        experiment.published.iter().try_for_each(|number| number.check(&axes, &labels))?;
        experiment.findings.iter().try_for_each(|finding| findings::check(finding, &axes, &labels))?;
        for job in &mut jobs {
            job.spec.with_trace(|trace| {
                let copy = origin.copies.get(&trace.name).cloned();
                let trace = copy.into_iter().fold(trace, |trace, path| trace.at(&path));
                origin.control.iter().cloned().fold(trace, |trace, control| trace.watched(control))
            });
        }
        let ground = Ground::new(origin.program.as_deref())?;
        let unset = experiment.unset_variables();
        Ok(Self { jobs, left_out, unset, ground, surveys: Mutex::default() })
    }

    /// Names of the traces that are read, each once.
    pub fn traces(&self) -> Vec<String> {
        let mut names: Vec<String> = self.jobs.iter().map(|job| job.spec.trace().name.clone()).collect();
        names.dedup();
        names
    }

    /// Everything that determines the result of point `at`.
    ///
    /// # Errors
    /// Its trace cannot be read.
    pub fn identity(&self, at: usize) -> Result<String, EvalError> {
        self.ground.identity(&self.jobs[at].spec)
    }

    /// The identities of all points.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub(super) fn identities(&self) -> Result<Vec<String>, EvalError> {
        (0..self.jobs.len()).map(|at| self.identity(at)).collect()
    }

    /// The name of the file of a point.
    pub fn file_name(identity: &str) -> String {
        format!("{:016x}.json", Hash::of(identity).0)
    }

    /// Runs point `at`; the text of its file, which says why if the point cannot run. Points of one trace share what was found out about it.
    ///
    /// # Errors
    /// What concerns more than this point ([`EvalError::concerns_all`]), or the user stopped.
    pub fn run(&self, at: usize, control: &Control) -> Result<String, EvalError> {
        let job = std::slice::from_ref(&self.jobs[at]);
        let mut surveys = self.surveys.lock().unwrap_or_else(PoisonError::into_inner);
        if job[0].spec.needs_survey() && surveys.get(&job[0].spec).is_none() {
            surveys.join(Surveys::of(job)?);
        }
        let results = pool::run_each(job, &surveys, control, |_, result| TaskResult::of(result, &job[0].label))?;
        let result = results.into_iter().next().expect("a job has a result");
        Ok(files::to_json(&PointFile { identity: self.identity(at)?, result }))
    }
}
