//! One reader for all text formats: lines in, requests out; a format only says how one line reads.

use crate::error::{Place, TraceError};
use crate::formats::csv::SHAPE;
use crate::lines::{BYTE_ORDER_MARK, LINE_BYTES_MAX, LineError, Lines};
use crate::options::{OpenOptions, TimeUnit};
use crate::records::{Records, Setup};
use crate::row::{Excerpt, Fault, Row, Separator};
use crate::sink::Sink;
use crate::source::Stream;
use crate::volumes::Volumes;
use isotherm::request::Request;

/// How one line of a format reads.
///
/// # Contract
/// - [`parse`](LineFormat::parse) pushes the line's requests (none for lines that are not requests, such as summaries).
/// - It allocates nothing unless the line is wrong.
pub(crate) trait LineFormat: Send + Sized + 'static {
    /// How fields are told apart.
    const SEPARATOR: Separator;
    /// A parser for one file.
    fn new(options: &OpenOptions) -> Self;
    /// Whether the first line of a file is a heading.
    fn is_header(&mut self, _line: &[u8]) -> bool {
        false
    }
    /// Reads one line.
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>>;
    /// Whether the lines so far have a column that says who asks.
    fn names_streams(&self) -> bool {
        false
    }
    /// Why a trace in which every line was read may still have no requests.
    fn why_empty(&self) -> Option<(String, String)> {
        None
    }
}

/// Reads a text format.
pub(crate) struct TextReader<F> {
    lines: Lines,
    format: F,
    setup: Setup,
    skipped: u64,
    latest_ns: u64,
    /// The file was cut off, and this was counted as a row that cannot be read: nothing more comes.
    is_over: bool,
}

/// Opens a text format: the function that the registry names.
pub(crate) fn open<F: LineFormat>(stream: Stream, setup: Setup, options: &OpenOptions) -> Box<dyn Records> {
    let (lines, format) = (Lines::new(stream), F::new(options));
    Box::new(TextReader { lines, format, setup, skipped: 0, latest_ns: 0, is_over: false })
}

/// How many of the first lines of a file a format can read: the function by which formats are detected.
pub(crate) fn recognise<F: LineFormat>(head: &[u8], options: &OpenOptions) -> usize {
    // With a unit, so that times may have fractions: what is wrong with them is told once the file is read.
    let unit = options.time_unit.unwrap_or(TimeUnit::Ns);
    let mut format = F::new(&OpenOptions { time_unit: Some(unit), ..options.clone() });
    let (mut requests, mut volumes) = (Vec::new(), Volumes::measuring());
    let mut understood = 0;
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    for (number, line) in head.split(|&b| b == b'\n').take(64).enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut sink =
            Sink { requests: &mut requests, volumes: &mut volumes, source: None, durable: false, not_before_ns: 0 };
        let header = number == 0 && format.is_header(line);
        let readable = header || !line.is_empty() && format.parse(&mut Row::new(line, F::SEPARATOR), &mut sink).is_ok();
        understood += usize::from(readable);
    }
    understood
}

/// A line of names, or a comment: no line of a trace lacks numbers.
fn looks_like_heading(line: &[u8]) -> bool {
    line.starts_with(b"#") || !line.iter().any(u8::is_ascii_digit)
}

impl<F: LineFormat> TextReader<F> {
    /// Counts a row that cannot be read, or gives up.
    #[cold]
    fn bad_row(&mut self, fault: Fault, column: u32) -> Result<(), TraceError> {
        if self.skipped < self.setup.skip_bad {
            self.skipped += 1;
            return Ok(());
        }
        let problem = match self.skipped {
            0 => fault.problem,
            skipped => format!("{} (and {skipped} rows before were skipped)", fault.problem),
        };
        Err(TraceError::Row {
            path: self.setup.path.clone(),
            place: Place::Line { line: self.lines.number, column },
            field: fault.field.name(),
            problem,
            fix: format!("{} (it is read as {}; --format names another)", fault.fix, self.setup.format),
        })
    }

    /// A first line that cannot be read and looks like a heading is none of the format's own.
    #[cold]
    fn heading(&self, line: &str) -> TraceError {
        TraceError::input(
            &self.setup.path,
            format!("line 1, {line}, is no heading of {}, which the rest is read as", self.setup.format),
            format!("delete it if the columns are right, or convert the trace to {SHAPE}"),
        )
    }

    /// Why there is no next line; nothing where the file was cut off and this is one of the rows that may be skipped.
    #[cold]
    fn line_error(&mut self, error: LineError) -> Result<(), TraceError> {
        Err(match error {
            LineError::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                if self.skipped < self.setup.skip_bad {
                    (self.skipped, self.is_over) = (self.skipped + 1, true);
                    return Ok(());
                }
                TraceError::input(
                    &self.setup.path,
                    format!("it is truncated after line {}", self.lines.number),
                    format!("copy or download it again, or read up to there with --skip-bad {}", self.skipped + 1),
                )
            }
            LineError::Io(source) => self.setup.io_error(source),
            LineError::TooLong => TraceError::input(
                &self.setup.path,
                format!("line {} is longer than {LINE_BYTES_MAX} bytes", self.lines.number + 1),
                "this is not a trace in this format: name the right one with --format",
            ),
        })
    }
}

impl<F: LineFormat> Records for TextReader<F> {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        while batch.len() - before < most && !self.is_over {
            let line = match self.lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.line_error(error)?;
                    break;
                }
            };
            if line.is_empty() {
                continue;
            }
            let taken = batch.len();
            let not_before_ns = if self.setup.refuse_disorder { self.latest_ns } else { 0 };
            let mut row = Row::new(line, F::SEPARATOR);
            let mut sink = Sink {
                requests: &mut *batch,
                volumes: &mut self.setup.volumes,
                source: None,
                durable: false,
                not_before_ns,
            };
            match self.format.parse(&mut row, &mut sink) {
                Ok(()) => self.latest_ns = batch.last().map_or(self.latest_ns, |request| request.arrival_ns),
                Err(fault) => {
                    let (column, header) = (row.column(fault.field), self.format.is_header(line));
                    let other = looks_like_heading(line).then(|| Excerpt(line).to_string());
                    batch.truncate(taken);
                    match other {
                        // Files that were put together have their heading more than once.
                        _ if header => {}
                        _ if self.lines.number > 1 => self.bad_row(*fault, column)?,
                        Some(other) if self.setup.skip_bad == 0 => return Err(self.heading(&other)),
                        Some(_) => {}
                        None => self.bad_row(*fault, column)?,
                    }
                }
            }
        }
        Ok(batch.len() - before)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn names_streams(&self) -> bool {
        self.format.names_streams()
    }

    fn why_empty(&self) -> Option<(String, String)> {
        self.format.why_empty()
    }

    fn into_volumes(self: Box<Self>) -> Volumes {
        self.setup.volumes
    }
}
