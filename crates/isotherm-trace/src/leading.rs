//! The discard at the head of a trace.
//!
//! A capture that begins with mkfs begins with a discard of the whole device. Replayed on a drive that was preconditioned, it
//! would undo the preconditioning, and what follows would run on a drive that is mostly empty. So trims at the head can be
//! dropped: those that come while at most [`HEAD_WRITTEN_BYTES`] have been written, and that are at least
//! [`TIMES_WRITTEN`] times as long as all that was written before them (every trim before the first write is).

use crate::TraceReader;
use crate::error::TraceError;
use isotherm::request::{Op, Request};

/// The head of a trace ends when more than this was written. mkfs may wipe a few old signatures before it discards.
const HEAD_WRITTEN_BYTES: u64 = 1 << 20;
/// A trim of the head is at least so many times as long as what was written before it: it was not meant for that.
const TIMES_WRITTEN: u64 = 16;

/// Trims at the head of a trace that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeadingTrims {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

/// A reader that drops the trims at its head.
pub(crate) struct WithoutLeadingTrims {
    inner: Box<dyn TraceReader + Send>,
    written_bytes: u64,
    dropped: LeadingTrims,
}

impl WithoutLeadingTrims {
    pub(crate) fn new(inner: Box<dyn TraceReader + Send>) -> Self {
        Self { inner, written_bytes: 0, dropped: LeadingTrims::default() }
    }

    /// Whether to drop `request`, which is the next one.
    fn drops(&mut self, request: &Request) -> bool {
        let is_leading =
            self.written_bytes <= HEAD_WRITTEN_BYTES && request.length / TIMES_WRITTEN >= self.written_bytes;
        match request.op {
            Op::Write => self.written_bytes += request.length,
            Op::Trim if is_leading => {
                self.dropped.requests += 1;
                self.dropped.bytes += request.length;
                return true;
            }
            _ => {}
        }
        false
    }
}

impl TraceReader for WithoutLeadingTrims {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        loop {
            let before = batch.len();
            let read = self.inner.fill(batch, most)?;
            if self.written_bytes <= HEAD_WRITTEN_BYTES {
                let mut at = 0;
                batch.retain(|request| {
                    at += 1;
                    at <= before || !self.drops(request)
                });
            }
            // A batch of nothing but leading trims is not the end.
            let kept = batch.len() - before;
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }

    fn reordered(&self) -> u64 {
        self.inner.reordered()
    }

    fn leading_trims(&self) -> LeadingTrims {
        self.dropped
    }

    fn format(&self) -> &'static str {
        self.inner.format()
    }
}

#[cfg(test)]
mod tests {
    use crate::{LeadingTrims, OpenOptions, Request, open_bytes};
    use std::sync::Arc;

    fn read(text: &str, drop_leading_trims: bool, most: usize) -> (Vec<Request>, LeadingTrims) {
        let options = OpenOptions { drop_leading_trims, ..OpenOptions::default() };
        let bytes: Arc<[u8]> = format!("ts_ns,op,offset,length\n{text}").into_bytes().into();
        let mut reader = open_bytes("head.csv", bytes, &options).unwrap();
        let mut requests = Vec::new();
        while reader.fill(&mut requests, most).unwrap() > 0 {}
        (requests, reader.leading_trims())
    }

    #[test]
    fn trims_before_the_first_write_go_and_later_ones_stay() {
        let text = "0,R,0,4096\n1,D,0,4096\n2,D,0,1073741824\n3,W,0,8192\n4,D,4096,4096\n5,W,0,4096\n";
        for most in [1, 2, 100] {
            let (all, none) = read(text, false, most);
            assert_eq!((all.len(), none), (6, LeadingTrims::default()));
            let (kept, dropped) = read(text, true, most);
            assert_eq!(dropped, LeadingTrims { requests: 2, bytes: (1 << 30) + 4096 });
            assert_eq!(kept, [all[0], all[3], all[4], all[5]]);
        }
    }

    #[test]
    fn a_few_wiped_signatures_do_not_end_the_head() {
        let (_, dropped) = read("0,W,0,4096\n1,D,0,1073741824\n2,W,0,4096\n", true, 10);
        assert_eq!(dropped.requests, 1);
        let (_, dropped) = read("0,W,0,2097152\n1,D,0,1073741824\n2,W,0,4096\n", true, 10);
        assert_eq!(dropped.requests, 0, "a discard after 2 MiB of data is the workload's own");
    }

    #[test]
    fn a_trace_of_trims_alone_ends_without_a_request() {
        assert_eq!(read("0,D,0,4096\n1,D,4096,4096\n", true, 1).0, []);
    }
}
