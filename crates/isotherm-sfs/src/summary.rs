//! Segment summaries: what recovery reads of a segment write.
//!
//! A write of `n` blocks begins with as many summary blocks as [`LogOptions::summary_blocks`] says, over which its entries are
//! spread evenly. Each summary block has this layout, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `isfs` |
//! | 4..8 | incarnation of the log: rises with every recovery, so that writes which one recovery did not reach never count again |
//! | 8..16 | sequence number of the write |
//! | 16..24 | time in host block writes |
//! | 24..28 | position of the write's first block |
//! | 28..32 | data blocks of the write |
//! | 32..36 | segment that will be written after the one at hand |
//! | 36..40 | index of this summary block in the write |
//! | 40..48 | checksum of the data blocks |
//! | 48..56 | checksum of this summary block, these eight bytes aside |
//! | 56..256 | zeros |
//! | 256.. | entries of 15 bytes: block (4), time that its age counts from (4), time of its last write (4), writes (3) |
//!
//! Counts of writes above 2^24 - 1 are stored as that. This is the simulator's own layout; it may change between versions.

use crate::checksum::Checksum;
use crate::content::BlockContent;
use crate::disk::{SegmentWrite, SummaryEntry};
use crate::options::{BLOCK_BYTES, LogOptions};
use isotherm::hotness::heat::Heat;

const MAGIC: &[u8; 4] = b"isfs";
const BLOCK: usize = BLOCK_BYTES as usize;
const ENTRIES_AT: usize = 256;
const ENTRY_BYTES: usize = 15;
const CHECKSUM_AT: usize = 48;
const WRITES_MAX: u32 = (1 << 24) - 1;

/// Least [`LogOptions::summary_bytes`] of a log that can be recovered.
pub const SUMMARY_BYTES_MIN: u32 = 16;

const _: () = assert!((BLOCK_BYTES / SUMMARY_BYTES_MIN) as usize * ENTRY_BYTES <= BLOCK - ENTRIES_AT);

/// The summary of a segment write, read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    pub(crate) incarnation: u32,
    pub(crate) sequence: u64,
    pub(crate) now: u64,
    pub(crate) position: u32,
    /// Segment that was to be written next.
    pub(crate) next: u32,
    pub(crate) data_checksum: u64,
    /// Its data blocks, in order.
    pub(crate) entries: Vec<SummaryEntry>,
}

/// Checksum of data blocks.
pub(crate) fn data_checksum<'a, C: BlockContent + 'a>(contents: impl Iterator<Item = &'a C>) -> u64 {
    contents.fold(Checksum::new(), |sum, content| sum.add(content.bytes())).value()
}

impl<C: BlockContent> SegmentWrite<'_, C> {
    /// The bytes of the summary blocks, one after the other, as [`crate::summary`] says; none for a log without summaries.
    pub fn summaries(&self) -> Vec<u8> {
        let data_checksum = data_checksum(self.contents());
        let entries: Vec<SummaryEntry> = self.entries().collect();
        let covered = entries.len().div_ceil(self.summary_blocks.max(1) as usize);
        let mut out = vec![0; self.summary_blocks as usize * BLOCK];
        for (part, (block, entries)) in out.chunks_mut(BLOCK).zip(entries.chunks(covered)).enumerate() {
            block[..4].copy_from_slice(MAGIC);
            block[4..8].copy_from_slice(&self.incarnation.to_le_bytes());
            block[8..16].copy_from_slice(&self.sequence.to_le_bytes());
            block[16..24].copy_from_slice(&self.now.to_le_bytes());
            block[24..28].copy_from_slice(&self.position.to_le_bytes());
            block[28..32].copy_from_slice(&(self.blocks.len() as u32).to_le_bytes());
            block[32..36].copy_from_slice(&self.next_segment.to_le_bytes());
            block[36..40].copy_from_slice(&(part as u32).to_le_bytes());
            block[40..48].copy_from_slice(&data_checksum.to_le_bytes());
            for (bytes, entry) in block[ENTRIES_AT..].chunks_exact_mut(ENTRY_BYTES).zip(entries) {
                bytes[..4].copy_from_slice(&entry.block.to_le_bytes());
                bytes[4..8].copy_from_slice(&entry.heat.time.to_le_bytes());
                bytes[8..12].copy_from_slice(&entry.modified.to_le_bytes());
                bytes[12..].copy_from_slice(&entry.heat.writes.min(WRITES_MAX).to_le_bytes()[..3]);
            }
            let sum = checksum_of(block);
            block[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
        }
        out
    }
}

fn checksum_of(block: &[u8]) -> u64 {
    Checksum::new().add(&block[..CHECKSUM_AT]).add(&block[CHECKSUM_AT + 8..]).value()
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| block[at + i]))
}

fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| block[at + i]))
}

impl Summary {
    /// Reads the first summary block of a write at `position`. Returns it without entries, and the write's number of data
    /// blocks; `None` if no write begins there.
    fn decode_head(block: &[u8], position: u32) -> Option<(Self, u32)> {
        let is_summary = block.len() == BLOCK && block.starts_with(MAGIC);
        if !is_summary || u64_at(block, CHECKSUM_AT) != checksum_of(block) || u32_at(block, 24) != position {
            return None;
        }
        let summary = Self {
            incarnation: u32_at(block, 4),
            sequence: u64_at(block, 8),
            now: u64_at(block, 16),
            position,
            next: u32_at(block, 32),
            data_checksum: u64_at(block, 40),
            entries: Vec::new(),
        };
        Some((summary, u32_at(block, 28)))
    }

    /// Reads the summary of the write at `position`, which has `room` blocks for it, by reading its blocks with `read`; `None`
    /// if no whole summary is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn read<E>(
        position: u32,
        room: u32,
        options: &LogOptions,
        mut read: impl FnMut(u32, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Option<Self>, E> {
        let mut block = Vec::with_capacity(BLOCK);
        read(position, &mut block)?;
        let Some((summary, blocks)) = Self::decode_head(&block, position) else { return Ok(None) };
        if blocks == 0 || blocks > options.payload_in(room) {
            return Ok(None);
        }
        let parts = options.summary_blocks(blocks);
        let covered = blocks.div_ceil(parts) as usize;
        let mut entries = Vec::with_capacity(blocks as usize);
        for part in 0..parts {
            if part > 0 {
                block.clear();
                read(position + part, &mut block)?;
            }
            let belongs = Self::decode_head(&block, position).is_some_and(|(head, _)| head == summary);
            if !belongs || u32_at(&block, 36) != part {
                return Ok(None);
            }
            let left = blocks as usize - entries.len();
            entries.extend(block[ENTRIES_AT..].chunks_exact(ENTRY_BYTES).take(covered.min(left)).map(entry));
        }
        Ok(Some(Self { entries, ..summary }))
    }

    /// Summary blocks and data blocks together.
    pub(crate) fn length(&self, options: &LogOptions) -> u32 {
        self.entries.len() as u32 + options.summary_blocks(self.entries.len() as u32)
    }
}

fn entry(bytes: &[u8]) -> SummaryEntry {
    let writes = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], 0]);
    SummaryEntry { block: u32_at(bytes, 0), heat: Heat { writes, time: u32_at(bytes, 4) }, modified: u32_at(bytes, 8) }
}
