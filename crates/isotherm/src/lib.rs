//! The core of isotherm.
pub mod address;
pub mod hotness;
pub mod random;
pub mod registry;
pub mod request;
