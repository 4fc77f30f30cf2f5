//! The tests of the crate from outside, in one binary: each module is a subject.

mod clustering;
mod experiments;
mod patterns;
mod windows;
