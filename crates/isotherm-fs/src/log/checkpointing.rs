//! Checkpoints, as far as they need the lock: what is in one.

use super::Log;
use crate::format::checkpoint::{Checkpoint, Lagging, SegmentRecord};
use crate::format::entry::{HOLE, RESERVED};
use crate::store::{BLOCK_BYTES, StoreError};
use isotherm_sfs::machine::MachineState;
use isotherm_sfs::segments::SegmentState;

/// A checkpoint to be written when everything before it is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct CheckpointImage {
    /// Block of the device.
    pub position: u32,
    /// What is written there.
    pub bytes: Vec<u8>,
    /// Runs of blocks (first, count) that hold nothing when it is durable, to be discarded.
    pub free: Vec<(u32, u32)>,
}

impl Log {
    /// The checkpoint of this moment. Every page is planned to be written, and no segment is taken before it is durable. `lagging` are the
    /// files among [`Log::written_files`] whose inodes do not count all of their blocks, and that nothing else names.
    pub fn checkpoint(&mut self, is_last: bool, lagging: Lagging) -> CheckpointImage {
        debug_assert!(self.cache.dirty() == 0 && self.redo.is_empty(), "a checkpoint needs all pages");
        self.checkpoint_number += 1;
        let state = self.machine().state();
        let record = Checkpoint {
            number: self.checkpoint_number,
            incarnation: self.incarnation,
            tag: self.superblock.tag(),
            sequence: state.sequence,
            now: state.now,
            reserved: self.usage.reserved,
            stored: self.usage.stored,
            pages: self.usage.pages,
            open: state.open.map(|open| (open.segment, open.next)),
            is_clean: is_last && self.waiting.len() == 0,
            lagging,
            centres: state.centres.clone(),
            roots: self.tables.roots().to_vec(),
            segments: self.segment_records(&state),
            queue: state.queue,
        };
        self.counters.checkpoints += 1;
        self.is_changed = false;
        self.checkpoint_at = self.machine().counters().segments_written;
        let bytes = record.encode();
        self.counters.checkpoint_blocks += (bytes.len() / BLOCK_BYTES) as u64;
        self.tell_checkpoint(is_last);
        let machine = self.machine_mut();
        machine.begin_checkpoint();
        let reusable = machine.on_checkpoint();
        let free = if self.settings.discard {
            let blocks = self.superblock.segment_blocks;
            reusable.into_iter().map(|segment| (self.superblock.segment_start(segment), blocks)).collect()
        } else {
            Vec::new()
        };
        CheckpointImage { position: self.superblock.checkpoints[(self.checkpoint_number % 2) as usize], bytes, free }
    }

    /// Segments as they are for whoever reads the checkpoint: what waits in memory lives where it is on the device.
    fn segment_records(&self, state: &MachineState) -> Vec<SegmentRecord> {
        let mut records: Vec<SegmentRecord> = state
            .segments
            .iter()
            .map(|segment| SegmentRecord {
                state: match segment.state {
                    SegmentState::Freed => 0,
                    SegmentState::Open => 1,
                    SegmentState::Written => 2,
                },
                group: segment.group.map_or(0, |group| group + 1),
                referenced: segment.referenced,
                writes: segment.heat.writes(),
                times: segment.heat.times(),
                youngest: segment.youngest,
                written: segment.written,
            })
            .collect();
        for number in self.waiting.numbers().iter().filter(|number| self.waiting.contains(**number)) {
            let block = self.waiting.get(*number);
            if block.home != HOLE && block.home != RESERVED {
                let record = &mut records[self.segment_of(block.home) as usize];
                record.writes += u64::from(block.stored_heat.writes);
                record.times += u64::from(block.stored_heat.time);
            }
        }
        records
    }

    /// Whether the segment that begins at a block is free, and may be written over.
    pub fn is_reusable_at(&self, position: u32) -> bool {
        let segments = self.machine().segments();
        let segment = self.segment_of(position);
        segments.state(segment) == SegmentState::Freed && segments.is_reusable(segment)
    }

    /// Free segments that may be written over, as ranges of bytes.
    pub fn reusable_runs(&self) -> Vec<(u64, u64)> {
        let segments = self.machine().segments();
        let mut reusable: Vec<u32> = segments.queue().filter(|segment| segments.is_reusable(*segment)).collect();
        reusable.sort_unstable();
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_BYTES as u64;
        let blocks = self.superblock.segment_blocks;
        reusable
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| (bytes(self.superblock.segment_start(run[0])), bytes(blocks) * run.len() as u64))
            .collect()
    }

    /// Puts the machine where a replay has come to.
    pub(super) fn restore_machine(
        &mut self,
        segments: &[SegmentRecord],
        queue: &[u32],
        open: Option<(u32, u32)>,
        (now, sequence): (u64, u64),
        centres: &[f64],
    ) -> Result<(), StoreError> {
        use isotherm_sfs::segments::{OpenSegment, SegmentRecord as Known};
        let mut known = Vec::with_capacity(segments.len());
        for (number, record) in segments.iter().enumerate() {
            let state = match record.state {
                0 => SegmentState::Freed,
                1 => SegmentState::Open,
                2 => SegmentState::Written,
                other => return Err(StoreError::Damaged(format!("segment {number} is in state {other}"))),
            };
            known.push(Known {
                state,
                live: record.referenced,
                referenced: record.referenced,
                heat: isotherm::hotness::heat::HeatSums::of(record.writes, record.times),
                youngest: record.youngest,
                group: record.group.checked_sub(1),
                written: record.written,
            });
        }
        let state = MachineState {
            segments: known,
            queue: queue.to_vec(),
            open: open.map(|(segment, next)| OpenSegment { segment, next }),
            centres: centres.to_vec(),
            now,
            sequence,
        };
        self.machine_mut().restore(&state);
        Ok(())
    }
}
