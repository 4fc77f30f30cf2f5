//! WiscSee's digest of blktrace: `pid event op offset bytes time delta sync`, event D or C, bytes, seconds.
//!
//! A request appears once when it is issued and once when it completes: one of the two is chosen.

use crate::formats::event::Events;
use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::{Sink, Sources};
use crate::text::LineFormat;
use isotherm::request::Op;

/// Parser of WiscSee traces.
pub(crate) struct Wiscsee {
    scale: TimeScale,
    events: Events,
    sources: Sources,
}

impl LineFormat for Wiscsee {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self {
            scale: options.time_unit.unwrap_or(TimeUnit::S).scale(),
            events: Events::new(options.blktrace_action),
            sources: Sources::default(),
        }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        sink.source = Some(self.sources.number(row.integer(Field::Other)?));
        let event = match row.word(Field::Other) {
            [event @ (b'D' | b'C')] => *event,
            other => return Err(row.unknown(Field::Other, other, "D, C")),
        };
        let op = match row.word(Field::Op) {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"discard" => Op::Trim,
            other => return Err(row.unknown(Field::Op, other, "read, write, discard")),
        };
        let offset = row.integer(Field::Offset)?;
        let length = row.integer(Field::Length)?;
        let arrival_ns = row.time(self.scale)?;
        row.word(Field::Other);
        row.word(Field::Other);
        row.end()?;
        if self.events.chosen(event) { sink.push(op, arrival_ns, offset, length) } else { Ok(()) }
    }

    fn why_empty(&self) -> Option<(String, String)> {
        self.events.why_empty()
    }
}
