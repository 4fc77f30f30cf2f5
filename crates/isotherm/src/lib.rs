//! The core of isotherm: flash storage that separates hot data from cold.
//!
//! ```text
//! request -> Ssd (bytes to pages) -> Ftl (map) -> Placement (which stream) -> BlockStore (open blocks) -> Medium
//!                                                                  collector + VictimPolicy ^    (rules, wear, time, faults)
//! ```
//!
//! What a user of simulated devices needs stands at the top: a specification, [`build()`] or [`build_with_bytes`], requests, and
//! what can be asked of a device ([`Observe`], [`Replay`], [`BlockDevice`]). The modules are for those who build a device from its
//! parts, write a policy or an FTL, or read the tables of what can be named ([`registry`]).
//!
//! The core has no I/O, no threads, no wall clock and no globals: the same specification, requests and seed give the same
//! counters everywhere.
//!
//! ```
//! use isotherm::{DeviceSpec, Environment, Op, Request, build};
//!
//! let spec = DeviceSpec::from_toml("[gc]\nvictim = \"cost_benefit\"", &["device.spare=0.1".to_owned()])?;
//! let mut device = build(&spec, &Environment { logical_bytes: 1 << 20, seed: 1, ..Environment::default() })?;
//! let write = |page: u64| Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write, source: 0, durable: false };
//! let requests: Vec<Request> = (0..2000).map(|i| write(i * 7919 % 256)).collect();
//! device.submit(&requests).expect("the device has room");
//! assert!(device.snapshot().write_amplification() >= 1.0);
//! device.check().expect("conservation laws hold");
//! # Ok::<(), isotherm::SpecError>(())
//! ```

pub mod address;
mod bits;
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

pub use build::{Environment, build, build_with_bytes, plan};
pub use device::{BlockDevice, DeviceError, Observe, Replay};
pub use registry::SpecError;
pub use request::{Op, Request};
pub use spec::DeviceSpec;
pub use stats::Snapshot;

/// The examples of the contributor's guide, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
pub struct Contributing;
