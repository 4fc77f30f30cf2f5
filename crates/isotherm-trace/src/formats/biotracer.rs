//! BIOtracer (smartphones): `LBA sectors bytes flag` and four times, 512-byte sectors, seconds; an odd flag is a write.
//! The first time is the arrival in the block layer.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of BIOtracer traces.
pub(crate) struct Biotracer {
    scale: TimeScale,
}

impl LineFormat for Biotracer {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::S).scale() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let offset = row.sectors(Field::Offset)?;
        let sectors_bytes = row.sectors(Field::Other)?;
        let length = row.integer(Field::Length)?;
        if length != sectors_bytes {
            let problem = format!("{length} differs from that of the column before, {sectors_bytes} bytes");
            return Err(Fault::new(Field::Length, problem, "correct the row, or skip it with --skip-bad N"));
        }
        let op = if row.integer(Field::Op)? % 2 == 1 { Op::Write } else { Op::Read };
        let arrival_ns = row.time(self.scale)?;
        for _ in 0..3 {
            row.word(Field::Other);
        }
        row.end()?;
        sink.push(op, arrival_ns, offset, length)
    }
}
