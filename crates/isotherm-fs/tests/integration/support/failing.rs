//! A device that fails.

use isotherm_fs::device::{Device, DeviceCounters};
use isotherm_fs::memory_device::MemoryDevice;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device whose reads and writes fail from some number on.
pub struct Failing {
    below: Arc<MemoryDevice>,
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Failing {
    /// So many reads and writes of `below` work.
    pub fn after(reads: u64, writes: u64, below: Arc<MemoryDevice>) -> Self {
        Self { below, reads: AtomicU64::new(reads), writes: AtomicU64::new(writes) }
    }

    /// From now on no write works.
    pub fn stop_writes(&self) {
        self.writes.store(0, Ordering::Relaxed);
    }
}

fn count_down(left: &AtomicU64) -> io::Result<u64> {
    let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    left.map_err(|_| io::Error::other("the device is gone"))
}

impl Device for Failing {
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        count_down(&self.reads)?;
        self.below.read(offset, out)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        count_down(&self.writes)?;
        self.below.write(offset, data)
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn counters(&self) -> Option<DeviceCounters> {
        None
    }
}
