//! Reading what lies in a segment, write by write.

use crate::device::Device;
use crate::format::summary::{Summary, blocks};
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

    /// The write that begins at block `next` of a segment, if it is whole.
    #[must_use]
    pub fn read_write(&self, segment: u32, next: u32) -> Option<(Summary, Vec<Arc<Page>>)> {
        let summary = self.read_summary(segment, next)?;
        let mut bytes = vec![0; summary.records.len() * BLOCK_BYTES];
        self.device.read(u64::from(summary.first_block()) * BLOCK_BYTES as u64, &mut bytes).ok()?;
        let contents: Vec<Arc<Page>> =
            bytes.as_chunks::<BLOCK_BYTES>().0.iter().map(|block| Arc::new(*block)).collect();
        let is_whole =
            summary.records.iter().zip(&contents).all(|(record, block)| crc32c::crc32c(&**block) == record.checksum);
        is_whole.then_some((summary, contents))
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
