//! The core of isotherm: flash storage that separates hot data from cold.
//!
//! ```text
//! request -> Ssd (bytes to pages) -> Ftl (map) -> Placement (which stream) -> BlockStore (open blocks) -> Medium
//!                                                                  collector + VictimPolicy ^    (rules, wear, time, faults)
//! ```
//!
//! The core has no I/O, no threads, no wall clock and no globals: the same specification, requests and seed give the same
//! counters everywhere.
//!
//! ```
//! use isotherm::build::{Environment, build};
//! use isotherm::request::{Op, Request};
//! use isotherm::spec::DeviceSpec;
//!
//! let spec = DeviceSpec::from_toml("[gc]\nvictim = \"cost_benefit\"", &["device.spare=0.1".to_owned()])?;
//! let mut device = build(&spec, &Environment { logical_bytes: 1 << 20, seed: 1, future: None })?;
//! let write = |page: u64| Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write };
//! let requests: Vec<Request> = (0..2000).map(|i| write(i * 7919 % 256)).collect();
//! device.submit(&requests).expect("the device has room");
//! assert!(device.snapshot().write_amplification() >= 1.0);
//! device.check().expect("conservation laws hold");
//! # Ok::<(), isotherm::registry::SpecError>(())
//! ```

pub mod address;
pub mod bits;
pub mod blocks;
pub mod build;
pub mod cause;
pub mod device;
pub mod dram;
pub mod ftl;
pub mod future;
pub mod hotness;
pub mod lambert;
pub mod memory;
pub mod nand;
pub mod placement;
pub mod quantity;
pub mod random;
pub mod registry;
pub mod request;
pub mod spec;
pub mod ssd;
pub mod stats;
pub mod store;
pub mod victim;

/// The examples of the contributor's guide, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
