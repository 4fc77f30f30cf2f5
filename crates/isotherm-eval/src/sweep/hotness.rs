//! The points of an experiment on hot data identification: each trace against each reference, and what checks cost.

use super::task::{TRACE_AXIS, Task};
use crate::hotness::HotnessSpec;
use crate::pool::Job;
use crate::results::{HotnessExperiment, HotnessSettings};
use crate::source::TraceSource;
use isotherm::quantity::ByteSize;
use isotherm::registry::{PolicyName, SpecError};
use serde_json::{Map, Value};

/// The axis that the references form.
const REFERENCE_AXIS: &str = "reference";
/// The one key of such an experiment that a trace may set.
const PAGE_SIZE: &str = "hotness.page_size";

/// A trace as the experiment names it.
pub(super) struct LabelledTrace<'a> {
    /// Its value on the axis `trace`.
    pub label: &'a str,
    /// Keys that it needs set.
    pub set: &'a [String],
    /// Where it is.
    pub source: TraceSource,
}

/// Looks for what the section, which stands at `place`, leaves open or names and there is not among the traces' `labels`.
pub(super) fn check(place: &str, asked: &HotnessExperiment, labels: &[&str]) -> Result<(), SpecError> {
    if asked.references.is_empty() {
        return Err(SpecError::new(place, "hotness.references is empty", "name at least one scheme, such as wdac"));
    }
    let named = asked.published.iter().map(|p| &p.trace).chain(asked.cost.iter().map(|cost| &cost.trace));
    for name in named {
        if !labels.contains(&name.as_str()) {
            let fix = format!("choose from {}", labels.join(", "));
            return Err(SpecError::new(place, format!("unknown trace \"{name}\""), fix));
        }
    }
    Ok(())
}

/// The points of one trace.
pub(super) fn jobs(asked: &HotnessExperiment, trace: &LabelledTrace<'_>) -> Result<Vec<Job<Task>>, SpecError> {
    let page_size = page_size(asked, trace)?;
    let job = |settings: HotnessSettings, what: &str| {
        let reference = settings.reference.to_string();
        let axes = [(TRACE_AXIS, trace.label), (REFERENCE_AXIS, reference.as_str())];
        Job {
            axes: axes.iter().map(|(axis, value)| ((*axis).to_owned(), Value::from(*value))).collect::<Map<_, _>>(),
            label: format!("{}, {reference}{what}", trace.label),
            spec: Task::Hotness(Box::new(HotnessSpec { trace: trace.source.clone(), settings })),
        }
    };
    let mut jobs = Vec::new();
    for (at, reference) in asked.references.iter().enumerate() {
        let settings = HotnessSettings {
            page_size,
            reference: reference.clone(),
            schemes: if at == 0 { every_scheme(asked, trace) } else { asked.schemes.clone() },
            windows: asked.windows,
            unique_unit: (at == 0).then_some(asked.unique_unit),
            cost_rounds: None,
        };
        jobs.push(job(settings, ""));
    }
    if let Some(cost) = asked.cost.as_ref().filter(|cost| cost.trace == trace.label) {
        let settings = HotnessSettings {
            page_size,
            reference: asked.references[0].clone(),
            schemes: cost.schemes.clone(),
            windows: 1,
            unique_unit: None,
            cost_rounds: Some(cost.rounds),
        };
        jobs.push(job(settings, ", costs"));
    }
    Ok(jobs)
}

/// The schemes of the comparison, then those that only the sweeps and the published numbers of this trace need.
fn every_scheme(asked: &HotnessExperiment, trace: &LabelledTrace<'_>) -> Vec<PolicyName> {
    let mut schemes = asked.schemes.clone();
    let points = asked.sweeps.iter().flat_map(|sweep| &sweep.series).flat_map(|series| &series.points);
    let published = asked.published.iter().filter(|p| !p.measure.is_cost() && p.trace == trace.label);
    for scheme in points.map(|point| &point.scheme).chain(published.flat_map(|p| [&p.scheme, &p.against])) {
        if !schemes.contains(scheme) {
            schemes.push(scheme.clone());
        }
    }
    schemes
}

fn page_size(asked: &HotnessExperiment, trace: &LabelledTrace<'_>) -> Result<ByteSize, SpecError> {
    let mut page_size = asked.page_size;
    for set in trace.set {
        let value = set.split_once('=').filter(|(key, _)| *key == PAGE_SIZE).map(|(_, value)| value);
        let fix = format!("a trace of [hotness] sets {PAGE_SIZE} alone, such as {PAGE_SIZE}=512B");
        let value = value.ok_or_else(|| SpecError::new(set.as_str(), "no such key", fix))?;
        page_size =
            value.parse().map_err(|problem: String| SpecError::new(set.as_str(), problem, "write it as 4KiB"))?;
    }
    Ok(page_size)
}
