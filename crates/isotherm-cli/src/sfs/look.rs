//! `sfs ls` and `cat` on a volume that is not mounted, `sync` and `stats` on one that is.

use super::device::{Access, open};
use crate::output::print;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_fs::log::LogSettings;
use isotherm_fs::volume::{STATISTICS_XATTR, SYNC_XATTR, Volume};
use isotherm_vfs::{Attributes, FileKind, FileSystem as _, Ino, ROOT};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// As many symbolic links does Linux follow in a path.
const LINKS_MAX: usize = 40;

/// Arguments of `sync` and `stats`.
#[derive(Args)]
pub struct MountpointArgs {
    /// Where the volume is mounted
    mountpoint: PathBuf,
}

/// Arguments of `ls` and `cat`.
#[derive(Args)]
pub struct PathArgs {
    /// File or block device that holds the volume
    device: PathBuf,
    /// Path in the volume
    #[arg(default_value = "/")]
    path: PathBuf,
}

/// Makes a mounted volume durable.
pub fn sync(args: &MountpointArgs) -> anyhow::Result<ExitCode> {
    sync_mounted(&args.mountpoint)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a mounted volume durable. Another file system would keep the attribute by which a server is asked for it.
pub fn sync_mounted(mountpoint: &Path) -> anyhow::Result<()> {
    expect_volume(mountpoint)?;
    match setxattr(mountpoint, SYNC_XATTR, b"", XattrFlags::empty()) {
        Ok(()) => Ok(()),
        // What is mounted read-only has nothing that waits. A volume whose device has failed answers the same, and has.
        Err(Errno::ROFS) => match failure(mountpoint)? {
            Some(why) => {
                bail!("{}: cannot be made durable: {why}; what was written since is lost", mountpoint.display())
            }
            None => Ok(()),
        },
        Err(Errno::ACCESS | Errno::PERM) => bail!(
            "{}: only who may write to this directory can have the volume made durable; run it as root or as the directory's owner",
            mountpoint.display()
        ),
        Err(error) => Err(error).with_context(|| format!("{}: cannot be made durable", mountpoint.display())),
    }
}

/// Fails where no volume is mounted.
pub fn expect_volume(mountpoint: &Path) -> anyhow::Result<()> {
    ask_statistics(mountpoint).map(drop)
}

/// Why a mounted volume writes nothing any more, if its device has failed.
fn failure(mountpoint: &Path) -> anyhow::Result<Option<String>> {
    let statistics: serde_json::Value = serde_json::from_slice(&ask_statistics(mountpoint)?)?;
    Ok(statistics["failure"].as_str().map(str::to_owned))
}

fn ask_statistics(mountpoint: &Path) -> anyhow::Result<Vec<u8>> {
    let mut room = vec![0; 64 << 10];
    match getxattr(mountpoint, STATISTICS_XATTR, &mut room) {
        Ok(length) => room.truncate(length),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => {
            bail!("{}: no volume of SFS is mounted here; name its mountpoint", mountpoint.display())
        }
        Err(Errno::ACCESS | Errno::PERM) => {
            bail!("{}: this user may not read the directory; run it as root", mountpoint.display())
        }
        Err(error) => return Err(error).with_context(|| mountpoint.display().to_string()),
    }
    Ok(room)
}

/// Prints what a mounted volume counts.
pub fn stats(args: &MountpointArgs) -> anyhow::Result<ExitCode> {
    print(&format!("{}\n", String::from_utf8_lossy(&ask_statistics(&args.mountpoint)?)))?;
    Ok(ExitCode::SUCCESS)
}

/// A volume that is not mounted, to be read.
pub struct Opened {
    /// The volume.
    pub volume: Volume,
}

impl Opened {
    /// Opens it.
    pub fn new(device: &Path) -> anyhow::Result<Self> {
        let settings = LogSettings { read_only: true, ..LogSettings::default() };
        let (volume, recovery) = Volume::open(open(device, Access::Read, || true)?, settings, super::mount::now)
            .with_context(|| device.display().to_string())?;
        super::mount::warn_of_damage(&device.display().to_string(), &recovery);
        Ok(Self { volume })
    }

    /// What a path leads to; symbolic links are not followed.
    pub fn find(&self, path: &Path) -> anyhow::Result<Attributes> {
        let mut found = self.volume.attributes(ROOT)?;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let next = self.volume.lookup(found.ino, name.as_bytes());
                found = next.with_context(|| format!("{}: {}", path.display(), name.display()))?;
            }
        }
        Ok(found)
    }

    /// Finds what symbolic links lead to; an absolute one begins at the volume's root.
    fn follow(&self, path: &Path) -> anyhow::Result<Attributes> {
        let root = self.volume.attributes(ROOT)?;
        let mut way = vec![root];
        let mut left: Vec<PathBuf> = vec![path.to_owned()];
        let mut links = 0;
        while let Some(next) = left.pop() {
            let mut parts = next.components();
            let Some(part) = parts.next() else { continue };
            left.push(parts.as_path().to_owned());
            match part {
                Component::RootDir => way.truncate(1),
                Component::ParentDir => way.truncate(way.len().max(2) - 1),
                Component::CurDir | Component::Prefix(_) => {}
                Component::Normal(name) => {
                    let directory = way.last().map_or(ROOT, |directory| directory.ino);
                    let found = self.volume.lookup(directory, name.as_bytes());
                    let found = found.with_context(|| format!("{}: {}", path.display(), name.display()))?;
                    if found.kind != FileKind::Symlink {
                        way.push(found);
                        continue;
                    }
                    links += 1;
                    if links > LINKS_MAX {
                        bail!("{}: more than {LINKS_MAX} symbolic links, or a ring of them", path.display());
                    }
                    left.push(PathBuf::from(OsString::from_vec(self.volume.read_link(found.ino)?)));
                }
            }
        }
        Ok(way.pop().unwrap_or(root))
    }

    /// What stands in a directory, by name.
    pub fn list(&self, ino: Ino) -> anyhow::Result<Vec<(Vec<u8>, Attributes)>> {
        let mut entries = Vec::new();
        self.volume.read_directory_plus(ino, 0, &mut |entry, attributes| {
            if entry.name != b"." && entry.name != b".." {
                entries.push((entry.name.to_vec(), *attributes));
            }
            true
        })?;
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    fn print(&self, found: &Attributes, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut at = 0;
        while at < found.size {
            let mut bytes = Vec::new();
            self.volume.read(found.ino, 0, at, 1 << 20, &mut bytes)?;
            out.write_all(&bytes)?;
            at += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Lists a directory, or one file.
pub fn ls(args: &PathArgs) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(&args.device)?;
    let found = opened.find(&args.path)?;
    let entries = if found.kind == FileKind::Directory {
        opened.list(found.ino)?
    } else {
        vec![(args.path.as_os_str().as_bytes().to_vec(), found)]
    };
    let mut text = String::new();
    for (name, entry) in entries {
        let kind = match entry.kind {
            FileKind::Regular => '-',
            FileKind::Directory => 'd',
            FileKind::Symlink => 'l',
            FileKind::BlockDevice => 'b',
            FileKind::CharacterDevice => 'c',
            FileKind::Fifo => 'p',
            FileKind::Socket => 's',
        };
        // A name is one line, and no command to the terminal, whatever is in it.
        let name = String::from_utf8_lossy(&name).replace(char::is_control, "?");
        let Attributes { permissions, links, uid, gid, size, .. } = entry;
        text += &format!("{kind}{permissions:04o} {links:>5} {uid:>6} {gid:>6} {size:>14} {name}\n");
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a file, or the one that a symbolic link leads to.
pub fn cat(args: &PathArgs) -> anyhow::Result<ExitCode> {
    let opened = Opened::new(&args.device)?;
    let found = opened.follow(&args.path)?;
    if found.kind != FileKind::Regular {
        bail!("{}: no regular file", args.path.display());
    }
    opened.print(&found, &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
