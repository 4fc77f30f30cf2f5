//! Loop devices: a file as a block device of the kernel, on which file systems are made and mounted.
//!
//! Set up by `losetup` of util-linux, which knows every kernel's way of asking. Direct I/O is required: without it each block would
//! be kept twice, and writes would reach the file when the kernel's memory runs short rather than when they were made.
//!
//! What the device makes of requests is in the kernel's drivers/block/loop.c: discards become `fallocate` with
//! `FALLOC_FL_PUNCH_HOLE`, zeros that keep their space `FALLOC_FL_ZERO_RANGE`, flushes `fsync`, and a write with force unit access
//! a write and a flush. The granularity of discards is the block size that statfs(2) tells of the file.
//!
//! A device must be detached before the file is unmounted whose blocks it holds, or the file stays open.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The program that sets loop devices up.
const PROGRAM: &str = "losetup";
/// How long a detached device may take to let its file go, where somebody looks at it (udev, blkid).
const LETTING_GO: Duration = Duration::from_secs(5);
/// How long a device is waited for when it is dropped.
const LETTING_GO_ON_DROP: Duration = Duration::from_secs(1);

/// How a file becomes a block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopOptions {
    /// Logical block size: 512 or 4096 bytes. Default: 512.
    pub sector_bytes: u32,
    /// No writes. Default: no.
    pub read_only: bool,
    /// The kernel looks for partitions. Default: no.
    pub partitions: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self { sector_bytes: 512, read_only: false, partitions: false }
    }
}

/// Why there is no loop device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The sector size is none that file systems know.
    #[error("sector size {0}: give 512 or 4096 bytes")]
    SectorBytes(u32),
    /// Only root may.
    #[error("setting up a loop device needs root; the file itself can be used without")]
    NotRoot,
    /// The kernel offers none.
    #[error("/dev/loop-control: {0}; load the kernel module with `modprobe loop`, or give this container the device")]
    NoDevice(io::Error),
    /// The program is missing.
    #[error("the program losetup was not found in PATH; install the package util-linux")]
    NoProgram,
    /// The program could not be run.
    #[error("starting losetup: {0}")]
    Start(io::Error),
    /// The program failed.
    #[error("losetup: {0}")]
    Program(String),
    /// The kernel would go through the page cache.
    #[error("{}: the kernel refuses direct I/O for it with sectors of {sector_bytes} bytes", path.display())]
    NoDirectIo {
        /// The file.
        path: PathBuf,
        /// Logical block size, bytes.
        sector_bytes: u32,
    },
    /// Somebody still has the device open.
    #[error("{}: still in use, probably mounted; the kernel detaches it when its last user closes it", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
    },
}

/// A loop device. It is detached when this is dropped, as by [`detach`](LoopDevice::detach).
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    is_attached: bool,
}

impl LoopDevice {
    /// Makes the first free loop device from `file`, with direct I/O.
    ///
    /// The file must not be served by the calling thread, which waits here for the kernel to read from it.
    ///
    /// # Errors
    /// See [`LoopError`].
    pub fn attach(file: &Path, options: &LoopOptions) -> Result<Self, LoopError> {
        let LoopOptions { sector_bytes, read_only, partitions } = *options;
        if !matches!(sector_bytes, 512 | 4096) {
            return Err(LoopError::SectorBytes(sector_bytes));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(LoopError::NotRoot);
        }
        Path::new("/dev/loop-control").metadata().map_err(LoopError::NoDevice)?;
        let mut command = Command::new(PROGRAM);
        command.args(["--find", "--show", "--direct-io=on"]).arg(format!("--sector-size={sector_bytes}"));
        if read_only {
            command.arg("--read-only");
        }
        if partitions {
            command.arg("--partscan");
        }
        let device = Self { path: run(command.arg("--").arg(file))?.into(), is_attached: true };
        if device.property("loop/dio").as_deref() != Some("1") {
            return Err(LoopError::NoDirectIo { path: file.to_owned(), sector_bytes });
        }
        Ok(device)
    }

    /// Takes over the loop devices that are attached to `file`, whoever attached them.
    ///
    /// # Errors
    /// See [`LoopError`].
    pub fn attached_to(file: &Path) -> Result<Vec<Self>, LoopError> {
        let listed = run(Command::new(PROGRAM).args(["--noheadings", "--output", "NAME", "--associated"]).arg(file))?;
        Ok(listed.lines().map(|path| Self { path: path.trim().into(), is_attached: true }).collect())
    }

    /// Leaves it attached, and gives its path.
    #[must_use]
    pub fn leave(mut self) -> PathBuf {
        self.is_attached = false;
        self.path.clone()
    }

    /// The device, as `/dev/loop3`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches it, and waits until the file is let go.
    ///
    /// # Errors
    /// [`LoopError::InUse`] while somebody has the device open; the kernel detaches it once they have closed it.
    pub fn detach(mut self) -> Result<(), LoopError> {
        self.let_go(LETTING_GO)
    }

    fn let_go(&mut self, longest: Duration) -> Result<(), LoopError> {
        self.is_attached = false;
        run(Command::new(PROGRAM).arg("--detach").arg(&self.path))?;
        let deadline = Instant::now() + longest;
        // The file disappears from sysfs when the device lets it go.
        while self.property("loop/backing_file").is_some() {
            if Instant::now() >= deadline {
                return Err(LoopError::InUse { path: self.path.clone() });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What sysfs tells of the device, if it does.
    fn property(&self, name: &str) -> Option<String> {
        let device = self.path.file_name().unwrap_or(OsStr::new(""));
        let value = fs::read_to_string(Path::new("/sys/block").join(device).join(name)).ok()?;
        Some(value.trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.is_attached {
            // Whoever wants to know calls `detach`.
            let _ = self.let_go(LETTING_GO_ON_DROP);
        }
    }
}

/// Runs the program and returns what it printed.
fn run(command: &mut Command) -> Result<String, LoopError> {
    let output = command.env("LC_ALL", "C").output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LoopError::NoProgram,
        _ => LoopError::Start(error),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(LoopError::Program(said.strip_prefix("losetup: ").unwrap_or(said).to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_sector_sizes_are_refused_before_anything_is_asked() {
        let options = LoopOptions { sector_bytes: 520, ..LoopOptions::default() };
        let error = LoopDevice::attach(Path::new("/nowhere"), &options).unwrap_err();
        assert_eq!(error.to_string(), "sector size 520: give 512 or 4096 bytes");
    }
}
