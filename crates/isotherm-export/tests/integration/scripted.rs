//! An export in memory that remembers what it was asked for, and answers by a script.

use std::sync::{Arc, Mutex};

use isotherm_export::{Due, ErrorKind, Export, ExportError, Extent, Zeroes};

use crate::memory::Memory;

/// What an export was asked for: offset, length, durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Read(u64, u64),
    Write(u64, u64, bool),
    Trim(u64, u64, bool),
    Zeroes(u64, u64, Zeroes, bool),
    Flush,
    Extents(u64, u64, usize),
}

type Script = dyn Fn(Call) -> Result<Due, ExportError> + Send + Sync;

/// See the module's text.
pub struct Scripted {
    pub memory: Memory,
    calls: Mutex<Vec<Call>>,
    script: Box<Script>,
}

impl Scripted {
    /// The script is asked after each request was carried out, and its answer is the request's.
    pub fn new(
        size_bytes: usize,
        script: impl Fn(Call) -> Result<Due, ExportError> + Send + Sync + 'static,
    ) -> Arc<Scripted> {
        Arc::new(Scripted { memory: Memory::new(size_bytes), calls: Mutex::default(), script: Box::new(script) })
    }

    /// What was asked for since the last time.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn done(&self, call: Call) -> Result<Due, ExportError> {
        self.calls.lock().unwrap().push(call);
        (self.script)(call)
    }
}

impl Export for Scripted {
    fn size_bytes(&self) -> u64 {
        self.memory.size_bytes()
    }

    fn page_bytes(&self) -> u32 {
        self.memory.page_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        self.memory.read(offset, out)?;
        self.done(Call::Read(offset, out.len() as u64))
    }

    fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<Due, ExportError> {
        self.memory.write(offset, data, durable)?;
        self.done(Call::Write(offset, data.len() as u64, durable))
    }

    fn trim(&self, offset: u64, length: u64, durable: bool) -> Result<Due, ExportError> {
        self.memory.trim(offset, length, durable)?;
        self.done(Call::Trim(offset, length, durable))
    }

    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError> {
        self.memory.write_zeroes(offset, length, how, durable)?;
        self.done(Call::Zeroes(offset, length, how, durable))
    }

    fn flush(&self) -> Result<Due, ExportError> {
        self.done(Call::Flush)
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        self.done(Call::Extents(offset, length, most))?;
        self.memory.extents(offset, length, most)
    }
}

/// An error of a kind.
pub fn error(kind: ErrorKind) -> ExportError {
    ExportError { kind, message: format!("scripted: {kind:?}") }
}
