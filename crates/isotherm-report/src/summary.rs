//! Several experiments at a glance, for the repository: one table of published numbers with ours beside them, as Markdown, and
//! figures as pictures ([`crate::svg()`]). Everything in it comes from results files; nothing is written by hand.

use crate::error::ReportError;
use crate::figure::{Figure, Panel};
use crate::findings::Findings;
use crate::panels::PALE;
use crate::svg::svg;
use crate::table::number;
use crate::{hotness, sweep};
use isotherm_eval::results::{Experiment, PublishedRow, ResultsFile, RunResult};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A folder's page and its pictures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The page, as Markdown.
    pub page: String,
    /// Name of each picture's file below `figures/`, and its text.
    pub pictures: Vec<(String, String)>,
}

/// How far ours lies from a published number, at most, to be the same, to agree with it, and to be near it.
const SAME: f64 = 1.01;
const AGREES: f64 = 1.1;
const NEAR: f64 = 1.5;
/// A smaller change against the scheme that a number is relative to is none.
const CHANGE_MIN: f64 = 0.01;

/// Above the pictures of experiments that follow no paper.
const WITHOUT_PAPER: &str = "Beyond the papers";

const HEAD: &str = "\
<!-- Written by `make figures` from the results of the experiments in this folder. -->
# Published numbers and ours

Every row is computed from the results of an experiment of this folder (`isotherm sweep experiments/NAME.toml`): the published number as it was
published, for its own trace; ours on the nearest workload at hand; the ratio of ours to it. Why ours differs stands in the
experiment's file.

| Verdict | Ours |
|---|---|
| agrees | is within 10 % of the published number. Of a number that is relative to another scheme's, both gain, both lose or both change nothing, too, or they are within 1 % of each other; a change of under 1 % is none |
| opposite | gains where the published number loses, or loses where it gains, by 1 % or more each, whatever the ratio |
| near | is within a factor of 1.5, and neither of the above |
| differs | is further away |
| unproven | comes from runs of which some are not valid by their own verdicts: it shows nothing for or against the published number. What it would be called otherwise stands in parentheses |

";

/// One row of the table.
struct Row {
    figure: String,
    what: String,
    regime: String,
    published: f64,
    ours: Option<f64>,
    /// What both would be if nothing were gained or lost.
    neutral: Option<f64>,
    /// Runs behind ours that are not valid, of how many.
    invalid: (u64, u64),
}

impl Row {
    fn verdict(&self) -> String {
        let Some(ours) = self.ours else { return "not run: its trace is not at hand".to_owned() };
        // 1, 0 and -1: the number is above what changes nothing, the same, below it.
        let side = |number: f64| {
            let change = self.neutral.map_or(0.0, |none| number - none);
            if change.abs() < CHANGE_MIN { 0.0 } else { change.signum() }
        };
        let [published_side, our_side] = [self.published, ours].map(side);
        let ratio = ours / self.published;
        let within = |factor: f64| (factor.recip()..=factor).contains(&ratio);
        let change_nothing = self.neutral.is_some() && published_side == 0.0 && our_side == 0.0;
        let word = match () {
            () if published_side * our_side < 0.0 => "opposite",
            () if change_nothing || within(SAME) || within(AGREES) && published_side == our_side => "agrees",
            () if within(NEAR) => "near",
            () => "differs",
        };
        match self.invalid {
            (0, _) => word.to_owned(),
            (invalid, of) => format!("unproven, {invalid} of {of} runs not valid ({word})"),
        }
    }
}

/// The summary of experiments, each with the name of its file.
///
/// # Errors
/// A figure does not fit its runs, or two pictures have one name.
pub fn of(experiments: &[(String, ResultsFile)]) -> Result<Summary, ReportError> {
    let mut summary = Summary { page: HEAD.to_owned(), pictures: Vec::new() };
    let titles = "| Paper | Figure | What | Device, workload, seed | Published | Ours | Ratio | Verdict |\n|---|---|---|---|---|---|---|---|";
    summary.page += titles;
    summary.page.push('\n');
    // By paper, in the order in which they come.
    let mut drawn: Vec<(&str, String)> = Vec::new();
    // Which experiment each picture is of.
    let mut owners: Vec<&str> = Vec::new();
    for (name, results) in experiments {
        let Some(experiment) = &results.experiment else { continue };
        for row in rows(experiment, results) {
            let ours = row.ours.map_or_else(|| "\u{2013}".to_owned(), number);
            let ratio = row.ours.map_or_else(|| "\u{2013}".to_owned(), |ours| number(ours / row.published));
            let cells = [
                &format!("[{}]({name}.toml)", experiment.paper),
                &row.figure,
                &row.what,
                &row.regime,
                &number(row.published),
                &ours,
                &ratio,
                &row.verdict(),
            ];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            writeln!(summary.page, "| {} |", cells.join(" | ")).expect("writing to a string cannot fail");
        }
        let paper = if experiment.paper.is_empty() { WITHOUT_PAPER } else { experiment.paper.as_str() };
        for Picture { file, title, caption, text } in pictures(experiment, results)? {
            if !drawn.iter().any(|(other, _)| *other == paper) {
                drawn.push((paper, String::new()));
            }
            let told = if caption.is_empty() { String::new() } else { format!(" {caption}") };
            for (_, section) in drawn.iter_mut().filter(|(other, _)| *other == paper) {
                write!(
                    section,
                    "### {title}\n\n![{title}](figures/{file})\n\nFrom [{name}.toml]({name}.toml).{told}\n\n"
                )
                .expect("writing to a string cannot fail");
            }
            if let Some(at) = summary.pictures.iter().position(|(other, _)| *other == file) {
                return Err(ReportError::same_picture(file, owners[at], name));
            }
            owners.push(name);
            summary.pictures.push((file, text));
        }
    }
    for (paper, section) in drawn {
        write!(summary.page, "\n## {paper}\n\n{}\n", section.trim_end()).expect("writing to a string cannot fail");
    }
    Ok(summary)
}

fn rows(experiment: &Experiment, results: &ResultsFile) -> Vec<Row> {
    let of_runs = experiment.published.iter().map(|row| of_row(row, &results.runs));
    let of_hotness = experiment.hotness.iter().flat_map(|asked| {
        let findings = Findings::of(experiment, asked, &results.hotness);
        let published = findings.published();
        published.into_iter().filter_map(|(published, ours)| {
            Some(Row {
                figure: published.figure.clone(),
                what: format!("{}, {}: change", published.published_trace, published.claim),
                regime: published.trace.clone(),
                published: published.change?,
                ours,
                neutral: Some(0.0),
                invalid: (0, 0),
            })
        })
    });
    of_runs.chain(of_hotness.collect::<Vec<_>>()).collect()
}

fn of_row(row: &PublishedRow, runs: &[RunResult]) -> Row {
    let is_relative = !row.found.relative_to.is_empty();
    let chosen: Vec<&RunResult> = runs.iter().filter(|run| admits(&row.found.at, &run.axes)).collect();
    Row {
        figure: row.figure.clone(),
        what: row.what.clone(),
        regime: regime(&chosen),
        published: row.published,
        ours: row.ours,
        neutral: is_relative.then_some(1.0),
        invalid: (row.runs - row.runs_valid, row.runs),
    }
}

fn admits(wanted: &Map<String, Value>, axes: &Map<String, Value>) -> bool {
    let is_one =
        |wanted: &Value, found: &Value| wanted == found || wanted.as_array().is_some_and(|list| list.contains(found));
    wanted.iter().all(|(axis, wanted)| axes.get(axis).is_some_and(|found| is_one(wanted, found)))
}

/// The trace, the device and the seed of runs; what differs between them is left out.
fn regime(runs: &[&RunResult]) -> String {
    let same = |of: &dyn Fn(&RunResult) -> String| {
        let first = of(runs.first()?);
        runs.iter().all(|run| of(run) == first).then_some(first)
    };
    let trace = |run: &RunResult| run.axes.get("trace").and_then(Value::as_str).unwrap_or(&run.trace).to_owned();
    let size =
        |run: &RunResult| format!("{:.0} MiB", (run.device.logical_pages * run.device.page_bytes) as f64 / 1_048_576.0);
    let spare = |run: &RunResult| match &run.spec.log {
        Some(log) => format!("log {:.0} % full", log.utilisation.0 * 100.0),
        None => format!("spare {:.1} %", run.device.spare * 100.0),
    };
    let seed = |run: &RunResult| format!("seed {}", run.seed);
    let parts = [same(&trace), same(&size), same(&spare), same(&seed)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A picture of an experiment.
struct Picture {
    /// Name of its file.
    file: String,
    title: String,
    /// What is seen in it.
    caption: String,
    text: String,
}

/// The pictures of an experiment. Figures of one name are one picture.
fn pictures(experiment: &Experiment, results: &ResultsFile) -> Result<Vec<Picture>, ReportError> {
    let mut named: Vec<(&str, Vec<Figure>)> = Vec::new();
    for wanted in &experiment.figures {
        let Some(name) = &wanted.picture else { continue };
        let Some(figure) = sweep::picture(wanted, &results.runs)? else { continue };
        match named.iter_mut().find(|(other, _)| other == name) {
            Some((_, figures)) => figures.push(figure),
            None => named.push((name, vec![figure])),
        }
    }
    if let Some(asked) = &experiment.hotness {
        let mut findings = Findings::of(experiment, asked, &results.hotness);
        let chosen = &asked.picture_traces;
        findings.traces.retain(|trace| chosen.is_empty() || chosen.iter().any(|name| name == trace.name));
        named.extend(asked.picture.as_deref().map(|name| (name, vec![hotness::by_trace(&findings)])));
        let sweeps = asked.sweeps.iter().filter_map(|sweep| Some((sweep.picture.as_deref()?, sweep)));
        named.extend(sweeps.map(|(name, sweep)| (name, vec![hotness::sweep_figure(&findings, sweep)])));
    }
    let drawn = |(name, figures): (&str, Vec<Figure>)| {
        let figure = joined(figures);
        Picture { file: format!("{name}.svg"), text: svg(&figure), title: figure.title, caption: figure.caption }
    };
    Ok(named.into_iter().map(drawn).collect())
}

/// Several figures as one: what their titles begin with, to the colon, is its title, and the rest tells the panels.
fn joined(figures: Vec<Figure>) -> Figure {
    let mut captions: Vec<String> = Vec::new();
    for figure in &figures {
        // The picture's own legend says what is pale.
        let caption = figure.caption.trim_end_matches(PALE).trim().to_owned();
        if !caption.is_empty() && !captions.contains(&caption) {
            captions.push(caption);
        }
    }
    let caption = captions.join(" ");
    let [first, _, ..] = figures.as_slice() else {
        return Figure { caption, ..figures.into_iter().next().unwrap_or_default() };
    };
    let head = first.title.split(": ").next().unwrap_or_default();
    let rests: Vec<&str> = figures
        .iter()
        .map(|figure| figure.title.strip_prefix(head).unwrap_or(&figure.title).trim_start_matches(": "))
        .collect();
    // In parentheses, behind all of them, stands what they have in common.
    let tail = rests[0].find(" (").map(|at| &rests[0][at..]).filter(|tail| rests.iter().all(|r| r.ends_with(tail)));
    let tail = tail.unwrap_or_default();
    let mut panels = Vec::new();
    for (figure, rest) in figures.iter().zip(&rests) {
        let rest = rest.strip_suffix(tail).unwrap_or(rest);
        panels.extend(figure.panels.iter().map(|panel| {
            let parts = [rest, panel.title.as_str()];
            let title = parts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
            Panel { title, group: figure.title.clone(), chart: panel.chart.clone() }
        }));
    }
    Figure { title: format!("{head}{tail}"), caption, panels }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(published: f64, ours: Option<f64>, neutral: Option<f64>, invalid: u64) -> String {
        let text = String::new;
        Row { figure: text(), what: text(), regime: text(), published, ours, neutral, invalid: (invalid, 2) }.verdict()
    }

    #[test]
    fn a_verdict_says_how_far_ours_lies_and_on_which_side() {
        assert_eq!(row(2.0, Some(2.19), None, 0), "agrees");
        assert_eq!(row(2.0, Some(1.4), None, 0), "near");
        assert_eq!(row(2.0, Some(1.2), None, 0), "differs");
        assert_eq!(row(0.88, Some(1.4), Some(1.0), 0), "opposite");
        assert_eq!(row(-0.41, Some(0.3), Some(0.0), 0), "opposite");
        assert_eq!(row(2.0, Some(2.0), None, 1), "unproven, 1 of 2 runs not valid (agrees)");
        assert_eq!(row(2.0, None, None, 0), "not run: its trace is not at hand");
    }
    /// What lies close by may still gain where the other loses, and what changes by less than can be told from nothing does neither.
    #[test]
    fn what_agrees_gains_or_loses_as_published() {
        assert_eq!(row(1.05, Some(0.97), Some(1.0), 0), "opposite", "within 10 %");
        assert_eq!(row(1.006, Some(0.941), Some(1.0), 0), "near", "a loss where nothing changed");
        assert_eq!(row(0.97, Some(1.007), Some(1.0), 0), "near", "nothing where there was a gain");
        assert_eq!(row(1.006, Some(0.998), Some(1.0), 0), "agrees", "nothing changed in either");
        assert_eq!(row(1.012, Some(1.008), Some(1.0), 0), "agrees", "the same number, on two sides of a bound");
        assert_eq!(row(0.005, Some(-0.001), Some(0.0), 0), "agrees", "nothing changed in either");
        assert_eq!(row(1.05, Some(0.97), None, 0), "agrees", "relative to nothing");
    }
}
