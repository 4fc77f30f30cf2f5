//! Options that a program gives as it likes: a number, or the text that the command line takes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::str::FromStr;

/// One option, if it was given.
///
/// # Errors
/// Its name, and what is wrong with its value.
pub fn optional<T: FromStr>(options: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    let Some(value) = options.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(None) };
    let found = value.str()?.to_string().parse();
    found.map(Some).map_err(|problem| PyValueError::new_err(format!("{name}: {problem}")))
}

/// Reads one option, if it was given.
///
/// # Errors
/// As [`optional`].
pub fn option<T: FromStr>(options: &Bound<'_, PyDict>, name: &str, found: &mut T) -> PyResult<()>
where
    T::Err: std::fmt::Display,
{
    if let Some(value) = optional(options, name)? {
        *found = value;
    }
    Ok(())
}
