//! Experiments on simulated devices: replay a trace, judge the result, compare, sweep, check against theory, report.

pub mod closed_form;
pub mod columns;
pub mod compare;
pub mod error;
pub mod files;
pub mod fold;
pub mod heat;
pub mod hotness;
pub mod laws;
pub mod lifetime;
pub mod measure;
pub mod memory;
pub mod pool;
pub mod recorder;
pub mod results;
pub mod run;
pub mod source;
pub mod steady;
pub mod sweep;
pub mod validate;
pub mod verdict;
