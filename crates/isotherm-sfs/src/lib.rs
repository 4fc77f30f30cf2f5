//! SFS: a log that groups blocks by hotness when it writes them (Min, Kim, Cho, Lee & Eom, "SFS: random write considered
//! harmful in solid state drives", FAST'12), the plain log that it is compared with, and both over a device.
//!
//! ```text
//! request -> LogDevice (bytes to blocks) -> SegmentLog (dirty cache, groups, segments) -> Disk -> any device of `isotherm`
//! ```
//!
//! All of them are written once for blocks with and without [`content`]: over a device that replays requests the log is a
//! simulation, over one that holds bytes it holds them too, and [`recover`] finds them again after a loss of power.
//!
//! The policies are [`isotherm::hotness::heat`], [`isotherm::hotness::quantise`] and [`segments`]: they know no device and no
//! simulator. [`machine`] is what they steer, without bytes and without a map: whatever can write blocks and make them durable
//! is its [`machine::Mechanism`]. [`log`] is one, with a [`dirty`] cache over anything that is a [`disk::Disk`]; a file system is another. [`device`]
//! puts the log over a simulated device, as a [`spec::SystemSpec`] says. The block store of the flash translation layers
//! ([`isotherm::store`]) is another machine: it cleans block by block into open blocks, where this one cleans into a cache,
//! writes whole segments later, and must not reuse a segment before a checkpoint.
//!
//! ```
//! use isotherm::build::Environment;
//! use isotherm::request::{Op, Request};
//! use isotherm_sfs::snapshot::LogSnapshot;
//! use isotherm_sfs::{SystemSpec, build};
//!
//! let sets = ["log.name=sfs:segment=64KiB".to_owned(), "log.below=page".to_owned()];
//! let spec = SystemSpec::from_toml("", &sets)?;
//! let mut device = build(&spec, &Environment { logical_bytes: 4 << 20, seed: 1, ..Environment::default() })?;
//! let write = |block: u64| Request { arrival_ns: 0, offset: block * 4096, length: 4096, op: Op::Write, source: 0, durable: false };
//! let requests: Vec<Request> = (0..5000).map(|i| write(i * 7919 % 1024)).collect();
//! device.submit(&requests).expect("the log has room");
//! let snapshot = device.snapshot();
//! let log = snapshot.sections.get::<LogSnapshot>().expect("a log was asked for");
//! assert!(log.write_amplification_end_to_end() >= 1.0);
//! # Ok::<(), isotherm::registry::SpecError>(())
//! ```

pub mod below;
mod blocks;
mod build;
pub mod byte_store;
pub mod checkpoint;
mod checksum;
pub mod content;
pub mod device;
pub mod dirty;
pub mod disk;
pub mod drive;
pub mod log;
pub mod machine;
pub mod options;
pub mod recover;
pub mod segments;
pub mod snapshot;
pub mod spec;
pub mod summary;

pub use build::{NO_DEVICE, build, build_with_bytes, check_below, check_names, plan, plan_below};
pub use snapshot::SECTIONS;
pub use spec::{FillMode, LogSection, SystemSpec};
