//! A described experiment: traces, schemes, sweeps of parameters, costs, and the published numbers beside ours.
//!
//! The description is a TOML file (`experiments/mbf.toml`); everything that the results depend on is in it, but for the
//! directory in which the traces lie. All schemes that one trace needs, those of the sweeps included, run in one pass
//! for each reference. Costs are measured apart, each scheme alone, because they are the only figures that differ from
//! run to run: results and costs go to different files.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use isotherm::quantity::ByteSize;
use isotherm::registry::{PolicyName, SpecError};
use isotherm_trace::TimeUnit;

use super::findings::{
    Agreement, Comparison, CostFindings, Findings, PointFindings, SeriesFindings, Skipped, SweepFindings, TraceFindings,
};
use super::{HotnessError, Measurement, PageWrites, Plan, measure, unique_pages};
use crate::source::TraceSource;

/// The description of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Title of the results.
    pub title: String,
    /// What is reproduced.
    pub paper: String,
    /// Page size of all traces.
    pub page_size: ByteSize,
    /// Schemes of the comparison, with the paper's parameters.
    pub schemes: Vec<PolicyName>,
    /// The reference of the comparison and of the sweeps.
    pub reference: PolicyName,
    /// More references to hold the same schemes against.
    #[serde(default)]
    pub other_references: Vec<PolicyName>,
    /// Windows that each trace is cut into for the figures over time; at least 1.
    pub windows: u64,
    /// Writes of each unit of the count of unique pages; at least 1.
    pub unique_unit: usize,
    /// Where the writes come from.
    #[serde(rename = "trace")]
    pub traces: Vec<TraceSpec>,
    /// One parameter after the other.
    #[serde(rename = "sweep", default)]
    pub sweeps: Vec<Sweep>,
    /// What a check and an aging step cost.
    pub cost: Option<Cost>,
    /// The paper's numbers.
    #[serde(rename = "published", default)]
    pub published: Vec<Published>,
}

/// One workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Short name in the results.
    pub name: String,
    /// What [`isotherm_trace::open`] takes; `{traces}` stands for the directory of traces.
    pub source: String,
    /// Page size, if not that of the experiment.
    pub page_size: Option<ByteSize>,
    /// Unit of its times, where the format does not say.
    #[serde(default, deserialize_with = "time_unit")]
    pub time_unit: Option<TimeUnit>,
    /// What it is.
    pub summary: String,
}

/// A parameter over its range.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Short name in the results.
    pub name: String,
    /// Figure of the paper.
    pub figure: String,
    /// What is varied, with its unit.
    pub x: String,
    /// What is looked at.
    pub measure: Measure,
    /// What is seen, and why.
    pub note: String,
    /// The lines of the figure.
    pub series: Vec<Series>,
}

/// One line of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// One point of a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Value of what is varied.
    pub x: f64,
    /// The scheme there.
    pub scheme: PolicyName,
}

/// A number of a scheme on a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Share of writes judged differently from the reference.
    FalseIdentificationRate,
    /// Share of writes judged hot.
    HotRatio,
    /// Time of a verdict.
    NsPerCheck,
    /// Time of an aging step.
    NsPerDecay,
}

/// Which costs to measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Name of the trace.
    pub trace: String,
    /// Each scheme runs alone, in turn, so many times; the best time counts.
    pub rounds: u32,
    /// The schemes.
    pub schemes: Vec<PolicyName>,
}

/// A published change of a number, from `against` to `scheme`, and what we have to say about ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Figure of the paper.
    pub figure: String,
    /// What was published.
    pub claim: String,
    /// Our nearest workload.
    pub trace: String,
    /// The number.
    pub measure: Measure,
    /// The scheme that changes it.
    pub scheme: PolicyName,
    /// What it is compared with.
    pub against: PolicyName,
    /// The published relative change: -0.41 is 41 % less.
    pub change: f64,
    /// Why ours differs.
    pub difference: String,
}

impl Experiment {
    /// Reads a description; `file` names it in errors.
    ///
    /// # Errors
    /// No TOML, an unknown or missing key, or a name that occurs nowhere.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, SpecError> {
        let experiment: Self =
            toml::from_str(text).map_err(|e| SpecError::new(file, e.to_string(), "correct it as the message says"))?;
        if experiment.windows == 0 || experiment.unique_unit == 0 {
            return Err(SpecError::new(file, "windows and unique_unit may not be 0", "allowed: 1 and more"));
        }
        let known: Vec<_> = experiment.traces.iter().map(|trace| trace.name.as_str()).collect();
        let named = experiment.published.iter().map(|p| &p.trace).chain(experiment.cost.iter().map(|cost| &cost.trace));
        for name in named {
            if !known.contains(&name.as_str()) {
                return Err(SpecError::new(
                    file,
                    format!("unknown trace \"{name}\""),
                    format!("choose from {}", known.join(", ")),
                ));
            }
        }
        Ok(experiment)
    }

    /// Runs everything but the costs. Files are looked for in `trace_directory`; one that is not there is skipped and
    /// said so. `progress` hears the name of each trace before it runs.
    ///
    /// # Errors
    /// A trace cannot be read, or a scheme is specified wrongly.
    pub fn run(&self, trace_directory: &Path, progress: &mut dyn FnMut(&str)) -> Result<Findings, HotnessError> {
        let (mut traces, mut skipped) = (Vec::new(), Vec::new());
        let mut changes: Vec<Option<f64>> = vec![None; self.published.len()];
        for trace in &self.traces {
            let source = match locate(trace, trace_directory) {
                Ok(source) => source,
                Err(reason) => {
                    skipped.push(Skipped { trace: trace.name.clone(), reason });
                    continue;
                }
            };
            progress(&trace.name);
            let writes = self.read(trace, &source)?;
            let (findings, all_schemes) = self.run_trace(trace, &writes)?;
            for (change, published) in changes.iter_mut().zip(&self.published) {
                if published.trace == trace.name && published.measure.is_about_verdicts() {
                    *change = published.change_in(&all_schemes);
                }
            }
            traces.push(findings);
        }
        let about_verdicts = self.published.iter().zip(changes).filter(|(p, _)| p.measure.is_about_verdicts());
        Ok(Findings {
            title: self.title.clone(),
            paper: self.paper.clone(),
            reference: self.reference.to_string(),
            unique_unit_writes: self.unique_unit,
            traces,
            skipped,
            published: about_verdicts.map(|(published, change)| published.beside(change)).collect(),
        })
    }

    fn read(&self, trace: &TraceSpec, source: &str) -> Result<PageWrites, HotnessError> {
        let mut source = TraceSource::new(source);
        source.options.time_unit = trace.time_unit;
        PageWrites::read(&source, trace.page_size.unwrap_or(self.page_size))
    }

    /// One trace against the reference (with everything that the sweeps and published numbers need), then the others.
    fn run_trace(&self, trace: &TraceSpec, writes: &PageWrites) -> Result<(TraceFindings, Measurement), SpecError> {
        let mut schemes = self.schemes.clone();
        let swept =
            self.sweeps.iter().flat_map(|sweep| &sweep.series).flat_map(|series| &series.points).map(|p| &p.scheme);
        let published = self.published.iter().filter(|p| p.measure.is_about_verdicts() && p.trace == trace.name);
        for scheme in swept.chain(published.flat_map(|p| [&p.scheme, &p.against])) {
            if !schemes.contains(scheme) {
                schemes.push(scheme.clone());
            }
        }
        let window_writes = (writes.lpns.len() as u64).div_ceil(self.windows);
        let plan = |schemes, reference: &PolicyName| Plan {
            schemes,
            reference: reference.clone(),
            window_writes: Some(window_writes),
        };
        let main = measure(writes, &plan(schemes, &self.reference))?;
        let mut agreements = vec![Agreement::of(&main, self.schemes.len(), window_writes)];
        for reference in &self.other_references {
            let other = measure(writes, &plan(self.schemes.clone(), reference))?;
            agreements.push(Agreement::of(&other, self.schemes.len(), window_writes));
        }
        let findings = TraceFindings {
            name: trace.name.clone(),
            summary: trace.summary.clone(),
            writes: main.writes,
            logical_pages: writes.logical_pages,
            page_bytes: writes.page_bytes,
            unique_pages: unique_pages(writes, self.unique_unit),
            agreements,
            sweeps: self.sweeps.iter().map(|sweep| sweep.found(&main)).collect(),
        };
        Ok((findings, main))
    }

    /// Measures the costs, each scheme alone. `None` if the description asks for none or its trace is not there.
    ///
    /// # Errors
    /// The trace cannot be read, or a scheme is specified wrongly.
    pub fn run_costs(&self, trace_directory: &Path) -> Result<Option<CostFindings>, HotnessError> {
        let Some(cost) = &self.cost else { return Ok(None) };
        let trace = self.traces.iter().find(|trace| trace.name == cost.trace);
        let trace = trace.expect("checked when the description was read");
        let Ok(source) = locate(trace, trace_directory) else { return Ok(None) };
        let writes = self.read(trace, &source)?;
        let mut best: Option<Measurement> = None;
        for _ in 0..cost.rounds.max(1) {
            let mut round: Option<Measurement> = None;
            for scheme in &cost.schemes {
                let plan =
                    Plan { schemes: vec![scheme.clone()], reference: self.reference.clone(), window_writes: None };
                let alone = measure(&writes, &plan)?;
                match &mut round {
                    None => round = Some(alone),
                    Some(round) => round.schemes.extend(alone.schemes),
                }
            }
            match (&mut best, round) {
                (Some(best), Some(round)) => keep_best(best, &round),
                (best, round) => *best = round,
            }
        }
        let best = best.expect("at least one round");
        let about_costs = self.published.iter().filter(|p| !p.measure.is_about_verdicts());
        Ok(Some(CostFindings {
            trace: cost.trace.clone(),
            schemes: best.schemes.iter().map(Into::into).collect(),
            published: about_costs.map(|published| published.beside(published.change_in(&best))).collect(),
        }))
    }
}

impl Measure {
    fn is_about_verdicts(self) -> bool {
        matches!(self, Self::FalseIdentificationRate | Self::HotRatio)
    }

    /// The number of `scheme`, if it was measured.
    fn of(self, measurement: &Measurement, scheme: &PolicyName) -> Option<f64> {
        let result = measurement.schemes.iter().find(|result| result.name == *scheme)?;
        match self {
            Self::FalseIdentificationRate => Some(result.total.false_identification_rate()),
            Self::HotRatio => Some(result.total.hot_ratio()),
            Self::NsPerCheck => Some(result.ns_per_check),
            Self::NsPerDecay => result.ns_per_decay,
        }
    }
}

impl Published {
    fn change_in(&self, measurement: &Measurement) -> Option<f64> {
        let ours = self.measure.of(measurement, &self.scheme)?;
        let against = self.measure.of(measurement, &self.against)?;
        (against > 0.0).then(|| ours / against - 1.0)
    }

    fn beside(&self, our_change: Option<f64>) -> Comparison {
        Comparison {
            figure: self.figure.clone(),
            claim: self.claim.clone(),
            trace: self.trace.clone(),
            published_change: self.change,
            our_change,
            difference: self.difference.clone(),
        }
    }
}

impl Sweep {
    fn found(&self, measurement: &Measurement) -> SweepFindings {
        let point = |point: &Point| {
            let result = measurement.schemes.iter().find(|result| result.name == point.scheme);
            let y = self.measure.of(measurement, &point.scheme);
            PointFindings {
                x: point.x,
                y: y.expect("every scheme of a sweep is measured"),
                scheme: point.scheme.to_string(),
                memory_bytes: result.expect("every scheme of a sweep is measured").memory_bytes,
            }
        };
        let series = |series: &Series| SeriesFindings {
            name: series.name.clone(),
            points: series.points.iter().map(point).collect(),
        };
        SweepFindings {
            name: self.name.clone(),
            figure: self.figure.clone(),
            x: self.x.clone(),
            note: self.note.clone(),
            measure: self.measure,
            series: self.series.iter().map(series).collect(),
        }
    }
}

/// A time unit as the command line spells it.
fn time_unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TimeUnit>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The source of a trace with the directory put in; the file that is missing there if one is.
fn locate(trace: &TraceSpec, directory: &Path) -> Result<String, String> {
    const DIRECTORY: &str = "{traces}/";
    if let Some(at) = trace.source.find(DIRECTORY) {
        let file = trace.source[at + DIRECTORY.len()..].split(',').next().unwrap_or_default();
        if !directory.join(file).is_file() {
            return Err(format!("{file} is not in {}", directory.display()));
        }
    }
    Ok(trace.source.replace(DIRECTORY, &format!("{}/", directory.display())))
}

/// Keeps the smaller of the times.
fn keep_best(best: &mut Measurement, round: &Measurement) {
    for (best, round) in best.schemes.iter_mut().zip(&round.schemes) {
        best.ns_per_check = best.ns_per_check.min(round.ns_per_check);
        best.ns_per_decay = best.ns_per_decay.zip(round.ns_per_decay).map(|(a, b)| a.min(b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = include_str!("../../../../experiments/mbf.toml");

    /// The checked-in description on two small synthetic traces, so that every scheme of every sweep is built.
    fn small() -> Experiment {
        let mut experiment = Experiment::from_toml("experiments/mbf.toml", PUBLISHED).unwrap();
        experiment.traces.retain(|trace| ["zipf-1.2", "uniform"].contains(&trace.name.as_str()));
        for trace in &mut experiment.traces {
            trace.source = trace.source.replace("writes=1M", "writes=20k").replace("pages=256Ki", "pages=16Ki");
        }
        experiment
    }

    #[test]
    fn the_checked_in_experiment_runs_and_gives_the_same_twice() {
        let run = || small().run(Path::new("nowhere"), &mut |_| ()).unwrap();
        let findings = run();
        assert_eq!(findings.traces.len(), 2);
        assert_eq!(serde_json::to_string(&findings).unwrap(), serde_json::to_string(&run()).unwrap());
    }

    #[test]
    fn a_larger_window_makes_more_writes_hot() {
        let findings = small().run(Path::new("nowhere"), &mut |_| ()).unwrap();
        let window = findings.traces[0].sweeps.iter().find(|sweep| sweep.name == "window").unwrap();
        for series in &window.series {
            assert!(series.points.windows(2).all(|pair| pair[0].y < pair[1].y), "{}", series.name);
        }
    }

    #[test]
    fn traces_that_are_not_there_are_skipped_and_named() {
        let mut experiment = Experiment::from_toml("experiments/mbf.toml", PUBLISHED).unwrap();
        experiment.traces.retain(|trace| trace.source.starts_with("{traces}"));
        let findings = experiment.run(Path::new("nowhere"), &mut |_| ()).unwrap();
        assert_eq!(findings.skipped.len(), experiment.traces.len());
        assert!(findings.skipped[0].reason.contains("is not in nowhere"), "{}", findings.skipped[0].reason);
        assert!(findings.published.iter().all(|comparison| comparison.our_change.is_none()));
    }

    #[test]
    fn descriptions_with_unknown_keys_or_traces_are_refused() {
        let wrong = PUBLISHED.replacen("trace = \"financial1-head\"", "trace = \"nobody\"", 1);
        let error = Experiment::from_toml("mbf.toml", &wrong).unwrap_err().to_string();
        assert!(error.contains("unknown trace \"nobody\""), "{error}");
        let error = Experiment::from_toml("mbf.toml", &format!("colour = 1\n{PUBLISHED}")).unwrap_err().to_string();
        assert!(error.contains("colour"), "{error}");
    }
}
