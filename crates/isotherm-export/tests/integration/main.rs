//! The tests of the crate from outside, in one binary: each module is a subject, or a part that subjects share.
#![cfg(target_os = "linux")]

mod certificates;
mod memory;
mod raw;
mod scripted;
mod serving;
mod tools;

mod clients;
mod handshake;
mod hostile;
mod nbdsh;
mod paced;
mod places;
mod stopping;
mod tls;
mod transmission;
