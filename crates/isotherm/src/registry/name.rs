//! Policies as users name them: `name:key=value,...`.

use super::error::SpecError;
use std::fmt;

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
