//! Measuring hot data identification: how well schemes agree with an ideal one, write by write, and what they cost.
//!
//! [`PageWrites`] is the write stream of a trace, page by page; [`measure()`] runs any number of schemes and a reference
//! over it in one pass; [`HotnessSpec`] is such a measurement as a job of an experiment.
//!
//! The measures are those of Park and Du, "Hot Data Identification for Flash-based Storage Systems Using Multiple Bloom
//! Filters", MSST 2011, section IV-B. A request counts once for each page that it touches. All rates are shares of all
//! writes, so that the false identification rate is the sum of the false hot and the false cold rate.

mod job;
mod measure;
mod output;
mod writes;

pub use job::HotnessSpec;
pub use measure::{Counts, Measurement, Plan, SchemeResult, WINDOWS_MAX, measure, parse_schemes, unique_pages};
pub use output::{json, text, windows_csv};
pub use writes::PageWrites;
