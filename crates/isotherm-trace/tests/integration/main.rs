//! The tests of the crate from outside, in one binary: each module is a subject.

mod captures;
mod damage;
mod formats;
mod round_trip;
mod synth;
