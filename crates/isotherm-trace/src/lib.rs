//! Placeholder documentation.
