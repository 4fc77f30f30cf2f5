//! What the tests share.

pub mod damage;
pub mod driver;
pub mod random;
pub mod recording;
pub mod sample;
