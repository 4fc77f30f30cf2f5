//! SFS as a file system (Min et al., FAST'12): POSIX files over a log in segments that separates hot blocks from cold ones.
//!
//! Two layers meet in [`store::Store`]: below it pages, file data and transactions, kept by a log ([`log`]); above it inodes,
//! directories, file maps and extended attributes, which are nothing but pages ([`tree`]). A [`volume::Volume`] is both, mounted.

mod ahead;
pub mod check;
pub mod device;
pub mod format;
pub mod geometry;
pub mod log;
pub mod memory_device;
pub mod memory_store;
pub mod recording;
pub mod store;
pub mod tree;
pub mod volume;
