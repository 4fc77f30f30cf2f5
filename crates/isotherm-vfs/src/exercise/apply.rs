//! Carrying an operation out.

use super::operation::{NodeSeen, Operation, Outcome};
use crate::{
    Attributes, Caller, Change, Errno, FileKind, FileSystem, Handle, Ino, NewNode, OpenFlags, ROOT, Result, SeekFrom,
    WriteFlags,
};

/// Who asks: root, so that everything is allowed, with a group of its own, so that inheritance shows.
pub(super) const CALLER: Caller = Caller { uid: 0, gid: 7, pid: 1 };

/// Root, or somebody whose writes take away what gives rights.
fn one_of_two(number: u64) -> Caller {
    Caller { uid: (number % 2) as u32, ..CALLER }
}

const UMASK: u16 = 0o022;
/// Entries that one call of a listing takes, so that listings go on from cookies.
const LISTED_AT_ONCE: usize = 3;

/// Asks a file system. Every reference and handle that it gives is given back.
pub fn apply(fs: &dyn FileSystem, operation: &Operation) -> Outcome {
    carry_out(fs, operation).unwrap_or_else(Outcome::Failed)
}

/// A checksum of bytes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// What a write of this seed consists of. No zeros, which a hole would have too.
fn pattern(seed: u64, length: u32) -> Vec<u8> {
    let mut state = seed | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8 | 1
        })
        .collect()
}

/// A node that an answer referred to; the reference is given back at the end.
pub(super) struct Referred<'a> {
    fs: &'a dyn FileSystem,
    pub(super) attributes: Attributes,
}

impl Drop for Referred<'_> {
    fn drop(&mut self) {
        self.fs.forget(self.attributes.ino, 1);
    }
}

impl<'a> Referred<'a> {
    pub(super) fn new(fs: &'a dyn FileSystem, attributes: Attributes) -> Self {
        Self { fs, attributes }
    }

    pub(super) fn ino(&self) -> Ino {
        self.attributes.ino
    }
}

/// The node that a path leads to; symbolic links are not followed.
fn find<'a>(fs: &'a dyn FileSystem, path: &str) -> Result<Referred<'a>> {
    let mut at = Referred::new(fs, fs.lookup(ROOT, b".")?);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = Referred::new(fs, fs.lookup(at.ino(), name.as_bytes())?);
    }
    Ok(at)
}

/// The directory of a path, and the name there. The root has no name.
fn place<'a, 'p>(fs: &'a dyn FileSystem, path: &'p str) -> Result<(Referred<'a>, &'p [u8])> {
    let (parent, name) = path.rsplit_once('/').ok_or(Errno::INVAL)?;
    if name.is_empty() {
        return Err(Errno::BUSY);
    }
    let parent = find(fs, parent)?;
    // The kernel looks at both paths of a request before it asks.
    if parent.attributes.kind != FileKind::Directory {
        return Err(Errno::NOTDIR);
    }
    Ok((parent, name.as_bytes()))
}

/// An open file, closed at the end.
struct Open<'a> {
    node: Referred<'a>,
    handle: Handle,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.node.fs.release(self.node.ino(), self.handle);
    }
}

fn open<'a>(fs: &'a dyn FileSystem, path: &str) -> Result<Open<'a>> {
    let node = find(fs, path)?;
    if node.attributes.kind != FileKind::Regular {
        // The kernel opens nothing else here.
        return Err(Errno::INVAL);
    }
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let opened = fs.open(node.ino(), flags)?;
    Ok(Open { node, handle: opened.handle })
}

fn make(fs: &dyn FileSystem, path: &str, kind: FileKind, permissions: u16) -> Result<Outcome> {
    let (parent, name) = place(fs, path)?;
    let node = NewNode { kind, permissions, umask: UMASK, device: 0 };
    if kind == FileKind::Regular {
        let flags = OpenFlags { read: true, write: true, exclusive: true, ..OpenFlags::default() };
        let (attributes, opened) = fs.create(CALLER, parent.ino(), name, node, flags)?;
        let node = Referred::new(fs, attributes);
        let made = Open { node, handle: opened.handle };
        return Ok(Outcome::Node(NodeSeen::of(&made.node.attributes)));
    }
    let made = Referred::new(fs, fs.make_node(CALLER, parent.ino(), name, node)?);
    Ok(Outcome::Node(NodeSeen::of(&made.attributes)))
}

fn change(fs: &dyn FileSystem, path: &str, change: Change) -> Result<Outcome> {
    let node = find(fs, path)?;
    Ok(Outcome::Node(NodeSeen::of(&fs.change(CALLER, node.ino(), change)?)))
}

fn read(fs: &dyn FileSystem, file: &Open<'_>, offset: u64, length: u32) -> Result<Outcome> {
    let mut out = Vec::new();
    fs.read(file.node.ino(), file.handle, offset, length, &mut out)?;
    // What is said to be a hole must read as zeros.
    if let Ok(hole) = fs.seek(file.node.ino(), offset, SeekFrom::Hole) {
        let data = fs.seek(file.node.ino(), hole, SeekFrom::Data).unwrap_or(u64::MAX);
        let within = |at: u64| (at.saturating_sub(offset)).min(out.len() as u64) as usize;
        if hole < offset || out[within(hole)..within(data)].iter().any(|byte| *byte != 0) {
            return Ok(Outcome::Wrong(format!("the hole from {hole} to {data} holds data")));
        }
    }
    Ok(Outcome::Bytes(out.len(), checksum(&out)))
}

fn write(fs: &dyn FileSystem, file: &Open<'_>, offset: u64, data: &[u8], flags: WriteFlags) -> Result<Outcome> {
    fs.write(file.node.ino(), file.handle, offset, data, flags)?;
    fs.flush(file.node.ino(), file.handle)?;
    Ok(Outcome::Node(NodeSeen::of(&fs.attributes(file.node.ino())?)))
}

fn look(fs: &dyn FileSystem, path: &str) -> Result<Outcome> {
    let node = find(fs, path)?;
    let target = if node.attributes.kind == FileKind::Symlink { Some(fs.read_link(node.ino())?) } else { None };
    let mut xattrs = Vec::new();
    for name in fs.xattrs(node.ino())? {
        let value = fs.xattr(node.ino(), &name)?;
        xattrs.push((String::from_utf8_lossy(&name).into_owned(), value.len(), checksum(&value)));
    }
    xattrs.sort();
    Ok(Outcome::Whole(NodeSeen::of(&node.attributes), xattrs, target))
}

fn list(fs: &dyn FileSystem, path: &str) -> Result<Outcome> {
    let node = find(fs, path)?;
    let handle = fs.open_directory(node.ino())?.handle;
    let names = names(fs, node.ino());
    fs.release_directory(node.ino(), handle);
    names
}

/// Lists in small steps, by turns with attributes and without.
fn names(fs: &dyn FileSystem, ino: Ino) -> Result<Outcome> {
    let mut names: Vec<(Vec<u8>, FileKind)> = Vec::new();
    let mut cookie = 0;
    loop {
        let before = names.len();
        if (before / LISTED_AT_ONCE).is_multiple_of(2) {
            fs.read_directory(ino, cookie, &mut |entry| {
                let takes = names.len() < before + LISTED_AT_ONCE;
                if takes {
                    names.push((entry.name.to_vec(), entry.kind));
                    cookie = entry.cookie;
                }
                takes
            })?;
        } else {
            let mut referred = Vec::new();
            fs.read_directory_plus(ino, cookie, &mut |entry, attributes| {
                let takes = names.len() < before + LISTED_AT_ONCE;
                if takes {
                    names.push((entry.name.to_vec(), attributes.kind));
                    cookie = entry.cookie;
                    if !matches!(entry.name, b"." | b"..") {
                        referred.push(*attributes);
                    }
                }
                takes
            })?;
            // After the listing, which may hold a lock.
            drop(referred.into_iter().map(|attributes| Referred::new(fs, attributes)).collect::<Vec<_>>());
        }
        if names.len() == before {
            break;
        }
    }
    if names.len() < 2 || names[0].0 != b"." || names[1].0 != b".." {
        return Ok(Outcome::Wrong(format!("the listing does not begin with . and ..: {names:?}")));
    }
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Outcome::Names(names))
}

fn done(_: ()) -> Outcome {
    Outcome::Done
}

fn carry_out(fs: &dyn FileSystem, operation: &Operation) -> Result<Outcome> {
    match operation {
        Operation::Create { path, permissions } => make(fs, path, FileKind::Regular, *permissions),
        Operation::MakeDirectory { path, permissions } => make(fs, path, FileKind::Directory, *permissions),
        Operation::MakeFifo { path } => make(fs, path, FileKind::Fifo, 0o666),
        Operation::Symlink { path, target } => {
            let (parent, name) = place(fs, path)?;
            let made = Referred::new(fs, fs.symlink(CALLER, parent.ino(), name, target.as_bytes())?);
            Ok(Outcome::Node(NodeSeen::of(&made.attributes)))
        }
        Operation::Link { from, to } => {
            let (node, (parent, name)) = (find(fs, from)?, place(fs, to)?);
            let linked = Referred::new(fs, fs.link(node.ino(), parent.ino(), name)?);
            Ok(Outcome::Node(NodeSeen::of(&linked.attributes)))
        }
        Operation::Unlink { path } => {
            let (parent, name) = place(fs, path)?;
            fs.unlink(parent.ino(), name).map(done)
        }
        Operation::RemoveDirectory { path } => {
            let (parent, name) = place(fs, path)?;
            fs.remove_directory(parent.ino(), name).map(done)
        }
        Operation::Rename { from, to, mode } => {
            let ((old, name), (new, new_name)) = (place(fs, from)?, place(fs, to)?);
            fs.rename(old.ino(), name, new.ino(), new_name, *mode).map(done)
        }
        Operation::UseOrphan { path, offset, length, seed } => {
            let file = open(fs, path)?;
            let (parent, name) = place(fs, path)?;
            fs.unlink(parent.ino(), name)?;
            write(fs, &file, *offset, &pattern(*seed, *length), WriteFlags::default())?;
            read(fs, &file, offset.saturating_sub(100), *length)
        }
        Operation::Write { path, offset, length, seed } => {
            // As of a user: what gives rights goes.
            let flags = WriteFlags { kills_privileges: seed % 2 == 0, append: false };
            write(fs, &open(fs, path)?, *offset, &pattern(*seed, *length), flags)
        }
        Operation::Append { path, length, seed } => {
            let flags = WriteFlags { kills_privileges: false, append: true };
            write(fs, &open(fs, path)?, 0, &pattern(*seed, *length), flags)
        }
        Operation::Read { path, offset, length } => read(fs, &open(fs, path)?, *offset, *length),
        Operation::Truncate { path, size } => change(fs, path, Change { size: Some(*size), ..Change::default() }),
        Operation::Allocate { path, offset, length, how } => {
            let file = open(fs, path)?;
            fs.allocate(one_of_two(*offset), file.node.ino(), file.handle, *offset, *length, *how)?;
            Ok(Outcome::Node(NodeSeen::of(&fs.attributes(file.node.ino())?)))
        }
        Operation::CopyRange { from, from_offset, to, to_offset, length } => {
            let (source, target) = (open(fs, from)?, open(fs, to)?);
            let copied = fs.copy_range(
                one_of_two(*length),
                (source.node.ino(), *from_offset),
                (target.node.ino(), *to_offset),
                *length,
            );
            copied.map(Outcome::Count)
        }
        Operation::SetPermissions { path, permissions } => {
            change(fs, path, Change { permissions: Some(*permissions), ..Change::default() })
        }
        Operation::SetOwner { path, uid, gid } => {
            let (uid, gid) = (Some(*uid), Some(*gid));
            change(fs, path, Change { uid, gid, kills_privileges: true, ..Change::default() })
        }
        Operation::SetXattr { path, name, value, how } => {
            let node = find(fs, path)?;
            fs.set_xattr(CALLER, node.ino(), name.as_bytes(), value, *how)?;
            look(fs, path)
        }
        Operation::RemoveXattr { path, name } => {
            let node = find(fs, path)?;
            fs.remove_xattr(node.ino(), name.as_bytes()).map(done)
        }
        Operation::Look { path } => look(fs, path),
        Operation::List { path } => list(fs, path),
        Operation::Fsync { path } => {
            let file = open(fs, path)?;
            fs.fsync(file.node.ino(), false).map(done)
        }
        Operation::FsyncDirectory { path } => {
            let node = find(fs, path)?;
            fs.fsync_directory(node.ino()).map(done)
        }
        Operation::Sync => fs.sync().map(done),
    }
}
