//! DiskSim ASCII: `time device LBA sectors flags`, time in milliseconds, 512-byte sectors, flags in hexadecimal with
//! bit 0 set for a read.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of DiskSim traces.
pub(crate) struct DiskSim {
    scale: TimeScale,
}

impl LineFormat for DiskSim {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ms).scale() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.time(self.scale)?;
        let device = row.number_text(Field::Volume)?;
        let offset = row.sectors(Field::Offset)?;
        let length = row.sectors(Field::Length)?;
        let text = row.word(Field::Op);
        let flags = std::str::from_utf8(text).ok().and_then(|text| u32::from_str_radix(text, 16).ok());
        let flags =
            flags.ok_or_else(|| row.unknown(Field::Op, text, "0 (write), 1 (read), or other hexadecimal flags"))?;
        row.end()?;
        let volume = sink.volumes.find(device)?;
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
