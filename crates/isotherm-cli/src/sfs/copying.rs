//! `sfs cp`: copies out of a volume that is not mounted, and keeps what `cp -a` keeps.

use super::look::Opened;
use anyhow::Context as _;
use clap::Args;
use isotherm_vfs::{Attributes, Errno, FileKind, FileSystem as _, Ino, SeekFrom, Time, acl};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use rustix::fs::{lremovexattr, lsetxattr, makedev, mknodat, utimensat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes that are read and written at a time.
const PART_BYTES: u64 = 1 << 20;
/// Set-user-ID and set-group-ID.
const PRIVILEGES: u32 = 0o6000;

/// Arguments of `cp`.
#[derive(Args)]
#[command(
    after_help = "Owners, permissions, ACLs, extended attributes, times, holes, hard links within what is copied, symbolic links and special files are \
                  kept, as by `cp -a`. What cannot be kept where the copy lies is told, and the exit code is 1."
)]
pub struct CopyArgs {
    /// File or block device that holds the volume
    device: PathBuf,
    /// Path in the volume
    path: PathBuf,
    /// Where to: a new file or directory
    target: PathBuf,
}

/// Copies out.
pub fn run(args: &CopyArgs) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(&args.device)?;
    let found = opened.find(&args.path)?;
    let mut copying = Copying { opened: &opened, made: HashMap::new(), keeps_all: true };
    copying.copy(&found, &args.target)?;
    Ok(if copying.keeps_all { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A copy that is being made.
struct Copying<'a> {
    opened: &'a Opened,
    /// Where those nodes are that have several names.
    made: HashMap<Ino, PathBuf>,
    /// Nothing was lost so far.
    keeps_all: bool,
}

impl Copying<'_> {
    fn copy(&mut self, found: &Attributes, target: &Path) -> anyhow::Result<()> {
        let name = || target.display().to_string();
        if found.kind != FileKind::Directory && found.links > 1 {
            if let Some(first) = self.made.get(&found.ino) {
                return fs::hard_link(first, target).with_context(name);
            }
            self.made.insert(found.ino, target.to_owned());
        }
        // Until the copy is whole, it is for its owner alone.
        match found.kind {
            FileKind::Directory => {
                DirBuilder::new().mode(0o700).create(target).with_context(name)?;
                for (name, entry) in self.opened.list(found.ino)? {
                    self.copy(&entry, &target.join(OsStr::from_bytes(&name)))?;
                }
            }
            FileKind::Regular => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target);
                self.copy_content(found, &file.with_context(name)?).with_context(name)?;
            }
            FileKind::Symlink => {
                let to = self.opened.volume.read_link(found.ino)?;
                symlink(OsStr::from_bytes(&to), target).with_context(name)?;
            }
            _ => {
                if let Err(error) = make_special(found, target) {
                    self.made.remove(&found.ino);
                    self.tell(target, &format!("a special file, left out: {error}"));
                    return Ok(());
                }
            }
        }
        self.keep(found, target).with_context(name)
    }

    fn tell(&mut self, target: &Path, what: &str) {
        self.keeps_all = false;
        eprintln!("{}: {what}", target.display());
    }

    /// What of a file is data; the rest stays a hole.
    fn copy_content(&self, found: &Attributes, file: &File) -> anyhow::Result<()> {
        let volume = &self.opened.volume;
        let mut bytes = Vec::new();
        let mut at = 0;
        loop {
            at = match volume.seek(found.ino, at, SeekFrom::Data) {
                Err(Errno::NXIO) => break,
                data => data?,
            };
            let end = volume.seek(found.ino, at, SeekFrom::Hole)?;
            while at < end {
                bytes.clear();
                volume.read(found.ino, 0, at, PART_BYTES.min(end - at) as u32, &mut bytes)?;
                file.write_all_at(&bytes, at)?;
                at += bytes.len() as u64;
            }
        }
        Ok(file.set_len(found.size)?)
    }

    /// Gives a copy the attributes of what it is a copy of. The owner comes first, because a new one takes privileges, and the times last.
    fn keep(&mut self, found: &Attributes, target: &Path) -> anyhow::Result<()> {
        let mut permissions = u32::from(found.permissions);
        match lchown(target, Some(found.uid), Some(found.gid)) {
            // As by `cp`: those who may not give files away keep them, and nobody gets their privileges.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => permissions &= !PRIVILEGES,
            done => done?,
        }
        if found.kind != FileKind::Symlink {
            fs::set_permissions(target, Permissions::from_mode(permissions))?;
        }
        self.keep_xattrs(found, target)?;
        let time = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() };
        let times = Timestamps { last_access: time(found.accessed), last_modification: time(found.modified) };
        Ok(utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn keep_xattrs(&mut self, found: &Attributes, target: &Path) -> anyhow::Result<()> {
        let names = self.opened.volume.xattrs(found.ino)?;
        for inherited in [acl::ACCESS, acl::DEFAULT] {
            if !names.iter().any(|name| name == inherited) {
                // It has one only if the directory it was made in gives one to what is made there.
                let _ = lremovexattr(target, inherited);
            }
        }
        for name in names {
            let value = self.opened.volume.xattr(found.ino, &name)?;
            if let Err(error) = lsetxattr(target, &name[..], &value, XattrFlags::empty()) {
                self.tell(target, &format!("the attribute {} is lost: {error}", String::from_utf8_lossy(&name)));
            }
        }
        Ok(())
    }
}

/// Makes a node that is neither a file, nor a directory, nor a symbolic link.
fn make_special(found: &Attributes, target: &Path) -> rustix::io::Result<()> {
    let kind = match found.kind {
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::CharacterDevice => FileType::CharacterDevice,
        FileKind::Socket => FileType::Socket,
        _ => FileType::Fifo,
    };
    // The kernel's encoding in 32 bits: 12 bits of the major number between 8 and 12 of the minor one.
    let (major, minor) = (found.device >> 8 & 0xfff, found.device & 0xff | found.device >> 12 & 0xf_ff00);
    mknodat(CWD, target, kind, Mode::RUSR | Mode::WUSR, makedev(major, minor))
}
