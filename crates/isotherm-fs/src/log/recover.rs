//! Opening a volume: the newest whole checkpoint, then the writes after it, in order, up to the first that is missing or torn.
//!
//! The next write of the log begins where the open segment goes on, or at the start of the segment that stands first in the
//! queue; it counts if it is whole and has the next sequence number of the same mount. Its transactions are applied to the pages, then
//! its blocks take their places. Segments that were freed for cleaning, and still hold the newest durable copy of a block,
//! hold it for good again.
//!
//! Each write says up to which one all before it were durable when it was planned. So a write that is not whole, and of which a later one
//! says that it was durable, is no end of the log but damage. Where its summary is whole, it counts: of its blocks that are wrong, copies
//! of what lies elsewhere or is known are left where they were, and others are errors to whoever reads them. Where the summary is not whole,
//! what was durable is lost: only fsck may go on without it.
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
use std::collections::{BTreeSet, VecDeque};
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
    #[error("page {id}, which roll-forward changes, is damaged: the checksum of block {} is wrong; fsck.sfs -y mends it, or goes on without it", entry.position)]
    UnreadablePage { id: PageId, entry: Entry },
    #[error("{0}; fsck.sfs -y mends that write, or gives up what came after it")]
    LostWrites(LostWrites),
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
    /// Blocks of file data in them that cannot be read, although they were durable.
    pub unreadable_blocks: u64,
    /// Writes that were durable and cannot be reached.
    pub lost: Option<LostWrites>,
}

/// Writes of the log that were durable, and are lost because the summary of the first is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostWrites {
    /// The first of them, by its number among the writes of the log.
    pub first: u64,
    /// The last that is known to have been durable.
    pub last: u64,
    /// Mount that wrote them.
    pub incarnation: u32,
    /// Blocks of the device at which the first may begin.
    pub places: [Option<u32>; 2],
}

impl std::fmt::Display for LostWrites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, last, places, .. } = self;
        let places: Vec<String> = places.iter().flatten().map(u32::to_string).collect();
        write!(
            f,
            "write {first} of the log, at block {}, is damaged, and all writes up to {last} were durable",
            places.join(" or ")
        )
    }
}

/// What fsck lets go of so that a log can be opened.
#[derive(Clone, Default, Debug)]
pub struct GivenUp {
    /// Pages that are taken for zeros where roll-forward cannot read them.
    pub pages: BTreeSet<PageId>,
    /// Whether the log ends where a summary is not whole, though later writes were durable.
    pub lost_writes: bool,
}

/// Where the next write of the log may begin, and what it says of itself.
#[derive(Clone, Copy)]
struct Expected {
    /// Where the open segment goes on.
    open: Option<(u32, u32)>,
    /// The first segment of the queue.
    first: Option<u32>,
    incarnation: u32,
    sequence: u64,
}

/// Segments at the head of the queue in which later writes are looked for.
const SEGMENTS_AHEAD: usize = 8;

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
    /// Pages that are taken for zeros where they cannot be read.
    lost_pages: BTreeSet<PageId>,
}

impl Replay {
    fn expected(&self) -> Expected {
        let Self { open, sequence, incarnation, .. } = *self;
        Expected { open, first: self.queue.front().copied(), incarnation, sequence }
    }
}

impl Expected {
    /// The next write's summary, if it is whole, and what is expected after it.
    fn next(self, reader: &SegmentReader<'_>, superblock: &Superblock) -> Option<(Summary, Self)> {
        let in_open = self.open.map(|(segment, next)| (segment, next, false));
        let in_first = self.first.map(|segment| (segment, 0, true));
        let found = [in_open, in_first].into_iter().flatten().find_map(|(segment, next, is_first)| {
            let summary = reader.read_summary(segment, next)?;
            let is_next = summary.incarnation == self.incarnation
                && summary.sequence == self.sequence + 1
                && summary.is_first == is_first;
            is_next.then_some((segment, next, summary))
        });
        let (segment, next, summary) = found?;
        let open = match self.open {
            _ if summary.stays_open => Some((segment, next + summary.blocks())),
            Some((open, _)) if open == segment => None,
            open => open,
        };
        let first = Some(summary.next_segment).filter(|segment| *segment < superblock.segments);
        let after = Self { open, first, sequence: summary.sequence, ..self };
        Some((summary, after))
    }
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
        Self::open_without(device, settings, &GivenUp::default())
    }

    /// The same, without what is given up.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_without(
        device: Arc<dyn Device>,
        settings: LogSettings,
        given_up: &GivenUp,
    ) -> Result<(Self, Recovery), OpenError> {
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
            lost_pages: given_up.pages.clone(),
        };
        let mut recovery = Recovery { was_clean: checkpoint.is_clean, ..Recovery::default() };
        while let Some((summary, contents)) = log.next_write(&replay) {
            log.apply(&mut replay, &summary, &contents, &mut recovery)?;
        }
        if !recovery.was_clean {
            recovery.lost = log.lost_writes(&replay);
            if let Some(lost) = recovery.lost.filter(|_| !log.settings.read_only && !given_up.lost_writes) {
                return Err(OpenError::LostWrites(lost));
            }
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
            written: 0,
            flushed: 0,
            batch: std::cell::Cell::new(None),
            victims: VecDeque::new(),
            observer: None,
            device,
            superblock,
            settings,
        }
    }

    /// The write of the log that comes next, and its blocks: all of them if it is whole, those that are right if it is known to have been
    /// durable.
    fn next_write(&self, replay: &Replay) -> Option<(Summary, Vec<Option<Arc<Page>>>)> {
        let reader = SegmentReader::new(&*self.device, &self.superblock);
        let (summary, mut after) = replay.expected().next(&reader, &self.superblock)?;
        let contents = reader.read_contents(&summary);
        let is_whole = contents.iter().all(Option::is_some);
        let mut was_durable = || {
            while let Some((later, next)) = after.next(&reader, &self.superblock) {
                if later.flushed >= summary.sequence {
                    return true;
                }
                after = next;
            }
            false
        };
        (is_whole || was_durable()).then_some((summary, contents))
    }

    /// What later writes say of the one that comes next and is not there. They are looked for in the rest of the open segment and at the
    /// beginning of the next ones.
    fn lost_writes(&self, replay: &Replay) -> Option<LostWrites> {
        let reader = SegmentReader::new(&*self.device, &self.superblock);
        let Expected { open, first, incarnation, sequence } = replay.expected();
        let in_open = open.into_iter().flat_map(|(segment, next)| reader.scan_summaries(segment, next));
        let ahead = replay.queue.iter().take(SEGMENTS_AHEAD).filter_map(|segment| reader.read_summary(*segment, 0));
        let later = in_open.chain(ahead).filter(|later| later.incarnation == incarnation && later.sequence > sequence);
        let last = later.map(|later| later.flushed).max().filter(|flushed| *flushed > sequence)?;
        let places = [open, first.map(|segment| (segment, 0))];
        let places = places.map(|place| place.map(|(segment, next)| self.superblock.segment_start(segment) + next));
        Some(LostWrites { first: sequence + 1, last, incarnation, places })
    }

    fn apply(
        &mut self,
        replay: &mut Replay,
        summary: &Summary,
        contents: &[Option<Arc<Page>>],
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
            match content {
                Some(content) => self.apply_record(replay, record, position, content)?,
                None => recovery.unreadable_blocks += u64::from(self.apply_unreadable(replay, record, position)?),
            }
        }
        recovery.writes += 1;
        recovery.blocks += summary.records.len() as u64;
        Ok(())
    }

    fn apply_operation(&mut self, replay: &mut Replay, operation: Operation<'_>) -> Result<(), OpenError> {
        match operation {
            Operation::Change { page, offset, bytes } => {
                self.replayed_page(replay, page)?[offset..offset + bytes.len()].copy_from_slice(bytes);
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
                let page = self.replayed_page(replay, id)?;
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
        let page = self.replayed_page(replay, id)?;
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

    /// A block that was durable and is not what its record says. Pages are as the redo log leads to, or as they were where cleaning took
    /// them from, and so is file data that was moved; what the host wrote is lost. Returns whether it was that.
    fn apply_unreadable(&mut self, replay: &mut Replay, record: &Record, position: u32) -> Result<bool, OpenError> {
        let BlockName::Data(id, index) = record.name else { return Ok(false) };
        let before = Entry::at(self.replayed_page(replay, id)?, index.into());
        if before.is_stored() && before.checksum == record.checksum {
            return Ok(false);
        }
        let before = self.apply_data(replay, Slot { page: id, index }, record.entry(position))?;
        self.count(replay, before, record.entry(position))?;
        Ok(true)
    }

    /// File data lies elsewhere. Returns its entry of before.
    fn apply_data(&mut self, replay: &Replay, slot: Slot, entry: Entry) -> Result<Entry, OpenError> {
        let page = self.replayed_page(replay, slot.page)?;
        let before = Entry::at(page, slot.index.into());
        entry.put(page, slot.index.into());
        let was_reserved = u64::from(before.position == RESERVED);
        self.usage.reserved = self.usage.reserved.saturating_sub(was_reserved);
        self.usage.stored += u64::from(!before.is_stored());
        self.replayed.insert(slot);
        Ok(before)
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
            BlockName::Data(id, index) => self.apply_data(replay, Slot { page: id, index }, entry)?,
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
        self.count(replay, before, entry)
    }

    /// A block has left one place for another.
    fn count(&self, replay: &mut Replay, before: Entry, entry: Entry) -> Result<(), OpenError> {
        self.leave(replay, before)?;
        let segment = &mut replay.segments[self.segment_of(entry.position) as usize];
        segment.youngest =
            if segment.referenced == 0 { entry.heat.time } else { segment.youngest.max(entry.heat.time) };
        segment.referenced += 1;
        segment.writes += u64::from(entry.heat.writes);
        segment.times += u64::from(entry.heat.time);
        Ok(())
    }

    /// A page that roll-forward changes.
    fn replayed_page(&mut self, replay: &Replay, id: PageId) -> Result<&mut Page, OpenError> {
        if let Err(error) = self.load_page(id) {
            let entry = self.page_entry(id)?;
            if !entry.is_stored() || !matches!(error, StoreError::Damaged(_)) {
                return Err(error.into());
            }
            if !replay.lost_pages.contains(&id) {
                return Err(OpenError::UnreadablePage { id, entry });
            }
            self.cache.insert(id, Arc::new([0; BLOCK_BYTES]), entry.heat, entry.position);
        }
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
