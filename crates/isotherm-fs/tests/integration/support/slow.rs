//! A device that takes its time.

use isotherm_fs::device::{Device, DeviceCounters};
use isotherm_fs::memory_device::MemoryDevice;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// A device in memory whose writes, flushes and discards take a while each: what others do meanwhile, they do in tests too.
pub struct Slow {
    below: MemoryDevice,
    pause: Duration,
    discards: AtomicU64,
}

impl Slow {
    /// A device of `length` bytes.
    pub fn new(length: u64, pause: Duration) -> Self {
        Self { below: MemoryDevice::new(length), pause, discards: AtomicU64::new(0) }
    }

    /// Ranges that were discarded.
    pub fn discards(&self) -> u64 {
        self.discards.load(Ordering::Relaxed)
    }
}

impl Device for Slow {
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.below.read(offset, out)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        sleep(self.pause);
        self.below.write(offset, data)
    }
    fn flush(&self) -> io::Result<()> {
        sleep(self.pause);
        self.below.flush()
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        sleep(self.pause);
        self.discards.fetch_add(1, Ordering::Relaxed);
        self.below.discard(offset, length)
    }
    fn counters(&self) -> Option<DeviceCounters> {
        self.below.counters()
    }
}
