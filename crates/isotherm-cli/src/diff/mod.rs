//! `isotherm diff`: what changed between two results, and whether that is a failure.

mod condition;
mod metrics;
mod pairs;

use self::condition::{Condition, change};
use self::pairs::{Matched, Pair, matched, read};
use crate::output::{self, print};
use crate::table::{Column, Table};
use anyhow::bail;
use clap::Args;
use isotherm_eval::files;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `diff`.
#[derive(Args)]
#[command(after_help = after_help())]
pub struct DiffArgs {
    /// Results before: a results.json of compare or sweep, or what `run --json` prints
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Results after
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Fail where this holds of any run: 'wa > +2%' (relative change), 'erases > +100' (change), 'wa > 2' (limit); may be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
    /// Compare the runs that both have, where else one without its like is an error
    #[arg(long)]
    only_common: bool,
    /// Show every number that changed, not the main ones alone
    #[arg(long)]
    all: bool,
    /// Print tables in GitHub's Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    format!(
        "Exit codes: 0 no condition is met, 1 one is, or a run that was valid is so no more, 2 wrong usage or input.\nRuns are matched by trace \
         (its file's name), label and seed; a file of one run with any other of one run.\n\nShort names: {}. Every other number goes by its key in \
         results.json, such as last_window.gc_count.\n\nExample:\n  isotherm diff old.json new.json --fail-if 'wa > +2%' --fail-if 'p999_write > +5%'",
        metrics::short_names()
    )
}

/// A number that changed or was asked for.
struct Line<'a> {
    pair: &'a Pair,
    key: String,
    old: Option<f64>,
    new: Option<f64>,
}

/// Compares.
pub fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let matched = matched(read(&args.old)?, read(&args.new)?)?;
    if matched.pairs.is_empty() {
        bail!(
            "{} and {} have no run in common: no trace, label and seed is in both",
            args.old.display(),
            args.new.display()
        );
    }
    let alone = [(&args.old, &matched.only_old), (&args.new, &matched.only_new)];
    if let Some((path, names)) = alone.iter().find(|(_, names)| !names.is_empty()).filter(|_| !args.only_common) {
        bail!("{} alone has {}; --only-common compares the others", path.display(), names.join("; "));
    }
    for condition in &args.fail_if {
        let has = |pair: &Pair| {
            pair.new.numbers.contains_key(&condition.key) || pair.old.numbers.contains_key(&condition.key)
        };
        if !matched.pairs.iter().any(has) {
            bail!(
                "--fail-if \"{}\": no run has a number \"{}\"; choose from {}, or a key of results.json",
                condition.text,
                condition.key,
                metrics::short_names()
            );
        }
    }
    let findings = findings(&matched, &args.fail_if);
    let lines = lines(&matched, args);
    if args.json {
        print(&files::to_json(&to_json(&matched, &lines, &findings)))?;
    } else {
        print(&text(&matched, &lines, &findings, args.markdown))?;
    }
    match &findings.unchecked[..] {
        _ if !findings.failures.is_empty() => Ok(ExitCode::from(crate::CHECK_FAILED)),
        [] => Ok(ExitCode::SUCCESS),
        [first, others @ ..] => {
            let others = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
            bail!("a condition cannot be checked: {first}{others}")
        }
    }
}

/// What conditions and verdicts say of the runs, in words.
#[derive(Default)]
struct Findings {
    /// Every condition that is met, and every run that is valid no more.
    failures: Vec<String>,
    /// Every condition that a run has no number for.
    unchecked: Vec<String>,
}

fn findings(matched: &Matched, conditions: &[Condition]) -> Findings {
    let mut findings = Findings::default();
    for pair in &matched.pairs {
        for condition in conditions {
            let of = |numbers: &metrics::Numbers| numbers.get(&condition.key).copied();
            let (old, new) = (of(&pair.old.numbers), of(&pair.new.numbers));
            match condition.is_met(old, new) {
                Ok(false) => {}
                Ok(true) => {
                    let before = old.map_or_else(String::new, |old| format!(" (before {})", number(old)));
                    let name = metrics::short(&condition.key);
                    let now = new.map_or_else(String::new, number);
                    findings.failures.push(format!("{}: {name} is {now}{before}: {}", pair.name, condition.text));
                }
                Err(problem) => findings.unchecked.push(format!("{}: --fail-if {problem}", pair.name)),
            }
        }
        let (old, new) = (&pair.old.result.verdict, &pair.new.result.verdict);
        if old.valid && !new.valid {
            findings.failures.push(format!("{}: valid no more: {}", pair.name, new.reasons.join("; ")));
        }
    }
    findings
}

/// Which runs of a pair are not valid, if any.
fn invalid(pair: &Pair) -> Option<&'static str> {
    match (pair.old.result.verdict.valid, pair.new.result.verdict.valid) {
        (true, true) => None,
        (false, true) => Some("the old run is not valid, the new one is"),
        (true, false) => Some("the new run is not valid, the old one was"),
        (false, false) => Some("neither run is valid: their difference may mean nothing"),
    }
}

/// Why a valid run of a pair says little, where the other one has nothing of the kind: a change that no number shows.
fn reserves(pair: &Pair) -> Vec<String> {
    let (old, new) = (&pair.old.result.verdict, &pair.new.result.verdict);
    let kinds = [("light", &old.light, &new.light), ("a first replay", &old.first_replay, &new.first_replay)];
    let words = |(kind, old, new): (&str, &Option<String>, &Option<String>)| match (old, new) {
        (None, Some(why)) => Some(format!("the new run is {kind}, the old one was not: {why}")),
        (Some(why), None) => Some(format!("the old run was {kind}, the new one is not: {why}")),
        _ => None,
    };
    kinds.into_iter().filter_map(words).collect()
}

/// The numbers to show: those that were asked for, and those that changed.
fn lines<'a>(matched: &'a Matched, args: &DiffArgs) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for pair in &matched.pairs {
        let asked = args.fail_if.iter().map(|condition| condition.key.clone());
        let mut keys: Vec<String> = Vec::new();
        let known = pair.new.numbers.keys().chain(pair.old.numbers.keys()).cloned();
        for key in asked.chain(known) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        for key in keys {
            let (old, new) = (pair.old.numbers.get(&key).copied(), pair.new.numbers.get(&key).copied());
            let is_asked = args.fail_if.iter().any(|condition| condition.key == key);
            if is_asked || old != new && (args.all || metrics::is_main(&key)) {
                lines.push(Line { pair, key, old, new });
            }
        }
    }
    lines
}

/// A number in full where it is whole, else with six digits.
fn number(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => format!("{value:.0}"),
        false => {
            let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 12) as usize;
            let text = format!("{value:.digits$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
    }
}

fn percentage(old: Option<f64>, new: Option<f64>) -> String {
    match old.zip(new).map(|(old, new)| change(old, new)) {
        None => "-".to_owned(),
        Some(change) if !change.is_finite() => "from 0".to_owned(),
        Some(change) => format!("{:+.2} %", change * 100.0),
    }
}

/// The tables for people: one for each pair, then what failed.
fn text(matched: &Matched, lines: &[Line<'_>], findings: &Findings, is_markdown: bool) -> String {
    let mut text = String::new();
    let said = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), self::number);
    let room = output::width();
    let paragraph = |line: &str| if is_markdown { format!("{line}\n") } else { output::wrapped(line, room, 2) };
    let (mut same, mut same_invalid) = (0, 0);
    for pair in &matched.pairs {
        let of_pair: Vec<&Line<'_>> = lines.iter().filter(|line| std::ptr::eq(line.pair, pair)).collect();
        let (old, new) = (&pair.old.result.verdict, &pair.new.result.verdict);
        let reserves = reserves(pair);
        if of_pair.is_empty() && pair.differing.is_empty() && old.valid == new.valid && reserves.is_empty() {
            same += 1;
            same_invalid += usize::from(!new.valid);
            continue;
        }
        text.push_str(&if is_markdown { format!("### {}\n\n", pair.name) } else { format!("{}\n", pair.name) });
        if !pair.differing.is_empty() {
            text.push_str(&paragraph(&format!("differs in {}", pair.differing.join(", "))));
        }
        if let Some(words) = invalid(pair) {
            text.push_str(&paragraph(words));
        }
        reserves.iter().for_each(|words| text.push_str(&paragraph(words)));
        if of_pair.is_empty() {
            text.push_str("no main number changed\n\n");
            continue;
        }
        let cells = |line: &&Line<'_>| {
            vec![metrics::short(&line.key).to_owned(), said(line.old), said(line.new), percentage(line.old, line.new)]
        };
        if is_markdown {
            text.push_str("\n| number | old | new | change |\n| --- | ---: | ---: | ---: |\n");
            for line in &of_pair {
                text.push_str(&format!("| {} |\n", cells(line).join(" | ")));
            }
        } else {
            let mut table = Table::new(&["number", "old", "new", "change"].map(Column::new));
            of_pair.iter().for_each(|line| table.row(cells(line)));
            text.push_str(&table.render(room));
        }
        text.push('\n');
    }
    if same > 0 {
        let plural = if same == 1 { "" } else { "s" };
        let invalid = if same_invalid == 0 { String::new() } else { format!(" ({same_invalid} not valid)") };
        text.push_str(&format!("{same} run{plural} without a change in a main number{invalid}\n"));
    }
    for (names, which) in [(&matched.only_old, "old"), (&matched.only_new, "new")] {
        if !names.is_empty() {
            text.push_str(&paragraph(&format!("only in the {which} results: {}", names.join("; "))));
        }
    }
    for (word, these) in [("FAILED", &findings.failures), ("NOT CHECKED", &findings.unchecked)] {
        for finding in these {
            let line = if is_markdown { format!("- **{word}** {finding}") } else { format!("{word} {finding}") };
            text.push_str(&paragraph(&line));
        }
    }
    text
}

/// The same for programs.
fn to_json(matched: &Matched, lines: &[Line<'_>], findings: &Findings) -> Value {
    let pairs: Vec<Value> = matched
        .pairs
        .iter()
        .map(|pair| {
            let of_pair = lines.iter().filter(|line| std::ptr::eq(line.pair, pair));
            let numbers: serde_json::Map<String, Value> = of_pair
                .map(|line| {
                    let change =
                        line.old.zip(line.new).map(|(old, new)| change(old, new)).filter(|change| change.is_finite());
                    (line.key.clone(), json!({"old": line.old, "new": line.new, "relative_change": change}))
                })
                .collect();
            json!({
                "name": pair.name,
                "trace": pair.new.result.trace,
                "label": pair.new.result.label,
                "seed": pair.new.result.seed,
                "valid": {"old": pair.old.result.verdict.valid, "new": pair.new.result.verdict.valid},
                "differs_in": pair.differing,
                "numbers": numbers,
            })
        })
        .collect();
    json!({
        "pairs": pairs,
        "only_old": matched.only_old,
        "only_new": matched.only_new,
        "failures": findings.failures,
        "unchecked": findings.unchecked,
    })
}
