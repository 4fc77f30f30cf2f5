//! A simulated SSD with real bytes: what a specification describes, kept in a flash image or in memory, and served to clients.
//!
//! The device is the one that replays traces, built by the same code: its counters for the same requests are the same, whether
//! they come from a trace, from a program or from a client.

pub mod control;
mod drive;
mod handles;
pub mod image;
mod served;
pub mod smart;

pub use drive::{Drive, DriveError, DriveOptions, Handle, Health, Latency, Recorder, SlowRequest};
pub use handles::{HandlePlan, PlanError};
