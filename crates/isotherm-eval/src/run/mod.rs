//! One run: a trace, brought to a device, replayed, judged.
//!
//! The life of a run: survey the trace where its span or length is needed ([`survey`]), derive the logical size, plan the
//! device and check the memory it needs ([`prepare()`]), build it, write filler and preconditioning, replay the trace batch by
//! batch on the calling thread ([`Prepared::run`]), check the conservation laws, and turn snapshots into a
//! [`RunResult`](crate::results::RunResult). Everything counted before the trace starts is subtracted. A run is a pure
//! function of its [`RunSpec`], simulator timing aside.

mod future;
mod known_rates;
mod layout;
mod meter;
mod outcome;
mod precondition;
mod prepare;
mod replay;
mod submit;
mod work;

pub use crate::run_spec::{Policies, Precondition, Replay, ReplaySpec, RunSpec};
pub use meter::Meter;
pub use prepare::{Prepared, needs_survey, prepare, survey, writers_note};
