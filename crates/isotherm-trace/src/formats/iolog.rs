//! fio's iolog, versions 2 and 3: `[timestamp] file action [offset length]`, bytes.
//!
//! Version 3 has times in microseconds from the start (fio 3.33 writes these, whatever its manual says); version 2 has
//! none but `wait` lines, whose microseconds add up. `sync` and `datasync` are flushes, `add`, `open`, `close` nothing.

use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::Sink;
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of fio iologs.
pub(crate) struct Iolog {
    scale: TimeScale,
    /// Whether lines begin with a time; `None` before the version is known.
    timed: Option<bool>,
    waited_ns: u64,
}

impl LineFormat for Iolog {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Us).scale(), timed: None, waited_ns: 0 }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let Some(timed) = self.timed else { return self.version(row) };
        let arrival_ns = if timed { row.time(self.scale)? } else { self.waited_ns };
        let file = row.word(Field::Volume);
        let op = match row.word(Field::Op) {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => return sink.push(Op::Flush, arrival_ns, 0, 0),
            b"add" | b"open" | b"close" => return Ok(()),
            b"wait" if !timed => {
                let wait_ns = row.integer(Field::Other)?.saturating_mul(1000);
                self.waited_ns = self.waited_ns.saturating_add(wait_ns);
                return Ok(());
            }
            other => {
                let known = "read, write, trim, sync, datasync, wait (version 2), add, open, close";
                return Err(row.unknown(Field::Op, other, known));
            }
        };
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        row.end()?;
        let volume = sink.volumes.find(file)?;
        sink.push_on(volume, op, arrival_ns, offset, length)
    }
}

impl Iolog {
    /// The first line: `fio version N iolog`.
    #[cold]
    fn version(&mut self, row: &mut Row<'_>) -> Result<(), Box<Fault>> {
        self.timed = match row.line().trim_ascii_end() {
            b"fio version 2 iolog" => Some(false),
            b"fio version 3 iolog" => Some(true),
            other => return Err(row.unknown(Field::Other, other, "fio version 2 iolog, fio version 3 iolog")),
        };
        Ok(())
    }
}
