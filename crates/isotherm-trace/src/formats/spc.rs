//! SPC (UMass Financial and WebSearch): `ASU,LBA,size,opcode,timestamp`, LBA in 512-byte blocks of its ASU, size in
//! bytes, time in seconds. The specification allows further columns, which are ignored.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of SPC traces.
pub(crate) struct Spc {
    scale: TimeScale,
}

impl LineFormat for Spc {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::S).scale() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let unit = row.number_text(Field::Volume)?;
        let offset = row.sectors(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        let op = match row.word(Field::Op) {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "r, w")),
        };
        let arrival_ns = row.time(self.scale)?;
        let volume = sink.volumes.find(unit)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
