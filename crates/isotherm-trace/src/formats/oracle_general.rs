//! oracleGeneral (cache traces): 24-byte little-endian records of `time u32, object u64, size u32, next access i64`, in
//! seconds and bytes.
//!
//! It carries no operation, so it says nothing of write amplification unless the user has requests taken as writes; and
//! what an object number is (a block, a key's hash) is not in the file, so the user states the bytes it stands for.

use crate::binary::{RecordFormat, u32_at, u64_at};
use crate::options::{OpenOptions, TimeScale, TimeUnit};
use crate::row::Fault;
use crate::sink::Sink;
use isotherm::request::Op;

/// Parser of oracleGeneral records.
pub(crate) struct OracleGeneral {
    scale: TimeScale,
    object_bytes: u64,
}

impl RecordFormat for OracleGeneral {
    const RECORD_BYTES: usize = 24;
    /// Content that merely looks plausible: any format that reads the first line is preferred.
    const SCORE: usize = 1;

    fn new(options: &OpenOptions) -> Self {
        let scale = options.time_unit.unwrap_or(TimeUnit::S).scale();
        Self { scale, object_bytes: options.object_bytes.unwrap_or(1) }
    }

    /// There is no magic number: times must not fall, sizes be plausible, and the next access lie ahead (or be -1).
    fn recognise(head: &[u8]) -> bool {
        let mut time = 0;
        let mut records = head.chunks_exact(Self::RECORD_BYTES).take(64).enumerate().peekable();
        records.peek().is_some()
            && records.all(|(index, record)| {
                let next = u64_at(record, 16);
                let sound = u32_at(record, 0) >= time
                    && (1..=1 << 30).contains(&u32_at(record, 12))
                    && (next == u64::MAX || (index as u64 + 1..1 << 48).contains(&next));
                time = u32_at(record, 0);
                sound
            })
    }

    fn parse(&mut self, record: &[u8], sink: &mut Sink<'_>) -> Result<(), Box<Fault>> {
        let arrival_ns = u64::from(u32_at(record, 0)).saturating_mul(self.scale.nanoseconds);
        let offset = u64_at(record, 4).saturating_mul(self.object_bytes);
        sink.push(Op::Write, arrival_ns, offset, u64::from(u32_at(record, 12)))
    }
}
