//! What a mountpoint must be: a directory that is there, empty, and has nothing mounted on it.
//!
//! The kernel would mount over anything. A directory with files in it is refused because they would be hidden, and one that is
//! mounted already because the two mounts would be taken for each other when one of them ends.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::error::MountError;

/// The mountpoint as an absolute path without symbolic links.
pub(crate) fn check(path: &Path) -> Result<PathBuf, MountError> {
    let refuse = |problem: String| MountError::Mountpoint { path: path.to_owned(), problem };
    let unusable = |error: io::Error| {
        refuse(match error.raw_os_error() {
            Some(libc::ENOENT) => "no such directory; make it with `mkdir -p`".into(),
            Some(libc::ENOTCONN) => {
                "a FUSE file system whose server has ended is still mounted here; remove it with `umount` or `fusermount3 -u`".into()
            }
            _ => format!("cannot be used as a mountpoint: {error}"),
        })
    };
    // The kernel keeps the attributes of a mount's root, so a dead server is only noticed when something is asked of it.
    let canonical = path.canonicalize().map_err(unusable)?;
    let is_directory = canonical.metadata().map_err(unusable)?.is_dir();
    if !is_directory {
        return Err(refuse("not a directory; a mountpoint is an empty directory".into()));
    }
    let facts = facts(&canonical).map_err(|error| unusable(error.into()))?;
    if facts.is_mount_root {
        return Err(refuse("something is mounted here already; unmount it first, or take another directory".into()));
    }
    if canonical.read_dir().map_err(unusable)?.next().is_some() {
        return Err(refuse("the directory is not empty, and mounting would hide its files; take an empty one".into()));
    }
    Ok(canonical)
}

/// What identifies a mount by its root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MountFacts {
    /// Whether something is mounted at this path.
    pub is_mount_root: bool,
    /// The device number of the file system there, major and minor.
    pub device: (u32, u32),
}

/// What lies at a path, without asking a file system's server.
pub(crate) fn facts(path: &Path) -> rustix::io::Result<MountFacts> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = statx(CWD, path, flags, StatxFlags::TYPE)?;
    Ok(MountFacts {
        is_mount_root: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        device: (found.stx_dev_major, found.stx_dev_minor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_directory_without_a_mount_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |path: &Path| check(path).unwrap_err().to_string();
        assert!(check(folder.path()).unwrap().is_absolute());
        assert!(problem(&folder.path().join("missing")).contains("no such directory"));
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(problem(&file).contains("not a directory"));
        assert!(problem(folder.path()).contains("not empty"));
        assert!(problem(Path::new("/proc")).contains("mounted here already"));
    }
}
