//! Segment writes: dirty blocks into groups, full groups into segments, the rest into the open one, and checkpoints.

use super::SegmentLog;
use crate::blocks::{CLEAN, NOWHERE};
use crate::checkpoint::{CheckpointWrite, OpenSegment, Superblock, checkpoint_blocks};
use crate::dirty::Origin;
use crate::disk::{Disk, NO_BLOCK, SegmentWrite};
use crate::options::TrimPoint;
use crate::segments::SegmentState;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::Time;
use isotherm::memory;

/// Why a segment write stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Everything that may be written is written.
    Done,
    /// Segments ran out.
    OutOfSegments,
}

impl<S: Disk> SegmentLog<S> {
    /// A segment write; `everything` leaves nothing dirty.
    #[inline(never)]
    pub(super) fn write_segments(&mut self, everything: bool) -> Result<(), DeviceError> {
        // Cleaning that gains nothing must end: no pass over all segments can be repeated with profit.
        for _ in 0..=self.segments.count() {
            let cleaned = self.clean_if_needed()?;
            self.classify();
            let before = self.counters.segments_written;
            let full_groups = self.write_full_groups();
            // Also if a write failed: those before it are written.
            self.forget_written();
            let mut progress = full_groups?;
            // A cache too small for one full group in any case writes what it has.
            let at_limit = self.dirty.len() >= self.options.dirty_blocks;
            if progress == Progress::Done && (everything || !self.options.defer || at_limit) {
                let remainder = self.write_remainder();
                self.forget_written();
                progress = remainder?;
            }
            let stuck = cleaned == 0 && self.counters.segments_written == before;
            if progress == Progress::OutOfSegments && stuck {
                return Err(self.no_space());
            }
            if progress == Progress::Done && (cleaned == 0 || self.segments.freed() > self.options.clean_below) {
                break;
            }
        }
        if self.segments_since_checkpoint >= self.options.checkpoint_segments {
            return self.checkpoint();
        }
        Ok(())
    }

    /// Draws the lines between groups and sorts the dirty blocks into them.
    fn classify(&mut self) {
        let now = self.ticks();
        let (segments, quantiser) = (&self.segments, &mut self.quantiser);
        quantiser.update(segments.count() as usize, now, |segment| segments.hotness(segment, now));
        self.groups.iter_mut().for_each(Vec::clear);
        self.cursors.fill(0);
        let many = self.groups.len() > 1;
        for dirty in self.dirty.entries() {
            let group = if many {
                let heat = self.blocks[dirty.block as usize].heat;
                // A block that was never rewritten is as hot as its file.
                let is_new = heat.writes <= 1;
                let now = now as Time;
                let hotness = if is_new { self.files.hotness(dirty.block, now) } else { heat.hotness(now) };
                self.quantiser.group(hotness)
            } else {
                0
            };
            self.groups[group].push(dirty.block);
        }
    }

    /// Writes every group that fills a segment, hottest first.
    fn write_full_groups(&mut self) -> Result<Progress, DeviceError> {
        let mut progress = Progress::Done;
        for group in (0..self.groups.len()).rev() {
            while let Some(cursor) = self.fill_run(group) {
                if self.segments.freed() < 2 {
                    progress = Progress::OutOfSegments;
                    break;
                }
                self.cursors[group] = cursor;
                self.write_whole_segment(group)?;
            }
        }
        Ok(progress)
    }

    /// Collects a segment's worth of blocks: what the guard demands, then blocks of `group`. Returns how far it has come in
    /// the group, or `None` if the blocks are too few.
    fn fill_run(&mut self, group: usize) -> Option<usize> {
        let wanted = self.options.payload_blocks() as usize;
        if self.groups[group].len() - self.cursors[group] + self.guarded_blocks() < wanted {
            return None;
        }
        let guarded = self.collect_guarded();
        let (guarded_from, guarded_to) = guarded.unwrap_or((NOWHERE, NOWHERE));
        let blocks = &self.groups[group];
        let mut cursor = self.cursors[group];
        while self.run.len() < wanted && cursor < blocks.len() {
            let block = blocks[cursor];
            let state = &self.blocks[block as usize];
            // Written already, for the guard; or in the run already.
            if state.slot != CLEAN && !(guarded_from <= state.position && state.position < guarded_to) {
                self.run.push(block);
            }
            cursor += 1;
        }
        (self.run.len() == wanted).then_some(cursor)
    }

    /// Blocks whose newest durable copy lies in the segment after the next.
    fn guarded_blocks(&self) -> usize {
        match self.segments.next_two() {
            (_, Some(after)) if self.options.guard => self.segments.referenced(after) as usize,
            _ => 0,
        }
    }

    /// Starts the run with the guarded blocks. Returns the positions of the segment that they come from.
    fn collect_guarded(&mut self) -> Option<(u32, u32)> {
        self.run.clear();
        if self.guarded_blocks() == 0 {
            return None;
        }
        let after = self.segments.next_two().1?;
        let (from, to) = (after * self.options.segment_blocks, (after + 1) * self.options.segment_blocks);
        for position in from..to {
            let block = self.owners[position as usize];
            if block != NO_BLOCK && self.blocks[block as usize].position == position {
                debug_assert!(self.blocks[block as usize].slot != CLEAN, "a freed segment holds a live block");
                self.run.push(block);
            }
        }
        Some((from, to))
    }

    /// Writes the run, which is `group`'s, to a segment of its own.
    fn write_whole_segment(&mut self, group: usize) -> Result<(), DeviceError> {
        let segment = self.allocate(SegmentState::Written)?;
        let run = std::mem::take(&mut self.run);
        let cleaned = self.counters.cleaned_blocks;
        let result = self.write_run(segment * self.options.segment_blocks, &run);
        self.run = run;
        result?;
        self.segments.belongs_to(segment, group as u8, self.now);
        let counters = &mut self.counters.groups[group];
        counters.segments += 1;
        counters.blocks += self.run.len() as u64;
        counters.cleaned_blocks += self.counters.cleaned_blocks - cleaned;
        Ok(())
    }

    /// Writes what is still dirty, mixed, into the open segment.
    fn write_remainder(&mut self) -> Result<Progress, DeviceError> {
        let mut waiting: Vec<u32> = Vec::new();
        for (group, cursor) in self.groups.iter().zip(&self.cursors).rev() {
            waiting.extend(&group[*cursor..]);
        }
        waiting.retain(|block| self.blocks[*block as usize].slot != CLEAN);
        let mut progress = Progress::Done;
        let mut at = 0;
        while at < waiting.len() {
            self.run.clear();
            let open = match self.open {
                Some(open) => open,
                None if self.segments.freed() < 2 => {
                    progress = Progress::OutOfSegments;
                    break;
                }
                None => {
                    self.collect_guarded();
                    OpenSegment { segment: self.allocate(SegmentState::Open)?, next: 0 }
                }
            };
            let room = self.options.payload_in(self.options.segment_blocks - open.next) as usize;
            let guarded = self.run.len();
            let guarded_positions = self.run.first().map(|b| self.segment_of(self.blocks[*b as usize].position));
            while self.run.len() < room && at < waiting.len() {
                let state = &self.blocks[waiting[at] as usize];
                let in_run = guarded > 0
                    && state.position != NOWHERE
                    && Some(self.segment_of(state.position)) == guarded_positions;
                if state.slot != CLEAN && !in_run {
                    self.run.push(waiting[at]);
                }
                at += 1;
            }
            self.append_to_open(open)?;
        }
        Ok(progress)
    }

    /// Writes the run to the open segment, and closes it if it has no room for another block.
    fn append_to_open(&mut self, open: OpenSegment) -> Result<(), DeviceError> {
        let run = std::mem::take(&mut self.run);
        let mut next = open.next;
        if !run.is_empty() {
            self.write_run(open.segment * self.options.segment_blocks + open.next, &run)?;
            next += run.len() as u32 + self.options.summary_blocks(run.len() as u32);
            self.counters.partial_writes += 1;
        }
        self.run = run;
        self.open = Some(OpenSegment { segment: open.segment, next });
        if self.options.payload_in(self.options.segment_blocks - next) == 0 {
            self.segments.close(open.segment);
            self.open = None;
        }
        Ok(())
    }

    /// Takes the next segment, which must be reusable.
    fn allocate(&mut self, state: SegmentState) -> Result<u32, DeviceError> {
        let (next, _) = self.segments.next_two();
        let next = next.ok_or_else(|| self.no_space())?;
        if !self.segments.is_reusable(next) {
            assert!(!self.options.guard || self.segments.referenced(next) == 0, "the guard failed");
            // The last checkpoint still refers to it.
            self.commit()?;
        }
        self.segments_since_checkpoint += 1;
        self.counters.segments_written += 1;
        let segment = self.segments.allocate(state).expect("there is a next segment");
        let from = segment as usize * self.options.segment_blocks as usize;
        self.owners[from..from + self.options.segment_blocks as usize].fill(NO_BLOCK);
        Ok(segment)
    }

    /// Writes `run` from `position` on: summaries, then blocks. Where that fails the blocks stay dirty, and where they were.
    fn write_run(&mut self, position: u32, run: &[u32]) -> Result<(), DeviceError> {
        let summary_blocks = self.options.summary_blocks(run.len() as u32);
        let mut cleaned = 0;
        for (index, block) in run.iter().enumerate() {
            if let Some(ahead) = run.get(index + 16) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            cleaned += u32::from(self.dirty.origin(self.blocks[*block as usize].slot) == Origin::Cleaning);
        }
        let sequence = self.sequence + 1;
        // A segment is taken from the queue only while another is left in it.
        let next_segment = self.segments.next_two().0.unwrap_or(u32::MAX);
        self.store.write(&SegmentWrite {
            position,
            summary_blocks,
            blocks: run,
            cleaned,
            sequence,
            incarnation: self.incarnation,
            now: self.now,
            next_segment,
            table: &self.blocks,
            dirty: &self.dirty,
        })?;
        self.sequence = sequence;
        let segment = self.segment_of(position);
        let mut guarded = 0;
        for (to, block) in (position + summary_blocks..).zip(run) {
            let state = &mut self.blocks[*block as usize];
            if state.position != NOWHERE {
                let from = state.position / self.options.segment_blocks;
                guarded += u64::from(from == next_segment);
                self.segments.release(from);
            }
            state.position = to;
            state.slot = CLEAN;
            self.segments.on_write(segment, state.heat, state.modified);
            self.owners[to as usize] = *block;
        }
        self.counters.guarded_blocks += guarded;
        self.counters.summary_blocks += u64::from(summary_blocks);
        self.counters.cleaned_blocks += u64::from(cleaned);
        self.counters.logged_blocks += run.len() as u64 - u64::from(cleaned);
        Ok(())
    }

    /// Takes out of the dirty cache what is written.
    fn forget_written(&mut self) {
        let blocks = &mut self.blocks;
        self.dirty.retain(|dirty, position| {
            let state = &mut blocks[dirty.block as usize];
            let keep = state.slot != CLEAN;
            if keep {
                state.slot = position;
            }
            keep
        });
    }

    /// Writes the superblock, and trims the segments that are reusable from now on.
    pub(super) fn commit(&mut self) -> Result<(), DeviceError> {
        self.store.flush()?;
        let superblock = Superblock {
            incarnation: self.incarnation,
            number: self.checkpoints + 1,
            sequence: self.sequence,
            now: self.now,
            segment_blocks: self.options.segment_blocks,
            blocks: self.blocks.len() as u32,
            open: self.open,
            centres: self.quantiser.centres(),
        };
        self.store.checkpoint(&CheckpointWrite { superblock, segments: &self.segments })?;
        self.checkpoints += 1;
        self.counters.checkpoints += 1;
        self.counters.checkpoint_blocks += u64::from(checkpoint_blocks(self.segments.count()));
        self.store.flush()?;
        let reusable = self.segments.on_checkpoint();
        if self.options.trim == TrimPoint::Reusable {
            for segment in reusable {
                self.counters.segments_trimmed += 1;
                self.store.trim(segment)?;
            }
        }
        Ok(())
    }
}
