//! Segment writes: waiting blocks into groups, full groups into segments, the rest into the open one.

use super::{Cleaner, Extent, Machine, Mechanism, Progress, RunWrite};
use crate::segments::{OpenSegment, SegmentState};

impl Machine {
    /// A segment write, with the cleaning, the commits and the checkpoint that it needs.
    ///
    /// # Errors
    /// No space, or the mechanism's.
    #[inline(never)]
    pub fn write_segments<M: Cleaner>(&mut self, mechanism: &mut M, extent: Extent) -> Result<(), M::Error> {
        // Cleaning that gains nothing must end: no pass over all segments can be repeated with profit.
        for _ in 0..=self.segments.count() {
            let cleaned = self.clean_if_needed(mechanism)?;
            let before = self.counters.segments_written;
            let progress = self.write_pass(mechanism, extent, u32::MAX)?;
            let stuck = cleaned == 0 && self.counters.segments_written == before;
            if progress == Progress::OutOfSegments && stuck {
                return Err(mechanism.no_space(self));
            }
            if progress == Progress::Done && (cleaned == 0 || !self.is_cleaning_due()) {
                break;
            }
        }
        if self.is_checkpoint_due() {
            return self.checkpoint(mechanism);
        }
        Ok(())
    }

    /// Writes everything that waits, then commits.
    ///
    /// # Errors
    /// No space, or the mechanism's.
    pub fn checkpoint<M: Cleaner>(&mut self, mechanism: &mut M) -> Result<(), M::Error> {
        self.begin_checkpoint();
        self.write_segments(mechanism, Extent::Everything)?;
        mechanism.commit(self)
    }

    /// Writes what can be written into the segments that are free, of which it takes `most` at most. What was written before
    /// segments ran out, or before an error, is written: the next pass goes on after it.
    ///
    /// # Errors
    /// The mechanism's.
    pub fn write_pass<M: Mechanism>(
        &mut self,
        mechanism: &mut M,
        extent: Extent,
        most: u32,
    ) -> Result<Progress, M::Error> {
        let last = self.counters.segments_written.saturating_add(u64::from(most));
        self.classify(mechanism, extent);
        let full_groups = self.write_full_groups(mechanism, extent, last);
        mechanism.forget_written();
        let progress = full_groups?;
        // A cache too small for one full group in any case writes what it has.
        let at_limit = mechanism.waiting_blocks() >= self.options.dirty_blocks;
        let extent = if at_limit || !self.options.defer { Extent::Everything } else { extent };
        if progress == Progress::OutOfSegments || matches!(extent, Extent::Coldest | Extent::FullGroups) {
            return Ok(progress);
        }
        let remainder = self.write_remainder(mechanism, extent, last);
        mechanism.forget_written();
        remainder
    }

    /// Draws the lines between groups and sorts the waiting blocks into them. Where too few wait to fill a segment, and only
    /// chosen ones are written, that would change nothing: an fsync of a few blocks is spared it.
    fn classify<M: Mechanism>(&mut self, mechanism: &M, extent: Extent) {
        let now = self.ticks();
        let could_fill = mechanism.waiting_blocks() >= mechanism.payload(self.options.segment_blocks) as usize;
        if extent == Extent::Chosen && self.options.defer && !could_fill {
            self.groups.iter_mut().for_each(Vec::clear);
            self.cursors.fill(0);
            self.groups[0].extend(mechanism.waiting());
            return;
        }
        let (segments, quantiser) = (&self.segments, &mut self.quantiser);
        quantiser.update(segments.count() as usize, now, |segment| segments.hotness(segment, now));
        self.groups.iter_mut().for_each(Vec::clear);
        self.cursors.fill(0);
        let many = self.groups.len() > 1;
        for block in mechanism.waiting() {
            let group = if many { self.quantiser.group(mechanism.hotness(block, now)) } else { 0 };
            self.groups[group].push(block);
        }
    }

    /// Whether another segment may be taken, in a pass that ends when so many are written.
    fn may_take_segment(&self, last: u64) -> bool {
        self.segments.freed() >= 2 && self.counters.segments_written < last
    }

    /// Writes every group that fills a segment, hottest first; or a segment of the coldest of these.
    fn write_full_groups<M: Mechanism>(
        &mut self,
        mechanism: &mut M,
        extent: Extent,
        last: u64,
    ) -> Result<Progress, M::Error> {
        if extent == Extent::Coldest {
            return self.write_coldest_group(mechanism, last);
        }
        let mut progress = Progress::Done;
        for group in (0..self.groups.len()).rev() {
            while let Some(cursor) = self.fill_run(mechanism, group) {
                if !self.may_take_segment(last) {
                    progress = Progress::OutOfSegments;
                    break;
                }
                self.cursors[group] = cursor;
                self.write_whole_segment(mechanism, group)?;
            }
        }
        Ok(progress)
    }

    fn write_coldest_group<M: Mechanism>(&mut self, mechanism: &mut M, last: u64) -> Result<Progress, M::Error> {
        for group in 0..self.groups.len() {
            let Some(cursor) = self.fill_run(mechanism, group) else { continue };
            if !self.may_take_segment(last) {
                return Ok(Progress::OutOfSegments);
            }
            self.cursors[group] = cursor;
            self.write_whole_segment(mechanism, group)?;
            break;
        }
        Ok(Progress::Done)
    }

    /// Collects a segment's worth of blocks: what the guard demands, then blocks of `group`. Returns how far it has come in
    /// the group, or `None` if the blocks are too few.
    fn fill_run<M: Mechanism>(&mut self, mechanism: &M, group: usize) -> Option<usize> {
        let wanted = mechanism.payload(self.options.segment_blocks) as usize;
        let place = self.place_to_guard(wanted)?;
        if wanted == 0 || self.groups[group].len() - self.cursors[group] + self.guarded_blocks(place) < wanted {
            return None;
        }
        let guarded = self.collect_guarded(mechanism, place);
        let blocks = &self.groups[group];
        let mut cursor = self.cursors[group];
        while self.run.len() < wanted && cursor < blocks.len() {
            let block = blocks[cursor];
            // Written already, for the guard; or in the run already.
            if mechanism.is_waiting(block) && !guarded.is_some_and(|from| mechanism.is_homed_in(block, from)) {
                self.run.push(block);
            }
            cursor += 1;
        }
        if self.run.len() < wanted {
            return None;
        }
        self.segments.make_second(place);
        Some(cursor)
    }

    /// Blocks whose home is the segment at `place` of the queue, and that the next segment is to take before.
    fn guarded_blocks(&self, place: usize) -> usize {
        match self.segments.queued(place) {
            Some(segment) if self.options.guard => self.segments.referenced(segment) as usize,
            _ => 0,
        }
    }

    /// The place in the queue of the segment that becomes the one after the next: the second, or where that holds more guarded
    /// blocks than `room`, the first after it that does not. `None` if all do. Where segments that may be written over go first,
    /// the first of these, if there is one.
    fn place_to_guard(&self, room: usize) -> Option<usize> {
        let places = self.segments.freed().max(2) as usize;
        if self.options.reusable_first {
            let is_reusable = |segment: u32| self.segments.is_reusable(segment);
            let reusable = (1..places).find(|place| self.segments.queued(*place).is_some_and(is_reusable));
            if reusable.is_some() {
                return reusable;
            }
        }
        (1..places).find(|place| self.guarded_blocks(*place) <= room)
    }

    /// Starts the run with the guarded blocks, if there are any. Returns the segment that they come from.
    fn collect_guarded<M: Mechanism>(&mut self, mechanism: &M, place: usize) -> Option<u32> {
        self.run.clear();
        if self.guarded_blocks(place) == 0 {
            return None;
        }
        let segment = self.segments.queued(place)?;
        mechanism.homed_in(segment, &mut self.run);
        debug_assert_eq!(self.run.len(), self.guarded_blocks(place), "blocks with their home in segment {segment}");
        Some(segment)
    }

    /// Writes the run, which is `group`'s, to a segment of its own.
    fn write_whole_segment<M: Mechanism>(&mut self, mechanism: &mut M, group: usize) -> Result<(), M::Error> {
        let segment = self.allocate(mechanism, SegmentState::Written)?;
        let (_, cleaned) = self.write_run(mechanism, OpenSegment { segment, next: 0 }, Some(group as u8))?;
        self.segments.belongs_to(segment, group as u8, self.now);
        let counters = &mut self.counters.groups[group];
        counters.segments += 1;
        counters.blocks += self.run.len() as u64;
        counters.cleaned_blocks += u64::from(cleaned);
        Ok(())
    }

    /// Writes what still waits and is covered by `extent`, mixed, into the open segment.
    fn write_remainder<M: Mechanism>(
        &mut self,
        mechanism: &mut M,
        extent: Extent,
        last: u64,
    ) -> Result<Progress, M::Error> {
        let mut waiting: Vec<u32> = Vec::new();
        for (group, cursor) in self.groups.iter().zip(&self.cursors).rev() {
            waiting.extend(&group[*cursor..]);
        }
        let everything = extent == Extent::Everything;
        waiting.retain(|block| mechanism.is_waiting(*block) && (everything || mechanism.is_chosen(*block)));
        let mut at = 0;
        while at < waiting.len() || mechanism.has_records() {
            self.run.clear();
            self.close_if_short(mechanism, at < waiting.len());
            let mut guarded = None;
            let open = match self.open {
                Some(open) => open,
                None if !self.may_take_segment(last) => return Ok(Progress::OutOfSegments),
                None => {
                    let room = mechanism.payload(self.options.segment_blocks) as usize;
                    let Some(place) = self.place_to_guard(room) else { return Ok(Progress::OutOfSegments) };
                    guarded = self.collect_guarded(mechanism, place);
                    self.segments.make_second(place);
                    OpenSegment { segment: self.allocate(mechanism, SegmentState::Open)?, next: 0 }
                }
            };
            let room = mechanism.payload(self.options.segment_blocks - open.next) as usize;
            while self.run.len() < room && at < waiting.len() {
                let block = waiting[at];
                if mechanism.is_waiting(block) && !guarded.is_some_and(|from| mechanism.is_homed_in(block, from)) {
                    self.run.push(block);
                }
                at += 1;
            }
            self.append_to_open(mechanism, open)?;
        }
        Ok(Progress::Done)
    }

    /// Closes the open segment if it has no room for what is written next: a block, or only records.
    fn close_if_short<M: Mechanism>(&mut self, mechanism: &M, has_blocks: bool) {
        let Some(open) = self.open else { return };
        let room = self.options.segment_blocks - open.next;
        let fits = if has_blocks { mechanism.payload(room) > 0 } else { mechanism.overhead(0) <= room };
        if !fits {
            self.close_open(open);
        }
    }

    fn close_open(&mut self, open: OpenSegment) {
        self.segments.close(open.segment);
        self.open = None;
    }

    /// Writes the run and what records wait to the open segment, and closes it if it has no room for another block.
    fn append_to_open<M: Mechanism>(&mut self, mechanism: &mut M, open: OpenSegment) -> Result<(), M::Error> {
        let mut next = open.next;
        if !self.run.is_empty() || mechanism.has_records() {
            next += self.write_run(mechanism, open, None)?.0;
            self.counters.partial_writes += 1;
        }
        let open = OpenSegment { segment: open.segment, next };
        self.open = Some(open);
        if mechanism.payload(self.options.segment_blocks - next) == 0 {
            self.close_open(open);
        }
        Ok(())
    }

    /// Takes the next segment, which must be reusable.
    fn allocate<M: Mechanism>(&mut self, mechanism: &mut M, state: SegmentState) -> Result<u32, M::Error> {
        let next = self.segments.queued(0);
        let next = next.ok_or_else(|| mechanism.no_space(self))?;
        if !self.segments.is_reusable(next) {
            assert!(!self.options.guard || self.segments.referenced(next) == 0, "the guard failed");
            // The last checkpoint still refers to it.
            mechanism.commit(self)?;
        }
        self.segments_since_checkpoint += 1;
        self.counters.segments_written += 1;
        Ok(self.segments.allocate(state).expect("there is a next segment"))
    }

    /// Writes the run to where `to` says. Returns the blocks that this took, and how many of the run's the cleaner had made wait.
    fn write_run<M: Mechanism>(
        &mut self,
        mechanism: &mut M,
        to: OpenSegment,
        group: Option<u8>,
    ) -> Result<(u32, u32), M::Error> {
        let run = std::mem::take(&mut self.run);
        let blocks = run.len() as u32;
        let overhead_blocks = mechanism.overhead(blocks);
        debug_assert!(to.next + overhead_blocks + blocks <= self.options.segment_blocks, "a run is too long");
        let write = RunWrite {
            segment: to.segment,
            at: to.next,
            overhead_blocks,
            blocks: &run,
            group,
            sequence: self.sequence + 1,
            now: self.now,
            next_segment: self.segments.queued(0),
        };
        let result = mechanism.write(self, &write);
        self.sequence += u64::from(result.is_ok());
        self.run = run;
        let cleaned = result?;
        self.counters.summary_blocks += u64::from(overhead_blocks);
        self.counters.cleaned_blocks += u64::from(cleaned);
        self.counters.logged_blocks += u64::from(blocks - cleaned);
        Ok((overhead_blocks + blocks, cleaned))
    }
}
