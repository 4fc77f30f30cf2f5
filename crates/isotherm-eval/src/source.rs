//! A trace as an experiment sees it: a name, the options to open it with, and what one pass over it tells.

use crate::control::Control;
use crate::error::EvalError;
use crate::fold::TouchedPages;
use crate::kept;
use crate::results::TraceSummary;
use isotherm::build::check_page_size;
use isotherm::request::{Op, Request};
use isotherm_trace::synth::Workload;
use isotherm_trace::{LeadingTrims, OpenOptions, Profile, TraceError, TraceReader};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Requests in a batch: enough to amortise a virtual call and to prefetch ahead, few enough to stay in the second-level cache.
pub const BATCH: usize = kept::BATCH;

/// What a survey depends on: jobs that agree in it may share one.
#[derive(Clone, Debug)]
pub struct SurveyKey {
    /// The trace.
    pub trace: TraceSource,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Whether it must be known which pages are read or written.
    pub touched: bool,
}

impl PartialEq for SurveyKey {
    fn eq(&self, other: &Self) -> bool {
        (&self.trace.name, self.page_bytes, self.touched) == (&other.trace.name, other.page_bytes, other.touched)
    }
}

impl SurveyKey {
    /// One pass over the trace, for what a job needs to know of it.
    ///
    /// # Errors
    /// The trace cannot be read, no page has this size, or its addresses are absurd.
    pub fn survey(&self) -> Result<Survey, EvalError> {
        self.trace.survey(self.page_bytes, self.touched)
    }
}

/// A trace that can be read from its start as often as needed.
#[derive(Clone, Debug)]
pub struct TraceSource {
    /// Path, or `synth:...`.
    pub name: String,
    /// How it is opened.
    pub options: OpenOptions,
    kept: kept::Slot,
    place: Place,
    control: Option<Arc<Control>>,
}

/// Requests that a program holds, in place of a file.
pub trait Requests: Debug + Send + Sync {
    /// Reads them from the first one.
    ///
    /// # Errors
    /// They cannot be read.
    fn open(&self) -> Result<Box<dyn TraceReader + Send>, TraceError>;
    /// A hash of them all.
    fn content(&self) -> u64;
}

/// Where the content of a trace lies.
#[derive(Clone, Debug, Default)]
enum Place {
    /// Where its name says.
    #[default]
    Named,
    /// In another file, such as a copy of what lies elsewhere.
    File(String),
    /// In the program.
    Program(Arc<dyn Requests>),
}

impl TraceSource {
    /// A trace opened with default options, but without the discard of the whole device at its head.
    pub fn new(name: &str) -> Self {
        Self::with_options(name, OpenOptions { drop_leading_trims: true, ..OpenOptions::default() })
    }

    /// A trace opened with these options. They are not to be changed once it was opened.
    pub fn with_options(name: &str, options: OpenOptions) -> Self {
        Self { name: name.to_owned(), options, kept: kept::Slot::default(), place: Place::Named, control: None }
    }

    /// A trace that a program holds; the name stands for it in results, and tells it from others.
    pub fn held(name: &str, requests: Arc<dyn Requests>) -> Self {
        Self { place: Place::Program(requests), ..Self::new(name) }
    }

    /// The same trace, read from the file at `path`.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        Self { place: Place::File(path.to_owned()), ..self }
    }

    /// The same trace, of which reading ends with an error once `control` says stop.
    #[must_use]
    pub fn watched(self, control: Arc<Control>) -> Self {
        Self { control: Some(control), ..self }
    }

    /// Another trace, read as this one is.
    #[must_use]
    pub fn renamed(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.alone() }
    }

    /// The same trace, with nothing in memory that its clones share.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { kept: kept::Slot::default(), ..self }
    }

    /// The same trace, read to its end: it is opened from memory from now on, 32 bytes a request.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn into_memory(self) -> Result<Self, EvalError> {
        let kept = kept::read(&mut *self.open()?)?;
        Ok(Self { kept, ..self })
    }

    /// The requests that a program holds for it.
    pub fn requests(&self) -> Option<&Arc<dyn Requests>> {
        if let Place::Program(requests) = &self.place { Some(requests) } else { None }
    }

    /// Whether it is drawn from a pattern rather than recorded.
    pub fn is_synthetic(&self) -> bool {
        matches!(self.place, Place::Named) && self.name.starts_with("synth:")
    }

    /// The pattern that it is drawn from.
    pub fn pattern(&self) -> Option<Workload> {
        self.name.strip_prefix("synth:").filter(|_| self.is_synthetic()).and_then(|spec| Workload::parse(spec).ok())
    }

    /// Pages of `page_bytes` in the address space of the pattern that it is drawn from.
    pub fn pattern_pages(&self, page_bytes: u64) -> Option<u64> {
        self.pattern().map(|workload| (u64::from(workload.pages()) * workload.page_bytes()).div_ceil(page_bytes))
    }

    /// What it is opened by: its name, or the path of the file that it is read from.
    pub fn path(&self) -> &str {
        if let Place::File(path) = &self.place { path } else { &self.name }
    }

    /// Opens it at its start. A file of up to 16 Mi requests is decoded once: from the first pass that reaches its end, it and
    /// its clones read it from memory.
    ///
    /// # Errors
    /// It cannot be opened or recognised.
    pub fn open(&self) -> Result<Box<dyn TraceReader + Send>, TraceError> {
        self.open_replay(0)
    }

    /// Opens replay number `replay` of it at its start. Each replay of a recorded trace is the same; a pattern is drawn from anew, since
    /// the same draw again and again is a workload with a period, which is cheaper.
    ///
    /// # Errors
    /// It cannot be opened or recognised.
    pub fn open_replay(&self, replay: u64) -> Result<Box<dyn TraceReader + Send>, TraceError> {
        let open = || isotherm_trace::open(self.path(), &self.options);
        let again = if replay > 0 { self.pattern() } else { None };
        let reader: Box<dyn TraceReader + Send> = match (&self.place, again) {
            (_, Some(workload)) => Box::new(workload.reader_of(replay)),
            _ if kept::is_there(&self.kept) => kept::open(&self.kept, open)?,
            (Place::Program(requests), _) => requests.open()?,
            _ if self.is_synthetic() => open()?,
            _ => kept::open(&self.kept, open)?,
        };
        Ok(match &self.control {
            Some(control) => Box::new(Watched { reader, control: control.clone() }),
            None => reader,
        })
    }

    /// Passes every request to `visit`, batch by batch.
    ///
    /// # Errors
    /// The trace cannot be read, or `visit` fails.
    pub fn for_each(&self, visit: impl FnMut(&mut Vec<Request>) -> Result<(), EvalError>) -> Result<(), EvalError> {
        self.for_each_of(0, visit)
    }

    /// The same for replay number `replay`, as [`open_replay`](Self::open_replay) has it.
    ///
    /// # Errors
    /// The trace cannot be read, or `visit` fails.
    pub fn for_each_of(
        &self,
        replay: u64,
        mut visit: impl FnMut(&mut Vec<Request>) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let mut reader = self.open_replay(replay)?;
        let mut batch = Vec::with_capacity(BATCH);
        while reader.fill(&mut batch, BATCH)? > 0 {
            visit(&mut batch)?;
            batch.clear();
        }
        Ok(())
    }

    /// Profiles the trace for people and for results, in pages of `page_bytes`.
    ///
    /// # Errors
    /// The trace cannot be read, or no page has this size.
    pub fn profile(&self, page_bytes: u64) -> Result<Profile, EvalError> {
        check_page_size(page_bytes)?;
        Ok(isotherm_trace::profile_reader(&self.name, &mut *self.open()?, page_bytes)?)
    }

    /// One pass over the trace, for what a run needs to know of it.
    ///
    /// # Errors
    /// The trace cannot be read, no page has this size, or the pages `touched` are asked for and its addresses are absurd.
    pub fn survey(&self, page_bytes: u64, touched: bool) -> Result<Survey, EvalError> {
        check_page_size(page_bytes)?;
        let mut survey = Survey { span_bytes: 0, page_writes: 0, duration_ns: 0, has_writers: false, touched: None };
        let mut touched = touched.then(|| TouchedPages::new(page_bytes));
        self.for_each(|batch| {
            for request in batch.iter() {
                survey.span_bytes = survey.span_bytes.max(request.offset + request.length);
                survey.duration_ns = survey.duration_ns.max(request.arrival_ns);
                survey.page_writes += page_writes(request, page_bytes);
                survey.has_writers |= request.source != 0;
            }
            Ok(touched.as_mut().map_or(Ok(()), |t| t.insert(batch))?)
        })?;
        if let Some(workload) = self.pattern() {
            // What is drawn too seldom to be drawn yet is part of the pattern all the same.
            let length = u64::from(workload.pages()) * workload.page_bytes();
            let all = Request { arrival_ns: 0, offset: 0, length, op: Op::Read, source: 0, durable: false };
            survey.span_bytes = survey.span_bytes.max(length);
            touched.as_mut().map_or(Ok(()), |t| t.insert(&[all]))?;
        }
        if let Some(touched) = &mut touched {
            touched.number();
        }
        survey.touched = touched.map(Arc::new);
        Ok(survey)
    }
}

/// A reader that stops when it is told to.
struct Watched {
    reader: Box<dyn TraceReader + Send>,
    control: Arc<Control>,
}

impl TraceReader for Watched {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        if self.control.stop.load(Ordering::Relaxed) { Err(TraceError::Stopped) } else { self.reader.fill(batch, most) }
    }
    fn skipped(&self) -> u64 {
        self.reader.skipped()
    }
    fn reordered(&self) -> u64 {
        self.reader.reordered()
    }
    fn leading_trims(&self) -> LeadingTrims {
        self.reader.leading_trims()
    }
    fn names_streams(&self) -> bool {
        self.reader.names_streams()
    }
    fn format(&self) -> &'static str {
        self.reader.format()
    }
}

/// Pages that a request touches.
pub fn pages_of(request: &Request, page_bytes: u64) -> u64 {
    if request.length == 0 {
        return 0;
    }
    (request.offset + (request.length - 1)) / page_bytes - request.offset / page_bytes + 1
}

/// Pages that a request writes: all that a write touches, and those of which zeros cover a part.
pub(crate) fn page_writes(request: &Request, page_bytes: u64) -> u64 {
    let touched = pages_of(request, page_bytes);
    match request.op {
        Op::Write => touched,
        Op::WriteZeroes => {
            let end = request.offset + request.length;
            touched - (end / page_bytes).saturating_sub(request.offset.div_ceil(page_bytes))
        }
        Op::Read | Op::Trim | Op::Flush => 0,
    }
}

/// What one pass over a trace tells, as far as a run needs it.
#[derive(Clone)]
pub struct Survey {
    /// One past the last byte touched; of a synthetic workload, past the last of its address space.
    pub span_bytes: u64,
    /// Pages that are written, counted once for each request.
    pub page_writes: u64,
    /// Time of the last arrival.
    pub duration_ns: u64,
    /// Whether requests come from more than one process, stream or volume.
    pub has_writers: bool,
    /// The pages read or written, where that was asked; of a synthetic workload, all of its address space.
    pub touched: Option<Arc<TouchedPages>>,
}

impl From<&Profile> for TraceSummary {
    fn from(profile: &Profile) -> Self {
        Self {
            name: profile.source.clone(),
            format: profile.format.clone(),
            requests: profile.requests,
            reads: profile.reads.requests,
            writes: profile.writes.requests,
            trims: profile.trims.requests,
            flushes: profile.flushes,
            read_bytes: profile.reads.bytes,
            written_bytes: profile.writes.bytes,
            trimmed_bytes: profile.trims.bytes,
            span_bytes: profile.span_bytes,
            footprint_bytes: profile.footprint_pages * profile.page_bytes,
            written_footprint_bytes: profile.written_pages * profile.page_bytes,
            unaligned_share: profile.unaligned_share,
            page_bytes: profile.page_bytes,
            overwrite_factor: profile.overwrite_factor,
            duration_ns: profile.duration_ns,
            skipped_lines: profile.skipped_rows,
            leading_trims_dropped: profile.leading_trims.requests,
            leading_trimmed_bytes_dropped: profile.leading_trims.bytes,
        }
    }
}
