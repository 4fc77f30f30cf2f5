//! The report of an experiment on hot data identification: figures 6 and 8 to 15 of the MBF paper over our traces.
//!
//! Every figure has a panel for each trace. A scheme keeps its colour (its place in the experiment's list, the reference
//! first) in all of them. The paper's figures 8 and 10 are one here, and 9 and 11: they differ only in the schemes shown.

use crate::figure::{Axis, BarSeries, Bars, Chart, Figure, Panel, Plane, PlaneSeries, Rule};
use crate::findings::{Findings, TraceFindings, compared};
use crate::page::{Block, Cell, Column, Page, Section, Table};
use crate::table::number;
use isotherm_eval::results::{
    Experiment, HotnessExperiment, HotnessMeasure, HotnessResult, HotnessSweep, PublishedChange, ResultsFile,
    SchemeAgreement,
};

/// Fills the page.
pub(crate) fn page(results: &ResultsFile, experiment: &Experiment, asked: &HotnessExperiment) -> Page {
    let findings = &Findings::of(experiment, asked, &results.hotness);
    let mut figures = vec![
        Block::Figure(unique_pages(findings)),
        Block::Figure(hot_ratios(findings)),
        Block::Figure(false_identification(findings)),
        Block::Figure(by_trace(findings)),
    ];
    figures.extend(findings.costs.map(|costs| Block::Figure(cost_figure(costs))));
    figures.extend(asked.sweeps.iter().map(|sweep| Block::Figure(sweep_figure(findings, sweep))));
    let mut sections = Vec::new();
    if !experiment.findings.is_empty() {
        sections.push(Section::new("Findings", vec![Block::List(experiment.findings.clone())]));
    }
    sections.push(Section::new("Published numbers and ours", published(findings)));
    sections.push(Section::new("Figures", figures));
    sections.push(Section::new("Every scheme against every reference", vec![Block::Table(agreement_table(findings))]));
    sections.push(Section::new("Traces", vec![Block::Table(traces(findings))]));
    let reference = asked.references.first().map(ToString::to_string).unwrap_or_default();
    Page {
        title: experiment.title.clone(),
        lead: format!("{} Reference: {reference}. {}", experiment.description, how_often_mbf_wins(findings)),
        version: results.version.clone(),
        sections,
    }
}

/// The paper's main claim, counted.
fn how_often_mbf_wins(findings: &Findings<'_>) -> String {
    let rates = |trace: &TraceFindings<'_>| {
        let rate = |name: &str| {
            let scheme = trace.main().schemes.iter().find(|scheme| scheme.name == name);
            scheme.map(|scheme| scheme.false_identification_rate)
        };
        rate("mbf").zip(rate("mhf"))
    };
    let pairs: Vec<_> = findings.traces.iter().filter_map(rates).collect();
    if pairs.is_empty() {
        return String::new();
    }
    let lower = pairs.iter().filter(|(mbf, mhf)| mbf < mhf).count();
    format!("MBF errs less often than MHF, with half its memory, on {lower} of {} traces.", pairs.len())
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// A panel for each trace.
fn panels(findings: &Findings<'_>, chart: impl Fn(&TraceFindings<'_>) -> Chart) -> Vec<Panel> {
    findings.traces.iter().map(|trace| Panel::new(trace.name, chart(trace))).collect()
}

fn line(name: &str, slot: usize, points: impl Iterator<Item = (f64, Option<f64>)>) -> PlaneSeries {
    let points = points.collect();
    PlaneSeries { name: name.to_owned(), slot, points, ..PlaneSeries::default() }
}

fn unique_pages(findings: &Findings<'_>) -> Figure {
    let unit = findings.asked.unique_unit;
    Figure {
        title: format!("Figure 6: different pages within {unit} writes"),
        caption:
            "Above the line, more pages are written within a decay interval than MHF has counters: collisions are \
                  certain."
                .to_owned(),
        panels: panels(findings, |trace| {
            // The last unit is shorter than the others and says nothing.
            let units = &trace.main().unique_pages;
            let whole = &units[..units.len().saturating_sub(1).max(1).min(units.len())];
            let at = |i: usize| percent(((i as u64 + 1) * unit) as f64 / trace.main().writes as f64).min(100.0);
            let points = whole.iter().enumerate().map(|(i, &pages)| (at(i), Some(f64::from(pages))));
            Chart::Plane(Plane {
                x: Axis::linear("share of the trace", "%"),
                y: Axis::linear("different pages", "pages"),
                series: vec![line("different pages", 0, points)],
                rules: vec![Rule { label: "4096 counters".to_owned(), value: 4096.0 }],
            })
        }),
    }
}

/// A number of each window of each scheme but the reference itself, which would agree with itself.
fn over_time(
    asked: &HotnessExperiment,
    agreement: &HotnessResult,
    y: &str,
    of: impl Fn(usize) -> Vec<f64>,
    with_reference: bool,
) -> Chart {
    // Traces differ in length a hundredfold and panels share their axes, so time is a share of the trace.
    let windows = agreement.reference_hot_ratio_by_window.len();
    let x = |window: usize| percent((window + 1) as f64 / windows as f64);
    let points =
        |values: Vec<f64>| values.into_iter().enumerate().map(|(w, v)| (x(w), Some(percent(v)))).collect::<Vec<_>>();
    let mut series = Vec::new();
    if with_reference {
        let values = points(agreement.reference_hot_ratio_by_window.clone());
        series.push(line(&format!("{} (reference)", agreement.spec.reference), 0, values.into_iter()));
    }
    for (i, scheme) in others(asked, agreement) {
        series.push(line(&scheme.name, i + 1, points(of(i)).into_iter()));
    }
    Chart::Plane(Plane { x: Axis::linear("share of the trace", "%"), y: Axis::linear(y, "%"), series, rules: vec![] })
}

fn hot_ratios(findings: &Findings<'_>) -> Figure {
    Figure {
        title: "Figures 8 and 10: hot ratios over time".to_owned(),
        caption: "Share of the writes of each window that is judged hot. MHF's excess over the reference comes from \
                  collisions: counters that several cold pages share reach the threshold."
            .to_owned(),
        panels: panels(findings, |trace| {
            let agreement = trace.main();
            over_time(
                findings.asked,
                agreement,
                "judged hot",
                |i| agreement.schemes[i].hot_ratio_by_window.clone(),
                true,
            )
        }),
    }
}

fn false_identification(findings: &Findings<'_>) -> Figure {
    Figure {
        title: "Figures 9 and 11: verdicts that differ from the reference's, over time".to_owned(),
        caption: "Figure 9 is the line of DAM, the other baseline; figure 11 those of MBF and MHF.".to_owned(),
        panels: panels(findings, |trace| {
            let agreement = trace.main();
            let rates = |i: usize| agreement.schemes[i].false_identification_rate_by_window.clone();
            over_time(findings.asked, agreement, "false identification", rates, false)
        }),
    }
}

/// The schemes that are compared, with their places, without the reference itself: it would agree with itself.
fn others<'a>(
    asked: &HotnessExperiment,
    result: &'a HotnessResult,
) -> impl Iterator<Item = (usize, &'a SchemeAgreement)> {
    let reference = result.spec.reference.to_string();
    compared(asked, result).iter().enumerate().filter(move |(_, scheme)| scheme.name != reference)
}

/// The paper has no such figure: the parts of the false identification rate on every trace.
pub(crate) fn by_trace(findings: &Findings<'_>) -> Figure {
    let categories: Vec<_> = findings.traces.iter().map(|trace| trace.name.to_owned()).collect();
    let panel = |title: &str, of: fn(&SchemeAgreement) -> f64| {
        let bars = |(i, scheme): (usize, &SchemeAgreement)| BarSeries {
            name: scheme.name.clone(),
            slot: i + 1,
            values: findings.traces.iter().map(|t| Some(percent(of(&t.main().schemes[i])))).collect(),
            ..BarSeries::default()
        };
        let first = findings.traces.first().map(TraceFindings::main);
        let chart = Chart::Bars(Bars {
            category_label: "trace".to_owned(),
            categories: categories.clone(),
            value: Axis::linear("share of all writes", "%"),
            stacked: false,
            series: first.into_iter().flat_map(|first| others(findings.asked, first).map(bars)).collect(),
            ..Bars::default()
        });
        Panel::new(title, chart)
    };
    Figure {
        title: "Who errs where, and in which direction".to_owned(),
        caption: "The two parts add up to the false identification rate.".to_owned(),
        panels: vec![
            panel("judged hot, but cold by the reference", |scheme| scheme.false_hot_rate),
            panel("judged cold, but hot by the reference", |scheme| scheme.false_cold_rate),
        ],
    }
}

fn cost_figure(costs: &HotnessResult) -> Figure {
    let panel = |title: &str, values: Vec<(String, f64)>| {
        let bars = BarSeries {
            name: "best round".to_owned(),
            values: values.iter().map(|(_, value)| Some(*value)).collect(),
            ..BarSeries::default()
        };
        let chart = Chart::Bars(Bars {
            category_label: "scheme".to_owned(),
            categories: values.into_iter().map(|(name, _)| name).collect(),
            value: Axis::logarithmic("time", "ns"),
            stacked: false,
            series: vec![bars],
            ..Bars::default()
        });
        Panel::new(title, chart)
    };
    let checks = costs.schemes.iter().filter_map(|s| Some((s.name.clone(), s.simulator_ns_per_check?))).collect();
    let decays = costs.schemes.iter().filter_map(|s| Some((s.name.clone(), s.simulator_ns_per_decay?))).collect();
    Figure {
        title: "Figure 12: what a check and an aging step cost".to_owned(),
        caption: format!(
            "On {}, each scheme alone, in nanoseconds of this machine; a check includes its share of the aging.",
            costs.axes.get("trace").and_then(|label| label.as_str()).unwrap_or(&costs.trace)
        ),
        panels: vec![panel("check", checks), panel("aging step", decays)],
    }
}

pub(crate) fn sweep_figure(findings: &Findings<'_>, sweep: &HotnessSweep) -> Figure {
    let (label, unit) = match sweep.measure {
        HotnessMeasure::FalseIdentificationRate => ("false identification", "%"),
        HotnessMeasure::HotRatio => ("judged hot", "%"),
        HotnessMeasure::NsPerCheck | HotnessMeasure::NsPerDecay => ("time", "ns"),
    };
    let scale = if sweep.measure.is_cost() { 1.0 } else { 100.0 };
    let chart = |trace: &TraceFindings<'_>| {
        let found = trace.sweep(sweep).into_iter().enumerate();
        let series = found.map(|(slot, (name, points))| {
            line(name, slot, points.iter().map(|point| (point.x, point.y.map(|y| scale * y))))
        });
        Chart::Plane(Plane {
            x: Axis::logarithmic(&sweep.x, ""),
            y: Axis::linear(label, unit),
            series: series.collect(),
            rules: vec![],
        })
    };
    Figure {
        title: format!("{}: {label} by {}", sweep.figure, sweep.x),
        caption: sweep.note.clone(),
        panels: panels(findings, chart),
    }
}

fn columns(titles: &[&str]) -> Vec<Column> {
    titles.iter().map(|title| Column { title: (*title).to_owned(), ..Column::default() }).collect()
}

fn number_cell(value: f64) -> Cell {
    Cell { text: number(value), value: Some(value), key: String::new() }
}

fn published(findings: &Findings<'_>) -> Vec<Block> {
    let comparisons = findings.published();
    let row = |(published, ours): &(&PublishedChange, Option<f64>)| {
        vec![
            Cell::text(&published.claim),
            Cell::text(&published.figure),
            Cell::text(&published.published_trace),
            published.change.map_or_else(|| Cell::text("no number"), |change| number_cell(percent(change))),
            ours.map_or_else(|| Cell::text("not measured"), |change| number_cell(percent(change))),
            Cell::text(&published.trace),
        ]
    };
    let table = Table {
        title: String::new(),
        caption: "Relative changes in percent: negative is less.".to_owned(),
        columns: columns(&["claim", "figure", "published trace", "published, %", "ours, %", "our trace"]),
        rows: comparisons.iter().map(row).collect(),
    };
    let why = |(published, _): &(&PublishedChange, Option<f64>)| {
        format!("{} ({}): {}", published.claim, published.trace, published.difference)
    };
    vec![Block::Table(table), Block::List(comparisons.iter().map(why).collect())]
}

fn agreement_table(findings: &Findings<'_>) -> Table {
    let titles = [
        "trace",
        "reference",
        "scheme",
        "bytes",
        "hot, %",
        "false, %",
        "false hot, %",
        "false cold, %",
        "precision",
        "recall",
    ];
    let mut rows = Vec::new();
    for trace in &findings.traces {
        for agreement in &trace.agreements {
            for scheme in compared(findings.asked, agreement) {
                let reference = agreement.spec.reference.to_string();
                let texts = [trace.name, &reference, &scheme.name].map(Cell::text);
                let numbers = [
                    scheme.memory_bytes as f64,
                    percent(scheme.hot_ratio),
                    percent(scheme.false_identification_rate),
                    percent(scheme.false_hot_rate),
                    percent(scheme.false_cold_rate),
                    scheme.precision,
                    scheme.recall,
                ]
                .map(number_cell);
                rows.push(texts.into_iter().chain(numbers).collect());
            }
        }
    }
    let caption = "Rates are shares of all page writes.".to_owned();
    Table { title: String::new(), caption, columns: columns(&titles), rows }
}

fn traces(findings: &Findings<'_>) -> Table {
    let row = |trace: &TraceFindings<'_>| {
        vec![
            Cell::text(trace.name),
            Cell::text(trace.summary),
            number_cell(trace.main().writes as f64),
            number_cell(trace.main().logical_pages as f64),
            number_cell(trace.main().spec.page_size.0 as f64),
        ]
    };
    Table {
        title: String::new(),
        caption: "A request counts once for each page that it touches.".to_owned(),
        columns: columns(&["trace", "what it is", "page writes", "pages spanned", "bytes of a page"]),
        rows: findings.traces.iter().map(row).collect(),
    }
}
