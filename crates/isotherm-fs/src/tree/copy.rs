//! copy_file_range(2): data is copied, and holes stay holes.

use isotherm_vfs::{Allocation, Caller, Change, Errno, Ino, SeekFrom, WriteFlags};

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
            let at = from.1 + copied;
            let data = self.next(from.0, at, SeekFrom::Data)?.unwrap_or(from.1 + length).min(from.1 + length);
            let (some, is_hole) = if data > at {
                (data - at, true)
            } else {
                let hole = self.next(from.0, at, SeekFrom::Hole)?.unwrap_or(from.1 + length);
                (CHUNK_BYTES.min(length - copied).min(hole - at), false)
            };
            let target = (to.0, to.1 + copied);
            let done = if is_hole { self.make_hole(target, some) } else { self.copy_some((from.0, at), target, some) };
            match done {
                Ok(()) => copied += some,
                Err(error) if copied == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(copied)
    }

    /// Where data or a hole begins; `None` behind the last.
    fn next(&mut self, ino: Ino, from: u64, to: SeekFrom) -> Result<Option<u64>> {
        match self.seek(ino, from, to) {
            Ok(found) => Ok(Some(found)),
            Err(TreeError::Refused(Errno::NXIO)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a hole of the source leaves of a range of the target: a hole, up to which the file reaches at least.
    fn make_hole(&mut self, to: (Ino, u64), length: u64) -> Result<()> {
        let (size, end) = (self.regular(to.0)?.size, to.1 + length);
        // What may lack space comes first.
        if end > size {
            self.change(Caller::default(), to.0, Change { size: Some(end), ..Change::default() })?;
        }
        if to.1 < size {
            self.allocate(to.0, to.1, length, Allocation::PunchHole)?;
        }
        Ok(())
    }

    fn copy_some(&mut self, from: (Ino, u64), to: (Ino, u64), length: u64) -> Result<()> {
        let bytes = self.read(from.0, from.1, length as usize)?;
        if bytes.len() as u64 != length {
            return Err(TreeError::Refused(Errno::IO));
        }
        self.write(to.0, to.1, &bytes, WriteFlags::default()).map(drop)
    }
}
