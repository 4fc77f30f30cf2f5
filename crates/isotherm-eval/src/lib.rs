//! Experiments on simulated devices: replay a trace, judge the result, compare, sweep, check against theory, report.

pub mod hotness;
