//! A disk in memory that writes down everything that is done to it, and makes of it every state that a crash may leave.

use isotherm::random::Random;
use isotherm_drive::image::{Disk, SECTOR_BYTES};
use std::io;
use std::sync::{Arc, Mutex};

/// One thing done to a disk.
#[derive(Clone)]
pub enum Step {
    Write { offset: u64, data: Vec<u8> },
    Punch { offset: u64, length: u64 },
    Sync,
}

/// See the module's text.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    bytes: Vec<u8>,
    steps: Vec<Step>,
    keeps_steps: bool,
}

impl Journal {
    /// A disk that holds `bytes`.
    pub fn new(bytes: Vec<u8>) -> Self {
        let inner = Inner { bytes, steps: Vec::new(), keeps_steps: true };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// A disk that only holds bytes.
    pub fn without_steps(bytes: Vec<u8>) -> Self {
        let journal = Self::new(bytes);
        journal.inner.lock().unwrap().keeps_steps = false;
        journal
    }

    /// Everything done so far.
    pub fn steps(&self) -> Vec<Step> {
        self.inner.lock().unwrap().steps.clone()
    }

    /// How much was done so far.
    pub fn step_count(&self) -> usize {
        self.inner.lock().unwrap().steps.len()
    }

    /// What the disk holds.
    pub fn bytes(&self) -> Vec<u8> {
        self.inner.lock().unwrap().bytes.clone()
    }

    /// Changes what the disk holds.
    pub fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.inner.lock().unwrap().bytes);
    }
}

/// Does a step to `bytes`.
pub fn apply(bytes: &mut [u8], step: &Step) {
    match step {
        Step::Write { offset, data } => bytes[*offset as usize..][..data.len()].copy_from_slice(data),
        Step::Punch { offset, length } => bytes[*offset as usize..(*offset + *length) as usize].fill(0),
        Step::Sync => {}
    }
}

/// Does a part of a step: each sector of it with a chance of one half.
pub fn apply_torn(bytes: &mut [u8], step: &Step, random: &mut Random) {
    let (start, length) = match step {
        Step::Write { offset, data } => (*offset, data.len() as u64),
        Step::Punch { offset, length } => (*offset, *length),
        Step::Sync => return,
    };
    let mut at = start;
    while at < start + length {
        let end = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(start + length);
        if random.below(2) == 0 {
            let sector = &mut bytes[at as usize..end as usize];
            match step {
                Step::Write { data, .. } => {
                    sector.copy_from_slice(&data[(at - start) as usize..(end - start) as usize])
                }
                _ => sector.fill(0),
            }
        }
        at = end;
    }
}

impl Disk for Journal {
    fn length(&self) -> io::Result<u64> {
        Ok(self.inner.lock().unwrap().bytes.len() as u64)
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner.lock().unwrap();
        out.copy_from_slice(&inner.bytes[offset as usize..][..out.len()]);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.put(Step::Write { offset, data: data.to_vec() });
        Ok(())
    }
    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.put(Step::Punch { offset, length });
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.put(Step::Sync);
        Ok(())
    }
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }
}

impl Journal {
    fn put(&self, step: Step) {
        let inner = &mut *self.inner.lock().unwrap();
        apply(&mut inner.bytes, &step);
        if inner.keeps_steps {
            inner.steps.push(step);
        }
    }
}
