//! Why an evaluation has no result: the one error of this crate, below all of its modules.

use isotherm::address::MAX_PAGES;
use isotherm::device::DeviceError;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::SpecError;
use isotherm_trace::TraceError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
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
    /// The trace reaches beyond what 30-bit page numbers can address.
    #[error(
        "{trace}: a write ends at byte {end_bytes}, beyond {MAX_PAGES} pages of {page_bytes} bytes; use a larger --page-size"
    )]
    TooFar {
        /// The trace.
        trace: String,
        /// End of the write.
        end_bytes: u64,
        /// Page size in force.
        page_bytes: u64,
    },
    /// Nothing to judge.
    #[error("{trace}: it has no write; hot data identification looks at writes only, so give a trace with some")]
    NoWrites {
        /// The trace.
        trace: String,
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
    /// Every trace of an experiment is in a folder that no variable names.
    #[error(
        "no trace of the experiment is at hand: all are left out, as the environment does not set {variables}; set it to the folder that holds the captures, as in {first}=captures isotherm sweep EXPERIMENT"
    )]
    NoTrace {
        /// The variables, in words.
        variables: String,
        /// The first of them.
        first: String,
    },
    /// Nothing of a sweep has a result.
    #[error("no point can run; the first, {label}: {reason}")]
    NoPoint {
        /// The first point.
        label: String,
        /// Why it cannot run.
        reason: String,
    },
    /// The user stopped the run.
    #[error("interrupted; files written so far are whole")]
    Interrupted,
}

impl EvalError {
    /// Whether what went wrong concerns more than the run that met it: a trace that cannot be read, a file that cannot be written, a bug.
    pub fn concerns_all(&self) -> bool {
        matches!(self, Self::Trace(_) | Self::File { .. } | Self::Law(_) | Self::Interrupted)
    }
}
