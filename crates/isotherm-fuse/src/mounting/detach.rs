//! Asking the kernel to end a mount: umount2(2) where this process may, else through `fusermount3`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use rustix::mount::UnmountFlags;

use super::attach::{HELPER, first_line};

/// How much a mount resists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Force {
    /// The mount stays while anybody has a file of it open: `EBUSY`.
    Polite,
    /// The mountpoint is free at once; requests under way and all later ones fail where the kernel lets this user say so.
    Final,
}

/// Unmounts what lies at `mountpoint`, whose file system has the device number `device`.
pub(crate) fn detach(mountpoint: &Path, device: (u32, u32), force: Force) -> io::Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    if force == Force::Final {
        // The kernel ends a FUSE connection on FORCE, and DETACH makes the mountpoint free although files are open.
        flags |= UnmountFlags::FORCE | UnmountFlags::DETACH;
    }
    match rustix::mount::unmount(mountpoint, flags) {
        Err(rustix::io::Errno::PERM) => {
            if force == Force::Final {
                abort(device);
            }
            detach_by_helper(mountpoint, force)
        }
        done => Ok(done?),
    }
}

/// Ends the connection between the kernel and the server: requests under way and all later ones fail with `ENOTCONN`.
///
/// Only where the file system `fusectl` is mounted; who mounted a file system owns its file there.
pub(crate) fn abort(device: (u32, u32)) {
    let number = (device.0 << 20) | device.1;
    // Where it cannot be done the server goes on until the last file is closed, and callers wait for that no longer than told.
    let _ = fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1");
}

fn detach_by_helper(mountpoint: &Path, force: Force) -> io::Result<()> {
    let mut command = Command::new(HELPER);
    command.arg("-u").env("LC_ALL", "C");
    if force == Force::Final {
        command.arg("-z");
    }
    let output = command.arg("--").arg(mountpoint).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = first_line(&output.stderr);
    if said.contains("busy") {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    Err(io::Error::other(format!("{HELPER}: {said}")))
}
