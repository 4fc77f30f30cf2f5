//! Findings of an experiment, computed from the points that were run.
//!
//! A finding is a sentence; what stands in braces in it is computed: `{write_amplification | trace=tpcc | scheme=epoch 1}` is the
//! number at that key of the run with these values of axes. `AXIS=A or B` admits several values, `AXIS!=A` all but one. Where
//! several runs are left, the least and the largest number stand there, or one for them all: `least`, `most` or `mean` before
//! the key. `{placement of least write_amplification | ...}` is not the number but the run's value of that axis.
//!
//! `{A / B}` divides the numbers of two such selections: each run of A by the run of B that agrees with it in every axis that B does
//! not name, or by the `least` of several such. `{in UNIT: ...}` says a number in another unit: `%`, `% more` and `% less` of a ratio or a
//! share, `us` and `s` of nanoseconds, `MB` of bytes. A key goes with dots into objects and lists; `KEY[0..3]` adds the first three
//! numbers of a list, `KEY[..]` all, and `KEY[200000..220000 pages]` is a series' mean over the windows that end in this range of
//! host pages, the first excluded. A truth counts one.
//!
//! A finding about points that were not run is not told; one without braces is told where all were run. What is measured stands in
//! braces, never as it is: a number that does may only repeat one of the experiment's own settings or of its published ones (a test
//! goes through all experiments).

mod expression;

use self::expression::{Expression, Missing};
use crate::results::{Read, RunResult};
use isotherm::registry::SpecError;
use serde_json::{Map, Value};

/// A piece of a finding.
enum Piece<'a> {
    Text(&'a str),
    Number(Expression<'a>),
}

fn refused(finding: &str, problem: impl Into<String>, fix: &str) -> SpecError {
    SpecError::new(format!("finding \"{finding}\""), problem, fix)
}

/// Cuts a finding into text and numbers.
///
/// # Errors
/// A brace without its other, or something else than an expression between them.
fn pieces(finding: &str) -> Result<Vec<Piece<'_>>, SpecError> {
    let fix = "write {KEY | AXIS=VALUE | ...} for a number, or {KEY | AXIS=VALUE / KEY | AXIS=VALUE} for a ratio";
    let mut pieces = Vec::new();
    let mut rest = finding;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or_else(|| refused(finding, "a brace is not closed", fix))? + open;
        let inside = &rest[open + 1..close];
        let no_selection = || refused(finding, format!("\"{inside}\" is no selection of runs"), fix);
        let number = Expression::parse(inside).ok_or_else(no_selection)?;
        pieces.extend([Piece::Text(&rest[..open]), Piece::Number(number)]);
        rest = &rest[close + 1..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Looks, before anything has run, whether a finding can be computed from points with these axes; `traces` are the labels of all
/// traces, those that are left out this time included.
///
/// # Errors
/// Broken braces, an axis that no point has or a value that none has on it, or several runs to divide by.
pub(super) fn check(finding: &str, points: &[&Map<String, Value>], traces: &[&str]) -> Result<(), SpecError> {
    for piece in pieces(finding)? {
        let Piece::Number(number) = piece else { continue };
        if points.is_empty() {
            // Every trace is left out: there is nothing to look among.
            continue;
        }
        let is_axis = |axis: &str| points.iter().any(|axes| axes.contains_key(axis));
        let wanted = || number.selections().flat_map(|selection| &selection.axes);
        let mut axes = wanted().map(|wanted| wanted.axis).chain(number.axis);
        if let Some(axis) = axes.find(|axis| !is_axis(axis)) {
            let fix = "use \"trace\" or the name of one of [[axes]]";
            return Err(refused(finding, format!("there is no axis \"{axis}\""), fix));
        }
        for wanted in wanted() {
            let is_value = |value: &str| {
                points.iter().any(|axes| axes.get(wanted.axis).and_then(Value::as_str) == Some(value))
                    || wanted.axis == super::task::TRACE_AXIS && traces.contains(&value)
            };
            if let Some(value) = wanted.values.iter().find(|value| !is_value(value)) {
                let problem = format!("no point has \"{value}\" on the axis \"{}\"", wanted.axis);
                return Err(refused(finding, problem, "use one of the axis's labels"));
            }
        }
        let bases = |axes: &Map<String, Value>| points.iter().filter(|other| number.is_base(other, axes)).count();
        let most = points.iter().filter(|axes| number.of.chooses(axes)).map(|axes| bases(axes)).max().unwrap_or(0);
        if most > 1 && number.by.as_ref().is_some_and(|by| by.reduction.is_none()) {
            let problem = format!("a number is divided by that of {most} points, not of one");
            return Err(refused(
                finding,
                problem,
                "name more axes behind the \"/\", or say least, most or mean before the key",
            ));
        }
    }
    Ok(())
}

/// The finding with its numbers; nothing where it is about points that were not run. `all_ran` says whether every point of the
/// experiment was.
///
/// # Errors
/// A run that is meant has no number under the key.
fn told(finding: &str, runs: &[Read], all_ran: bool) -> Result<Option<String>, SpecError> {
    let pieces = pieces(finding)?;
    if pieces.len() == 1 && !all_ran {
        return Ok(None);
    }
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(words) => text.push_str(words),
            Piece::Number(expression) => {
                let missing = |Missing { run, key }| {
                    let fix = "name a number of a run in results.json, with dots into objects and lists";
                    refused(finding, format!("the run {run} has no number at `{key}`"), fix)
                };
                let Some(number) = expression.tell(runs).map_err(missing)? else { return Ok(None) };
                text.push_str(&number);
            }
        }
    }
    Ok(Some(text))
}

/// The findings that the points which were run give, and a sentence on how many they do not.
///
/// # Errors
/// A run that is meant has no number under a key.
pub(super) fn computed(findings: &[String], runs: &[RunResult], all_ran: bool) -> Result<Vec<String>, SpecError> {
    let runs: Vec<Read> = runs.iter().map(Read::new).collect();
    let told = findings.iter().map(|finding| told(finding, &runs, all_ran)).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<String> = told.into_iter().flatten().collect();
    match findings.len() - found.len() {
        0 => {}
        1 => found.push("One finding is left out: it is about points that were not run.".to_owned()),
        n => found.push(format!("{n} findings are left out: they are about points that were not run.")),
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_findings_are_refused_before_anything_runs() {
        let point = |trace: &str, scheme: &str| {
            Map::from_iter([("trace".to_owned(), Value::from(trace)), ("scheme".to_owned(), Value::from(scheme))])
        };
        let points = [point("a", "x"), point("a", "y"), point("a", "z")];
        let points: Vec<&Map<String, Value>> = points.iter().collect();
        for finding in [
            "no number",
            "WA is {write_amplification | scheme=x} here",
            "{in % more: gc_count | scheme=x / least gc_count | scheme=y or z}, {scheme of least gc_count | trace=b}",
            "{most gc_count | scheme!=x}, {in s: series.gc[1..2 pages]}, {list[..3]}",
        ] {
            check(finding, &points, &["a", "b"]).unwrap();
        }
        for (finding, expected) in [
            ("WA is {write_amplification", "not closed"),
            ("WA is {write_amplification | x}", "no selection"),
            ("WA is {} here", "no selection"),
            ("WA is {least of | scheme=x} here", "no selection"),
            ("{in ells: gc_count | scheme=x}", "no selection"),
            ("{scheme of gc_count | trace=a}", "no selection"),
            ("{list[3}", "no selection"),
            ("WA is {gc_count | schema=x / gc_count | scheme=y}", "no axis \"schema\""),
            ("{schema of least gc_count | trace=a}", "no axis \"schema\""),
            ("WA is {gc_count | scheme=w}", "no point has \"w\" on the axis \"scheme\""),
            ("{gc_count | scheme=x / gc_count | scheme=y or z}", "that of 2 points"),
        ] {
            let error = check(finding, &points, &["a", "b"]).map(|()| finding).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [1.5, 0.012_34, 123.4, 9876.5, -0.5, 3.0, 0.0].map(expression::shown);
        assert_eq!(shown, ["1.50", "0.0123", "123", "9876", "-0.500", "3", "0"]);
    }
}
