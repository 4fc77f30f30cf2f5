//! The tests of the crate from outside, in one binary: each module is a subject.

mod crash;
mod device;
mod laws;
mod parameters;
mod worn_out;
