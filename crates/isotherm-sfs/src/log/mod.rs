//! The log: host writes into a dirty cache, the dirty cache into segments by hotness group, segments cleaned into the dirty
//! cache (Min et al., SFS, FAST'12).
//!
//! What is written together, and where, is decided by the machine ([`crate::machine`]); the log is what it acts through: the map of
//! blocks, the dirty cache, and a device below.
//!
//! Departures: a checkpoint that is needed only to make a freed segment reusable writes the superblock alone and leaves
//! deferred blocks dirty (roll-forward finds what was written after it). With one group and no deferral this is a plain
//! log-structured file system.
//!
//! What is durable is found again by [`crate::recover`].

mod check;
mod cleaning;
mod resume;
mod storage;

pub(crate) use resume::Recovered;

use crate::blocks::{Block, CLEAN, NO_DATA, NOWHERE};
use crate::dirty::{Dirty, Origin};
use crate::disk::Disk;
use crate::machine::{Extent, Machine};
use crate::options::LogOptions;
use crate::segments::Segments;
use crate::snapshot::LogCounters;
use isotherm::address::Lpn;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::{CountWrites, Time};
use isotherm::hotness::lifetime::Lifetimes;
use isotherm::memory;
use std::slice;
use storage::Storage;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct SegmentLog<S: Disk> {
    machine: Machine,
    storage: Storage<S>,
    last_write_ns: u64,
    last_checkpoint_ns: u64,
}

impl<S: Disk> SegmentLog<S> {
    /// An empty log of `segments` segments for `blocks` blocks.
    pub fn new(store: S, blocks: u32, segments: u32, options: LogOptions) -> Self {
        Self {
            machine: Machine::new(segments, options),
            storage: Storage::new(store, blocks, segments, options),
            last_write_ns: 0,
            last_checkpoint_ns: 0,
        }
    }

    /// The device below.
    pub fn store(&self) -> &S {
        &self.storage.store
    }
    /// The device below, to tell it the time.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.storage.store
    }
    /// Gives the device below back; what is dirty is lost.
    pub fn into_store(self) -> S {
        self.storage.store
    }
    /// What was set.
    pub fn options(&self) -> &LogOptions {
        self.machine.options()
    }
    /// What was counted.
    pub fn counters(&self) -> &LogCounters {
        self.machine.counters()
    }
    /// The segments.
    pub fn segments(&self) -> &Segments {
        self.machine.segments()
    }
    /// The groups' centres of hotness, coldest first.
    pub fn centres(&self) -> Vec<f64> {
        self.machine.centres()
    }
    /// Dirty blocks.
    pub fn dirty_blocks(&self) -> usize {
        self.storage.dirty.len()
    }
    /// Blocks that exist.
    pub fn blocks(&self) -> u32 {
        self.storage.blocks.len() as u32
    }
    /// Position of the newest durable copy of every block, as a checkpoint records it.
    pub fn positions(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.storage.blocks.iter().map(|b| (b.position != NOWHERE).then_some(b.position))
    }

    /// Brings what a write of `block` will touch towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, block: u32) {
        memory::prefetch(&self.storage.blocks, block as usize);
    }

    /// The host is about to write so many blocks with one request.
    #[inline(always)]
    pub fn begin_write(&mut self, blocks: u32) {
        if let Some(lifetimes) = &mut self.storage.lifetimes {
            lifetimes.begin_write(blocks);
        }
    }

    /// The host writes a block.
    ///
    /// # Errors
    /// No space, or faults below.
    #[inline(always)]
    pub fn write(&mut self, block: u32, content: S::Block) -> Result<(), DeviceError> {
        let Block { position, slot, heat, .. } = self.storage.blocks[block as usize];
        if slot == CLEAN && position != NOWHERE {
            self.machine.on_overwrite(self.storage.segment_of(position), heat);
        }
        let written_before = self.machine.now();
        let (now, ticks) = (written_before as Time, self.machine.ticks() as Time);
        self.machine.on_host_write();
        let state = &mut self.storage.blocks[block as usize];
        let mut absorbed = false;
        if slot == CLEAN {
            state.slot = self.storage.dirty.push(Dirty { block, origin: Origin::Host, content });
        } else if self.storage.dirty.rewrite(slot, content) == Origin::Host {
            self.machine.counters_mut().absorbed_blocks += 1;
            absorbed = true;
        }
        state.modified = now;
        if !absorbed || self.storage.options.count == CountWrites::Host {
            state.heat.on_write(ticks, self.storage.options.age);
            self.storage.files.on_write(block, ticks, self.storage.options.age);
            if let Some(lifetimes) = &mut self.storage.lifetimes {
                lifetimes.record(Lpn(block), written_before);
            }
        }
        if self.storage.dirty.len() >= self.storage.options.dirty_blocks {
            self.machine.write_segments(&mut self.storage, Extent::FullGroups)
        } else {
            Ok(())
        }
    }

    /// The host reads a block into `out`; false if it was never written, and `out` is as it was.
    ///
    /// # Errors
    /// Faults below.
    pub fn read(&mut self, block: u32, out: &mut S::Block) -> Result<bool, DeviceError> {
        let state = self.storage.blocks[block as usize];
        if state.slot != CLEAN {
            self.machine.counters_mut().reads_from_cache += 1;
            out.clone_from(self.storage.dirty.content(state.slot));
            return Ok(true);
        }
        if state.position == NOWHERE {
            return Ok(false);
        }
        self.storage.store.read(state.position, slice::from_mut(out))?;
        Ok(true)
    }

    /// Whether a block holds data.
    pub fn holds(&self, block: u32) -> bool {
        let state = self.storage.blocks[block as usize];
        state.slot != CLEAN || state.position != NOWHERE
    }

    /// The host discards a block.
    pub fn trim(&mut self, block: u32) {
        let state = self.storage.blocks[block as usize];
        if state.slot != CLEAN {
            if let Some(moved) = self.storage.dirty.remove(state.slot) {
                self.storage.blocks[moved as usize].slot = state.slot;
            }
        } else if state.position != NOWHERE {
            self.machine.on_overwrite(self.storage.segment_of(state.position), state.heat);
        }
        if state.position != NOWHERE {
            self.machine.release(self.storage.segment_of(state.position));
        }
        self.storage.blocks[block as usize] = NO_DATA;
        if let Some(lifetimes) = &mut self.storage.lifetimes {
            lifetimes.trim(Lpn(block));
        }
    }

    /// Time passes: the periodic segment write and the periodic checkpoint.
    ///
    /// # Errors
    /// No space, or faults below.
    #[inline(always)]
    pub fn tick(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        let write_due = now_ns.saturating_sub(self.last_write_ns) >= self.storage.options.write_interval_ns;
        let checkpoint_due =
            now_ns.saturating_sub(self.last_checkpoint_ns) >= self.storage.options.checkpoint_interval_ns;
        if write_due || checkpoint_due { self.catch_up(now_ns, checkpoint_due) } else { Ok(()) }
    }

    #[inline(never)]
    fn catch_up(&mut self, now_ns: u64, checkpoint_due: bool) -> Result<(), DeviceError> {
        self.last_write_ns = now_ns;
        if !checkpoint_due {
            return self.machine.write_segments(&mut self.storage, Extent::FullGroups);
        }
        self.last_checkpoint_ns = now_ns;
        self.checkpoint()
    }

    /// Makes everything durable: groupwise first, the remainder mixed.
    ///
    /// # Errors
    /// No space, or faults below.
    pub fn sync(&mut self) -> Result<(), DeviceError> {
        self.machine.counters_mut().syncs += 1;
        self.machine.write_segments(&mut self.storage, Extent::Everything)?;
        self.storage.store.flush()
    }

    /// Makes everything durable, then writes a superblock that refers to it.
    ///
    /// # Errors
    /// No space, or faults below.
    pub fn checkpoint(&mut self) -> Result<(), DeviceError> {
        self.machine.checkpoint(&mut self.storage)
    }

    /// Bytes of the log's tables.
    pub fn table_bytes(&self) -> u64 {
        (self.storage.blocks.len() * size_of::<Block>() + self.storage.owners.len() * 4) as u64
            + self.machine.table_bytes()
            + self.storage.files.bytes()
            + self.storage.dirty.bytes()
            + self.storage.lifetimes.as_ref().map_or(0, |_| Lifetimes::bytes_of(self.blocks()))
    }
}
