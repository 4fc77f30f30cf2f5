//! Placement by a program that embeds the simulator: decisions for many pages at a time.
//!
//! The device announces the pages of the host writes that it is about to carry out, as far ahead as nothing but these writes can
//! change what is known of them: up to the next trim. The program is asked once for all of them, and once for the valid pages of
//! a victim. What it is told of each page is exact, as if it were asked page by page: the time at which the page is written, and
//! the time of the write before, be that earlier in the same batch. What it keeps itself is as old as the batch: a collection
//! that happens between two writes of a batch is told after all of them were decided.
//!
//! Behind a write buffer or a log, writes come in an order that nobody knows ahead: the program is asked for each alone, with the
//! same answers and at a higher price. O(1) a write, and 16 bytes a logical page in the simulator.

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::memory;
use crate::registry::{Entry, Parameter, SpecError};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "external",
    summary: "decided by the program that embeds the simulator, for many pages at a time",
    paper: "none",
    memory: "16 bytes a logical page, and what the program keeps",
    parameters: &[Parameter::text("class", "a name", "unnamed").help("what the program calls it")],
    build: BuildPlacement::online(|_, context| match &context.external {
        Some(policy) => {
            External::new(policy.clone(), context.logical_pages).map(|made| AnyPlacement::External(Box::new(made)))
        }
        None => Err(SpecError::new(
            "placement.name",
            "\"external\" stands for a placement that a program brings along, and there is none",
            "use it from a program: isotherm.run(trace, placement=MyPlacement) in Python",
        )),
    }),
};

/// Host writes to be placed: columns of equal length, in the order of the writes.
#[derive(Clone, Copy, Debug)]
pub struct WriteBatch<'a> {
    /// Logical pages.
    pub lpns: &'a [u32],
    /// When each was written last, in host page writes; -1 where it holds nothing.
    pub last_writes: &'a [i64],
    /// When each is written, in host page writes.
    pub now: &'a [i64],
}

/// The valid pages of a victim, to be placed.
#[derive(Clone, Copy, Debug)]
pub struct CopyBatch<'a> {
    /// Logical pages, in the order in which they lie in the victim.
    pub lpns: &'a [u32],
    /// When each was written last by the host, in host page writes.
    pub last_writes: &'a [i64],
    /// Host page writes so far.
    pub now: i64,
    /// The victim's stream.
    pub stream: u16,
    /// The victim's stamp (see [`crate::blocks::AgeBase`]), in host page writes.
    pub stamp: u64,
}

/// A placement that decides for many pages at a time.
///
/// # Contract
/// - What is constant (`streams`, `gc_streams`, `copies_to`) stays the same as long as it lives.
/// - Every entry of `streams` is set, below `streams()`.
/// - After an error it is asked nothing more: the device reports it and stops.
pub trait ExternalPlacement: Debug + Send {
    /// See [`Placement::streams`].
    fn streams(&self) -> u16;
    /// See [`Placement::gc_streams`].
    fn gc_streams(&self) -> u16;
    /// See [`Placement::copies_to`].
    fn copies_to(&self) -> Option<u16>;
    /// Called once, before anything is asked: so many logical pages will be placed.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn begin(&mut self, _logical_pages: u32) -> Result<(), String> {
        Ok(())
    }
    /// Chooses the streams of host writes.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn host(&mut self, writes: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String>;
    /// Chooses the streams of copies.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn copies(&mut self, copies: &CopyBatch<'_>, streams: &mut [u16]) -> Result<(), String>;
}

/// A placement that a program brings along. Devices that are cloned share it.
pub type SharedPlacement = Arc<Mutex<dyn ExternalPlacement>>;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct External {
    policy: SharedPlacement,
    streams: u16,
    gc_streams: u16,
    copies_to: Option<StreamId>,
    /// When each page was written last plus one, 0 where it holds nothing: as it is, and as it will be after the writes that
    /// are announced.
    written: Vec<u64>,
    planned: Vec<u64>,
    /// What was decided and has not happened yet.
    writes: VecDeque<(Lpn, StreamId)>,
    copies: VecDeque<StreamId>,
    has_begun: bool,
    failure: Option<String>,
    columns: Columns,
}

/// Room for what is handed over, kept from batch to batch.
#[derive(Clone, Debug, Default)]
struct Columns {
    lpns: Vec<u32>,
    last_writes: Vec<i64>,
    now: Vec<i64>,
    streams: Vec<u16>,
}

impl Columns {
    /// Empties the columns and makes room for the answer to `count` pages.
    fn begin(&mut self, count: usize) {
        self.lpns.clear();
        self.last_writes.clear();
        self.now.clear();
        self.streams.clear();
        self.streams.resize(count, 0);
    }
}

impl External {
    fn new(policy: SharedPlacement, logical_pages: u32) -> Result<Self, SpecError> {
        let (streams, gc_streams, copies_to) = {
            let policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
            (policy.streams(), policy.gc_streams(), policy.copies_to())
        };
        let wrong = |problem: String, fix: &str| Err(SpecError::new("placement.name", problem, fix));
        if streams == 0 || gc_streams == 0 || gc_streams > streams {
            let problem = format!("{gc_streams} of {streams} streams take copies");
            return wrong(problem, "give at least one stream, and one to all of them for copies");
        }
        if let Some(stream) = copies_to.filter(|stream| *stream >= streams) {
            let problem = format!("copies go to stream {stream}, but there are {streams}");
            return wrong(problem, "name a stream below the number of streams");
        }
        Ok(Self {
            policy,
            streams,
            gc_streams,
            copies_to: copies_to.map(StreamId),
            written: memory::zeroed_table(logical_pages as usize),
            planned: memory::zeroed_table(logical_pages as usize),
            writes: VecDeque::new(),
            copies: VecDeque::new(),
            has_begun: false,
            failure: None,
            columns: Columns::default(),
        })
    }

    /// Asks for the columns at hand; `ask` is one of the two questions.
    fn decide(&mut self, ask: impl FnOnce(&mut dyn ExternalPlacement, &mut Columns) -> Result<(), String>) {
        if self.failure.is_some() {
            return;
        }
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = if self.has_begun { Ok(()) } else { policy.begin(self.written.len() as u32) };
        self.has_begun = true;
        let asked = begun.and_then(|()| ask(&mut *policy, &mut self.columns));
        drop(policy);
        let unknown = self.columns.streams.iter().find(|stream| **stream >= self.streams);
        let decided = asked.and(match unknown {
            Some(stream) => Err(format!("it names stream {stream}, but there are {}", self.streams)),
            None => Ok(()),
        });
        if let Err(problem) = decided {
            self.failure = Some(problem);
            self.columns.streams.fill(0);
        }
    }
}

impl Placement for External {
    fn streams(&self) -> u16 {
        self.streams
    }
    fn gc_streams(&self) -> u16 {
        self.gc_streams
    }
    fn wants_batches(&self) -> bool {
        true
    }
    fn announce(&mut self, lpns: &[Lpn], now: u64) {
        // What was announced and did not happen: the device stopped in between.
        for (lpn, _) in self.writes.drain(..) {
            self.planned[lpn.0 as usize] = self.written[lpn.0 as usize];
        }
        self.columns.begin(lpns.len());
        for (lpn, now) in lpns.iter().zip(now..) {
            let last = std::mem::replace(&mut self.planned[lpn.0 as usize], now + 1);
            self.columns.lpns.push(lpn.0);
            self.columns.last_writes.push(last as i64 - 1);
            self.columns.now.push(now as i64);
        }
        if lpns.is_empty() {
            return;
        }
        self.decide(|policy, columns| {
            let Columns { lpns, last_writes, now, streams } = columns;
            policy.host(&WriteBatch { lpns, last_writes, now }, streams)
        });
        self.writes.extend(lpns.iter().copied().zip(self.columns.streams.iter().copied().map(StreamId)));
    }
    fn announce_copies(&mut self, lpns: &[Lpn], now: u64, from: StreamId, stamp: u64) {
        self.copies.clear();
        self.columns.begin(lpns.len());
        self.columns.lpns.extend(lpns.iter().map(|lpn| lpn.0));
        self.columns.last_writes.extend(lpns.iter().map(|lpn| self.written[lpn.0 as usize] as i64 - 1));
        self.decide(|policy, columns| {
            let Columns { lpns, last_writes, streams, .. } = columns;
            policy.copies(&CopyBatch { lpns, last_writes, now: now as i64, stream: from.0, stamp }, streams)
        });
        self.copies.extend(self.columns.streams.iter().copied().map(StreamId));
    }
    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        if self.writes.front().is_none_or(|(lpn, _)| *lpn != write.lpn) {
            self.announce(&[write.lpn], write.now);
        }
        let (_, stream) = self.writes.pop_front().expect("the write was announced");
        self.written[write.lpn.0 as usize] = write.now + 1;
        stream
    }
    fn copies_to(&self) -> Option<StreamId> {
        self.copies_to
    }
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        if self.copies.is_empty() {
            self.announce_copies(&[copy.lpn], copy.now, copy.from, copy.stamp);
        }
        self.copies.pop_front().expect("the copy was announced")
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.written[lpn.0 as usize] = 0;
        self.planned[lpn.0 as usize] = 0;
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        lpns.for_each(|lpn| memory::prefetch(&self.written, lpn.0 as usize));
    }
    fn memory_bytes(&self) -> u64 {
        (self.written.len() + self.planned.len()) as u64 * 8
    }
}
