//! Results: a whole results file, of which the package shows runs, tables and reports.

use crate::errors;
use crate::table::Table;
use crate::trace::Trace;
use crate::watch::watched;
use isotherm_eval::results::{ResultsFile, RunResult, SCHEMA_VERSION, TraceSummary};
use isotherm_eval::{Control, columns, files};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// How a specification names a policy of the program, before the name of its class.
const OF_PROGRAM: &str = "external:class=";

/// What runs left behind.
#[pyclass(frozen, module = "isotherm._native")]
pub struct Results {
    file: ResultsFile,
}

impl Results {
    /// Results as a file has them; policies of the program are called what the program calls them.
    pub fn new(mut file: ResultsFile) -> Self {
        for run in &mut file.runs {
            run.label = run.label.replace(OF_PROGRAM, "");
            for value in run.axes.values_mut() {
                if let Some(name) = value.as_str().and_then(|text| text.strip_prefix(OF_PROGRAM)) {
                    *value = name.into();
                }
            }
        }
        Self { file }
    }

    /// Runs by themselves.
    pub fn of_runs(runs: Vec<RunResult>, command: &str) -> Self {
        Self::new(ResultsFile {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            traces: Vec::new(),
            experiment: None,
            hotness: Vec::new(),
            replicates: Vec::new(),
            skipped: Vec::new(),
            runs,
        })
    }

    /// The file.
    pub fn into_file(self) -> ResultsFile {
        self.file
    }

    fn run(&self, at: usize) -> PyResult<&RunResult> {
        self.file.runs.get(at).ok_or_else(|| PyIndexError::new_err(format!("there are {} runs", self.file.runs.len())))
    }
}

#[pymethods]
impl Results {
    /// Results from the text of a `results.json`.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let file: ResultsFile = serde_json::from_str(text)
            .map_err(|problem| PyValueError::new_err(format!("no results.json: {problem}")))?;
        Ok(Self::new(file))
    }

    fn __len__(&self) -> usize {
        self.file.runs.len()
    }

    /// The whole file as JSON.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| files::to_json(&self.file))
    }

    /// One run as JSON.
    fn run_json(&self, py: Python<'_>, at: usize) -> PyResult<String> {
        let run = self.run(at)?;
        Ok(py.detach(|| files::to_json(run)))
    }

    /// One run by itself.
    fn only(&self, at: usize) -> PyResult<Self> {
        let run = self.run(at)?.clone();
        let traces = self.file.traces.iter().filter(|trace| trace.name == run.trace).cloned().collect();
        let alone = Self::of_runs(vec![run], &self.file.command);
        Ok(Self::new(ResultsFile { traces, ..alone.file }))
    }

    /// Labels of the runs.
    fn labels(&self) -> Vec<String> {
        self.file.runs.iter().map(|run| run.label.clone()).collect()
    }

    /// A row for each run, or for each scheme of a measurement of hot data.
    fn table(&self, py: Python<'_>) -> Table {
        Table::of_columns(py.detach(|| columns::columns(&self.file)))
    }

    /// The counters of one run over time.
    fn series(&self, at: usize) -> PyResult<Table> {
        let series = serde_json::to_value(&self.run(at)?.series).expect("results have string keys and finite numbers");
        Ok(Table::of_lists(&series))
    }

    /// The page, with `traces` described that the file does not describe yet.
    #[pyo3(signature = (traces=Vec::new()))]
    fn html(&self, py: Python<'_>, traces: Vec<PyRef<'_, Trace>>) -> PyResult<String> {
        let mut file = self.file.clone();
        let control = Arc::new(Control::default());
        let page_bytes = file.runs.first().map_or(4096, |run| run.device.page_bytes);
        for trace in traces {
            if file.traces.iter().all(|known| known.name != trace.name()) {
                let source = trace.source(&control);
                let profile = watched(py, &control, None, || source.profile(page_bytes))?;
                file.traces.push(TraceSummary::from(&profile.map_err(|error| errors::eval(&error))?));
            }
        }
        py.detach(|| isotherm_report::render(&file)).map_err(|problem| PyValueError::new_err(problem.to_string()))
    }

    /// Writes `results.json`, and what else is asked for, into a folder: all of it or nothing.
    #[pyo3(signature = (folder, csv=false, parquet=false))]
    fn write(&self, py: Python<'_>, folder: PathBuf, csv: bool, parquet: bool) -> PyResult<()> {
        let write = || {
            let _claimed = files::claim_folder(&folder)?;
            let mut set = vec![(folder.join("results.json"), files::to_json(&self.file).into_bytes())];
            let table = columns::columns(&self.file);
            if csv {
                set.push((folder.join("results.csv"), columns::to_csv(&table).into_bytes()));
            }
            if parquet {
                set.push((folder.join("results.parquet"), files::to_parquet(&table)));
            }
            files::write_set(&set)
        };
        py.detach(write).map_err(|error| errors::eval(&error))
    }
}
