//! The canonical text form: `ts_ns,op,offset,length` with op R, W, D or F, in order of time.
//!
//! Times are kept as they are, so that the form and its Parquet twin convert into each other without loss.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// First line of every file that isotherm writes; optional in files that it reads.
pub(crate) const HEADER: &str = "ts_ns,op,offset,length";

/// The columns, for messages.
pub(crate) const SHAPE: &str = "ts_ns,op,offset,length (nanoseconds; R, W, D or F; bytes; bytes)";

/// Parser of canonical CSV.
pub(crate) struct Csv {
    scale: TimeScale,
    /// Whether a unit was named: then times may have fractions.
    has_unit: bool,
}

impl LineFormat for Csv {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale(), has_unit: options.time_unit.is_some() }
    }

    fn is_header(line: &[u8]) -> bool {
        let fields = line.split(|&b| b == b',').map(<[u8]>::trim_ascii);
        let own = HEADER.as_bytes().split(|&b| b == b',');
        line.len() < 2 * HEADER.len() && fields.map(<[u8]>::to_ascii_lowercase).eq(own)
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = if self.has_unit { row.time(self.scale)? } else { row.whole_nanoseconds()? };
        let op = match row.word(Field::Op) {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"D" => Op::Trim,
            b"F" => Op::Flush,
            other => return Err(row.unknown(Field::Op, other, "R, W, D, F")),
        };
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        row.end()?;
        sink.push(op, arrival_ns, offset, length)
    }
}

/// The letter of an operation in the canonical forms.
pub(crate) fn letter(op: Op) -> u8 {
    match op {
        Op::Read => b'R',
        Op::Write => b'W',
        Op::Trim => b'D',
        Op::Flush => b'F',
    }
}
