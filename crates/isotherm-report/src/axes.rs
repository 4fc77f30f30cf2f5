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

/// The axis of x; without a text of its own, a key is called what stands behind its dots.
pub(crate) fn x_axis(wanted: &Wanted) -> Axis {
    let name = match wanted.x_label.as_str() {
        "" => wanted.x.rsplit('.').next().unwrap_or_default().replace('_', " "),
        text => text.to_owned(),
    };
    if wanted.x_logarithmic { Axis::logarithmic(name, "") } else { Axis::linear(name, "") }
}

/// Published numbers without a place of their own are lines across the chart.
pub(crate) fn rules(wanted: &Wanted) -> Vec<Rule> {
    let unplaced = wanted.published.iter().filter(|p| p.x.is_none() && !p.upright);
    unplaced.map(|p| Rule { label: format!("{} (published)", p.label), value: p.value }).collect()
}
