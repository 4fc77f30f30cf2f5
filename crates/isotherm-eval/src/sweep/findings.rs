//! Findings of an experiment, computed from the points that were run.
//!
//! A finding is a sentence; what stands in braces in it is computed: `{write_amplification | trace=tpcc | scheme=epoch 1}` is the
//! number at that key of the run with these values of axes. `{A / B}` divides the numbers of two such selections: each run of A
//! by the run of B that agrees with it in every axis that neither names. Where several runs are left, the least and the largest
//! number stand there. A finding about points that were not run is not told; one without braces is told where all were run.

use crate::results::RunResult;
use isotherm::registry::SpecError;
use serde_json::{Map, Value};

/// A key of runs, and the axes by which runs are chosen.
struct Selection<'a> {
    key: &'a str,
    axes: Vec<(&'a str, &'a str)>,
}

/// What stands in one pair of braces.
struct Expression<'a> {
    of: Selection<'a>,
    by: Option<Selection<'a>>,
}

/// A piece of a finding.
enum Piece<'a> {
    Text(&'a str),
    Number(Expression<'a>),
}

impl<'a> Selection<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('|').map(str::trim);
        let key = parts.next().filter(|key| !key.is_empty())?;
        let axes = parts.map(|part| part.split_once('=').map(|(axis, value)| (axis.trim(), value.trim())));
        Some(Self { key, axes: axes.collect::<Option<_>>()? })
    }

    fn chooses(&self, axes: &Map<String, Value>) -> bool {
        self.axes.iter().all(|(axis, value)| axes.get(*axis).is_some_and(|found| found.as_str() == Some(value)))
    }

    fn names(&self, axis: &str) -> bool {
        self.axes.iter().any(|(named, _)| *named == axis)
    }
}

impl<'a> Expression<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        match text.split_once(" / ") {
            Some((of, by)) => Some(Self { of: Selection::parse(of)?, by: Some(Selection::parse(by)?) }),
            None => Some(Self { of: Selection::parse(text)?, by: None }),
        }
    }

    fn selections(&self) -> impl Iterator<Item = &Selection<'a>> {
        [Some(&self.of), self.by.as_ref()].into_iter().flatten()
    }

    /// The numbers of the runs that are chosen; nothing where one of them has none, or none is chosen.
    fn numbers(&self, runs: &[(&RunResult, Value)]) -> Option<Vec<f64>> {
        let number = |result: &Value, key: &str| key.split('.').try_fold(result, |at, part| at.get(part))?.as_f64();
        let chosen = runs.iter().filter(|(run, _)| self.of.chooses(&run.axes));
        let values = chosen.map(|(run, result)| {
            let value = number(result, self.of.key)?;
            let Some(by) = &self.by else { return Some(value) };
            let agrees = |other: &RunResult| {
                let mut others = run.axes.iter().filter(|(axis, _)| !self.of.names(axis) && !by.names(axis));
                others.all(|(axis, found)| other.axes.get(axis) == Some(found))
            };
            let (_, base) = runs.iter().find(|(other, _)| by.chooses(&other.axes) && agrees(other))?;
            Some(value / number(base, by.key)?).filter(|ratio| ratio.is_finite())
        });
        values.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())
    }
}

/// Cuts a finding into text and numbers.
///
/// # Errors
/// A brace without its other, or something else than a selection between them.
fn pieces(finding: &str) -> Result<Vec<Piece<'_>>, SpecError> {
    let wrong = |problem: &str| {
        SpecError::new(
            format!("finding \"{finding}\""),
            problem,
            "write {KEY | AXIS=VALUE | ...} for a number, or {KEY | AXIS=VALUE / KEY | AXIS=VALUE} for a ratio",
        )
    };
    let mut pieces = Vec::new();
    let mut rest = finding;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or_else(|| wrong("a brace is not closed"))? + open;
        let inside = &rest[open + 1..close];
        let number =
            Expression::parse(inside).ok_or_else(|| wrong(&format!("\"{inside}\" is no selection of runs")))?;
        pieces.extend([Piece::Text(&rest[..open]), Piece::Number(number)]);
        rest = &rest[close + 1..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Looks, before anything has run, whether a finding can be computed from points with these axes.
///
/// # Errors
/// Broken braces, or an axis that no point has.
pub(super) fn check(finding: &str, points: &[&Map<String, Value>]) -> Result<(), SpecError> {
    for piece in pieces(finding)? {
        let Piece::Number(number) = piece else { continue };
        for (axis, _) in number.selections().flat_map(|selection| &selection.axes) {
            if points.iter().all(|axes| !axes.contains_key(*axis)) {
                let problem = format!("there is no axis \"{axis}\"");
                let fix = "use \"trace\" or the name of one of [[axes]]";
                return Err(SpecError::new(format!("finding \"{finding}\""), problem, fix));
            }
        }
    }
    Ok(())
}

/// A number in three significant digits.
fn shown(number: f64) -> String {
    let magnitude = if number == 0.0 { 0 } else { libm::floor(libm::log10(number.abs())) as i32 };
    format!("{number:.*}", (2 - magnitude).max(0) as usize)
}

/// The finding with its numbers; nothing where it is about points that were not run. `all_ran` says whether every point of the
/// experiment was.
fn told(finding: &str, runs: &[(&RunResult, Value)], all_ran: bool) -> Option<String> {
    let pieces = pieces(finding).ok()?;
    if pieces.len() == 1 && !all_ran {
        return None;
    }
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(words) => text.push_str(words),
            Piece::Number(expression) => {
                let numbers = expression.numbers(runs)?;
                let least = shown(numbers.iter().copied().fold(f64::INFINITY, f64::min));
                let most = shown(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                text.push_str(&if least == most { least } else { format!("{least} to {most}") });
            }
        }
    }
    Some(text)
}

/// The findings that the points which were run give, and a sentence on how many they do not.
///
/// # Panics
/// If a result is no JSON (a bug).
pub(super) fn computed(findings: &[String], runs: &[RunResult], all_ran: bool) -> Vec<String> {
    let json = |run| serde_json::to_value(run).expect("results have string keys and finite numbers");
    let runs: Vec<(&RunResult, Value)> = runs.iter().map(|run| (run, json(run))).collect();
    let mut found: Vec<String> = findings.iter().filter_map(|finding| told(finding, &runs, all_ran)).collect();
    match findings.len() - found.len() {
        0 => {}
        1 => found.push("One finding is left out: it is about points that were not run.".to_owned()),
        n => found.push(format!("{n} findings are left out: they are about points that were not run.")),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_findings_are_refused_before_anything_runs() {
        let point = Map::from_iter([("trace".to_owned(), Value::from("a")), ("scheme".to_owned(), Value::from("x"))]);
        let points = [&point];
        assert!(check("no number", &points).is_ok());
        assert!(check("WA is {write_amplification | scheme=x} here", &points).is_ok());
        for (finding, expected) in [
            ("WA is {write_amplification", "not closed"),
            ("WA is {write_amplification | x}", "no selection"),
            ("WA is {} here", "no selection"),
            ("WA is {gc_count | schema=x / gc_count | scheme=y}", "no axis \"schema\""),
        ] {
            let error = check(finding, &points).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!([1.5, 0.012_34, 123.4, 9876.0, 0.0].map(shown), ["1.50", "0.0123", "123", "9876", "0.00"]);
    }
}
