//! What the tests share.

pub mod driver;
pub mod random;
pub mod recording;
pub mod sample;
