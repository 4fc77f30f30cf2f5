//! What is asked, and what was answered.

use crate::{Allocation, Attributes, Errno, FileKind, RenameMode, SetXattr};

/// A request, with nodes named by absolute paths. Contents are made of a seed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operation {
    /// Makes a regular file and closes it.
    Create {
        path: String,
        permissions: u16,
    },
    MakeDirectory {
        path: String,
        permissions: u16,
    },
    /// Makes a fifo.
    MakeFifo {
        path: String,
    },
    Symlink {
        path: String,
        target: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    RemoveDirectory {
        path: String,
    },
    Rename {
        from: String,
        to: String,
        mode: RenameMode,
    },
    /// Opens a file, takes its name, writes and reads it, and closes it.
    UseOrphan {
        path: String,
        offset: u64,
        length: u32,
        seed: u64,
    },
    Write {
        path: String,
        offset: u64,
        length: u32,
        seed: u64,
    },
    /// Writes at the end.
    Append {
        path: String,
        length: u32,
        seed: u64,
    },
    Read {
        path: String,
        offset: u64,
        length: u32,
    },
    Truncate {
        path: String,
        size: u64,
    },
    Allocate {
        path: String,
        offset: u64,
        length: u64,
        how: Allocation,
    },
    CopyRange {
        from: String,
        from_offset: u64,
        to: String,
        to_offset: u64,
        length: u64,
    },
    SetPermissions {
        path: String,
        permissions: u16,
    },
    SetOwner {
        path: String,
        uid: u32,
        gid: u32,
    },
    SetXattr {
        path: String,
        name: String,
        value: Vec<u8>,
        how: SetXattr,
    },
    RemoveXattr {
        path: String,
        name: String,
    },
    Look {
        path: String,
    },
    List {
        path: String,
    },
    Fsync {
        path: String,
    },
    FsyncDirectory {
        path: String,
    },
    Sync,
}

impl Operation {
    /// How many kinds there are.
    pub const KINDS: usize = 24;

    /// Whether it changes something when it succeeds, that a crash could undo.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !self.is_durable_point()
            && !matches!(self, Self::Read { .. } | Self::Look { .. } | Self::List { .. } | Self::Sync)
    }

    /// Whether something that was done before must be there after a crash, once it has succeeded.
    #[must_use]
    pub fn is_durable_point(&self) -> bool {
        matches!(self, Self::Fsync { .. } | Self::FsyncDirectory { .. } | Self::Sync)
    }
}

/// What is compared of a node's attributes: not times, nor space, nor the size of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct NodeSeen {
    pub kind: FileKind,
    pub permissions: u16,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    pub device: u32,
    /// 0 for a directory.
    pub size: u64,
}

impl NodeSeen {
    /// That part of what stat(2) says.
    #[must_use]
    pub fn of(attributes: &Attributes) -> Self {
        let Attributes { kind, permissions, links, uid, gid, device, size, .. } = *attributes;
        let size = if kind == FileKind::Directory { 0 } else { size };
        Self { kind, permissions, links, uid, gid, device, size }
    }
}

/// An answer, as far as two file systems must agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done, and there is nothing to tell.
    Done,
    /// It was refused.
    Failed(Errno),
    /// A node, as an answer has it.
    Node(NodeSeen),
    /// Bytes: how many, and a checksum (FNV-1a).
    Bytes(usize, u64),
    /// A number of bytes.
    Count(u64),
    /// A node with its extended attributes (values as in [`Outcome::Bytes`]), and where it leads if it is a symbolic link.
    Whole(NodeSeen, Vec<(String, usize, u64)>, Option<Vec<u8>>),
    /// Names in a directory, in order, with what they lead to.
    Names(Vec<(Vec<u8>, FileKind)>),
    /// The file system contradicts itself, or the contract of its trait.
    Wrong(String),
}
