//! One run: a trace, brought to a device, replayed, judged.
//!
//! The life of a run: survey the trace where its span or length is needed ([`survey`]), derive the logical size, plan the
//! device and check the memory it needs ([`prepare()`]), build it, write filler and preconditioning, replay the trace batch by
//! batch on the calling thread ([`Prepared::run`]), check the conservation laws, and turn snapshots into a
//! [`RunResult`](crate::results::RunResult). Everything counted before the trace starts is subtracted. A run is a pure
//! function of its [`RunSpec`], simulator timing aside.

mod outcome;
mod prepare;
mod replay;

pub use prepare::{Prepared, needs_survey, prepare, survey};
pub(crate) use replay::{Stopped, submit};

use crate::fold::AddressMode;
use crate::precondition::Precondition;
use crate::report::ReportError;
use crate::source::TraceSource;
use isotherm::device::DeviceError;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::SpecError;
use isotherm_sfs::SystemSpec;
use isotherm_trace::TraceError;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A request asks for what the device does not have.
    #[error("{trace}: request {request}: {reason}")]
    Device {
        /// The trace.
        trace: String,
        /// Number of the request in the trace, from 1 (of its batch's first request where the device cannot tell).
        request: u64,
        /// What the device says.
        reason: DeviceError,
    },
    /// The device is possible, but not with so much filler beside what the trace touches.
    #[error(
        "a filler of {share} makes the device impossible: {reason}; give a smaller --fill (with --fill-mode filler, a larger --utilisation)"
    )]
    Filler {
        /// Share of the logical capacity that is filler.
        share: Share,
        /// What is wrong with the device as large as the filler makes it.
        reason: SpecError,
    },
    /// Too little memory.
    #[error("{what} needs {needed} of memory, but {available} is available; {fix}")]
    Memory {
        /// What would be allocated.
        what: String,
        /// How much.
        needed: ByteSize,
        /// How much there is.
        available: ByteSize,
        /// What to change.
        fix: &'static str,
    },
    /// A conservation law is broken: a bug of the simulator.
    #[error(
        "internal error: a conservation law is broken ({0}); this is a bug of isotherm, please report it with the command"
    )]
    Law(String),
    /// A file cannot be written or read.
    #[error("{path}: cannot {action}: {reason}; {fix}")]
    File {
        /// The file.
        path: String,
        /// What was tried, as a verb.
        action: &'static str,
        /// What the system said.
        reason: std::io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// A figure that an experiment asks for cannot be drawn.
    #[error(transparent)]
    Figure(#[from] ReportError),
    /// The user stopped the run.
    #[error("interrupted; files written so far are whole")]
    Interrupted,
}

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The trace.
    pub trace: TraceSource,
    /// The device.
    pub device: SystemSpec,
    /// How the trace is brought to it.
    pub replay: Replay,
    /// Seed of every random choice.
    pub seed: u64,
}

impl RunSpec {
    /// Share of the logical capacity that is filler: what the replay says, or what a log's fill mode asks for.
    pub fn fill(&self) -> f64 {
        let log = self.device.log.as_ref().map_or(0.0, |log| log.filler_share());
        if log > 0.0 { log } else { self.replay.fill.0 }
    }
}

/// How a trace is brought to a device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// What is done with addresses past the device's end.
    pub address: AddressMode,
    /// Share of the logical capacity that holds filler pages, never updated: 0 to below 1.
    pub fill: Share,
    /// What is written before the measured run.
    pub precondition: Precondition,
    /// Times that the trace is replayed, at least 1.
    pub repeat: u32,
    /// Host page writes of the last window; the whole run unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_last: Option<u64>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            address: AddressMode::Refuse,
            fill: Share(0.0),
            precondition: Precondition::None,
            repeat: 1,
            measure_last: None,
        }
    }
}

/// How a run is watched and stopped from outside.
#[derive(Debug, Default)]
pub struct Control {
    /// Host pages submitted so far, over all runs that share this control.
    pub pages_done: AtomicU64,
    /// Set to stop at the next batch.
    pub stop: AtomicBool,
}
