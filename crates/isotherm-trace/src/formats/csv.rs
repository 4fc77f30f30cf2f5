//! The canonical text form: `ts_ns,op,offset,length` with op R, W, D, Z (write zeroes) or F, in order of time; an F after W, D or Z says
//! that the request was to be durable when it was done (force unit access); a fifth column, `stream`, may say
//! who asks: `s` and a number, which tells it from the last column of other formats. Where the heading names the column, the number
//! may stand alone.
//!
//! Times are kept as they are, so that the form and its Parquet twin convert into each other without loss.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::{Sink, Sources};
use crate::text::LineFormat;
use isotherm::request::{Op, Request};

/// First line of every file that isotherm writes; optional in files that it reads.
pub(crate) const HEADER: &str = "ts_ns,op,offset,length";

/// The same where a column says who asks.
pub(crate) const HEADER_WITH_STREAM: &str = "ts_ns,op,offset,length,stream";

/// The columns, for messages.
pub(crate) const SHAPE: &str = "ts_ns,op,offset,length (nanoseconds; R, W, D, Z or F; bytes; bytes)";

/// Parser of canonical CSV.
pub(crate) struct Csv {
    scale: TimeScale,
    /// Whether a unit was named: then times may have fractions.
    has_unit: bool,
    /// Whether a heading names the column of streams: then they may be plain numbers.
    has_heading_of_streams: bool,
    /// Whether a line has one.
    has_streams: bool,
    sources: Sources,
}

impl LineFormat for Csv {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self {
            scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale(),
            has_unit: options.time_unit.is_some(),
            has_heading_of_streams: false,
            has_streams: false,
            sources: Sources::default(),
        }
    }

    fn is_header(&mut self, line: &[u8]) -> bool {
        let fields = line.split(|&b| b == b',').map(<[u8]>::trim_ascii);
        let fields: Vec<Vec<u8>> = fields.map(<[u8]>::to_ascii_lowercase).collect();
        let is = |own: &str| fields.iter().map(Vec::as_slice).eq(own.as_bytes().split(|&b| b == b','));
        // No heading is longer than twice the own.
        let is = |own: &str| line.len() < 2 * HEADER.len() && is(own);
        let has_streams = is(HEADER_WITH_STREAM);
        self.has_heading_of_streams |= has_streams;
        has_streams || is(HEADER)
    }

    fn names_streams(&self) -> bool {
        self.has_streams || self.has_heading_of_streams
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = if self.has_unit { row.time(self.scale)? } else { row.whole_nanoseconds()? };
        let word = row.word(Field::Op);
        let Some((op, durable)) = operation(word) else {
            return Err(row.unknown(Field::Op, word, "R, W, D, Z, F, WF, DF, ZF"));
        };
        sink.durable = durable;
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        if !row.is_at_end() {
            let stream = row.word(Field::Stream);
            let digits = stream.strip_prefix(b"s").or(self.has_heading_of_streams.then_some(stream));
            let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let number = number.ok_or_else(|| row.unknown(Field::Stream, stream, "s0, s1 and so on"))?;
            self.has_streams = true;
            sink.source = Some(self.sources.number(number));
            row.end()?;
        }
        sink.push(op, arrival_ns, offset, length)
    }
}

/// An operation as the canonical forms write it, and whether it is to be durable when it is done.
pub(crate) fn operation(word: &[u8]) -> Option<(Op, bool)> {
    Some(match word {
        b"R" => (Op::Read, false),
        b"W" => (Op::Write, false),
        b"D" => (Op::Trim, false),
        b"Z" => (Op::WriteZeroes, false),
        b"F" => (Op::Flush, false),
        b"WF" => (Op::Write, true),
        b"DF" => (Op::Trim, true),
        b"ZF" => (Op::WriteZeroes, true),
        _ => return None,
    })
}

/// The word of a request's operation in the canonical forms.
pub(crate) fn word(request: &Request) -> &'static str {
    match (request.op, request.durable) {
        (Op::Read, _) => "R",
        (Op::Flush, _) => "F",
        (Op::Write, false) => "W",
        (Op::Trim, false) => "D",
        (Op::WriteZeroes, false) => "Z",
        (Op::Write, true) => "WF",
        (Op::Trim, true) => "DF",
        (Op::WriteZeroes, true) => "ZF",
    }
}
