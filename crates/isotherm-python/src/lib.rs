//! The Python package `isotherm`: what stands behind its module `_native`.
//!
//! The package's own sources (`python/isotherm`) give it its form: names, documentation, types. Here is what needs the engine:
//! traces ([`trace`]), devices ([`device`]), runs and comparisons ([`run`]), the points of sweeps ([`sweep`]), policies that are
//! written in Python ([`policies`]), advice ([`advice`]), and tables in Arrow's C form ([`arrow`]).
//!
//! Whatever simulates does so with the interpreter released, on a thread of its own where it takes long ([`watch`]).

mod advice;
mod arrays;
mod arrow;
mod catalogue;
mod device;
mod errors;
mod foreign;
mod options;
mod policies;
mod results;
mod run;
mod sweep;
mod table;
mod trace;

mod watch;

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these words; its exit code.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| {
        let code = isotherm_cli::main(&words);
        // An exit code is told by comparing it with all there are.
        (0..=u8::MAX).find(|byte| std::process::ExitCode::from(*byte) == code).unwrap_or(1)
    })
}

/// The module.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("IsothermError", module.py().get_type::<errors::IsothermError>())?;
    module.add("SpecError", module.py().get_type::<errors::SpecError>())?;
    module.add("TraceError", module.py().get_type::<errors::TraceError>())?;
    module.add("DeviceError", module.py().get_type::<errors::DeviceError>())?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<trace::Batches>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<device::Device>()?;
    module.add_class::<sweep::Points>()?;
    module.add_class::<advice::Advice>()?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::keys, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::spec_toml, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::papers, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::names, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::compare, module)?)?;
    module.add_function(wrap_pyfunction!(run::validate, module)?)?;
    module.add_function(wrap_pyfunction!(run::hotness, module)?)?;
    module.add_function(wrap_pyfunction!(advice::advise, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::finish, module)?)?;
    Ok(())
}
