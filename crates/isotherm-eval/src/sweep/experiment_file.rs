//! Experiment files: what is asked, of which traces, over which axes, and how it is drawn. Experiments replay traces on
//! devices, or, with a section `[hotness]`, measure how well schemes tell hot data.
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
//! variable that is not set are left out, and the results say so. A trace may also have a `summary`, for the report, and a
//! `time_unit`, where its format does not say.
//!
//! `[[published]]` names published numbers and where ours are found; the results say both and their ratio
//! (`results::PublishedNumber`).
//!
//! Numbers in `findings` are computed from the points, in braces: `{write_amplification | trace=sqlite-wal | scheme=epoch 1}`,
//! ratios of two such and more (CONTRIBUTING.md has a table of it); a finding about points that were not run is not told, one
//! without braces only where all were run.
//!
//! `[hotness]` stands in place of `[base]`, `[replay]` and `[[axes]]`: see [`HotnessExperiment`] for its keys. The points are
//! every trace against every reference; a trace may set `hotness.page_size`.

use super::hotness;
use super::task::{TRACE_AXIS, Task};
use crate::pool::Job;
use crate::results::{Experiment, Figure, HotnessExperiment, PublishedNumber, TraceNote};
use crate::run::{Policies, Replay, ReplaySpec, RunSpec};
use crate::source::TraceSource;
use isotherm::registry::{SpecError, closest};
use isotherm::spec::{self, Specification as _};
use isotherm_sfs::{SystemSpec, check_names};
use isotherm_trace::TimeUnit;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// An experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Title of the report.
    pub title: String,
    /// The publication that it reproduces, in a word or two.
    #[serde(default)]
    pub paper: String,
    /// What is asked and how.
    #[serde(default)]
    pub description: String,
    /// Sentences on what was found; numbers in braces are computed from the points.
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
    /// Published numbers that ours are computed for.
    #[serde(default)]
    pub published: Vec<PublishedNumber>,
    /// What is asked of hot data identification, in place of devices.
    #[serde(default)]
    pub hotness: Option<HotnessExperiment>,
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
    /// What it is, in a few words.
    #[serde(default)]
    pub summary: String,
    /// Unit of its times, where the format does not say.
    #[serde(default, deserialize_with = "time_unit")]
    pub time_unit: Option<TimeUnit>,
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

/// A time unit as the command line spells it.
fn time_unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TimeUnit>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(serde::de::Error::custom)
}

impl ExperimentFile {
    /// Parses an experiment; `path` is where it stands.
    ///
    /// # Errors
    /// Broken TOML, unknown keys, an axis without values, a figure over an axis that there is not, numbers of an unnamed publication.
    pub fn parse(path: impl AsRef<Path>, text: &str) -> Result<Self, SpecError> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let mut experiment: Self = toml::from_str(text).map_err(|e| {
            let problem = e.to_string().trim().replace('\n', " ");
            SpecError::new(place.as_str(), problem, "see the experiments of the project for the keys")
        })?;
        experiment.path = path.to_owned();
        if experiment.traces.is_empty() {
            return Err(SpecError::new(place, "there is no [[traces]] entry", "name at least one trace"));
        }
        if experiment.paper.is_empty() && !experiment.published.is_empty() {
            let problem = "[[published]] quotes numbers, and nothing says of which publication";
            return Err(SpecError::new(place, problem, "name it by paper = \"...\", in a word or two"));
        }
        if let Some(asked) = &experiment.hotness {
            let labels: Vec<&str> = experiment.traces.iter().map(|trace| trace.label.as_str()).collect();
            hotness::check(&place, asked, &labels)?;
            let devices = [!experiment.base.is_empty(), !experiment.replay.is_empty(), !experiment.axes.is_empty()];
            if devices.contains(&true) || !experiment.figures.is_empty() || !experiment.published.is_empty() {
                let problem = "[hotness] stands beside [base], [replay], [[axes]], [[figures]] or [[published]], which are about devices";
                return Err(SpecError::new(place, problem, "leave those out, or make two experiments"));
            }
        }
        for axis in &experiment.axes {
            if axis.values.is_empty() || axis.name == TRACE_AXIS {
                let problem =
                    format!("axis \"{}\" has no values, or the name of the axis that the traces form", axis.name);
                return Err(SpecError::new(place, problem, "give it values, and another name than \"trace\""));
            }
        }
        experiment.refuse_twins(&place)?;
        for figure in &experiment.figures {
            // An x with dots is the key of a result.
            let x = Some(&figure.x).filter(|_| !figure.is_along_a_key());
            let places = figure.published.iter().flat_map(|published| published.only.keys());
            let chosen_by = figure.only.keys().chain(figure.picture_only.keys()).chain(places);
            for axis in x.into_iter().chain(&figure.series).chain(chosen_by) {
                if axis != TRACE_AXIS && experiment.axes.iter().all(|a| a.name != *axis) {
                    let problem = format!("figure \"{}\" names the axis \"{axis}\", which there is not", figure.title);
                    let names = experiment.axes.iter().map(|axis| axis.name.as_str()).chain([TRACE_AXIS]);
                    let fix = match closest(axis, names) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => "use \"trace\" or the name of one of [[axes]]".to_owned(),
                    };
                    return Err(SpecError::new(place, problem, fix));
                }
            }
        }
        Ok(experiment)
    }

    /// Refuses labels that do not tell runs apart.
    fn refuse_twins(&self, place: &str) -> Result<(), SpecError> {
        let refuse = |what: &str, twins: Option<[(&str, String); 2]>| match twins {
            Some([(label, first), (_, second)]) => {
                let problem = format!("{what} are both labelled \"{label}\": {first} and {second}");
                Err(SpecError::new(place, problem, "give each a label of its own, by which its runs are told apart"))
            }
            None => Ok(()),
        };
        let of_trace = |trace: &TraceEntry| {
            let sets = trace.set.iter().map(|set| format!(" with {set}"));
            format!("{}{}", trace.source, sets.collect::<String>())
        };
        refuse("two traces", twins(self.traces.iter().map(|trace| (trace.label.as_str(), of_trace(trace)))))?;
        for axis in &self.axes {
            let values = axis.values.iter().map(|value| (value.label.as_str(), format!("{:?}", value.set)));
            refuse(&format!("two values of the axis \"{}\"", axis.name), twins(values))?;
        }
        Ok(())
    }

    /// What the report needs of it.
    pub fn report(&self) -> Experiment {
        let note = |trace: &TraceEntry| TraceNote { label: trace.label.clone(), summary: trace.summary.clone() };
        Experiment {
            title: self.title.clone(),
            paper: self.paper.clone(),
            description: self.description.clone(),
            figures: self.figures.clone(),
            published: Vec::new(),
            findings: self.findings.clone(),
            traces: self.traces.iter().filter(|trace| !trace.summary.is_empty()).map(note).collect(),
            hotness: self.hotness.clone(),
        }
    }

    /// Every point, and a sentence on each trace that is left out.
    ///
    /// # Errors
    /// A key or value that does not exist.
    pub fn jobs(&self) -> Result<(Vec<Job<Task>>, Vec<String>), SpecError> {
        let (mut jobs, mut left_out) = (Vec::new(), Vec::new());
        for trace in &self.traces {
            let source = match self.resolve(&trace.source) {
                Ok(source) => source,
                Err(variable) => {
                    let label = &trace.label;
                    left_out.push(format!("Trace \"{label}\" is left out: the variable ${variable} is not set."));
                    continue;
                }
            };
            let mut source = TraceSource::new(&source);
            source.options.time_unit = trace.time_unit;
            if let Some(asked) = &self.hotness {
                jobs.extend(
                    hotness::jobs(asked, &hotness::LabelledTrace { label: &trace.label, set: &trace.set, source })
                        .map_err(|e| self.named(e))?,
                );
                continue;
            }
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

    /// The variables that the folders of traces are named by and that are not set, each once.
    pub(super) fn unset_variables(&self) -> Vec<String> {
        let mut variables = Vec::new();
        for variable in self.traces.iter().filter_map(|trace| self.resolve(&trace.source).err()) {
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        variables
    }

    fn job(&self, trace: &TraceEntry, source: &TraceSource, point: &[&AxisValue]) -> Result<Job<Task>, SpecError> {
        let sets = trace.set.iter().chain(point.iter().flat_map(|value| &value.set));
        let (seeds, sets): (Vec<_>, Vec<_>) = sets.cloned().partition(|set| set.starts_with("seed="));
        let (replay_sets, device_sets): (Vec<_>, Vec<_>) = sets.into_iter().partition(|s| s.starts_with("replay."));
        let named = |e| self.named(e);
        device_sets.iter().try_for_each(|set| check_key(set)).map_err(named)?;
        let base = toml::to_string(&self.base).expect("a table that was read can be written");
        let device = SystemSpec::from_toml(&base, &device_sets).map_err(named)?;
        // A name that there is not is a slip; what names together make impossible is another matter (see `Sweep::run`).
        check_names(&device).map_err(named)?;
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
        let spec = RunSpec { trace: source.clone(), device, replay, seed, policies: Policies::default() };
        Ok(Job { spec: Task::Run(Box::new(spec)), label: label.join(", "), axes })
    }

    /// An error with the file's name before its place.
    fn named(&self, e: SpecError) -> SpecError {
        SpecError::new(format!("{}: {}", self.path.display(), e.place), e.problem, e.fix)
    }

    fn replay_with(&self, sets: &[String]) -> Result<Replay, SpecError> {
        let table = toml::Table::from_iter([("replay".to_owned(), toml::Value::Table(self.replay.clone()))]);
        let text = toml::to_string(&table).expect("a table that was read can be written");
        spec::parse::<ReplaySpec>(&text, sets).map(|spec| spec.replay)
    }

    /// A path from the experiment's folder, or from a variable's, which may also stand in a synthetic workload; the name of
    /// the variable where it is not set.
    fn resolve(&self, source: &str) -> Result<String, String> {
        if let Some((before, variable, rest)) = variable_in(source) {
            let folder = std::env::var_os(variable).ok_or(variable)?;
            return Ok(format!("{before}{}", Path::new(&folder).join(rest).display()));
        }
        if source.starts_with("synth:") || source.contains("://") {
            return Ok(source.to_owned());
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Ok(folder.join(source).display().to_string())
    }
}

/// The first two that have the same label.
fn twins<'a>(labelled: impl Iterator<Item = (&'a str, String)>) -> Option<[(&'a str, String); 2]> {
    let mut before: Vec<(&str, String)> = Vec::new();
    for one in labelled {
        if let Some(twin) = before.iter().find(|known| known.0 == one.0) {
            return Some([twin.clone(), one]);
        }
        before.push(one);
    }
    None
}

/// Checks that what an axis or a trace sets is a key: of the device, of the replay, or the seed.
///
/// # Errors
/// An unknown key; the error names the nearest one.
fn check_key(set: &str) -> Result<(), SpecError> {
    let key = set.split('=').next().unwrap_or(set).trim().trim_end_matches('+');
    let replay = ReplaySpec::rows().map(|row| row.key);
    let keys = SystemSpec::rows().map(|row| row.key).chain(replay).chain(["seed"]);
    if SystemSpec::row(&SystemSpec::full_key(key)).is_some() {
        return Ok(());
    }
    let fix = match closest(key, keys) {
        Some(near) => format!("did you mean {near}?"),
        None => "see `isotherm list parameters` for the keys".to_owned(),
    };
    Err(SpecError::new(key, "unknown key", fix))
}

/// What stands before a variable, its name, and the path from its folder: `$NAME/...` at the start or after `=`.
fn variable_in(source: &str) -> Option<(&str, &str, &str)> {
    let at = if source.starts_with('$') { 0 } else { source.find("=$")? + 1 };
    let (variable, rest) = source[at + 1..].split_once('/')?;
    Some((&source[..at], variable, rest))
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

    fn run_of(task: &Task) -> &RunSpec {
        match task {
            Task::Run(spec) => spec,
            Task::Hotness(_) => panic!("the experiment is about devices"),
        }
    }

    #[test]
    fn an_experiment_on_hotness_is_refused_where_it_leaves_things_open() {
        let whole = include_str!("../../../../experiments/mbf.toml");
        let error = |from: &str, to: &str| {
            assert!(whole.contains(from), "{from}");
            let text = whole.replacen(from, to, 1);
            let result = ExperimentFile::parse("mbf.toml", &text).and_then(|e| e.jobs().map(|_| ()));
            result.unwrap_err().to_string()
        };
        let unknown = error("trace = \"financial1-head\"", "trace = \"nobody\"");
        assert!(unknown.contains("unknown trace \"nobody\"") && unknown.contains("uniform"), "{unknown}");
        assert!(error("[hotness]", "[hotness]\ncolour = 1").contains("colour"));
        assert!(error("[hotness]", "[base]\ngc.victim = \"fifo\"\n[hotness]").contains("about devices"));
        assert!(error("references = [", "references = []\nother = [").contains("mbf.toml"));
        let set = "summary = \"SQLite random updates, WAL, ext4\"";
        let wrong = error(set, "summary = \"\"\nset = [\"device.page_size=512B\"]");
        assert!(
            wrong.contains("mbf.toml: device.page_size=512B") && wrong.contains("hotness.page_size=512B"),
            "{wrong}"
        );
    }

    #[test]
    fn a_key_or_an_axis_that_there_is_not_is_refused_with_the_nearest_name() {
        let error = |from: &str, to: &str| {
            assert!(TEXT.contains(from), "{from}");
            let result = ExperimentFile::parse("e.toml", &TEXT.replacen(from, to, 1)).and_then(|e| e.jobs());
            result.map(|_| ()).unwrap_err().to_string()
        };
        for (from, to, near) in [
            ("device.spare=10%", "device.spaer=10%", "did you mean device.spare?"),
            ("replay.repeat=3", "replay.repaet=3", "did you mean replay.repeat?"),
            ("replay.repeat=3", "sed=3", "did you mean seed?"),
            ("replay.address=compact", "replay.address=around", "refuse | wrap | compact"),
            ("placement=epoch:length=2", "placement=epoc", "unknown name \"epoc\""),
            ("placement=epoch:length=2", "placement=epoch:lenght=2", "unknown parameter \"lenght\""),
            ("gc.victim = \"fifo\"", "gc.victim = \"fofi\"", "unknown name \"fofi\""),
        ] {
            let error = error(from, to);
            assert!(error.contains("e.toml") && error.contains(near), "{error}");
        }
        let figure =
            "[[figures]]\ntitle = \"f\"\nkind = \"bars\"\nx = \"tracee\"\ny = \"write_amplification\"\n[[axes]]";
        assert!(error("[[axes]]", figure).contains("did you mean \"trace\"?"));
        let figure = "[[figures]]\ntitle = \"f\"\nkind = \"lines\"\nx = \"trace\"\ny = \"write_amplification\"\n";
        for wrong in [
            "picture_only = { tracee = \"a\" }\n[[axes]]",
            "published = [{ label = \"p\", value = 1.0, upright = true, only = { tracee = \"a\" } }]\n[[axes]]",
        ] {
            assert!(error("[[axes]]", &format!("{figure}{wrong}")).contains("did you mean \"trace\"?"), "{wrong}");
        }
    }

    #[test]
    fn a_variable_may_stand_in_a_workload_too() {
        assert_eq!(variable_in("$A/b.csv"), Some(("", "A", "b.csv")));
        assert_eq!(variable_in("synth:counts,counts=$A/b,writes=1"), Some(("synth:counts,counts=", "A", "b,writes=1")));
        assert_eq!(variable_in("synth:zipf,theta=1"), None);
        assert_eq!(variable_in("a$b/c"), None);
    }

    #[test]
    fn points_are_the_product_of_traces_and_axes() {
        let experiment = ExperimentFile::parse("folder/e.toml", TEXT).unwrap();
        let (jobs, left_out) = experiment.jobs().unwrap();
        let labels: Vec<_> = jobs.iter().map(|j| j.label.as_str()).collect();
        assert_eq!(labels, ["a, 1, p", "a, 1, q", "a, 2, p", "a, 2, q"]);
        let runs: Vec<&RunSpec> = jobs.iter().map(|job| run_of(&job.spec)).collect();
        let last = runs[3];
        assert_eq!(last.trace.name, "folder/a.csv");
        assert_eq!(last.device.gc.victim.name, "fifo");
        assert_eq!(last.device.placement.name.to_string(), "epoch:length=2");
        assert_eq!(last.device.device.page_size.0, 8192);
        assert_eq!((last.replay.repeat, runs[0].replay.repeat), (3, 2));
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
        assert!(error("replay.repeat=3", "replay.repeat").contains("KEY=VALUE"));
        assert!(error("name = \"x\"", "name = \"trace\"").contains("axis"));
        let twins = error("label = \"b\"", "label = \"a\"");
        assert!(twins.contains("two traces are both labelled \"a\": a.csv with replay.address=compact"), "{twins}");
        assert!(twins.contains("and $ISOTHERM_A_VARIABLE_THAT_NOBODY_SETS/b.csv;"), "{twins}");
        let twins = error("label = \"q\"", "label = \"p\"");
        assert!(
            twins.contains("two values of the axis \"y\" are both labelled \"p\": [] and [\"device.spare=10%\"]"),
            "{twins}"
        );
    }
}
