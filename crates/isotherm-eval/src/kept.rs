//! A trace that was decoded once is read from memory from then on: a comparison reads it many times.
//!
//! The first reader that reaches the end leaves its requests behind, 32 bytes each, where they are few enough. Synthetic
//! workloads are not kept: making them costs no more than reading them from memory.

use isotherm::request::Request;
use isotherm_trace::{LeadingTrims, TraceError, TraceReader};
use std::sync::{Arc, OnceLock};

/// Requests that are kept of one trace at most: 512 MiB.
const REQUESTS_MAX: usize = 16 << 20;

/// Requests that are read at a time.
pub(crate) const BATCH: usize = 4096;

/// What the first pass over a trace leaves behind; `None` for a trace that is too long. Clones share it.
pub(crate) type Slot = Arc<OnceLock<Option<Arc<Kept>>>>;

/// A decoded trace.
#[derive(Debug)]
pub(crate) struct Kept {
    requests: Vec<Request>,
    skipped: u64,
    reordered: u64,
    leading_trims: LeadingTrims,
    names_streams: bool,
    format: &'static str,
}

impl Kept {
    /// `requests`, which are all that `reader` read.
    fn of(requests: Vec<Request>, reader: &dyn TraceReader) -> Self {
        Self {
            requests,
            skipped: reader.skipped(),
            reordered: reader.reordered(),
            leading_trims: reader.leading_trims(),
            names_streams: reader.names_streams(),
            format: reader.format(),
        }
    }
}

/// Whether a trace is in memory.
pub(crate) fn is_there(slot: &Slot) -> bool {
    matches!(slot.get(), Some(Some(_)))
}

/// A trace as `reader` reads it, kept whatever its length.
pub(crate) fn read(reader: &mut (dyn TraceReader + Send)) -> Result<Slot, TraceError> {
    let mut requests = Vec::new();
    while reader.fill(&mut requests, BATCH)? > 0 {}
    Ok(Arc::new(OnceLock::from(Some(Arc::new(Kept::of(requests, reader))))))
}

/// Opens a trace: from memory where it was kept, else by `open`, keeping what is read.
pub(crate) fn open(
    slot: &Slot,
    open: impl FnOnce() -> Result<Box<dyn TraceReader + Send>, TraceError>,
) -> Result<Box<dyn TraceReader + Send>, TraceError> {
    Ok(match slot.get() {
        Some(Some(kept)) => Box::new(FromMemory { kept: kept.clone(), at: 0 }),
        Some(None) => open()?,
        None => Box::new(Keeping { inner: open()?, requests: Vec::new(), slot: slot.clone() }),
    })
}

/// A reader that keeps what it reads.
struct Keeping {
    inner: Box<dyn TraceReader + Send>,
    requests: Vec<Request>,
    slot: Slot,
}

impl TraceReader for Keeping {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        let count = self.inner.fill(batch, most)?;
        if self.slot.get().is_some() {
            return Ok(count);
        }
        if self.requests.len() + count > REQUESTS_MAX {
            self.requests = Vec::new();
            // Another reader may have been faster, with the same result.
            let _ = self.slot.set(None);
        } else if count > 0 || most == 0 {
            self.requests.extend_from_slice(&batch[before..]);
        } else {
            let kept = Kept::of(std::mem::take(&mut self.requests), &*self.inner);
            let _ = self.slot.set(Some(Arc::new(kept)));
        }
        Ok(count)
    }

    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }

    fn reordered(&self) -> u64 {
        self.inner.reordered()
    }

    fn leading_trims(&self) -> LeadingTrims {
        self.inner.leading_trims()
    }

    fn names_streams(&self) -> bool {
        self.inner.names_streams()
    }

    fn format(&self) -> &'static str {
        self.inner.format()
    }
}

/// A reader of a decoded trace.
struct FromMemory {
    kept: Arc<Kept>,
    at: usize,
}

impl TraceReader for FromMemory {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let rest = &self.kept.requests[self.at..];
        let some = &rest[..rest.len().min(most)];
        batch.extend_from_slice(some);
        self.at += some.len();
        Ok(some.len())
    }

    fn skipped(&self) -> u64 {
        self.kept.skipped
    }

    fn reordered(&self) -> u64 {
        self.kept.reordered
    }

    fn leading_trims(&self) -> LeadingTrims {
        self.kept.leading_trims
    }

    fn names_streams(&self) -> bool {
        self.kept.names_streams
    }

    fn format(&self) -> &'static str {
        self.kept.format
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_trace::OpenOptions;
    use std::io::Write as _;

    #[test]
    fn the_second_reader_gives_the_same_though_the_file_is_gone() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let rows: String = (0..10_000).map(|i| format!("{i},W,{},4096\n", i % 77 * 4096)).collect();
        write!(file, "ts_ns,op,offset,length\n0,D,0,1073741824\n{rows}not a row\n").unwrap();
        let name = file.path().to_str().unwrap().to_owned();
        let options = OpenOptions { skip_bad: 1, drop_leading_trims: true, ..OpenOptions::default() };
        let slot = Slot::default();
        let read = |most| {
            let mut reader = open(&slot, || isotherm_trace::open(&name, &options)).unwrap();
            let mut requests = Vec::new();
            while reader.fill(&mut requests, most).unwrap() > 0 {}
            (requests, reader.skipped(), reader.leading_trims(), reader.format())
        };
        let first = read(1000);
        assert_eq!((first.0.len(), first.1, first.2.requests), (10_000, 1, 1));
        file.close().unwrap();
        assert_eq!(read(777), first);
    }
}
