//! Who said what of a specification: keys with their values and where they were given. Two ways of saying the same that
//! differ are refused, whichever the ways are.

use super::section::{Specification, unknown};
use super::table;
use crate::registry::SpecError;

/// A key and its value, as one option or `--set` gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// Dotted key, in full.
    pub key: String,
    /// Its value, as the user wrote it.
    pub value: String,
    /// Where it was given: an option such as `--op`, or `--set`.
    pub origin: String,
}

impl Given {
    /// What one `--set` gives; `None` for `KEY+=name=value`, which adds to a value in place of giving one.
    ///
    /// # Errors
    /// There is no such key.
    pub fn by_set<T: Specification>(set: &str) -> Result<Option<Self>, SpecError> {
        let Some((key, value)) = set.split_once('=').filter(|(key, _)| !key.ends_with('+')) else { return Ok(None) };
        let key = T::full_key(key.trim());
        T::row(&key).ok_or_else(|| unknown::<T>(&key))?;
        Ok(Some(Self { key, value: value.trim().to_owned(), origin: "--set".to_owned() }))
    }
}

/// Refuses a key that is given two values, and a key beside one that it excludes.
///
/// # Errors
/// The first such pair; the error names both values and where they were given.
pub fn refuse_conflicts<T: Specification>(given: &[Given]) -> Result<(), SpecError> {
    for (index, later) in given.iter().enumerate() {
        for earlier in &given[..index] {
            let says = |one: &Given| format!("{} by {}", one.value, one.origin);
            if earlier.key == later.key {
                let form = |one: &Given| T::row(&one.key).map(|row| row.kind.canonical(&one.value));
                if form(earlier) != form(later) {
                    let problem = format!("it is {} and {}", says(earlier), says(later));
                    return Err(SpecError::new(&later.key, problem, "give one of them"));
                }
            }
            let excludes = |one: &Given, other: &Given| T::row(&one.key).is_some_and(|row| row.excludes == other.key);
            if excludes(earlier, later) || excludes(later, earlier) {
                let place = format!("{} and {}", earlier.key, later.key);
                let problem = format!("one is {}, the other {}", says(earlier), says(later));
                return Err(SpecError::new(place, problem, "they say the same in two ways: give one of them"));
            }
        }
    }
    Ok(())
}

/// The keys of which a TOML text says something, in full.
///
/// # Errors
/// Broken TOML.
pub fn keys_of<T: Specification>(text: &str) -> Result<Vec<String>, SpecError> {
    let mut keys = Vec::new();
    for (section, value) in table(text, &[])? {
        match value {
            toml::Value::Table(fields) => keys.extend(fields.keys().map(|field| format!("{section}.{field}"))),
            _ => keys.push(T::full_key(&section)),
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DeviceSpec;

    fn given(pairs: &[(&str, &str, &str)]) -> Result<(), SpecError> {
        let one = |(key, value, origin): &(&str, &str, &str)| Given {
            key: DeviceSpec::full_key(key),
            value: (*value).to_owned(),
            origin: (*origin).to_owned(),
        };
        refuse_conflicts::<DeviceSpec>(&pairs.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn two_values_of_a_key_are_refused_and_two_forms_of_one_value_are_not() {
        assert_eq!(
            given(&[("device.page_size", "4KiB", "--page-size"), ("device.page_size", "4096", "--set")]),
            Ok(())
        );
        let error =
            given(&[("gc.victim", "fifo", "--set"), ("gc.floor", "3", "--set"), ("gc.victim", "greedy", "--set")]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("gc.victim: it is fifo by --set and greedy by --set"), "{error}");
        let error = given(&[("ftl", "dftl", "--set"), ("ftl.name", "page", "--ftl")]).unwrap_err().to_string();
        assert!(error.contains("ftl.name: it is dftl by --set and page by --ftl"), "{error}");
    }

    #[test]
    fn keys_that_exclude_each_other_are_refused_in_either_order() {
        let (op, spare) = (("device.over_provisioning", "7%", "--op"), ("device.spare", "7%", "--set"));
        for pair in [[op, spare], [spare, op]] {
            let error = given(&pair).unwrap_err().to_string();
            assert!(error.contains("by --op") && error.contains("by --set"), "{error}");
        }
        assert_eq!(given(&[op, ("device.spare_bytes", "7", "--set")]), Ok(()));
    }

    #[test]
    fn a_set_names_a_key_in_full() {
        let given = Given::by_set::<DeviceSpec>("placement = dac").unwrap().unwrap();
        assert_eq!((given.key.as_str(), given.value.as_str()), ("placement.name", "dac"));
        assert_eq!(Given::by_set::<DeviceSpec>("placement.name+=regions=3").unwrap(), None);
        assert!(Given::by_set::<DeviceSpec>("gc.victm=fifo").unwrap_err().to_string().contains("gc.victim"));
        assert_eq!(keys_of::<DeviceSpec>("ftl = \"page\"\n[gc]\nfloor = 3").unwrap(), ["ftl.name", "gc.floor"]);
    }
}
