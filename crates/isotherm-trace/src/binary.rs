//! One reader for all binary formats of fixed records, each perhaps followed by a payload that is skipped.

use crate::error::{Place, TraceError};
use crate::options::OpenOptions;
use crate::records::{Records, Setup};
use crate::row::Fault;
use crate::sink::Sink;
use crate::source::Stream;
use crate::volumes::Volumes;
use isotherm::request::Request;
use std::io::{self, BufReader, ErrorKind, Read};

/// What a format that begins with a magic number scores in detection: more than any count of lines.
pub(crate) const MAGIC: usize = usize::MAX;

/// Largest record of any format.
const RECORD_BYTES_MAX: usize = 48;

/// How one record of a format reads.
pub(crate) trait RecordFormat: Send + Sized + 'static {
    /// Size of a record without its payload.
    const RECORD_BYTES: usize;
    /// What detection scores if [`recognise`](RecordFormat::recognise) says yes.
    const SCORE: usize = MAGIC;
    /// A parser for one file.
    fn new(options: &OpenOptions) -> Self;
    /// Whether a file with these first bytes is in this format.
    fn recognise(head: &[u8]) -> bool;
    /// Bytes that follow the record. An error means that the stream of records is lost, and is never skipped.
    fn payload_bytes(&self, _record: &[u8]) -> Result<usize, Box<Fault>> {
        Ok(0)
    }
    /// Reads one record, which is `RECORD_BYTES` long, and pushes its requests.
    fn parse(&mut self, record: &[u8], sink: &mut Sink<'_>) -> Result<(), Box<Fault>>;
    /// Why a trace in which every record was read may still have no requests.
    fn why_empty(&self) -> Option<(String, String)> {
        None
    }
}

/// A little-endian number of a record.
pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

/// A little-endian number of a record.
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from(u16_at(record, at)) | u32::from(u16_at(record, at + 2)) << 16
}

/// A little-endian number of a record.
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}

/// Reads a binary format.
pub(crate) struct BinaryReader<F> {
    stream: BufReader<Stream>,
    format: F,
    setup: Setup,
    skipped: u64,
    latest_ns: u64,
    /// Records and bytes read so far.
    record: u64,
    byte: u64,
}

/// Opens a binary format: the function that the registry names.
pub(crate) fn open<F: RecordFormat>(stream: Stream, setup: Setup, options: &OpenOptions) -> Box<dyn Records> {
    const { assert!(F::RECORD_BYTES <= RECORD_BYTES_MAX) };
    let stream = BufReader::with_capacity(256 << 10, stream);
    Box::new(BinaryReader { stream, format: F::new(options), setup, skipped: 0, latest_ns: 0, record: 0, byte: 0 })
}

/// The function by which formats are detected.
pub(crate) fn recognise<F: RecordFormat>(head: &[u8], _options: &OpenOptions) -> usize {
    if F::recognise(head) { F::SCORE } else { 0 }
}

impl<F: RecordFormat> BinaryReader<F> {
    fn row_error(&self, fault: Fault) -> TraceError {
        TraceError::Row {
            path: self.setup.path.clone(),
            place: Place::Record { record: self.record, byte: self.byte },
            field: fault.field.name(),
            problem: fault.problem,
            fix: fault.fix,
        }
    }

    fn read_error(&self, error: io::Error) -> TraceError {
        match error.kind() {
            ErrorKind::UnexpectedEof => TraceError::input(
                &self.setup.path,
                format!("record {} at byte {} is cut short", self.record, self.byte),
                "the file is truncated: copy or download it again",
            ),
            _ => self.setup.io_error(error),
        }
    }

    /// Reads the next record and skips its payload; false at the end of the file.
    fn read_record(&mut self, record: &mut [u8]) -> Result<bool, TraceError> {
        let at_end = loop {
            match io::BufRead::fill_buf(&mut self.stream) {
                Ok(bytes) => break bytes.is_empty(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.setup.io_error(error)),
            }
        };
        if at_end {
            return Ok(false);
        }
        self.record += 1;
        self.stream.read_exact(record).map_err(|error| self.read_error(error))?;
        let payload = self.format.payload_bytes(record).map_err(|fault| self.row_error(*fault))?;
        if payload > 0 {
            let copied = io::copy(&mut self.stream.by_ref().take(payload as u64), &mut io::sink());
            if copied.map_err(|error| self.read_error(error))? < payload as u64 {
                return Err(self.read_error(ErrorKind::UnexpectedEof.into()));
            }
        }
        self.byte += (record.len() + payload) as u64;
        Ok(true)
    }
}

impl<F: RecordFormat> Records for BinaryReader<F> {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        let mut record = [0; RECORD_BYTES_MAX];
        let record = &mut record[..F::RECORD_BYTES];
        while batch.len() - before < most {
            let start = self.byte;
            if !self.read_record(record)? {
                break;
            }
            let taken = batch.len();
            let not_before_ns = if self.setup.refuse_disorder { self.latest_ns } else { 0 };
            let mut sink = Sink {
                requests: &mut *batch,
                volumes: &mut self.setup.volumes,
                source: None,
                durable: false,
                not_before_ns,
            };
            match self.format.parse(record, &mut sink) {
                Ok(()) => self.latest_ns = batch.last().map_or(self.latest_ns, |request| request.arrival_ns),
                Err(fault) => {
                    batch.truncate(taken);
                    if self.skipped == self.setup.skip_bad {
                        self.byte = start;
                        return Err(self.row_error(*fault));
                    }
                    self.skipped += 1;
                }
            }
        }
        Ok(batch.len() - before)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn why_empty(&self) -> Option<(String, String)> {
        self.format.why_empty()
    }

    fn into_volumes(self: Box<Self>) -> Volumes {
        self.setup.volumes
    }
}
