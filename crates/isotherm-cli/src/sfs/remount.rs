//! `sfs mount -o remount`: other flags of a volume that stays mounted.

use super::options::MountOptions;
use anyhow::{Context as _, bail};
use rustix::fs::{StatVfsMountFlags, removexattr, statvfs};
use rustix::mount::{MountFlags, mount_remount};
use std::path::Path;
use std::process::ExitCode;

/// The kernel's flags that a remount can change, and by which of them statvfs(3) tells.
const FLAGS: [(MountFlags, StatVfsMountFlags); 4] = [
    (MountFlags::RDONLY, StatVfsMountFlags::RDONLY),
    (MountFlags::NOSUID, StatVfsMountFlags::NOSUID),
    (MountFlags::NODEV, StatVfsMountFlags::NODEV),
    (MountFlags::NOEXEC, StatVfsMountFlags::NOEXEC),
];

/// Gives a mounted volume the flags that were named; the others stay. The server hears nothing of it, so that its options cannot change.
pub fn remount(mountpoint: &Path, options: &MountOptions) -> anyhow::Result<ExitCode> {
    super::look::expect_volume(mountpoint)?;
    let name = || mountpoint.display().to_string();
    let told = statvfs(mountpoint).with_context(name)?.f_flag;
    let mut before = MountFlags::empty();
    for (flag, of_statvfs) in FLAGS {
        before.set(flag, told.contains(of_statvfs));
    }
    let mut flags = before;
    let given = options.flags;
    let wishes = [given.read_only, given.suid.map(|on| !on), given.dev.map(|on| !on), given.exec.map(|on| !on)];
    for ((flag, _), wish) in FLAGS.into_iter().zip(wishes) {
        flags.set(flag, wish.unwrap_or(before.contains(flag)));
    }
    let others = options.others.join(",");
    if flags == before && !others.is_empty() {
        bail!(
            "{}: a mounted volume cannot be given -o {others}; unmount it, and mount it with that",
            mountpoint.display()
        );
    }
    let set = |flags| {
        mount_remount(mountpoint, flags, "")
            .with_context(|| format!("{}: cannot be mounted again in another way", name()))
    };
    set(flags)?;
    let is_writable = !flags.contains(MountFlags::RDONLY);
    if is_writable && before.contains(MountFlags::RDONLY) && !server_writes(mountpoint) {
        set(before)?;
        bail!(
            "{}: was mounted with -o ro, so that its server cannot write; unmount it, and mount it again",
            mountpoint.display()
        );
    }
    if !others.is_empty() {
        // As from fstab(5), whose options mount(8) adds.
        eprintln!("{}: -o {others}: stays as it was mounted", mountpoint.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a volume's server takes changes, the kernel letting them pass: removing an attribute is one, even of one that is not there.
fn server_writes(mountpoint: &Path) -> bool {
    removexattr(mountpoint, "user.sfs.none") != Err(rustix::io::Errno::ROFS)
}
