//! The axes of an experiment's figures, and how a figure is refused.

use crate::error::ReportError;
use crate::figure::{Axis, Rule};
use isotherm_eval::results::Figure as Wanted;

pub(crate) fn refuse(wanted: &Wanted, problem: String, fix: String) -> ReportError {
    wanted.refuse(problem, fix).into()
}

pub(crate) fn value_axis(wanted: &Wanted) -> Axis {
    Axis::linear(if wanted.y_label.is_empty() { wanted.y.clone() } else { wanted.y_label.clone() }, "")
}

/// The name of x: of a key, what stands behind its dots.
pub(crate) fn x_axis(wanted: &Wanted) -> Axis {
    Axis::linear(wanted.x.rsplit('.').next().unwrap_or_default().replace('_', " "), "")
}

/// Published numbers without a place of their own are lines across the chart.
pub(crate) fn rules(wanted: &Wanted) -> Vec<Rule> {
    let unplaced = wanted.published.iter().filter(|p| p.x.is_none());
    unplaced.map(|p| Rule { label: format!("{} (published)", p.label), value: p.value }).collect()
}
