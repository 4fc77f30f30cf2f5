//! A device that remembers what was written to it, in order, and makes every state that a crash may leave.

use isotherm_fs::device::Device;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;

/// What was done to the device.
#[derive(Clone, Debug)]
pub enum Event {
    Write { offset: u64, data: Arc<[u8]> },
    Discard { offset: u64, length: u64 },
    Flush,
}

/// Sparse content by 4 KiB, shared between states until it is written.
#[derive(Clone, Default, Debug)]
pub struct Content {
    blocks: HashMap<u64, Arc<[u8; 4096]>>,
}

impl Content {
    fn read(&self, offset: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let within = (at % 4096) as usize;
            let count = (4096 - within).min(out.len() - done);
            match self.blocks.get(&(at / 4096)) {
                Some(block) => out[done..done + count].copy_from_slice(&block[within..within + count]),
                None => out[done..done + count].fill(0),
            }
            done += count;
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let within = (at % 4096) as usize;
            let count = (4096 - within).min(data.len() - done);
            let block = self.blocks.entry(at / 4096).or_insert_with(|| Arc::new([0; 4096]));
            Arc::make_mut(block)[within..within + count].copy_from_slice(&data[done..done + count]);
            done += count;
        }
    }

    fn discard(&mut self, offset: u64, length: u64) {
        for block in offset / 4096..(offset + length) / 4096 {
            self.blocks.remove(&block);
        }
    }

    /// Applies an event; of a write only the sectors that `takes` accepts by number.
    pub fn apply(&mut self, event: &Event, mut takes: impl FnMut(usize) -> bool) {
        match event {
            Event::Write { offset, data } => {
                for (number, sector) in data.chunks(SECTOR).enumerate() {
                    if takes(number) {
                        self.write(offset + (number * SECTOR) as u64, sector);
                    }
                }
            }
            Event::Discard { offset, length } => {
                if takes(0) {
                    self.discard(*offset, *length);
                }
            }
            Event::Flush => {}
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct RecordingDevice {
    length: u64,
    state: Mutex<(Content, Vec<Event>)>,
}

impl RecordingDevice {
    /// A device of `length` bytes that holds `content`.
    pub fn new(length: u64, content: Content) -> Self {
        Self { length, state: Mutex::new((content, Vec::new())) }
    }

    /// Events so far.
    pub fn events(&self) -> usize {
        self.state.lock().expect("no panic").1.len()
    }

    /// What it holds, and what led there.
    pub fn parts(&self) -> (Content, Vec<Event>) {
        self.state.lock().expect("no panic").clone()
    }
}

impl Device for RecordingDevice {
    fn length(&self) -> u64 {
        self.length
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.state.lock().expect("no panic").0.read(offset, out);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        assert!(offset + data.len() as u64 <= self.length, "a write beyond the end");
        let mut state = self.state.lock().expect("no panic");
        state.0.write(offset, data);
        state.1.push(Event::Write { offset, data: data.into() });
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        self.state.lock().expect("no panic").1.push(Event::Flush);
        Ok(())
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.state.lock().expect("no panic");
        state.0.discard(offset, length);
        state.1.push(Event::Discard { offset, length });
        Ok(())
    }
    fn counters(&self) -> Option<isotherm_fs::device::DeviceCounters> {
        None
    }
}
