//! The points of a sweep: handed out one by one, wherever they run.

use crate::errors;
use crate::results::Results;
use crate::watch::watched;
use isotherm_eval::sweep::{ExperimentFile, Origin, Shard, Sweep};
use isotherm_eval::{Control, columns, files};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The points of an experiment.
#[pyclass(frozen, module = "isotherm._native")]
pub struct Points {
    points: isotherm_eval::sweep::Points,
    control: Arc<Control>,
    title: String,
}

/// The experiment in `text`, which stands at `path`, with what its points depend on.
fn plan(
    path: &str,
    text: &str,
    program: &Path,
    copies: BTreeMap<String, String>,
    control: &Arc<Control>,
) -> Result<(ExperimentFile, isotherm_eval::sweep::Points), isotherm_eval::EvalError> {
    let experiment = ExperimentFile::parse(path, text)?;
    let origin = Origin { program: Some(program.to_owned()), copies, control: Some(control.clone()) };
    let points = isotherm_eval::sweep::Points::of(&experiment, &origin)?;
    Ok((experiment, points))
}

#[pymethods]
impl Points {
    #[new]
    fn new(
        py: Python<'_>,
        path: &str,
        text: &str,
        program: PathBuf,
        copies: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let control = Arc::new(Control::default());
        let planned = py.detach(|| plan(path, text, &program, copies, &control));
        let (experiment, points) = planned.map_err(|error| errors::eval(&error))?;
        Ok(Self { points, control, title: experiment.title })
    }

    fn __len__(&self) -> usize {
        self.points.jobs.len()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.title
    }

    /// Traces that were left out, and why.
    #[getter]
    fn left_out(&self) -> Vec<String> {
        self.points.left_out.clone()
    }

    /// Names of the traces that are read.
    fn traces(&self) -> Vec<String> {
        self.points.traces()
    }

    fn labels(&self) -> Vec<String> {
        self.points.jobs.iter().map(|job| job.label.clone()).collect()
    }

    /// Everything that determines the result of a point, and the name of its file.
    fn identity(&self, py: Python<'_>, at: usize) -> PyResult<(String, String)> {
        self.check(at)?;
        let identity = py.detach(|| self.points.identity(at)).map_err(|error| errors::eval(&error))?;
        let name = isotherm_eval::sweep::Points::file_name(&identity);
        Ok((identity, name))
    }

    /// Runs a point; the text of its file.
    fn run(&self, py: Python<'_>, at: usize) -> PyResult<String> {
        self.check(at)?;
        let text = watched(py, &self.control, None, || self.points.run(at, &self.control))?;
        text.map_err(|error| errors::eval(&error))
    }
}

impl Points {
    fn check(&self, at: usize) -> PyResult<()> {
        let count = self.points.jobs.len();
        if at < count { Ok(()) } else { Err(PyIndexError::new_err(format!("there are {count} points"))) }
    }
}

/// Combines the points that lie in `folder`: writes the share's file of the data set, and, once all points are there, the results,
/// which are given back.
///
/// # Errors
/// The experiment is wrong, a file cannot be read or written.
#[pyfunction]
#[pyo3(signature = (path, text, program, copies, folder, shard, command))]
#[expect(clippy::too_many_arguments, reason = "the package's own function of the same purpose has keywords")]
pub fn finish(
    py: Python<'_>,
    path: &str,
    text: &str,
    program: PathBuf,
    copies: BTreeMap<String, String>,
    folder: PathBuf,
    shard: &str,
    command: &str,
) -> PyResult<Option<Results>> {
    let shard: Shard = shard.parse().map_err(|error| errors::spec(&error))?;
    let control = Arc::new(Control::default());
    let work = || -> Result<Option<Results>, isotherm_eval::EvalError> {
        let (experiment, points) = plan(path, text, &program, copies, &control)?;
        let mut sweep = Sweep::of(points, &folder, true)?;
        let all_are_there = sweep.look_again();
        let dataset = folder.join("dataset");
        files::writable_folder(&dataset)?;
        files::write_whole(
            &dataset.join(shard.file_name()),
            &files::to_parquet(&columns::columns(&sweep.part(shard, command))),
        )?;
        remove_other_shares(&dataset, shard);
        if !all_are_there {
            return Ok(None);
        }
        let results = sweep.combine(&experiment, command)?;
        let report = isotherm_report::render(&results).map(String::into_bytes).unwrap_or_default();
        let table = columns::columns(&results);
        files::write_set(&[
            (folder.join("results.json"), files::to_json(&results).into_bytes()),
            (folder.join("results.csv"), columns::to_csv(&table).into_bytes()),
            (folder.join("report.html"), report),
        ])?;
        Ok(Some(Results::new(results)))
    };
    watched(py, &control, None, work)?.map_err(|error| match error {
        isotherm_eval::EvalError::Interrupted => PyRuntimeError::new_err("interrupted"),
        error => errors::eval(&error),
    })
}

/// What another division of the same points left would count them twice.
fn remove_other_shares(dataset: &Path, shard: Shard) {
    let entries = std::fs::read_dir(dataset).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| shard.is_of_another(name))) {
        // Whoever else finishes a share may have removed it already.
        let _ = std::fs::remove_file(entry.path());
    }
}
