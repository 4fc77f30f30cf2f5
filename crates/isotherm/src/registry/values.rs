//! The parameters that a user gave for a policy, checked.

use super::error::SpecError;
use super::kind::{Kind, parse_boolean, parse_integer};
use super::name::{PolicyName, WRAPPED};
use super::parameter::Parameter;
use super::suggest::closest;
use crate::quantity::{ByteSize, Share};

fn place(policy: &PolicyName, key: &str) -> String {
    format!("{}:{key}", policy.name)
}

/// The parameters of one policy, checked against its table: unknown keys and values that their kind does not allow are
/// errors, missing ones take the default.
///
/// What is read has been checked, so that reading cannot fail; asking for a key that the table does not have, or for another
/// type than the table says, is a bug and panics.
pub struct Parameters<'a> {
    policy: &'a PolicyName,
    table: &'static [Parameter],
}

impl<'a> Parameters<'a> {
    /// Checks what `policy` gives against `table`. A table with the key [`WRAPPED`] belongs to a policy that is built around
    /// another one: keys that it does not have are that one's ([`Parameters::wrapped`]) and checked there.
    ///
    /// # Errors
    /// A key that the table does not have, one given twice, or a value that is not allowed.
    pub fn new(policy: &'a PolicyName, table: &'static [Parameter]) -> Result<Self, SpecError> {
        let wraps = table.iter().any(|p| p.key == WRAPPED);
        for (i, (key, value)) in policy.parameters.iter().enumerate() {
            let declared = table.iter().find(|p| p.key == key);
            if !wraps && declared.is_none() {
                return Err(unknown(&policy.name, table, key, value));
            }
            if policy.parameters[..i].iter().any(|(k, _)| k == key) {
                return Err(SpecError::new(&policy.name, format!("\"{key}\" is given twice"), "give it once"));
            }
            let named = |error: SpecError| SpecError { place: place(policy, key), ..error };
            declared.map_or(Ok(()), |declared| declared.check(value)).map_err(named)?;
        }
        Ok(Self { policy, table })
    }

    /// A parameter's place in a specification, for errors.
    pub fn place(&self, key: &str) -> String {
        place(self.policy, key)
    }

    /// The policy that this one is built around: named by [`WRAPPED`], with the parameters that this one does not have.
    pub fn wrapped(&self) -> PolicyName {
        let own = |key: &str| self.table.iter().any(|p| p.key == key);
        let parameters = self.policy.parameters.iter().filter(|(key, _)| !own(key)).cloned().collect();
        PolicyName { name: self.text(WRAPPED).to_owned(), parameters }
    }

    /// Whether the table has `key`: policies that share a reader may take different parameters.
    pub fn has(&self, key: &str) -> bool {
        self.table.iter().any(|p| p.key == key)
    }

    fn declared(&self, key: &str) -> &'static Parameter {
        self.table
            .iter()
            .find(|p| p.key == key)
            .unwrap_or_else(|| panic!("{}: parameter {key} is not in its table", self.policy.name))
    }

    /// Whether the user gave `key`.
    pub fn is_given(&self, key: &str) -> bool {
        self.policy.parameters.iter().any(|(k, _)| k == key)
    }

    /// The text of `key`: given, or its default.
    pub fn text(&self, key: &str) -> &str {
        let declared = self.declared(key);
        self.policy.parameters.iter().find(|(k, _)| k == key).map_or(declared.default, |(_, v)| v)
    }

    /// The error that the value of `key` is out of a range that depends on other values.
    pub fn refuse(&self, key: &str, allowed: impl std::fmt::Display) -> SpecError {
        let problem = format!("\"{}\" is out of range", self.text(key));
        SpecError::new(format!("{}:{key}", self.policy.name), problem, format!("allowed: {allowed}"))
    }

    /// The value of `key` by `parse`, which understands all that the kind allows.
    fn value<T>(&self, key: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        let text = self.text(key);
        parse(text).unwrap_or_else(|| panic!("{}: {key}={text} is read as another type", self.policy.name))
    }

    /// A whole number.
    pub fn integer(&self, key: &str) -> u64 {
        self.value(key, parse_integer)
    }

    /// A number; `inf` is understood.
    pub fn real(&self, key: &str) -> f64 {
        self.value(key, |text| text.parse().ok())
    }

    /// A share, as a fraction.
    pub fn share(&self, key: &str) -> f64 {
        self.value(key, |text| text.parse::<Share>().ok()).0
    }

    /// A size in bytes.
    pub fn bytes(&self, key: &str) -> u64 {
        self.value(key, |text| text.parse::<ByteSize>().ok()).0
    }

    /// True or false.
    pub fn boolean(&self, key: &str) -> bool {
        self.value(key, parse_boolean)
    }

    /// What the name in force stands for; `choices` are all names of the table.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> T {
        if let Kind::Choice(names) = self.declared(key).kind {
            let is_whole = names.len() == choices.len() && choices.iter().all(|choice| names.contains(&choice.0));
            assert!(is_whole, "{}: the names of {key} are not those of its table", self.policy.name);
        }
        self.value(key, |text| choices.iter().find(|choice| choice.0 == text).map(|choice| choice.1))
    }

    /// Whether `key` has this one of its names.
    pub fn is(&self, key: &str, name: &str) -> bool {
        assert!(self.declared(key).kind.has_name(name), "{}: {key} has no name {name}", self.policy.name);
        self.text(key) == name
    }
}

/// The error that a policy has no parameter `key`. A bare word, which would name the policy that another one is built around, is a key or
/// a value whose other half is missing.
fn unknown(policy: &str, table: &[Parameter], key: &str, value: &str) -> SpecError {
    let keys = table.iter().map(|parameter| parameter.key);
    let all = keys.clone().collect::<Vec<_>>().join(", ");
    let takes = if all.is_empty() { "it takes none".to_owned() } else { format!("it takes {all}") };
    if key == WRAPPED {
        return SpecError::new(policy, format!("\"{value}\" is not KEY=VALUE"), takes);
    }
    let fix = match closest(key, keys) {
        Some(meant) => format!("did you mean \"{meant}\"? {takes}"),
        None => takes,
    };
    SpecError::new(policy, format!("unknown parameter \"{key}\""), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Parameter] = &[Parameter::integer("groups", 1..=8, "4"), Parameter::integer("sample", 1..=8, "4")];

    #[test]
    fn what_a_policy_does_not_take_is_told_with_what_it_takes() {
        for (given, table, expected) in [
            (
                "sfs:greups=3",
                TABLE,
                "sfs: unknown parameter \"greups\"; did you mean \"groups\"? it takes groups, sample",
            ),
            ("sfs:colour=3", TABLE, "sfs: unknown parameter \"colour\"; it takes groups, sample"),
            ("sfs:groups", TABLE, "sfs: \"groups\" is not KEY=VALUE; it takes groups, sample"),
            ("greedy:fast", &[], "greedy: \"fast\" is not KEY=VALUE; it takes none"),
        ] {
            let name: PolicyName = given.parse().unwrap();
            let refused = Parameters::new(&name, table).err().expect("it is refused");
            assert_eq!(refused.to_string(), expected);
        }
    }
}
