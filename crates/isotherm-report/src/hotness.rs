//! The report of an experiment on hot data identification: figures 6 and 8 to 15 of the MBF paper over our traces.
//!
//! Every figure has a panel for each trace. A scheme keeps its colour (its place in the experiment's list, the reference
//! first) in all of them. The paper's figures 8 and 10 are one here, and 9 and 11: they differ only in the schemes shown.

use crate::error::ReportError;
use crate::figure::{Axis, BarSeries, Bars, Chart, Figure, Mark, Origin, Panel, Plane, PlaneSeries, Rule};
use crate::html;
use crate::page::{Block, Cell, Column, Notice, Page, Section, Table, Tone};
use crate::table::number;
use isotherm_eval::hotness::experiment::Measure;
use isotherm_eval::hotness::findings::{Agreement, Comparison, CostFindings, Findings, SweepFindings, TraceFindings};

/// The report of an experiment on hot data identification, as the text of one HTML file.
///
/// # Errors
/// A figure holds a number that JSON cannot.
pub fn render(findings: &Findings, costs: Option<&CostFindings>) -> Result<String, ReportError> {
    let mut figures = vec![
        Block::Figure(unique_pages(findings)),
        Block::Figure(hot_ratios(findings)),
        Block::Figure(false_identification(findings)),
        Block::Figure(by_trace(findings)),
    ];
    figures.extend(costs.map(|costs| Block::Figure(cost_figure(costs))));
    let sweeps = findings.traces.first().map_or(0, |trace| trace.sweeps.len());
    figures.extend((0..sweeps).map(|sweep| Block::Figure(sweep_figure(findings, sweep))));
    let mut sections = vec![Section::new("Published numbers and ours", published(findings, costs))];
    sections.push(Section::new("Figures", figures));
    sections.push(Section::new("Every scheme against every reference", vec![Block::Table(agreement_table(findings))]));
    sections.push(Section::new("Traces", traces(findings)));
    html::document(&Page {
        title: findings.title.clone(),
        lead: format!("{}. Reference: {}. {}", findings.paper, findings.reference, how_often_mbf_wins(findings)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sections,
    })
}

/// The paper's main claim, counted.
fn how_often_mbf_wins(findings: &Findings) -> String {
    let rates = |trace: &TraceFindings| {
        let rate = |name: &str| {
            let scheme = trace.agreements[0].schemes.iter().find(|scheme| scheme.name == name);
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
fn panels(findings: &Findings, chart: impl Fn(&TraceFindings) -> Chart) -> Vec<Panel> {
    findings.traces.iter().map(|trace| Panel { title: trace.name.clone(), chart: chart(trace) }).collect()
}

fn line(name: &str, slot: usize, points: impl Iterator<Item = (f64, f64)>) -> PlaneSeries {
    let points = points.map(|(x, y)| (x, Some(y))).collect();
    PlaneSeries { name: name.to_owned(), slot, origin: Origin::Measured, mark: Mark::Line, points }
}

fn unique_pages(findings: &Findings) -> Figure {
    let unit = findings.unique_unit_writes;
    Figure {
        title: format!("Figure 6: different pages within {unit} writes"),
        caption:
            "Above the line, more pages are written within a decay interval than MHF has counters: collisions are \
                  certain."
                .to_owned(),
        panels: panels(findings, |trace| {
            // The last unit is shorter than the others and says nothing.
            let whole = &trace.unique_pages[..trace.unique_pages.len().saturating_sub(1).max(1)];
            let at = |i: usize| percent(((i + 1) * unit) as f64 / trace.writes as f64).min(100.0);
            let points = whole.iter().enumerate().map(|(i, &pages)| (at(i), f64::from(pages)));
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
fn over_time(agreement: &Agreement, y: &str, of: impl Fn(usize) -> Vec<f64>, with_reference: bool) -> Chart {
    // Traces differ in length a hundredfold and panels share their axes, so time is a share of the trace.
    let windows = agreement.reference_hot_ratio_by_window.len();
    let x = |window: usize| percent((window + 1) as f64 / windows as f64);
    let points = |values: Vec<f64>| values.into_iter().enumerate().map(|(w, v)| (x(w), percent(v))).collect::<Vec<_>>();
    let mut series = Vec::new();
    if with_reference {
        let values = points(agreement.reference_hot_ratio_by_window.clone());
        series.push(line(&format!("{} (reference)", agreement.reference), 0, values.into_iter()));
    }
    for (i, scheme) in agreement.schemes.iter().enumerate().filter(|(_, s)| s.name != agreement.reference) {
        series.push(line(&scheme.name, i + 1, points(of(i)).into_iter()));
    }
    Chart::Plane(Plane { x: Axis::linear("share of the trace", "%"), y: Axis::linear(y, "%"), series, rules: vec![] })
}

fn hot_ratios(findings: &Findings) -> Figure {
    Figure {
        title: "Figures 8 and 10: hot ratios over time".to_owned(),
        caption: "Share of the writes of each window that is judged hot. MHF's excess over the reference comes from \
                  collisions: counters that several cold pages share reach the threshold."
            .to_owned(),
        panels: panels(findings, |trace| {
            let agreement = &trace.agreements[0];
            over_time(agreement, "judged hot", |i| agreement.schemes[i].hot_ratio_by_window.clone(), true)
        }),
    }
}

fn false_identification(findings: &Findings) -> Figure {
    Figure {
        title: "Figures 9 and 11: verdicts that differ from the reference's, over time".to_owned(),
        caption: "Figure 9 is the line of DAM, the other baseline; figure 11 those of MBF and MHF.".to_owned(),
        panels: panels(findings, |trace| {
            let agreement = &trace.agreements[0];
            let rates = |i: usize| agreement.schemes[i].false_identification_rate_by_window.clone();
            over_time(agreement, "false identification", rates, false)
        }),
    }
}

/// The paper has no such figure: the parts of the false identification rate on every trace.
fn by_trace(findings: &Findings) -> Figure {
    let categories: Vec<_> = findings.traces.iter().map(|trace| trace.name.clone()).collect();
    let names: Vec<_> = findings.traces.first().map_or(&[][..], |t| &t.agreements[0].schemes[..]).iter().collect();
    let panel = |title: &str, of: fn(&isotherm_eval::hotness::findings::SchemeAgreement) -> f64| {
        let others = names.iter().enumerate().filter(|(_, scheme)| scheme.name != findings.reference);
        let bars = |(i, scheme): (usize, &&isotherm_eval::hotness::findings::SchemeAgreement)| BarSeries {
            name: scheme.name.clone(),
            slot: i + 1,
            origin: Origin::Measured,
            values: findings.traces.iter().map(|t| Some(percent(of(&t.agreements[0].schemes[i])))).collect(),
        };
        Panel {
            title: title.to_owned(),
            chart: Chart::Bars(Bars {
                category_label: "trace".to_owned(),
                categories: categories.clone(),
                value: Axis::linear("share of all writes", "%"),
                stacked: false,
                series: others.map(bars).collect(),
                rules: vec![],
            }),
        }
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

fn cost_figure(costs: &CostFindings) -> Figure {
    let panel = |title: &str, values: Vec<(String, f64)>| {
        let bars = BarSeries {
            name: "best round".to_owned(),
            slot: 0,
            origin: Origin::Measured,
            values: values.iter().map(|(_, value)| Some(*value)).collect(),
        };
        Panel {
            title: title.to_owned(),
            chart: Chart::Bars(Bars {
                category_label: "scheme".to_owned(),
                categories: values.into_iter().map(|(name, _)| name).collect(),
                value: Axis::logarithmic("time", "ns"),
                stacked: false,
                series: vec![bars],
                rules: vec![],
            }),
        }
    };
    let checks = costs.schemes.iter().map(|scheme| (scheme.name.clone(), scheme.ns_per_check)).collect();
    let decays = costs.schemes.iter().filter_map(|s| Some((s.name.clone(), s.ns_per_decay?))).collect();
    Figure {
        title: "Figure 12: what a check and an aging step cost".to_owned(),
        caption: format!(
            "On {}, each scheme alone, in nanoseconds of this machine; a check includes its share of the aging.",
            costs.trace
        ),
        panels: vec![panel("check", checks), panel("aging step", decays)],
    }
}

fn sweep_figure(findings: &Findings, sweep: usize) -> Figure {
    let first = &findings.traces[0].sweeps[sweep];
    let label = match first.measure {
        Measure::FalseIdentificationRate => "false identification",
        Measure::HotRatio => "judged hot",
        Measure::NsPerCheck | Measure::NsPerDecay => "time",
    };
    let chart = |found: &SweepFindings| {
        let series = found.series.iter().enumerate().map(|(slot, series)| {
            line(&series.name, slot, series.points.iter().map(|point| (point.x, percent(point.y))))
        });
        Chart::Plane(Plane {
            x: Axis::logarithmic(&found.x, ""),
            y: Axis::linear(label, "%"),
            series: series.collect(),
            rules: vec![],
        })
    };
    Figure {
        title: format!("{}: {label} by {}", first.figure, first.x),
        caption: first.note.clone(),
        panels: panels(findings, |trace| chart(&trace.sweeps[sweep])),
    }
}

fn columns(titles: &[&str]) -> Vec<Column> {
    titles.iter().map(|title| Column { title: (*title).to_owned(), ..Column::default() }).collect()
}

fn number_cell(value: f64) -> Cell {
    Cell { text: number(value), value: Some(value), key: String::new() }
}

fn published(findings: &Findings, costs: Option<&CostFindings>) -> Vec<Block> {
    let comparisons = findings.published.iter().chain(costs.iter().flat_map(|costs| &costs.published));
    let row = |comparison: &Comparison| {
        vec![
            Cell::text(&comparison.claim),
            Cell::text(&comparison.figure),
            number_cell(percent(comparison.published_change)),
            comparison.our_change.map_or_else(|| Cell::text("not measured"), |change| number_cell(percent(change))),
            Cell::text(&comparison.trace),
        ]
    };
    let table = Table {
        caption: "Relative changes in percent: negative is less.".to_owned(),
        columns: columns(&["claim", "figure", "published, %", "ours, %", "our trace"]),
        rows: comparisons.clone().map(row).collect(),
    };
    let why =
        |comparison: &Comparison| format!("{} ({}): {}", comparison.claim, comparison.trace, comparison.difference);
    vec![Block::Table(table), Block::List(comparisons.map(why).collect())]
}

fn agreement_table(findings: &Findings) -> Table {
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
            for scheme in &agreement.schemes {
                let texts = [&trace.name, &agreement.reference, &scheme.name].map(Cell::text);
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
    Table { caption: "Rates are shares of all page writes.".to_owned(), columns: columns(&titles), rows }
}

fn traces(findings: &Findings) -> Vec<Block> {
    let row = |trace: &TraceFindings| {
        vec![
            Cell::text(&trace.name),
            Cell::text(&trace.summary),
            number_cell(trace.writes as f64),
            number_cell(f64::from(trace.logical_pages)),
            number_cell(trace.page_bytes as f64),
        ]
    };
    let mut blocks = vec![Block::Table(Table {
        caption: "A request counts once for each page that it touches.".to_owned(),
        columns: columns(&["trace", "what it is", "page writes", "pages spanned", "bytes of a page"]),
        rows: findings.traces.iter().map(row).collect(),
    })];
    if !findings.skipped.is_empty() {
        blocks.push(Block::Notice(Notice {
            tone: Tone::Bad,
            title: "Some traces of the description were not there".to_owned(),
            reasons: findings.skipped.iter().map(|s| format!("{}: {}", s.trace, s.reason)).collect(),
        }));
    }
    blocks
}
