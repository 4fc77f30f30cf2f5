//! The record of what is durable: written after each sync of the image, and made durable by the next one.
//!
//! Two places take turns, each with a copy: a record that was being written when power failed leaves the one before it, and a
//! flipped bit leaves the copy.

use super::disk::Disk;
use super::layout::{RECORD_BYTES, RECORDS_AT, u64_at};
use isotherm::cause::{ByCause, Cause};
use std::io;

/// What was counted over the life of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Pages programmed from the controller, by cause.
    pub programs: ByCause,
    /// Pages copied inside the array, by cause.
    pub copies: ByCause,
    /// Blocks erased, by cause.
    pub erases: ByCause,
    /// What the host asked for.
    pub host: HostTotals,
}

/// What the host asked for over the life of a drive, and what became of the drive. After a loss of power it lacks what was counted
/// since the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostTotals {
    /// Bytes of write requests.
    pub bytes_written: u64,
    /// Bytes of read requests.
    pub bytes_read: u64,
    /// Bytes of trims, and of zeros that were written by discarding.
    pub bytes_trimmed: u64,
    /// Write requests.
    pub writes: u64,
    /// Read requests.
    pub reads: u64,
    /// Flushes.
    pub flushes: u64,
    /// Time during which the drive was served.
    pub power_on_ns: u64,
    /// Times that it was opened.
    pub power_cycles: u64,
    /// Of these, after a loss of power.
    pub unsafe_shutdowns: u64,
    /// Reads of pages that were damaged.
    pub media_errors: u64,
}

impl HostTotals {
    const WORDS: usize = 10;

    fn words(&self) -> [u64; Self::WORDS] {
        [
            self.bytes_written,
            self.bytes_read,
            self.bytes_trimmed,
            self.writes,
            self.reads,
            self.flushes,
            self.power_on_ns,
            self.power_cycles,
            self.unsafe_shutdowns,
            self.media_errors,
        ]
    }

    fn of(words: [u64; Self::WORDS]) -> Self {
        let [
            bytes_written,
            bytes_read,
            bytes_trimmed,
            writes,
            reads,
            flushes,
            power_on_ns,
            power_cycles,
            unsafe_shutdowns,
            media_errors,
        ] = words;
        Self {
            bytes_written,
            bytes_read,
            bytes_trimmed,
            writes,
            reads,
            flushes,
            power_on_ns,
            power_cycles,
            unsafe_shutdowns,
            media_errors,
        }
    }
}

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DurableRecord {
    /// Rises with every record.
    pub(crate) serial: u64,
    /// Every operation up to this number is durable.
    pub(crate) number: u64,
    /// Bytes of the checkpoint that says all there is; 0 while the drive is in use.
    pub(crate) checkpoint_bytes: u64,
    /// Its checksum.
    pub(crate) checkpoint_check: u32,
    pub(crate) totals: Totals,
}

const MAGIC: u64 = u64::from_le_bytes(*b"durable\x01");
const CAUSES: usize = Cause::ALL.len();
const WORDS: usize = 5 + 3 * CAUSES + HostTotals::WORDS;
const _: () = assert!((WORDS + 1) * 8 <= RECORD_BYTES as usize);

impl DurableRecord {
    fn encode(&self) -> Vec<u8> {
        let mut words = vec![MAGIC, self.serial, self.number, self.checkpoint_bytes, u64::from(self.checkpoint_check)];
        for counts in [&self.totals.programs, &self.totals.copies, &self.totals.erases] {
            words.extend(Cause::ALL.map(|cause| counts[cause]));
        }
        words.extend(self.totals.host.words());
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let check = u64::from(crc32fast::hash(&bytes));
        bytes.extend(check.to_le_bytes());
        bytes.resize(RECORD_BYTES as usize, 0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |index: usize| u64_at(bytes, index * 8);
        if word(0) != MAGIC || word(WORDS) != u64::from(crc32fast::hash(&bytes[..WORDS * 8])) {
            return None;
        }
        let counts = |first: usize| {
            let mut counts = ByCause::default();
            Cause::ALL.iter().enumerate().for_each(|(index, cause)| counts[*cause] = word(first + index));
            counts
        };
        Some(Self {
            serial: word(1),
            number: word(2),
            checkpoint_bytes: word(3),
            checkpoint_check: word(4) as u32,
            totals: Totals {
                programs: counts(5),
                copies: counts(5 + CAUSES),
                erases: counts(5 + 2 * CAUSES),
                host: HostTotals::of(std::array::from_fn(|index| word(5 + 3 * CAUSES + index))),
            },
        })
    }

    /// Writes the record and its copy in its turn.
    pub(crate) fn write(&self, disk: &impl Disk) -> io::Result<()> {
        let mut bytes = self.encode();
        bytes.extend_from_within(..);
        disk.write(RECORDS_AT + (self.serial & 1) * 2 * RECORD_BYTES, &bytes)
    }

    /// The newest record that is whole.
    pub(crate) fn read(disk: &impl Disk) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; 4 * RECORD_BYTES as usize];
        disk.read(RECORDS_AT, &mut bytes)?;
        let records = bytes.chunks_exact(RECORD_BYTES as usize).filter_map(Self::decode);
        Ok(records.max_by_key(|record| record.serial))
    }
}
