//! A device in memory: for tests, and for volumes that nobody keeps.

use crate::device::Device;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module's text. Bytes that were never written, or were discarded, read as zeros.
#[derive(Debug)]
pub struct MemoryDevice {
    bytes: Mutex<Vec<u8>>,
    length: u64,
}

impl MemoryDevice {
    /// A device of `length` bytes, all zeros.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Self::of(vec![0; length as usize])
    }

    /// A device that holds `bytes`.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { length: bytes.len() as u64, bytes: Mutex::new(bytes) }
    }

    /// What it holds.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn range(&self, offset: u64, length: u64) -> io::Result<std::ops::Range<usize>> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(offset as usize..end as usize),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "beyond the end of the device")),
        }
    }
}

impl Device for MemoryDevice {
    fn length(&self) -> u64 {
        self.length
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let range = self.range(offset, out.len() as u64)?;
        out.copy_from_slice(&self.lock()[range]);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let range = self.range(offset, data.len() as u64)?;
        self.lock()[range].copy_from_slice(data);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        let range = self.range(offset, length)?;
        self.lock()[range].fill(0);
        Ok(())
    }
    fn counters(&self) -> Option<crate::device::DeviceCounters> {
        None
    }
}
