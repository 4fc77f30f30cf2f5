//! What an image lies on: a file, or in tests a record of all that was done to one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that outlive the process.
///
/// # Contract
/// - A read sees every write that returned before it. What was never written, or punched, reads as zeros.
/// - What was written or punched outlives a loss of the machine's power once a later [`sync`](Disk::sync) has returned. Until then
///   any part of it may be lost, in units of [`SECTOR_BYTES`] and in any order.
pub trait Disk: Send + Sync + 'static {
    /// Bytes that can be read.
    ///
    /// # Errors
    /// The disk fails.
    fn length(&self) -> io::Result<u64>;
    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// The disk fails, or ends before.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// The disk fails or is full.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Gives a range back: it reads as zeros.
    ///
    /// # Errors
    /// The disk fails.
    fn punch(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Makes everything durable that was written or punched before.
    ///
    /// # Errors
    /// The disk fails: nothing is known of what was written since the last time.
    fn sync(&self) -> io::Result<()>;
    /// The first byte at or after `offset` that may hold something; none where only zeros follow.
    ///
    /// # Errors
    /// The disk fails.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>>;
}

/// What a disk writes whole or not at all.
pub const SECTOR_BYTES: u64 = 512;

impl Disk for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(self, flags, offset, length) {
            // A file system without holes keeps the space: what is read there is programmed before.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(self, rustix::fs::SeekFrom::Data(offset)) {
            Ok(at) => Ok(Some(at)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
