//! How work that takes long is watched and stopped from outside.

use crate::error::EvalError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between those who work and those who watch.
#[derive(Debug, Default)]
pub struct Control {
    /// Host pages done so far, over all jobs that share this control.
    pub pages_done: AtomicU64,
    /// Set to stop at the next batch.
    pub stop: AtomicBool,
}

impl Control {
    /// Whether to go on.
    ///
    /// # Errors
    /// The user stopped the work.
    pub fn go_on(&self) -> Result<(), EvalError> {
        if self.stop.load(Ordering::Relaxed) { Err(EvalError::Interrupted) } else { Ok(()) }
    }
}
