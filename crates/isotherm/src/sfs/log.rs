//! The log: host writes into a dirty cache, the dirty cache into segments by hotness group, segments cleaned into the dirty
//! cache (Min et al., SFS, FAST'12).
//!
//! A *segment write* first draws the lines between the groups anew ([`super::quantise`]), then sorts the dirty blocks into
//! groups and writes every group that fills whole segments. What is left over stays dirty (*deferral*), live blocks under
//! cleaning included, until its group fills a segment; a sync or a checkpoint writes the rest mixed, into one open segment.
//!
//! Before segment S(t) is written, any block whose newest durable copy lies in S(t+1) is put into it, whatever its group
//! (the *guard*): so the segment that is written next never holds the only copy of anything. The slides guard blocks under
//! cleaning; here the guard also covers blocks that the host overwrote in memory only, since their older version is what a
//! loss of power must bring back.
//!
//! Departures: a checkpoint that is needed only to make a freed segment reusable writes the superblock alone and leaves
//! deferred blocks dirty (roll-forward finds what was written after it). With one group and no deferral this is a plain
//! log-structured file system.

use super::dirty::{Dirty, DirtyCache, Origin};
use super::hotness::{CountWrites, Files, Heat, Time};
use super::options::{LogOptions, TrimPoint};
use super::quantise::Quantiser;
use super::segments::{SegmentState, Segments};
use super::snapshot::LogCounters;
use super::store::{NO_BLOCK, SegmentStore, SegmentWrite, checkpoint_blocks};
use crate::device::DeviceError;
use crate::memory;

/// Position of a block that was never written.
const NOWHERE: u32 = u32::MAX;
/// Slot of a block that is not dirty.
const CLEAN: u32 = u32::MAX;

/// What the log knows of a block.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Position of its newest durable copy, or [`NOWHERE`].
    position: u32,
    /// Its place in the dirty cache, or [`CLEAN`].
    slot: u32,
    heat: Heat,
    /// Time of its last write.
    modified: Time,
}

const _: () = assert!(size_of::<Block>() == 20);

/// A block that holds no data.
const NO_DATA: Block = Block { position: NOWHERE, slot: CLEAN, heat: Heat { writes: 0, time: 0 }, modified: 0 };

/// The segment that partial writes fill.
#[derive(Clone, Copy, Debug)]
struct OpenSegment {
    segment: u32,
    next: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SegmentLog<S> {
    options: LogOptions,
    store: S,
    blocks: Vec<Block>,
    /// The block that each position was written for, or [`NO_BLOCK`].
    owners: Vec<u32>,
    segments: Segments,
    files: Files,
    quantiser: Quantiser,
    dirty: DirtyCache,
    open: Option<OpenSegment>,
    /// Host block writes so far: the clock of every policy.
    now: u64,
    sequence: u64,
    checkpoints: u64,
    segments_since_checkpoint: u32,
    last_write_ns: u64,
    last_checkpoint_ns: u64,
    counters: LogCounters,
    /// Dirty blocks by group while a segment write lasts, and how many of each group have been looked at.
    groups: Vec<Vec<u32>>,
    cursors: Vec<usize>,
    /// Blocks of the run that is being written.
    run: Vec<u32>,
}

/// Why a segment write stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Everything that may be written is written.
    Done,
    /// Segments ran out.
    OutOfSegments,
}

impl<S: SegmentStore> SegmentLog<S> {
    /// An empty log of `segments` segments for `blocks` blocks.
    pub fn new(store: S, blocks: u32, segments: u32, options: LogOptions) -> Self {
        let positions = segments as usize * options.segment_blocks as usize;
        let groups = options.quantiser.groups;
        Self {
            blocks: memory::table(blocks as usize, NO_DATA),
            owners: memory::table(positions, NO_BLOCK),
            segments: Segments::new(segments, options.payload_blocks()),
            files: Files::new(blocks, options.log2_file_blocks),
            quantiser: Quantiser::new(options.quantiser, options.seed),
            dirty: DirtyCache::default(),
            open: None,
            now: 0,
            sequence: 0,
            checkpoints: 0,
            segments_since_checkpoint: 0,
            last_write_ns: 0,
            last_checkpoint_ns: 0,
            counters: LogCounters::new(groups),
            groups: vec![Vec::new(); groups],
            cursors: vec![0; groups],
            run: Vec::with_capacity(options.segment_blocks as usize),
            options,
            store,
        }
    }

    /// The device below.
    pub fn store(&self) -> &S {
        &self.store
    }
    /// The device below, to tell it the time.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }
    /// What was set.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }
    /// What was counted.
    pub fn counters(&self) -> &LogCounters {
        &self.counters
    }
    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    /// The groups' centres of hotness, coldest first.
    pub fn centres(&self) -> Vec<f64> {
        self.quantiser.centres()
    }
    /// Dirty blocks.
    pub fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }
    /// Blocks that exist.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }
    /// Position of the newest durable copy of every block, as a checkpoint records it.
    pub fn positions(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.blocks.iter().map(|b| (b.position != NOWHERE).then_some(b.position))
    }

    /// Brings what a write of `block` will touch towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, block: u32) {
        memory::prefetch(&self.blocks, block as usize);
    }

    #[inline(always)]
    fn segment_of(&self, position: u32) -> u32 {
        position / self.options.segment_blocks
    }

    /// The host writes a block.
    ///
    /// # Errors
    /// No space, or faults below.
    #[inline(always)]
    pub fn write(&mut self, block: u32) -> Result<(), DeviceError> {
        let now = self.now as Time;
        self.now += 1;
        self.counters.host_blocks += 1;
        let state = &mut self.blocks[block as usize];
        let mut absorbed = false;
        if state.slot == CLEAN {
            if state.position != NOWHERE {
                self.segments.on_death(state.position / self.options.segment_blocks, state.heat);
            }
            state.slot = self.dirty.push(Dirty { block, origin: Origin::Host });
        } else if self.dirty.rewrite(state.slot) == Origin::Host {
            self.counters.absorbed_blocks += 1;
            absorbed = true;
        }
        state.modified = now;
        if !absorbed || self.options.count == CountWrites::Host {
            state.heat.on_write(now, self.options.age);
            self.files.on_write(block, now, self.options.age);
        }
        if self.dirty.len() >= self.options.dirty_blocks { self.write_segments(false) } else { Ok(()) }
    }

    /// The host reads a block; false if it was never written.
    ///
    /// # Errors
    /// Faults below.
    pub fn read(&mut self, block: u32) -> Result<bool, DeviceError> {
        let state = self.blocks[block as usize];
        if state.slot != CLEAN {
            self.counters.reads_from_cache += 1;
            return Ok(true);
        }
        if state.position == NOWHERE {
            return Ok(false);
        }
        self.store.read(state.position, 1)?;
        Ok(true)
    }

    /// The host discards a block.
    pub fn trim(&mut self, block: u32) {
        let state = self.blocks[block as usize];
        if state.slot != CLEAN {
            if let Some(moved) = self.dirty.remove(state.slot) {
                self.blocks[moved as usize].slot = state.slot;
            }
        } else if state.position != NOWHERE {
            self.segments.on_death(self.segment_of(state.position), state.heat);
        }
        if state.position != NOWHERE {
            self.segments.release(self.segment_of(state.position));
        }
        self.blocks[block as usize] = NO_DATA;
    }

    /// Time passes: the periodic segment write and the periodic checkpoint.
    ///
    /// # Errors
    /// No space, or faults below.
    #[inline(always)]
    pub fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        let write_due = now_ns.saturating_sub(self.last_write_ns) >= self.options.write_interval_ns;
        let checkpoint_due = now_ns.saturating_sub(self.last_checkpoint_ns) >= self.options.checkpoint_interval_ns;
        if write_due || checkpoint_due { self.catch_up(now_ns, checkpoint_due) } else { Ok(()) }
    }

    #[inline(never)]
    fn catch_up(&mut self, now_ns: u64, checkpoint_due: bool) -> Result<(), DeviceError> {
        self.last_write_ns = now_ns;
        if !checkpoint_due {
            return self.write_segments(false);
        }
        self.last_checkpoint_ns = now_ns;
        self.checkpoint()
    }

    /// Makes everything durable: groupwise first, the remainder mixed.
    ///
    /// # Errors
    /// No space, or faults below.
    pub fn sync(&mut self) -> Result<(), DeviceError> {
        self.counters.syncs += 1;
        self.write_segments(true)?;
        self.store.flush()
    }

    /// Makes everything durable, then writes a superblock that refers to it.
    ///
    /// # Errors
    /// No space, or faults below.
    pub fn checkpoint(&mut self) -> Result<(), DeviceError> {
        self.segments_since_checkpoint = 0;
        self.write_segments(true)?;
        self.commit()
    }

    /// A segment write; `everything` leaves nothing dirty.
    #[inline(never)]
    fn write_segments(&mut self, everything: bool) -> Result<(), DeviceError> {
        // Cleaning that gains nothing must end: no pass over all segments can be repeated with profit.
        for _ in 0..=self.segments.count() {
            let cleaned = self.clean_if_needed()?;
            self.classify();
            let before = self.counters.segments_written;
            let mut progress = self.write_full_groups()?;
            // A cache too small for one full group in any case writes what it has.
            let at_limit = self.dirty.len() >= self.options.dirty_blocks;
            if progress == Progress::Done && (everything || !self.options.defer || at_limit) {
                progress = self.write_remainder()?;
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
        let now = self.now;
        let (segments, quantiser) = (&self.segments, &mut self.quantiser);
        quantiser.update(segments.count() as usize, |segment| segments.hotness(segment, now));
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
                self.write_whole_segment()?;
                self.counters.groups[group].segments += 1;
                self.counters.groups[group].blocks += self.run.len() as u64;
            }
        }
        self.forget_written();
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

    /// Writes the run to a segment of its own.
    fn write_whole_segment(&mut self) -> Result<(), DeviceError> {
        let segment = self.allocate(SegmentState::Written)?;
        let run = std::mem::take(&mut self.run);
        let result = self.write_run(segment * self.options.segment_blocks, &run);
        self.run = run;
        result
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
        self.forget_written();
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

    /// Writes `run` from `position` on: summaries, then blocks.
    fn write_run(&mut self, position: u32, run: &[u32]) -> Result<(), DeviceError> {
        let summary_blocks = self.options.summary_blocks(run.len() as u32);
        let segment = self.segment_of(position);
        let urgent = self.segments.next_two().0;
        let (mut cleaned, mut guarded) = (0, 0);
        for (index, block) in run.iter().enumerate() {
            if let Some(ahead) = run.get(index + 16) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            let to = position + summary_blocks + index as u32;
            let state = &mut self.blocks[*block as usize];
            cleaned += u32::from(self.dirty.origin(state.slot) == Origin::Cleaning);
            if state.position != NOWHERE {
                let from = state.position / self.options.segment_blocks;
                guarded += u64::from(Some(from) == urgent);
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
        self.sequence += 1;
        self.store.write(&SegmentWrite { position, summary_blocks, blocks: run, cleaned, sequence: self.sequence })
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
    fn commit(&mut self) -> Result<(), DeviceError> {
        self.store.flush()?;
        self.checkpoints += 1;
        self.counters.checkpoints += 1;
        self.counters.checkpoint_blocks += u64::from(checkpoint_blocks(self.segments.count()));
        self.store.checkpoint(self.checkpoints, self.sequence)?;
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

    /// Cleans a few segments if few are free. Returns how many.
    fn clean_if_needed(&mut self) -> Result<u32, DeviceError> {
        if self.segments.freed() > self.options.clean_below {
            return Ok(0);
        }
        for cleaned in 0..self.options.clean_segments {
            let Some(victim) = self.segments.pick(self.options.victim, self.now) else { return Ok(cleaned) };
            self.clean(victim)?;
        }
        Ok(self.options.clean_segments)
    }

    /// Reads a segment's live blocks into the dirty cache and frees it.
    fn clean(&mut self, victim: u32) -> Result<(), DeviceError> {
        self.counters.count_victim(self.segments.utilisation(victim));
        let (from, to) = (victim * self.options.segment_blocks, (victim + 1) * self.options.segment_blocks);
        let mut run = (from, 0);
        for position in from..to {
            if let Some(ahead) = self.owners.get(position as usize + 16).filter(|b| **b != NO_BLOCK) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            let block = self.owners[position as usize];
            let is_live = block != NO_BLOCK
                && self.blocks[block as usize].position == position
                && self.blocks[block as usize].slot == CLEAN;
            if !is_live {
                continue;
            }
            let state = &mut self.blocks[block as usize];
            self.segments.on_death(victim, state.heat);
            state.slot = self.dirty.push(Dirty { block, origin: Origin::Cleaning });
            if run.0 + run.1 == position {
                run.1 += 1;
            } else {
                self.read_run(run)?;
                run = (position, 1);
            }
        }
        self.read_run(run)?;
        self.segments.free(victim);
        let trims = match self.options.trim {
            TrimPoint::Reusable => self.segments.is_reusable(victim),
            TrimPoint::AtFree => true,
            TrimPoint::Never => false,
        };
        if trims {
            self.counters.segments_trimmed += 1;
            self.store.trim(victim)?;
        }
        Ok(())
    }

    fn read_run(&mut self, (position, count): (u32, u32)) -> Result<(), DeviceError> {
        self.counters.cleaning_reads += u64::from(count);
        if count > 0 { self.store.read(position, count) } else { Ok(()) }
    }

    fn no_space(&self) -> DeviceError {
        DeviceError::NoSpace {
            detail: format!(
                "{} of {} segments of the log are free, {} blocks are dirty and no segment is worth cleaning",
                self.segments.freed(),
                self.segments.count(),
                self.dirty.len()
            ),
        }
    }

    /// Bytes of the log's tables.
    pub fn table_bytes(&self) -> u64 {
        (self.blocks.len() * size_of::<Block>() + self.owners.len() * 4) as u64
            + self.segments.bytes()
            + self.files.bytes()
            + self.dirty.bytes()
    }

    /// Checks every law: what segments count equals what the blocks say, and blocks written are accounted for.
    ///
    /// # Errors
    /// The law that is broken.
    pub fn check(&self) -> Result<(), String> {
        let segments = self.segments.count();
        let mut live = vec![(0u32, 0u32, super::hotness::HeatSums::default()); segments as usize];
        let mut dirty = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            dirty += usize::from(block.slot != CLEAN);
            if block.slot != CLEAN && self.dirty.entries()[block.slot as usize].block != number as u32 {
                return Err(format!("block {number} is not at its place in the dirty cache"));
            }
            if block.position == NOWHERE {
                continue;
            }
            let segment = &mut live[self.segment_of(block.position) as usize];
            segment.1 += 1;
            if block.slot == CLEAN {
                if self.owners[block.position as usize] != number as u32 {
                    return Err(format!("block {number} is not where the map says"));
                }
                segment.0 += 1;
                segment.2.add(block.heat);
            }
        }
        if dirty != self.dirty.len() {
            return Err(format!("{dirty} blocks are dirty, the cache holds {}", self.dirty.len()));
        }
        for (segment, (live, referenced, heat)) in (0..segments).zip(live) {
            let counted = (self.segments.live(segment), self.segments.referenced(segment), self.segments.heat(segment));
            if counted != (live, referenced, heat) {
                return Err(format!("segment {segment}: {counted:?} counted, {live}, {referenced}, {heat:?} found"));
            }
        }
        Ok(())
    }
}
