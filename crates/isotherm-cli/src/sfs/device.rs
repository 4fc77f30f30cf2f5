//! The file or block device under a volume, locked for as long as it is used.

use anyhow::{Context as _, bail};
use isotherm_fs::device::FileDevice;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the lock is waited for: a server that was just unmounted makes its last checkpoint durable.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_millis(20);

/// How a device is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others may read too.
    Read,
    /// Nobody else.
    Write,
}

/// Opens a device and locks it.
pub fn open(path: &Path, access: Access) -> anyhow::Result<Arc<FileDevice>> {
    let file = File::options()
        .read(true)
        .write(access == Access::Write)
        .open(path)
        .with_context(|| format!("{}: cannot be opened", path.display()))?;
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&file, operation) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(RETRY),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                bail!("{}: in use by another program; unmount it first", path.display())
            }
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be locked", path.display())),
        }
    }
    let device = FileDevice::new(file).with_context(|| format!("{}: cannot hold a volume", path.display()))?;
    Ok(Arc::new(device))
}
