//! The specification of a simulated device: what a TOML file, `--set` and the command line's options fill in.
//!
//! Unknown keys are errors. Every key has a default, so that an empty file is a valid specification.

mod given;
mod print;
mod section;
mod sections;

use crate::registry::{Parameter, SpecError};
use serde::{Deserialize, Serialize};

pub use given::{Given, keys_of, refuse_conflicts};
pub use print::with_comments;
pub use section::{Specification, check, read};
pub use sections::{DeviceSection, DramSection, FtlSection, GcSection, PlacementSection, TimingSection, WearSection};

/// A simulated device and its policies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceSpec {
    /// Capacity and shape of the array.
    pub device: DeviceSection,
    /// The flash translation layer.
    pub ftl: FtlSection,
    /// DRAM of the controller.
    pub dram: DramSection,
    /// Which stream a page goes to.
    pub placement: PlacementSection,
    /// Cleaning.
    pub gc: GcSection,
    /// Static wear levelling.
    pub wear: WearSection,
    /// Latencies and the queueing model.
    pub timing: TimingSection,
}

impl Specification for DeviceSpec {
    const TABLES: &'static [&'static [Parameter]] = &[
        DeviceSection::TABLE,
        FtlSection::TABLE,
        DramSection::TABLE,
        PlacementSection::TABLE,
        GcSection::TABLE,
        WearSection::TABLE,
        TimingSection::TABLE,
    ];
    const MAIN_KEYS: &'static [(&'static str, &'static str)] = &[("ftl", "name"), ("placement", "name")];
}

impl DeviceSpec {
    /// Parses a TOML text and applies `sets` (`gc.victim=fifo`) over it.
    ///
    /// # Errors
    /// Broken TOML (with line and column), unknown keys, values out of range.
    pub fn from_toml(text: &str, sets: &[String]) -> Result<Self, SpecError> {
        parse(text, sets)
    }

    /// The specification as TOML, every key in force.
    pub fn to_toml(&self) -> String {
        to_toml(self)
    }
}

/// A specification from a TOML text with `sets` (`gc.victim=fifo`) over it.
///
/// # Errors
/// Broken TOML (with line and column), unknown keys, values out of range.
pub fn parse<T: Specification>(text: &str, sets: &[String]) -> Result<T, SpecError> {
    let mut table = table(text, sets)?;
    for (section, key) in T::MAIN_KEYS {
        if let Some(value @ toml::Value::String(_)) = table.get(*section).cloned() {
            let inner = toml::Table::from_iter([((*key).to_owned(), value)]);
            table.insert((*section).to_owned(), toml::Value::Table(inner));
        }
    }
    section::check_table::<T>(&mut table)?;
    toml::Value::Table(table).try_into().map_err(broken)
}

/// A specification as TOML, every key in force.
pub fn to_toml(spec: &impl Serialize) -> String {
    toml::to_string_pretty(spec).expect("every field of a specification has a TOML form")
}

fn broken(error: toml::de::Error) -> SpecError {
    SpecError::new("spec", error.to_string().trim().replace('\n', " "), "correct it as the message says")
}

/// What a TOML text says, with `sets` over it.
fn table(text: &str, sets: &[String]) -> Result<toml::Table, SpecError> {
    let mut table: toml::Table = toml::from_str(text).map_err(broken)?;
    sets.iter().try_for_each(|set| apply_set(&mut table, set))?;
    Ok(table)
}

/// Sets one dotted key: numbers and booleans are taken as such, anything else as text. `KEY+=name=value` adds a parameter to
/// the policy that the key names, so that sets of several origins can each say a part.
fn apply_set(table: &mut toml::Table, set: &str) -> Result<(), SpecError> {
    let wrong = || SpecError::new(set, "not KEY=VALUE", "write for example gc.victim=fifo");
    let (path, text) = set.split_once('=').ok_or_else(wrong)?;
    let mut parts: Vec<&str> = path.trim().split('.').collect();
    let last = parts.pop().filter(|p| !p.is_empty()).ok_or_else(wrong)?;
    let mut at = table;
    for part in parts {
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| SpecError::new(set, format!("\"{part}\" is not a section"), "a key is SECTION.NAME"))?;
    }
    let text = text.trim();
    if let Some(key) = last.strip_suffix('+') {
        let named = at.get_mut(key).filter(|value| value.is_str()).ok_or_else(|| {
            SpecError::new(set, format!("\"{key}\" names no policy yet"), "set the key first, with =")
        })?;
        let name = named.as_str().expect("a text was asked for");
        *named = format!("{name}{}{text}", if name.contains(':') { "," } else { ":" }).into();
        return Ok(());
    }
    at.insert(last.to_owned(), section::value(text));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_spec_is_the_default_and_prints_back() {
        let spec = DeviceSpec::from_toml("", &[]).unwrap();
        assert_eq!(spec, DeviceSpec::default());
        assert_eq!(DeviceSpec::from_toml(&spec.to_toml(), &[]).unwrap(), spec);
    }

    #[test]
    fn sets_override_the_file() {
        let sets = [
            "gc.victim=d_choices:d=10".to_owned(),
            "device.page_size=8KiB".to_owned(),
            "wear.leveling=false".to_owned(),
        ];
        let spec = DeviceSpec::from_toml("placement = \"epoch:length=2\"\n[gc]\nvictim = \"fifo\"\n", &sets).unwrap();
        assert_eq!(spec.gc.victim.to_string(), "d_choices:d=10");
        assert_eq!(spec.device.page_size.0, 8192);
        assert_eq!(spec.placement.name.to_string(), "epoch:length=2");
        assert!(!spec.wear.leveling);
    }

    #[test]
    fn sets_add_parameters_to_a_named_policy() {
        let sets = |sets: &[&str]| sets.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let text = "[placement]\nname = \"dac\"\n";
        let spec =
            DeviceSpec::from_toml(text, &sets(&["placement.name+=regions=3", "placement.name+=young=2"])).unwrap();
        assert_eq!(spec.placement.name.to_string(), "dac:regions=3,young=2");
        let error = DeviceSpec::from_toml(text, &sets(&["gc.victim+=d=3"])).unwrap_err().to_string();
        assert!(error.contains("gc.victim+=d=3") && error.contains("names no policy yet"), "{error}");
    }

    #[test]
    fn unknown_keys_are_errors_that_name_the_key() {
        let error = DeviceSpec::from_toml("[gc]\nvictm = \"fifo\"\n", &[]).unwrap_err();
        assert!(error.to_string().contains("victm"), "{error}");
        assert!(DeviceSpec::from_toml("", &["gc.victm=fifo".to_owned()]).is_err());
        assert!(DeviceSpec::from_toml("", &["gc.victim".to_owned()]).is_err());
    }
}
