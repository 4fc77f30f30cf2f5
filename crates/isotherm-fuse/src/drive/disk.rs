//! What a file of fixed size does, in terms of its export: ranges are checked here, and errors become an `errno`.
//!
//! Where a regular file would grow, this one answers as a block device or a sealed file does: writes at the end get `ENOSPC`, writes
//! across it are short (pwrite(2)), and what would change the size gets `EPERM` (`F_SEAL_GROW`, `F_SEAL_SHRINK` in fcntl(2)).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fuser::Errno;
use isotherm_export::{Due, ErrorKind, Export, ExportError, Zeroes};

use super::{DiskFile, OnError};

/// Extents that are asked for at a time.
const EXTENTS: usize = 256;
/// Calls for extents that a look at a file's attributes may cost; what lies beyond is taken to hold data.
const EXTENT_CALLS_OF_STAT: usize = 16;

/// A file that is an export.
pub(super) struct Disk {
    file: DiskFile,
    on_error: OnError,
    /// Nanoseconds since 1970 of the last change.
    modified_ns: AtomicU64,
}

/// What is sought from an offset on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sought {
    /// `SEEK_DATA`.
    Data,
    /// `SEEK_HOLE`; the end of the file is one.
    Hole,
}

impl Disk {
    pub(super) fn new(file: DiskFile, on_error: OnError) -> Self {
        let disk = Self { file, on_error, modified_ns: AtomicU64::new(0) };
        disk.touch();
        disk
    }

    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.file.export.size_bytes()
    }

    pub(super) fn page_bytes(&self) -> u32 {
        self.file.export.page_bytes()
    }

    /// When it was last changed through this mount.
    pub(super) fn modified(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.modified_ns.load(Ordering::Relaxed))
    }

    /// Bytes that hold data, or an upper bound where that would take long to find out.
    pub(super) fn data_bytes(&self) -> u64 {
        let size = self.size_bytes();
        let (mut at, mut data) = (0, 0);
        for _ in 0..EXTENT_CALLS_OF_STAT {
            if at >= size {
                return data;
            }
            let Ok(extents) = self.ask(|export| export.extents(at, size - at, EXTENTS)) else { break };
            for extent in extents {
                at += extent.length;
                data += if extent.is_data { extent.length } else { 0 };
            }
        }
        data + size.saturating_sub(at)
    }

    /// Reads what there is of a range: at the end of the file less than `out` holds. Returns bytes read.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(usize, Due), Errno> {
        let length = self.within(offset, out.len() as u64) as usize;
        if length == 0 {
            return Ok((0, None));
        }
        let due = self.ask(|export| export.read(offset, &mut out[..length]))?;
        Ok((length, due))
    }

    /// Writes what fits of `data`, and returns how many bytes that were.
    pub(super) fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(usize, Due), Errno> {
        let length = self.within(offset, data.len() as u64) as usize;
        if length == 0 && !data.is_empty() {
            return Err(Errno::ENOSPC);
        }
        let due = self.ask(|export| export.write(offset, &data[..length], durable))?;
        self.touch();
        Ok((length, due))
    }

    pub(super) fn flush(&self) -> Result<Due, Errno> {
        self.ask(|export| export.flush())
    }

    /// `fallocate(2)`. A loop device sends holes to be punched for discards, and ranges to be zeroed for zeros that must keep their
    /// space (`lo_fallocate` in the kernel's drivers/block/loop.c): hence these may not be trimmed.
    pub(super) fn fallocate(&self, offset: u64, length: u64, mode: i32, durable: bool) -> Result<Due, Errno> {
        let end = offset.checked_add(length).ok_or(Errno::EFBIG)?;
        let keeps_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let length = self.within(offset, length);
        let due = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            libc::FALLOC_FL_PUNCH_HOLE if !keeps_size => return Err(Errno::EOPNOTSUPP),
            0 | libc::FALLOC_FL_ZERO_RANGE if end > self.size_bytes() && !keeps_size => return Err(Errno::EPERM),
            // All the space there is belongs to the file already.
            0 => return Ok(None),
            libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE if length == 0 => return Ok(None),
            libc::FALLOC_FL_PUNCH_HOLE => self.ask(|export| export.trim(offset, length, durable))?,
            libc::FALLOC_FL_ZERO_RANGE => {
                let how = Zeroes { may_trim: false, fast_only: false };
                self.ask(|export| export.write_zeroes(offset, length, how, durable))?
            }
            _ => return Err(Errno::EOPNOTSUPP),
        };
        self.touch();
        Ok(due)
    }

    /// The first offset from `offset` on that is what is sought: `ENXIO` where there is none (lseek(2)).
    pub(super) fn seek(&self, offset: u64, sought: Sought) -> Result<u64, Errno> {
        let size = self.size_bytes();
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let mut at = offset;
        while at < size {
            let before = at;
            for extent in self.ask(|export| export.extents(at, size - at, EXTENTS))? {
                if extent.is_data == (sought == Sought::Data) {
                    return Ok(at);
                }
                at += extent.length;
            }
            if at == before {
                // Against the contract; asking again would not end.
                return Err(Errno::EIO);
            }
        }
        if sought == Sought::Hole { Ok(size) } else { Err(Errno::ENXIO) }
    }

    /// How much of a range lies in the file.
    fn within(&self, offset: u64, length: u64) -> u64 {
        length.min(self.size_bytes().saturating_sub(offset))
    }

    /// Asks the export, and makes an `errno` of its error.
    ///
    /// A panic is an error of this one request: if it ended the thread, programs would wait for an answer for ever, and could not
    /// even be killed.
    fn ask<T>(&self, request: impl FnOnce(&dyn Export) -> Result<T, ExportError>) -> Result<T, Errno> {
        let answer = catch_unwind(AssertUnwindSafe(|| request(&*self.file.export))).unwrap_or_else(|_| {
            let message = "the export panicked; what it holds is no longer to be trusted".into();
            Err(ExportError { kind: ErrorKind::Io, message })
        });
        answer.map_err(|error| {
            (self.on_error)(self.name(), &error);
            errno(error.kind)
        })
    }

    fn touch(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.modified_ns.store(since.as_nanos() as u64, Ordering::Relaxed);
    }
}

fn errno(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::NoSpace => Errno::ENOSPC,
        ErrorKind::Invalid => Errno::EINVAL,
        ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        // For a file the field's word is a read-only file system; EPERM would send people to look at its mode.
        ErrorKind::ReadOnly => Errno::EROFS,
        ErrorKind::Stopped => Errno::ESHUTDOWN,
        _ => Errno::EIO,
    }
}
