//! The tests of the crate from outside, in one binary: each module is a subject.

mod bytes;
mod crash;
mod device;
mod laws;
mod machine;
mod parameters;
mod worn_out;
