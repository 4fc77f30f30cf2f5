//! What a log's machine acts through: the map, the dirty cache, and the device below.

use crate::blocks::{Block, CLEAN, NO_DATA, NOWHERE};
use crate::checkpoint::{CheckpointWrite, Superblock, checkpoint_blocks};
use crate::dirty::{DirtyCache, Origin};
use crate::disk::{Disk, NO_BLOCK, SegmentWrite};
use crate::machine::{Machine, Mechanism, RunWrite};
use crate::options::LogOptions;
use isotherm::address::Lpn;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::{Files, Time};
use isotherm::hotness::lifetime::{LifetimeOptions, Lifetimes};
use isotherm::hotness::quantise::Criterion;
use isotherm::memory;

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Storage<S: Disk> {
    pub(super) options: LogOptions,
    pub(super) store: S,
    pub(super) blocks: Vec<Block>,
    /// The block that each position was written for, or [`NO_BLOCK`].
    pub(super) owners: Vec<u32>,
    pub(super) files: Files,
    /// How long blocks live, where groups go by it.
    pub(super) lifetimes: Option<Lifetimes>,
    pub(super) dirty: DirtyCache<S::Block>,
    pub(super) checkpoints: u64,
    /// Recoveries so far.
    pub(super) incarnation: u32,
    /// Room for what the cleaner reads at a time: a segment.
    pub(super) contents: Vec<S::Block>,
}

impl<S: Disk> Storage<S> {
    pub(super) fn new(store: S, blocks: u32, segments: u32, options: LogOptions) -> Self {
        let positions = segments as usize * options.segment_blocks as usize;
        Self {
            blocks: memory::table(blocks as usize, NO_DATA),
            owners: memory::table(positions, NO_BLOCK),
            files: Files::new(blocks, options.log2_file_blocks),
            lifetimes: (options.quantiser.criterion == Criterion::Isotherm)
                .then(|| Lifetimes::new(LifetimeOptions { logical_pages: blocks, ..LifetimeOptions::default() })),
            dirty: DirtyCache::default(),
            checkpoints: 0,
            incarnation: 0,
            contents: vec![S::Block::default(); options.segment_blocks as usize],
            options,
            store,
        }
    }

    #[inline(always)]
    pub(super) fn segment_of(&self, position: u32) -> u32 {
        position / self.options.segment_blocks
    }

    /// The positions of a segment.
    #[inline(always)]
    pub(super) fn positions_of(&self, segment: u32) -> std::ops::Range<u32> {
        segment * self.options.segment_blocks..(segment + 1) * self.options.segment_blocks
    }
}

impl<S: Disk> Mechanism for Storage<S> {
    type Error = DeviceError;

    #[inline(always)]
    fn waiting(&self) -> impl Iterator<Item = u32> {
        self.dirty.entries().iter().map(|dirty| dirty.block)
    }

    #[inline(always)]
    fn waiting_blocks(&self) -> usize {
        self.dirty.len()
    }

    #[inline(always)]
    fn is_waiting(&self, block: u32) -> bool {
        self.blocks[block as usize].slot != CLEAN
    }

    #[inline(always)]
    fn is_homed_in(&self, block: u32, segment: u32) -> bool {
        self.positions_of(segment).contains(&self.blocks[block as usize].position)
    }

    fn homed_in(&self, segment: u32, out: &mut Vec<u32>) {
        for position in self.positions_of(segment) {
            let block = self.owners[position as usize];
            if block != NO_BLOCK && self.blocks[block as usize].position == position {
                debug_assert!(self.blocks[block as usize].slot != CLEAN, "a freed segment holds a live block");
                out.push(block);
            }
        }
    }

    #[inline(always)]
    fn hotness(&self, block: u32, ticks: u64) -> f64 {
        if let Some(lifetimes) = &self.lifetimes {
            return f64::from(lifetimes.eighths(Lpn(block)));
        }
        let heat = self.blocks[block as usize].heat;
        // A block that was never rewritten is as hot as its file.
        let is_new = heat.writes <= 1;
        let now = ticks as Time;
        if is_new { self.files.hotness(block, now) } else { heat.hotness(now) }
    }

    /// A sync is for all blocks.
    fn is_chosen(&self, _: u32) -> bool {
        true
    }

    /// Summaries say all that there is to say.
    #[inline(always)]
    fn has_records(&self) -> bool {
        false
    }

    #[inline(always)]
    fn payload(&self, room: u32) -> u32 {
        self.options.payload_in(room)
    }

    #[inline(always)]
    fn overhead(&self, blocks: u32) -> u32 {
        self.options.summary_blocks(blocks)
    }

    /// Summaries, then blocks.
    fn write(&mut self, machine: &mut Machine, write: &RunWrite<'_>) -> Result<u32, DeviceError> {
        let run = write.blocks;
        if write.at == 0 {
            let positions = self.positions_of(write.segment);
            self.owners[positions.start as usize..positions.end as usize].fill(NO_BLOCK);
        }
        let mut cleaned = 0;
        for (index, block) in run.iter().enumerate() {
            if let Some(ahead) = run.get(index + 16) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            cleaned += u32::from(self.dirty.origin(self.blocks[*block as usize].slot) == Origin::Cleaning);
        }
        let position = write.segment * self.options.segment_blocks + write.at;
        self.store.write(&SegmentWrite {
            position,
            summary_blocks: write.overhead_blocks,
            blocks: run,
            cleaned,
            sequence: write.sequence,
            incarnation: self.incarnation,
            now: write.now,
            // A segment is taken from the queue only while another is left in it.
            next_segment: write.next_segment.unwrap_or(u32::MAX),
            table: &self.blocks,
            dirty: &self.dirty,
        })?;
        for (to, block) in (position + write.overhead_blocks..).zip(run) {
            let state = &mut self.blocks[*block as usize];
            let from = (state.position != NOWHERE).then(|| state.position / self.options.segment_blocks);
            state.position = to;
            state.slot = CLEAN;
            machine.on_written(write, from, state.heat, state.modified);
            self.owners[to as usize] = *block;
        }
        Ok(cleaned)
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
    fn commit(&mut self, machine: &mut Machine) -> Result<(), DeviceError> {
        self.store.flush()?;
        let superblock = Superblock {
            incarnation: self.incarnation,
            number: self.checkpoints + 1,
            sequence: machine.sequence(),
            now: machine.now(),
            segment_blocks: self.options.segment_blocks,
            blocks: self.blocks.len() as u32,
            open: machine.open(),
            centres: machine.centres(),
        };
        self.store.checkpoint(&CheckpointWrite { superblock, segments: machine.segments() })?;
        self.checkpoints += 1;
        let checkpoint_blocks = checkpoint_blocks(machine.segments().count());
        let counters = machine.counters_mut();
        counters.checkpoints += 1;
        counters.checkpoint_blocks += u64::from(checkpoint_blocks);
        self.store.flush()?;
        for segment in machine.on_checkpoint() {
            machine.counters_mut().segments_trimmed += 1;
            self.store.trim(segment)?;
        }
        Ok(())
    }

    fn no_space(&self, machine: &Machine) -> DeviceError {
        DeviceError::NoSpace {
            detail: format!(
                "{} of {} segments of the log are free, {} blocks are dirty and no segment is worth cleaning",
                machine.segments().freed(),
                machine.segments().count(),
                self.dirty.len()
            ),
        }
    }
}
