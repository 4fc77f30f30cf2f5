//! The core of isotherm: flash storage that separates hot data from cold.
pub mod address;
pub mod cause;
pub mod device;
pub mod hotness;
pub mod quantity;
pub mod random;
pub mod registry;
pub mod request;
pub mod spec;
pub mod stats;
