//! Why there is no report: the one error of this crate, below all of its modules.

use isotherm::registry::SpecError;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The results hold no run.
    #[error("the results hold no run: there is nothing to report; run `isotherm compare` or `isotherm run` first")]
    NoRuns,
    /// A structure that JSON cannot hold.
    #[error("a figure or a run cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An experiment asks for a figure that its runs cannot give.
    #[error(transparent)]
    Figure(#[from] SpecError),
}
