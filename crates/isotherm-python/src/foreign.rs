//! The unsafe steps of the package: memory of other libraries, which only their contracts vouch for.

#![allow(unsafe_code)]

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The name of capsules that hold a stream, by Arrow's PyCapsule interface.
const NAME: &std::ffi::CStr = c"arrow_array_stream";

/// Takes the stream out of a capsule, which is empty from then on.
///
/// # Errors
/// The capsule holds something else, or the stream cannot be read.
pub fn reader(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let pointer = capsule.pointer_checked(Some(NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: A capsule of this name holds an `ArrowArrayStream` by the interface's contract, at an address that the capsule keeps
    // valid and that nobody else uses while the interpreter is held. `from_raw` moves the stream out and leaves one behind that
    // was released, as the interface asks of whoever takes it.
    let taken = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    taken.map_err(|problem| PyValueError::new_err(problem.to_string()))
}

/// Passes on the values of a buffer from `at` on, at most `most` of them.
///
/// # Panics
/// If they do not lie side by side, or there are not as many.
pub fn values<T: Element>(_: Python<'_>, buffer: &PyBuffer<T>, at: usize, most: usize, mut each: impl FnMut(T)) {
    let whole = buffer.as_slice_ptr().expect("the values lie side by side");
    assert!(at + most <= whole.len(), "{most} values from {at} on of {}", whole.len());
    let first = whole.cast::<T>();
    for index in at..at + most {
        // SAFETY: The exporter keeps `whole.len()` aligned values of `T` at this address until the buffer is released, and the
        // index lies among them. Whoever writes to them holds the interpreter, which this thread holds now; a library that writes
        // without it breaks the protocol for all readers.
        each(unsafe { first.add(index).read() });
    }
}
