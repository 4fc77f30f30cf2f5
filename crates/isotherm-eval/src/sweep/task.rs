//! The kinds of points that a sweep has, and what identifies them.

use crate::control::Control;
use crate::error::EvalError;
use crate::hotness::HotnessSpec;
use crate::pool::{Named, Ready, Work};
use crate::results::{HotnessResult, RunResult, Skipped};
use crate::run::RunSpec;
use crate::source::{Survey, SurveyKey, TraceSource};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The axis that the traces of an experiment form.
pub(super) const TRACE_AXIS: &str = "trace";

/// What a point asks.
#[derive(Clone, Debug)]
pub enum Task {
    /// A trace on a device.
    Run(Box<RunSpec>),
    /// Hot data identification over the writes of a trace.
    Hotness(Box<HotnessSpec>),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskResult {
    /// A run.
    Run(Box<RunResult>),
    /// A measurement.
    Hotness(Box<HotnessResult>),
    /// Why there is neither.
    Skipped(Skipped),
}

impl TaskResult {
    /// What is kept of a task that may have failed.
    ///
    /// # Errors
    /// What went wrong concerns more than this task.
    pub(super) fn of(result: Result<Self, EvalError>, label: &str) -> Result<Self, EvalError> {
        match result {
            Err(problem) if problem.concerns_all() => Err(problem),
            Err(problem) => Ok(Self::Skipped(Skipped { label: label.to_owned(), reason: problem.to_string() })),
            result => result,
        }
    }

    pub(super) fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }
}

impl Task {
    /// Reads its trace as `change` says.
    pub(super) fn with_trace(&mut self, change: impl FnOnce(TraceSource) -> TraceSource) {
        let trace = match self {
            Self::Run(spec) => &mut spec.trace,
            Self::Hotness(spec) => &mut spec.trace,
        };
        *trace = change(trace.clone());
    }

    /// The trace that it reads.
    pub(super) fn trace(&self) -> &TraceSource {
        match self {
            Self::Run(spec) => &spec.trace,
            Self::Hotness(spec) => &spec.trace,
        }
    }

    /// What is asked of it, as text: specification, replay and seed, or what is measured.
    pub(super) fn settings(&self) -> String {
        match self {
            Self::Run(spec) => {
                let replay = serde_json::to_string(&spec.replay).expect("a replay has string keys");
                format!("seed {}\nreplay {replay}\n{}", spec.seed, spec.device.to_toml())
            }
            Self::Hotness(spec) => {
                let settings = serde_json::to_string(&spec.settings).expect("settings have string keys");
                format!("hotness {settings}\n")
            }
        }
    }
}

/// A task of one kind, with its result as one of any.
struct Of<'a, R>(Box<dyn Ready<R> + 'a>, fn(Box<R>) -> TaskResult);

impl<R> Ready<TaskResult> for Of<'_, R> {
    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    fn is_timed(&self) -> bool {
        self.0.is_timed()
    }

    fn run(&self, control: &Control) -> Result<TaskResult, EvalError> {
        Ok(self.1(Box::new(self.0.run(control)?)))
    }
}

impl Work for Task {
    type Result = TaskResult;

    fn survey_key(&self) -> SurveyKey {
        match self {
            Self::Run(spec) => spec.survey_key(),
            Self::Hotness(spec) => spec.survey_key(),
        }
    }

    fn needs_survey(&self) -> bool {
        match self {
            Self::Run(spec) => spec.needs_survey(),
            Self::Hotness(spec) => spec.needs_survey(),
        }
    }

    fn pages(&self, survey: &Survey) -> u64 {
        match self {
            Self::Run(spec) => spec.pages(survey),
            Self::Hotness(spec) => spec.pages(survey),
        }
    }

    fn prepare<'a>(&'a self, survey: Option<&Survey>) -> Result<Box<dyn Ready<TaskResult> + 'a>, EvalError> {
        Ok(match self {
            Self::Run(spec) => Box::new(Of(spec.prepare(survey)?, TaskResult::Run)),
            Self::Hotness(spec) => Box::new(Of(spec.prepare(survey)?, TaskResult::Hotness)),
        })
    }
}

impl Named for TaskResult {
    fn name(&mut self, label: &str, axes: &Map<String, Value>) {
        match self {
            Self::Run(run) => run.name(label, axes),
            Self::Hotness(measured) => measured.name(label, axes),
            Self::Skipped(skipped) => label.clone_into(&mut skipped.label),
        }
    }
}
