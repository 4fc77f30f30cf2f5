//! What a sweep asked and how its runs are drawn: copied from the experiment file, so that a results file explains itself.

use super::published::admits;
use super::{HotnessExperiment, PublishedRow};
use isotherm::registry::SpecError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A sweep's question, figures and findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Title of the report.
    pub title: String,
    /// The publication that it reproduces, in a word or two; empty where it follows none.
    #[serde(default)]
    pub paper: String,
    /// What is asked and how, in a paragraph.
    #[serde(default)]
    pub description: String,
    /// What is drawn.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Published numbers, ours beside each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedRow>,
    /// Sentences on what was found, and on each difference from what was published.
    #[serde(default)]
    pub findings: Vec<String>,
    /// What the traces are, where the experiment says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceNote>,
    /// What is asked of hot data identification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hotness: Option<HotnessExperiment>,
}

/// What a trace is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceNote {
    /// Value of the axis `trace`.
    pub label: String,
    /// What it is, in a few words.
    pub summary: String,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Groups of bars, one group for each value of `x`.
    Bars,
    /// One line for each value of `series`.
    Lines,
    /// One point for each run, and the line on which both are equal: `x` is the key of what is predicted, `y` of what was
    /// measured. The values of `series` tell the points by colour; both axes are logarithmic.
    Agreement,
    /// The distribution that `y` names, a list of counts in equal buckets from 0 to 1, as an outline for each value of
    /// `series`; each value of `x` has a panel of its own.
    Histogram,
    /// One line for each value of `series` over the windows of the run: `y` is a list under `series.`. A panel for each
    /// value of `x`, as in all that follow.
    OverTime,
    /// One stack for each value of `series`: `y` is an object of numbers, such as `flash_time_parts_ns`.
    Parts,
    /// The share of requests by latency, in powers of two: `y` is `latency_distribution.write` or `.read`.
    Latency,
    /// The share of the time that requests took in all, by their latency: `y` as for `latency`.
    LatencyTime,
    /// Host writes by address and time, of the first run of each panel: `y` is `write_heat`.
    Heat,
}

/// Runs that one line joins, though an axis tells them apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    /// Name of the line.
    pub name: String,
    /// Values of the figure's `series` axis that are on it; the others are drawn as points.
    pub values: Vec<Value>,
}

/// One figure over the runs of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Title, such as "Figure 4: throughput".
    pub title: String,
    /// Bars, lines or distributions.
    pub kind: FigureKind,
    /// Name of the picture that it is among those of all experiments; absent for none. Figures of one name are one picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Of the runs that are drawn, those that the picture shows: as `only`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub picture_only: Map<String, Value>,
    /// Axis whose values stand along x: a key of the runs' `axes`. Lines may also lie over a number of the run, and an
    /// agreement always does: then its key, as for `y`.
    pub x: String,
    /// What is measured: a key of a run, with dots into objects (`erase_count.total`).
    pub y: String,
    /// Text below the x axis of lines; absent for the name of `x`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub x_label: String,
    /// Whether the lines lie over the logarithm of x.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub x_logarithmic: bool,
    /// Text beside the y axis, with its unit.
    #[serde(default)]
    pub y_label: String,
    /// Axis whose values tell the bars of a group or the lines apart; absent for a single series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Values of `series` that one line joins: the others are points beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// One line of the means over the values of `series`, with their 95 % confidence intervals, in place of a line for each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mean: bool,
    /// Divide by the run that agrees in every other axis and has this value of `series` (such as `single`), or of `x` where `series` has
    /// no such value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_to: Option<String>,
    /// Draw only runs whose axes have these values; a list admits several.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub only: Map<String, Value>,
    /// Published numbers to stand beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Sentences under the figure: what it shows, why ours differs.
    #[serde(default)]
    pub note: String,
}

/// One published number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where it stands in the paper: `Fig. 4, Financial1`.
    pub label: String,
    /// The number, in the unit of the figure's y.
    pub value: f64,
    /// Unit or reading, such as `relative to page mapping`.
    #[serde(default)]
    pub unit: String,
    /// Value of the figure's x axis beside which it is drawn; without it the number is a line across the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<Value>,
    /// Value of the figure's `series` axis that it belongs to; the first one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Value>,
    /// Whether the number lies along x, such as the place of an optimum: an upright line in the panels that `only` admits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upright: bool,
    /// Axes of the panels that an upright line stands in.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub only: Map<String, Value>,
}

impl Published {
    /// Whether it is an upright line in a panel of runs with these axes.
    pub fn stands_in(&self, axes: &Map<String, Value>) -> bool {
        self.upright && admits(&self.only, axes)
    }
}

impl Figure {
    /// What is wrong with the figure, and what to write instead.
    pub fn refuse(&self, problem: impl Into<String>, fix: impl Into<String>) -> SpecError {
        SpecError::new(format!("figure \"{}\"", self.title), problem, fix)
    }

    /// Whether a run with these axes is drawn.
    pub fn draws(&self, axes: &Map<String, Value>) -> bool {
        admits(&self.only, axes)
    }

    /// Whether the picture shows a run with these axes that is drawn.
    pub fn shows(&self, axes: &Map<String, Value>) -> bool {
        admits(&self.picture_only, axes)
    }

    /// Whether `x` is the key of a result rather than the name of an axis.
    pub fn is_along_a_key(&self) -> bool {
        self.x.contains('.')
    }

    /// The number that a value of the axis `x` is; in experiment files, values are texts.
    ///
    /// # Errors
    /// It is none.
    pub fn number_along(&self, x: &Value) -> Result<f64, SpecError> {
        x.as_f64().or_else(|| x.as_str()?.parse().ok()).ok_or_else(|| {
            let problem = format!("a line needs numbers along x, and `{}` takes the value {x}", self.x);
            self.refuse(problem, "write `kind = \"bars\"`, or choose an axis of numbers")
        })
    }

    /// Looks, before anything has run, whether the figure can be drawn from points with these axes.
    ///
    /// # Errors
    /// A line along an axis that is none of numbers, or what only lines have in a figure of another kind.
    pub fn check(&self, points: &[&Map<String, Value>]) -> Result<(), SpecError> {
        let of_lines = [
            ("mean", self.mean),
            ("x_logarithmic", self.x_logarithmic),
            ("upright", self.published.iter().any(|published| published.upright)),
        ];
        if let Some((key, _)) = of_lines.iter().find(|(_, is_set)| *is_set && self.kind != FigureKind::Lines) {
            let fix = format!("write `kind = \"lines\"`, or leave `{key}` out");
            return Err(self.refuse(format!("`{key}` means nothing but where lines are drawn"), fix));
        }
        let along = points.iter().filter(|axes| self.draws(axes)).filter_map(|axes| axes.get(&self.x));
        match self.kind {
            FigureKind::Lines => along.into_iter().try_for_each(|x| self.number_along(x).map(|_| ())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_an_axis_may_be_numbers() {
        let text = r#"{ "title": "F", "kind": "lines", "x": "fill", "y": "gc_count" }"#;
        let figure: Figure = serde_json::from_str(text).unwrap();
        let along = |x: Value| figure.number_along(&x).ok();
        assert_eq!([along("85".into()), along(85.into()), along("7.5".into())], [Some(85.0), Some(85.0), Some(7.5)]);
        let error = figure.number_along(&"auto".into()).unwrap_err().to_string();
        assert!(error.contains("figure \"F\"") && error.contains("`fill`") && error.contains("auto"), "{error}");
    }

    #[test]
    fn only_the_runs_that_are_drawn_are_looked_at() {
        let text =
            r#"{ "title": "F", "kind": "lines", "x": "fill", "y": "gc_count", "only": { "trace": ["a", "b"] } }"#;
        let figure: Figure = serde_json::from_str(text).unwrap();
        let axes = |trace: &str, fill: &str| {
            Map::from_iter([("trace".to_owned(), trace.into()), ("fill".to_owned(), Value::from(fill))])
        };
        let (drawn, not_drawn, wrong) = (axes("a", "10"), axes("c", "much"), axes("b", "much"));
        assert!(figure.check(&[&drawn, &not_drawn]).is_ok());
        assert!(figure.check(&[&drawn, &not_drawn, &wrong]).is_err());
    }

    #[test]
    fn what_lines_have_is_refused_in_other_figures() {
        for (kind, is_right) in [("lines", true), ("bars", false)] {
            for key in ["\"mean\": true", "\"x_logarithmic\": true", PLACE] {
                let text = format!(r#"{{ "title": "F", "kind": "{kind}", "x": "fill", "y": "gc_count", {key} }}"#);
                let figure: Figure = serde_json::from_str(&text).unwrap();
                assert_eq!(figure.check(&[]).is_ok(), is_right, "{text}");
            }
        }
    }

    const PLACE: &str = r#""published": [{ "label": "p", "value": 1.0, "upright": true }]"#;
}
