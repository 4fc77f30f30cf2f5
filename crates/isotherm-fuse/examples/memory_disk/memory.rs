//! A sparse disk in memory: what was never written, or was trimmed, takes none.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use isotherm_export::{Due, Export, ExportError, Extent, Zeroes};

/// Bytes that are allocated, locked and given back together.
const CHUNK_BYTES: usize = 1 << 20;
/// What is known to be data or hole.
const PAGE_BYTES: usize = 4096;
const PAGES: usize = CHUNK_BYTES / PAGE_BYTES;

/// A disk in memory. Everything is as durable as it will be at once.
pub struct Memory {
    size_bytes: u64,
    chunks: Vec<RwLock<Chunk>>,
}

/// The bytes of pages without data are zero.
#[derive(Default)]
struct Chunk {
    bytes: Option<Box<[u8]>>,
    has_data: [u64; PAGES / 64],
}

impl Memory {
    /// A disk without data.
    pub fn new(size_bytes: u64) -> Self {
        let chunks = size_bytes.div_ceil(CHUNK_BYTES as u64);
        Self { size_bytes, chunks: (0..chunks).map(|_| RwLock::default()).collect() }
    }

    /// Calls `part` for each chunk that a range touches: the chunk, the first byte within it, and the bytes of the range before.
    fn parts(&self, offset: u64, length: u64, mut part: impl FnMut(&RwLock<Chunk>, usize, usize, usize)) {
        let mut done = 0;
        while done < length {
            let at = offset + done;
            let start = (at % CHUNK_BYTES as u64) as usize;
            let here = ((CHUNK_BYTES - start) as u64).min(length - done);
            part(&self.chunks[(at / CHUNK_BYTES as u64) as usize], start, done as usize, here as usize);
            done += here;
        }
    }
}

impl Chunk {
    fn write(&mut self, start: usize, data: &[u8]) {
        let bytes = self.bytes.get_or_insert_with(|| vec![0; CHUNK_BYTES].into());
        bytes[start..start + data.len()].copy_from_slice(data);
        for page in start / PAGE_BYTES..=(start + data.len() - 1) / PAGE_BYTES {
            self.has_data[page / 64] |= 1 << (page % 64);
        }
    }

    /// Zeroes a range; pages that lie in it become holes.
    fn trim(&mut self, start: usize, length: usize) {
        let Some(bytes) = &mut self.bytes else { return };
        bytes[start..start + length].fill(0);
        for page in start.div_ceil(PAGE_BYTES)..(start + length) / PAGE_BYTES {
            self.has_data[page / 64] &= !(1 << (page % 64));
        }
        if self.has_data == [0; PAGES / 64] {
            self.bytes = None;
        }
    }

    fn page_has_data(&self, page: usize) -> bool {
        self.has_data[page / 64] >> (page % 64) & 1 == 1
    }
}

impl Export for Memory {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn page_bytes(&self) -> u32 {
        PAGE_BYTES as u32
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        self.parts(offset, out.len() as u64, |chunk, start, done, length| {
            let target = &mut out[done..done + length];
            match &reading(chunk).bytes {
                Some(bytes) => target.copy_from_slice(&bytes[start..start + length]),
                None => target.fill(0),
            }
        });
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, ExportError> {
        self.parts(offset, data.len() as u64, |chunk, start, done, length| {
            writing(chunk).write(start, &data[done..done + length]);
        });
        Ok(None)
    }

    fn trim(&self, offset: u64, length: u64, _: bool) -> Result<Due, ExportError> {
        self.parts(offset, length, |chunk, start, _, length| writing(chunk).trim(start, length));
        Ok(None)
    }

    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError> {
        if how.may_trim {
            return self.trim(offset, length, durable);
        }
        let zeros = [0; 16 * PAGE_BYTES];
        self.parts(offset, length, |chunk, start, _, length| {
            let mut chunk = writing(chunk);
            for from in (0..length).step_by(zeros.len()) {
                chunk.write(start + from, &zeros[..zeros.len().min(length - from)]);
            }
        });
        Ok(None)
    }

    fn flush(&self) -> Result<Due, ExportError> {
        Ok(None)
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        let mut extents: Vec<Extent> = Vec::new();
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let chunk = reading(&self.chunks[(at / CHUNK_BYTES as u64) as usize]);
            let is_data = chunk.page_has_data((at % CHUNK_BYTES as u64) as usize / PAGE_BYTES);
            // A chunk without bytes is one hole; else go on page by page.
            let step = if chunk.bytes.is_some() { PAGE_BYTES } else { CHUNK_BYTES } as u64;
            let next = (at / step * step + step).min(end);
            let is_full = extents.len() == most;
            match extents.last_mut() {
                Some(last) if last.is_data == is_data => last.length += next - at,
                _ if is_full => break,
                _ => extents.push(Extent { length: next - at, is_data }),
            }
            at = next;
        }
        Ok(extents)
    }
}

fn reading(chunk: &RwLock<Chunk>) -> RwLockReadGuard<'_, Chunk> {
    chunk.read().expect("a thread panicked while it changed this chunk")
}

fn writing(chunk: &RwLock<Chunk>) -> RwLockWriteGuard<'_, Chunk> {
    chunk.write().expect("a thread panicked while it changed this chunk")
}
