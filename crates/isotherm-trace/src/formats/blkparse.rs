//! blkparse's default text: `major,minor cpu sequence seconds.ns pid action RWBS sector + sectors [process]`.
//!
//! A request appears under several actions, of which one is chosen; lines of different processors are out of order; a
//! summary follows the events. RWBS holds F (flush first), then R, W, D (discard) or N (nothing), then F (FUA) and hints.

use crate::formats::event::{Event, Events};
use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field, Row, Separator};
use crate::sink::{Sink, Sources};
use crate::text::LineFormat;
use isotherm::request::Op;

/// Longest plausible trace (36 years). blkparse counts from the start of the trace and prints an event before it as
/// 2^64 ns less a little, in 32 bits of seconds: 40 years.
const TIME_NS_MAX: u64 = 1 << 60;

/// Parser of blkparse text.
pub(crate) struct Blkparse {
    scale: TimeScale,
    events: Events,
    sources: Sources,
    rows: u64,
    in_summary: bool,
}

impl LineFormat for Blkparse {
    const SEPARATOR: Separator = Separator::Blanks;

    fn new(options: &OpenOptions) -> Self {
        Self {
            scale: options.time_unit.unwrap_or(TimeUnit::S).scale(),
            events: Events::new(options.blktrace_action),
            sources: Sources::default(),
            rows: 0,
            in_summary: false,
        }
    }

    #[inline(always)]
    fn parse(&mut self, row: &mut Row<'_>, sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let starts_summary =
            |line: &[u8]| [&b"CPU"[..], b"Total", b"Throughput"].iter().any(|word| line.starts_with(word));
        if self.in_summary || self.rows > 0 && starts_summary(row.line()) {
            self.in_summary = true;
            return Ok(());
        }
        let device = row.word(Field::Volume);
        if !device.iter().all(|&byte| byte.is_ascii_digit() || byte == b',') || !device.contains(&b',') {
            return Err(row.unknown(Field::Volume, device, "MAJOR,MINOR"));
        }
        row.integer(Field::Other)?;
        row.integer(Field::Other)?;
        let arrival_ns = row.time(self.scale)?;
        let process = row.integer(Field::Other)?;
        let action = row.word(Field::Other);
        if action.is_empty() || action.len() > 2 {
            return Err(row.unknown(Field::Other, action, "Q, D, C or another action of blkparse"));
        }
        self.rows += 1;
        if action.len() > 1 || !self.events.chosen(action[0]) {
            return Ok(());
        }
        if arrival_ns > TIME_NS_MAX {
            let problem = format!(
                "of {} s lies before the start of the trace, and has wrapped round",
                arrival_ns / 1_000_000_000
            );
            return Err(Fault::new(Field::Time, problem, "remove the row, or skip it with --skip-bad N"));
        }
        sink.source = Some(self.sources.number(process));
        let (flush, op) = rwbs(row)?;
        // Flushes without data have no sector, and some kernels' only a process.
        if op.is_none() || row.next_byte().is_none_or(|byte| byte == b'[') {
            return Event { device, arrival_ns, flush, op, offset: 0, length: 0 }.push(sink);
        }
        let offset = row.sectors(Field::Offset)?;
        // A completed flush shows its sector and an error code, but no length.
        let length = if row.next_byte() == Some(b'+') {
            row.word(Field::Other);
            row.sectors(Field::Length)?
        } else {
            0
        };
        Event { device, arrival_ns, flush, op, offset, length }.push(sink)
    }

    fn why_empty(&self) -> Option<(String, String)> {
        self.events.why_empty()
    }
}

/// Whether a flush comes first, and what is transferred.
fn rwbs(row: &mut Row<'_>) -> Result<(bool, Option<Op>), Box<Fault>> {
    let text = row.word(Field::Op);
    let rest = text.strip_prefix(b"F");
    let op = match rest.unwrap_or(text).first() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        Some(b'N' | b'F') => None,
        None if rest.is_some() => None,
        _ => return Err(row.unknown(Field::Op, text, "R, W, D, N, with F before it for a flush")),
    };
    Ok((rest.is_some(), op))
}
