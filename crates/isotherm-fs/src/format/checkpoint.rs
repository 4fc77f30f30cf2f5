//! A checkpoint: everything that roll-forward begins with. Two places take turns; the whole one with the higher number counts.
//!
//! ```text
//! header (4096 bytes) | roots: 24 bytes a table page | segments: 40 bytes each | queue of free segments: 4 bytes each
//! ```
//! The checksum in the header covers all of it.

use super::bytes::{put, u16_at, u32_at, u64_at};
use super::entry::Entry;
use crate::store::{BLOCK_BYTES, Heat};

/// Entries of a table page.
pub const TABLE_ENTRIES: u32 = 256;
/// Most centres of groups.
pub const CENTRES_MAX: usize = 8;
const MAGIC: [u8; 8] = *b"SFSCHECK";
const ROOT_BYTES: usize = 24;
const SEGMENT_BYTES: usize = 40;
/// Where the header says how many files lag, and which.
const LAGGING: usize = 12;
const LAGGING_FILES: usize = 104 + 8 * CENTRES_MAX;
/// Most files that a header names.
const LAGGING_MAX: usize = (BLOCK_BYTES - LAGGING_FILES) / 8;
/// In place of a number: it may be any file.
const LAGGING_ANY: u32 = u32::MAX;

/// The entry of a table page, and how many pages it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Root {
    pub entry: Entry,
    pub used: u16,
}

/// What a checkpoint says of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentRecord {
    /// 0 free, 1 open, 2 written.
    pub state: u8,
    /// The group it was written for as a whole, and 1; 0 for none.
    pub group: u8,
    /// Blocks whose newest durable copy lies in it.
    pub referenced: u32,
    /// Sum of their counts of writes.
    pub writes: u64,
    /// Sum of the times their ages count from.
    pub times: u64,
    /// When the youngest of them was modified.
    pub youngest: u32,
    /// The clock when it was written.
    pub written: u64,
}

/// Files of which blocks are on the device that their inodes do not count: these wait for the rest of what is written to the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lagging {
    /// These, and no others.
    Files(Vec<u64>),
    /// More than a checkpoint names: it may be any.
    Any,
}

impl Default for Lagging {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

impl Lagging {
    /// As far as a checkpoint can tell.
    #[must_use]
    pub fn of(files: Vec<u64>) -> Self {
        if files.len() > LAGGING_MAX { Self::Any } else { Self::Files(files) }
    }

    /// Whether a file may be one of them.
    #[must_use]
    pub fn may_hold(&self, ino: u64) -> bool {
        match self {
            Self::Files(files) => files.contains(&ino),
            Self::Any => true,
        }
    }
}

/// See the module's text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Checkpoint {
    /// Counts checkpoints from 1.
    pub number: u64,
    /// Counts mounts.
    pub incarnation: u32,
    /// Tag of the volume.
    pub tag: u32,
    /// Number of the last write of the log that it covers.
    pub sequence: u64,
    /// Host block writes so far.
    pub now: u64,
    /// Blocks whose space is set aside.
    pub reserved: u64,
    /// Blocks of file data that are stored.
    pub stored: u64,
    /// Pages that exist.
    pub pages: u64,
    /// The segment that takes mixed writes, and the next free block in it.
    pub open: Option<(u32, u32)>,
    /// Whether nothing was under way: the volume was unmounted.
    pub is_clean: bool,
    /// Files whose blocks are to be counted after a crash.
    pub lagging: Lagging,
    /// Centres of the groups, coldest first.
    pub centres: Vec<f64>,
    /// Of table pages, in order; those at the end that were never used are left out.
    pub roots: Vec<Root>,
    /// Of every segment.
    pub segments: Vec<SegmentRecord>,
    /// Free segments, the one that is written next first.
    pub queue: Vec<u32>,
}

/// Blocks that a checkpoint of a volume takes at most: each block of it may be a page.
#[must_use]
pub fn blocks(segments: u32, segment_blocks: u32) -> u64 {
    let tables = (u64::from(segments) * u64::from(segment_blocks)).div_ceil(u64::from(TABLE_ENTRIES));
    let bytes = tables * ROOT_BYTES as u64 + u64::from(segments) * (SEGMENT_BYTES as u64 + 4);
    1 + bytes.div_ceil(BLOCK_BYTES as u64)
}

impl Checkpoint {
    /// Its blocks.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        put(&mut bytes, 0, &MAGIC);
        let put_u64 = |bytes: &mut [u8], at, value: u64| put(bytes, at, &value.to_le_bytes());
        let put_u32 = |bytes: &mut [u8], at, value: u32| put(bytes, at, &value.to_le_bytes());
        for (at, value) in [
            (16, self.number),
            (24, self.sequence),
            (32, self.now),
            (40, self.reserved),
            (48, self.stored),
            (56, self.pages),
        ] {
            put_u64(&mut bytes, at, value);
        }
        let (segment, next) = self.open.unwrap_or((u32::MAX, 0));
        let lengths = [self.roots.len(), self.segments.len(), self.queue.len(), self.centres.len()].map(|n| n as u32);
        let numbers = [
            self.incarnation,
            self.tag,
            segment,
            next,
            u32::from(self.is_clean),
            lengths[0],
            lengths[1],
            lengths[2],
            lengths[3],
        ];
        for (at, value) in (64..).step_by(4).zip(numbers) {
            put_u32(&mut bytes, at, value);
        }
        for (at, centre) in (104..).step_by(8).zip(&self.centres) {
            put_u64(&mut bytes, at, centre.to_bits());
        }
        match &self.lagging {
            Lagging::Files(files) => {
                put_u32(&mut bytes, LAGGING, files.len() as u32);
                for (at, ino) in (LAGGING_FILES..).step_by(8).zip(files) {
                    put_u64(&mut bytes, at, *ino);
                }
            }
            Lagging::Any => put_u32(&mut bytes, LAGGING, LAGGING_ANY),
        }
        for root in &self.roots {
            let mut record = [0; ROOT_BYTES];
            root.entry.put(&mut record, 0);
            put(&mut record, 16, &root.used.to_le_bytes());
            bytes.extend_from_slice(&record);
        }
        for segment in &self.segments {
            let mut record = [0; SEGMENT_BYTES];
            (record[0], record[1]) = (segment.state, segment.group);
            put_u32(&mut record, 4, segment.referenced);
            put_u64(&mut record, 8, segment.writes);
            put_u64(&mut record, 16, segment.times);
            put_u32(&mut record, 24, segment.youngest);
            put_u64(&mut record, 32, segment.written);
            bytes.extend_from_slice(&record);
        }
        self.queue.iter().for_each(|segment| bytes.extend_from_slice(&segment.to_le_bytes()));
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        let checksum = crc32c::crc32c(&bytes);
        put_u32(&mut bytes, 8, checksum);
        bytes
    }

    /// How many bytes the checkpoint takes that begins with the header `block`, if it is one.
    #[must_use]
    pub fn length(block: &[u8]) -> Option<usize> {
        if block[..8] != MAGIC {
            return None;
        }
        let [roots, segments, queue] = [84, 88, 92].map(|at| u32_at(block, at) as usize);
        Some(BLOCK_BYTES + (roots * ROOT_BYTES + segments * SEGMENT_BYTES + queue * 4).next_multiple_of(BLOCK_BYTES))
    }

    /// Reads all of its blocks; `None` if it is not whole, or not of the volume with this tag.
    #[must_use]
    pub fn decode(bytes: &[u8], tag: u32) -> Option<Self> {
        if Self::length(bytes)? != bytes.len() {
            return None;
        }
        let header = &bytes[..BLOCK_BYTES];
        let mut plain = header.to_vec();
        plain[8..12].fill(0);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&plain), &bytes[BLOCK_BYTES..]);
        let number = |index: usize| u32_at(header, 64 + 4 * index);
        if checksum != u32_at(header, 8) || number(1) != tag || number(8) as usize > CENTRES_MAX {
            return None;
        }
        let lagging = match u32_at(header, LAGGING) as usize {
            count @ ..=LAGGING_MAX => {
                Lagging::Files((0..count).map(|i| u64_at(header, LAGGING_FILES + 8 * i)).collect())
            }
            _ => Lagging::Any,
        };
        let (roots, segments) = (number(5) as usize, number(6) as usize);
        let (root_bytes, rest) = bytes[BLOCK_BYTES..].split_at(roots * ROOT_BYTES);
        let (segment_bytes, queue_bytes) = rest.split_at(segments * SEGMENT_BYTES);
        Some(Self {
            number: u64_at(header, 16),
            sequence: u64_at(header, 24),
            now: u64_at(header, 32),
            reserved: u64_at(header, 40),
            stored: u64_at(header, 48),
            pages: u64_at(header, 56),
            incarnation: number(0),
            tag,
            open: (number(2) != u32::MAX).then_some((number(2), number(3))),
            is_clean: number(4) != 0,
            lagging,
            centres: (0..number(8) as usize).map(|i| f64::from_bits(u64_at(header, 104 + 8 * i))).collect(),
            roots: root_bytes
                .chunks_exact(ROOT_BYTES)
                .map(|record| Root { entry: Entry::at(record, 0), used: u16_at(record, 16) })
                .collect(),
            segments: segment_bytes
                .chunks_exact(SEGMENT_BYTES)
                .map(|record| SegmentRecord {
                    state: record[0],
                    group: record[1],
                    referenced: u32_at(record, 4),
                    writes: u64_at(record, 8),
                    times: u64_at(record, 16),
                    youngest: u32_at(record, 24),
                    written: u64_at(record, 32),
                })
                .collect(),
            queue: queue_bytes.chunks_exact(4).take(number(7) as usize).map(|bytes| u32_at(bytes, 0)).collect(),
        })
    }
}

/// Heat of a table page: the tables have no part in groups.
pub const NO_HEAT: Heat = Heat { writes: 0, time: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Checkpoint {
        Checkpoint {
            number: 3,
            incarnation: 2,
            tag: 9,
            sequence: 77,
            now: 1 << 40,
            reserved: 1,
            stored: 2,
            pages: 3,
            open: Some((4, 5)),
            is_clean: true,
            lagging: Lagging::Files(vec![17, u64::MAX]),
            centres: vec![0.5, 2.0],
            roots: vec![Root { entry: Entry { position: 40, heat: NO_HEAT, checksum: 1 }, used: 256 }; 3],
            segments: vec![
                SegmentRecord {
                    state: 2,
                    group: 1,
                    referenced: 9,
                    writes: 8,
                    times: 7,
                    youngest: 6,
                    written: 5
                };
                40
            ],
            queue: vec![3, 1, 2],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = example().encode();
        assert_eq!(Checkpoint::length(&bytes), Some(bytes.len()));
        assert_eq!(Checkpoint::decode(&bytes, 9), Some(example()));
        assert_eq!(Checkpoint::decode(&bytes, 8), None);
    }

    /// As many files as a header names fill it, one more is any.
    #[test]
    fn a_header_names_some_hundred_files_that_lag() {
        for count in [0, 491, 492] {
            let lagging = Lagging::of((1..=count).collect());
            assert_eq!(lagging == Lagging::Any, count > 491);
            assert_eq!([1, 1000].map(|ino| lagging.may_hold(ino)), [count > 0, count > 491]);
            let checkpoint = Checkpoint { lagging, centres: vec![1.0; CENTRES_MAX], ..example() };
            assert_eq!(Checkpoint::decode(&checkpoint.encode(), 9), Some(checkpoint));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = example().encode();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&damaged, 9), None, "bit {bit}");
        }
    }
}
