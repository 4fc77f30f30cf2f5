//! What the tests share.

pub mod damage;
pub mod driver;
pub mod failing;
pub mod gated;
pub mod history;
pub mod model;
pub mod operation;
pub mod random;
pub mod recording;
pub mod sample;
pub mod slow;
pub mod snapshot;
pub mod thin;
pub mod volumes;
pub mod workload;
