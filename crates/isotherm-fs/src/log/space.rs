//! How much room there is, in segments and in memory, and what would give more.

use super::Log;
use super::batch::{CLEANED_AT_A_TIME, victims};
use super::cleaning::NOBODY;
use super::planning::{Planned, Stop};
use crate::store::BLOCK_BYTES;
use isotherm_sfs::machine::Machine;
use isotherm_sfs::segments::SegmentState;
use std::collections::HashSet;

/// What is scarce in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pressure {
    /// Nothing.
    None,
    /// As many blocks wait as may.
    Blocks,
    /// As many pages are dirty as may.
    Pages,
    /// The transactions that are in no write yet fill one.
    Transactions,
}

/// Segments that stay free for a checkpoint beside those of its pages: the table's, one that is begun, and some for blocks that make a
/// page of their own dirty.
pub(super) const CHECKPOINT_SEGMENTS: usize = 3;

/// Segments that may be written over.
pub(super) fn reusable(machine: &Machine) -> impl Iterator<Item = u32> + '_ {
    machine.segments().queue().filter(|segment| machine.segments().is_reusable(*segment))
}

impl Log {
    /// Whether there is so much room that planning all that waits, and what is settled before, cannot stop half way.
    pub fn has_ample_room(&self) -> bool {
        let machine = self.machine();
        self.has_room(machine, self.waiting.len() as u64, self.batch(machine).headroom + 3)
    }

    /// What is to be done before what waits is planned, a segment of it at a time, where room becomes short: segments are cleaned
    /// several at a time, since a checkpoint for each would write more pages than it gains where a volume is nearly full.
    ///
    /// As many segments stay free as if all pages that may be dirty were, and as many transactions waited as may: where nothing but these is
    /// written, the next checkpoint takes segments of its own, and after it another one must have room to clean for.
    pub fn ahead(&self) -> Planned {
        let portion = self.portion_of(self.waiting.len() as u64);
        let to_come = self.segments_to_come();
        let has = |spare: usize| self.has_room(self.machine(), portion, spare + to_come);
        // Most often there is more than could be asked for.
        if has(CLEANED_AT_A_TIME) {
            return Planned::Done;
        }
        let batch = self.batch(self.machine());
        if has(batch.headroom) {
            Planned::Done
        } else if self.empty_segments(self.machine()) >= batch.gain {
            Planned::NeedsCheckpoint
        } else {
            Planned::NeedsCleaning
        }
    }

    /// Reusable segments below which [`Log::ahead`] asks for something, with what waits now.
    pub fn segments_wanted_ahead(&self) -> usize {
        let portion = self.portion_of(self.waiting.len() as u64);
        self.segments_needed(portion, self.batch(self.machine()).headroom + self.segments_to_come())
    }

    /// Segments of the pages that are not dirty and may be at the next checkpoint, and of the transactions until then.
    fn segments_to_come(&self) -> usize {
        let payload = self.payload_of_segment();
        let pages = self.dirty_pages_bound() + self.touched_limit();
        let pages = self.usage.pages.min(pages as u64).saturating_sub(self.cache.dirty() as u64);
        let redo = self.redo_bound().saturating_sub(self.redo.len()) as u64;
        (pages.div_ceil(payload) + redo.div_ceil(payload * BLOCK_BYTES as u64)) as usize
    }

    /// Segments that all waiting blocks fill.
    pub fn segments_waiting(&self) -> u64 {
        (self.waiting.len() as u64).div_ceil(self.payload_of_segment())
    }

    /// Blocks of so many that are planned at a time: what comes later must not keep segments free now.
    pub(super) fn portion_of(&self, blocks: u64) -> u64 {
        blocks.min(self.payload_of_segment())
    }

    /// Segments that a write may take, so that cleaning goes on having room.
    pub(super) fn segments_to_take(&self, machine: &Machine) -> u32 {
        let kept = self.kept_for_cleaning(self.payload_of_segment()) + self.batch(machine).headroom;
        reusable(machine).count().saturating_sub(kept) as u32
    }

    /// Segments that are free before so many blocks are written: cleaning can go on after them, with so many segments to spare.
    fn segments_needed(&self, blocks: u64, spare: usize) -> usize {
        blocks.div_ceil(self.payload_of_segment()) as usize + self.kept_for_cleaning(blocks) + spare
    }

    /// Segments that stay free after so many blocks: the blocks of any segment can be taken out and written, and a checkpoint.
    fn kept_for_cleaning(&self, blocks: u64) -> usize {
        // One for the blocks, one for the pages that they make dirty.
        self.kept_for_checkpoint(blocks) + 2
    }

    /// Segments that stay free for the checkpoint after so many blocks.
    fn kept_for_checkpoint(&self, blocks: u64) -> usize {
        let payload = self.payload_of_segment();
        // Each block may make a page of its own dirty; few do.
        let pages = (self.cache.dirty() as u64 + blocks.min(payload)).div_ceil(payload);
        let redo = (self.redo.len() as u64).div_ceil(payload * BLOCK_BYTES as u64);
        (pages + redo) as usize + CHECKPOINT_SEGMENTS + 1
    }

    /// Segments in which nothing is left, and that wait for a checkpoint.
    fn empty_segments(&self, machine: &Machine) -> usize {
        let segments = machine.segments();
        let is_empty = |segment: &u32| segments.referenced(*segment) == 0;
        let queued = segments.queue().filter(|segment| !segments.is_reusable(*segment)).filter(is_empty).count();
        let is_written = |segment: &u32| segments.state(*segment) == SegmentState::Written;
        queued + (0..segments.count()).filter(is_written).filter(is_empty).count()
    }

    /// Blocks that can be written into segments that may be written over, and into the one that is begun.
    pub fn writable_blocks(&self) -> u64 {
        let machine = self.machine();
        let open = machine.open().map_or(0, |open| self.superblock.segment_blocks - open.next);
        reusable(machine).count() as u64 * u64::from(self.superblock.segment_blocks) + u64::from(open)
    }

    /// Whether another segment can be cleaned before the next checkpoint: its blocks have room, and so have all pages then. There are no more than
    /// in the fullest among which the victim is chosen.
    pub fn can_clean_on(&self, room_is_short: bool) -> bool {
        let segments = self.machine().segments();
        let is_bad = |segment: u32| self.unreadable.contains(&segment);
        let live = segments.live_of_emptiest(victims(segments.count(), room_is_short), |segment| !is_bad(segment));
        let payload = self.payload_of_segment();
        let blocks = self.waiting.count_of(NOBODY) + payload.min(live.into());
        if room_is_short {
            return self.has_room_at_least(self.machine(), blocks);
        }
        let needed = blocks.div_ceil(payload) as usize + self.kept_for_checkpoint(blocks);
        reusable(self.machine()).take(needed).count() == needed
    }

    /// Whether so many blocks and a checkpoint after them have room. What is kept otherwise counts blocks, pages and tables as if each of
    /// them began segments of its own; this is for a volume that would not get on any more, though a segment that holds next to nothing
    /// could be cleaned, or one that was cleaned waits for a few blocks.
    pub(super) fn has_room_at_least(&self, machine: &Machine, blocks: u64) -> bool {
        /// Summaries of the writes that this takes, beside one a segment, and ends of segments that are too short for them.
        const ENDS: u64 = 8;
        let payload = self.payload_of_segment();
        let open = machine.open().map_or(0, |open| u64::from(self.superblock.segment_blocks - open.next));
        let room = reusable(machine).count() as u64 * payload + open;
        let dirty = self.cache.dirty() as u64 + blocks;
        // Requests make others dirty, unless they are held back.
        let pages = if self.holds_requests { dirty } else { dirty.max(self.dirty_pages_bound() as u64) };
        let tables = self.tables.roots().len() as u64;
        let redo = (self.redo.len() as u64).div_ceil(BLOCK_BYTES as u64);
        // The guard may ask for as many blocks as a segment holds.
        room >= blocks + pages.min(self.usage.pages) + tables + redo + ENDS + payload
    }

    /// Whether files can be made durable while segments are being cleaned: what was taken out of these has room all the same.
    pub fn has_room_beside_cleaning(&self, files: &HashSet<u64>) -> bool {
        let payload = self.payload_of_segment();
        let asked: u64 = files.iter().map(|file| self.waiting.count_of(*file)).sum();
        let taken_out = self.waiting.count_of(NOBODY);
        let pages = (self.cache.dirty() as u64 + asked + taken_out).div_ceil(payload);
        let blocks = asked.div_ceil(payload) + taken_out.div_ceil(payload);
        let redo = (self.redo.len() as u64).div_ceil(payload * BLOCK_BYTES as u64);
        let needed = (blocks + pages + redo) as usize + CHECKPOINT_SEGMENTS + 3;
        reusable(self.machine()).take(needed).count() == needed
    }

    /// What is scarce.
    pub fn pressure(&self) -> Pressure {
        if self.failure.is_some() {
            return Pressure::None;
        }
        if self.is_memory_short() {
            Pressure::Blocks
        } else if self.holds_requests || self.cache.dirty() >= self.dirty_pages_limit() {
            Pressure::Pages
        } else if self.redo.len() > self.redo_limit() {
            Pressure::Transactions
        } else {
            Pressure::None
        }
    }

    /// Whether so many blocks of files wait that some are to be written. Those that the cleaner took out leave by themselves.
    pub(super) fn is_memory_short(&self) -> bool {
        self.waiting_of_files() >= self.written_from()
    }

    fn waiting_of_files(&self) -> usize {
        self.waiting.len() - self.waiting.count_of(NOBODY) as usize
    }

    /// What of the memory is taken beyond the point where something is to be written: 0 is that point, 1 the bound. Blocks whose
    /// write is under way are in memory until it is done.
    pub fn strain(&self) -> f64 {
        if self.holds_requests {
            return 1.0;
        }
        let share = |used: usize, from: usize, bound: usize| {
            used.saturating_sub(from) as f64 / bound.saturating_sub(from).max(1) as f64
        };
        let (from, bound) = (self.written_from(), self.waiting_limit());
        let files = share(self.waiting_of_files(), from, bound);
        let taken_out = self.taken_out_limit().min(bound);
        let all = share(self.waiting.len() + self.under_way.len(), from + taken_out, bound + taken_out);
        let pages = share(self.cache.dirty(), self.dirty_pages_limit(), self.dirty_pages_bound());
        let redo = share(self.redo.len(), self.redo_limit(), self.redo_bound());
        files.max(all).max(pages).max(redo)
    }

    /// Whether the blocks of another segment may be taken out, as far as memory goes.
    pub fn has_memory_to_clean(&self) -> bool {
        let segment = self.payload_of_segment() as usize;
        self.waiting.count_of(NOBODY) as usize + segment <= self.taken_out_limit()
    }

    fn taken_out_limit(&self) -> usize {
        (self.settings.taken_out_bytes(&self.superblock) / BLOCK_BYTES as u64) as usize
    }

    /// Holds requests back while room is made, or lets them go on. While a checkpoint is written they make as many pages dirty as it has written: where free
    /// segments are few, each would then take those that the last one gave.
    pub fn hold_requests(&mut self, holds: bool) {
        self.holds_requests = holds;
    }

    /// Whether so few segments are free that whoever writes next would have to clean. Where no segment was written since cleaning gave
    /// no more, it has given what it can.
    pub fn wants_cleaning(&self) -> bool {
        self.failure.is_none()
            && self.exhausted_at != Some(self.machine().counters().segments_written)
            && !self.settings.read_only
            && self.machine().is_cleaning_due()
            && self.ahead() != Planned::Done
    }

    /// Cleaning gives no more room, as long as no other segment is written.
    pub fn set_exhausted(&mut self) {
        self.exhausted_at = Some(self.machine().counters().segments_written);
    }

    fn waiting_limit(&self) -> usize {
        self.settings.waiting_bytes.map_or(usize::MAX, |bytes| bytes / BLOCK_BYTES)
    }

    /// Blocks that wait when some are to be written: requests that come before they are have the rest.
    fn written_from(&self) -> usize {
        let limit = self.waiting_limit();
        limit - limit / 8
    }

    /// Pages that may be dirty: half of those in memory, and no more than a checkpoint finds room for in a few segments.
    pub(super) fn dirty_pages_limit(&self) -> usize {
        let segments = 2 * self.payload_of_segment() as usize;
        (self.settings.cache_bytes / BLOCK_BYTES / 2).min(segments.max(1024.min(self.superblock.segments as usize)))
    }

    /// Pages that are dirty at most: while a checkpoint is made, requests go on.
    fn dirty_pages_bound(&self) -> usize {
        let limit = self.dirty_pages_limit();
        limit + limit / 4
    }

    /// Inodes that may be changed in memory alone by being read: each may make a page dirty when it is settled.
    pub fn touched_limit(&self) -> usize {
        (self.dirty_pages_limit() / 8).max(1)
    }

    /// Bytes of transactions that may wait for a write: what one takes. Changes of the same few pages dirty no more of these, and
    /// would otherwise wait until no checkpoint has room for all that was said of them.
    fn redo_limit(&self) -> usize {
        self.room().limit()
    }

    /// Bytes of transactions that wait at most: while they are written, requests go on.
    fn redo_bound(&self) -> usize {
        self.payload_of_segment() as usize * BLOCK_BYTES
    }

    /// Whether blocks can be written and a checkpoint after them, with so many segments to spare.
    fn has_room(&self, machine: &Machine, blocks: u64, spare: usize) -> bool {
        let needed = self.segments_needed(blocks, spare);
        // Those that wait for a checkpoint are passed over, but for the first: its turn has come.
        let is_first = |first: u32| machine.segments().is_reusable(first);
        reusable(machine).take(needed).count() == needed && machine.segments().queue().next().is_some_and(is_first)
    }

    /// Stops planning where there is no room for so many blocks and a checkpoint after them.
    pub(super) fn check_room(&self, machine: &Machine, blocks: u64) -> Result<(), Stop> {
        if self.has_room(machine, blocks, 0) { Ok(()) } else { Err(self.what_helps(machine)) }
    }

    /// What gives segments: a checkpoint, if one that is free, or in which nothing is left, waits for it; else cleaning.
    pub(super) fn what_helps(&self, machine: &Machine) -> Stop {
        let waits = self.empty_segments(machine) > 0;
        Stop::Planned(if waits { Planned::NeedsCheckpoint } else { Planned::NeedsCleaning })
    }
}
