//! Recordings as text: a line of JSON an event.

use super::{Event, Observer};
use std::io::{self, BufRead, Write};

/// Writes events as they come. A target that fails is told on standard error once, and takes no more: the log goes on.
pub struct Recorder<W: Write> {
    target: Option<W>,
}

impl<W: Write> std::fmt::Debug for Recorder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("is_recording", &self.target.is_some()).finish_non_exhaustive()
    }
}

impl<W: Write> Recorder<W> {
    /// Writes to `target`, which is best buffered: events are many and small. It is flushed at every checkpoint.
    pub fn new(target: W) -> Self {
        Self { target: Some(target) }
    }
}

fn put<W: Write>(target: &mut W, event: &Event) -> io::Result<()> {
    serde_json::to_writer(&mut *target, event)?;
    target.write_all(b"\n")?;
    if matches!(event, Event::Checkpoint { .. }) { target.flush() } else { Ok(()) }
}

impl<W: Write + Send> Observer for Recorder<W> {
    fn on_event(&mut self, event: Event) {
        if let Some(target) = &mut self.target
            && let Err(error) = put(target, &event)
        {
            eprintln!("isotherm: the recording ends here: {error}");
            self.target = None;
        }
    }
}

/// Reads the events of a recording. A last line that is cut off ends it.
pub fn read(source: impl BufRead) -> impl Iterator<Item = io::Result<Event>> {
    let mut lines = source.split(b'\n').peekable();
    std::iter::from_fn(move || {
        let line = match lines.next()? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        match serde_json::from_slice(&line) {
            Ok(event) => Some(Ok(event)),
            // Its writer was killed.
            Err(error) if error.is_eof() && lines.peek().is_none() => None,
            Err(error) => Some(Err(error.into())),
        }
    })
}
