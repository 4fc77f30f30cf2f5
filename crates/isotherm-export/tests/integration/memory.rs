//! An export in memory: the bytes, and which pages were written.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use isotherm_export::{Due, ErrorKind, Export, ExportError, Extent, Zeroes};

/// Bytes of a page; a last one may be shorter.
pub const PAGE_BYTES: usize = 4096;

/// See the module's text.
pub struct Memory {
    content: RwLock<Content>,
    size_bytes: usize,
}

struct Content {
    bytes: Vec<u8>,
    is_written: Vec<bool>,
}

impl Memory {
    /// Zeros, of which nothing was written.
    pub fn new(size_bytes: usize) -> Memory {
        let is_written = vec![false; size_bytes.div_ceil(PAGE_BYTES)];
        Memory { content: RwLock::new(Content { bytes: vec![0; size_bytes], is_written }), size_bytes }
    }

    fn reader(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Export for Memory {
    fn size_bytes(&self) -> u64 {
        self.size_bytes as u64
    }

    fn page_bytes(&self) -> u32 {
        PAGE_BYTES as u32
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<Due, ExportError> {
        let start = offset as usize;
        out.copy_from_slice(&self.reader().bytes[start..start + out.len()]);
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _durable: bool) -> Result<Due, ExportError> {
        let start = offset as usize;
        let end = start + data.len();
        let mut content = self.writer();
        content.bytes[start..end].copy_from_slice(data);
        content.is_written[start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)].fill(true);
        Ok(None)
    }

    fn trim(&self, offset: u64, length: u64, _durable: bool) -> Result<Due, ExportError> {
        let (start, end) = (offset as usize, (offset + length) as usize);
        let mut content = self.writer();
        content.bytes[start..end].fill(0);
        // Pages that lie within the range as a whole. The last page of all may be a short one.
        let last = if end == self.size_bytes { end.div_ceil(PAGE_BYTES) } else { end / PAGE_BYTES };
        if let Some(pages) = content.is_written.get_mut(start.div_ceil(PAGE_BYTES)..last) {
            pages.fill(false);
        }
        Ok(None)
    }

    fn write_zeroes(&self, offset: u64, length: u64, how: Zeroes, durable: bool) -> Result<Due, ExportError> {
        if how.may_trim {
            return self.trim(offset, length, durable);
        }
        if how.fast_only {
            let message = "zeros that keep their room take as long as a write".into();
            return Err(ExportError { kind: ErrorKind::Unsupported, message });
        }
        let (start, end) = (offset as usize, (offset + length) as usize);
        let mut content = self.writer();
        content.bytes[start..end].fill(0);
        content.is_written[start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)].fill(true);
        Ok(None)
    }

    fn flush(&self) -> Result<Due, ExportError> {
        Ok(None)
    }

    fn extents(&self, offset: u64, length: u64, most: usize) -> Result<Vec<Extent>, ExportError> {
        let (content, end) = (self.reader(), offset + length);
        let (mut extents, mut at) = (Vec::<Extent>::new(), offset);
        while at < end {
            let page = at as usize / PAGE_BYTES;
            let next = end.min((page as u64 + 1) * PAGE_BYTES as u64);
            let is_data = content.is_written[page];
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
