//! Traces: files, synthetic workloads, and requests that the program holds.

use crate::arrays::{Arrays, Column, Held};
use crate::arrow::capsule;
use crate::errors;
use crate::foreign;
use crate::options::option;
use crate::table::Table;
use crate::watch::watched;
use arrow_array::{RecordBatch, RecordBatchReader, UInt8Array, UInt16Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use isotherm::Request;
use isotherm::quantity::ByteSize;
use isotherm_eval::results::TraceSummary;
use isotherm_eval::{Control, Requests as _, TraceSource, files};
use isotherm_trace::synth::Workload;
use isotherm_trace::{OpenOptions, TraceReader, TraceWriter};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Requests in a batch of Arrow's, unless another number is asked for.
const BATCH: usize = 1 << 16;

/// A trace that can be read from its start as often as needed.
#[pyclass(frozen, subclass, module = "isotherm._native")]
pub struct Trace {
    source: TraceSource,
    /// The process that made it: another one, forked from it, shares nothing in memory with it.
    process: u32,
}

impl Trace {
    /// The trace, to be read under `control`.
    pub fn source(&self, control: &Arc<Control>) -> TraceSource {
        let source = self.source.clone().watched(control.clone());
        if self.process == std::process::id() { source } else { source.alone() }
    }

    /// What it is called in results.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    fn held(name: Option<String>, arrays: Arrays) -> Self {
        let held = Held(Arc::new(arrays));
        let name = name.unwrap_or_else(|| format!("arrays:{:016x}", held.content()));
        Self { source: TraceSource::held(&name, Arc::new(held)), process: std::process::id() }
    }
}

/// Options as the command line has them.
fn open_options(options: &Bound<'_, PyDict>) -> PyResult<OpenOptions> {
    let mut found = OpenOptions { drop_leading_trims: true, ..OpenOptions::default() };
    let text = |name: &str| -> PyResult<Option<String>> {
        let given = options.get_item(name)?.filter(|value| !value.is_none());
        given.map(|value| Ok(value.str()?.to_string())).transpose()
    };
    let wrong = |name: &str, problem: String| PyValueError::new_err(format!("{name}: {problem}"));
    found.format = text("format")?.map(|name| name.parse()).transpose().map_err(|e: String| wrong("format", e))?;
    found.time_unit = text("time_unit")?.map(|unit| unit.parse()).transpose().map_err(|e| wrong("time_unit", e))?;
    let object = text("object_bytes")?.map(|size| size.parse::<ByteSize>()).transpose();
    found.object_bytes = object.map_err(|e| wrong("object_bytes", e))?.map(|size| size.0);
    found.volume = text("volume")?;
    option(options, "skip_bad", &mut found.skip_bad)?;
    option(options, "action", &mut found.blktrace_action)?;
    option(options, "sort", &mut found.sort)?;
    let flag = |name: &str| -> PyResult<bool> { options.get_item(name)?.map_or(Ok(false), |value| value.is_truthy()) };
    found.assume_writes = flag("assume_writes")?;
    found.drop_leading_trims = !flag("keep_leading_trim")?;
    Ok(found)
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (name, path=None, **options))]
    fn new(py: Python<'_>, name: &str, path: Option<&str>, options: Option<Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = open_options(&options.unwrap_or_else(|| PyDict::new(py)))?;
        let mut source = TraceSource::with_options(name, options);
        if let Some(path) = path {
            source = source.at(path);
        }
        // What can be told at once is told now, not when a run starts.
        match source.name.strip_prefix("synth:") {
            Some(workload) => {
                Workload::parse(workload).map_err(|error| errors::trace(&error))?;
            }
            None if source.name != "-" => {
                let place = Path::new(source.path());
                std::fs::File::open(place).map_err(|error| errors::no_file(source.path(), &error))?;
            }
            None => {}
        }
        Ok(Self { source, process: std::process::id() })
    }

    /// A trace of requests in arrays.
    #[staticmethod]
    #[pyo3(signature = (offset, length, op=None, time=None, name=None))]
    fn from_arrays(
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        length: &Bound<'_, PyAny>,
        op: Option<&Bound<'_, PyAny>>,
        time: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
    ) -> PyResult<Self> {
        Ok(Self::held(name, Arrays::new(py, columns(offset, length, op, time)?)?))
    }

    /// A trace of requests in a table of Arrow's.
    #[staticmethod]
    #[pyo3(signature = (stream, name=None))]
    fn from_arrow(py: Python<'_>, stream: &Bound<'_, PyCapsule>, name: Option<String>) -> PyResult<Self> {
        let batches: Result<Vec<RecordBatch>, ArrowError> = foreign::reader(stream)?.collect();
        let batches = batches.map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok(Self::held(name, Arrays::of_batches(py, &batches)?))
    }

    #[getter]
    fn get_name(&self) -> &str {
        &self.source.name
    }

    /// What one pass over the trace finds, as JSON, and as a line for people.
    #[pyo3(signature = (page_bytes=4096))]
    fn profile(&self, py: Python<'_>, page_bytes: u64) -> PyResult<(String, String)> {
        let control = Arc::new(Control::default());
        let source = self.source(&control);
        let profile =
            watched(py, &control, None, || source.profile(page_bytes))?.map_err(|error| errors::eval(&error))?;
        Ok((files::to_json(&TraceSummary::from(&profile)), profile.sanity_line()))
    }

    /// Writes it in a canonical form; the number of requests.
    #[pyo3(signature = (path, overwrite=false))]
    fn convert(&self, py: Python<'_>, path: &str, overwrite: bool) -> PyResult<u64> {
        let control = Arc::new(Control::default());
        let source = self.source(&control);
        let work = || -> Result<u64, isotherm_trace::TraceError> {
            let mut writer = TraceWriter::create(path, overwrite)?;
            let mut reader = source.open()?;
            let (mut batch, mut requests) = (Vec::with_capacity(BATCH), 0);
            while reader.fill(&mut batch, BATCH)? > 0 {
                if requests == 0 && reader.names_streams() {
                    writer = writer.with_streams()?;
                }
                writer.write(&batch)?;
                requests += batch.len() as u64;
                batch.clear();
            }
            writer.finish()?;
            Ok(requests)
        };
        watched(py, &control, None, work)?.map_err(|error| errors::trace(&error))
    }

    /// The requests as a stream of Arrow's batches.
    #[pyo3(signature = (size=BATCH))]
    fn batches(&self, size: usize) -> PyResult<Batches> {
        if size == 0 {
            return Err(PyValueError::new_err("size: 0 requests are no batch; give at least one"));
        }
        Ok(Batches { source: self.source(&Arc::default()), size })
    }
}

/// The columns offset, length, op and time as they are given; writes at no particular time where the last are not.
///
/// # Errors
/// One of them is no array.
pub fn columns(
    offset: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
    op: Option<&Bound<'_, PyAny>>,
    time: Option<&Bound<'_, PyAny>>,
) -> PyResult<[Column; 4]> {
    let or = |name: &str, given: Option<&Bound<'_, PyAny>>, default| {
        given.map_or(Ok(Column::All(default)), |object| Column::of(name, object))
    };
    let offsets = Column::of("offset", offset)?;
    if offsets.len().is_none() {
        return Err(PyValueError::new_err("offset: one number is no array; give one of shape (requests,)"));
    }
    Ok([offsets, Column::of("length", length)?, or("op", op, 1)?, or("time", time, 0)?])
}

/// Requests as a stream of record batches, with the columns ``time`` (ns), ``op``, ``offset``, ``length`` (bytes) and ``source``.
///
/// It is read from the start by whoever takes it through ``__arrow_c_stream__``.
#[pyclass(frozen, module = "isotherm")]
pub struct Batches {
    source: TraceSource,
    size: usize,
}

#[pymethods]
impl Batches {
    /// Tables of one batch each, from the start of the trace.
    fn __iter__(&self) -> PyResult<BatchIterator> {
        Ok(BatchIterator(Mutex::new(self.open()?)))
    }

    /// A capsule with the stream, by Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Consumers may ask for other types; the interface lets a producer give what it has.
        let _ = requested_schema;
        capsule(py, Box::new(self.open()?))
    }
}

impl Batches {
    fn open(&self) -> PyResult<Stream> {
        let reader = self.source.open().map_err(|error| errors::trace(&error))?;
        let field = |(name, kind): (&str, DataType)| Field::new(name, kind, false);
        let fields = [
            ("time", DataType::UInt64),
            ("op", DataType::UInt8),
            ("offset", DataType::UInt64),
            ("length", DataType::UInt64),
            ("source", DataType::UInt16),
        ];
        let schema = Arc::new(Schema::new(fields.map(field).to_vec()));
        Ok(Stream { reader, size: self.size, schema })
    }
}

/// Batches as tables, one after the other.
#[pyclass(frozen, module = "isotherm._native")]
pub struct BatchIterator(Mutex<Stream>);

#[pymethods]
impl BatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.check_signals()?;
        let Ok(mut stream) = self.0.try_lock() else {
            return Err(PyValueError::new_err(
                "the batches are read by another thread; give each thread its own iterator",
            ));
        };
        let stream = &mut *stream;
        let batch = py.detach(move || stream.next()).transpose();
        batch
            .map(|batch| batch.map(Table::of_batch))
            .map_err(|problem| errors::TraceError::new_err(problem.to_string()))
    }
}

struct Stream {
    reader: Box<dyn TraceReader + Send>,
    size: usize,
    schema: SchemaRef,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut requests: Vec<Request> = Vec::with_capacity(self.size.min(BATCH));
        while requests.len() < self.size {
            let most = self.size - requests.len();
            match self.reader.fill(&mut requests, most) {
                Ok(0) => break,
                Ok(_) => {}
                Err(problem) => return Some(Err(ArrowError::ExternalError(Box::new(problem)))),
            }
        }
        if requests.is_empty() {
            return None;
        }
        let wide = |value: fn(&Request) -> u64| Arc::new(UInt64Array::from_iter_values(requests.iter().map(value)));
        let ops = requests.iter().map(|request| request.op as u8);
        let sources = requests.iter().map(|request| request.source);
        Some(RecordBatch::try_new(
            self.schema.clone(),
            vec![
                wide(|request| request.arrival_ns),
                Arc::new(UInt8Array::from_iter_values(ops)),
                wide(|request| request.offset),
                wide(|request| request.length),
                Arc::new(UInt16Array::from_iter_values(sources)),
            ],
        ))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
