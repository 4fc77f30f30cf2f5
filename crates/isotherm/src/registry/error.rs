//! What is wrong with a specification.

/// A wrong specification: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}; {fix}")]
pub struct SpecError {
    /// The key at fault: a dotted key of the specification, or `policy:key`.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub fix: String,
}

impl SpecError {
    /// An error about `place`.
    pub fn new(place: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), fix: fix.into() }
    }
}
