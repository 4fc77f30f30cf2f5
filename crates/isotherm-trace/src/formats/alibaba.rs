//! Alibaba block traces (2020): `device_id,opcode,offset,length,timestamp`, bytes, microseconds.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of Alibaba traces.
pub(crate) struct Alibaba {
    scale: TimeScale,
}

impl LineFormat for Alibaba {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Us).scale() }
    }

    fn is_header(&mut self, line: &[u8]) -> bool {
        line == b"device_id,opcode,offset,length,timestamp"
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let device = row.number_text(Field::Volume)?;
        let op = match row.word(Field::Op) {
            b"R" => Op::Read,
            b"W" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "R, W")),
        };
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        let arrival_ns = row.whole_time(self.scale)?;
        row.end()?;
        let volume = sink.volumes.find(device)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
