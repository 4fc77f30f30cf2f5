//! A trace that can be read while it grows, and after whoever wrote it was killed: it is written in pieces, each of which is whole.

use crate::error::TraceError;
use crate::formats::csv;
use crate::source::Packing;
use crate::write::{csv_packing, pack, push_csv_line, write_error};
use isotherm::request::Request;
use std::fs::File;
use std::io::Write as _;

/// Bytes of text that are kept back at most.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Appends to one trace in a canonical text form. Its file has its name from the start; [`TraceWriter`](crate::TraceWriter) gives a
/// file its name when it is whole.
pub struct TraceLog {
    path: String,
    file: File,
    packing: Packing,
    lines: Vec<u8>,
    has_streams: bool,
}

impl TraceLog {
    /// Begins a trace at `path`, whose ending chooses the form; `has_streams` adds a column that says who asks. None where the ending
    /// is not `.csv`, `.csv.gz` or `.csv.zst`: other forms do not grow.
    ///
    /// # Errors
    /// A file that is there already, a folder that cannot be written to.
    pub fn create(path: &str, has_streams: bool) -> Result<Option<Self>, TraceError> {
        let Some(packing) = csv_packing(path) else { return Ok(None) };
        let file = File::create_new(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => TraceError::input(path, "it exists already", "choose another name"),
            _ => write_error(path, error),
        })?;
        let header = if has_streams { csv::HEADER_WITH_STREAM } else { csv::HEADER };
        let lines = format!("{header}\n").into_bytes();
        Ok(Some(Self { path: path.to_owned(), file, packing, lines, has_streams }))
    }

    /// Appends requests. What is kept back is written by [`flush`](Self::flush), and where it is a megabyte.
    ///
    /// # Errors
    /// The file cannot be written on.
    pub fn write(&mut self, requests: &[Request]) -> Result<(), TraceError> {
        for request in requests {
            push_csv_line(&mut self.lines, request, self.has_streams);
            if self.lines.len() >= PIECE_BYTES_MAX {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what is kept back as one piece, for the system to keep: a process that is killed loses nothing of it.
    ///
    /// # Errors
    /// The file cannot be written on.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = pack(self.packing, &self.lines).and_then(|piece| self.file.write_all(&piece));
        self.lines.clear();
        written.map_err(|error| write_error(&self.path, error))
    }

    /// Takes the trace away again, as if it had not been begun.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn discard(self) -> Result<(), TraceError> {
        std::fs::remove_file(&self.path).map_err(|error| write_error(&self.path, error))
    }
}
