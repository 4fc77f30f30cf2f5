//! Puts requests in the order of their times, and lets time begin at 0.
//!
//! Logs of several processors or of completions are out of order by a few places. A window of W requests repairs every
//! displacement of up to W places: 2 W requests are held, sorted (in linear time where they are sorted already), and the
//! earlier half is handed out. A request that comes later than that is an error, never a silent step back in time.
//! Requests of equal times keep their order in the file.

use crate::TraceReader;
use crate::error::TraceError;
use crate::records::Records;
use isotherm::request::Request;

/// Requests in order of time, from a decoder's in order of the file.
pub(crate) struct Ordered {
    records: Box<dyn Records>,
    format: &'static str,
    path: String,
    /// Requests looked ahead; `None` where the decoder refuses disorder itself.
    window: Option<usize>,
    /// Requests read and not yet handed out, from `handed` on.
    held: Vec<Request>,
    handed: usize,
    /// How many of `held` may be handed out before more are read.
    settled: usize,
    /// First time of the trace, which becomes 0; `None` keeps the file's times.
    origin_ns: Option<u64>,
    rebase: bool,
    latest_ns: u64,
    reordered: u64,
    delivered: u64,
    finished: bool,
}

impl Ordered {
    /// `window` as in the field; `rebase` lets time begin at 0.
    pub(crate) fn new(
        records: Box<dyn Records>,
        format: &'static str,
        path: &str,
        window: Option<usize>,
        rebase: bool,
    ) -> Self {
        Self {
            records,
            format,
            path: path.to_owned(),
            window,
            held: Vec::new(),
            handed: 0,
            settled: 0,
            origin_ns: None,
            rebase,
            latest_ns: 0,
            reordered: 0,
            delivered: 0,
            finished: false,
        }
    }

    /// Reads until two windows are held or the file ends, and sorts.
    fn settle(&mut self, window: usize) -> Result<(), TraceError> {
        self.held.drain(..self.handed);
        self.handed = 0;
        let goal = window.saturating_mul(2);
        while !self.finished && self.held.len() < goal {
            let most = (goal - self.held.len()).min(1 << 20);
            self.finished = self.records.fill(&mut self.held, most)? == 0;
        }
        // Requests held over are in order already, so each late request is counted once: when it is first held.
        let mut highest_ns = 0;
        let mut late = 0;
        for request in &self.held {
            late += u64::from(request.arrival_ns < highest_ns);
            highest_ns = highest_ns.max(request.arrival_ns);
        }
        if late > 0 {
            self.held.sort_by_key(|request| request.arrival_ns);
            self.reordered += late;
        }
        self.settled = if self.finished { self.held.len() } else { self.held.len() - window };
        match self.held.first() {
            Some(first) if first.arrival_ns < self.latest_ns => Err(TraceError::input(
                &self.path,
                format!(
                    "time runs backwards by {} ns within about {goal} requests of request {}, farther than the sorting \
                     window of {window} requests can repair",
                    self.latest_ns - first.arrival_ns,
                    self.delivered,
                ),
                "sort the whole trace in memory (32 bytes a request) with --sort memory, or widen the window",
            )),
            _ => Ok(()),
        }
    }

    /// Hands out settled requests.
    fn take(&mut self, batch: &mut Vec<Request>, most: usize, window: usize) -> Result<usize, TraceError> {
        if self.handed == self.settled {
            self.settle(window)?;
        }
        let end = self.settled.min(self.handed.saturating_add(most));
        let taken = &self.held[self.handed..end];
        let origin =
            if self.rebase { *self.origin_ns.get_or_insert(taken.first().map_or(0, |r| r.arrival_ns)) } else { 0 };
        batch.extend(taken.iter().map(|request| Request { arrival_ns: request.arrival_ns - origin, ..*request }));
        self.latest_ns = taken.last().map_or(self.latest_ns, |request| request.arrival_ns);
        let count = taken.len();
        self.handed = end;
        Ok(count)
    }

    fn empty(&self) -> TraceError {
        let (problem, fix) = self.records.why_empty().unwrap_or_else(|| match self.records.skipped() {
            0 => (
                "the trace is empty: it has no requests".to_owned(),
                "give a trace with at least one request".to_owned(),
            ),
            skipped => (
                format!("the trace has no requests: all {skipped} rows were skipped"),
                "name the right format with --format".to_owned(),
            ),
        });
        TraceError::Input { path: self.path.clone(), problem, fix }
    }
}

impl TraceReader for Ordered {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        if most == 0 {
            return Ok(0);
        }
        let count = match self.window {
            Some(window) => self.take(batch, most, window)?,
            None => self.records.fill(batch, most)?,
        };
        if count == 0 && self.delivered == 0 {
            return Err(self.empty());
        }
        self.delivered += count as u64;
        Ok(count)
    }

    fn names_streams(&self) -> bool {
        self.records.names_streams()
    }

    fn skipped(&self) -> u64 {
        self.records.skipped()
    }

    fn reordered(&self) -> u64 {
        self.reordered
    }

    fn format(&self) -> &'static str {
        self.format
    }
}
