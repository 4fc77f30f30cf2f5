//! Kinds of values: what a parameter takes, once, for checks, help, schemas and signatures alike.
//!
//! A kind is a constant, so that tables of parameters are constants too. It judges the text that a user wrote; who reads the
//! value afterwards can rely on it. O(length of the text).

use super::name::PolicyName;
use crate::quantity::{ByteSize, Share};

/// Which numbers between the least and the most one count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grain {
    /// All of them.
    Any,
    /// Powers of two.
    PowerOfTwo,
    /// Multiples of this number.
    Multiple(u64),
}

/// What a parameter takes. Bounds are included in the range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A whole number; `4Ki` and `1M` are understood.
    Integer {
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
        /// Which numbers between count.
        grain: Grain,
    },
    /// A number. A `least` of [`f64::MIN_POSITIVE`] stands for "above 0", a `most` of [`f64::MAX`] for "any number".
    Real {
        /// Least value.
        least: f64,
        /// Greatest value.
        most: f64,
    },
    /// A share of a whole, `7%` or `0.07`; bounds are fractions, 0 is left out by a `least` of [`f64::MIN_POSITIVE`] and 1 by
    /// a `most` of [`BELOW_ONE`]. More than a whole is written as a percentage: a bare `7` is a slip.
    Share {
        /// Least fraction.
        least: f64,
        /// Greatest fraction.
        most: f64,
    },
    /// A size such as `4KiB`.
    Bytes {
        /// Least size in bytes.
        least: u64,
        /// Greatest size in bytes.
        most: u64,
        /// Which sizes between count.
        grain: Grain,
    },
    /// `true` or `false`; `on`, `off`, `yes` and `no` are understood.
    Boolean,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A policy of a registry table with its parameters, `NAME[:key=value,...]`. The text is what `isotherm list` calls it.
    Policy(&'static str),
    /// A form of its own, told in words; whoever reads it checks it.
    Text(&'static str),
    /// What any of these take.
    Any(&'static [Kind]),
}

/// The greatest number below 1, which stands for "below 100%" as the bound of a share.
pub const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

impl Kind {
    /// A whole number of a range.
    pub const fn integer(range: std::ops::RangeInclusive<u64>) -> Self {
        Self::Integer { least: *range.start(), most: *range.end(), grain: Grain::Any }
    }

    /// A power of two of a range.
    pub const fn power_of_two(range: std::ops::RangeInclusive<u64>) -> Self {
        Self::Integer { least: *range.start(), most: *range.end(), grain: Grain::PowerOfTwo }
    }

    /// A number of a range.
    pub const fn real(range: std::ops::RangeInclusive<f64>) -> Self {
        Self::Real { least: *range.start(), most: *range.end() }
    }

    /// A share of a range of fractions.
    pub const fn share(range: std::ops::RangeInclusive<f64>) -> Self {
        Self::Share { least: *range.start(), most: *range.end() }
    }

    /// A size of a range in bytes.
    pub const fn bytes(range: std::ops::RangeInclusive<u64>, grain: Grain) -> Self {
        Self::Bytes { least: *range.start(), most: *range.end(), grain }
    }

    /// One word, as in "a number or `auto`".
    pub const fn word(word: &'static [&'static str; 1]) -> Self {
        Self::Choice(word)
    }

    /// The kind's name in machine-readable lists.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Integer { .. } => "integer",
            Self::Real { .. } => "real",
            Self::Share { .. } => "share",
            Self::Bytes { .. } => "bytes",
            Self::Boolean => "boolean",
            Self::Choice(_) => "choice",
            Self::Policy(_) => "policy",
            Self::Text(_) => "text",
            Self::Any(_) => "any",
        }
    }

    /// The allowed values in words.
    pub fn allowed(&self) -> String {
        match *self {
            Self::Integer { least, most, grain } => grain.words(&whole_range(least, most)),
            Self::Real { least, most } => real_range(least, most, ""),
            Self::Share { least, most } => {
                let percent = |bound: f64| if bound == f64::MIN_POSITIVE { bound } else { round(bound * 100.0) };
                let (least, most) = (percent(least), if most == BELOW_ONE { BELOW_ONE } else { percent(most) });
                real_range(least, most, "%")
            }
            Self::Bytes { least, most, grain } => grain.words(&format!("{}..={}", ByteSize(least), ByteSize(most))),
            Self::Boolean => "true | false".to_owned(),
            Self::Choice(names) => names.join(" | "),
            Self::Policy(list) => format!("NAME[:key=value,...] of the {list}"),
            Self::Text(words) => words.to_owned(),
            Self::Any(kinds) => kinds.iter().map(Self::allowed).collect::<Vec<_>>().join(" | "),
        }
    }

    /// What is wrong with `text`; `None` if it is allowed.
    pub fn problem(&self, text: &str) -> Option<String> {
        let (is_of_kind, is_allowed) = match *self {
            Self::Integer { least, most, grain } => {
                let value = parse_integer(text);
                (value.is_some(), value.is_some_and(|v| (least..=most).contains(&v) && grain.counts(v)))
            }
            Self::Real { least, most } => {
                let value = text.parse::<f64>().ok().filter(|v| v.is_finite());
                (value.is_some(), value.is_some_and(|v| (least..=most).contains(&v)))
            }
            Self::Share { least, most } => {
                let value = text.parse::<Share>().ok();
                let is_slip = self.meant(text).is_some();
                (value.is_some(), value.is_some_and(|v| (least..=most).contains(&v.0) && !is_slip))
            }
            Self::Bytes { least, most, grain } => {
                let value = text.parse::<ByteSize>().ok();
                (value.is_some(), value.is_some_and(|v| (least..=most).contains(&v.0) && grain.counts(v.0)))
            }
            Self::Boolean => (false, parse_boolean(text).is_some()),
            Self::Choice(names) => (false, names.contains(&text)),
            Self::Policy(_) => (false, text.parse::<PolicyName>().is_ok()),
            Self::Text(_) => (false, true),
            Self::Any(kinds) => {
                let is_number = kinds.iter().any(|kind| kind.is_number());
                (is_number, kinds.iter().any(|kind| kind.problem(text).is_none()))
            }
        };
        match (is_of_kind, is_allowed) {
            (_, true) => None,
            (true, false) => Some(format!("\"{text}\" is out of range")),
            (false, false) => Some(format!("\"{text}\" is {}", self.is_not())),
        }
    }

    /// What a value that is refused was probably meant to be: a share above 1 was meant as a percentage.
    pub fn meant(&self, text: &str) -> Option<String> {
        let is_share = matches!(self, Self::Share { .. }) && !text.contains('%');
        let is_above_one = is_share && text.parse::<Share>().is_ok_and(|share| share.0 > 1.0);
        is_above_one.then(|| format!("{}%", text.trim()))
    }

    /// The one form of a value that the kind takes, whatever form the user chose: `4096` and `4KiB` are the same size.
    pub fn canonical(&self, text: &str) -> String {
        let form = match self {
            Self::Integer { .. } => parse_integer(text).map(|whole| whole.to_string()),
            Self::Real { .. } => text.parse::<f64>().ok().map(|real| real.to_string()),
            Self::Share { .. } => text.parse::<Share>().ok().map(|share| share.to_string()),
            Self::Bytes { .. } => text.parse::<ByteSize>().ok().map(|size| size.to_string()),
            Self::Boolean => parse_boolean(text).map(|truth| truth.to_string()),
            Self::Policy(_) => text.parse::<PolicyName>().ok().map(|policy| policy.to_string()),
            Self::Any(kinds) => kinds.iter().find(|kind| kind.problem(text).is_none()).map(|kind| kind.canonical(text)),
            Self::Choice(_) | Self::Text(_) => None,
        };
        form.unwrap_or_else(|| text.trim().to_owned())
    }

    /// Values at the bounds, which the kind takes, and values beyond them or of another type, which it refuses. The tests of
    /// all tables go over them.
    pub fn edges(&self) -> (Vec<String>, Vec<String>) {
        let texts = |values: &[Option<String>]| values.iter().flatten().cloned().collect::<Vec<_>>();
        let whole = |value: u64| Some(value.to_string());
        match *self {
            Self::Integer { least, most, grain } | Self::Bytes { least, most, grain } => {
                let beyond = [least.checked_sub(1), most.checked_add(1)].map(|v| v.map(|v| v.to_string()));
                let mut between = if grain == Grain::Any { least..least } else { least..most };
                let between = between.find(|value| !grain.counts(*value)).map(|value| value.to_string());
                let [below, above] = beyond;
                let not_a_number = Some("many".to_owned());
                (texts(&[whole(least), whole(most)]), texts(&[below, above, between, not_a_number]))
            }
            Self::Real { least, most } | Self::Share { least, most } => {
                let below = Some(if least > 0.0 { least / 2.0 } else { least - 0.5 });
                let above = (most < f64::MAX).then_some(most * 1.001);
                let is_share = matches!(self, Self::Share { .. });
                let text = |value: f64| Some(if is_share { Share(value).to_string() } else { value.to_string() });
                let beyond = [below.and_then(text), above.and_then(text), Some("NaN".to_owned()), Some("x".to_owned())];
                (texts(&[text(least), text(most)]), texts(&beyond))
            }
            Self::Boolean => (vec!["true".to_owned(), "off".to_owned()], vec!["2".to_owned()]),
            Self::Choice(names) => {
                (names.iter().map(|&name| name.to_owned()).collect(), vec!["no_such_name".to_owned()])
            }
            Self::Policy(_) => (Vec::new(), vec![":".to_owned()]),
            Self::Text(_) => (Vec::new(), Vec::new()),
            Self::Any(kinds) => {
                let (allowed, refused): (Vec<_>, Vec<_>) = kinds.iter().map(Self::edges).unzip();
                let refused = refused.concat().into_iter().filter(|text| self.problem(text).is_some());
                (allowed.concat(), refused.collect())
            }
        }
    }

    /// Whether values are numbers, which can be out of a range.
    fn is_number(&self) -> bool {
        matches!(self, Self::Integer { .. } | Self::Real { .. } | Self::Share { .. } | Self::Bytes { .. })
    }

    fn is_not(&self) -> &'static str {
        match self {
            Self::Integer { .. } => "not a whole number",
            Self::Real { .. } => "not a number",
            Self::Share { .. } => "not a share such as 7% or 0.07",
            Self::Bytes { .. } => "not a size such as 4KiB",
            Self::Boolean => "neither true nor false",
            Self::Policy(_) => "not a name with parameters",
            Self::Choice(_) | Self::Text(_) | Self::Any(_) => "not one of the allowed values",
        }
    }

    /// The names of a choice, apart or as a part of [`Kind::Any`].
    pub(super) fn has_name(&self, name: &str) -> bool {
        match self {
            Self::Choice(names) => names.contains(&name),
            Self::Any(kinds) => kinds.iter().any(|kind| kind.has_name(name)),
            _ => false,
        }
    }
}

impl Grain {
    fn counts(self, value: u64) -> bool {
        match self {
            Self::Any => true,
            Self::PowerOfTwo => value.is_power_of_two(),
            Self::Multiple(of) => value.is_multiple_of(of),
        }
    }

    fn words(self, range: &str) -> String {
        match self {
            Self::Any => range.to_owned(),
            Self::PowerOfTwo => format!("a power of two, {range}"),
            Self::Multiple(of) => format!("a multiple of {}, {range}", ByteSize(of)),
        }
    }
}

fn whole_range(least: u64, most: u64) -> String {
    if most == u64::MAX { format!("{least} or more") } else { format!("{least}..={most}") }
}

fn real_range(least: f64, most: f64, unit: &str) -> String {
    match (least == f64::MIN_POSITIVE, most == f64::MAX) {
        _ if most == BELOW_ONE && unit == "%" => format!("{least}{unit} or more, below 100{unit}"),
        (true, true) => "above 0".to_owned(),
        (true, false) => format!("above 0, at most {most}{unit}"),
        (false, true) => format!("{least}{unit} or more"),
        (false, false) => format!("{least}{unit}..={most}{unit}"),
    }
}

/// Takes off the last bits that a fraction brings to its percentage.
fn round(percent: f64) -> f64 {
    (percent * 1e9).round() / 1e9
}

/// A whole number with an optional binary suffix (`Ki`, `Mi`, `Gi`) or decimal one (`k`, `M`, `G`).
pub fn parse_integer(text: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let scale: u64 = match &text[digits..] {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(scale)
}

/// A truth value as users write it.
pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "on" | "yes" => Some(true),
        "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO_OR_NUMBER: Kind = Kind::Any(&[Kind::word(&["auto"]), Kind::integer(1..=9)]);

    #[test]
    fn kinds_tell_their_ranges_in_words() {
        for (kind, words) in [
            (Kind::integer(1..=16), "1..=16"),
            (Kind::integer(1..=u64::MAX), "1 or more"),
            (Kind::power_of_two(2..=32768), "a power of two, 2..=32768"),
            (Kind::real(f64::MIN_POSITIVE..=f64::MAX), "above 0"),
            (Kind::share(f64::MIN_POSITIVE..=10.0), "above 0, at most 1000%"),
            (Kind::share(0.5..=0.999), "50%..=99.9%"),
            (Kind::share(0.0..=BELOW_ONE), "0% or more, below 100%"),
            (Kind::bytes(8192..=1 << 32, Grain::Multiple(4096)), "a multiple of 4KiB, 8KiB..=4GiB"),
            (AUTO_OR_NUMBER, "auto | 1..=9"),
        ] {
            assert_eq!(kind.allowed(), words);
        }
    }

    #[test]
    fn values_of_another_type_and_out_of_range_are_told_apart() {
        let kind = Kind::integer(1..=16);
        assert_eq!(kind.problem("16"), None);
        assert_eq!(kind.problem("17").unwrap(), "\"17\" is out of range");
        assert_eq!(kind.problem("many").unwrap(), "\"many\" is not a whole number");
        assert!(Kind::real(0.0..=f64::MAX).problem("inf").is_some());
        assert!(Kind::real(0.0..=f64::MAX).problem("NaN").is_some());
        assert!(Kind::share(0.0..=BELOW_ONE).problem("100%").is_some());
        assert_eq!(Kind::share(0.0..=BELOW_ONE).problem("99.9999%"), None);
        assert_eq!(AUTO_OR_NUMBER.problem("auto"), None);
        assert_eq!(AUTO_OR_NUMBER.problem("10").unwrap(), "\"10\" is out of range");
    }

    #[test]
    fn a_share_above_one_without_a_percent_sign_is_a_slip() {
        let kind = Kind::share(f64::MIN_POSITIVE..=10.0);
        for (slip, meant) in [("7", "7%"), ("1.5", "1.5%")] {
            assert_eq!(kind.problem(slip).unwrap(), format!("\"{slip}\" is out of range"));
            assert_eq!(kind.meant(slip).unwrap(), meant);
        }
        for allowed in ["7%", "700%", "0.07", "1"] {
            assert_eq!((kind.problem(allowed), kind.meant(allowed)), (None, None), "{allowed}");
        }
        assert_eq!(Kind::real(0.0..=10.0).meant("7"), None);
    }

    #[test]
    fn a_value_has_one_canonical_form() {
        let size = Kind::bytes(0..=1 << 30, Grain::Any);
        for (kind, forms) in [
            (Kind::integer(0..=9999), ["4Ki", "4_096", "4096"]),
            (size, ["4096", "4KiB", "4096B"]),
            (Kind::share(0.0..=1.0), ["7%", "0.07", "0.070"]),
            (Kind::Boolean, ["on", "yes", "true"]),
            (AUTO_OR_NUMBER, ["7", " 7", "7"]),
        ] {
            assert!(forms.iter().all(|form| kind.canonical(form) == kind.canonical(forms[0])), "{forms:?}");
        }
    }
}
