//! Experiments on simulated devices: replay a trace, judge the result, compare, sweep, check against theory.
//!
//! A run is determined by its [`RunSpec`]: a trace, a device, how the one is brought to the other, and a seed.
//!
//! ```
//! use isotherm_eval::{Control, Policies, Replay, RunSpec, SystemSpec, TraceSource, prepare, survey};
//!
//! let device = SystemSpec::from_toml("", &["gc.victim=cost_benefit".to_owned()])?;
//! let trace = TraceSource::new("synth:zipf,theta=0.99,pages=4096,writes=20000");
//! let spec = RunSpec { trace, device, replay: Replay::default(), seed: 1, policies: Policies::default() };
//! // One pass over the trace tells how large the device must be.
//! let survey = survey(&spec)?;
//! let result = prepare(&spec, Some(&survey))?.run(&Control::default())?;
//! assert_eq!(result.host_pages_written, 20_000);
//! assert!(result.write_amplification >= Some(1.0));
//! # Ok::<(), isotherm_eval::EvalError>(())
//! ```
//!
//! Many runs go through [`run_all`], which uses all cores: [`compare`] lists the combinations of policies, [`sweep`] the points
//! of an experiment file. [`results`] are what all of them leave behind, [`files`] how they are written. Pages and charts are in
//! the crate `isotherm-report`.
//!
//! # Features
//! `parquet` (off by default): traces in Parquet are read, and tables of results written.
//!
//! # Order of the modules
//! Each uses only those before it: `steady`, [`closed_form`], `error`, `control`; [`results`]; [`columns`], [`files`], `fold`,
//! `source`, `memory`, `estimate`; `recorder`, `heat`, [`lifetime`](mod@lifetime), `laws`, `measure`, `verdict`; `pool`; `run`, [`hotness`]; [`compare`],
//! [`comparison`], [`validate`], [`sweep`].

pub mod closed_form;
pub mod columns;
pub mod compare;
pub mod comparison;
pub mod files;
pub mod hotness;
pub mod lifetime;
pub mod results;
pub mod sweep;
pub mod validate;

mod control;
mod error;
mod estimate;
mod fold;
mod heat;
mod kept;
mod laws;
mod measure;
mod memory;
mod pool;
mod recorder;
mod run;
mod run_spec;
mod source;
mod steady;
mod verdict;

pub use control::Control;
pub use error::EvalError;
pub use estimate::estimate;
pub use fold::{AddressMode, Folding, TouchedPages};
pub use isotherm_sfs::SystemSpec;
pub use memory::available as available_memory;
pub use pool::{Job, Named, Ready, Refused, Surveys, Work, run_all, run_each, startable};
pub use results::{ResultsFile, RunResult};
pub use run::{
    Meter, Policies, Precondition, Prepared, Replay, ReplaySpec, RunSpec, needs_survey, prepare, survey, writers_note,
};
pub use source::{Requests, Survey, SurveyKey, TraceSource};
