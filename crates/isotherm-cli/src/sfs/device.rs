//! The file or block device under a volume, locked for as long as it is used.

use anyhow::{Context as _, bail};
use isotherm_fs::device::FileDevice;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
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

/// Where a volume on this device is mounted, or on a loop device over it, by the table of mounts.
pub fn mountpoint_of(device: &Path) -> Option<String> {
    let device = device.canonicalize().ok()?;
    std::iter::once(device.clone()).chain(loops_over(&device)).find_map(|device| mountpoint_of_itself(&device))
}

/// The loop devices that lie on a file.
fn loops_over(file: &Path) -> Vec<PathBuf> {
    let Ok(devices) = std::fs::read_dir("/sys/block") else { return Vec::new() };
    let lies_on_it = |device: &std::fs::DirEntry| {
        let backing = std::fs::read(device.path().join("loop/backing_file"));
        backing.is_ok_and(|text| Path::new(OsStr::from_bytes(text.trim_ascii_end())) == file)
    };
    let found = devices.flatten().filter(lies_on_it);
    found.map(|device| Path::new("/dev").join(device.file_name())).collect()
}

fn mountpoint_of_itself(device: &Path) -> Option<String> {
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
    let below = files_below(&file, path)?;
    for (file, path) in &below {
        lock(file, path, access, &wanted)?;
    }
    let device = FileDevice::new(file).with_context(|| format!("{}: cannot hold a volume", path.display()))?;
    Ok(Arc::new(device.holding(below.into_iter().map(|(file, _)| file).collect())))
}

/// The file that a loop device, or a partition of one, lies on; and if that is a loop device again, what that one lies on. A lock on the
/// device alone would not keep anybody from the file.
fn files_below(device: &File, path: &Path) -> anyhow::Result<Vec<(File, PathBuf)>> {
    let mut found: Vec<(File, PathBuf)> = Vec::new();
    loop {
        let last = found.last().map_or(device, |(file, _)| file);
        let is = last.metadata().with_context(|| path.display().to_string())?;
        if !is.file_type().is_block_device() {
            return Ok(found);
        }
        let (major, minor) = (rustix::fs::major(is.rdev()), rustix::fs::minor(is.rdev()));
        let about = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let named = ["loop/backing_file", "../loop/backing_file"].iter().find_map(|name| {
            let text = std::fs::read(about.join(name)).ok()?;
            Some(PathBuf::from(OsStr::from_bytes(text.trim_ascii_end())))
        });
        // A file that has no name any more is out of everybody's reach.
        let Some((file, path)) = named.and_then(|path| Some((File::open(&path).ok()?, path))) else { return Ok(found) };
        found.push((file, path));
    }
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
