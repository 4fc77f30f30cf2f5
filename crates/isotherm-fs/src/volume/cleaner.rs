//! Cleaning a segment: what is live in it is read, waits to be written elsewhere, and the segment is freed.

use super::Volume;
use super::seat::Writer;
use super::writer::lock;
use crate::format::summary::Record;
use crate::log::Log;
use crate::log::segment_reader::SegmentReader;
use crate::store::StoreError;

/// Blocks that are looked up while requests wait: each may need a page from the device.
const LOOKED_UP: usize = 32;
/// Blocks that are taken out while requests wait.
const TAKEN_OUT: usize = 256;

impl Volume {
    /// Cleans a segment. Returns false if none is worth it.
    pub(super) fn clean_one(&self, _writer: &mut Writer<'_>, room_is_short: bool) -> Result<bool, StoreError> {
        let (victim, superblock) = {
            let mut tree = lock(&self.tree)?;
            let Some(victim) = tree.store_mut().pick_victim(room_is_short) else { return Ok(false) };
            (victim, tree.store().superblock().clone())
        };
        let reader = SegmentReader::new(&*self.device, &superblock);
        let mut candidates: Vec<(u32, Record)> = Vec::new();
        for summary in reader.summaries(victim) {
            candidates.extend((summary.first_block()..).zip(summary.records.iter().copied()));
        }
        candidates.sort_unstable_by_key(|(position, record)| (Log::lookup_order(record.name), *position));
        let mut live = Vec::new();
        for batch in candidates.chunks(LOOKED_UP) {
            let mut tree = lock(&self.tree)?;
            for (position, record) in batch {
                if tree.store_mut().is_live(record.name, *position)? {
                    live.push((*position, *record));
                }
            }
        }
        live.sort_unstable_by_key(|(position, _)| *position);
        for run in live.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
            for part in run.chunks(TAKEN_OUT) {
                self.take_out(&reader, part)?;
            }
        }
        lock(&self.tree)?.store_mut().free_segment(victim);
        Ok(true)
    }

    /// Takes out consecutive blocks. Those that cannot be read stay where they are.
    fn take_out(&self, reader: &SegmentReader<'_>, blocks: &[(u32, Record)]) -> Result<(), StoreError> {
        let contents = reader.read_blocks(blocks[0].0, blocks.len());
        let contents = contents.map_err(|error| StoreError::Device(error.to_string()))?;
        let mut read: Vec<_> = blocks.iter().zip(contents).collect();
        read.retain(|((_, record), content)| crc32c::crc32c(&**content) == record.checksum);
        let mut tree = lock(&self.tree)?;
        tree.store_mut().count_cleaning_reads(blocks.len() as u64);
        for ((position, record), content) in read {
            tree.store_mut().adopt(record, *position, content)?;
        }
        Ok(())
    }
}
