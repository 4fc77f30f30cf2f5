//! SFS: a log that groups blocks by hotness when it writes them (Min, Kim, Cho, Lee & Eom, "SFS: random write considered
//! harmful in solid state drives", FAST'12), the plain log that it is compared with, and both over a device.
//!
//! [`crate::hotness::heat`], [`crate::hotness::quantise`], [`segments`] and [`dirty`] are the policies: they know no device and no simulator, so that a
//! file system can use them as they are. [`log`] is the machine that they steer, over anything that is a
//! [`store::SegmentStore`]; [`device`] puts it over a simulated device. The block store of the flash translation layers
//! ([`crate::log`]) is another machine: it cleans block by block into open blocks, where this one cleans into a cache, writes
//! whole segments later, and must not reuse a segment before a checkpoint.

pub mod device;
pub mod dirty;
pub mod drive;
pub mod log;
pub mod options;
pub mod segments;
pub mod snapshot;
pub mod store;
