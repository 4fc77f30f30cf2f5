//! Mounting a FUSE file system: what a mountpoint must be, how the kernel is asked, and how a mount ends.
//!
//! `fuser` can mount too, but only as plain `fuse`, and it unmounts a path a second time when a session ends, whatever lies there
//! by then. Here the kernel is asked directly, or `fusermount3` where the user may not, and a session only gets its descriptor.

pub(crate) mod attach;
pub(crate) mod detach;
pub(crate) mod error;
pub(crate) mod left;
pub(crate) mod mounted;
pub(crate) mod mountpoint;
