//! What an experiment on hot data identification found: the measurements of a results file, put in order by trace, with
//! the sweeps and the published numbers that the experiment asks for.

use isotherm_eval::results::{
    Experiment, HotnessExperiment, HotnessResult, HotnessSweep, PublishedChange, SchemeAgreement,
};

/// What an experiment found.
pub(crate) struct Findings<'a> {
    /// What was asked.
    pub asked: &'a HotnessExperiment,
    /// One for each trace that was there.
    pub traces: Vec<TraceFindings<'a>>,
    /// The measurement of costs, where there is one.
    pub costs: Option<&'a HotnessResult>,
}

/// What one trace showed.
pub(crate) struct TraceFindings<'a> {
    /// Its label.
    pub name: &'a str,
    /// What it is.
    pub summary: &'a str,
    /// The measurements, by reference in the order of the experiment.
    pub agreements: Vec<&'a HotnessResult>,
}

/// One point of a line.
pub(crate) struct PointFound {
    /// Value of what is varied.
    pub x: f64,
    /// The value there; absent where it was not measured.
    pub y: Option<f64>,
}

impl<'a> Findings<'a> {
    /// Puts the measurements in order.
    pub(crate) fn of(experiment: &'a Experiment, asked: &'a HotnessExperiment, results: &'a [HotnessResult]) -> Self {
        let mut traces: Vec<TraceFindings<'a>> = Vec::new();
        for result in results.iter().filter(|result| result.spec.cost_rounds.is_none()) {
            let name = label_of(result);
            match traces.iter_mut().find(|trace| trace.name == name) {
                Some(trace) => trace.agreements.push(result),
                None => {
                    let note = experiment.traces.iter().find(|note| note.label == name);
                    let summary = note.map_or("", |note| note.summary.as_str());
                    traces.push(TraceFindings { name, summary, agreements: vec![result] });
                }
            }
        }
        let costs = results.iter().find(|result| result.spec.cost_rounds.is_some());
        Self { asked, traces, costs }
    }

    /// The published numbers, verdicts before costs, each with ours where it was measured.
    pub(crate) fn published(&self) -> Vec<(&'a PublishedChange, Option<f64>)> {
        let (costs, verdicts): (Vec<_>, Vec<_>) = self.asked.published.iter().partition(|p| p.measure.is_cost());
        let ours = |published: &PublishedChange| {
            let result = match published.measure.is_cost() {
                true => self.costs.filter(|costs| label_of(costs) == published.trace)?,
                false => self.traces.iter().find(|trace| trace.name == published.trace)?.agreements.first()?,
            };
            let ours = published.measure.of(result, &published.scheme)?;
            let against = published.measure.of(result, &published.against)?;
            (against > 0.0).then(|| ours / against - 1.0)
        };
        let costs = costs.into_iter().filter(|_| self.costs.is_some());
        verdicts.into_iter().chain(costs).map(|published| (published, ours(published))).collect()
    }
}

impl<'a> TraceFindings<'a> {
    /// The measurement against the first reference.
    pub(crate) fn main(&self) -> &'a HotnessResult {
        self.agreements[0]
    }

    /// The lines of a sweep, by name.
    pub(crate) fn sweep(&self, sweep: &'a HotnessSweep) -> Vec<(&'a str, Vec<PointFound>)> {
        let found = |series: &'a isotherm_eval::results::HotnessSeries| {
            let points = series.points.iter();
            let y = |scheme| sweep.measure.of(self.main(), scheme);
            (series.name.as_str(), points.map(|point| PointFound { x: point.x, y: y(&point.scheme) }).collect())
        };
        sweep.series.iter().map(found).collect()
    }
}

/// The label of the trace that was measured.
fn label_of(result: &HotnessResult) -> &str {
    result.axes.get("trace").and_then(|label| label.as_str()).unwrap_or(&result.trace)
}

/// Those schemes of a measurement that the experiment compares; the others belong to sweeps.
pub(crate) fn compared<'a>(asked: &HotnessExperiment, result: &'a HotnessResult) -> &'a [SchemeAgreement] {
    &result.schemes[..asked.schemes.len().min(result.schemes.len())]
}
