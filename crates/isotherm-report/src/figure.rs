//! What a chart shows: typed descriptions that are embedded in the page as JSON and drawn there by one script.
//!
//! A figure is one or more panels under one caption. Numbers are given in the unit that the axis names, so that the script
//! never converts. Colours go by the position of a series (`slot`), so that a policy keeps its colour in every figure of a page.

use serde::Serialize;

/// One or more charts that answer one question.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// The question, or the number and name of a published figure.
    pub title: String,
    /// What is seen and how to read it; why ours differs from what was published.
    pub caption: String,
    /// The charts.
    pub panels: Vec<Panel>,
}

/// One chart.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// What tells it from its neighbours; empty when the figure has one panel.
    pub title: String,
    /// Panels of one group have axes of one range, so that they can be compared by eye; what must not be compared, such as what
    /// was measured under different traces, is in different groups.
    #[serde(skip)]
    pub group: String,
    /// The chart itself.
    pub chart: Chart,
}

impl Panel {
    /// A chart that can be compared with every other one of its figure.
    pub fn new(title: impl Into<String>, chart: Chart) -> Self {
        Self { title: title.into(), group: String::new(), chart }
    }
}

/// The kinds of chart.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Bars, one group or stack for each category.
    Bars(Bars),
    /// Lines, steps and points in a plane.
    Plane(Plane),
    /// Counts or shares over intervals of a number.
    Histogram(Histogram),
    /// A number for each cell of a grid.
    HeatMap(HeatMap),
}

/// How numbers lie along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal ratios; numbers of zero or less cannot be shown and are left out.
    Logarithmic,
}

/// An axis and its unit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// Unit of the numbers; empty for pure numbers.
    pub unit: String,
    /// Linear or logarithmic.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Logarithmic }
    }
}

/// Whose numbers a series holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured by the runs of this report.
    #[default]
    Measured,
    /// Printed in a publication: drawn hollow or hatched, in the colour of the series that it stands beside.
    Published,
    /// Computed from a closed form: drawn as a thin line.
    Theory,
}

/// A value that a chart marks with a line across it.
#[derive(Clone, Debug, Serialize)]
pub struct Rule {
    /// What the value is.
    pub label: String,
    /// Where it lies on the value axis.
    pub value: f64,
}

/// Bars lying along the value axis, so that long names of categories stay readable on a narrow screen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bars {
    /// What the categories are.
    pub category_label: String,
    /// Names of the groups or stacks, first on top.
    pub categories: Vec<String>,
    /// The value axis.
    pub value: Axis,
    /// Whether the series stand on each other (parts of a whole) or side by side.
    pub stacked: bool,
    /// The bars, by series.
    pub series: Vec<BarSeries>,
    /// Half the width of the confidence interval of each stack's sum, absent where there is none. Empty where no stack has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Option<f64>>,
    /// Lines across the chart.
    pub rules: Vec<Rule>,
}

/// The bars of one series.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Position in the palette.
    pub slot: usize,
    /// Whose numbers.
    pub origin: Origin,
    /// One value for each category; absent where there is none.
    pub values: Vec<Option<f64>>,
    /// For each value, whether its run is not valid: drawn pale. Empty where all are valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<bool>,
}

/// Lines, steps and points over two numeric axes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plane {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<PlaneSeries>,
    /// Horizontal lines across the chart.
    pub rules: Vec<Rule>,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// By straight lines.
    #[default]
    Line,
    /// By steps: a value holds from its own x back to the one before.
    Steps,
    /// Not at all: a scatter chart.
    Points,
}

/// The points of one series.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlaneSeries {
    /// Name in the legend.
    pub name: String,
    /// Position in the palette.
    pub slot: usize,
    /// Whose numbers.
    pub origin: Origin,
    /// How points are joined.
    pub mark: Mark,
    /// x and y; a line is interrupted where y is absent.
    pub points: Vec<(f64, Option<f64>)>,
    /// Half the width of the confidence interval of each point's y, absent where there is none. Empty where no point has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Option<f64>>,
    /// For each point, whether its run is not valid: drawn pale. Empty where all are valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<bool>,
}

/// Distributions over the same axes, drawn as outlines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Histogram {
    /// The number that is distributed.
    pub x: Axis,
    /// Counts or shares.
    pub y: Axis,
    /// The distributions.
    pub series: Vec<HistogramSeries>,
}

/// One distribution.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HistogramSeries {
    /// Name in the legend.
    pub name: String,
    /// Position in the palette.
    pub slot: usize,
    /// Edges of the intervals, rising: one more than `values`.
    pub edges: Vec<f64>,
    /// Height over each interval.
    pub values: Vec<f64>,
    /// Whether its run is not valid: drawn pale.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalid: bool,
}

/// A grid of numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeatMap {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What a cell's colour means. The colours follow the logarithm; cells of zero stay empty.
    pub value: Axis,
    /// Left edge of the first column and width of each.
    pub x_start_step: (f64, f64),
    /// Lower edge of the first row and height of each.
    pub y_start_step: (f64, f64),
    /// The numbers by row, lowest row first.
    pub rows: Vec<Vec<u64>>,
}
