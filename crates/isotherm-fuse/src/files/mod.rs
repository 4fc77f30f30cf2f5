//! A file system of ours, mounted: whatever implements [`isotherm_vfs::FileSystem`] as a directory tree of this machine.
//!
//! The kernel checks permissions (`default_permissions`), keeps names, attributes and file contents in its caches, and invalidates
//! them by the requests that pass through it: nobody else changes the file system, so what it remembers stays right.
//!
//! Not to be had through FUSE: `O_TMPFILE`, birth times, FIEMAP, reflinks, collapsing and inserting ranges; sync(2) and syncfs(2) do
//! not reach a server. A read that the kernel's cache answers sets no time of access; opening the file did, and the kernel is told so
//! where that changed it. Of a truncation `fuser` does not tell whether the caller may keep set-user-ID: root may, others may not.

mod adapter;
mod convert;
mod trim;
mod writing;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use isotherm_vfs::FileSystem;

pub use crate::mounting::attach::Rights;
use crate::mounting::error::MountError;
use crate::mounting::mounted::{Mounted, Service, Users};
use adapter::Adapter;

/// Threads that take requests: most of them wait, for a device or for one another.
const THREADS: usize = 16;

/// Hears of a request that panicked: programs only see `EIO`.
pub type OnPanic = Arc<dyn Fn(&str) + Send + Sync>;

/// How a file system is mounted.
#[derive(Clone)]
pub struct FilesOptions {
    /// What the mount table shows as the source.
    pub source: String,
    /// Threads that take requests, 1 to 64. One of them at a time may make files durable for all that ask; nobody else waits for
    /// that. Default: 16.
    pub threads: usize,
    /// No writes. Default: writes.
    pub read_only: bool,
    /// Users other than the one who mounts may use it. Default: yes for root, no for others.
    pub allow_other: bool,
    /// What its files may do. Default: programs can be started, and nothing else.
    pub rights: Rights,
    /// The kernel keeps written data and writes it later. `ENOSPC` then comes at fsync(2). Default: no.
    pub writeback: bool,
    /// Hears of requests that panicked. Default: nobody.
    pub on_panic: OnPanic,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self {
            source: "sfs".into(),
            threads: THREADS,
            read_only: false,
            allow_other: rustix::process::getuid().is_root(),
            rights: Rights::default(),
            writeback: false,
            on_panic: Arc::new(|_| {}),
        }
    }
}

impl std::fmt::Debug for FilesOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { source, threads, read_only, allow_other, rights, writeback, on_panic: _ } = self;
        f.debug_struct("FilesOptions")
            .field("source", source)
            .field("threads", threads)
            .field("read_only", read_only)
            .field("allow_other", allow_other)
            .field("rights", rights)
            .field("writeback", writeback)
            .finish_non_exhaustive()
    }
}

/// What the kernel reads ahead of a program that reads a file in order. The kernel's default of 128 KiB makes many small requests of it: from
/// memory to memory, reading takes a quarter longer.
const READ_AHEAD_KIB: u32 = 512;

/// Mounts a file system at `mountpoint`, an empty directory.
///
/// # Errors
/// The mountpoint cannot be used, or this user cannot mount here; the message says what would help.
pub fn mount<F: FileSystem>(
    filesystem: Arc<F>,
    mountpoint: &Path,
    options: &FilesOptions,
) -> Result<Mounted, MountError> {
    if !(1..=64).contains(&options.threads) {
        return Err(MountError::Options(format!("threads: {} is not in 1..=64", options.threads)));
    }
    if options.source.contains([',', '\\', '\0']) {
        return Err(MountError::Options(format!("source: {:?} holds a comma, a backslash or NUL", options.source)));
    }
    let notifier = Arc::new(OnceLock::new());
    let service = Service {
        kind: "sfs",
        source: options.source.clone(),
        threads: options.threads,
        read_only: options.read_only,
        users: if options.allow_other { Users::All } else { Users::Owner },
        rights: options.rights,
        notifier: notifier.clone(),
    };
    let adapter = Adapter::new(filesystem, options.writeback, options.on_panic.clone(), notifier);
    let mounted = Mounted::new(adapter, mountpoint, service)?;
    mounted.set_read_ahead(READ_AHEAD_KIB);
    Ok(mounted)
}
