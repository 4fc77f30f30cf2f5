//! Experiments on simulated devices: replay a trace, judge the result, compare, sweep, check against theory, report.

pub mod closed_form;
pub mod fold;
pub mod laws;
pub mod lifetime;
pub mod measure;
pub mod recorder;
pub mod results;
pub mod steady;
pub mod verdict;
