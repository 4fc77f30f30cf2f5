//! A measurement as a job of the pool: the writes of one trace, judged by several schemes against one reference.
//!
//! All schemes run in one pass. Where costs are asked for, each scheme runs alone instead, in rounds of which the best time
//! counts, because schemes side by side take each other's cache.

use std::sync::Arc;
use std::time::Instant;

use isotherm::future::Future;
use isotherm::hotness::{Hotness, HotnessContext, build_scheme};
use isotherm::registry::SpecError;
use serde_json::{Map, Value};

use super::{Counts, Measurement, PageWrites, Plan, SchemeResult, measure, unique_pages};
use crate::control::Control;
use crate::error::EvalError;
use crate::memory;
use crate::pool::{Named, Ready, Work};
use crate::results::{HotnessResult, HotnessSettings, SchemeAgreement};
use crate::source::{Survey, SurveyKey, TraceSource};

/// Everything that determines a measurement.
#[derive(Clone, Debug)]
pub struct HotnessSpec {
    /// The trace.
    pub trace: TraceSource,
    /// What is measured.
    pub settings: HotnessSettings,
}

/// A measurement that is ready to start.
struct Prepared<'a> {
    spec: &'a HotnessSpec,
    memory_bytes: u64,
}

impl Work for HotnessSpec {
    type Result = HotnessResult;

    fn survey_key(&self) -> SurveyKey {
        SurveyKey { trace: self.trace.clone(), page_bytes: self.settings.page_size.0, touched: false }
    }

    fn needs_survey(&self) -> bool {
        true
    }

    fn pages(&self, survey: &Survey) -> u64 {
        let passes =
            self.settings.cost_rounds.map_or(1, |rounds| u64::from(rounds) * self.settings.schemes.len() as u64);
        survey.page_writes * passes
    }

    fn prepare<'a>(&'a self, survey: Option<&Survey>) -> Result<Box<dyn Ready<HotnessResult> + 'a>, EvalError> {
        let settings = &self.settings;
        if settings.windows == 0 || settings.unique_unit == Some(0) || settings.cost_rounds == Some(0) {
            let problem = "windows, unique_unit or cost.rounds is 0";
            return Err(SpecError::new("hotness", problem, "allowed: 1 and more").into());
        }
        if settings.schemes.is_empty() {
            return Err(SpecError::new("hotness.schemes", "no scheme is given", "name at least one").into());
        }
        let (writes, span_bytes) = survey.map_or((0, 0), |survey| (survey.page_writes, survey.span_bytes));
        let logical_pages = u32::try_from(span_bytes.div_ceil(settings.page_size.0)).unwrap_or(u32::MAX);
        // The writes, and when each page is written next.
        let memory_bytes = 2 * 4 * writes + 4 * u64::from(logical_pages);
        let what = format!("judging the writes of {}", self.trace.name);
        memory::admit(&what, memory_bytes, "give a shorter trace, or a larger page size")?;
        // Schemes are built for a moment, so that a wrong one is refused now and their memory is known.
        let context = HotnessContext { logical_pages, future: Some(Arc::new(Future::of(&[], 0))) };
        let mut schemes_bytes = 0;
        for name in settings.schemes.iter().chain([&settings.reference]) {
            schemes_bytes += build_scheme(name, &context)?.memory_bytes();
        }
        Ok(Box::new(Prepared { spec: self, memory_bytes: memory_bytes + schemes_bytes }))
    }
}

impl Ready<HotnessResult> for Prepared<'_> {
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn is_timed(&self) -> bool {
        self.spec.settings.cost_rounds.is_some()
    }

    fn run(&self, control: &Control) -> Result<HotnessResult, EvalError> {
        let HotnessSpec { trace, settings } = self.spec;
        let began = Instant::now();
        let writes = PageWrites::read(trace, settings.page_size)?;
        let window_writes = (writes.lpns.len() as u64).div_ceil(settings.windows);
        let plan = Plan {
            schemes: settings.schemes.clone(),
            reference: settings.reference.clone(),
            window_writes: Some(window_writes),
        };
        let measurement = match settings.cost_rounds {
            Some(rounds) => measure_alone(&writes, &plan, rounds, control)?,
            None => measure(&writes, &plan, control)?,
        };
        let first = &measurement.schemes[0];
        let agreement = |scheme| SchemeAgreement::of(scheme, settings.cost_rounds.is_some());
        Ok(HotnessResult {
            label: String::new(),
            axes: Map::new(),
            trace: trace.name.clone(),
            spec: settings.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            writes: measurement.writes,
            logical_pages: writes.logical_pages.into(),
            window_writes,
            unique_pages: settings.unique_unit.map_or_else(Vec::new, |unit| unique_pages(&writes, unit as usize)),
            reference_hot_ratio: first.total.reference_hot_ratio(),
            reference_hot_ratio_by_window: first.windows.iter().map(Counts::reference_hot_ratio).collect(),
            schemes: measurement.schemes.iter().map(agreement).collect(),
            simulator_elapsed_ns: began.elapsed().as_nanos() as u64,
        })
    }
}

/// Each scheme of `plan` alone, `rounds` times in turn; the best times count.
fn measure_alone(writes: &PageWrites, plan: &Plan, rounds: u32, control: &Control) -> Result<Measurement, EvalError> {
    let mut best: Vec<SchemeResult> = Vec::new();
    for _ in 0..rounds {
        for (at, scheme) in plan.schemes.iter().enumerate() {
            let alone = Plan { schemes: vec![scheme.clone()], ..plan.clone() };
            let found = measure(writes, &alone, control)?.schemes.remove(0);
            match best.get_mut(at) {
                None => best.push(found),
                Some(best) => {
                    best.ns_per_check = best.ns_per_check.min(found.ns_per_check);
                    best.ns_per_decay = best.ns_per_decay.zip(found.ns_per_decay).map(|(a, b)| a.min(b));
                }
            }
        }
    }
    Ok(Measurement { writes: writes.lpns.len() as u64, reference: plan.reference.clone(), schemes: best })
}

impl SchemeAgreement {
    fn of(result: &SchemeResult, with_cost: bool) -> Self {
        let total = &result.total;
        Self {
            name: result.name.to_string(),
            memory_bytes: result.memory_bytes,
            hot_ratio: total.hot_ratio(),
            false_identification_rate: total.false_identification_rate(),
            false_hot_rate: total.false_hot_rate(),
            false_cold_rate: total.false_cold_rate(),
            precision: total.precision(),
            recall: total.recall(),
            hot_ratio_by_window: result.windows.iter().map(Counts::hot_ratio).collect(),
            false_identification_rate_by_window: result.windows.iter().map(Counts::false_identification_rate).collect(),
            simulator_ns_per_check: with_cost.then_some(result.ns_per_check),
            simulator_ns_per_decay: result.ns_per_decay.filter(|_| with_cost),
        }
    }
}

impl Named for HotnessResult {
    fn name(&mut self, label: &str, axes: &Map<String, Value>) {
        label.clone_into(&mut self.label);
        self.axes.clone_from(axes);
    }
}
