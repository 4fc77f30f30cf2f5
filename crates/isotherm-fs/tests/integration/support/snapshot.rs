//! All that can be seen of a volume, and operations on one by paths.

use super::operation::{Operation, bytes, split};
use isotherm_fs::store::StoreError;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{
    Allocation, Caller, Change, Errno, FileKind, FileSystem, Ino, NewNode, ROOT, Result, SetXattr, WriteFlags,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is seen under a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub ino: Ino,
    pub kind: FileKind,
    pub permissions: u16,
    pub links: u32,
    pub size: u64,
    pub blocks_512: u64,
    pub modified: i64,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of a file, or the target of a symbolic link.
    pub content: Arc<Vec<u8>>,
}

/// What is seen of a volume, by path; the empty one is the root.
pub type Snapshot = BTreeMap<String, Seen>;

const CALLER: Caller = Caller { uid: 0, gid: 0, pid: 1 };

/// Looks at everything.
pub fn snapshot(volume: &Volume) -> Result<Snapshot> {
    let mut found: BTreeMap<Ino, Seen> = BTreeMap::new();
    let mut all = Snapshot::new();
    let mut open = vec![(String::new(), ROOT)];
    while let Some((path, ino)) = open.pop() {
        if let Some(seen) = found.get(&ino) {
            all.insert(path, seen.clone());
            continue;
        }
        let seen = look(volume, ino)?;
        if seen.kind == FileKind::Directory {
            volume.read_directory(ino, 0, &mut |entry| {
                if entry.name != b"." && entry.name != b".." {
                    let name = String::from_utf8_lossy(entry.name);
                    open.push((if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") }, entry.ino));
                }
                true
            })?;
        }
        found.insert(ino, seen.clone());
        all.insert(path, seen);
    }
    Ok(all)
}

fn look(volume: &Volume, ino: Ino) -> Result<Seen> {
    let attributes = volume.attributes(ino)?;
    let mut content = Vec::new();
    match attributes.kind {
        FileKind::Regular => volume.read(ino, 0, 0, attributes.size as u32, &mut content)?,
        FileKind::Symlink => content = volume.read_link(ino)?,
        _ => {}
    }
    let mut xattrs = BTreeMap::new();
    for name in volume.xattrs(ino)? {
        let value = volume.xattr(ino, &name)?;
        xattrs.insert(name, value);
    }
    Ok(Seen {
        ino,
        kind: attributes.kind,
        permissions: attributes.permissions,
        links: attributes.links,
        size: attributes.size,
        blocks_512: attributes.blocks_512,
        modified: attributes.modified.seconds,
        xattrs,
        content: Arc::new(content),
    })
}

/// The node that a path leads to. Nobody refers to it.
fn find(volume: &Volume, path: &str) -> Result<Ino> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |directory, name| {
        let ino = volume.lookup(directory, name.as_bytes())?.ino;
        volume.forget(ino, 1);
        Ok(ino)
    })
}

fn internal(error: StoreError) -> Errno {
    println!("{error}");
    Errno::IO
}

/// Carries an operation out.
pub fn perform(volume: &Volume, operation: &Operation) -> Result<()> {
    let parent = |path| find(volume, split(path).0);
    let name = |path| split(path).1.as_bytes();
    let make = |path, kind, permissions| {
        let node = NewNode { kind, permissions, umask: 0, device: 0 };
        let made = volume.make_node(CALLER, parent(path)?, name(path), node)?;
        volume.forget(made.ino, 1);
        Ok(())
    };
    let write = |path, offset, length, stamp, append| {
        let flags = WriteFlags { append, ..WriteFlags::default() };
        volume.write(find(volume, path)?, 0, offset, &bytes(stamp, length), flags)
    };
    let allocate =
        |path, offset, length, how| volume.allocate(Caller::default(), find(volume, path)?, 0, offset, length, how);
    let change = |path, change| volume.change(CALLER, find(volume, path)?, change).map(drop);
    match operation {
        Operation::Create(path) => make(path, FileKind::Regular, 0o644),
        Operation::MakeDirectory(path) => make(path, FileKind::Directory, 0o755),
        Operation::Symlink { path, target } => {
            let made = volume.symlink(CALLER, parent(path)?, name(path), target.as_bytes())?;
            volume.forget(made.ino, 1);
            Ok(())
        }
        Operation::Write { path, offset, length, stamp } => write(path, *offset, *length, *stamp, false),
        Operation::Append { path, length, stamp } => write(path, 0, *length, *stamp, true),
        Operation::Truncate { path, size } => change(path, Change { size: Some(*size), ..Change::default() }),
        Operation::Permissions { path, permissions } => {
            change(path, Change { permissions: Some(*permissions), ..Change::default() })
        }
        Operation::Reserve { path, offset, length, keep_size } => {
            allocate(path, *offset, *length, Allocation::Reserve { keep_size: *keep_size })
        }
        Operation::Zero { path, offset, length, keep_size } => {
            allocate(path, *offset, *length, Allocation::ZeroRange { keep_size: *keep_size })
        }
        Operation::Punch { path, offset, length } => allocate(path, *offset, *length, Allocation::PunchHole),
        Operation::Rename { from, to, mode } => volume.rename(parent(from)?, name(from), parent(to)?, name(to), *mode),
        Operation::Link { from, to } => {
            let made = volume.link(find(volume, from)?, parent(to)?, name(to))?;
            volume.forget(made.ino, 1);
            Ok(())
        }
        Operation::Unlink(path) => volume.unlink(parent(path)?, name(path)),
        Operation::RemoveDirectory(path) => volume.remove_directory(parent(path)?, name(path)),
        Operation::SetXattr { path, name, length, stamp } => {
            let value = bytes(*stamp, *length);
            volume.set_xattr(CALLER, find(volume, path)?, name.as_bytes(), &value, SetXattr::Any)
        }
        Operation::RemoveXattr { path, name } => volume.remove_xattr(find(volume, path)?, name.as_bytes()),
        Operation::Fsync(path) => volume.fsync(find(volume, path)?, false),
        Operation::FsyncDirectory(path) => volume.fsync_directory(find(volume, path)?),
        Operation::Sync => volume.sync(),
        Operation::WriteGroups => volume.write_groups().map_err(internal),
        Operation::Checkpoint => volume.checkpoint().map_err(internal),
        Operation::CleanAhead => volume.clean_ahead().map_err(internal),
    }
}
