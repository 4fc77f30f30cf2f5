//! How work that takes long is watched and stopped from outside.

use crate::error::EvalError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared between those who work and those who watch.
#[derive(Debug, Default)]
pub struct Control {
    /// Host pages done so far, over all jobs that share this control.
    pub pages_done: AtomicU64,
    /// Set to stop at the next batch.
    pub stop: AtomicBool,
    /// What is being done, where work has several stages; empty where it has one.
    stage: Mutex<String>,
}

impl Control {
    /// Says what is done from now on.
    pub fn begin(&self, stage: impl Into<String>) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage.into();
    }

    /// What is being done.
    pub fn stage(&self) -> String {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// The user stopped the work.
    pub fn go_on(&self) -> Result<(), EvalError> {
        if self.stop.load(Ordering::Relaxed) { Err(EvalError::Interrupted) } else { Ok(()) }
    }
}
