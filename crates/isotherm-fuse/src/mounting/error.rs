//! Why a directory cannot be mounted, or unmounted.

use std::io;
use std::path::PathBuf;

/// Why a file system could not be mounted, or unmounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The mountpoint cannot be used as it is.
    #[error("{}: {problem}", path.display())]
    Mountpoint {
        /// The mountpoint as given.
        path: PathBuf,
        /// What is wrong, and what would help.
        problem: String,
    },
    /// A file cannot be served under the name or with the options that were given.
    #[error("{0}")]
    Options(String),
    /// The kernel offers no FUSE.
    #[error("/dev/fuse: {0}; load the kernel module with `modprobe fuse`, or give this container the device")]
    NoDevice(io::Error),
    /// Neither the kernel nor the helper may mount for this user.
    #[error(
        "mounting needs root, or the program fusermount3, which was not found in PATH: run as root, or install the package fuse3"
    )]
    NoHelper,
    /// The helper for users other than root refused.
    #[error("fusermount3: {0}")]
    Helper(String),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// What was being done.
        what: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

impl MountError {
    /// A failed system call, with what was being done.
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}
