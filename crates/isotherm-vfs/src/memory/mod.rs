//! A POSIX file system in memory, complete: the model that other file systems are compared with, and a server without a cost of
//! its own, which shows what the way from the kernel to a file system costs.
//!
//! # Locks
//! Each node has a lock of its own, which covers its attributes, content, and names; the table of nodes by number is in shards.
//! A request holds at most two directories and one node below them. Locks are taken from the root downwards. Only a rename from
//! one directory to another holds two that may lie anywhere: such renames go one at a time, and take first the one that the other
//! lies below.
//!
//! # Cost
//! A look-up by name or number is one of a hash table. Content is a map of blocks of 4096 bytes: a read or write costs
//! O(log blocks) for each that it touches, and the copy. Listing goes on from a cookie in O(log names).

mod content;
mod entries;
mod filesystem;
mod node;
mod rename;
mod space;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Attributes, Caller, Errno, FileKind, Ino, NewNode, ROOT, Result, acl};
use content::{BLOCK_BYTES, Content};
use entries::Entries;
use node::{Body, Node, State, now};
use space::Space;
use table::Table;

/// What a file system in memory has room for, and how it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Room for the content of files, bytes. Default: 8 GiB.
    pub capacity_bytes: u64,
    /// Nodes there can be. Default: 16 Mi.
    pub inodes: u64,
    /// Whether reading, and opening to read, sets the time of access (as the kernel's `relatime`). Default: yes.
    pub keeps_access_times: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capacity_bytes: 8 << 30, inodes: 16 << 20, keeps_access_times: true }
    }
}

/// A file system in memory. It begins with an empty root directory that belongs to root, with permissions 0755.
#[derive(Debug)]
pub struct MemoryFileSystem {
    nodes: Table,
    last_ino: AtomicU64,
    last_handle: AtomicU64,
    space: Arc<Space>,
    /// Held while a name moves from one directory to another.
    moving: Mutex<()>,
    keeps_access_times: bool,
}

impl Default for MemoryFileSystem {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl MemoryFileSystem {
    /// An empty one.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let space = Arc::new(Space::new(options.capacity_bytes / BLOCK_BYTES, options.inodes.max(1)));
        space.take_inode().expect("there is room for one");
        let root = State { links: 2, ..State::new(Body::Directory(Entries::new(ROOT)), 0o755, (0, 0)) };
        let nodes = Table::default();
        nodes.insert(Arc::new(Node::new(ROOT, FileKind::Directory, 0, root, Arc::clone(&space))));
        Self {
            nodes,
            last_ino: AtomicU64::new(ROOT),
            last_handle: AtomicU64::new(0),
            space,
            moving: Mutex::new(()),
            keeps_access_times: options.keeps_access_times,
        }
    }

    fn node(&self, ino: Ino) -> Result<Arc<Node>> {
        self.nodes.get(ino).ok_or(Errno::STALE)
    }

    fn directory(&self, ino: Ino) -> Result<Arc<Node>> {
        let node = self.node(ino)?;
        if node.kind == FileKind::Directory { Ok(node) } else { Err(Errno::NOTDIR) }
    }

    fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a node and its name in a directory that the caller has locked.
    fn add(&self, caller: Caller, directory: &mut State, name: &[u8], node: NewNode, body: Body) -> Result<Arc<Node>> {
        if directory.entries()?.find(name)?.is_some() {
            return Err(Errno::EXIST);
        }
        if directory.links == 0 {
            return Err(Errno::NOENT);
        }
        let made = self.nameless(caller, directory, node, body)?;
        if node.kind == FileKind::Directory {
            directory.links += 1;
        }
        made.refer();
        self.nodes.insert(Arc::clone(&made));
        directory.entries_mut()?.put(name, Arc::clone(&made));
        directory.mark_modified();
        Ok(made)
    }

    /// Makes a node for a directory, without a name there and unknown to the table. It is gone when it is dropped.
    fn nameless(&self, caller: Caller, directory: &State, node: NewNode, body: Body) -> Result<Arc<Node>> {
        let mut state = inherit(caller, directory, node, body)?;
        if node.kind == FileKind::Directory {
            state.links = 2;
        }
        self.space.take_inode()?;
        let is_device = matches!(node.kind, FileKind::BlockDevice | FileKind::CharacterDevice);
        let device = if is_device { node.device } else { 0 };
        let ino = self.last_ino.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Arc::new(Node::new(ino, node.kind, device, state, Arc::clone(&self.space))))
    }

    fn add_node(&self, caller: Caller, parent: Ino, name: &[u8], node: NewNode, body: Body) -> Result<Attributes> {
        let directory = self.directory(parent)?;
        let made = self.add(caller, &mut directory.write(), name, node, body)?;
        Ok(made.attributes())
    }

    /// Takes a node that has no name and is not held out of the table; it ends when the last request leaves it.
    fn reap(&self, node: &Node) {
        if !node.is_held() && node.read().links == 0 {
            self.nodes.remove(node.ino);
        }
    }

    fn empty_body(&self, parent: Ino, kind: FileKind) -> Result<Body> {
        match kind {
            FileKind::Regular => Ok(Body::File(Content::new(Arc::clone(&self.space)))),
            FileKind::Directory => Ok(Body::Directory(Entries::new(parent))),
            FileKind::Symlink => Err(Errno::INVAL),
            _ => Ok(Body::Special),
        }
    }
}

impl State {
    fn new(body: Body, permissions: u16, owner: (u32, u32)) -> Self {
        let now = now();
        Self {
            permissions,
            links: 1,
            uid: owner.0,
            gid: owner.1,
            accessed: now,
            modified: now,
            changed: now,
            xattrs: BTreeMap::new(),
            body,
        }
    }
}

/// What a new node gets of its directory and of who makes it.
fn inherit(caller: Caller, directory: &State, node: NewNode, body: Body) -> Result<State> {
    let mut permissions = node.permissions & 0o7777;
    let mut gid = caller.gid;
    if directory.permissions & 0o2000 != 0 {
        gid = directory.gid;
        // Whether others may keep the bit the kernel has decided, which knows all groups of the caller.
        if node.kind == FileKind::Directory {
            permissions |= 0o2000;
        }
    }
    let mut xattrs = BTreeMap::new();
    match directory.xattrs.get(acl::DEFAULT) {
        Some(default) if node.kind != FileKind::Symlink => {
            let inherited = acl::inherit(default, permissions)?;
            permissions = inherited.mode;
            xattrs.extend(inherited.access.map(|access| (acl::ACCESS.to_vec(), access)));
            if node.kind == FileKind::Directory {
                xattrs.insert(acl::DEFAULT.to_vec(), default.clone());
            }
        }
        _ => permissions &= !(node.umask & 0o777),
    }
    Ok(State { xattrs, ..State::new(body, permissions, (caller.uid, gid)) })
}
