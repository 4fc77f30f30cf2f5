//! MQSim and SSDsim: `time device LBA sectors op`, whole times, 512-byte sectors, op 0 = write and 1 = read (the reverse
//! of what DiskSim's flags suggest to the eye, and the same in effect).
//!
//! The columns do not tell the unit of time: both simulators take nanoseconds, but published conversions count
//! microseconds. The user is asked.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of MQSim and SSDsim traces.
pub(crate) struct MqSim {
    scale: TimeScale,
}

impl LineFormat for MqSim {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        // Detection parses before the user is asked; the registry sees to it that reading does not.
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale() }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = row.whole_time(self.scale)?;
        let device = row.number_text(Field::Volume)?;
        let offset = row.sectors(Field::Offset)?;
        let length = row.sectors(Field::Length)?;
        let op = match row.word(Field::Op) {
            b"0" => Op::Write,
            b"1" => Op::Read,
            other => return Err(row.unknown(Field::Op, other, "0 (write), 1 (read)")),
        };
        row.end()?;
        let volume = sink.volumes.find(device)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}
