//! A run as a job of the pool.

use super::prepare::needs_touched;
use super::{Prepared, RunSpec, needs_survey, prepare};
use crate::control::Control;
use crate::error::EvalError;
use crate::pool::{Named, Ready, Work};
use crate::results::RunResult;
use crate::source::{Survey, SurveyKey};
use serde_json::{Map, Value};

impl Work for RunSpec {
    type Result = RunResult;

    fn survey_key(&self) -> SurveyKey {
        let page_bytes = self.device.device.page_size.0;
        SurveyKey { trace: self.trace.clone(), page_bytes, touched: needs_touched(self) }
    }

    fn needs_survey(&self) -> bool {
        needs_survey(self)
    }

    fn pages(&self, survey: &Survey) -> u64 {
        survey.page_writes * u64::from(self.replay.repeat)
    }

    fn prepare<'a>(&'a self, survey: Option<&Survey>) -> Result<Box<dyn Ready<RunResult> + 'a>, EvalError> {
        Ok(Box::new(prepare(self, survey)?))
    }
}

impl Ready<RunResult> for Prepared<'_> {
    fn memory_bytes(&self) -> u64 {
        Prepared::memory_bytes(self)
    }

    fn run(&self, control: &Control) -> Result<RunResult, EvalError> {
        Prepared::run(self, control)
    }
}

impl Named for RunResult {
    fn name(&mut self, label: &str, axes: &Map<String, Value>) {
        label.clone_into(&mut self.label);
        self.axes.clone_from(axes);
    }
}
