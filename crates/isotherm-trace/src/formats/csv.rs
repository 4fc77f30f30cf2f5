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

/// Parser of canonical CSV.
pub(crate) struct Csv {
    scale: TimeScale,
}

impl LineFormat for Csv {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale() }
    }

    fn is_header(line: &[u8]) -> bool {
        line == HEADER.as_bytes()
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.time(self.scale)?;
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
