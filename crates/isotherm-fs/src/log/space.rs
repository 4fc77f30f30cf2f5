//! How much room there is, in segments and in memory, and what would give more.

use super::Log;
use super::planning::{Planned, Stop};
use crate::device::Device;
use crate::store::BLOCK_BYTES;
use isotherm_sfs::machine::Machine;
use isotherm_sfs::segments::SegmentState;

/// What is scarce in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pressure {
    /// Nothing.
    None,
    /// As many blocks wait as may.
    Blocks,
    /// As many pages are dirty as may.
    Pages,
}

/// Segments that stay free for a checkpoint beside those of its pages: the table's, one that is begun, and some for blocks that make a
/// page of their own dirty.
pub(super) const CHECKPOINT_SEGMENTS: usize = 3;
/// Segments that are cleaned between two checkpoints at most.
pub const CLEANED_AT_A_TIME: usize = 16;

/// Segments that may be written over.
pub(super) fn reusable(machine: &Machine) -> impl Iterator<Item = u32> + '_ {
    machine.segments().queue().filter(|segment| machine.segments().is_reusable(*segment))
}

impl<D: Device> Log<D> {
    /// Whether there is so much room that planning all that waits, and what is settled before, cannot stop half way.
    pub fn has_ample_room(&self) -> bool {
        self.check_room(self.machine(), self.waiting.len() as u64, 3).is_ok()
    }

    /// What is to be done before what waits is planned, where room becomes short: segments are cleaned several at a time, since a
    /// checkpoint for each would write more pages than it gains where a volume is nearly full.
    pub fn ahead(&self) -> Planned {
        match self.check_room(self.machine(), self.waiting.len() as u64, self.spare_ahead()) {
            Err(Stop::Planned(planned)) => planned,
            _ => Planned::Done,
        }
    }

    fn spare_ahead(&self) -> usize {
        (self.machine().segments().count() as usize / 8).min(CLEANED_AT_A_TIME)
    }

    /// Reusable segments below which [`Log::ahead`] asks for something, with what waits now.
    pub fn segments_wanted_ahead(&self) -> usize {
        self.segments_needed(self.waiting.len() as u64, self.spare_ahead())
    }

    /// Segments that writing so many blocks, and a checkpoint after them, takes, and so many to spare.
    fn segments_needed(&self, blocks: u64, spare: usize) -> usize {
        let payload = self.payload_of_segment();
        // Each block may make a page of its own dirty; few do.
        let pages = (self.cache.dirty() as u64 + blocks.min(payload)).div_ceil(payload);
        let redo = (self.redo.len() as u64).div_ceil(payload * BLOCK_BYTES as u64);
        (blocks.div_ceil(payload) + pages + redo + 4) as usize + spare
    }

    /// Segments that may be written over.
    pub fn reusable_segments(&self) -> usize {
        reusable(self.machine()).count()
    }

    /// Whether another segment can be cleaned before the next checkpoint: its blocks have room, and so have all pages then.
    pub fn can_clean_on(&self) -> bool {
        let payload = self.payload_of_segment();
        // Each block that moves may make a page of its own dirty.
        let pages = (self.cache.dirty() as u64 + payload).div_ceil(payload) as usize;
        let needed = pages + CHECKPOINT_SEGMENTS + 2;
        reusable(self.machine()).take(needed).count() == needed
    }

    /// What is scarce.
    pub fn pressure(&self) -> Pressure {
        if self.failure.is_some() {
            return Pressure::None;
        }
        if self.waiting.len() >= self.waiting_limit() {
            Pressure::Blocks
        } else if self.cache.dirty() >= self.dirty_pages_limit() {
            Pressure::Pages
        } else {
            Pressure::None
        }
    }

    /// Whether few segments are free.
    pub fn wants_cleaning(&self) -> bool {
        self.failure.is_none() && !self.settings.read_only && self.machine().is_cleaning_due()
    }

    pub(super) fn waiting_limit(&self) -> usize {
        self.settings.waiting_bytes.map_or(usize::MAX, |bytes| bytes / BLOCK_BYTES)
    }

    /// Pages that may be dirty: half of those in memory, and no more than a checkpoint finds room for in a few segments.
    fn dirty_pages_limit(&self) -> usize {
        let segments = 2 * self.payload_of_segment() as usize;
        (self.settings.cache_bytes / BLOCK_BYTES / 2).min(segments.max(1024.min(self.superblock.segments as usize)))
    }

    /// Whether blocks can be written and a checkpoint after them, with so many segments to spare.
    pub(super) fn check_room(&self, machine: &Machine, blocks: u64, spare: usize) -> Result<(), Stop> {
        let needed = self.segments_needed(blocks, spare);
        // Those that wait for a checkpoint are passed over, but for the first: its turn has come.
        let is_first = |first: u32| machine.segments().is_reusable(first);
        if reusable(machine).take(needed).count() == needed && machine.segments().queue().next().is_some_and(is_first) {
            Ok(())
        } else {
            Err(self.what_helps(machine))
        }
    }

    /// What gives segments: a checkpoint, if one that is free, or in which nothing is left, waits for it; else cleaning.
    pub(super) fn what_helps(&self, machine: &Machine) -> Stop {
        let segments = machine.segments();
        let is_empty = |segment: u32| segments.referenced(segment) == 0;
        let waits = segments.queue().any(|segment| is_empty(segment) && !segments.is_reusable(segment))
            || (0..segments.count())
                .any(|segment| segments.state(segment) == SegmentState::Written && is_empty(segment));
        Stop::Planned(if waits { Planned::NeedsCheckpoint } else { Planned::NeedsCleaning })
    }
}
