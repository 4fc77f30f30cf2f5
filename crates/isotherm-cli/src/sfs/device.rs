//! The file or block device under a volume, locked for as long as it is used.

use anyhow::{Context as _, bail};
use isotherm_fs::device::FileDevice;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the lock is waited for: a server that was just unmounted makes its last checkpoint durable.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a block device is waited for that nobody has locked: a server's lock goes a moment before its claim.
const PATIENCE_OF_CLAIM: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(20);

/// How a device is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others may read too.
    Read,
    /// As `Read`, but a block device is claimed: the kernel mounts nothing of it, and no mkfs(8) makes something else of it.
    Keep,
    /// Nobody else; a block device is claimed.
    Write,
}

/// Where a volume on this device is mounted, by the table of mounts.
pub fn mountpoint_of(device: &Path) -> Option<String> {
    let device = device.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    // Spaces and their like are written as octal numbers there.
    let escaped = |character: char| match character {
        ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", character as u32),
        other => other.to_string(),
    };
    let name: String = device.to_string_lossy().chars().map(escaped).collect();
    let mut words = mounts.lines().map(|line| line.split(' '));
    words.find_map(|mut words| if words.next() == Some(&name) { words.next().map(str::to_owned) } else { None })
}

/// Opens a device, locks it, and claims it if it is a block device. Ends early where it is not `wanted` any more, and where a volume on it
/// is mounted: that may take for ever.
pub fn open(path: &Path, access: Access, wanted: impl Fn() -> bool) -> anyhow::Result<Arc<FileDevice>> {
    let options = |flags: OFlags| {
        let mut options = File::options();
        options.read(true).write(access == Access::Write).custom_flags(flags.bits() as i32);
        options
    };
    let file = options(OFlags::empty()).open(path).with_context(|| format!("{}: cannot be opened", path.display()))?;
    lock(&file, path, access, &wanted)?;
    let is_block_device = file.metadata().with_context(|| path.display().to_string())?.file_type().is_block_device();
    let file = if is_block_device && access != Access::Read {
        let claimed = claim(path, &options(OFlags::EXCL))?;
        // A lock belongs to the descriptor that it was taken by.
        drop(file);
        lock(&claimed, path, access, &wanted)?;
        claimed
    } else {
        file
    };
    let device = FileDevice::new(file).with_context(|| format!("{}: cannot hold a volume", path.display()))?;
    Ok(Arc::new(device))
}

/// Opens a block device as its only user. Locks bind our own programs alone; whatever else uses a device claims it: mounts of the
/// kernel, swap, RAID, and programs that make file systems.
fn claim(path: &Path, options: &std::fs::OpenOptions) -> anyhow::Result<File> {
    let deadline = Instant::now() + PATIENCE_OF_CLAIM;
    loop {
        match options.open(path) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(RETRY);
            }
            Err(error) if error.kind() == ErrorKind::ResourceBusy => bail!(
                "{}: the device is in use, as by a mounted file system, swap or RAID (`lsblk` shows it); end that first",
                path.display()
            ),
            done => return done.with_context(|| format!("{}: cannot be opened", path.display())),
        }
    }
}

fn lock(file: &File, path: &Path, access: Access, wanted: &impl Fn() -> bool) -> anyhow::Result<()> {
    let operation = match access {
        Access::Read | Access::Keep => FlockOperation::NonBlockingLockShared,
        Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be locked", path.display())),
        }
        if !wanted() {
            bail!("{}: no longer wanted", path.display());
        }
        if let Some(mountpoint) = mountpoint_of(path) {
            bail!("{}: is mounted on {mountpoint}; unmount it first", path.display());
        }
        if Instant::now() >= deadline {
            bail!("{}: in use by another program; end that first", path.display());
        }
        std::thread::sleep(RETRY);
    }
}
