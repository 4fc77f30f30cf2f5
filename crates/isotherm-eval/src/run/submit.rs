//! One batch to the device: what ends a run with a result, and what ends it with an error.

use crate::error::EvalError;
use isotherm::device::{DeviceError, Replay};
use isotherm::request::Request;

/// Why the device could not carry on, when it could not: a result with a reason, not an error.
pub(super) type Stopped = Option<String>;

/// Submits a batch whose first request is number `first` of the trace.
///
/// # Errors
/// A request that the device cannot take. Out of space and worn out are results.
pub(super) fn submit(
    device: &mut dyn Replay,
    batch: &[Request],
    trace: &str,
    first: u64,
) -> Result<Stopped, EvalError> {
    match device.submit(batch) {
        Ok(()) => Ok(None),
        Err(error @ (DeviceError::NoSpace { .. } | DeviceError::WornOut { .. })) => Ok(Some(error.to_string())),
        Err(reason) => {
            let within = if let DeviceError::OutOfRange { request, .. } = &reason { *request as u64 } else { 0 };
            Err(EvalError::Device { trace: trace.to_owned(), request: first + within, reason })
        }
    }
}
