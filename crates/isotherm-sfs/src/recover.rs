//! Recovery after a loss of power: the newest whole checkpoint, then the writes after it, in order, up to the first that is
//! missing or torn.
//!
//! 1. Of the two places the whole checkpoint with the higher number counts. Its table says which segments held the newest
//!    durable copy of a block.
//! 2. The summaries of those segments give the map as it was at the checkpoint: the copy with the highest sequence number counts.
//!    Fewer blocks than the table counts are damage, not a loss of power, and are refused.
//! 3. Every other segment may have been written since; so may the rest of the open one. Writes of the same incarnation with the
//!    sequence numbers that follow are applied, as long as no number is missing and their data blocks have the right checksum.
//! 4. What was dirty is lost. Where a freed segment still holds the newest durable copy of a block, it is a written segment
//!    again; segments that hold nothing are free.
//! 5. A new checkpoint with the next incarnation is written: writes that this recovery did not reach never count again. Free segments
//!    are trimmed below, since the loss of power may have swallowed that.
//!
//! A trim leaves no record of its own. After a recovery a trimmed block may hold an older version of its data again, as long as
//! it has not been written anew. It never costs room that the log counts on: before a segment is written, the guard has moved what
//! the next one held, so whatever is still found in that one was trimmed.
//!
//! Costs a read of every summary, and of all data since the checkpoint; memory for 8 bytes a block beside the log's tables. The
//! counts of files, of which nothing is stored, are those of their blocks together.

use crate::blocks::{Block, CLEAN, NO_DATA, NOWHERE};
use crate::checkpoint::Checkpoint;
use crate::disk::{NO_BLOCK, Recoverable, SummaryEntry};
use crate::log::{Recovered, SegmentLog};
use crate::options::LogOptions;
use crate::segments::{OpenSegment, SegmentState};
use crate::summary::{SUMMARY_BYTES_MIN, Summary, data_checksum};
use isotherm::device::DeviceError;

/// Why a log cannot be recovered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The device below failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Summaries are too small to hold what recovery needs.
    #[error("summary_bytes={summary_bytes} leaves no room for what recovery needs; give at least {SUMMARY_BYTES_MIN}")]
    SmallSummaries {
        /// What was set.
        summary_bytes: u32,
    },
    /// The log on the device has another shape.
    #[error(
        "the log on the device has {found} {what}, {given} are given; open it with the size and the segment size that it was made with"
    )]
    OtherShape {
        /// What is counted.
        what: &'static str,
        /// Of the log on the device.
        found: u32,
        /// As given.
        given: u32,
    },
    /// Something that was durable is not there any more.
    #[error("the log is damaged: {detail}; restore it from a copy")]
    Damaged {
        /// Where, and what is wrong.
        detail: String,
    },
}

fn damaged<T>(detail: String) -> Result<T, RecoverError> {
    Err(RecoverError::Damaged { detail })
}

/// Opens the log of `blocks` blocks in `segments` segments that `disk` holds, and writes a checkpoint. A disk that was never
/// written holds an empty log.
///
/// # Errors
/// See [`RecoverError`].
pub fn recover<D: Recoverable>(
    mut disk: D,
    blocks: u32,
    segments: u32,
    options: LogOptions,
) -> Result<SegmentLog<D>, RecoverError> {
    if options.summary_bytes < SUMMARY_BYTES_MIN {
        return Err(RecoverError::SmallSummaries { summary_bytes: options.summary_bytes });
    }
    let checkpoint = newest_checkpoint(&mut disk, blocks, segments, &options)?;
    let mut recovery = Recovery::new(checkpoint, &options);
    recovery.find_map(&mut disk)?;
    recovery.roll_forward(&mut disk)?;
    Ok(SegmentLog::resume(disk, options, recovery.finish())?)
}

/// The whole checkpoint with the higher number, or what an empty log would have.
fn newest_checkpoint<D: Recoverable>(
    disk: &mut D,
    blocks: u32,
    segments: u32,
    options: &LogOptions,
) -> Result<Checkpoint, RecoverError> {
    let mut bytes = [Vec::new(), Vec::new()];
    for (place, bytes) in (0..).zip(&mut bytes) {
        disk.read_checkpoint(place, bytes)?;
    }
    let found = bytes.iter().filter_map(|bytes| Checkpoint::decode(bytes)).max_by_key(|c| c.superblock.number);
    let Some(found) = found else {
        // The first checkpoint goes to place 1: place 0 is written only when that is durable.
        if bytes[0].iter().any(|byte| *byte != 0) {
            return damaged("neither place holds a whole checkpoint".to_owned());
        }
        return Ok(Checkpoint::of_empty_log(blocks, segments, options.segment_blocks));
    };
    let shapes = [
        ("segments", found.segments.len() as u32, segments),
        ("blocks in a segment", found.superblock.segment_blocks, options.segment_blocks),
        ("blocks", found.superblock.blocks, blocks),
    ];
    match shapes.into_iter().find(|(_, found, given)| found != given) {
        Some((what, found, given)) => Err(RecoverError::OtherShape { what, found, given }),
        None => Ok(found),
    }
}

struct Recovery<'a> {
    options: &'a LogOptions,
    checkpoint: Checkpoint,
    found: Recovered,
}

impl<'a> Recovery<'a> {
    fn new(mut checkpoint: Checkpoint, options: &'a LogOptions) -> Self {
        let superblock = &mut checkpoint.superblock;
        let found = Recovered {
            blocks: vec![NO_DATA; superblock.blocks as usize],
            owners: vec![NO_BLOCK; checkpoint.segments.len() * options.segment_blocks as usize],
            segments: checkpoint.segments.iter().map(|segment| (segment.state, segment.youngest)).collect(),
            freed: std::mem::take(&mut checkpoint.freed),
            open: superblock.open,
            centres: std::mem::take(&mut superblock.centres),
            now: superblock.now,
            sequence: superblock.sequence,
            checkpoints: superblock.number,
            incarnation: superblock.incarnation,
        };
        Self { options, checkpoint, found }
    }

    /// Blocks of a segment that were written at the checkpoint, as far as its summaries go.
    fn recorded_blocks(&self, segment: u32) -> u32 {
        match self.checkpoint.superblock.open {
            Some(open) if open.segment == segment => open.next,
            _ if self.checkpoint.segments[segment as usize].referenced > 0 => self.options.segment_blocks,
            _ => 0,
        }
    }

    /// Reads the summary of the write at block `at` of a segment.
    fn summary<D: Recoverable>(&self, disk: &mut D, segment: u32, at: u32) -> Result<Option<Summary>, RecoverError> {
        let position = segment * self.options.segment_blocks + at;
        let room = self.options.segment_blocks - at;
        let read = |position, out: &mut Vec<u8>| disk.read_summary(position, out);
        let summary = Summary::read(position, room, self.options, read)?;
        let blocks = self.found.blocks.len() as u32;
        Ok(summary.filter(|summary| summary.entries.iter().all(|entry| entry.block < blocks)))
    }

    /// The map at the checkpoint.
    fn find_map<D: Recoverable>(&mut self, disk: &mut D) -> Result<(), RecoverError> {
        let last = self.checkpoint.superblock.sequence;
        let mut newest = vec![0u64; self.found.blocks.len()];
        for segment in 0..self.checkpoint.segments.len() as u32 {
            let end = self.recorded_blocks(segment);
            let mut before = 0;
            let mut at = 0;
            while at < end && self.options.payload_in(end - at) > 0 {
                let summary = self.summary(disk, segment, at)?;
                let Some(summary) = summary.filter(|s| (before + 1..=last).contains(&s.sequence)) else {
                    return damaged(format!("segment {segment} has no summary at its block {at}"));
                };
                before = summary.sequence;
                let first = summary.position + self.options.summary_blocks(summary.entries.len() as u32);
                for (position, entry) in (first..).zip(&summary.entries) {
                    if newest[entry.block as usize] < summary.sequence {
                        newest[entry.block as usize] = summary.sequence;
                        self.place(position, entry);
                    }
                }
                at += summary.length(self.options);
            }
        }
        self.check_counts()
    }

    /// A block's newest copy is at `position`.
    fn place(&mut self, position: u32, entry: &SummaryEntry) {
        let SummaryEntry { block, heat, modified } = *entry;
        self.found.blocks[block as usize] = Block { position, slot: CLEAN, heat, modified };
        self.found.owners[position as usize] = block;
    }

    /// Newest copies by segment.
    fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.found.segments.len()];
        for block in self.found.blocks.iter().filter(|block| block.position != NOWHERE) {
            counts[(block.position / self.options.segment_blocks) as usize] += 1;
        }
        counts
    }

    /// Trims may bring blocks back; nothing takes them away.
    fn check_counts(&self) -> Result<(), RecoverError> {
        let segments = self.checkpoint.segments.iter().zip(self.counts()).enumerate();
        for (number, (segment, found)) in segments {
            if found < segment.referenced {
                return damaged(format!("segment {number} held {} blocks, {found} are found", segment.referenced));
            }
        }
        Ok(())
    }

    /// Applies the writes after the checkpoint.
    fn roll_forward<D: Recoverable>(&mut self, disk: &mut D) -> Result<(), RecoverError> {
        let mut later = self.later_writes(disk)?;
        later.sort_unstable_by_key(|summary| summary.sequence);
        let mut next = None;
        for summary in later {
            if summary.sequence != self.found.sequence + 1 || !self.is_whole(disk, &summary)? {
                break;
            }
            self.apply(&summary);
            next = Some(summary.next);
        }
        // Blocks that the guard did not move out of the segment that is written next have been trimmed.
        if let Some(segment) = next.filter(|segment| self.options.guard && *segment < self.found.segments.len() as u32)
        {
            self.forget(segment);
        }
        Ok(())
    }

    /// Summaries of writes after the checkpoint, wherever there may be any.
    fn later_writes<D: Recoverable>(&self, disk: &mut D) -> Result<Vec<Summary>, RecoverError> {
        let superblock = &self.checkpoint.superblock;
        let mut later = Vec::new();
        for segment in 0..self.checkpoint.segments.len() as u32 {
            let mut before = superblock.sequence;
            let mut at = self.recorded_blocks(segment);
            while at < self.options.segment_blocks {
                let summary = self.summary(disk, segment, at)?;
                let is_later = |s: &Summary| s.sequence > before && s.incarnation == superblock.incarnation;
                let Some(summary) = summary.filter(is_later) else { break };
                before = summary.sequence;
                at += summary.length(self.options);
                later.push(summary);
            }
        }
        Ok(later)
    }

    /// Whether all data of a write has arrived.
    fn is_whole<D: Recoverable>(&self, disk: &mut D, summary: &Summary) -> Result<bool, RecoverError> {
        let blocks = summary.entries.len();
        let mut contents = vec![D::Block::default(); blocks];
        disk.read(summary.position + self.options.summary_blocks(blocks as u32), &mut contents)?;
        Ok(data_checksum(contents.iter()) == summary.data_checksum)
    }

    /// Applies a write.
    fn apply(&mut self, summary: &Summary) {
        let (segment, at) =
            (summary.position / self.options.segment_blocks, summary.position % self.options.segment_blocks);
        if at == 0 {
            // What it held when it was taken from the queue had been trimmed.
            self.forget(segment);
            self.found.freed.retain(|freed| *freed != segment);
            self.found.segments[segment as usize].1 = 0;
        }
        let next = at + summary.length(self.options);
        let is_full = self.options.payload_in(self.options.segment_blocks - next) == 0;
        let state = if is_full { SegmentState::Written } else { SegmentState::Open };
        self.found.segments[segment as usize].0 = state;
        if !is_full {
            self.found.open = Some(OpenSegment { segment, next });
        } else if self.found.open.is_some_and(|open| open.segment == segment) {
            self.found.open = None;
        }
        let first = summary.position + self.options.summary_blocks(summary.entries.len() as u32);
        for (position, entry) in (first..).zip(&summary.entries) {
            let youngest = &mut self.found.segments[segment as usize].1;
            *youngest = entry.modified.max(*youngest);
            self.place(position, entry);
        }
        self.found.now = summary.now;
        self.found.sequence = summary.sequence;
    }

    /// Forgets blocks whose newest copy lies in `segment`.
    fn forget(&mut self, segment: u32) {
        let from = (segment * self.options.segment_blocks) as usize;
        for position in from..from + self.options.segment_blocks as usize {
            let block = std::mem::replace(&mut self.found.owners[position], NO_BLOCK);
            if block != NO_BLOCK && self.found.blocks[block as usize].position == position as u32 {
                self.found.blocks[block as usize] = NO_DATA;
            }
        }
    }

    /// Puts the segments that hold nothing into the queue, and takes the others out of it.
    ///
    /// The one that is written next is among them: the log goes on only with a segment that no block's only copy lies in.
    fn finish(mut self) -> Recovered {
        let counts = self.counts();
        let open = self.found.open.map(|open| open.segment);
        self.found.freed.retain(|segment| counts[*segment as usize] == 0);
        for (segment, ((state, _), count)) in (0..).zip(self.found.segments.iter_mut().zip(counts)) {
            if Some(segment) == open {
                continue;
            }
            if count == 0 && *state != SegmentState::Freed {
                self.found.freed.push(segment);
            }
            *state = if count > 0 { SegmentState::Written } else { SegmentState::Freed };
        }
        self.found
    }
}
