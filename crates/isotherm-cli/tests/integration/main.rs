//! The tests of the command from outside, in one binary: each module is a subject.

mod advise;
mod bad_input;
mod command;
mod compare;
mod diff;
mod drive;
mod experiments;
mod golden;
mod known;
mod sfs;
mod trace;
mod tutorials;
mod verdict;
