//! The report of an experiment: its figures over the runs of a sweep, with published numbers beside ours.

use super::figure::{Axis, BarSeries, Bars, Chart, Figure, Mark, Origin, Panel, Plane, PlaneSeries, Rule};
use super::page::{Block, Cell, Column, Page, Section, Table};
use super::panels::{axis_text, axis_title, position, varying_axes};
use super::table::{self, number, number_at};
use super::{ReportError, runs};
use crate::results::{Experiment, Figure as Wanted, FigureKind, Published, ResultsFile, RunResult};
use serde_json::Value;

/// Fills the page.
pub(super) fn page(results: &ResultsFile, experiment: &Experiment) -> Result<Page, ReportError> {
    let mut figures = Vec::new();
    for wanted in &experiment.figures {
        figures.push(Block::Figure(figure(wanted, &results.runs)?));
        if !wanted.published.is_empty() {
            figures.push(Block::Table(published_table(wanted)));
        }
    }
    let caption = "Every run of the experiment; press a heading to sort by it.".to_owned();
    let sections = vec![
        Section::new("Findings", vec![Block::List(experiment.findings.clone())]),
        Section::new("Figures", figures),
        Section::new("Can this be trusted?", vec![Block::Notice(runs::verdict(&results.runs))]),
        Section::new("Runs", vec![Block::Table(table::of_runs(&results.runs, caption)?)]),
        runs::repeat(results),
    ];
    let told = |s: &Section| !s.blocks.iter().all(|b| matches!(b, Block::List(items) if items.is_empty()));
    Ok(Page {
        title: experiment.title.clone(),
        lead: experiment.description.clone(),
        version: results.version.clone(),
        sections: sections.into_iter().filter(told).collect(),
    })
}

/// One measured number and where it is drawn.
struct Point {
    panel: usize,
    series: usize,
    /// Value of the series axis, which a joined line hides.
    label: String,
    x: Value,
    y: Option<f64>,
}

/// The runs of a figure, told apart by panel, series and x.
struct Selection {
    panels: Vec<String>,
    series: Vec<String>,
    points: Vec<Point>,
}

fn figure(wanted: &Wanted, runs: &[RunResult]) -> Result<Figure, ReportError> {
    let selection = select(wanted, runs)?;
    let panels = selection
        .panels
        .iter()
        .enumerate()
        .map(|(index, title)| {
            let chart = match wanted.kind {
                FigureKind::Bars => bars(wanted, &selection, index),
                FigureKind::Lines => lines(wanted, &selection, index)?,
                FigureKind::OverTime => over_time(wanted, &selection, index),
            };
            Ok(Panel { title: title.clone(), chart })
        })
        .collect::<Result<_, ReportError>>()?;
    Ok(Figure { title: wanted.title.clone(), caption: wanted.note.clone(), panels })
}

fn refuse(wanted: &Wanted, problem: String, fix: String) -> ReportError {
    ReportError::Figure { figure: wanted.title.clone(), problem, fix }
}

/// Whether a run is one of those to draw: `only` gives a value for an axis, or several.
fn is_wanted(wanted: &Wanted, run: &RunResult) -> bool {
    wanted.only.iter().all(|(axis, value)| match (run.axes.get(axis), value) {
        (Some(of_run), Value::Array(values)) => values.contains(of_run),
        (of_run, value) => of_run == Some(value),
    })
}

/// Axes beyond x and series that still vary have a panel for each of their combinations.
fn select(wanted: &Wanted, runs: &[RunResult]) -> Result<Selection, ReportError> {
    let chosen: Vec<&RunResult> = runs.iter().filter(|run| is_wanted(wanted, run)).collect();
    if chosen.is_empty() {
        return Err(refuse(wanted, "no run has the values under `only`".into(), axes_there_are(runs)));
    }
    let axis = |run: &RunResult, name: &str| {
        run.axes
            .get(name)
            .cloned()
            .ok_or_else(|| refuse(wanted, format!("the runs have no axis `{name}`"), axes_there_are(runs)))
    };
    let owned: Vec<RunResult> = chosen.iter().map(|r| (*r).clone()).collect();
    let others: Vec<String> =
        varying_axes(&owned).into_iter().filter(|a| *a != wanted.x && Some(a) != wanted.series.as_ref()).collect();
    let mut selection = Selection { panels: Vec::new(), series: Vec::new(), points: Vec::new() };
    for run in chosen {
        let title =
            others.iter().map(|a| Ok(axis_title(a, &axis(run, a)?))).collect::<Result<Vec<_>, ReportError>>()?;
        let value = wanted.series.as_ref().map(|name| axis(run, name)).transpose()?;
        let joined = wanted.joined.as_ref().filter(|j| value.as_ref().is_some_and(|v| j.values.contains(v)));
        let label = value.as_ref().map_or_else(|| "measured".to_owned(), axis_text);
        let panel = position(&mut selection.panels, &title.join(", "));
        let series = position(&mut selection.series, joined.map_or(&label, |j| &j.name));
        let json = serde_json::to_value(run)?;
        let point = |x: Value, y| Point { panel, series, label: label.clone(), x, y };
        if wanted.kind == FigureKind::OverTime {
            let list = |key| list_at(&json, key).into_iter().flatten();
            selection.points.extend(list(&wanted.x).zip(list(&wanted.y)).map(|(x, y)| point(x.clone(), y.as_f64())));
        } else {
            let x = if is_measured(&wanted.x) {
                number_at(&json, &wanted.x).map_or(Value::Null, Value::from)
            } else {
                axis(run, &wanted.x)?
            };
            selection.points.push(point(x, number_at(&json, &wanted.y)));
        }
    }
    if selection.points.iter().all(|point| point.y.is_none()) {
        let fix = "name a number of a run in results.json, with dots into objects, such as erase_count.total".into();
        return Err(refuse(wanted, format!("no run has a number at `{}`", wanted.y), fix));
    }
    if let Some(reference) = &wanted.relative_to {
        divide(wanted, &mut selection, reference)?;
    }
    Ok(selection)
}

/// Whether an x is the key of a result rather than the name of an axis.
fn is_measured(x: &str) -> bool {
    x.contains('.')
}

/// The list at `key` of a run, as JSON has it.
fn list_at<'a>(json: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    key.split('.').try_fold(json, |at, key| at.get(key))?.as_array()
}

fn axes_there_are(runs: &[RunResult]) -> String {
    let names: Vec<&str> = runs.first().map_or_else(Vec::new, |r| r.axes.keys().map(String::as_str).collect());
    format!("the runs have the axes {}", names.join(", "))
}

/// Divides each number by that of the reference series in the same panel, at the same x unless x was measured too.
fn divide(wanted: &Wanted, selection: &mut Selection, reference: &str) -> Result<(), ReportError> {
    let bases: Vec<(usize, Value, Option<f64>)> =
        selection.points.iter().filter(|p| p.label == reference).map(|p| (p.panel, p.x.clone(), p.y)).collect();
    if bases.is_empty() {
        let fix = format!("choose from {}", selection.series.join(", "));
        return Err(refuse(wanted, format!("`relative_to` names no series: \"{reference}\""), fix));
    }
    let is_measured = is_measured(&wanted.x);
    for point in &mut selection.points {
        let base = bases.iter().find(|b| b.0 == point.panel && (is_measured || b.1 == point.x)).and_then(|b| b.2);
        point.y = point.y.zip(base).filter(|(_, base)| *base != 0.0).map(|(y, base)| y / base);
    }
    Ok(())
}

fn value_axis(wanted: &Wanted) -> Axis {
    Axis::linear(if wanted.y_label.is_empty() { wanted.y.clone() } else { wanted.y_label.clone() }, "")
}

/// Published numbers without a place of their own are lines across the chart.
fn rules(wanted: &Wanted) -> Vec<Rule> {
    let unplaced = wanted.published.iter().filter(|p| p.x.is_none());
    unplaced.map(|p| Rule { label: format!("{} (published)", p.label), value: p.value }).collect()
}

/// Series of `wanted` that have published numbers with a place, with those numbers.
fn placed<'a>(wanted: &'a Wanted, selection: &Selection) -> Vec<(usize, Vec<(&'a Published, &'a Value)>)> {
    let mut by_series: Vec<(usize, Vec<(&Published, &Value)>)> = Vec::new();
    for published in &wanted.published {
        let Some(x) = &published.x else { continue };
        let name = published.series.as_ref().map(axis_text);
        let slot = name.and_then(|n| selection.series.iter().position(|s| *s == n)).unwrap_or(0);
        match by_series.iter_mut().find(|s| s.0 == slot) {
            Some(series) => series.1.push((published, x)),
            None => by_series.push((slot, vec![(published, x)])),
        }
    }
    by_series
}

fn bars(wanted: &Wanted, selection: &Selection, panel: usize) -> Chart {
    let points: Vec<&Point> = selection.points.iter().filter(|p| p.panel == panel).collect();
    let mut categories = Vec::new();
    for point in &points {
        position(&mut categories, &axis_text(&point.x));
    }
    let column = |number_of: &dyn Fn(&str) -> Option<f64>| categories.iter().map(|c| number_of(c)).collect();
    let mut series: Vec<BarSeries> = Vec::new();
    for (slot, name) in selection.series.iter().enumerate() {
        let at = |x: &str| points.iter().find(|p| p.series == slot && axis_text(&p.x) == x).and_then(|p| p.y);
        series.push(BarSeries { name: name.clone(), slot, origin: Origin::Measured, values: column(&at) });
    }
    for (slot, numbers) in placed(wanted, selection) {
        let at = |x: &str| numbers.iter().find(|n| axis_text(n.1) == x).map(|n| n.0.value);
        let name = format!("{} (published)", selection.series[slot]);
        series.push(BarSeries { name, slot, origin: Origin::Published, values: column(&at) });
    }
    Chart::Bars(Bars {
        category_label: wanted.x.clone(),
        categories,
        value: value_axis(wanted),
        stacked: false,
        series,
        rules: rules(wanted),
    })
}

fn lines(wanted: &Wanted, selection: &Selection, panel: usize) -> Result<Chart, ReportError> {
    let number_of = |x: &Value| {
        x.as_f64().ok_or_else(|| {
            let problem = format!("a line needs numbers along x, and `{}` takes the value {x}", wanted.x);
            refuse(wanted, problem, "write `kind = \"bars\"`, or choose an axis of numbers".into())
        })
    };
    let mut series: Vec<PlaneSeries> = Vec::new();
    for (slot, name) in selection.series.iter().enumerate() {
        let mut points = Vec::new();
        for point in selection.points.iter().filter(|p| p.panel == panel && p.series == slot) {
            points.push((number_of(&point.x)?, point.y));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let is_beside = wanted.joined.as_ref().is_some_and(|joined| joined.name != *name);
        let mark = if is_beside { Mark::Points } else { Mark::Line };
        series.push(PlaneSeries { name: name.clone(), slot, mark, points, ..PlaneSeries::default() });
    }
    for (slot, numbers) in placed(wanted, selection) {
        let mut points = Vec::new();
        for (published, x) in numbers {
            points.push((number_of(x)?, Some(published.value)));
        }
        let name = format!("{} (published)", selection.series[slot]);
        series.push(PlaneSeries { name, slot, origin: Origin::Published, mark: Mark::Points, points });
    }
    Ok(Chart::Plane(Plane { x: x_axis(wanted), y: value_axis(wanted), series, rules: rules(wanted) }))
}

/// Lines of the lists of runs.
fn over_time(wanted: &Wanted, selection: &Selection, panel: usize) -> Chart {
    let series = selection.series.iter().enumerate().map(|(slot, name)| {
        let points = selection.points.iter().filter(|p| p.panel == panel && p.series == slot);
        let points = points.filter_map(|p| Some((p.x.as_f64()?, p.y))).collect();
        PlaneSeries { name: name.clone(), slot, points, ..PlaneSeries::default() }
    });
    let series = series.collect();
    Chart::Plane(Plane { x: x_axis(wanted), y: value_axis(wanted), series, rules: rules(wanted) })
}

/// The name of x: of a key, what stands behind its dots.
fn x_axis(wanted: &Wanted) -> Axis {
    Axis::linear(wanted.x.rsplit('.').next().unwrap_or_default().replace('_', " "), "")
}

fn published_table(wanted: &Wanted) -> Table {
    let titles = ["Published", "Value", "Unit"];
    let columns = titles.iter().map(|t| Column { title: (*t).to_owned(), ..Column::default() }).collect();
    let row = |p: &Published| {
        let value = Cell { text: number(p.value), value: Some(p.value), key: String::new() };
        vec![Cell::text(&p.label), value, Cell::text(&p.unit)]
    };
    Table {
        caption: format!("Published numbers for: {}", wanted.title),
        columns,
        rows: wanted.published.iter().map(row).collect(),
    }
}
