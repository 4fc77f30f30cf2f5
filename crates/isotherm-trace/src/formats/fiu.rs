//! FIU: `time pid process LBA sectors op major minor md5`, nanoseconds, 512-byte sectors, op R or W.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::{Sink, Sources};
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of FIU traces.
pub(crate) struct Fiu {
    scale: TimeScale,
    sources: Sources,
}

impl LineFormat for Fiu {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale(), sources: Sources::default() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.whole_time(self.scale)?;
        sink.source = Some(self.sources.number(row.integer(Field::Other)?));
        // Names of processes may hold blanks; what follows them is a number.
        row.word(Field::Other);
        while row.next_byte().is_some_and(|byte| !byte.is_ascii_digit()) {
            row.word(Field::Other);
        }
        let offset = row.sectors(Field::Offset)?;
        let length = row.sectors(Field::Length)?;
        let op = match row.word(Field::Op) {
            b"R" => Op::Read,
            b"W" => Op::Write,
            other => return Err(row.unknown(Field::Op, other, "R, W")),
        };
        let device = row.pair(Field::Volume);
        // The digest of the content; reads of some of the traces lack it.
        row.word(Field::Other);
        row.end()?;
        let volume = sink.volumes.find(device)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
