//! The split of the DRAM over time: where the border lay, and what the rule that moved it saw.

use crate::figure::{Axis, Chart, Figure, Panel, Plane, PlaneSeries};
use isotherm::dram::partition::{SplitCounters, SplitSeries};
use isotherm_eval::results::RunResult;

/// Colours of the border and of the two sides.
const BORDER: usize = 0;
const BUFFER: usize = 1;
const MAPPING: usize = 2;

/// Two charts for each run whose border moves: the border, and both cost-benefits on a scale of ratios.
pub(crate) fn split_over_time(runs: &[&RunResult]) -> Option<Figure> {
    let mut panels = Vec::new();
    for run in runs {
        let Some(series) = run.sections.get::<SplitCounters>().and_then(|split| split.series) else { continue };
        let title = |what: &str| if runs.len() == 1 { what.to_owned() } else { format!("{}, {what}", run.label) };
        panels.push(Panel::new(title("where the border lies"), Chart::Plane(border(&series))));
        panels.push(Panel::new(title("what moves it"), Chart::Plane(benefits(&series))));
    }
    (!panels.is_empty()).then(|| Figure {
        title: "The split of the DRAM over time".into(),
        caption: "The border between the map and the write buffer, and what a byte more of either side would have saved in the \
            eyes of the rule. It moves towards the side whose line is higher; where one has no line, that side would have \
            saved nothing."
            .into(),
        panels,
    })
}

fn requests() -> Axis {
    Axis::linear("Requests since the measured start", "")
}

fn line(series: &SplitSeries, name: &str, slot: usize, values: impl Iterator<Item = f64>) -> PlaneSeries {
    let points = series.requests.iter().zip(values).map(|(requests, value)| (*requests as f64, Some(value))).collect();
    PlaneSeries { name: name.into(), slot, points, ..PlaneSeries::default() }
}

fn border(series: &SplitSeries) -> Plane {
    Plane {
        x: requests(),
        y: Axis::linear("The map's share of the DRAM", "%"),
        series: vec![line(series, "map", BORDER, series.mapping_share.iter().map(|share| share * 100.0))],
        rules: Vec::new(),
    }
}

fn benefits(series: &SplitSeries) -> Plane {
    Plane {
        x: requests(),
        y: Axis::logarithmic("Flash time that a byte more would save", "ns"),
        series: vec![
            line(series, "buffer", BUFFER, series.cost_benefit_buffer.iter().copied()),
            line(series, "map", MAPPING, series.cost_benefit_mapping.iter().copied()),
        ],
        rules: Vec::new(),
    }
}
