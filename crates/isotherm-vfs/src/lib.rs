//! What a POSIX file system is asked, as one trait that knows neither the kernel nor a format.
//!
//! A server (FUSE) turns the kernel's requests into calls of [`FileSystem`]; tests call it directly, without any mount.

pub mod acl;
pub mod exercise;
mod filesystem;
pub mod memory;
mod node;

pub use filesystem::{Done, FileSystem, Handle, KEEPS_ACCESS_TIME, Opened};
pub use node::{
    Allocation, Attributes, Caller, Change, DirectoryEntry, FileKind, Ino, NewNode, NewTime, OpenFlags, ROOT,
    RenameMode, SeekFrom, SetXattr, Time, VolumeStatistics, WriteFlags,
};
pub use rustix::io::Errno;

/// What a request comes to: an answer, or the number of an error as in errno(3).
pub type Result<T> = std::result::Result<T, Errno>;
