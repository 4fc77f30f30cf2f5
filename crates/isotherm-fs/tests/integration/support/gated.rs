//! A device whose flushes wait until they are let through.

use isotherm_fs::device::{Device, DeviceCounters};
use isotherm_fs::memory_device::MemoryDevice;
use std::io;
use std::sync::{Arc, Condvar, Mutex};

#[derive(Default)]
struct Gate {
    is_closed: bool,
    fails: bool,
    /// Flushes that have come, and those that were let through a closed gate.
    come: u64,
    let_through: u64,
}

/// See the module's text.
pub struct Gated {
    below: Arc<MemoryDevice>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    /// Every flush passes.
    pub fn over(below: Arc<MemoryDevice>) -> Self {
        Self { below, gate: Mutex::default(), changed: Condvar::new() }
    }

    fn change(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.gate.lock().expect("no panic"));
        self.changed.notify_all();
    }

    /// From now on flushes wait, and are counted from one on.
    pub fn close(&self) {
        self.change(|gate| (gate.is_closed, gate.come, gate.let_through) = (true, 0, 0));
    }

    /// Lets the next flush through.
    pub fn let_one_through(&self) {
        self.change(|gate| gate.let_through += 1);
    }

    /// All flushes pass from now on; those that fail lose nothing.
    pub fn open(&self, fails: bool) {
        self.change(|gate| (gate.is_closed, gate.fails) = (false, fails));
    }

    /// Until so many flushes have come.
    pub fn wait_for(&self, flushes: u64) {
        let gate = self.gate.lock().expect("no panic");
        drop(self.changed.wait_while(gate, |gate| gate.come < flushes).expect("no panic"));
    }
}

impl Device for Gated {
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.below.read(offset, out)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.below.write(offset, data)
    }
    fn flush(&self) -> io::Result<()> {
        let mut gate = self.gate.lock().expect("no panic");
        gate.come += 1;
        let number = gate.come;
        self.changed.notify_all();
        let waited = self.changed.wait_while(gate, |gate| gate.is_closed && gate.let_through < number);
        if waited.expect("no panic").fails { Err(io::Error::other("not flushed")) } else { Ok(()) }
    }
    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn counters(&self) -> Option<DeviceCounters> {
        None
    }
}
