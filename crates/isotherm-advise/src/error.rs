//! What goes wrong around an advice.

use isotherm::registry::SpecError;
use isotherm_eval::EvalError;
use isotherm_report::ReportError;

/// Why there is no advice, or no file of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviceError {
    /// The evaluation, or a file that cannot be read or written.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The page.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What a file says: place, problem, what would be right.
    #[error("{0}")]
    Content(String),
}

impl From<SpecError> for AdviceError {
    fn from(error: SpecError) -> Self {
        Self::Eval(error.into())
    }
}
