//! A trace as it would be if something about it were changed: a part of it, without its trims or with more of them, with every write
//! tagged.
//!
//! A view reads the trace anew each time; what the trace keeps in memory is shared by all of its views.

use crate::freed::Freed;
use crate::plan::Plan;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm_eval::{Requests, TraceSource};
use isotherm_trace::{LeadingTrims, TraceError, TraceReader};
use std::ops::Range;
use std::sync::Arc;

/// What is changed.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The requests, by number, that are left; all without.
    pub part: Option<Range<u64>>,
    /// Whether discards are dropped.
    pub without_trims: bool,
    /// What is discarded beside that.
    pub freed: Option<Arc<Freed>>,
    /// What says which handle a write goes to.
    pub plan: Option<Arc<Plan>>,
    /// The addresses that are left; all without.
    pub sample: Option<Sample>,
}

/// Addresses drawn by hash: one of several disjoint parts that are alike. Requests are cut to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes that are in or out together.
    pub extent_bytes: u64,
    /// Which part.
    pub index: u64,
    /// Parts in all.
    pub of: u64,
}

impl Sample {
    fn holds(&self, extent: u64) -> bool {
        Random::new(extent).below(self.of) == self.index
    }

    /// Adds what the sample holds of a request.
    fn cut(&self, request: &Request, batch: &mut Vec<Request>) {
        let end = request.offset + request.length;
        let mut at = request.offset;
        while at < end {
            // Neighbours that are in stay one request.
            let mut to = at;
            while to < end && self.holds(to / self.extent_bytes) {
                to = (to / self.extent_bytes + 1) * self.extent_bytes;
            }
            if to > at {
                batch.push(Request { offset: at, length: to.min(end) - at, ..*request });
            }
            at = if to > at { to } else { (at / self.extent_bytes + 1) * self.extent_bytes };
        }
    }
}

impl View {
    /// The trace as it is seen.
    pub fn of(self, trace: &TraceSource) -> TraceSource {
        // What is known of a trace goes by its name: the same pages and writes, the same name.
        let mut name = trace.name.clone();
        if let Some(part) = &self.part {
            name = format!("{name}, requests {} to {}", part.start, part.end);
        }
        if let Some(sample) = &self.sample {
            name = format!("{name}, part {} of {} of its addresses", sample.index + 1, sample.of);
        }
        TraceSource::held(&name, Arc::new(Seen { trace: trace.clone(), view: self }))
    }

    /// Adds what is seen of a request.
    fn put(&self, request: &Request, batch: &mut Vec<Request>) {
        match &self.sample {
            Some(sample) => sample.cut(request, batch),
            None => batch.push(*request),
        }
    }
}

#[derive(Debug)]
struct Seen {
    trace: TraceSource,
    view: View,
}

impl Requests for Seen {
    fn open(&self) -> Result<Box<dyn TraceReader + Send>, TraceError> {
        let part = self.view.part.clone().unwrap_or(0..u64::MAX);
        Ok(Box::new(SeenReader {
            inner: self.trace.open()?,
            view: self.view.clone(),
            part,
            at: 0,
            freed: 0,
            read: Vec::new(),
        }))
    }

    /// A view is never written to a file of results that is resumed: its content has no need of a name.
    fn content(&self) -> u64 {
        0
    }
}

struct SeenReader {
    inner: Box<dyn TraceReader + Send>,
    view: View,
    part: Range<u64>,
    /// Requests of the trace read so far.
    at: u64,
    /// Discards of what is freed that were passed so far.
    freed: usize,
    read: Vec<Request>,
}

impl TraceReader for SeenReader {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        while batch.len() == before && self.at < self.part.end {
            self.read.clear();
            let wanted = (self.part.end - self.at).min(most as u64) as usize;
            if self.inner.fill(&mut self.read, wanted)? == 0 {
                break;
            }
            for request in &mut self.read {
                let at = self.at;
                self.at += 1;
                let is_in = at >= self.part.start;
                if is_in && !(self.view.without_trims && request.op == Op::Trim) {
                    if let Some(plan) = &self.view.plan {
                        request.source = plan.handle(request);
                    }
                    self.view.put(request, batch);
                }
                let Some(freed) = &self.view.freed else { continue };
                let discards = freed.after(self.freed, at);
                self.freed += discards.len();
                for discard in discards.iter().filter(|_| is_in) {
                    let (offset, length) = (discard.offset, discard.length);
                    self.view.put(&Request { op: Op::Trim, offset, length, ..*request }, batch);
                }
            }
        }
        Ok(batch.len() - before)
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

    fn format(&self) -> &'static str {
        self.inner.format()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &TraceSource) -> Vec<Request> {
        let mut all = Vec::new();
        let mut keep = |batch: &mut Vec<Request>| {
            all.append(batch);
            Ok(())
        };
        source.for_each(&mut keep).unwrap();
        all
    }

    #[test]
    fn parts_of_a_trace_make_the_whole() {
        let trace = TraceSource::new("synth:zipf,theta=0.9,pages=512,writes=10000");
        let whole = read(&trace);
        let view = |part| read(&View { part: Some(part), ..View::default() }.of(&trace));
        assert_eq!([view(0..7001), view(7001..10_000)].concat(), whole);
        assert_eq!(view(9990..u64::MAX).len(), 10);
    }

    #[test]
    fn samples_of_the_addresses_are_disjoint_and_cover_them() {
        let trace = TraceSource::new("synth:zipf,theta=0.9,pages=4096,writes=10000,size=4");
        let bytes = |requests: &[Request]| requests.iter().map(|request| request.length).sum::<u64>();
        let whole = bytes(&read(&trace));
        let mut parts = 0;
        for index in 0..4 {
            let sample = Sample { extent_bytes: 8192, index, of: 4 };
            let part = read(&View { sample: Some(sample), ..View::default() }.of(&trace));
            let source = View { sample: Some(sample), ..View::default() }.of(&trace);
            assert_eq!(read(&source.into_memory().unwrap()), part);
            assert!(part.iter().all(|request| {
                (request.offset / 8192..(request.offset + request.length).div_ceil(8192))
                    .all(|extent| sample.holds(extent))
            }));
            parts += bytes(&part);
        }
        assert_eq!(parts, whole);
    }
}
