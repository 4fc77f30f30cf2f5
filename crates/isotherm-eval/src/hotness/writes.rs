//! The write stream of a trace, page by page.

use isotherm::address::{Lpn, MAX_PAGES};
use isotherm::quantity::ByteSize;
use isotherm::registry::SpecError;
use isotherm::request::{Op, Request};
use isotherm_trace::TraceError;

use crate::source::{BATCH, TraceSource};

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HotnessError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A scheme, a reference or an experiment is specified wrongly.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The trace reaches beyond what 30-bit page numbers can address.
    #[error(
        "{trace}: a write ends at byte {end_bytes}, beyond {MAX_PAGES} pages of {page_bytes} bytes; use a larger --page-size"
    )]
    TooLarge {
        /// The trace.
        trace: String,
        /// End of the write.
        end_bytes: u64,
        /// Page size in force.
        page_bytes: u64,
    },
    /// Nothing to judge.
    #[error("{trace}: it has no write; hot data identification looks at writes only, so give a trace with some")]
    NoWrites {
        /// The trace.
        trace: String,
    },
}

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
    pub fn read(source: &TraceSource, page_size: ByteSize) -> Result<Self, HotnessError> {
        let page_bytes = page_size.0;
        if !page_bytes.is_power_of_two() || !(512..=1 << 24).contains(&page_bytes) {
            let problem = format!("{page_bytes} bytes is no page size");
            return Err(SpecError::new("--page-size", problem, "allowed: a power of two, 512 B to 16 MiB").into());
        }
        let mut reader = source.open()?;
        let mut writes = Self { lpns: Vec::new(), logical_pages: 0, page_bytes };
        let mut batch = Vec::with_capacity(BATCH);
        while reader.fill(&mut batch, BATCH)? > 0 {
            for request in batch.drain(..).filter(|request| request.op == Op::Write) {
                writes.push(&source.name, &request)?;
            }
        }
        if writes.lpns.is_empty() {
            return Err(HotnessError::NoWrites { trace: source.name.clone() });
        }
        Ok(writes)
    }

    /// Appends the pages that a write request touches.
    fn push(&mut self, trace: &str, request: &Request) -> Result<(), HotnessError> {
        if request.length == 0 {
            return Ok(());
        }
        let end_bytes = request.offset + request.length;
        let (first, end) = (request.offset / self.page_bytes, end_bytes.div_ceil(self.page_bytes));
        if end > u64::from(MAX_PAGES) {
            return Err(HotnessError::TooLarge { trace: trace.to_owned(), end_bytes, page_bytes: self.page_bytes });
        }
        self.lpns.extend((first as u32..end as u32).map(Lpn));
        self.logical_pages = self.logical_pages.max(end as u32);
        Ok(())
    }
}
