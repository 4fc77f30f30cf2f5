//! `sfs files`: which file lies where on the device below a volume, in the form of `filefrag -v`.

use super::look::{Opened, sync_mounted};
use crate::output::print;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm_fs::store::BLOCK_BYTES;
use isotherm_fs::tree::StoredExtent;
use isotherm_fs::volume::{EXTENTS_XATTR, parse_extents};
use isotherm_vfs::{FileKind, FileSystem as _, Ino, ROOT};
use rustix::fs::getxattr;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `files`.
#[derive(Args)]
#[command(
    after_help = "A log moves a block whenever it is written or its segment is cleaned: the map holds for the moment at which it is printed. A mounted \
                  volume is made durable first, so that everything has a place. Files of which nothing lies on the device are left out."
)]
pub struct FilesArgs {
    /// File or block device that holds the volume, or where it is mounted
    volume: PathBuf,
}

/// A file or a directory.
struct Node {
    /// Path in the volume.
    path: PathBuf,
    ino: Ino,
    kind: FileKind,
    size: u64,
    links: u64,
}

/// Who tells of the files.
enum Source {
    /// A volume that is not mounted.
    Image(Box<Opened>),
    /// Where it is mounted, and the number of its device.
    Mounted(PathBuf, u64),
}

/// Prints the map.
pub fn run(args: &FilesArgs) -> anyhow::Result<ExitCode> {
    let source = Source::of(&args.volume)?;
    print("Filesystem type is: sfs\n")?;
    let mut seen = BTreeSet::new();
    let root = Node { path: PathBuf::from("/"), ino: ROOT, kind: FileKind::Directory, size: 0, links: 1 };
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        match node.kind {
            FileKind::Directory => left.extend(source.list(&node)?.into_iter().rev()),
            // A file of several names is one file.
            FileKind::Regular if node.links < 2 || seen.insert(node.ino) => {
                let extents = source.extents(&node)?;
                if !extents.is_empty() {
                    print(&text(&node, &extents))?;
                }
            }
            _ => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Source {
    fn of(volume: &Path) -> anyhow::Result<Self> {
        if !volume.is_dir() {
            return Ok(Self::Image(Box::new(Opened::new(volume)?)));
        }
        sync_mounted(volume)?;
        Ok(Self::Mounted(volume.to_owned(), fs::metadata(volume)?.dev()))
    }

    /// What stands in a directory, by name.
    fn list(&self, directory: &Node) -> anyhow::Result<Vec<Node>> {
        match self {
            Self::Image(opened) => {
                let node = |(name, found): (Vec<u8>, isotherm_vfs::Attributes)| Node {
                    path: directory.path.join(std::ffi::OsStr::from_bytes(&name)),
                    ino: found.ino,
                    kind: found.kind,
                    size: found.size,
                    links: found.links.into(),
                };
                Ok(opened.list(directory.ino)?.into_iter().map(node).collect())
            }
            Self::Mounted(root, device) => {
                let mut nodes = Vec::new();
                let place = within(root, &directory.path);
                let Some(entries) = unless_gone(fs::read_dir(&place), &place)? else { return Ok(nodes) };
                for entry in entries {
                    let entry = entry?;
                    let Some(found) = unless_gone(entry.metadata(), &entry.path())? else { continue };
                    let kind = match found.file_type() {
                        // What is mounted below is another file system.
                        kind if kind.is_dir() && found.dev() == *device => FileKind::Directory,
                        kind if kind.is_file() => FileKind::Regular,
                        _ => continue,
                    };
                    let path = directory.path.join(entry.file_name());
                    nodes.push(Node { path, ino: found.ino(), kind, size: found.len(), links: found.nlink() });
                }
                nodes.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
                Ok(nodes)
            }
        }
    }

    /// All extents of a file.
    fn extents(&self, file: &Node) -> anyhow::Result<Vec<StoredExtent>> {
        let mut all: Vec<StoredExtent> = Vec::new();
        loop {
            let from = all.last().map_or(0, |last| last.block + last.count);
            let name = format!("{EXTENTS_XATTR}{from}");
            let told = match self {
                Self::Image(opened) => opened.volume.xattr(file.ino, name.as_bytes())?,
                Self::Mounted(root, _) => {
                    let place = within(root, &file.path);
                    let mut room = vec![0; 64 << 10];
                    let told = getxattr(&place, &name, &mut room).map_err(io::Error::from);
                    let Some(length) = unless_gone(told, &place)? else { return Ok(Vec::new()) };
                    room.truncate(length);
                    room
                }
            };
            let Some(more) = std::str::from_utf8(&told).ok().and_then(parse_extents) else {
                bail!("{}: its extents cannot be read; is the server of another version?", file.path.display());
            };
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    }
}

/// What was asked of a path; none where that has been removed meanwhile.
fn unless_gone<T>(told: io::Result<T>, path: &Path) -> anyhow::Result<Option<T>> {
    match told {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        told => told.map(Some).with_context(|| path.display().to_string()),
    }
}

/// A path of the volume below where it is mounted.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// One file as `filefrag -v` tells of it.
fn text(file: &Node, extents: &[StoredExtent]) -> String {
    // A name is one line, whatever is in it.
    let name = String::from_utf8_lossy(file.path.as_os_str().as_bytes()).replace(char::is_control, "?");
    let blocks = file.size.div_ceil(BLOCK_BYTES as u64);
    let mut text = format!("File size of {name} is {} ({blocks} blocks of {BLOCK_BYTES} bytes)\n", file.size);
    text.push_str(" ext:     logical_offset:        physical_offset: length:   expected: flags:\n");
    for (number, at) in extents.iter().enumerate() {
        let (last_block, last) = (at.block + at.count - 1, u64::from(at.position) + at.count - 1);
        writeln!(text, "{number:4}: {:8}..{last_block:8}: {:10}..{last:10}: {:6}:", at.block, at.position, at.count)
            .expect("writing to a string cannot fail");
    }
    writeln!(text, "{name}: {} extents found", extents.len()).expect("writing to a string cannot fail");
    text
}
