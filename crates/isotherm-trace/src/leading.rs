//! The discard at the head of a trace.
//!
//! A capture that begins with mkfs begins with a discard of the whole device. Replayed on a drive that was preconditioned, it
//! would undo the preconditioning, and what follows would run on a drive that is mostly empty. So it can be dropped: the trims
//! that come while at most [`HEAD_WRITTEN_BYTES`] have been written, and that are at least [`TIMES_WRITTEN`] times as long as all
//! that was written before them (every trim before the first write is).
//!
//! Kernels cut a long discard into pieces, so that these trims are judged together: they are mkfs's where they cover nearly all
//! that lies between the first and the last byte that the trace reads or writes ([`COVERED_MIN`]). A first trim of less is the
//! workload's own. Whether they do takes a pass over the trace, once a first trim is met; a pipe, which can be read once, has none,
//! and its first trims are taken for mkfs's.

use crate::TraceReader;
use crate::error::TraceError;
use isotherm::request::{Op, Request};

/// The head of a trace ends when more than this was written. mkfs may wipe a few old signatures before it discards.
const HEAD_WRITTEN_BYTES: u64 = 1 << 20;
/// A trim of the head is at least so many times as long as what was written before it: it was not meant for that.
const TIMES_WRITTEN: u64 = 16;

/// Share of the trace's addresses that mkfs's trims cover at least: a partition table or a label may lie outside.
const COVERED_MIN: f64 = 0.95;

/// Trims at the head of a trace that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LeadingTrims {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

/// Opens the trace again.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Box<dyn TraceReader + Send>, TraceError> + Send>;

/// Where the head of a trace ends.
#[derive(Default)]
struct Head {
    written_bytes: u64,
}

impl Head {
    fn is_over(&self) -> bool {
        self.written_bytes > HEAD_WRITTEN_BYTES
    }

    /// Whether `request`, which is the next one, is a discard that mkfs may have made: zeros, where a drive takes these for one, too.
    fn has(&mut self, request: &Request) -> bool {
        let is_leading = !self.is_over() && request.length / TIMES_WRITTEN >= self.written_bytes;
        if request.op == Op::Write {
            self.written_bytes += request.length;
        }
        request.op.discards() && is_leading
    }
}

/// Whether the trims at the head of a trace cover nearly all that it reads or writes.
fn covers(trace: &mut dyn TraceReader) -> Result<bool, TraceError> {
    const BATCH: usize = 4096;
    let (mut head, mut trims) = (Head::default(), Vec::new());
    let (mut used_from, mut used_to) = (u64::MAX, 0);
    let mut batch = Vec::with_capacity(BATCH);
    while trace.fill(&mut batch, BATCH)? > 0 {
        for request in batch.drain(..) {
            let end = request.offset + request.length;
            if head.has(&request) {
                trims.push(request.offset..end);
            } else if matches!(request.op, Op::Read | Op::Write | Op::WriteZeroes) {
                (used_from, used_to) = (used_from.min(request.offset), used_to.max(end));
            }
        }
    }
    trims.sort_unstable_by_key(|trim| trim.start);
    let (mut covered, mut from) = (0, used_from);
    for trim in trims {
        let end = trim.end.min(used_to);
        covered += end.saturating_sub(trim.start.max(from));
        from = from.max(end);
    }
    Ok(covered as f64 >= COVERED_MIN * used_to.saturating_sub(used_from) as f64)
}

/// A reader that drops mkfs's trims at its head.
pub(crate) struct WithoutLeadingTrims {
    inner: Box<dyn TraceReader + Send>,
    head: Head,
    /// Opens the trace again, for a look at what its first trims cover; none where that is known, or it cannot be opened again.
    reopen: Option<Reopen>,
    /// Whether they are mkfs's, as far as is known.
    are_of_mkfs: bool,
    dropped: LeadingTrims,
}

impl WithoutLeadingTrims {
    pub(crate) fn new(inner: Box<dyn TraceReader + Send>, reopen: Option<Reopen>) -> Self {
        Self { inner, head: Head::default(), reopen, are_of_mkfs: true, dropped: LeadingTrims::default() }
    }

    /// Whether to drop `request`, which is the next one.
    fn drops(&mut self, request: &Request) -> Result<bool, TraceError> {
        if !self.head.has(request) {
            return Ok(false);
        }
        if let Some(reopen) = self.reopen.take() {
            self.are_of_mkfs = covers(&mut *reopen()?)?;
        }
        if self.are_of_mkfs {
            self.dropped.requests += 1;
            self.dropped.bytes += request.length;
        }
        Ok(self.are_of_mkfs)
    }
}

impl TraceReader for WithoutLeadingTrims {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        loop {
            let before = batch.len();
            let read = self.inner.fill(batch, most)?;
            if !self.head.is_over() {
                let mut kept = before;
                for at in before..batch.len() {
                    let request = batch[at];
                    if !self.drops(&request)? {
                        batch[kept] = request;
                        kept += 1;
                    }
                }
                batch.truncate(kept);
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

    fn names_streams(&self) -> bool {
        self.inner.names_streams()
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

    /// A discard in pieces, of which none covers half of what is written, is mkfs's; one of half the device is the workload's own.
    #[test]
    fn trims_that_cover_the_whole_span_alone_are_those_of_mkfs() {
        let writes = "9,W,0,4096\n9,R,536870912,4096\n9,W,1073737728,4096\n";
        let dropped = |trims: &str| read(&format!("{trims}{writes}"), true, 2).1.requests;
        assert_eq!(dropped("0,D,0,1073741824\n"), 1);
        assert_eq!(dropped("0,D,0,1069547520\n"), 1, "all but 4 MiB");
        assert_eq!(dropped("0,D,0,536870912\n"), 0);
        assert_eq!(dropped("0,D,536870912,536870912\n"), 0);
        assert_eq!(dropped("0,D,0,4096\n1,D,8192,4096\n"), 0);
        let piece = |at: u64| format!("0,D,{},268435456\n", at << 28);
        assert_eq!(dropped(&[0, 2, 1, 3].map(piece).concat()), 4);
        assert_eq!(dropped(&[0, 2, 1, 1].map(piece).concat()), 0, "a piece twice is not one more");
        // What is trimmed beyond the last byte that is used covers nothing.
        assert_eq!(dropped("0,D,1073741824,8589934592\n"), 0);
    }

    /// Zeros discard as well: a whole device of them is no more the workload's than one that is discarded.
    #[test]
    fn zeros_over_the_whole_span_are_those_of_mkfs() {
        let writes = "9,W,0,4096\n9,W,1073737728,4096\n";
        let dropped = |head: &str| read(&format!("{head}{writes}"), true, 2).1.requests;
        assert_eq!(dropped("0,Z,0,1073741824\n"), 1);
        assert_eq!(dropped("0,Z,0,536870912\n0,D,0,1073741824\n"), 2);
        assert_eq!(dropped("0,Z,0,536870912\n"), 0);
    }

    #[test]
    fn a_trace_of_trims_alone_ends_without_a_request() {
        assert_eq!(read("0,D,0,4096\n1,D,4096,4096\n", true, 1).0, []);
    }
}
