//! The report of `run` and `compare`: the answer first, then the table, the figures, and all that repeats the run.

use crate::arrangement::Arrangement;
use crate::error::ReportError;
use crate::figure::Figure;
use crate::lead;
use crate::page::{Block, Code, Fact, Notice, Page, Section, Tone};
use crate::panels;
use crate::said::{OfRun, grouped};
use crate::split;
use crate::table::{self, bytes, number, percent};
use isotherm_eval::comparison::OnTrace;
use isotherm_eval::results::{DeviceSummary, ResultsFile, RunResult, TraceSummary, Verdict, Workload};

/// Fills the page.
pub(crate) fn page(results: &ResultsFile) -> Result<Page, ReportError> {
    let parts = OnTrace::of(&results.runs, &results.traces);
    // Runs that differ in their seed alone would lie on each other: where a mean says nothing, the first of each stands for them.
    let first: Vec<&RunResult> = parts.iter().flat_map(|part| &part.devices).map(|device| device.runs[0]).collect();
    let arrangement = Arrangement::new(&parts);
    let sections = vec![
        Section::new("Can this be trusted?", trust(results)),
        Section::new("Results", tables(results)?),
        figures(
            "Write amplification",
            [
                panels::amplification_by_cause(&parts),
                panels::amplification_over_space(&parts),
                panels::amplification_over_time(&arrangement),
            ],
        ),
        figures("Garbage collection and wear", [panels::victims(&arrangement), panels::erases(&arrangement)]),
        latency(&parts, panels::latency(&arrangement)),
        figures("The device's DRAM", [split::split_over_time(&first)]),
        workload(results, &first, panels::heat(&parts)),
        repeat(results),
    ];
    let sections = sections.into_iter().filter(|s| !s.blocks.is_empty()).collect();
    Ok(Page { title: lead::title(&parts), lead: lead::lead(&parts), version: results.version.clone(), sections })
}

/// The verdict, and what could not be run at all.
pub(crate) fn trust(results: &ResultsFile) -> Vec<Block> {
    let mut blocks = vec![Block::Notice(verdict(&results.runs))];
    if !results.skipped.is_empty() {
        let title = match results.skipped.len() {
            1 => "One combination could not be run.".to_owned(),
            n => format!("{n} combinations could not be run."),
        };
        let reasons = results.skipped.iter().map(|skipped| format!("{}: {}", skipped.label, skipped.reason)).collect();
        blocks.push(Block::Notice(Notice { tone: Tone::Bad, title, reasons }));
    }
    blocks
}

/// The means over seeds where there are several, and every run.
fn tables(results: &ResultsFile) -> Result<Vec<Block>, ReportError> {
    let means = table::of_replicates(&results.replicates).map(Block::Table);
    let mut runs = table::of_runs(&results.runs, caption(&results.runs))?;
    if means.is_some() {
        runs.title = "Each run".to_owned();
    }
    Ok(means.into_iter().chain([Block::Table(runs)]).collect())
}

/// A section of those figures that have something to show.
fn figures<const N: usize>(title: &str, figures: [Option<Figure>; N]) -> Section {
    Section::new(title, figures.into_iter().flatten().map(Block::Figure).collect())
}

/// The latencies, under what is to be known of them.
fn latency(parts: &[OnTrace<'_>], figure: Option<Figure>) -> Section {
    // Below a log, requests are the log's own, and their latencies are not drawn.
    let mut told: Vec<Named> = Vec::new();
    let mut notes: Vec<(String, Vec<Named>)> = Vec::new();
    for part in parts {
        for run in part.devices.iter().flat_map(|device| &device.runs).filter(|run| run.below.is_none()) {
            let named = (part.trace, run.label.as_str());
            told.push(named);
            for note in run.latency_notes() {
                match notes.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, runs)) => runs.push(named),
                    None => notes.push((note, vec![named])),
                }
            }
        }
    }
    let lines: Vec<String> = notes.iter().map(|(note, runs)| format!("{}: {note}", whose(runs, &told))).collect();
    let lines = (!lines.is_empty()).then_some(Block::List(lines));
    Section::new("Latency of requests", lines.into_iter().chain(figure.map(Block::Figure)).collect())
}

/// A run, by the name of its trace and its label.
type Named<'a> = (&'a str, &'a str);

/// Which of all runs some of them are, in few words.
fn whose(some: &[Named<'_>], all: &[Named<'_>]) -> String {
    const NAMES_MAX: usize = 4;
    if some.len() == all.len() {
        return "Every run".to_owned();
    }
    let of_trace = |runs: &[Named<'_>], trace: &str| runs.iter().filter(|run| run.0 == trace).count();
    let (mut traces, mut labels) = (Vec::new(), Vec::new());
    for (trace, label) in some {
        panels::position(&mut traces, trace);
        panels::position(&mut labels, label);
    }
    if traces.iter().all(|trace| of_trace(some, trace) == of_trace(all, trace)) {
        return format!("Every run under {}", traces.join(", "));
    }
    match labels.len().checked_sub(NAMES_MAX).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", labels[..NAMES_MAX].join(" \u{b7} ")),
        None => labels.join(" \u{b7} "),
    }
}

fn caption(runs: &[RunResult]) -> String {
    let order = if runs.len() > 1 {
        "Runs in the order of results.json; press a heading to sort by it."
    } else {
        "The run in numbers."
    };
    let legend = Verdict::legend(runs.iter().map(|run| &run.verdict));
    let legend = if legend.is_empty() { String::new() } else { format!(" In the column Valid, {legend}.") };
    // The percentage of a life that a run used has a formula of its own, and no column where no endurance is given.
    let formulas = runs.first().map(|run| run.lifetime.formulas.join("; ")).unwrap_or_default();
    format!("{order} A dash stands where a number has no value.{legend} {formulas}.")
}

/// One notice for all runs.
fn verdict(runs: &[RunResult]) -> Notice {
    let invalid = runs.iter().filter(|run| !run.verdict.valid).count();
    let writes = runs.iter().map(|r| r.verdict.drive_writes).fold(f64::INFINITY, f64::min);
    // Caveats are told of every run that has one, whatever others are: a run that is not valid may be light besides.
    let caveats = grouped(&runs.iter().map(caveats_of).collect::<Vec<_>>());
    if invalid == 0 {
        let whole = match runs.len() {
            1 => "The run is valid".to_owned(),
            n => format!("All {n} runs are valid"),
        };
        let but = match (runs.iter().filter(|run| !run.verdict.caveats().is_empty()).count(), runs.len()) {
            (0, _) => String::new(),
            (1, 1) => ", with a caveat".to_owned(),
            (some, all) if some == all => ", each with a caveat".to_owned(),
            (some, _) => format!(", {some} of them with a caveat"),
        };
        let title = format!(
            "{whole}{but}: at least {} drive writes were done, garbage collection ran, and write amplification was steady.",
            number(writes)
        );
        return Notice { tone: Tone::Good, title, reasons: swing(runs).into_iter().chain(caveats).collect() };
    }
    let title = match (invalid, runs.len()) {
        (1, 1) => "The run is not valid: do not judge by its numbers.".to_owned(),
        (n, all) => format!("{n} of {all} runs are not valid: do not judge by their numbers."),
    };
    let reasons = grouped(&runs.iter().map(reasons_of).collect::<Vec<_>>());
    Notice { tone: Tone::Bad, title, reasons: reasons.into_iter().chain(caveats).collect() }
}

/// The caveats of a run.
fn caveats_of(run: &RunResult) -> OfRun<'_> {
    let caveats = run.verdict.caveats().into_iter().map(|(name, text)| format!("{name}: {text}"));
    (&run.label, run.seed, caveats.collect())
}

/// Why a run is not valid, if it is not.
fn reasons_of(run: &RunResult) -> OfRun<'_> {
    let reasons = (!run.verdict.valid).then(|| run.verdict.reasons.join("; "));
    (&run.label, run.seed, reasons.into_iter().collect())
}

/// What readers of a mean should know: how far write amplification swung within a whole that is steady.
fn swing(runs: &[RunResult]) -> Option<String> {
    let widest = runs
        .iter()
        .filter_map(|run| Some((run.verdict.swing()?, &run.label)))
        .max_by(|(a, _), (b, _)| f64::total_cmp(&(a[1] - a[0]), &(b[1] - b[0])))?;
    let ([least, most], label) = widest;
    Some(format!(
        "The workload comes in phases: write amplification is steady as a whole and swings within it, under {label} between {} and {}.",
        number(least),
        number(most)
    ))
}

/// What was replayed, and where its writes went. Of the draws of a synthetic workload, the first is told.
fn workload(results: &ResultsFile, first: &[&RunResult], heat: Option<Figure>) -> Section {
    let is_another_draw = |trace: &&TraceSummary| {
        first.iter().all(|run| run.trace != trace.name) && results.runs.iter().any(|run| run.trace == trace.name)
    };
    let told = results.traces.iter().filter(|trace| !is_another_draw(trace));
    let mut blocks: Vec<Block> = told.map(|t| Block::Facts(trace_facts(t))).collect();
    if let Some(run) = first.first() {
        blocks.push(Block::Facts(workload_facts(&run.workload)));
    }
    blocks.extend(heat.map(Block::Figure));
    Section::new("Workload", blocks)
}

fn trace_facts(trace: &TraceSummary) -> Vec<Fact> {
    let count = |n: u64| number(n as f64);
    vec![
        Fact::new("Trace", &trace.name),
        Fact::new("Format", &trace.format),
        Fact::new("Requests", count(trace.requests)),
        Fact::new(
            "Reads, writes, trims, flushes",
            [trace.reads, trace.writes, trace.trims, trace.flushes].map(count).join(", "),
        ),
        Fact::new("Written", bytes(trace.written_bytes)),
        Fact::new("Read", bytes(trace.read_bytes)),
        Fact::new("Span of addresses", bytes(trace.span_bytes)),
        Fact::new("Footprint", bytes(trace.footprint_bytes)),
        Fact::new("Each page is written", format!("{} \u{d7}", number(trace.overwrite_factor))),
        Fact::new("Unaligned requests", percent(trace.unaligned_share)),
        Fact::new("Skipped lines", count(trace.skipped_lines)),
        Fact::new("Duration", if trace.duration_ns == 0 { "no times".into() } else { seconds(trace.duration_ns) }),
    ]
}

fn seconds(ns: u64) -> String {
    format!("{} s", number(ns as f64 / 1e9))
}

fn workload_facts(workload: &Workload) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("Addresses", &workload.address),
        Fact::new("Preconditioning", &workload.precondition),
        Fact::new("Filler pages", percent(workload.fill_share)),
        Fact::new("Replayed", format!("{} \u{d7}", workload.repeat)),
    ];
    if workload.leading_trims_dropped > 0 {
        facts.push(Fact::new(
            "Trims at the head, taken as mkfs's and dropped",
            format!(
                "{}, {}",
                number(workload.leading_trims_dropped as f64),
                bytes(workload.leading_trimmed_bytes_dropped)
            ),
        ));
    }
    if let Some(pages) = workload.measure_last_pages {
        facts.push(Fact::new("Last window", format!("{} host page writes", number(pages as f64))));
    }
    facts
}

/// The command and the specifications: with them anyone repeats the runs.
pub(crate) fn repeat(results: &ResultsFile) -> Section {
    let mut blocks = vec![Block::Code(Code { title: "Command".into(), text: results.command.clone(), folded: false })];
    let seeds = results.runs.iter().map(|r| r.seed);
    let (least, most) = (seeds.clone().min().unwrap_or(0), seeds.max().unwrap_or(0));
    let mut facts = vec![
        Fact::new("Version", &results.version),
        Fact::new("Seed", if least == most { least.to_string() } else { format!("{least} to {most}") }),
    ];
    facts.extend(facts_of_all(results.runs.iter().map(|run| device_facts(&run.device)).collect()));
    blocks.push(Block::Facts(facts));
    for run in &results.runs {
        let text = run.spec.to_toml();
        let seed = if table::has_seeds(&results.runs) { format!(", seed {}", run.seed) } else { String::new() };
        let title = format!("Specification of {}{seed}", run.label);
        blocks.push(Block::Code(Code { title, text, folded: true }));
    }
    Section::new("Repeat it", blocks)
}

/// The facts of several devices, each with the values that it takes among them.
fn facts_of_all(devices: Vec<Vec<Fact>>) -> Vec<Fact> {
    const VALUES_MAX: usize = 4;
    let mut facts: Vec<(String, Vec<String>)> = Vec::new();
    for fact in devices.into_iter().flatten() {
        match facts.iter_mut().find(|(name, _)| *name == fact.name) {
            Some((_, values)) if values.contains(&fact.value) => {}
            Some((_, values)) => values.push(fact.value),
            None => facts.push((fact.name, vec![fact.value])),
        }
    }
    let told = |values: Vec<String>| {
        if values.len() <= VALUES_MAX { values.join(", ") } else { format!("{} different values", values.len()) }
    };
    facts.into_iter().map(|(name, values)| Fact::new(name, told(values))).collect()
}

fn device_facts(device: &DeviceSummary) -> Vec<Fact> {
    let page = device.page_bytes;
    vec![
        Fact::new("Logical size (U)", bytes(device.logical_pages * page)),
        Fact::new("Physical size (T)", bytes(device.physical_pages * page)),
        Fact::new("Over-provisioning (T\u{2212}U)/U", percent(device.over_provisioning)),
        Fact::new("Spare factor (T\u{2212}U)/T", percent(device.spare)),
        Fact::new("Page", bytes(page)),
        Fact::new("Pages per block", number(device.pages_per_block as f64)),
        Fact::new("Blocks kept free beside T", number(device.reserve_blocks as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_in_few_words() {
        let labels = ["a", "b", "c", "d", "e"];
        let of = |trace: &'static str| labels.map(|label| (trace, label)).to_vec();
        let all = [of("mail"), of("shop")].concat();
        assert_eq!(whose(&all, &all), "Every run");
        assert_eq!(whose(&of("shop"), &all), "Every run under shop");
        assert_eq!(whose(&[all[0], all[0], all[6]], &all), "a \u{b7} b");
        assert_eq!(whose(&[&all[..5], &all[6..7]].concat(), &all), "a \u{b7} b \u{b7} c \u{b7} d and 1 more");
    }

    #[test]
    fn facts_that_differ_are_told_with_each_value() {
        let device = |size: &str, page: &str| vec![Fact::new("Size", size), Fact::new("Page", page)];
        let told = |devices| facts_of_all(devices).into_iter().map(|fact| fact.value).collect::<Vec<_>>();
        assert_eq!(told(vec![device("1", "4"), device("2", "4"), device("1", "4")]), ["1, 2", "4"]);
        let many = ["1", "2", "3", "4", "5"].map(|size| device(size, "4")).to_vec();
        assert_eq!(told(many), ["5 different values", "4"]);
        assert!(told(Vec::new()).is_empty());
    }
}
