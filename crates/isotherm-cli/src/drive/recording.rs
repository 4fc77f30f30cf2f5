//! The trace of what a drive served.

use anyhow::Context as _;
use isotherm::request::Request;
use isotherm_drive::Recorder;
use isotherm_trace::{TraceError, TraceLog, TraceWriter};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests that wake the writer.
const BATCH: usize = 4096;
/// Requests that wait for it. A drive whose writer is slower waits.
const WAITING_MAX: usize = 1 << 18;
/// How old a request may be that a crash of this process takes.
const PIECE_EVERY: Duration = Duration::from_secs(1);

/// A trace that is being written.
pub struct Recording {
    writer: JoinHandle<anyhow::Result<(Trace, u64)>>,
}

/// A trace that grows, or in a form that is whole or nothing.
enum Trace {
    Log(TraceLog),
    Whole(Box<TraceWriter>),
}

impl Recording {
    /// Begins a trace at `path`, with a column that says who asks where there are several handles.
    ///
    /// # Errors
    /// A name whose ending is no form of trace, or a file that cannot be made.
    pub fn begin(path: &Path, has_handles: bool) -> anyhow::Result<(Self, Recorder)> {
        let name = path.to_str().with_context(|| format!("{}: the name is not UTF-8", path.display()))?;
        let trace = match TraceLog::create(name, has_handles)? {
            Some(log) => Trace::Log(log),
            None if has_handles => Trace::Whole(Box::new(TraceWriter::create(name, false)?.with_streams()?)),
            None => Trace::Whole(Box::new(TraceWriter::create(name, false)?)),
        };
        let queue = Arc::new(Queue::default());
        let sender = Sender(queue.clone());
        let writer = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || write(trace, &queue))?;
        Ok((Self { writer }, Box::new(move |request| sender.put(request))))
    }

    /// Ends the trace once the drive has let its recorder go. Returns the number of requests.
    ///
    /// # Errors
    /// The trace could not be written.
    pub fn finish(self) -> anyhow::Result<u64> {
        match self.end()? {
            (Trace::Whole(writer), requests) => writer.finish().map(|()| requests).map_err(Into::into),
            (Trace::Log(_), requests) => Ok(requests),
        }
    }

    /// Takes the trace away, once the recorder has gone: nothing was served.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn discard(self) -> anyhow::Result<()> {
        match self.end()? {
            (Trace::Log(log), _) => log.discard().map_err(Into::into),
            (Trace::Whole(_), _) => Ok(()),
        }
    }

    fn end(self) -> anyhow::Result<(Trace, u64)> {
        self.writer.join().map_err(|_| anyhow::anyhow!("the recorder failed"))?
    }
}

/// Requests on their way to the writer.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// There is a batch, or nothing comes any more.
    filled: Condvar,
    /// There is room again.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Request>,
    /// The drive has let its recorder go.
    is_over: bool,
    /// The writer has failed: what comes is dropped, and the end tells.
    has_failed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is there, once it is a batch or `patience` is over, in exchange for an empty list; whether more may come.
    fn take(&self, patience: Duration, batch: &mut Vec<Request>) -> bool {
        let is_small = |state: &mut State| state.waiting.len() < BATCH && !state.is_over;
        let waited = self.filled.wait_timeout_while(self.lock(), patience, is_small);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.waiting, batch);
        self.emptied.notify_all();
        !state.is_over
    }
}

/// The end of the queue that the drive holds.
struct Sender(Arc<Queue>);

impl Sender {
    fn put(&self, request: &Request) {
        let mut state = self.0.lock();
        while state.waiting.len() >= WAITING_MAX && !state.has_failed {
            state = self.0.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_failed {
            return;
        }
        state.waiting.push(*request);
        if state.waiting.len().is_multiple_of(BATCH) {
            self.0.filled.notify_one();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.filled.notify_one();
    }
}

fn write(mut trace: Trace, queue: &Queue) -> anyhow::Result<(Trace, u64)> {
    let written = trace.write_all(queue);
    let mut state = queue.lock();
    state.has_failed = written.is_err();
    state.waiting.clear();
    queue.emptied.notify_all();
    Ok((trace, written?))
}

impl Trace {
    /// Writes what comes until nothing does any more; how many requests that were.
    fn write_all(&mut self, queue: &Queue) -> Result<u64, TraceError> {
        let (mut requests, mut batch) = (0, Vec::new());
        let mut next_piece = Instant::now() + PIECE_EVERY;
        loop {
            let goes_on = queue.take(next_piece.saturating_duration_since(Instant::now()), &mut batch);
            requests += batch.len() as u64;
            match self {
                Self::Log(log) => {
                    log.write(&batch)?;
                    if !goes_on || Instant::now() >= next_piece {
                        log.flush()?;
                        next_piece = Instant::now() + PIECE_EVERY;
                    }
                }
                Self::Whole(writer) => writer.write(&batch)?,
            }
            batch.clear();
            if !goes_on {
                return Ok(requests);
            }
        }
    }
}
