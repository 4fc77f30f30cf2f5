//! What is asked of a volume in tests, by paths.

use isotherm_vfs::RenameMode;

/// A request. Paths have no leading `/`; the empty one is the root. `stamp` makes the bytes of a write its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    Create(String),
    MakeDirectory(String),
    Symlink { path: String, target: String },
    Write { path: String, offset: u64, length: usize, stamp: u64 },
    Append { path: String, length: usize, stamp: u64 },
    Truncate { path: String, size: u64 },
    Reserve { path: String, offset: u64, length: u64, keep_size: bool },
    Zero { path: String, offset: u64, length: u64, keep_size: bool },
    Punch { path: String, offset: u64, length: u64 },
    Rename { from: String, to: String, mode: RenameMode },
    Link { from: String, to: String },
    Unlink(String),
    RemoveDirectory(String),
    SetXattr { path: String, name: String, length: usize, stamp: u64 },
    RemoveXattr { path: String, name: String },
    Permissions { path: String, permissions: u16 },
    Fsync(String),
    FsyncDirectory(String),
    Sync,
    WriteGroups,
    Checkpoint,
    CleanAhead,
}

/// The bytes of a write: none of its words are those of another write, or zero.
pub fn bytes(stamp: u64, length: usize) -> Vec<u8> {
    let word = |at: u64| (stamp << 24 | at << 1 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    (0..length.div_ceil(8) as u64).flat_map(word).take(length).collect()
}

/// The path of the directory that a path lies in, and the name in it.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
