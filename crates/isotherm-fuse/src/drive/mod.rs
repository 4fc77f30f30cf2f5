//! Drives as files: a directory is mounted that holds one regular file for each export, with its size and its content.
//!
//! Whatever works on a file works on the drive: `dd`, `fio`, `mkfs`, `qemu-img`, or a loop device with a file system on it
//! ([`loop_device`](crate::loop_device)). What each system call becomes is in `docs/fuse.md`.
//!
//! Requests go past the page cache (`FOPEN_DIRECT_IO`), so that every read and write of a program is one of the drive, and none
//! is served from memory or held back in it. Several threads take requests; the kernel lets writes to one file go side by side
//! (`FOPEN_PARALLEL_DIRECT_WRITES`), but takes each `fallocate` and `fsync` of a file alone.

mod disk;
mod filesystem;
mod held;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use isotherm_export::{Export, ExportError};

use crate::mounting::attach::Rights;
use crate::mounting::error::MountError;
use crate::mounting::mounted::{Mounted, Service, Users};
use filesystem::DriveFilesystem;

/// A file that is an export.
#[derive(Clone)]
pub struct DiskFile {
    /// Name in the mounted directory.
    pub name: String,
    /// What it holds.
    pub export: Arc<dyn Export>,
}

impl DiskFile {
    /// The file `disk`.
    #[must_use]
    pub fn new(export: Arc<dyn Export>) -> Self {
        Self { name: "disk".into(), export }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

impl fmt::Debug for DiskFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskFile").field("name", &self.name).field("size_bytes", &self.export.size_bytes()).finish()
    }
}

/// Hears of requests that failed: the name of the file, and the error. Called from the threads that serve.
pub type OnError = Arc<dyn Fn(&str, &ExportError) + Send + Sync>;

/// How files are served.
#[derive(Clone)]
pub struct Options {
    /// Threads that take requests, 1 to 64. Default: one for each processor, at most 4.
    pub threads: usize,
    /// Writes are refused (`EROFS`). Default: no.
    pub read_only: bool,
    /// Root may use the files where another user mounted them, as `losetup` must; `user_allow_other` must stand in
    /// /etc/fuse.conf for that. Default: no.
    pub allow_root: bool,
    /// Hears of requests that failed; programs only see an `errno`. Default: nobody.
    pub on_error: OnError,
}

impl Default for Options {
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self { threads: processors.min(4), read_only: false, allow_root: false, on_error: Arc::new(|_, _| {}) }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, read_only, allow_root, on_error: _ } = self;
        f.debug_struct("Options")
            .field("threads", threads)
            .field("read_only", read_only)
            .field("allow_root", allow_root)
            .finish_non_exhaustive()
    }
}

/// Mounts a directory with `files` in it at `mountpoint`, an empty directory. The files belong to the user who mounts, and only
/// they may read and write them.
///
/// # Errors
/// The mountpoint cannot be used, names are wrong, or this user cannot mount here; the message says what would help.
pub fn mount(files: Vec<DiskFile>, mountpoint: &Path, options: &Options) -> Result<Mounted, MountError> {
    check_names(&files)?;
    if !(1..=64).contains(&options.threads) {
        return Err(MountError::Options(format!("threads: {} is not in 1..=64", options.threads)));
    }
    let filesystem =
        DriveFilesystem::new(files, options).map_err(|error| MountError::system("starting a thread", error))?;
    let Options { threads, read_only, allow_root, .. } = *options;
    let service = Service {
        kind: "isotherm",
        source: "isotherm".into(),
        threads,
        read_only,
        users: if allow_root { Users::OwnerAndRoot } else { Users::Owner },
        rights: Rights::default(),
        notifier: Arc::default(),
    };
    Mounted::new(filesystem, mountpoint, service)
}

fn check_names(files: &[DiskFile]) -> Result<(), MountError> {
    for (index, file) in files.iter().enumerate() {
        let name = file.name.as_str();
        let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && name.len() <= 255;
        if !is_name {
            return Err(MountError::Options(format!("{name:?} is no name for a file: 1 to 255 bytes without '/'")));
        }
        if files[..index].iter().any(|other| other.name == name) {
            return Err(MountError::Options(format!("two files have the name {name:?}; give each its own")));
        }
    }
    Ok(())
}
