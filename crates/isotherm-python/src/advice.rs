//! Advice about a workload and its drive.

use crate::errors;
use crate::options::{option, optional};
use crate::trace::Trace;
use crate::watch::watched;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::PolicyName;
use isotherm_advise::{Beside, DriveClass, KnownOfDrive, Question, export, page};
use isotherm_eval::{Control, files};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// An answer.
#[pyclass(frozen, module = "isotherm._native")]
pub struct Advice {
    advice: isotherm_advise::Advice,
    /// What commands call the trace.
    trace: String,
}

#[pymethods]
impl Advice {
    /// The whole as JSON.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| files::to_json(&self.advice))
    }

    /// The page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| page::render(&self.advice)).map_err(|problem| PyValueError::new_err(problem.to_string()))
    }

    /// Writes the answer, its page and its plans into a folder: all of it or nothing.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let written = py.detach(|| export::write(&self.advice, &folder, &self.trace));
        written.map(|_| ()).map_err(|error| errors::advice(&error))
    }
}

/// A name of the registry that may be left out.
fn name(options: &Bound<'_, PyDict>, key: &str, default: &str) -> PyResult<PolicyName> {
    let mut found = PolicyName::plain(default);
    option(options, key, &mut found)?;
    Ok(found)
}

/// Advises.
///
/// # Errors
/// What is wrong with an option, a file or the trace; Ctrl-C.
#[pyfunction]
#[pyo3(signature = (trace, options, progress=None))]
pub fn advise(
    py: Python<'_>,
    trace: &Trace,
    options: &Bound<'_, PyDict>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Advice> {
    let control = Arc::new(Control::default());
    let class: String = options.get_item("drive")?.map_or(Ok(String::new()), |value| value.extract())?;
    let class = DriveClass::find(&class).map_err(|problem| PyValueError::new_err(format!("drive: {problem}")))?;
    let bytes = |key: &str| -> PyResult<Option<u64>> { Ok(optional::<ByteSize>(options, key)?.map(|size| size.0)) };
    let share = |key: &str, mut value: Share| option(options, key, &mut value).map(|()| value.0);
    let known = KnownOfDrive {
        capacity_bytes: bytes("capacity")?,
        over_provisioning: optional::<Share>(options, "op")?.map(|share| share.0),
        pe_cycles: optional(options, "pe_cycles")?,
        warranty_years: optional(options, "warranty_years")?,
    };
    let (mut handles_max, mut scale_rate, mut seed) = (8, 1.0, 1);
    option(options, "handles", &mut handles_max)?;
    option(options, "scale_rate", &mut scale_rate)?;
    option(options, "seed", &mut seed)?;
    let question = Question {
        trace: trace.source(&control),
        drive: class.with(&known).map_err(|error| errors::advice(&error.into()))?,
        fill: share("fill", Share(0.85))?,
        untouched: share("untouched", Share(0.0))?,
        ftl: name(options, "ftl", "page")?,
        dram_bytes: bytes("dram")?,
        split: name(options, "split", "50%")?,
        placement: name(options, "placement", "host_gc")?,
        victim: name(options, "victim", "greedy")?,
        handles_max,
        scale_rate,
        exhaustive: options.get_item("exhaustive")?.map_or(Ok(false), |value| value.is_truthy())?,
        seed,
    };
    let path = |key: &str| -> PyResult<Option<PathBuf>> {
        options.get_item(key)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
    };
    let (map, before, after) = (path("file_map")?, path("smart_before")?, path("smart_after")?);
    let offset = bytes("partition_offset")?.unwrap_or(0);
    let counters = before.as_deref().zip(after.as_deref());
    let beside =
        Beside::read(map.as_deref().map(|path| (path, offset)), counters).map_err(|error| errors::advice(&error))?;
    let advice = watched(py, &control, progress.as_ref(), || isotherm_advise::advise(&question, beside, &control))?
        .map_err(|error| errors::advice(&error.into()))?;
    Ok(Advice { advice, trace: trace.name().to_owned() })
}
