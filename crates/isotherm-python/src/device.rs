//! A device that takes requests step by step, from programs that make them as they go.

use crate::arrays::{Arrays, CHUNK};
use crate::catalogue::parse;
use crate::errors;
use crate::policies::{Raised, policies, raised};
use crate::results::Results;
use crate::trace::columns;
use isotherm::build::Environment;
use isotherm::device::{DeviceError, Replay};
use isotherm::quantity::ByteSize;
use isotherm_eval::Meter;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A block: number, stream, valid pages, erases, stamp, what it is doing.
type BlockRow = (u32, u16, u32, u32, u64, String);

/// See the module's text.
#[pyclass(frozen, module = "isotherm._native")]
pub struct Device {
    inner: Mutex<Inner>,
    raised: Raised,
}

struct Inner {
    device: Box<dyn Replay>,
    meter: Meter,
    /// Requests since the meter began.
    requests: u64,
    /// Arrival of the last request: times go on over several calls.
    last_ns: u64,
}

impl Device {
    /// The device, unless another thread has it: in a forked process that thread may never give it back.
    fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(inner),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the device is in use by another thread; give each thread a device of its own",
            )),
            Err(TryLockError::Poisoned(_)) => {
                Err(PyRuntimeError::new_err("the device failed in an earlier call and cannot be used any more"))
            }
        }
    }
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (text, sets, seed, name, placement=None, victim=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        sets: Vec<String>,
        seed: u64,
        name: &str,
        placement: Option<Bound<'_, PyAny>>,
        victim: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut spec = parse(text, &sets)?;
        let Some(ByteSize(logical_bytes)) = spec.device.logical_size else {
            return Err(errors::spec(&isotherm::SpecError::new(
                "device.logical_size",
                "a device that takes requests step by step has no trace to take its size from",
                "give one, such as \"1GiB\"",
            )));
        };
        spec.device.logical_size = Some(ByteSize(logical_bytes.next_multiple_of(spec.device.page_size.0)));
        let raised = Raised::default();
        let policies = policies(placement.as_ref(), victim.as_ref(), &raised)?;
        let environment = Environment {
            logical_bytes,
            seed,
            future: None,
            placement: policies.placement.clone(),
            victim: policies.victim.clone(),
        };
        let built = py.detach(|| {
            let device = isotherm_sfs::build(&spec, &environment)?;
            let meter = Meter::with_policies(&*device, spec, seed, name, 0, &policies)?;
            Ok(Inner { device, meter, requests: 0, last_ns: 0 })
        });
        Ok(Self { inner: Mutex::new(built.map_err(|error| errors::spec(&error))?), raised })
    }

    /// Carries requests out, in order.
    #[pyo3(signature = (offset, length, op=None, time=None))]
    fn submit(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        length: &Bound<'_, PyAny>,
        op: Option<&Bound<'_, PyAny>>,
        time: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let arrays = Arrays::new(py, columns(offset, length, op, time)?)?;
        let mut inner = self.lock()?;
        let Inner { device, meter, requests, last_ns } = &mut *inner;
        let timed = time.is_some();
        let failed = |error: DeviceError| raised(&self.raised).unwrap_or_else(|| errors::device(&error));
        arrays.for_each(py, failed, |batch| {
            debug_assert!(batch.len() <= CHUNK);
            let mut batch = batch.to_vec();
            for request in &mut batch {
                request.arrival_ns = request.arrival_ns.max(*last_ns);
            }
            if timed {
                *last_ns = batch.last().map_or(*last_ns, |request| request.arrival_ns);
            }
            for part in batch.chunks(4096) {
                device.submit(part)?;
                *requests += part.len() as u64;
                meter.tick(&device.snapshot());
            }
            Ok(())
        })
    }

    /// Lets the device clean in the background for so much of its own time.
    fn idle(&self, py: Python<'_>, budget_ns: u64) -> PyResult<()> {
        let mut guard = self.lock()?;
        let inner = &mut *guard;
        py.detach(move || inner.device.idle(budget_ns)).map_err(|error| errors::device(&error))
    }

    /// Begins to count anew.
    fn reset_stats(&self) -> PyResult<()> {
        let mut guard = self.lock()?;
        let inner = &mut *guard;
        inner.device.reset_latencies();
        inner.meter.restart(&*inner.device, inner.last_ns);
        inner.requests = 0;
        Ok(())
    }

    /// Everything counted so far, as a result.
    fn snapshot(&self, py: Python<'_>, command: &str) -> PyResult<Results> {
        let mut guard = self.lock()?;
        let inner = &mut *guard;
        let result = py.detach(move || inner.meter.result(&*inner.device, inner.requests));
        Ok(Results::of_runs(vec![result], command))
    }

    /// Columns of the block table: number, stream, valid pages, erases, stamp; and what each block is doing, as a word.
    fn blocks(&self) -> PyResult<Vec<BlockRow>> {
        let inner = self.lock()?;
        let blocks = inner.device.blocks();
        let row = |(at, block): (u32, isotherm::device::BlockView)| {
            (at, block.stream, block.valid, block.erases, block.stamp, format!("{:?}", block.phase).to_lowercase())
        };
        Ok((0..).zip(blocks).map(row).collect())
    }

    /// Checks every conservation law.
    fn check(&self) -> PyResult<()> {
        self.lock()?.device.check().map_err(PyValueError::new_err)
    }

    #[getter]
    fn capacity_bytes(&self) -> PyResult<u64> {
        let inner = self.lock()?;
        Ok(u64::from(inner.device.logical_pages()) * u64::from(inner.device.page_bytes()))
    }
}
