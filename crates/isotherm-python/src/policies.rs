//! Policies that are written in Python: asked for many pages at a time, by threads that take the interpreter for the question.

use isotherm::placement::{CopyBatch, ExternalPlacement, SharedPlacement, WriteBatch};
use isotherm::victim::{ClosedBlocks, ExternalVictim, SharedVictim};
use isotherm_eval::Policies;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};

/// What a policy raised, for whoever waits for the run.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Takes out what was raised.
pub fn raised(slot: &Raised) -> Option<PyErr> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The policies of one run; `placement` and `victim` are the package's wrappers around what the user wrote.
///
/// # Errors
/// A wrapper that is none.
pub fn policies(
    placement: Option<&Bound<'_, PyAny>>,
    victim: Option<&Bound<'_, PyAny>>,
    raised: &Raised,
) -> PyResult<Policies> {
    let placement = placement.map(|object| Placement::new(object, raised.clone())).transpose()?;
    let victim = victim.map(|object| Victim { object: object.clone().unbind(), raised: raised.clone() });
    Ok(Policies {
        placement: placement.map(|placement| Arc::new(Mutex::new(placement)) as SharedPlacement),
        victim: victim.map(|victim| Arc::new(Mutex::new(victim)) as SharedVictim),
    })
}

/// Asks; what is raised is kept, and its words go to the engine, which stops.
fn ask(raised: &Raised, question: impl FnOnce(Python<'_>) -> PyResult<()>) -> Result<(), String> {
    Python::attach(|py| {
        question(py).map_err(|error| {
            let words = error.to_string();
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            words
        })
    })
}

/// Numbers as bytes that NumPy reads as they are. Bytes cannot be written to.
fn bytes<'py, const N: usize, T: Copy>(
    py: Python<'py>,
    values: &[T],
    raw: fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |out| {
        out.chunks_exact_mut(N).zip(values).for_each(|(place, value)| place.copy_from_slice(&raw(*value)));
        Ok(())
    })
}

#[derive(Debug)]
struct Placement {
    object: Py<PyAny>,
    raised: Raised,
    streams: u16,
    gc_streams: u16,
    copies_to: Option<u16>,
}

impl Placement {
    fn new(object: &Bound<'_, PyAny>, raised: Raised) -> PyResult<Self> {
        Ok(Self {
            streams: object.getattr("streams")?.extract()?,
            gc_streams: object.getattr("gc_streams")?.extract()?,
            copies_to: object.getattr("copies_to")?.extract()?,
            object: object.clone().unbind(),
            raised,
        })
    }
}

fn take(answer: &Bound<'_, PyAny>, streams: &mut [u16]) -> PyResult<()> {
    PyBuffer::<u16>::get(answer)?.copy_to_slice(answer.py(), streams)
}

impl ExternalPlacement for Placement {
    fn streams(&self) -> u16 {
        self.streams
    }
    fn gc_streams(&self) -> u16 {
        self.gc_streams
    }
    fn copies_to(&self) -> Option<u16> {
        self.copies_to
    }
    fn begin(&mut self, logical_pages: u32) -> Result<(), String> {
        ask(&self.raised, |py| self.object.bind(py).call_method1("begin", (logical_pages,)).map(|_| ()))
    }
    fn host(&mut self, writes: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        ask(&self.raised, |py| {
            let lpns = bytes(py, writes.lpns, u32::to_ne_bytes)?;
            let last_writes = bytes(py, writes.last_writes, i64::to_ne_bytes)?;
            let now = bytes(py, writes.now, i64::to_ne_bytes)?;
            take(&self.object.bind(py).call_method1("host", (lpns, last_writes, now))?, streams)
        })
    }
    fn copies(&mut self, copies: &CopyBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        ask(&self.raised, |py| {
            let lpns = bytes(py, copies.lpns, u32::to_ne_bytes)?;
            let last_writes = bytes(py, copies.last_writes, i64::to_ne_bytes)?;
            let asked = (lpns, last_writes, copies.now, copies.stream, copies.stamp);
            take(&self.object.bind(py).call_method1("copies", asked)?, streams)
        })
    }
}

#[derive(Debug)]
struct Victim {
    object: Py<PyAny>,
    raised: Raised,
}

impl ExternalVictim for Victim {
    fn rank(&mut self, closed: &ClosedBlocks, now: u64) -> Result<Vec<u32>, String> {
        let mut ranking = Vec::new();
        ask(&self.raised, |py| {
            let asked = (
                bytes(py, &closed.blocks, u32::to_ne_bytes)?,
                bytes(py, &closed.valid, u32::to_ne_bytes)?,
                bytes(py, &closed.ages, u64::to_ne_bytes)?,
                bytes(py, &closed.erases, u32::to_ne_bytes)?,
                bytes(py, &closed.streams, u16::to_ne_bytes)?,
                closed.pages_per_block,
                now,
            );
            let answer = self.object.bind(py).call_method1("rank", asked)?;
            ranking = PyBuffer::<u32>::get(&answer)?.to_vec(py)?;
            Ok(())
        })?;
        Ok(ranking)
    }
}
