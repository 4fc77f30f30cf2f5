//! copy_file_range(2).

use isotherm_vfs::{Errno, Ino, WriteFlags};

use super::Tree;
use super::error::{Result, TreeError};
use super::prepare::FILE_BYTES_MAX;
use crate::store::{BLOCK_BYTES, Store};

/// Bytes that are copied at once.
const CHUNK_BYTES: u64 = 256 * BLOCK_BYTES as u64;

impl<S: Store> Tree<S> {
    /// Copies a range between files. Returns the bytes copied: fewer where the source ends, or space does.
    ///
    /// # Errors
    /// `EINVAL` for ranges of one file that overlap; those of [`Tree::write`] where nothing was copied.
    pub fn copy_range(&mut self, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<u64> {
        let source = self.regular(from.0)?;
        self.regular(to.0)?;
        let length = length.min(source.size.saturating_sub(from.1));
        if from.0 == to.0 && from.1 < to.1.saturating_add(length) && to.1 < from.1 + length {
            return Err(Errno::INVAL.into());
        }
        if to.1.checked_add(length).is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(Errno::FBIG.into());
        }
        let mut copied = 0;
        while copied < length {
            let some = CHUNK_BYTES.min(length - copied);
            match self.copy_some((from.0, from.1 + copied), (to.0, to.1 + copied), some) {
                Ok(()) => copied += some,
                Err(error) if copied == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(copied)
    }

    fn copy_some(&mut self, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<()> {
        let bytes = self.read(from.0, from.1, length as usize)?;
        if bytes.len() as u64 != length {
            return Err(TreeError::Refused(Errno::IO));
        }
        self.write(to.0, to.1, &bytes, WriteFlags::default()).map(drop)
    }
}
