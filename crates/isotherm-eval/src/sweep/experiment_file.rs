//! Experiment files: what is asked, of which traces, over which axes, and how it is drawn.
//!
//! ```toml
//! title = "..."                      # description, findings, figures: see `results::Experiment`
//! seed = 1
//! [base]                             # a device specification: every key of `isotherm run --print-config`
//! placement = "single"
//! [replay]                           # address, fill, precondition, repeat, measure_last
//! address = "compact"
//! [[traces]]                         # each trace is a value of the axis `trace`
//! label = "sqlite-wal"
//! source = "../traces/sqlite-wal-ext4.csv.zst"    # from the experiment's folder; `$NAME/...` from that variable's
//! set = ["replay.repeat=2"]          # what this trace needs to be set
//! [[axes]]                           # the points are the product of the axes
//! name = "scheme"
//! values = [{ label = "page map", set = ["placement=single"] }, { label = "epoch 1", set = ["placement=epoch:length=1"] }]
//! ```
//!
//! `set` takes the keys of the device specification, those of the replay with `replay.` before them, and `seed`;
//! `log.name+=groups=2` adds a parameter to a policy that is already named, so that axes can each say a part. Traces behind a
//! variable that is not set are left out, and the results say so.

use crate::pool::Job;
use crate::results::{Experiment, Figure};
use crate::run::{Replay, RunSpec};
use crate::source::TraceSource;
use isotherm::registry::SpecError;
use isotherm_sfs::SystemSpec;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Title of the report.
    pub title: String,
    /// What is asked and how.
    #[serde(default)]
    pub description: String,
    /// Sentences on what was found.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Seed of every point.
    #[serde(default = "one")]
    pub seed: u64,
    /// The device that all points start from.
    #[serde(default)]
    pub base: toml::Table,
    /// How traces are replayed.
    #[serde(default)]
    pub replay: toml::Table,
    /// The traces.
    pub traces: Vec<TraceEntry>,
    /// What is varied.
    #[serde(default)]
    pub axes: Vec<Axis>,
    /// What is drawn.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The file, for messages and relative paths.
    #[serde(skip)]
    path: PathBuf,
}

/// One trace of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEntry {
    /// Name in figures.
    pub label: String,
    /// File, or `synth:...`.
    pub source: String,
    /// Keys that this trace needs set.
    #[serde(default)]
    pub set: Vec<String>,
}

/// One axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name in figures.
    pub name: String,
    /// Its values.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValue {
    /// Name in figures.
    pub label: String,
    /// Keys that it sets.
    pub set: Vec<String>,
}

fn one() -> u64 {
    1
}

/// The axis that the traces form.
const TRACE_AXIS: &str = "trace";

impl ExperimentFile {
    /// Parses an experiment; `path` is where it stands.
    ///
    /// # Errors
    /// Broken TOML, unknown keys, an axis without values, a figure over an axis that there is not.
    pub fn parse(path: impl AsRef<Path>, text: &str) -> Result<Self, SpecError> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let mut experiment: Self = toml::from_str(text).map_err(|e| {
            let problem = e.to_string().trim().replace('\n', " ");
            SpecError::new(
                place.as_str(),
                problem,
                "see the experiments of the project for the keys; one of hot data identification runs with isotherm hotness --experiment",
            )
        })?;
        experiment.path = path.to_owned();
        if experiment.traces.is_empty() {
            return Err(SpecError::new(place, "there is no [[traces]] entry", "name at least one trace"));
        }
        for axis in &experiment.axes {
            if axis.values.is_empty() || axis.name == TRACE_AXIS {
                let problem =
                    format!("axis \"{}\" has no values, or the name of the axis that the traces form", axis.name);
                return Err(SpecError::new(place, problem, "give it values, and another name than \"trace\""));
            }
        }
        for figure in &experiment.figures {
            // An x with dots is the key of a result.
            let x = Some(&figure.x).filter(|_| !figure.is_along_a_key());
            for axis in x.into_iter().chain(&figure.series).chain(figure.only.keys()) {
                if axis != TRACE_AXIS && experiment.axes.iter().all(|a| a.name != *axis) {
                    let problem = format!("figure \"{}\" names the axis \"{axis}\", which there is not", figure.title);
                    return Err(SpecError::new(place, problem, "use \"trace\" or the name of one of [[axes]]"));
                }
            }
        }
        Ok(experiment)
    }

    /// What the report needs of it.
    pub fn report(&self) -> Experiment {
        Experiment {
            title: self.title.clone(),
            description: self.description.clone(),
            figures: self.figures.clone(),
            findings: self.findings.clone(),
        }
    }

    /// Every point, and a sentence on each trace that is left out.
    ///
    /// # Errors
    /// A key or value that does not exist.
    pub fn jobs(&self) -> Result<(Vec<Job>, Vec<String>), SpecError> {
        let (mut jobs, mut left_out) = (Vec::new(), Vec::new());
        for trace in &self.traces {
            let Some(source) = self.resolve(&trace.source) else {
                let variable = trace.source.split('/').next().unwrap_or_default();
                left_out.push(format!("Trace \"{}\" is left out: the variable {variable} is not set.", trace.label));
                continue;
            };
            let points = self.axes.iter().fold(vec![Vec::new()], |points: Vec<Vec<&AxisValue>>, axis| {
                let extended = |point: &Vec<_>, value| point.iter().copied().chain([value]).collect();
                points.iter().flat_map(|point| axis.values.iter().map(move |value| extended(point, value))).collect()
            });
            for point in points {
                jobs.push(self.job(trace, &source, &point)?);
            }
        }
        Ok((jobs, left_out))
    }

    fn job(&self, trace: &TraceEntry, source: &str, point: &[&AxisValue]) -> Result<Job, SpecError> {
        let sets = trace.set.iter().chain(point.iter().flat_map(|value| &value.set));
        let (seeds, sets): (Vec<_>, Vec<_>) = sets.cloned().partition(|set| set.starts_with("seed="));
        let (replay_sets, device_sets): (Vec<_>, Vec<_>) = sets.into_iter().partition(|s| s.starts_with("replay."));
        let named = |e: SpecError| SpecError::new(format!("{}: {}", self.path.display(), e.place), e.problem, e.fix);
        let base = toml::to_string(&self.base).expect("a table that was read can be written");
        let device = SystemSpec::from_toml(&base, &device_sets).map_err(named)?;
        let replay = self.replay_with(&replay_sets).map_err(named)?;
        let seed = seeds.last().map_or(Ok(self.seed), |set| {
            let wrong = || SpecError::new(set.as_str(), "not a seed", "write for example seed=2");
            set.trim_start_matches("seed=").parse().map_err(|_| named(wrong()))
        })?;
        let mut axes = Map::new();
        axes.insert(TRACE_AXIS.to_owned(), Value::from(trace.label.as_str()));
        for (axis, value) in self.axes.iter().zip(point) {
            axes.insert(axis.name.clone(), Value::from(value.label.as_str()));
        }
        let mut label: Vec<&str> = vec![&trace.label];
        label.extend(point.iter().map(|value| value.label.as_str()));
        let spec = RunSpec { trace: TraceSource::new(source), device, replay, seed };
        Ok(Job { spec, label: label.join(", "), axes })
    }

    fn replay_with(&self, sets: &[String]) -> Result<Replay, SpecError> {
        let mut table = self.replay.clone();
        for set in sets {
            let wrong = || SpecError::new(set.as_str(), "not replay.KEY=VALUE", "write for example replay.repeat=2");
            let (key, text) = set.trim_start_matches("replay.").split_once('=').ok_or_else(wrong)?;
            let value = text.parse::<i64>().map_or_else(|_| toml::Value::from(text), toml::Value::from);
            table.insert(key.to_owned(), value);
        }
        let keys = "the keys are address, fill, precondition, repeat, measure_last";
        toml::Value::Table(table)
            .try_into()
            .map_err(|e: toml::de::Error| SpecError::new("replay", e.to_string().trim().replace('\n', " "), keys))
    }

    /// A path from the experiment's folder, or from a variable's; `None` where the variable is not set.
    fn resolve(&self, source: &str) -> Option<String> {
        if source.starts_with("synth:") {
            return Some(source.to_owned());
        }
        if let Some((variable, rest)) = source.strip_prefix('$').and_then(|s| s.split_once('/')) {
            let folder = std::env::var_os(variable)?;
            return Some(Path::new(&folder).join(rest).display().to_string());
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Some(folder.join(source).display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "T"
        [base]
        gc.victim = "fifo"
        [replay]
        repeat = 2
        [[traces]]
        label = "a"
        source = "a.csv"
        set = ["replay.address=compact", "device.page_size=8KiB"]
        [[traces]]
        label = "b"
        source = "$ISOTHERM_A_VARIABLE_THAT_NOBODY_SETS/b.csv"
        [[axes]]
        name = "x"
        values = [{ label = "1", set = [] }, { label = "2", set = ["placement=epoch:length=2", "replay.repeat=3"] }]
        [[axes]]
        name = "y"
        values = [{ label = "p", set = [] }, { label = "q", set = ["device.spare=10%"] }]
    "#;

    #[test]
    fn points_are_the_product_of_traces_and_axes() {
        let experiment = ExperimentFile::parse("folder/e.toml", TEXT).unwrap();
        let (jobs, left_out) = experiment.jobs().unwrap();
        let labels: Vec<_> = jobs.iter().map(|j| j.label.as_str()).collect();
        assert_eq!(labels, ["a, 1, p", "a, 1, q", "a, 2, p", "a, 2, q"]);
        let last = &jobs[3].spec;
        assert_eq!(last.trace.name, "folder/a.csv");
        assert_eq!(last.device.gc.victim.name, "fifo");
        assert_eq!(last.device.placement.name.to_string(), "epoch:length=2");
        assert_eq!(last.device.device.page_size.0, 8192);
        assert_eq!((last.replay.repeat, jobs[0].spec.replay.repeat), (3, 2));
        assert_eq!(last.replay.address, crate::fold::AddressMode::Compact);
        assert_eq!(jobs[3].axes["y"], "q");
        assert_eq!(left_out.len(), 1);
    }

    #[test]
    fn mistakes_name_their_place() {
        let error = |from: &str, to: &str| {
            let text = TEXT.replace(from, to);
            let result = ExperimentFile::parse("e.toml", &text).and_then(|e| e.jobs().map(|_| ()));
            result.unwrap_err().to_string()
        };
        assert!(error("repeat = 2", "repat = 2").contains("repat"));
        assert!(error("title = \"T\"", "titel = \"T\"").contains("e.toml"));
        assert!(error("gc.victim", "gc.victm").contains("victm"));
        assert!(error("replay.repeat=3", "replay.repeat").contains("replay.KEY=VALUE"));
        assert!(error("name = \"x\"", "name = \"trace\"").contains("axis"));
    }
}
