//! Tencent Cloud Block Storage: `timestamp,offset,size,type,volume`, seconds, 512-byte sectors, type 0 = read and 1 = write.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of Tencent CBS traces.
pub(crate) struct Tencent {
    scale: TimeScale,
}

impl LineFormat for Tencent {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::S).scale() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.whole_time(self.scale)?;
        let offset = row.sectors(Field::Offset)?;
        let length = row.sectors(Field::Length)?;
        let op = match row.word(Field::Op) {
            b"0" => Op::Read,
            b"1" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "0 (read), 1 (write)")),
        };
        let name = row.number_text(Field::Volume)?;
        row.end()?;
        let volume = sink.volumes.find(name)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
