//! Synthetic workloads in fio's words: who is popular, how requests look, when they come.
//!
//! A specification is `PATTERN,key=value,...` (after `synth:`). [`PATTERNS`] lists the patterns and their parameters,
//! [`COMMON`] the parameters of every workload. fio's spelling is understood too: `zipf:1.1` is `zipf,theta=1.1`, and
//! `hotcold:0.1/0.9` is `hotcold,hot=0.1,hot_writes=0.9`.
//!
//! - `zipf,theta=1.2,pages=1Mi,writes=10M+sequential,share=0.3` mixes: 30 % of the requests are sequential.
//! - `zipf,pages=1Mi,writes=10M@4M,hotcold,hot=0.05` changes: from the 4-millionth page write on, hot and cold.
//!
//! The same specification gives the same requests on every machine: draws come from the pinned generator, and the few
//! logarithms and powers from a portable library.

mod alias;
mod counts;
mod pattern;
mod reader;
mod scatter;
mod workload;
mod zipf;

pub use pattern::{Build, PATTERNS, PatternEntry, RateGroup};
pub use reader::SynthReader;
pub use workload::{COMMON, MIX, Workload, reseeded};
