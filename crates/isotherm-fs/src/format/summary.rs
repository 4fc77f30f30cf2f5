//! The summary of a write of the log: what its blocks are, and the changes of pages that happened before it.
//!
//! ```text
//! header (64 bytes) | records: 24 bytes a block | redo log | padding to a block || blocks
//! ```
//! The checksum in the header covers the summary; those of the blocks are in their records. So a write is whole or not there.

use super::bytes::{put, u32_at, u64_at};
use super::entry::Entry;
use crate::store::{BLOCK_BYTES, Heat, PageId};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a block's record.
pub const RECORD_BYTES: usize = 24;
const MAGIC: u32 = u32::from_le_bytes(*b"SFSW");
const FIRST: u32 = 1;
const STAYS_OPEN: u32 = 2;

/// What a block of the log is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlockName {
    /// File data, by the slot of its entry: page and index.
    Data(PageId, u8),
    /// A page.
    Page(PageId),
    /// A page of the table of pages.
    Table(u32),
}

/// What a summary says of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What it is.
    pub name: BlockName,
    /// Its heat.
    pub heat: Heat,
    /// crc32c of its content.
    pub checksum: u32,
}

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Tag of the volume.
    pub tag: u32,
    /// Mount that wrote it.
    pub incarnation: u32,
    /// Counts the writes of the log.
    pub sequence: u64,
    /// Block of the device at which it begins.
    pub position: u32,
    /// Host block writes until then.
    pub now: u64,
    /// The last write that was durable when this one was planned, with all before it; 0 if none of this mount was known to be.
    pub flushed: u64,
    /// Whether it is the first of a newly taken segment.
    pub is_first: bool,
    /// Whether more writes follow in this segment.
    pub stays_open: bool,
    /// The group that the segment is written for as a whole.
    pub group: Option<u8>,
    /// Of its blocks, in order.
    pub records: Vec<Record>,
    /// The segment that stands first in the queue after this write; `u32::MAX` if none does.
    pub next_segment: u32,
    /// Whole transactions.
    pub redo: Vec<u8>,
}

/// Blocks of a summary with so many records and bytes of the redo log.
#[must_use]
pub fn blocks(records: usize, redo_bytes: usize) -> usize {
    (HEADER_BYTES + records * RECORD_BYTES + redo_bytes).div_ceil(BLOCK_BYTES)
}

impl BlockName {
    fn encode(self) -> (u8, u8, u32) {
        match self {
            Self::Data(page, index) => (1, index, page),
            Self::Page(page) => (2, 0, page),
            Self::Table(number) => (3, 0, number),
        }
    }

    fn decode(kind: u8, index: u8, number: u32) -> Option<Self> {
        match (kind, index) {
            (1, 1..) => Some(Self::Data(number, index)),
            (2, 0) => Some(Self::Page(number)),
            (3, 0) => Some(Self::Table(number)),
            _ => None,
        }
    }
}

impl Summary {
    /// Its blocks.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; blocks(self.records.len(), self.redo.len()) * BLOCK_BYTES];
        put(&mut bytes, 0, &MAGIC.to_le_bytes());
        let flags = if self.is_first { FIRST } else { 0 } | if self.stays_open { STAYS_OPEN } else { 0 };
        let group = self.group.map_or(0, |group| u32::from(group) + 1);
        let numbers = [
            self.tag,
            self.incarnation,
            self.position,
            self.records.len() as u32,
            self.redo.len() as u32,
            flags,
            group,
            self.next_segment,
        ];
        for (at, number) in (8..).step_by(4).zip(numbers) {
            put(&mut bytes, at, &number.to_le_bytes());
        }
        put(&mut bytes, 40, &self.sequence.to_le_bytes());
        put(&mut bytes, 48, &self.now.to_le_bytes());
        put(&mut bytes, 56, &self.flushed.to_le_bytes());
        for (record, bytes) in self.records.iter().zip(bytes[HEADER_BYTES..].chunks_exact_mut(RECORD_BYTES)) {
            let (kind, index, number) = record.name.encode();
            (bytes[0], bytes[1]) = (kind, index);
            for (at, value) in (4..).step_by(4).zip([number, record.heat.writes, record.heat.time, record.checksum]) {
                put(bytes, at, &value.to_le_bytes());
            }
        }
        put(&mut bytes, HEADER_BYTES + self.records.len() * RECORD_BYTES, &self.redo);
        let checksum = crc32c::crc32c(&bytes);
        put(&mut bytes, 4, &checksum.to_le_bytes());
        bytes
    }

    /// Blocks of the summary that begins with `block`, and of the data after it, if it is one.
    #[must_use]
    pub fn lengths(block: &[u8]) -> Option<(usize, usize)> {
        let (records, redo) = (u32_at(block, 20) as usize, u32_at(block, 24) as usize);
        let bounded = records <= 1 << 20 && redo <= 1 << 31;
        (u32_at(block, 0) == MAGIC && bounded).then(|| (blocks(records, redo), records))
    }

    /// Reads all of its blocks; `None` if it is not whole.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (summary_blocks, count) = Self::lengths(bytes)?;
        if bytes.len() != summary_blocks * BLOCK_BYTES {
            return None;
        }
        let sums = [&bytes[..4], &[0; 4], &bytes[8..]];
        if sums.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part)) != u32_at(bytes, 4) {
            return None;
        }
        let number = |index: usize| u32_at(bytes, 8 + 4 * index);
        let record = |bytes: &[u8]| {
            Some(Record {
                name: BlockName::decode(bytes[0], bytes[1], u32_at(bytes, 4))?,
                heat: Heat { writes: u32_at(bytes, 8), time: u32_at(bytes, 12) },
                checksum: u32_at(bytes, 16),
            })
        };
        let redo_from = HEADER_BYTES + count * RECORD_BYTES;
        Some(Self {
            tag: number(0),
            incarnation: number(1),
            position: number(2),
            sequence: u64_at(bytes, 40),
            now: u64_at(bytes, 48),
            flushed: u64_at(bytes, 56),
            is_first: number(5) & FIRST != 0,
            stays_open: number(5) & STAYS_OPEN != 0,
            group: number(6).checked_sub(1).map(|group| group as u8),
            next_segment: number(7),
            records: bytes[HEADER_BYTES..redo_from].chunks_exact(RECORD_BYTES).map(record).collect::<Option<_>>()?,
            redo: bytes[redo_from..redo_from + number(4) as usize].to_vec(),
        })
    }
}

impl Record {
    /// The entry of the block when it lies at `position`.
    #[must_use]
    pub fn entry(&self, position: u32) -> Entry {
        Entry { position, heat: self.heat, checksum: self.checksum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_every_flipped_bit_is_found() {
        let heat = Heat { writes: 3, time: 4 };
        let names = [BlockName::Data(7, 255), BlockName::Page(8), BlockName::Table(9)];
        let summary = Summary {
            tag: 1,
            incarnation: 2,
            sequence: 1 << 33,
            position: 64,
            now: 1 << 34,
            flushed: 1 << 32,
            is_first: true,
            stays_open: false,
            group: Some(3),
            next_segment: 11,
            records: names.map(|name| Record { name, heat, checksum: 5 }).to_vec(),
            redo: vec![1; 5000],
        };
        let bytes = summary.encode();
        assert_eq!(Summary::lengths(&bytes), Some((2, 3)));
        assert_eq!(Summary::decode(&bytes), Some(summary));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Summary::decode(&damaged), None, "bit {bit}");
        }
    }
}
