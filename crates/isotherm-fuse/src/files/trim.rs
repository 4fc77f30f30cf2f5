//! `FITRIM`, by which fstrim(8) has free space discarded (the kernel's include/uapi/linux/fs.h). It does reach a FUSE server, on
//! any node.

use isotherm_vfs::{Errno, FileSystem, Result};

/// `_IOWR('X', 121, struct fstrim_range)`.
pub(super) const FITRIM: u32 = 0xc018_5879;
/// Three numbers of 64 bits: where the range begins, its length, and the smallest piece that is worth it, in bytes.
const RANGE_BYTES: usize = 24;

/// Discards what is free. The answer is the range, with what was discarded for a length.
///
/// A file system of ours has no order of space that a range could be a part of: only the whole can be asked for.
pub(super) fn discard<F: FileSystem>(files: &F, uid: u32, range: &[u8]) -> Result<[u8; RANGE_BYTES]> {
    // The kernel leaves this to the file system. Others look at CAP_SYS_ADMIN, which is not told here.
    if uid != 0 {
        return Err(Errno::PERM);
    }
    let mut range: [u8; RANGE_BYTES] = range.try_into().map_err(|_| Errno::INVAL)?;
    let number = |at: usize| u64::from_ne_bytes(range[at..at + 8].try_into().expect("eight bytes"));
    let (start, length, smallest) = (number(0), number(8), number(16));
    let has = files.statistics()?;
    if start != 0 || length < has.blocks.saturating_mul(has.block_bytes.into()) {
        return Err(Errno::OPNOTSUPP);
    }
    let discarded = files.discard_free(smallest)?;
    range[8..16].copy_from_slice(&discarded.to_ne_bytes());
    Ok(range)
}
