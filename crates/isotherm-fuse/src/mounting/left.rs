//! What a server that was killed leaves: a mount on which nobody answers.

use std::io;
use std::path::Path;

use super::detach::{Force, detach};
use super::error::MountError;
use super::mountpoint::facts;

/// Whether something is mounted at `path`. No server is asked, so that a dead one does no harm.
#[must_use]
pub fn is_mounted(path: &Path) -> bool {
    facts(path).is_ok_and(|found| found.is_mount_root)
}

/// Unmounts what lies at `path`, if anything does: the directory is free at once, and who has a file open there gets `ENOTCONN`.
/// A server that still answers loses its mount too.
///
/// # Errors
/// The system refuses.
pub fn unmount_left(path: &Path) -> Result<(), MountError> {
    let cannot = |error: io::Error| MountError::system(format!("unmounting {}", path.display()), error);
    match facts(path) {
        Ok(found) if found.is_mount_root => detach(path, found.device, Force::Final).map_err(cannot),
        Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(cannot(error.into())),
    }
}
