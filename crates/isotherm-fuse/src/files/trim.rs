//! `FITRIM`, by which fstrim(8) has free space discarded (the kernel's include/uapi/linux/fs.h). It does reach a FUSE server, on
//! any node.

use isotherm_vfs::{Errno, FileSystem, Result};

/// `_IOWR('X', 121, struct fstrim_range)`.
pub(super) const FITRIM: u32 = 0xc018_5879;
/// Three numbers of 64 bits: where the range begins, its length, and the smallest piece that is worth it, in bytes.
const RANGE_BYTES: usize = 24;

/// Discards what is free in a range of the device below. The answer is the range, with what was discarded for a length.
pub(super) fn discard<F: FileSystem>(files: &F, uid: u32, range: &[u8]) -> Result<[u8; RANGE_BYTES]> {
    // The kernel leaves this to the file system. Others look at CAP_SYS_ADMIN, which is not told here.
    if uid != 0 {
        return Err(Errno::PERM);
    }
    let mut range: [u8; RANGE_BYTES] = range.try_into().map_err(|_| Errno::INVAL)?;
    let number = |at: usize| u64::from_ne_bytes(range[at..at + 8].try_into().expect("eight bytes"));
    let (start, length, smallest) = (number(0), number(8), number(16));
    // As others have it: less than a block cannot be meant.
    if length < files.statistics()?.block_bytes.into() {
        return Err(Errno::INVAL);
    }
    let discarded = files.discard_free(start..start.saturating_add(length), smallest)?;
    range[8..16].copy_from_slice(&discarded.to_ne_bytes());
    Ok(range)
}
