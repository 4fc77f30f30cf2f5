//! blktrace's binary form, as `blktrace -o -` or `blkparse -d` writes it: 48-byte little-endian records, each followed by
//! a payload whose length it states. Times in nanoseconds, 512-byte sectors, length in bytes.

use crate::binary::{RecordFormat, u16_at, u32_at, u64_at};
use crate::formats::event::{Event, Events};
use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field};
use crate::sink::{Sink, Sources};
use isotherm::request::Op;

/// Magic number of version 7 in the upper three bytes, version in the lowest.
const TRACE_MAGIC: u32 = 0x6561_7407;

// Bits of the action word's upper half: the kind of request. The lower half is the action.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

/// Parser of blktrace records.
pub(crate) struct Blktrace {
    scale: TimeScale,
    events: Events,
    sources: Sources,
    /// Device of the record before and its name, `major,minor` as blkparse prints it.
    device: (u32, String),
}

impl RecordFormat for Blktrace {
    const RECORD_BYTES: usize = 48;

    fn new(options: &OpenOptions) -> Self {
        Self {
            scale: options.time_unit.unwrap_or(TimeUnit::Ns).scale(),
            events: Events::new(options.blktrace_action),
            sources: Sources::default(),
            device: (0, "0,0".to_owned()),
        }
    }

    fn recognise(head: &[u8]) -> bool {
        // A record of either byte order, so that the wrong one is named as such.
        head.len() >= 4
            && (u32_at(head, 0) >> 8 == TRACE_MAGIC >> 8 || u32_at(head, 0).swap_bytes() >> 8 == TRACE_MAGIC >> 8)
    }

    fn payload_bytes(&self, record: &[u8]) -> Result<usize, Box<Fault>> {
        let magic = u32_at(record, 0);
        if magic == TRACE_MAGIC {
            return Ok(usize::from(u16_at(record, 46)));
        }
        let (problem, fix) = if magic.swap_bytes() == TRACE_MAGIC {
            ("was written by a big-endian machine".to_owned(), "convert it to text with blkparse and open that")
        } else {
            (format!("{magic:#010x} is wrong, it should be {TRACE_MAGIC:#010x}"), "the file is damaged: copy it again")
        };
        Err(Fault::new(Field::Other, format!("\"magic\" {problem}"), fix))
    }

    fn parse(&mut self, record: &[u8], sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let action = u32_at(record, 28);
        let letter = match action & 0xffff {
            1 => b'Q',
            7 => b'D',
            8 => b'C',
            _ => return Ok(()),
        };
        if action & NOTIFY != 0 || !self.events.chosen(letter) {
            return Ok(());
        }
        sink.source = Some(self.sources.number(u64::from(u32_at(record, 32))));
        let op = match () {
            () if action & PASSTHROUGH != 0 => None,
            () if action & DISCARD != 0 => Some(Op::Trim),
            () if action & WRITE != 0 => Some(Op::Write),
            () => Some(Op::Read),
        };
        let device = u32_at(record, 36);
        if device != self.device.0 {
            self.device = (device, format!("{},{}", device >> 20, device & 0xf_ffff));
        }
        let event = Event {
            device: self.device.1.as_bytes(),
            arrival_ns: u64_at(record, 8).saturating_mul(self.scale.nanoseconds),
            flush: action & FLUSH != 0,
            op,
            offset: u64_at(record, 16).saturating_mul(512),
            length: u64::from(u32_at(record, 24)),
        };
        event.push(sink)
    }

    fn why_empty(&self) -> Option<(String, String)> {
        self.events.why_empty()
    }
}
