//! vSCSI version 1 (CloudPhysics): 32-byte little-endian records of `sequence u32, length u32, segments u32, command u16,
//! version u16, LBN u64, time u64`, in bytes, 512-byte blocks and microseconds. The version's high byte is 1.

use crate::binary::{RecordFormat, u16_at, u32_at, u64_at};
use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::{Fault, Field};
use crate::sink::Sink;
use isotherm::request::Op;

/// Parser of vSCSI records.
pub(crate) struct Vscsi {
    scale: TimeScale,
}

/// What a SCSI command asks: reads and writes of 6, 10, 12 and 16 bytes, and cache synchronisation.
fn op_of(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

impl RecordFormat for Vscsi {
    const RECORD_BYTES: usize = 32;

    fn new(options: &OpenOptions) -> Self {
        Self { scale: options.time_unit.unwrap_or(TimeUnit::Us).scale() }
    }

    fn recognise(head: &[u8]) -> bool {
        let mut records = head.chunks_exact(Self::RECORD_BYTES).take(8).peekable();
        records.peek().is_some() && records.all(|record| u16_at(record, 14) >> 8 == 1 && u16_at(record, 12) < 0x100)
    }

    fn payload_bytes(&self, record: &[u8]) -> Result<usize, Box<Fault>> {
        let version = u16_at(record, 14);
        if version >> 8 == 1 {
            return Ok(0);
        }
        Err(Fault::new(
            Field::Other,
            format!("\"version\" is {version:#06x}, not 0x01xx as in version 1"),
            "check that the file is whole and of version 1",
        ))
    }

    fn parse(&mut self, record: &[u8], sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let command = u16_at(record, 12);
        let Some(op) = op_of(command) else {
            let problem = format!("{command:#04x} is no SCSI command that reads, writes or flushes");
            return Err(Fault::new(Field::Op, problem, "skip such records with --skip-bad N"));
        };
        let arrival_ns = u64_at(record, 24).saturating_mul(self.scale.nanoseconds);
        match op {
            Op::Flush => sink.push(op, arrival_ns, 0, 0),
            _ => sink.push(op, arrival_ns, u64_at(record, 16).saturating_mul(512), u64::from(u32_at(record, 4))),
        }
    }
}
