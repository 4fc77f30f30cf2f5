//! Streams of record batches in capsules, as Arrow's PyCapsule interface has it: whoever takes one shares the memory.

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A capsule with a stream of what `reader` reads.
///
/// # Errors
/// Python is out of memory.
pub fn capsule(py: Python<'_>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}
