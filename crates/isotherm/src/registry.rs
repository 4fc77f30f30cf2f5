//! Named policies: how a user's `name:key=value,...` becomes a policy, and what `--help` and `list` say of it.
//!
//! Every kind of policy (victims, placements, hotness schemes, FTLs ...) has one table of [`Entry`]s. The table feeds
//! parsing, help, documentation and the tests that run every entry; there is no second list anywhere.

use std::fmt;

/// One parameter of a policy, as help shows it and as [`Parameters`] checks it.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key in `name:key=value`.
    pub key: &'static str,
    /// The value in force when the user gives none.
    pub default: &'static str,
    /// Allowed values, in words: `1..=16`, `closed | youngest`.
    pub allowed: &'static str,
    /// Meaning and unit, in one line.
    pub help: &'static str,
}

/// One policy of a registry table.
pub struct Entry<B> {
    /// Published name, as users type it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// Memory that it needs in the simulator beyond the device's own tables, in words.
    pub memory: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Builds it; a plain function so that tables can be constants.
    pub build: B,
}

/// A wrong specification: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}; {fix}")]
pub struct SpecError {
    /// The key or option at fault.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub fix: String,
}

impl SpecError {
    /// An error about `place`.
    pub fn new(place: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), fix: fix.into() }
    }
}

/// The parameter that names the policy which another one is built around: `hotness:mbf` is `hotness` with `scheme=mbf`.
pub const WRAPPED: &str = "scheme";

/// What a user named: a policy and the parameters given for it, not yet checked.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyName {
    /// Name before the colon.
    pub name: String,
    /// Keys and values after it, in the order given.
    pub parameters: Vec<(String, String)>,
}

impl PolicyName {
    /// A policy with its default parameters.
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: Vec::new() }
    }
}

impl std::str::FromStr for PolicyName {
    type Err = SpecError;

    /// Parses `name` or `name:key=value,key=value`.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').map_or((text, ""), |(n, r)| (n, r));
        if name.is_empty() {
            return Err(SpecError::new(text, "the policy has no name", "write NAME or NAME:key=value,..."));
        }
        // `hotness:mbf,filters=8`: a first part without `=` belongs to the scheme that the policy wraps.
        let mut parameters = Vec::new();
        for part in rest.split(',').filter(|p| !p.is_empty()) {
            match part.split_once('=') {
                Some((key, value)) => parameters.push((key.trim().to_owned(), value.trim().to_owned())),
                None if parameters.is_empty() => parameters.push((WRAPPED.to_owned(), part.trim().to_owned())),
                None => {
                    return Err(SpecError::new(
                        text,
                        format!("\"{part}\" has no value"),
                        "write each parameter as key=value",
                    ));
                }
            }
        }
        Ok(Self { name: name.trim().to_owned(), parameters })
    }
}

impl TryFrom<String> for PolicyName {
    type Error = SpecError;
    fn try_from(text: String) -> Result<Self, SpecError> {
        text.parse()
    }
}

impl From<PolicyName> for String {
    fn from(p: PolicyName) -> Self {
        p.to_string()
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (key, value)) in self.parameters.iter().enumerate() {
            f.write_str(if i == 0 { ":" } else { "," })?;
            if key == WRAPPED { f.write_str(value)? } else { write!(f, "{key}={value}")? }
        }
        Ok(())
    }
}

/// The parameters of one policy, checked against its table: unknown keys are errors, missing ones take the default.
pub struct Parameters<'a> {
    policy: &'a PolicyName,
    table: &'static [Parameter],
}

impl<'a> Parameters<'a> {
    /// Checks the keys of `policy` against `table`. A table with the key [`WRAPPED`] belongs to a policy that is built around
    /// another one: keys that it does not have are that one's ([`Parameters::wrapped`]) and checked there.
    ///
    /// # Errors
    /// A key that the table does not have, or one given twice.
    pub fn new(policy: &'a PolicyName, table: &'static [Parameter]) -> Result<Self, SpecError> {
        let wraps = table.iter().any(|p| p.key == WRAPPED);
        for (i, (key, _)) in policy.parameters.iter().enumerate() {
            if !wraps && !table.iter().any(|p| p.key == key) {
                let known: Vec<_> = table.iter().map(|p| p.key).collect();
                let fix = if known.is_empty() {
                    "it takes none".to_owned()
                } else {
                    format!("it takes {}", known.join(", "))
                };
                return Err(SpecError::new(&policy.name, format!("unknown parameter \"{key}\""), fix));
            }
            if policy.parameters[..i].iter().any(|(k, _)| k == key) {
                return Err(SpecError::new(&policy.name, format!("\"{key}\" is given twice"), "give it once"));
            }
        }
        Ok(Self { policy, table })
    }

    /// The policy that this one is built around: named by [`WRAPPED`], with the parameters that this one does not have.
    pub fn wrapped(&self) -> PolicyName {
        let own = |key: &str| self.table.iter().any(|p| p.key == key);
        let parameters = self.policy.parameters.iter().filter(|(key, _)| !own(key)).cloned().collect();
        PolicyName { name: self.text(WRAPPED).to_owned(), parameters }
    }

    fn declared(&self, key: &str) -> &'static Parameter {
        self.table
            .iter()
            .find(|p| p.key == key)
            .unwrap_or_else(|| panic!("{}: parameter {key} is not in its table", self.policy.name))
    }

    /// The text of `key`: given, or its default.
    pub fn text(&self, key: &str) -> &str {
        let declared = self.declared(key);
        self.policy.parameters.iter().find(|(k, _)| k == key).map_or(declared.default, |(_, v)| v)
    }

    /// The error that the value of `key` is out of range.
    pub fn refuse(&self, key: &str) -> SpecError {
        SpecError::new(
            format!("{}:{key}", self.policy.name),
            format!("\"{}\" is out of range", self.text(key)),
            format!("allowed: {}", self.declared(key).allowed),
        )
    }

    /// A whole number within `range`. `4Ki` and `1Mi` are understood.
    ///
    /// # Errors
    /// Not a number, or outside the range.
    pub fn integer(&self, key: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, SpecError> {
        parse_integer(self.text(key)).filter(|v| range.contains(v)).ok_or_else(|| self.refuse(key))
    }

    /// A real number within `range`; `inf` where the range reaches it.
    ///
    /// # Errors
    /// Not a number, or outside the range.
    pub fn real(&self, key: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, SpecError> {
        self.text(key).parse().ok().filter(|v| range.contains(v)).ok_or_else(|| self.refuse(key))
    }

    /// `true` or `false` (`on`/`off`, `yes`/`no`).
    ///
    /// # Errors
    /// Anything else.
    pub fn boolean(&self, key: &str) -> Result<bool, SpecError> {
        match self.text(key) {
            "true" | "on" | "yes" => Ok(true),
            "false" | "off" | "no" => Ok(false),
            _ => Err(self.refuse(key)),
        }
    }

    /// One of `choices`, by its position.
    ///
    /// # Errors
    /// None of them.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, SpecError> {
        let text = self.text(key);
        choices.iter().find(|c| c.0 == text).map(|c| c.1).ok_or_else(|| self.refuse(key))
    }
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

/// Finds a policy in its table.
///
/// # Errors
/// No such name; the error lists the names there are.
pub fn find<B>(table: &'static [Entry<B>], kind: &str, policy: &PolicyName) -> Result<&'static Entry<B>, SpecError> {
    table.iter().find(|e| e.name == policy.name).ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|e| e.name).collect();
        SpecError::new(kind, format!("unknown name \"{}\"", policy.name), format!("choose from {}", names.join(", ")))
    })
}
