//! What can be named and set: keys of specifications, policies, and where they were published.

use crate::errors;
use isotherm::ftl::FTLS;
use isotherm::hotness::SCHEMES;
use isotherm::placement::PLACEMENTS;
use isotherm::registry::{Entry, Parameter};
use isotherm::spec::{self, Specification as _};
use isotherm::victim::VICTIMS;
use isotherm_eval::ReplaySpec;
use isotherm_sfs::SystemSpec;
use isotherm_sfs::options::LOGS;
use pyo3::prelude::*;

/// A key with its option, kind, default and help.
type Key = (&'static str, Option<&'static str>, String, String, String);

fn key(row: &'static Parameter) -> Key {
    (
        row.key,
        row.option,
        format!("{} {}", row.kind.name(), row.unit).trim_end().to_owned(),
        row.default_words().to_owned(),
        row.help.to_owned(),
    )
}

/// The keys of a device, and those of a replay.
#[pyfunction]
pub fn keys() -> (Vec<Key>, Vec<Key>) {
    (SystemSpec::rows().map(key).collect(), ReplaySpec::rows().map(key).collect())
}

/// Checks a specification, which is TOML and keys that are set over it, and gives it back with every key in force.
///
/// # Errors
/// Whatever is wrong with it.
#[pyfunction]
pub fn spec_toml(text: &str, sets: Vec<String>) -> PyResult<String> {
    Ok(parse(text, &sets)?.to_toml())
}

/// Reads a specification.
///
/// # Errors
/// Whatever is wrong with it.
pub fn parse(text: &str, sets: &[String]) -> PyResult<SystemSpec> {
    let given = || -> Result<SystemSpec, isotherm::SpecError> {
        let given = sets.iter().map(|set| spec::Given::by_set::<SystemSpec>(set)).collect::<Result<Vec<_>, _>>()?;
        spec::refuse_conflicts::<SystemSpec>(&given.into_iter().flatten().collect::<Vec<_>>())?;
        let spec = SystemSpec::from_toml(text, sets)?;
        spec::check(&spec)?;
        isotherm_sfs::check_names(&spec)?;
        Ok(spec)
    };
    given().map_err(|error| errors::spec(&error))
}

/// The names of what a word lists: `placements`, `victims`, `ftls`, `logs`, `schemes`.
#[pyfunction]
pub fn names(list: &str) -> Option<Vec<&'static str>> {
    Some(of(list)?.into_iter().map(|row| row.0).collect())
}

/// The publications of what a word lists, by name.
#[pyfunction]
pub fn papers(list: &str) -> Option<Vec<(&'static str, &'static str)>> {
    of(list)
}

fn of(list: &str) -> Option<Vec<(&'static str, &'static str)>> {
    Some(match list {
        "placements" => rows(PLACEMENTS),
        "victims" => rows(VICTIMS),
        "ftls" => rows(FTLS),
        "logs" => rows(LOGS),
        "schemes" => rows(SCHEMES),
        _ => return None,
    })
}

fn rows<B>(table: &'static [Entry<B>]) -> Vec<(&'static str, &'static str)> {
    table.iter().map(|entry| (entry.name, entry.paper)).collect()
}
