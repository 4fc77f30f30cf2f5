//! Experiments on simulated devices: replay a trace, judge the result, compare, sweep, check against theory, report.

pub mod closed_form;
pub mod fold;
pub mod recorder;
pub mod report;
pub mod results;
pub mod steady;
