//! Published numbers with ours beside them, computed from the runs of a sweep: a row each, as data.
//!
//! ```toml
//! [[published]]
//! figure = "Figure 4"
//! what = "Financial1: erases, relative to DFTL"
//! value = 0.88
//! ours = { y = "erase_count.total", at = { trace = "9/10", scheme = "asa" }, relative_to = { scheme = "dftl" } }
//! difference = "Why ours differs, in a sentence."
//! ```
//!
//! `at` selects runs by their axes; a list admits several values. `relative_to` divides each by the run that differs from it in
//! these axes alone. Where several runs are left, `of` says which number stands for them.

use super::RunResult;
use isotherm::registry::SpecError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A published number, and where ours is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedNumber {
    /// Where it stands in the paper: `Figure 4`.
    pub figure: String,
    /// What it is, in words, with what it is relative to.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Where ours is found.
    pub ours: Ours,
    /// Why ours differs, in a sentence.
    #[serde(default)]
    pub difference: String,
}

/// Which number of which runs stands beside a published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ours {
    /// Key of a run, with dots into objects and numbers into lists (`erase_count.total`).
    pub y: String,
    /// Values of the axes of the runs meant; a list admits several, an axis left out admits all.
    #[serde(default)]
    pub at: Map<String, Value>,
    /// Divide each number by that of the runs with these values in these axes, and the same ones in all others.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub relative_to: Map<String, Value>,
    /// Which of the numbers to divide by, where `relative_to` admits several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Reduction>,
    /// What stands for the numbers of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Reduction>,
    /// Take the run alone in which the number under this key is least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub where_least: Option<String>,
    /// `y` is a list under `series.`: its mean over the windows that end in this range of host pages, the first excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<[u64; 2]>,
    /// The same for what is divided by, where that is another range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_pages: Option<[u64; 2]>,
}

/// One number for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// A published number with ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Where it stands in the paper.
    pub figure: String,
    /// What it is.
    pub what: String,
    /// The published number.
    pub published: f64,
    /// Ours; `null` where the runs that it needs were left out.
    pub ours: Option<f64>,
    /// Ours over the published one.
    pub ratio: Option<f64>,
    /// How ours was found.
    pub found: Ours,
    /// Runs that ours comes from, those it is relative to included, and how many of them are valid by their verdicts.
    pub runs: u64,
    /// See `runs`.
    pub runs_valid: u64,
    /// Why ours differs.
    pub difference: String,
}

impl Reduction {
    /// The number that stands for `numbers`.
    pub(crate) fn apply(self, numbers: &[f64]) -> f64 {
        match self {
            Self::Mean => numbers.iter().sum::<f64>() / numbers.len() as f64,
            Self::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Whether axes have the values wanted; a list admits several.
pub(super) fn admits(wanted: &Map<String, Value>, axes: &Map<String, Value>) -> bool {
    let admits =
        |wanted: &Value, found: &Value| wanted == found || wanted.as_array().is_some_and(|list| list.contains(found));
    wanted.iter().all(|(axis, wanted)| axes.get(axis).is_some_and(|found| admits(wanted, found)))
}

/// A run as JSON, to be read by keys.
pub(crate) struct Read<'a> {
    /// The run.
    pub(crate) run: &'a RunResult,
    json: Value,
}

impl<'a> Read<'a> {
    /// Writes a run as JSON.
    ///
    /// # Panics
    /// If a result is no JSON (a bug).
    pub(crate) fn new(run: &'a RunResult) -> Self {
        Self { run, json: serde_json::to_value(run).expect("results have string keys and finite numbers") }
    }

    /// What stands at `key`.
    pub(crate) fn at(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(&self.json, |at, key| match at {
            Value::Array(list) => list.get(key.parse::<usize>().ok()?),
            _ => at.get(key),
        })
    }

    /// The number at `key`: a list's mean over the windows of `pages`.
    pub(crate) fn number(&self, key: &str, pages: Option<[u64; 2]>) -> Option<f64> {
        let Some([from, to]) = pages else { return self.at(key)?.as_f64() };
        let ends = &self.run.series.host_pages_written;
        let inside = ends.iter().zip(self.at(key)?.as_array()?).filter(|(end, _)| (from + 1..=to).contains(*end));
        let numbers: Vec<f64> = inside.filter_map(|(_, number)| number.as_f64()).collect();
        (!numbers.is_empty()).then(|| Reduction::Mean.apply(&numbers))
    }
}

impl PublishedNumber {
    fn refuse(&self, problem: impl Into<String>, fix: impl Into<String>) -> SpecError {
        SpecError::new(format!("published \"{}: {}\"", self.figure, self.what), problem, fix)
    }

    /// Looks, before anything has run, whether there are such runs among the points with these axes; `traces` are the labels of
    /// all traces, those that are left out this time included.
    ///
    /// # Errors
    /// An axis or a value that there is not, or several runs and no word on which number stands for them.
    pub fn check(&self, points: &[&Map<String, Value>], traces: &[&str]) -> Result<(), SpecError> {
        if points.is_empty() {
            // Every trace is left out: there is nothing to look among.
            return Ok(());
        }
        let known = |axis: &str, value: &Value| {
            let label = value.as_str().unwrap_or_default();
            points.iter().any(|axes| axes.get(axis) == Some(value)) || (axis == "trace" && traces.contains(&label))
        };
        for (axis, wanted) in self.ours.at.iter().chain(&self.ours.relative_to) {
            let values = wanted.as_array().map_or_else(|| vec![wanted], |list| list.iter().collect());
            if let Some(value) = values.into_iter().find(|value| !known(axis, value)) {
                return Err(self.refuse(
                    format!("no point has {value} on the axis \"{axis}\""),
                    "name an axis of the experiment and one of its labels",
                ));
            }
        }
        let chosen: Vec<&Map<String, Value>> = points.iter().copied().filter(|p| admits(&self.ours.at, p)).collect();
        if chosen.len() > 1 && self.ours.of.is_none() && self.ours.where_least.is_none() {
            let fix = "name more axes under `at`, or say of = \"mean\", \"min\" or \"max\", or where_least = KEY";
            return Err(self.refuse(format!("{} points are meant, not one", chosen.len()), fix));
        }
        let bases = |axes: &Map<String, Value>| points.iter().filter(|other| self.is_base(other, axes)).count();
        let most = chosen.iter().map(|axes| bases(axes)).max().unwrap_or(0);
        if !self.ours.relative_to.is_empty() && most > 1 && self.ours.base.is_none() {
            let fix = "name one value under `relative_to`, or say base = \"mean\", \"min\" or \"max\"";
            return Err(self.refuse(format!("relative_to means {most} points, not one"), fix));
        }
        Ok(())
    }

    /// Whether a run with the axes `other` is what one with `axes` is relative to.
    fn is_base(&self, other: &Map<String, Value>, axes: &Map<String, Value>) -> bool {
        let relative_to = &self.ours.relative_to;
        admits(relative_to, other) && axes.iter().all(|(k, v)| relative_to.contains_key(k) || other.get(k) == Some(v))
    }

    /// The number of `read`, divided by that of what it is relative to.
    fn measure(&self, read: &Read, all: &[Read]) -> Result<f64, SpecError> {
        let number = |read: &Read, pages| {
            read.number(&self.ours.y, pages).ok_or_else(|| {
                let fix = "name a number of a run in results.json, with dots into objects, or a list with `pages`";
                self.refuse(format!("the run {} has no number at `{}`", read.run.label, self.ours.y), fix)
            })
        };
        if self.ours.relative_to.is_empty() {
            return number(read, self.ours.pages);
        }
        let bases = all.iter().filter(|other| self.is_base(&other.run.axes, &read.run.axes));
        let base_pages = self.ours.base_pages.or(self.ours.pages);
        let bases = bases.map(|base| number(base, base_pages)).collect::<Result<Vec<_>, _>>()?;
        Ok(number(read, self.ours.pages)? / self.ours.base.unwrap_or(Reduction::Mean).apply(&bases))
    }

    /// The row, computed from `runs`.
    ///
    /// # Errors
    /// A run has no number under the key.
    fn row(&self, all: &[Read]) -> Result<PublishedRow, SpecError> {
        let mut chosen: Vec<&Read> = all.iter().filter(|read| admits(&self.ours.at, &read.run.axes)).collect();
        if let Some(key) = &self.ours.where_least {
            let least = |read: &&Read| read.number(key, None).unwrap_or(f64::INFINITY);
            chosen = chosen.into_iter().min_by(|a, b| least(a).total_cmp(&least(b))).into_iter().collect();
        }
        let numbers = chosen.iter().map(|read| self.measure(read, all)).collect::<Result<Vec<_>, _>>()?;
        let ours = Some(self.ours.of.unwrap_or(Reduction::Mean).apply(&numbers)).filter(|ours| ours.is_finite());
        let is_used = |read: &&Read| {
            let is_base = |of: &&Read| self.is_base(&read.run.axes, &of.run.axes);
            admits(&self.ours.at, &read.run.axes) || !self.ours.relative_to.is_empty() && chosen.iter().any(is_base)
        };
        let used: Vec<&Read> = all.iter().filter(is_used).collect();
        Ok(PublishedRow {
            figure: self.figure.clone(),
            what: self.what.clone(),
            published: self.value,
            ours,
            ratio: ours.map(|ours| ours / self.value).filter(|ratio| ratio.is_finite()),
            found: self.ours.clone(),
            runs: used.len() as u64,
            runs_valid: used.iter().filter(|read| read.run.verdict.valid).count() as u64,
            difference: self.difference.clone(),
        })
    }
}

/// A row for each published number.
///
/// # Errors
/// A run has no number under a key.
pub fn rows(published: &[PublishedNumber], runs: &[RunResult]) -> Result<Vec<PublishedRow>, SpecError> {
    if published.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<Read> = runs.iter().map(Read::new).collect();
    published.iter().map(|number| number.row(&all)).collect()
}
