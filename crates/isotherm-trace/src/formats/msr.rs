//! MSR Cambridge: `timestamp,hostname,disk,type,offset,size,response`, time in ticks of 100 ns since 1601, bytes.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of MSR Cambridge traces.
pub(crate) struct Msr {
    scale: TimeScale,
}

impl LineFormat for Msr {
    const SEPARATOR: Separator = Separator::Comma;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ticks).scale() }
    }

    fn is_header(&mut self, line: &[u8]) -> bool {
        line.len() > 9 && line[..10].eq_ignore_ascii_case(b"timestamp,")
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.time(self.scale)?;
        let disk = row.pair(Field::Volume);
        let op = match row.word(Field::Op) {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "Read, Write")),
        };
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        // The response time is the measured machine's, not the simulated one's.
        row.word(Field::Other);
        row.end()?;
        let volume = sink.volumes.find(disk)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
