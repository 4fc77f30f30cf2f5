//! What a volume lies on: a row of bytes that can be made durable.

use crate::ahead::Ahead;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A block device, a file, or what stands for one. Used by several threads at a time.
///
/// # Contract
/// - A read gives what was written last, durable or not; what was discarded may read as anything.
/// - When `flush` returns, every write and discard that had returned before it was called is durable. Others may be, in any order, and
///   in part.
pub trait Device: Send + Sync + 'static {
    /// Bytes.
    fn length(&self) -> u64;
    /// Fills `out` from `offset` on.
    ///
    /// # Errors
    /// The device's; beyond its end too.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// The device's; beyond its end too.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Writes parts, each behind the one before, as one write.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn write_parts(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.write(offset, &parts.concat())
    }
    /// Makes what was written durable.
    ///
    /// # Errors
    /// The device's. What was written before may be lost then.
    fn flush(&self) -> io::Result<()>;
    /// The content of a range is needed no more.
    ///
    /// # Errors
    /// The device's.
    fn discard(&self, offset: u64, length: u64) -> io::Result<()>;
    /// What the device counts of itself, for statistics; none where it does not.
    fn counters(&self) -> Option<DeviceCounters>;
}

/// Nothing is shown but the length: what is on a device may be large.
impl fmt::Debug for dyn Device + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("length", &self.length()).finish_non_exhaustive()
    }
}

/// What a device counts of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceCounters {
    /// Bytes that were written to it.
    pub bytes_written: u64,
    /// Bytes that it wrote to its medium.
    pub media_bytes_written: u64,
    /// All of it, as an object.
    pub all: serde_json::Value,
}

impl DeviceCounters {
    /// Bytes written to the medium for each byte that was written to the device; none where nothing was.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.bytes_written > 0).then(|| self.media_bytes_written as f64 / self.bytes_written as f64)
    }
}

/// A file or block device of the system.
#[derive(Debug)]
pub struct FileDevice {
    file: File,
    length: u64,
    is_block_device: bool,
    ahead: Ahead,
    /// Kept open, for the locks on it.
    _locks: Vec<File>,
}

impl FileDevice {
    /// Takes an open file, whose length stays as it is.
    ///
    /// # Errors
    /// Neither a regular file nor a block device; the system's.
    pub fn new(file: File) -> io::Result<Self> {
        use std::io::{Seek, SeekFrom};
        use std::os::unix::fs::FileTypeExt;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a regular file nor a block device"));
        }
        let length = (&file).seek(SeekFrom::End(0))?;
        Ok(Self { file, length, is_block_device: kind.is_block_device(), ahead: Ahead::default(), _locks: Vec::new() })
    }

    /// Keeps other files open as long as the device is used, and with them whatever locks are on them.
    #[must_use]
    pub fn holding(self, locks: Vec<File>) -> Self {
        Self { _locks: locks, ..self }
    }
}

/// Parts that the system takes in one write.
const PARTS_MAX: usize = 1024;

fn beyond() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a write beyond the end of the device")
}

impl Device for FileDevice {
    fn length(&self) -> u64 {
        self.length
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset + data.len() as u64 > self.length {
            return Err(beyond());
        }
        let range = offset..offset + data.len() as u64;
        self.allocate_and(range, || self.file.write_all_at(data, offset))
    }
    fn write_parts(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let end = offset + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if end > self.length {
            return Err(beyond());
        }
        self.allocate_and(offset..end, || self.write_all_parts(offset, end - offset, parts))
    }
    fn flush(&self) -> io::Result<()> {
        self.ahead.flush();
        // Some file systems find out as late as this.
        self.file.sync_data().map_err(|error| self.explain(error))
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let done = rustix::fs::fallocate(&self.file, flags, offset, length);
        self.ahead.discard();
        match done {
            // A hint that this device cannot take is no fault.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            // Punching a block device discards where it can, and writes zeros where it cannot.
            done => done.map_err(|error| self.explain(error.into())),
        }
    }
    fn counters(&self) -> Option<DeviceCounters> {
        None
    }
}

impl FileDevice {
    /// Whether it is a block device.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    fn allocate_and(&self, range: Range<u64>, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.is_block_device {
            write()
        } else {
            self.ahead.write(&self.file, range, self.length, write).map_err(|error| self.explain(error))
        }
    }

    /// An error, with what can be done about it: a file has its full length, and may have less space.
    fn explain(&self, error: io::Error) -> io::Error {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        if self.is_block_device || !matches!(error.kind(), StorageFull | QuotaExceeded) {
            return error;
        }
        let text = "make room in the file system that holds its file, unmount the volume and mount it again";
        io::Error::new(error.kind(), format!("{error}: {text}"))
    }

    fn write_all_parts(&self, mut offset: u64, mut left: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut slices = &mut slices[..];
        while left > 0 {
            let written = match rustix::io::pwritev(&self.file, &slices[..slices.len().min(PARTS_MAX)], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            IoSlice::advance_slices(&mut slices, written);
            offset += written as u64;
            left -= written as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_one_behind_the_other() {
        let folder = std::env::temp_dir().join(format!("isotherm-fs-parts-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&folder).expect("a temporary file");
        std::fs::remove_file(&folder).expect("it was made");
        file.set_len(16 << 20).expect("there is room");
        let device = FileDevice::new(file).expect("a regular file");
        // More than the system takes at a time.
        let parts: Vec<Vec<u8>> = (0..3000u32).map(|number| vec![number as u8; 1 + number as usize % 4096]).collect();
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        device.write_parts(5, &slices).expect("it has room");
        let expected = parts.concat();
        let mut found = vec![0; expected.len() + 6];
        device.read(0, &mut found).expect("it is there");
        assert_eq!(found, [&[0; 5][..], &expected, &[0]].concat());
        let end = device.length();
        assert!(device.write_parts(end - 1, &[&[1], &[2]]).is_err(), "there is no room for the second");
    }
}
