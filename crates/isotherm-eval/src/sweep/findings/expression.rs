//! What stands in one pair of braces of a finding: which number of which runs, over what, and in which unit.

use crate::results::{Read, Reduction};
use serde_json::{Map, Value};

/// What a number is multiplied by, and what is subtracted then, by unit.
const UNITS: &[(&str, f64, f64)] = &[
    ("%", 100.0, 0.0),
    ("% more", 100.0, -100.0),
    ("% less", -100.0, 100.0),
    ("us", 1e-3, 0.0),
    ("s", 1e-9, 0.0),
    ("MB", 1e-6, 0.0),
];

/// What stands for several runs, by the word before a key.
const REDUCTIONS: &[(&str, Reduction)] =
    &[("least", Reduction::Min), ("most", Reduction::Max), ("mean", Reduction::Mean)];

/// Which part of what is found under a key is meant.
#[derive(Clone, Copy)]
enum Part {
    /// The number there.
    Whole,
    /// The sum of these elements of the list there.
    Elements(usize, usize),
    /// The mean over the windows that end in this range of host pages.
    Pages([u64; 2]),
}

/// The values of an axis that are meant.
pub(super) struct Wanted<'a> {
    pub(super) axis: &'a str,
    pub(super) values: Vec<&'a str>,
    /// Whether all others are meant.
    not: bool,
}

/// A key of runs, the axes by which runs are chosen, and what stands for several.
pub(super) struct Selection<'a> {
    pub(super) reduction: Option<Reduction>,
    key: &'a str,
    part: Part,
    pub(super) axes: Vec<Wanted<'a>>,
}

/// What stands in one pair of braces.
pub(super) struct Expression<'a> {
    pub(super) of: Selection<'a>,
    pub(super) by: Option<Selection<'a>>,
    /// Tell this axis of the run that has the number.
    pub(super) axis: Option<&'a str>,
    factor: f64,
    offset: f64,
}

impl Part {
    /// Cuts a part off a key.
    fn parse(text: &str) -> Option<(&str, Self)> {
        let Some((key, rest)) = text.split_once('[') else { return Some((text, Self::Whole)) };
        let range = rest.strip_suffix(']')?;
        let (range, is_pages) = range.strip_suffix(" pages").map_or((range, false), |range| (range, true));
        let (from, to) = range.split_once("..")?;
        if is_pages {
            return Some((key, Self::Pages([from.parse().ok()?, to.parse().ok()?])));
        }
        let bound = |text: &str, open: usize| if text.is_empty() { Some(open) } else { text.parse().ok() };
        Some((key, Self::Elements(bound(from, 0)?, bound(to, usize::MAX)?)))
    }

    /// The number of `read` that is meant; of a list without a part, each.
    fn numbers(self, read: &Read, key: &str) -> Option<Vec<f64>> {
        let number = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(f64::from));
        match (self, read.at(key)?) {
            (Self::Whole, Value::Array(list)) => list.iter().map(number).collect(),
            (Self::Whole, value) => Some(vec![number(value)?]),
            (Self::Elements(from, to), value) => {
                let list = value.as_array()?;
                let some = list.get(from..to.min(list.len()))?;
                Some(vec![some.iter().map(number).sum::<Option<f64>>()?])
            }
            (Self::Pages(pages), _) => Some(vec![read.number(key, Some(pages))?]),
        }
    }
}

impl<'a> Selection<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('|').map(str::trim);
        let first = parts.next()?;
        let reduced = REDUCTIONS
            .iter()
            .find_map(|(word, reduction)| Some((first.strip_prefix(word)?.strip_prefix(' ')?, *reduction)));
        let (key, reduction) = reduced.map_or((first, None), |(key, reduction)| (key, Some(reduction)));
        let (key, part) = Part::parse(key)?;
        let axes = parts.map(|part| {
            let (axis, values) = part.split_once('=')?;
            let (axis, not) = axis.strip_suffix('!').map_or((axis, false), |axis| (axis, true));
            Some(Wanted { axis: axis.trim(), values: values.split(" or ").map(str::trim).collect(), not })
        });
        let is_key = !key.is_empty() && !key.contains(' ');
        Some(Self { reduction, key, part, axes: axes.collect::<Option<_>>()? }).filter(|_| is_key)
    }

    pub(super) fn chooses(&self, axes: &Map<String, Value>) -> bool {
        self.axes.iter().all(|wanted| {
            let found = axes.get(wanted.axis).and_then(Value::as_str);
            found.is_some_and(|found| wanted.values.contains(&found) != wanted.not)
        })
    }

    pub(super) fn names(&self, axis: &str) -> bool {
        self.axes.iter().any(|wanted| wanted.axis == axis)
    }
}

impl<'a> Expression<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (unit, text) = match text.strip_prefix("in ").and_then(|rest| rest.split_once(": ")) {
            Some((unit, rest)) => (Some(unit), rest),
            None => (None, text),
        };
        let (factor, offset) = match unit {
            Some(unit) => {
                UNITS.iter().find(|(name, ..)| *name == unit).map(|(_, factor, offset)| (*factor, *offset))?
            }
            None => (1.0, 0.0),
        };
        let head = text.split('|').next().unwrap_or(text);
        let (axis, text) = head.find(" of ").map_or((None, text), |at| (Some(&text[..at]), &text[at + 4..]));
        let (of, by) = match text.split_once(" / ") {
            Some((of, by)) => (Selection::parse(of)?, Some(Selection::parse(by)?)),
            None => (Selection::parse(text)?, None),
        };
        let is_whole = axis.is_none() || by.is_none() && matches!(of.reduction, Some(Reduction::Min | Reduction::Max));
        Some(Self { of, by, axis, factor, offset }).filter(|_| is_whole)
    }

    pub(super) fn selections(&self) -> impl Iterator<Item = &Selection<'a>> {
        [Some(&self.of), self.by.as_ref()].into_iter().flatten()
    }

    /// Whether a run with the axes `other` is what one with `axes` is divided by.
    pub(super) fn is_base(&self, other: &Map<String, Value>, axes: &Map<String, Value>) -> bool {
        let Some(by) = &self.by else { return false };
        let mut shared = axes.iter().filter(|(axis, _)| !by.names(axis));
        by.chooses(other) && shared.all(|(axis, found)| other.get(axis) == Some(found))
    }

    /// The numbers of `read`, divided by that of what it is relative to; nothing where that was not run.
    fn measure(&self, read: &Read, all: &[Read]) -> Result<Option<Vec<f64>>, Missing> {
        let numbers = |selection: &Selection, read: &Read| {
            let missing = || Missing { run: read.run.label.clone(), key: selection.key.to_owned() };
            selection.part.numbers(read, selection.key).ok_or_else(missing)
        };
        let values = numbers(&self.of, read)?;
        let Some(by) = &self.by else { return Ok(Some(values)) };
        let bases = all.iter().filter(|other| self.is_base(&other.run.axes, &read.run.axes));
        let bases = bases.map(|other| numbers(by, other)).collect::<Result<Vec<_>, _>>()?.concat();
        if bases.is_empty() {
            return Ok(None);
        }
        let base = by.reduction.unwrap_or(Reduction::Mean).apply(&bases);
        let ratios: Vec<f64> = values.iter().map(|value| value / base).collect();
        Ok(Some(ratios).filter(|ratios| ratios.iter().all(|ratio| ratio.is_finite())))
    }

    /// The text for the runs that are chosen; nothing where none is, or where what one is relative to was not run.
    pub(super) fn tell(&self, all: &[Read]) -> Result<Option<String>, Missing> {
        let mut found: Vec<(f64, &Read)> = Vec::new();
        for read in all.iter().filter(|read| self.of.chooses(&read.run.axes)) {
            let Some(values) = self.measure(read, all)? else { return Ok(None) };
            found.extend(values.into_iter().map(|value| (value, read)));
        }
        let numbers: Vec<f64> = found.iter().map(|(number, _)| number * self.factor + self.offset).collect();
        if numbers.is_empty() {
            return Ok(None);
        }
        if let Some(axis) = self.axis {
            let number = self.of.reduction.unwrap_or(Reduction::Min).apply(&numbers);
            let at = numbers.iter().position(|found| *found == number).expect("the least is one of them");
            return Ok(found[at].1.run.axes.get(axis).and_then(Value::as_str).map(str::to_owned));
        }
        if let Some(reduction) = self.of.reduction {
            return Ok(Some(shown(reduction.apply(&numbers))));
        }
        let (least, most) = (shown(Reduction::Min.apply(&numbers)), shown(Reduction::Max.apply(&numbers)));
        Ok(Some(if least == most { least } else { format!("{least} to {most}") }))
    }
}

/// A run that is chosen, and the key at which it has no number.
pub(super) struct Missing {
    pub(super) run: String,
    pub(super) key: String,
}

/// A number in three significant digits; a whole one as it is.
pub(super) fn shown(number: f64) -> String {
    if number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let magnitude = libm::floor(libm::log10(number.abs())) as i32;
    format!("{number:.*}", (2 - magnitude).max(0) as usize)
}
