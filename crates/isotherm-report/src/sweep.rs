//! The report of an experiment: its figures over the runs of a sweep, with published numbers beside ours.

use crate::axes::{refuse, rules, value_axis, x_axis};
use crate::error::ReportError;
use crate::figure::{Axis, BarSeries, Bars, Chart, Figure, HistogramSeries, Mark, Origin, Panel, Plane, PlaneSeries};
use crate::page::{Block, Cell, Column, Page, Section, Table};
use crate::panels::{PALE, axis_text, axis_title, flags, histogram, position, values_at, varying_axes, within_a_whole};
use crate::table::{self, counts_at, number, number_at};
use crate::{runs, several};
use isotherm_eval::estimate;
use isotherm_eval::results::{
    Experiment, Figure as Wanted, FigureKind, Published, PublishedRow, ResultsFile, RunResult,
};
use serde_json::{Map, Value};

/// Fills the page.
pub(crate) fn page(results: &ResultsFile, experiment: &Experiment) -> Result<Page, ReportError> {
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
        Section::new("Published, and ours", published_rows(&experiment.published)),
        Section::new("Figures", figures),
        Section::new("Can this be trusted?", runs::trust(results)),
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

/// What was measured, and where it is drawn.
struct Point<T> {
    panel: usize,
    series: usize,
    x: Value,
    y: Option<T>,
    /// Whether the run is valid.
    valid: bool,
    /// The trace, where that tells panels apart: what was measured under different ones is not compared by eye.
    trace: String,
}

/// The runs of a figure, told apart by panel, series and x.
struct Selection<T> {
    panels: Vec<String>,
    /// Axes of a run of each panel.
    axes: Vec<Map<String, Value>>,
    series: Vec<String>,
    points: Vec<Point<T>>,
}

/// A figure as the report shows it.
pub(crate) fn figure(wanted: &Wanted, runs: &[RunResult]) -> Result<Figure, ReportError> {
    drawn(wanted, &chosen(wanted, runs)?, |_| true)
}

/// A figure as its picture shows it, which may be a part of it: what all its runs have in common stands in the title. `None` where none of
/// its runs is there, as of traces that were left out.
pub(crate) fn picture(wanted: &Wanted, runs: &[RunResult]) -> Result<Option<Figure>, ReportError> {
    let is_shown = |run: &RunResult| wanted.shows(&run.axes);
    if !runs.iter().any(|run| wanted.draws(&run.axes) && is_shown(run)) {
        return Ok(None);
    }
    let Figure { title, caption, panels } = drawn(wanted, &chosen(wanted, runs)?, is_shown)?;
    let fixed = wanted.picture_only.iter().filter_map(|(axis, value)| Some(format!("{axis}: {}", value.as_str()?)));
    let fixed: Vec<String> = fixed.collect();
    let title = if fixed.is_empty() { title } else { format!("{title} ({})", fixed.join("; ")) };
    Ok(Some(Figure { title, caption, panels }))
}

/// A figure of those of `all` that are shown; some are.
fn drawn(wanted: &Wanted, all: &[RunResult], is_shown: impl Fn(&RunResult) -> bool) -> Result<Figure, ReportError> {
    let shown: Vec<RunResult> = all.iter().filter(|run| is_shown(run)).cloned().collect();
    let panels = if wanted.kind == FigureKind::Histogram {
        histograms(wanted, &select(wanted, &shown, read(wanted, &shown, counts_at)?)?)
    } else if !matches!(wanted.kind, FigureKind::Bars | FigureKind::Lines | FigureKind::Agreement) {
        several::panels(wanted, &shown)?
    } else {
        // What others are divided by need not be shown.
        let mut values = read(wanted, all, number_at)?;
        if let Some(reference) = &wanted.relative_to {
            values = divided(wanted, all, &values, reference)?;
        }
        let values = all.iter().zip(values).filter(|(run, _)| is_shown(run)).map(|(_, value)| value).collect();
        let selection = select(wanted, &shown, values)?;
        let chart = |index| match wanted.kind {
            FigureKind::Lines => lines(wanted, &selection, index),
            FigureKind::Agreement => agreement(wanted, &selection),
            _ => Ok(bars(wanted, &selection, index)),
        };
        let panel = |(index, title): (usize, &String)| {
            let group = selection.points.iter().find(|point| point.panel == index).map(|point| point.trace.clone());
            Ok(Panel { title: title.clone(), group: group.unwrap_or_default(), chart: chart(index)? })
        };
        selection.panels.iter().enumerate().map(panel).collect::<Result<Vec<_>, ReportError>>()?
    };
    let mut caption = wanted.note.clone();
    if shown.iter().any(|run| !run.verdict.valid) {
        caption = format!("{caption} {PALE}").trim_start().to_owned();
    }
    Ok(Figure { title: wanted.title.clone(), caption, panels })
}

/// The runs that a figure is drawn from.
fn chosen(wanted: &Wanted, runs: &[RunResult]) -> Result<Vec<RunResult>, ReportError> {
    let is_chosen = |run: &&RunResult| wanted.draws(&run.axes);
    let chosen: Vec<RunResult> = runs.iter().filter(is_chosen).cloned().collect();
    if chosen.is_empty() {
        return Err(refuse(wanted, "no run has the values under `only`".into(), axes_there_are(runs)));
    }
    Ok(chosen)
}

/// What is at `key` of a run, as JSON has it.
fn value_at(json: &Value, key: &str) -> Option<Value> {
    key.split('.').try_fold(json, |at, key| at.get(key)).cloned()
}

/// What `read` takes out of each run for the figure.
fn read<T>(
    wanted: &Wanted,
    runs: &[RunResult],
    read: impl Fn(&Value, &str) -> Option<T>,
) -> Result<Vec<Option<T>>, ReportError> {
    let values = values_at(&runs.iter().collect::<Vec<_>>(), &wanted.y, read)?;
    if values.iter().all(Option::is_none) {
        let fix = "name a number of a run in results.json (for a histogram, a list of counts), with dots into objects, such as erase_count.total".into();
        return Err(refuse(wanted, format!("no run has a number at `{}`", wanted.y), fix));
    }
    Ok(values)
}

/// Axes beyond x and series that still vary have a panel for each of their combinations.
fn select<T>(wanted: &Wanted, runs: &[RunResult], values: Vec<Option<T>>) -> Result<Selection<T>, ReportError> {
    let chosen: Vec<&RunResult> = runs.iter().collect();
    let axis = |run: &RunResult, name: &str| {
        run.axes
            .get(name)
            .cloned()
            .ok_or_else(|| refuse(wanted, format!("the runs have no axis `{name}`"), axes_there_are(runs)))
    };
    let mut others: Vec<String> = varying_axes(&runs.iter().collect::<Vec<_>>())
        .into_iter()
        .filter(|a| *a != wanted.x && Some(a) != wanted.series.as_ref())
        .collect();
    if wanted.kind == FigureKind::Agreement {
        // What is predicted takes in what the axes change.
        others.clear();
    }
    let mut selection = Selection { panels: Vec::new(), axes: Vec::new(), series: Vec::new(), points: Vec::new() };
    let measured_x = if wanted.is_along_a_key() { values_at(&chosen, &wanted.x, value_at)? } else { Vec::new() };
    for (index, (run, y)) in chosen.iter().zip(values).enumerate() {
        let title =
            others.iter().map(|a| Ok(axis_title(a, &axis(run, a)?))).collect::<Result<Vec<_>, ReportError>>()?;
        let value = wanted.series.as_ref().map(|name| axis(run, name)).transpose()?;
        let label = value.as_ref().map_or_else(|| "measured".to_owned(), axis_text);
        let joined = wanted.joined.as_ref().filter(|j| value.as_ref().is_some_and(|v| j.values.contains(v)));
        let x = match measured_x.get(index) {
            Some(x) => x.clone().unwrap_or_default(),
            None => axis(run, &wanted.x)?,
        };
        let point = Point {
            panel: position(&mut selection.panels, &title.join(", ")),
            series: position(&mut selection.series, joined.map_or(&label, |j| &j.name)),
            x,
            y,
            valid: run.verdict.valid,
            trace: if others.iter().any(|a| a == "trace") { axis_text(&axis(run, "trace")?) } else { String::new() },
        };
        if selection.axes.len() < selection.panels.len() {
            selection.axes.push(run.axes.clone());
        }
        selection.points.push(point);
    }
    Ok(selection)
}

fn axes_there_are(runs: &[RunResult]) -> String {
    let names: Vec<&str> = runs.first().map_or_else(Vec::new, |r| r.axes.keys().map(String::as_str).collect());
    format!("the runs have the axes {}", names.join(", "))
}

/// Each number over that of the run that differs in the axis of the reference alone: the series, or else x.
fn divided(
    wanted: &Wanted,
    runs: &[RunResult],
    values: &[Option<f64>],
    reference: &str,
) -> Result<Vec<Option<f64>>, ReportError> {
    let is_reference = |run: &RunResult, axis: &str| run.axes.get(axis).is_some_and(|v| axis_text(v) == reference);
    let axes = wanted.series.iter().chain([&wanted.x]);
    let Some(axis) = axes.into_iter().find(|axis| runs.iter().any(|run| is_reference(run, axis))) else {
        let mut names = Vec::new();
        for value in runs.iter().filter_map(|run| run.axes.get(wanted.series.as_ref().unwrap_or(&wanted.x))) {
            position(&mut names, &axis_text(value));
        }
        let fix = format!("choose from {}", names.join(", "));
        return Err(refuse(wanted, format!("`relative_to` names no series: \"{reference}\""), fix));
    };
    let others = |run: &RunResult| {
        let mut axes = run.axes.clone();
        axes.remove(axis);
        axes
    };
    let references = runs.iter().zip(values).filter(|(run, _)| is_reference(run, axis));
    let bases: Vec<_> = references.map(|(run, value)| (others(run), *value)).collect();
    let over = |(run, value): (&RunResult, &Option<f64>)| {
        let others = others(run);
        let base = bases.iter().find(|base| base.0 == others).and_then(|base| base.1);
        value.zip(base).filter(|(_, base)| *base != 0.0).map(|(value, base)| value / base)
    };
    Ok(runs.iter().zip(values).map(over).collect())
}

/// Series of `wanted` that have published numbers with a place, with those numbers.
fn placed<'a>(wanted: &'a Wanted, selection: &Selection<f64>) -> Vec<(usize, Vec<(&'a Published, &'a Value)>)> {
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

fn bars(wanted: &Wanted, selection: &Selection<f64>, panel: usize) -> Chart {
    let points: Vec<&Point<f64>> = selection.points.iter().filter(|p| p.panel == panel).collect();
    let mut categories = Vec::new();
    for point in &points {
        position(&mut categories, &axis_text(&point.x));
    }
    let column = |number_of: &dyn Fn(&str) -> Option<f64>| categories.iter().map(|c| number_of(c)).collect();
    let mut series: Vec<BarSeries> = Vec::new();
    for (slot, name) in selection.series.iter().enumerate() {
        let point = |x: &str| points.iter().find(|p| p.series == slot && axis_text(&p.x) == x);
        let at = |x: &str| point(x).and_then(|p| p.y);
        let invalid = flags(categories.iter().map(|x| point(x).is_some_and(|p| !p.valid)));
        series.push(BarSeries { name: name.clone(), slot, origin: Origin::Measured, values: column(&at), invalid });
    }
    for (slot, numbers) in placed(wanted, selection) {
        let at = |x: &str| numbers.iter().find(|n| axis_text(n.1) == x).map(|n| n.0.value);
        let name = format!("{} (published)", selection.series[slot]);
        series.push(BarSeries { name, slot, origin: Origin::Published, values: column(&at), invalid: Vec::new() });
    }
    Chart::Bars(Bars {
        category_label: wanted.x.clone(),
        categories,
        value: value_axis(wanted),
        series,
        rules: rules(wanted),
        ..Bars::default()
    })
}

fn lines(wanted: &Wanted, selection: &Selection<f64>, panel: usize) -> Result<Chart, ReportError> {
    let number_of = |x: &Value| wanted.number_along(x);
    let mut series: Vec<PlaneSeries> = Vec::new();
    if wanted.mean {
        series.push(means(wanted, selection, panel)?);
    }
    for (slot, name) in selection.series.iter().enumerate().filter(|_| !wanted.mean) {
        let mut found = Vec::new();
        for point in selection.points.iter().filter(|p| p.panel == panel && p.series == slot) {
            found.push(((number_of(&point.x)?, point.y), !point.valid));
        }
        found.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
        let invalid = flags(found.iter().map(|(_, invalid)| *invalid));
        let points = found.into_iter().map(|(point, _)| point).collect();
        let is_beside = wanted.joined.as_ref().is_some_and(|joined| joined.name != *name);
        let mark = if is_beside { Mark::Points } else { Mark::Line };
        series.push(PlaneSeries { name: name.clone(), slot, mark, points, invalid, ..PlaneSeries::default() });
    }
    for (slot, numbers) in placed(wanted, selection) {
        let mut points = Vec::new();
        for (published, x) in numbers {
            points.push((number_of(x)?, Some(published.value)));
        }
        let (name, slot) = match wanted.mean {
            true => ("published".to_owned(), 1),
            false => (format!("{} (published)", selection.series[slot]), slot),
        };
        let (origin, mark) = (Origin::Published, Mark::Points);
        series.push(PlaneSeries { name, slot, origin, mark, points, ..PlaneSeries::default() });
    }
    let ys = series.iter().flat_map(|line| &line.points).filter_map(|point| point.1);
    let ends = ys.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], y| [a.min(y), b.max(y)]);
    for published in wanted.published.iter().filter(|published| published.stands_in(&selection.axes[panel])) {
        series.push(PlaneSeries {
            name: format!("{} (published)", published.label),
            slot: selection.series.len(),
            origin: Origin::Theory,
            points: ends.map(|y| (published.value, Some(y))).to_vec(),
            ..PlaneSeries::default()
        });
    }
    Ok(Chart::Plane(Plane { x: x_axis(wanted), y: value_axis(wanted), series, rules: rules(wanted) }))
}

/// The mean over the series at each x, with its confidence interval.
fn means(wanted: &Wanted, selection: &Selection<f64>, panel: usize) -> Result<PlaneSeries, ReportError> {
    let mut found: Vec<(f64, Vec<f64>, bool)> = Vec::new();
    for point in selection.points.iter().filter(|p| p.panel == panel) {
        let (x, y) = (wanted.number_along(&point.x)?, point.y);
        match found.iter_mut().find(|at| at.0 == x) {
            Some(at) => {
                at.1.extend(y);
                at.2 |= !point.valid;
            }
            None => found.push((x, y.into_iter().collect(), !point.valid)),
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let estimates: Vec<_> = found.iter().map(|(x, ys, _)| (*x, estimate(ys))).collect();
    let axis = wanted.series.as_deref().unwrap_or("run");
    Ok(PlaneSeries {
        name: format!("mean over {axis} ({} runs), 95 % confidence", selection.series.len()),
        points: estimates.iter().map(|(x, of)| (*x, of.as_ref().map(|of| of.mean))).collect(),
        intervals: estimates.iter().map(|(_, of)| of.as_ref()?.confidence_95).collect(),
        invalid: flags(found.iter().map(|at| at.2)),
        ..PlaneSeries::default()
    })
}

/// Measured against predicted, and the line of equality from the smallest number to the largest.
fn agreement(wanted: &Wanted, selection: &Selection<f64>) -> Result<Chart, ReportError> {
    let mut series: Vec<PlaneSeries> = Vec::new();
    for (slot, name) in selection.series.iter().enumerate() {
        let of_series = selection.points.iter().filter(|p| p.series == slot);
        let (points, invalid): (Vec<_>, Vec<_>) =
            of_series.filter_map(|p| Some(((p.x.as_f64()?, p.y), !p.valid))).unzip();
        let invalid = flags(invalid.into_iter());
        series.push(PlaneSeries {
            name: name.clone(),
            slot,
            mark: Mark::Points,
            points,
            invalid,
            ..PlaneSeries::default()
        });
    }
    let drawn = series.iter().flat_map(|s| &s.points).filter_map(|(x, y)| Some([*x, (*y)?]));
    let above_zero = drawn.flatten().filter(|number| *number > 0.0);
    let (least, most) = above_zero.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(v), b.max(v)));
    if least > most {
        let fix = "name the key of a number, such as split.ghost_audit.false_hit_rate_predicted".into();
        return Err(refuse(
            wanted,
            format!("no run has a number above zero at `{}` and `{}`", wanted.x, wanted.y),
            fix,
        ));
    }
    let points = vec![(least, Some(least)), (most, Some(most))];
    let slot = series.len();
    series.push(PlaneSeries { name: "y = x".into(), slot, origin: Origin::Theory, points, ..PlaneSeries::default() });
    let logarithmic = |axis: Axis| Axis::logarithmic(axis.label, axis.unit);
    let (x, y) = (logarithmic(x_axis(wanted)), logarithmic(value_axis(wanted)));
    Ok(Chart::Plane(Plane { x, y, series, rules: rules(wanted) }))
}

/// A panel for each x.
fn histograms(wanted: &Wanted, selection: &Selection<Vec<u64>>) -> Vec<Panel> {
    let mut titles: Vec<(usize, String)> = Vec::new();
    for point in &selection.points {
        let title = (point.panel, axis_title(&wanted.x, &point.x));
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let outline = |point: &Point<Vec<u64>>| {
        let counts = point.y.as_ref()?;
        let width = 100.0 / counts.len().checked_sub(1).filter(|w| *w > 0)? as f64;
        let (edges, values) = within_a_whole((0..counts.len()).map(|bucket| bucket as f64 * width).collect(), counts)?;
        let name = selection.series[point.series].clone();
        Some(HistogramSeries { name, slot: point.series, edges, values, invalid: !point.valid })
    };
    let panel = |(panel, title): (usize, String)| {
        let here = |p: &&Point<Vec<u64>>| p.panel == panel && axis_title(&wanted.x, &p.x) == title;
        let series = selection.points.iter().filter(here).filter_map(outline).collect();
        let chart = histogram(series, Axis::linear(value_axis(wanted).label, "%"), Axis::linear("Share", "%"))?;
        let parts = [title.as_str(), selection.panels[panel].as_str()];
        let title = parts.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ");
        Some(Panel::new(title, chart))
    };
    titles.into_iter().filter_map(panel).collect()
}

/// A row for each published number that the experiment finds ours for.
fn published_rows(rows: &[PublishedRow]) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let titles = ["Figure", "What", "Published", "Ours", "Ratio", "Valid runs", "Why they differ"];
    let of = |value: Option<f64>| Cell {
        text: value.map_or_else(|| "\u{2013}".to_owned(), number),
        value,
        key: String::new(),
    };
    let row = |row: &PublishedRow| {
        vec![
            Cell::text(&row.figure),
            Cell::text(&row.what),
            of(Some(row.published)),
            of(row.ours),
            of(row.ratio),
            Cell::text(format!("{} of {}", row.runs_valid, row.runs)),
            Cell::text(&row.difference),
        ]
    };
    vec![Block::Table(Table {
        title: String::new(),
        caption: "A dash stands where a trace was not at hand.".to_owned(),
        columns: titles.iter().map(|t| Column { title: (*t).to_owned(), ..Column::default() }).collect(),
        rows: rows.iter().map(row).collect(),
    })]
}

fn published_table(wanted: &Wanted) -> Table {
    let titles = ["Published", "Value", "Unit"];
    let columns = titles.iter().map(|t| Column { title: (*t).to_owned(), ..Column::default() }).collect();
    let row = |p: &Published| {
        let value = Cell { text: number(p.value), value: Some(p.value), key: String::new() };
        vec![Cell::text(&p.label), value, Cell::text(&p.unit)]
    };
    Table {
        title: String::new(),
        caption: format!("Published numbers for: {}", wanted.title),
        columns,
        rows: wanted.published.iter().map(row).collect(),
    }
}
