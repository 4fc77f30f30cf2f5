//! SFS as a file system (Min et al., FAST'12): POSIX files over a log in segments that separates hot blocks from cold ones.
//!
//! Two layers meet in [`store::Store`]: below it pages, file data and transactions, kept by a log; above it inodes, directories,
//! file maps and extended attributes, which are nothing but pages ([`tree`]).

pub mod memory_store;
pub mod store;
pub mod tree;
