//! The log: host writes into a dirty cache, the dirty cache into segments by hotness group, segments cleaned into the dirty
//! cache (Min et al., SFS, FAST'12).
//!
//! A *segment write* first draws the lines between the groups anew ([`isotherm::hotness::quantise`]), then sorts the dirty blocks into
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
//!
//! What is durable is found again by [`crate::recover`].

mod check;
mod cleaning;
mod resume;
mod writing;

pub(crate) use resume::Recovered;

use crate::blocks::{Block, CLEAN, NO_DATA, NOWHERE};
use crate::checkpoint::OpenSegment;
use crate::dirty::{Dirty, DirtyCache, Origin};
use crate::disk::{Disk, NO_BLOCK};
use crate::options::LogOptions;
use crate::segments::Segments;
use crate::snapshot::LogCounters;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::{CountWrites, Files, Heat, Time};
use isotherm::hotness::quantise::Quantiser;
use isotherm::memory;
use std::slice;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SegmentLog<S: Disk> {
    options: LogOptions,
    store: S,
    blocks: Vec<Block>,
    /// The block that each position was written for, or [`NO_BLOCK`].
    owners: Vec<u32>,
    segments: Segments,
    files: Files,
    quantiser: Quantiser,
    dirty: DirtyCache<S::Block>,
    open: Option<OpenSegment>,
    /// Host block writes so far: the clock of every policy.
    now: u64,
    sequence: u64,
    checkpoints: u64,
    /// Recoveries so far.
    incarnation: u32,
    segments_since_checkpoint: u32,
    last_write_ns: u64,
    last_checkpoint_ns: u64,
    counters: LogCounters,
    /// Dirty blocks by group while a segment write lasts, and how many of each group have been looked at.
    groups: Vec<Vec<u32>>,
    cursors: Vec<usize>,
    /// Blocks of the run that is being written.
    run: Vec<u32>,
    /// Room for what the cleaner reads at a time: a segment.
    contents: Vec<S::Block>,
}

impl<S: Disk> SegmentLog<S> {
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
            incarnation: 0,
            segments_since_checkpoint: 0,
            last_write_ns: 0,
            last_checkpoint_ns: 0,
            counters: LogCounters::new(groups),
            groups: vec![Vec::new(); groups],
            cursors: vec![0; groups],
            run: Vec::with_capacity(options.segment_blocks as usize),
            contents: vec![S::Block::default(); options.segment_blocks as usize],
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
    /// Gives the device below back; what is dirty is lost.
    pub fn into_store(self) -> S {
        self.store
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

    /// What the clock of hotness shows: its ticks may be coarser than block writes.
    #[inline(always)]
    fn ticks(&self) -> u64 {
        self.now >> self.options.log2_tick_blocks
    }

    /// The newest data of a block that was live in `segment` is no longer there, by the host's doing.
    #[inline(always)]
    fn on_overwrite(&mut self, segment: u32, heat: Heat) {
        self.segments.on_death(segment, heat);
        if let Some((group, written)) = self.segments.written(segment) {
            self.counters.groups[usize::from(group)].count_death(self.now - written);
        }
    }

    /// The host writes a block.
    ///
    /// # Errors
    /// No space, or faults below.
    #[inline(always)]
    pub fn write(&mut self, block: u32, content: S::Block) -> Result<(), DeviceError> {
        let Block { position, slot, heat, .. } = self.blocks[block as usize];
        if slot == CLEAN && position != NOWHERE {
            self.on_overwrite(self.segment_of(position), heat);
        }
        let (now, ticks) = (self.now as Time, self.ticks() as Time);
        self.now += 1;
        self.counters.host_blocks += 1;
        let state = &mut self.blocks[block as usize];
        let mut absorbed = false;
        if slot == CLEAN {
            state.slot = self.dirty.push(Dirty { block, origin: Origin::Host, content });
        } else if self.dirty.rewrite(slot, content) == Origin::Host {
            self.counters.absorbed_blocks += 1;
            absorbed = true;
        }
        state.modified = now;
        if !absorbed || self.options.count == CountWrites::Host {
            state.heat.on_write(ticks, self.options.age);
            self.files.on_write(block, ticks, self.options.age);
        }
        if self.dirty.len() >= self.options.dirty_blocks { self.write_segments(false) } else { Ok(()) }
    }

    /// The host reads a block into `out`; false if it was never written, and `out` is as it was.
    ///
    /// # Errors
    /// Faults below.
    pub fn read(&mut self, block: u32, out: &mut S::Block) -> Result<bool, DeviceError> {
        let state = self.blocks[block as usize];
        if state.slot != CLEAN {
            self.counters.reads_from_cache += 1;
            out.clone_from(self.dirty.content(state.slot));
            return Ok(true);
        }
        if state.position == NOWHERE {
            return Ok(false);
        }
        self.store.read(state.position, slice::from_mut(out))?;
        Ok(true)
    }

    /// Whether a block holds data.
    pub fn holds(&self, block: u32) -> bool {
        let state = self.blocks[block as usize];
        state.slot != CLEAN || state.position != NOWHERE
    }

    /// The host discards a block.
    pub fn trim(&mut self, block: u32) {
        let state = self.blocks[block as usize];
        if state.slot != CLEAN {
            if let Some(moved) = self.dirty.remove(state.slot) {
                self.blocks[moved as usize].slot = state.slot;
            }
        } else if state.position != NOWHERE {
            self.on_overwrite(self.segment_of(state.position), state.heat);
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
}
