//! Reading what lies in a segment, write by write.

use crate::device::Device;
use crate::format::summary::{Record, Summary, blocks};
use crate::format::superblock::Superblock;
use crate::store::{BLOCK_BYTES, Page};
use std::sync::Arc;

/// Reads the segments of a volume. Needs no lock.
#[derive(Debug)]
pub struct SegmentReader<'a> {
    device: &'a dyn Device,
    superblock: &'a Superblock,
    tag: u32,
}

impl<'a> SegmentReader<'a> {
    /// Of the volume that `superblock` describes.
    pub fn new(device: &'a dyn Device, superblock: &'a Superblock) -> Self {
        Self { device, superblock, tag: superblock.tag() }
    }

    /// The summary at block `next` of a segment, if it is whole, of this volume, and fits the segment.
    #[must_use]
    pub fn read_summary(&self, segment: u32, next: u32) -> Option<Summary> {
        let room = self.superblock.segment_blocks.checked_sub(next).filter(|room| *room > 0)? as usize;
        let position = self.superblock.segment_start(segment) + next;
        let offset = u64::from(position) * BLOCK_BYTES as u64;
        let mut bytes = vec![0; BLOCK_BYTES];
        self.device.read(offset, &mut bytes).ok()?;
        let (summary_blocks, records) = Summary::lengths(&bytes)?;
        if summary_blocks + records > room {
            return None;
        }
        bytes.resize(summary_blocks * BLOCK_BYTES, 0);
        self.device.read(offset, &mut bytes).ok()?;
        let summary = Summary::decode(&bytes)?;
        (summary.tag == self.tag && summary.position == position).then_some(summary)
    }

    /// The blocks of a write; `None` for one that cannot be read, or is not what the summary says.
    #[must_use]
    pub fn read_contents(&self, summary: &Summary) -> Vec<Option<Arc<Page>>> {
        let count = summary.records.len();
        let blocks = match self.read_blocks(summary.first_block(), count) {
            Ok(blocks) => blocks.into_iter().map(Some).collect(),
            // One that cannot be read is no reason to do without the others.
            Err(_) => (summary.first_block()..)
                .take(count)
                .map(|position| self.read_blocks(position, 1).ok().and_then(|mut blocks| blocks.pop()))
                .collect::<Vec<_>>(),
        };
        let is_right = |(record, block): (&Record, Option<Arc<Page>>)| {
            block.filter(|block| crc32c::crc32c(&**block) == record.checksum)
        };
        summary.records.iter().zip(blocks).map(is_right).collect()
    }

    /// Summaries that begin at some block of a segment from `next` on, whatever lies between them.
    pub fn scan_summaries(&self, segment: u32, next: u32) -> impl Iterator<Item = Summary> + '_ {
        const BLOCKS_AT_A_TIME: u32 = 256;
        let (start, end) = (self.superblock.segment_start(segment), self.superblock.segment_blocks);
        let mut bytes = vec![0; BLOCKS_AT_A_TIME.min(end - next) as usize * BLOCK_BYTES];
        (next..end).step_by(BLOCKS_AT_A_TIME as usize).flat_map(move |from| {
            let bytes = &mut bytes[..BLOCKS_AT_A_TIME.min(end - from) as usize * BLOCK_BYTES];
            // A piece that cannot be read is looked at as if nothing stood there.
            if self.device.read(u64::from(start + from) * BLOCK_BYTES as u64, bytes).is_err() {
                bytes.fill(0);
            }
            let blocks = (from..).zip(bytes.as_chunks::<BLOCK_BYTES>().0);
            let begins = blocks.filter(|(_, block)| Summary::lengths(&block[..]).is_some());
            begins.filter_map(|(at, _)| self.read_summary(segment, at)).collect::<Vec<_>>()
        })
    }

    /// The writes of a segment since it was taken last, as far as they are whole.
    pub fn summaries(&self, segment: u32) -> impl Iterator<Item = Summary> + '_ {
        let mut next = 0;
        let mut sequence = 0;
        std::iter::from_fn(move || {
            // What lies behind the last write is left of the segment's earlier life.
            let summary = self.read_summary(segment, next).filter(|summary| summary.sequence > sequence)?;
            (next, sequence) = (next + summary.blocks(), summary.sequence);
            Some(summary)
        })
    }

    /// Reads `count` blocks from `position` on.
    ///
    /// # Errors
    /// The device.
    pub fn read_blocks(&self, position: u32, count: usize) -> std::io::Result<Vec<Arc<Page>>> {
        let mut bytes = vec![0; count * BLOCK_BYTES];
        self.device.read(u64::from(position) * BLOCK_BYTES as u64, &mut bytes)?;
        Ok(bytes.as_chunks::<BLOCK_BYTES>().0.iter().map(|block| Arc::new(*block)).collect())
    }
}

impl Summary {
    /// Block of the device at which its first block lies.
    #[must_use]
    pub fn first_block(&self) -> u32 {
        self.position + blocks(self.records.len(), self.redo.len()) as u32
    }

    /// Blocks of the whole write.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        (blocks(self.records.len(), self.redo.len()) + self.records.len()) as u32
    }
}
