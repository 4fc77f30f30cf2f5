//! SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, seconds, bytes; rows are in order of completion, not of time.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of SYSTOR '17 traces.
pub(crate) struct Systor {
    scale: TimeScale,
}

impl LineFormat for Systor {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::S).scale() }
    }

    fn is_header(&mut self, line: &[u8]) -> bool {
        line.eq_ignore_ascii_case(b"Timestamp,Response,IOType,LUN,Offset,Size")
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.time(self.scale)?;
        row.word(Field::Other);
        let op = match row.word(Field::Op) {
            b"R" => Op::Read,
            b"W" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "R, W")),
        };
        let unit = row.number_text(Field::Volume)?;
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        row.end()?;
        let volume = sink.volumes.find(unit)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
