//! Figures of an experiment that draw more than one number of a run: its windows, the parts of a sum, its requests by latency,
//! its writes by address. One panel for each value of the axis `x`, one line, bar or outline for each value of `series`.

use crate::axes::{refuse, rules, value_axis};
use crate::error::ReportError;
use crate::figure::{Axis, BarSeries, Bars, Chart, Histogram, HistogramSeries, Panel, Plane, PlaneSeries};
use crate::panels::{axis_text, axis_title, flags, heat_map, position, shares, varying_axes, windows};
use isotherm_eval::results::{Figure as Wanted, FigureKind, LatencyBucket, RunResult};
use serde_json::Value;

/// One run of a panel.
struct Row<'a> {
    run: &'a RunResult,
    /// What stands at `y`.
    value: Value,
    slot: usize,
    name: String,
}

/// The panels of a figure over `runs`.
pub(crate) fn panels(wanted: &Wanted, runs: &[RunResult]) -> Result<Vec<Panel>, ReportError> {
    let (mut titles, mut names) = (Vec::new(), Vec::new());
    let mut rows: Vec<(usize, Row)> = Vec::new();
    let others = varying_axes(&runs.iter().collect::<Vec<_>>());
    for run in runs {
        let axis = |name: &str| run.axes.get(name).unwrap_or(&Value::Null);
        let mut title = vec![axis_text(axis(&wanted.x))];
        let rest = others.iter().filter(|a| **a != wanted.x && Some(*a) != wanted.series.as_ref());
        title.extend(rest.map(|a| axis_title(a, axis(a))));
        let name = wanted.series.as_ref().map_or_else(|| "measured".to_owned(), |series| axis_text(axis(series)));
        let json = serde_json::to_value(run)?;
        let value = wanted.y.split('.').fold(&json, |at, key| &at[key]).clone();
        let slot = position(&mut names, &name);
        rows.push((position(&mut titles, &title.join(", ")), Row { run, value, slot, name }));
    }
    let parts_there_are = match wanted.kind {
        FigureKind::Parts => parts_of(rows.iter().map(|(_, row)| row)),
        _ => Vec::new(),
    };
    let mut panels = Vec::new();
    for (index, title) in titles.into_iter().enumerate() {
        let of_panel: Vec<&Row> = rows.iter().filter(|row| row.0 == index).map(|row| &row.1).collect();
        let chart = match wanted.kind {
            FigureKind::OverTime => over_time(wanted, &of_panel),
            FigureKind::Parts => parts(wanted, &of_panel, &parts_there_are),
            FigureKind::Latency => latency(wanted, &of_panel, |bucket| bucket.count),
            FigureKind::LatencyTime => latency(wanted, &of_panel, |bucket| bucket.total_ns),
            FigureKind::Heat => of_panel.first().map(|row| Chart::HeatMap(heat_map(row.run))),
            FigureKind::Bars | FigureKind::Lines | FigureKind::Agreement | FigureKind::Histogram => None,
        };
        let chart = chart.ok_or_else(|| {
            let fix = "see the text on the kinds of figures for what each of them draws".to_owned();
            refuse(wanted, format!("`{}` is not what a figure of this kind draws", wanted.y), fix)
        })?;
        panels.push(Panel::new(title, chart));
    }
    Ok(panels)
}

/// Lines over the windows of the runs: `y` is a list with a number for each.
fn over_time(wanted: &Wanted, rows: &[&Row]) -> Option<Chart> {
    let line = |row: &&Row| {
        let values: Vec<Option<f64>> = row.value.as_array()?.iter().map(Value::as_f64).collect();
        Some(PlaneSeries { name: row.name.clone(), slot: row.slot, ..windows(row.run, &values, 1.0) })
    };
    let x = Axis::linear("Host pages written since the measured start", "");
    let series = rows.iter().map(line).collect::<Option<_>>()?;
    Some(Chart::Plane(Plane { x, y: value_axis(wanted), series, rules: rules(wanted) }))
}

fn number(row: &Row, part: &str) -> Option<f64> {
    row.value.get(part).and_then(Value::as_f64)
}

/// The parts that a figure shows. One that is nought in all of its panels takes no colour from the others.
fn parts_of<'a>(rows: impl Iterator<Item = &'a Row<'a>> + Clone) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in rows.clone().filter_map(|row| row.value.as_object()).flat_map(|parts| parts.keys()) {
        if rows.clone().any(|row| number(row, key).is_some_and(|y| y != 0.0)) {
            position(&mut keys, key);
        }
    }
    keys
}

/// Stacks of the members of an object, `keys`, a stack for each run.
fn parts(wanted: &Wanted, rows: &[&Row], keys: &[String]) -> Option<Chart> {
    if rows.iter().any(|row| !row.value.is_object()) {
        return None;
    }
    let sum = |row: &Row| row.value.as_object().map(|o| o.values().filter_map(Value::as_f64).sum::<f64>());
    let base = match &wanted.relative_to {
        Some(name) => sum(rows.iter().find(|row| row.name == *name)?)?,
        None => 1.0,
    };
    let stack = |(slot, key): (usize, &String)| BarSeries {
        name: key.replace('_', " "),
        slot,
        values: rows.iter().map(|row| number(row, key).map(|y| y / base)).collect(),
        invalid: flags(rows.iter().map(|row| !row.run.verdict.valid)),
        ..BarSeries::default()
    };
    Some(Chart::Bars(Bars {
        category_label: wanted.series.clone().unwrap_or_default(),
        categories: rows.iter().map(|row| row.name.clone()).collect(),
        value: value_axis(wanted),
        stacked: true,
        // What is nought everywhere would stand in the legend alone.
        series: keys
            .iter()
            .enumerate()
            .map(stack)
            .filter(|stack| stack.values.iter().flatten().any(|y| *y != 0.0))
            .collect(),
        rules: rules(wanted),
        ..Bars::default()
    }))
}

/// Outlines of the share that each bucket of latency has of what `part` takes out of them.
fn latency(wanted: &Wanted, rows: &[&Row], part: impl Fn(&LatencyBucket) -> u64) -> Option<Chart> {
    let outline = |row: &&Row| {
        let buckets: Vec<LatencyBucket> = serde_json::from_value(row.value.clone()).ok()?;
        // Buckets double in width, the first begins at half its end.
        let mut edges = vec![buckets.first()?.up_to_ns as f64 / 2e3];
        edges.extend(buckets.iter().map(|bucket| bucket.up_to_ns as f64 / 1e3));
        let values = shares(&buckets.iter().map(&part).collect::<Vec<_>>())?;
        Some(HistogramSeries { name: row.name.clone(), slot: row.slot, edges, values, invalid: !row.run.verdict.valid })
    };
    let x = Axis::logarithmic("Latency", "\u{b5}s");
    let series = rows.iter().map(outline).collect::<Option<_>>()?;
    Some(Chart::Histogram(Histogram { x, y: Axis::linear(wanted.y_label.clone(), "%"), series }))
}
