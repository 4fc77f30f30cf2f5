//! Where the blocks of a file lie, for whoever asks a mounted volume: FUSE has no FIEMAP, so that it is an extended attribute.

use crate::tree::StoredExtent;

/// Extended attribute of a regular file that holds its extents from the block on whose number follows: a line each of its block
/// in the file, that of the device, and how many there are. Where the value is empty there are no more. It is not listed.
pub const EXTENTS_XATTR: &str = "user.sfs.extents.";
/// Extents of one value, which has at most 64 KiB: three numbers of ten digits each.
pub(super) const EXTENTS_MAX: usize = 1500;

/// A value of [`EXTENTS_XATTR`].
pub(super) fn extents_text(extents: &[StoredExtent]) -> Vec<u8> {
    let lines = extents.iter().map(|at| format!("{} {} {}\n", at.block, at.position, at.count));
    lines.collect::<String>().into_bytes()
}

/// Reads a value of [`EXTENTS_XATTR`]; `None` where it is none.
#[must_use]
pub fn parse_extents(text: &str) -> Option<Vec<StoredExtent>> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(StoredExtent { block: number()?, position: number()?.try_into().ok()?, count: number()? })
    };
    text.lines().map(line).collect()
}
