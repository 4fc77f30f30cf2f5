//! One parameter of a policy or one key of a specification: a row of the table that everything else is made from.

use super::error::SpecError;
use super::kind::{Grain, Kind};

/// A parameter as checks, help, the command line, schemas and signatures see it.
///
/// Tables are constants, with a line for each parameter:
///
/// ```
/// use isotherm::registry::Parameter;
///
/// const PARAMETERS: &[Parameter] = &[
///     Parameter::integer("logs", 2..=32, "8").help("logs, each a stream"),
///     Parameter::boolean("sizing", "true").help("divide the spare space among the logs"),
/// ];
/// assert_eq!(PARAMETERS[0].kind.allowed(), "2..=32");
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// Key in `name:key=value`, or the dotted key of a specification.
    pub key: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Unit of a number, in the plural; empty where the kind says it or there is none.
    pub unit: &'static str,
    /// The value in force when the user gives none; empty where there is none.
    pub default: &'static str,
    /// Where there is no default: what holds when the user gives none, in words.
    pub absent: &'static str,
    /// Key that says the same in another way, so that at most one of the two is given; empty where there is none.
    pub excludes: &'static str,
    /// Option of the command line, without its dashes; `None` where `--set` alone reaches the key.
    pub option: Option<&'static str>,
    /// Meaning, in one line.
    pub help: &'static str,
}

impl Parameter {
    /// A parameter of any kind.
    pub const fn new(key: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { key, kind, unit: "", default, absent: "", excludes: "", option: None, help: "" }
    }

    /// A whole number.
    pub const fn integer(key: &'static str, range: std::ops::RangeInclusive<u64>, default: &'static str) -> Self {
        Self::new(key, Kind::integer(range), default)
    }

    /// A power of two.
    pub const fn power_of_two(key: &'static str, range: std::ops::RangeInclusive<u64>, default: &'static str) -> Self {
        Self::new(key, Kind::power_of_two(range), default)
    }

    /// A number.
    pub const fn real(key: &'static str, range: std::ops::RangeInclusive<f64>, default: &'static str) -> Self {
        Self::new(key, Kind::real(range), default)
    }

    /// A share of a whole; the range is in fractions.
    pub const fn share(key: &'static str, range: std::ops::RangeInclusive<f64>, default: &'static str) -> Self {
        Self::new(key, Kind::share(range), default)
    }

    /// A size in bytes.
    pub const fn bytes(key: &'static str, range: std::ops::RangeInclusive<u64>, default: &'static str) -> Self {
        Self::new(key, Kind::bytes(range, Grain::Any), default)
    }

    /// True or false.
    pub const fn boolean(key: &'static str, default: &'static str) -> Self {
        Self::new(key, Kind::Boolean, default)
    }

    /// One of some names.
    pub const fn choice(key: &'static str, names: &'static [&'static str], default: &'static str) -> Self {
        Self::new(key, Kind::Choice(names), default)
    }

    /// What any of some kinds take.
    pub const fn any(key: &'static str, kinds: &'static [Kind], default: &'static str) -> Self {
        Self::new(key, Kind::Any(kinds), default)
    }

    /// A form of its own, told in words; whoever reads it checks it.
    pub const fn text(key: &'static str, words: &'static str, default: &'static str) -> Self {
        Self::new(key, Kind::Text(words), default)
    }

    /// With its unit, in the plural.
    pub const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// With words that say what holds when the user gives none.
    pub const fn absent(self, absent: &'static str) -> Self {
        Self { absent, ..self }
    }

    /// With the key that is not given beside this one.
    pub const fn excludes(self, excludes: &'static str) -> Self {
        Self { excludes, ..self }
    }

    /// With an option of the command line.
    pub const fn option(self, option: &'static str) -> Self {
        Self { option: Some(option), ..self }
    }

    /// With its meaning.
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// What holds when the user gives none, in words.
    pub const fn default_words(&self) -> &'static str {
        if self.default.is_empty() { self.absent } else { self.default }
    }

    /// Checks a value, as the user writes it.
    ///
    /// # Errors
    /// The kind does not take it; the error names the key.
    pub fn check(&self, text: &str) -> Result<(), SpecError> {
        let fix = || match self.kind.meant(text) {
            Some(meant) => format!("did you mean {meant}? allowed: {}", self.allowed()),
            None => format!("allowed: {}", self.allowed()),
        };
        self.kind.problem(text).map_or(Ok(()), |problem| Err(SpecError::new(self.key, problem, fix())))
    }

    /// The allowed values and their unit in words.
    pub fn allowed(&self) -> String {
        let words = self.kind.allowed();
        if self.unit.is_empty() { words } else { format!("{words} {}", self.unit) }
    }
}
