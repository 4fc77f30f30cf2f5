//! The write stream of a trace, page by page.

use isotherm::address::{Lpn, MAX_PAGES};
use isotherm::build::check_page_size;
use isotherm::quantity::ByteSize;
use isotherm::request::{Op, Request};

use crate::error::EvalError;
use crate::source::{BATCH, TraceSource};

/// The writes of a trace in order, one entry for each page that each request touches (4 bytes each).
#[derive(Clone, Debug)]
pub struct PageWrites {
    /// The pages written.
    pub lpns: Vec<Lpn>,
    /// Pages from address 0 to the end of the last write.
    pub logical_pages: u32,
    /// Page size.
    pub page_bytes: u64,
}

impl PageWrites {
    /// Reads all writes of `source`.
    ///
    /// # Errors
    /// The trace cannot be read, reaches too far, or has no write; the page size is not a power of two in 512 B..=16 MiB.
    pub fn read(source: &TraceSource, page_size: ByteSize) -> Result<Self, EvalError> {
        let page_bytes = page_size.0;
        check_page_size(page_bytes)?;
        let mut reader = source.open()?;
        let mut writes = Self { lpns: Vec::new(), logical_pages: 0, page_bytes };
        let mut batch = Vec::with_capacity(BATCH);
        while reader.fill(&mut batch, BATCH)? > 0 {
            for request in batch.drain(..).filter(|request| request.op == Op::Write) {
                writes.push(&source.name, &request)?;
            }
        }
        if writes.lpns.is_empty() {
            return Err(EvalError::NoWrites { trace: source.name.clone() });
        }
        Ok(writes)
    }

    /// Appends the pages that a write request touches.
    fn push(&mut self, trace: &str, request: &Request) -> Result<(), EvalError> {
        if request.length == 0 {
            return Ok(());
        }
        let end_bytes = request.offset + request.length;
        let (first, end) = (request.offset / self.page_bytes, end_bytes.div_ceil(self.page_bytes));
        if end > u64::from(MAX_PAGES) {
            return Err(EvalError::TooFar { trace: trace.to_owned(), end_bytes, page_bytes: self.page_bytes });
        }
        self.lpns.extend((first as u32..end as u32).map(Lpn));
        self.logical_pages = self.logical_pages.max(end as u32);
        Ok(())
    }
}
