//! Opening a volume: the newest whole checkpoint, then the writes after it, in order, up to the first that is missing or torn.
//!
//! The next write of the log begins where the open segment goes on, or at the start of the segment that stands first in the
//! queue; it counts if it is whole and has the next sequence number of the same mount. Its transactions are applied to the pages, then
//! its blocks take their places. Segments that were freed for cleaning, and still hold the newest durable copy of a block,
//! hold it for good again.
//!
//! What is found becomes durable with the checkpoint that the caller makes next, under the number of a new mount: writes that
//! were not reached never count again.

use super::segment_reader::SegmentReader;
use super::tables::{Tables, exists};
use super::{Log, LogSettings, Usage};
use crate::device::Device;
use crate::format::checkpoint::{Checkpoint, NO_HEAT, SegmentRecord, TABLE_ENTRIES};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::format::redo::{Operation, Transactions};
use crate::format::summary::{BlockName, Record, Summary};
use crate::format::superblock::{Superblock, SuperblockError};
use crate::store::{BLOCK_BYTES, Heat, Page, PageId, Slot, StoreError};
use isotherm_sfs::machine::Machine;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Why a volume cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum OpenError {
    #[error(transparent)]
    Superblock(#[from] SuperblockError),
    #[error("neither checkpoint is whole; run fsck.sfs to see what is left")]
    NoCheckpoint,
    #[error("the volume is damaged: {0}")]
    Damaged(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What opening has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Whether the volume had been unmounted.
    pub was_clean: bool,
    /// Writes of the log after the checkpoint.
    pub writes: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Transactions in them.
    pub transactions: u64,
}

/// What is known of segments while writes are applied.
struct Replay {
    segments: Vec<SegmentRecord>,
    queue: VecDeque<u32>,
    open: Option<(u32, u32)>,
    sequence: u64,
    now: u64,
    incarnation: u32,
    /// Segments that the checkpoint, or the writes after it, need until there is another one.
    is_held: Vec<bool>,
}

fn damaged<T>(what: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::Damaged(what.into()))
}

const FREE: u8 = 0;
const OPEN: u8 = 1;
const WRITTEN: u8 = 2;

/// Reads the superblock of a device.
///
/// # Errors
/// Neither copy is one.
pub fn read_superblock(device: &dyn Device) -> Result<Superblock, OpenError> {
    let blocks = device.length() / BLOCK_BYTES as u64;
    if blocks < 2 {
        return Err(SuperblockError::Foreign.into());
    }
    let mut block = [0; BLOCK_BYTES];
    let mut first = None;
    for copy in 0..2 {
        device.read(copy * BLOCK_BYTES as u64, &mut block).map_err(|error| StoreError::Device(error.to_string()))?;
        match Superblock::decode(&block, blocks) {
            Ok(superblock) => return Ok(superblock),
            // The first copy's fault says more, but for one that was wiped.
            Err(error) if first.is_none() || first == Some(SuperblockError::Foreign) => first = Some(error),
            Err(_) => {}
        }
    }
    Err(first.expect("a copy was read").into())
}

/// Reads both checkpoints; those that are not whole are `None`.
///
/// # Errors
/// The device.
pub fn read_checkpoints(device: &dyn Device, superblock: &Superblock) -> Result<[Option<Checkpoint>; 2], StoreError> {
    let mut found = [None, None];
    for (found, first) in found.iter_mut().zip(superblock.checkpoints) {
        let offset = u64::from(first) * BLOCK_BYTES as u64;
        let read = |offset, bytes: &mut [u8]| {
            device.read(offset, bytes).map_err(|error| StoreError::Device(error.to_string()))
        };
        let mut bytes = vec![0; BLOCK_BYTES];
        read(offset, &mut bytes)?;
        let Some(length) = Checkpoint::length(&bytes) else { continue };
        if length > superblock.checkpoint_blocks as usize * BLOCK_BYTES {
            continue;
        }
        bytes.resize(length, 0);
        read(offset, &mut bytes)?;
        *found = Checkpoint::decode(&bytes, superblock.tag());
    }
    Ok(found)
}

/// Whether a checkpoint fits its volume.
fn check_shape(checkpoint: &Checkpoint, superblock: &Superblock) -> Result<(), OpenError> {
    let mut queued = vec![false; superblock.segments as usize];
    for segment in &checkpoint.queue {
        let is_first = queued.get_mut(*segment as usize).is_some_and(|queued| !std::mem::replace(queued, true));
        if !is_first {
            return damaged(format!("segment {segment} cannot stand in the queue of free segments"));
        }
    }
    let open_is_sound = checkpoint.open.is_none_or(|(segment, next)| {
        segment < superblock.segments && next <= superblock.segment_blocks && !queued[segment as usize]
    });
    if checkpoint.segments.len() != superblock.segments as usize || !open_is_sound {
        return damaged("the checkpoint is of a volume of another shape");
    }
    Ok(())
}

impl Log {
    /// Opens the volume on `device`. What roll-forward found is in memory; a checkpoint makes it durable
    /// (unless the settings forbid writing).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(device: Arc<dyn Device>, settings: LogSettings) -> Result<(Self, Recovery), OpenError> {
        let superblock = read_superblock(&*device)?;
        let newest = read_checkpoints(&*device, &superblock)?.into_iter().flatten().max_by_key(|found| found.number);
        let checkpoint = newest.ok_or(OpenError::NoCheckpoint)?;
        check_shape(&checkpoint, &superblock)?;
        let mut is_held = vec![true; superblock.segments as usize];
        for segment in &checkpoint.queue {
            is_held[*segment as usize] = checkpoint.segments[*segment as usize].referenced > 0;
        }
        let mut log = Self::at(device, superblock, settings, &checkpoint);
        let mut replay = Replay {
            is_held,
            segments: checkpoint.segments,
            queue: checkpoint.queue.into(),
            open: checkpoint.open,
            sequence: checkpoint.sequence,
            now: checkpoint.now,
            incarnation: checkpoint.incarnation,
        };
        let mut recovery = Recovery { was_clean: checkpoint.is_clean, ..Recovery::default() };
        while let Some((summary, contents)) = log.next_write(&replay) {
            log.apply(&mut replay, &summary, &contents, &mut recovery)?;
        }
        log.resume(replay, &checkpoint.centres)?;
        Ok((log, recovery))
    }

    /// The log of a new volume. Nothing is written before its first checkpoint.
    pub fn create(device: Arc<dyn Device>, superblock: Superblock, settings: LogSettings) -> Self {
        let empty = Checkpoint { tag: superblock.tag(), ..Checkpoint::default() };
        Self::at(device, superblock, settings, &empty)
    }

    /// A log as a checkpoint has it, but for its segments.
    pub(super) fn at(
        device: Arc<dyn Device>,
        superblock: Superblock,
        settings: LogSettings,
        checkpoint: &Checkpoint,
    ) -> Self {
        let settings = settings.of_volume(&superblock);
        let pages = settings.cache_bytes / BLOCK_BYTES;
        let blocks = u64::from(superblock.segments) * u64::from(superblock.segment_blocks);
        Self {
            machine: Some(Machine::new(superblock.segments, settings.machine)),
            tables: Tables::new(checkpoint.roots.clone(), blocks.div_ceil(u64::from(TABLE_ENTRIES)) as u32, pages / 4),
            cache: super::cache::Cache::new(pages - pages / 4),
            waiting: super::waiting::Waiting::default(),
            under_way: std::collections::HashMap::new(),
            transaction: None,
            redo: Vec::new(),
            jobs: Vec::new(),
            view: super::planning::View::Blocks,
            partly_written: std::collections::HashSet::new(),
            replayed: std::collections::HashSet::new(),
            chosen: std::collections::HashSet::new(),
            shown: Vec::new(),
            is_changed: true,
            checkpoint_at: 0,
            exhausted_at: None,
            holds_requests: false,
            usage: Usage {
                stored: checkpoint.stored,
                reserved: checkpoint.reserved,
                waiting: 0,
                pages: checkpoint.pages,
            },
            counters: super::Counters::default(),
            incarnation: checkpoint.incarnation + 1,
            checkpoint_number: checkpoint.number,
            failure: None,
            unreadable: Vec::new(),
            batch: std::cell::Cell::new(None),
            victims: VecDeque::new(),
            observer: None,
            device,
            superblock,
            settings,
        }
    }

    /// The write of the log that comes next, if it is whole.
    fn next_write(&self, replay: &Replay) -> Option<(Summary, Vec<Arc<Page>>)> {
        let in_open = replay.open.map(|(segment, next)| (segment, next, false));
        let in_next = replay.queue.front().map(|segment| (*segment, 0, true));
        [in_open, in_next].into_iter().flatten().find_map(|(segment, next, is_first)| {
            let (summary, contents) = SegmentReader::new(&*self.device, &self.superblock).read_write(segment, next)?;
            let is_next = summary.incarnation == replay.incarnation
                && summary.sequence == replay.sequence + 1
                && summary.is_first == is_first;
            is_next.then_some((summary, contents))
        })
    }

    fn apply(
        &mut self,
        replay: &mut Replay,
        summary: &Summary,
        contents: &[Arc<Page>],
        recovery: &mut Recovery,
    ) -> Result<(), OpenError> {
        let segment = self.superblock.segment_of(summary.position).expect("it was read there");
        if summary.is_first {
            replay.queue.pop_front();
            replay.is_held[segment as usize] = true;
            let state = if summary.stays_open { OPEN } else { WRITTEN };
            let group = summary.group.map_or(0, |group| group + 1);
            let referenced = replay.segments[segment as usize].referenced;
            if referenced > 0 {
                return damaged(format!(
                    "segment {segment} was written again while {referenced} of its blocks were in use"
                ));
            }
            replay.segments[segment as usize] =
                SegmentRecord { state, group, written: summary.now, ..SegmentRecord::default() };
        }
        // The machine may have sent segments to the end of the queue that a write had no room for what they hold.
        if replay.queue.contains(&summary.next_segment) {
            while replay.queue.front() != Some(&summary.next_segment) {
                replay.queue.rotate_left(1);
            }
        }
        let taken = crate::format::summary::blocks(summary.records.len(), summary.redo.len()) + summary.records.len();
        let next = summary.position - self.superblock.segment_start(segment) + taken as u32;
        if summary.stays_open {
            // The one before had no room for this write, and no write of its own said so.
            if let Some((before, _)) = replay.open.filter(|(before, _)| *before != segment) {
                replay.segments[before as usize].state = WRITTEN;
            }
            replay.open = Some((segment, next));
        } else if replay.open.is_some_and(|(open, _)| open == segment) {
            replay.open = None;
            replay.segments[segment as usize].state = WRITTEN;
        }
        replay.sequence = summary.sequence;
        replay.now = replay.now.max(summary.now);
        for transaction in Transactions(&summary.redo) {
            for operation in transaction.ok_or_else(|| OpenError::Damaged("a transaction is cut off".into()))? {
                let operation =
                    operation.ok_or_else(|| OpenError::Damaged("an operation of the redo log is none".into()))?;
                self.apply_operation(replay, operation)?;
            }
            recovery.transactions += 1;
        }
        let first = summary.position + (taken - summary.records.len()) as u32;
        for ((position, record), content) in (first..).zip(&summary.records).zip(contents) {
            self.apply_record(replay, record, position, content)?;
        }
        recovery.writes += 1;
        recovery.blocks += summary.records.len() as u64;
        Ok(())
    }

    fn apply_operation(&mut self, replay: &mut Replay, operation: Operation<'_>) -> Result<(), OpenError> {
        match operation {
            Operation::Change { page, offset, bytes } => {
                self.replayed_page(page)?[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Operation::Allocate(id) => {
                self.load_table(id / TABLE_ENTRIES)?;
                if exists(self.tables.set(id, Entry::RESERVED)) {
                    return damaged(format!("page {id} was allocated twice"));
                }
                self.tables.set_dirty(id / TABLE_ENTRIES);
                self.usage.pages += 1;
                self.cache.insert(id, Arc::new([0; BLOCK_BYTES]), Heat::default(), HOLE);
                self.cache.set_dirty(id, false);
            }
            Operation::Free(id) => {
                self.load_table(id / TABLE_ENTRIES)?;
                let entry = self.tables.set(id, Entry::default());
                if !exists(entry) {
                    return damaged(format!("page {id} was freed twice"));
                }
                self.tables.set_dirty(id / TABLE_ENTRIES);
                self.usage.pages = self.usage.pages.saturating_sub(1);
                self.cache.remove(id);
                self.leave(replay, entry)?;
            }
            Operation::Release(id, slots) => self.replay_release(replay, id, slots)?,
            Operation::Reserve(id, slots) => {
                let page = self.replayed_page(id)?;
                let mut reserved = 0;
                for index in slots.map(usize::from) {
                    if Entry::at(page, index).position == HOLE {
                        Entry::RESERVED.put(page, index);
                        reserved += 1;
                    }
                }
                self.usage.reserved += reserved;
            }
            Operation::FreeSegment(segment) => {
                if segment >= self.superblock.segments || replay.queue.contains(&segment) {
                    return damaged(format!("segment {segment} was freed twice"));
                }
                replay.segments[segment as usize].state = FREE;
                replay.queue.push_back(segment);
            }
        }
        Ok(())
    }

    fn replay_release(&mut self, replay: &mut Replay, id: PageId, slots: Range<u16>) -> Result<(), OpenError> {
        let mut released = Vec::new();
        let page = self.replayed_page(id)?;
        for index in slots.map(usize::from) {
            released.push(Entry::at(page, index));
            Entry::default().put(page, index);
        }
        for entry in released {
            match entry.position {
                HOLE => {}
                RESERVED => self.usage.reserved = self.usage.reserved.saturating_sub(1),
                _ => {
                    self.usage.stored = self.usage.stored.saturating_sub(1);
                    self.leave(replay, entry)?;
                }
            }
        }
        Ok(())
    }

    fn apply_record(
        &mut self,
        replay: &mut Replay,
        record: &Record,
        position: u32,
        content: &Arc<Page>,
    ) -> Result<(), OpenError> {
        let entry = record.entry(position);
        let before = match record.name {
            BlockName::Data(id, index) => {
                let page = self.replayed_page(id)?;
                let before = Entry::at(page, index.into());
                entry.put(page, index.into());
                let was_reserved = u64::from(before.position == RESERVED);
                self.usage.reserved = self.usage.reserved.saturating_sub(was_reserved);
                self.usage.stored += u64::from(!before.is_stored());
                self.replayed.insert(Slot { page: id, index });
                before
            }
            BlockName::Page(id) => {
                self.load_table(id / TABLE_ENTRIES)?;
                let before = self.tables.set(id, entry);
                self.tables.set_dirty(id / TABLE_ENTRIES);
                if let Some(cached) = self.cache.get(id)
                    && cached.content != *content
                {
                    return damaged(format!("page {id} was written in another state than the redo log leads to"));
                }
                self.cache.set_clean(id, position);
                before
            }
            BlockName::Table(number) => {
                let before = self.tables.root(number);
                self.load_table(number)?;
                if self.tables.content(number) != *content {
                    return damaged(format!(
                        "table page {number} was written in another state than the redo log leads to"
                    ));
                }
                self.tables.set_root(number, entry);
                self.tables.set_clean(number);
                before
            }
        };
        self.leave(replay, before)?;
        let segment = &mut replay.segments[self.segment_of(position) as usize];
        segment.youngest =
            if segment.referenced == 0 { entry.heat.time } else { segment.youngest.max(entry.heat.time) };
        segment.referenced += 1;
        segment.writes += u64::from(entry.heat.writes);
        segment.times += u64::from(entry.heat.time);
        Ok(())
    }

    /// A page that roll-forward changes.
    fn replayed_page(&mut self, id: PageId) -> Result<&mut Page, StoreError> {
        self.load_page(id)?;
        self.cache.set_dirty(id, false);
        Ok(Arc::make_mut(self.cache.content_mut(id)))
    }

    /// The newest copy of a block is no longer where `entry` says.
    fn leave(&self, replay: &mut Replay, entry: Entry) -> Result<(), OpenError> {
        if !entry.is_stored() {
            return Ok(());
        }
        let number = self.superblock.segment_of(entry.position);
        let segment =
            number.map(|number| &mut replay.segments[number as usize]).filter(|segment| segment.referenced > 0);
        let Some(segment) = segment else {
            return damaged(format!("block {} was in use, and its segment holds nothing", entry.position));
        };
        segment.referenced -= 1;
        segment.writes = segment.writes.saturating_sub(entry.heat.writes.into());
        segment.times = segment.times.saturating_sub(entry.heat.time.into());
        Ok(())
    }

    /// Goes on from what the replay has found.
    fn resume(&mut self, mut replay: Replay, centres: &[f64]) -> Result<(), OpenError> {
        let segments = &mut replay.segments;
        replay.queue.retain(|segment| {
            let segment = &mut segments[*segment as usize];
            if segment.referenced > 0 {
                segment.state = WRITTEN;
            }
            segment.referenced == 0
        });
        let queue: Vec<u32> = replay.queue.iter().copied().collect();
        self.restore_machine(&replay.segments, &queue, replay.open, (replay.now, replay.sequence), centres)?;
        for segment in queue.into_iter().filter(|segment| replay.is_held[*segment as usize]) {
            self.machine_mut().hold(segment);
        }
        // Pages that are dirty after the replay live in memory, not where they are referred to.
        for id in self.cache.dirty_pages() {
            let entry = self.page_entry(id)?;
            self.supersede(entry.position, entry.heat)?;
        }
        for table in self.tables.dirty_pages() {
            self.supersede(self.tables.root(table).position, NO_HEAT)?;
        }
        Ok(())
    }

    /// What lies at a position is newer in memory.
    fn supersede(&mut self, position: u32, heat: Heat) -> Result<(), OpenError> {
        if position == HOLE || position == RESERVED {
            return Ok(());
        }
        let number = self.superblock.segment_of(position);
        let is_counted = number.is_some_and(|number| {
            let segments = self.machine().segments();
            let sums = segments.heat(number);
            segments.live(number) > 0 && sums.writes() >= u64::from(heat.writes) && sums.times() >= u64::from(heat.time)
        });
        if !is_counted {
            return damaged(format!("block {position} is in use, and not counted in its segment"));
        }
        self.block_died(position, heat);
        Ok(())
    }
}
