//! What a write of the log that is rolled forward changes: pages by its transactions, entries by its blocks, counters of segments by both.

use super::Log;
use super::opening::{OpenError, Recovery, damaged};
use super::recover::Replay;
use super::tables::exists;
use crate::format::checkpoint::{SegmentRecord, TABLE_ENTRIES};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::format::redo::{Operation, Transactions};
use crate::format::summary::{BlockName, Record, Summary};
use crate::store::{BLOCK_BYTES, Heat, Page, PageId, Slot, StoreError};
use std::ops::Range;
use std::sync::Arc;

const FREE: u8 = 0;
const OPEN: u8 = 1;
pub(super) const WRITTEN: u8 = 2;

impl Log {
    /// Applies a write: of `contents` only blocks that are right are there.
    pub(super) fn apply(
        &mut self,
        replay: &mut Replay,
        summary: &Summary,
        contents: &[Option<Arc<Page>>],
        recovery: &mut Recovery,
    ) -> Result<(), OpenError> {
        let segment = self.superblock.segment_of(summary.position).expect("it was read there");
        if summary.is_first {
            replay.queue.pop_front();
            replay.forget_copies(|position| self.superblock.segment_of(position) == Some(segment));
            self.rebuilt.retain(|position| self.superblock.segment_of(*position) != Some(segment));
            replay.is_held[segment as usize] = true;
            let state = if summary.stays_open { OPEN } else { WRITTEN };
            let group = summary.group.map_or(0, |group| group + 1);
            let referenced = replay.segments[segment as usize].referenced;
            if referenced > 0 && replay.is_exact() {
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
            let before = match content {
                Some(content) => self.apply_record(replay, record, position, content)?,
                None => self.apply_damaged(replay, record, position, recovery)?,
            };
            if let Some(before) = before {
                self.count(replay, before, record.entry(position))?;
            }
        }
        recovery.writes += 1;
        recovery.blocks += summary.records.len() as u64;
        Ok(())
    }

    fn apply_operation(&mut self, replay: &mut Replay, operation: Operation<'_>) -> Result<(), OpenError> {
        match operation {
            Operation::Change { page, offset, bytes } => {
                if let Some(page) = self.replayed_page(replay, page)? {
                    page[offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
            Operation::Allocate(id) => {
                replay.lost_pages.remove(&id);
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
                replay.lost_pages.remove(&id);
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
                let Some(page) = self.replayed_page(replay, id)? else { return Ok(()) };
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
        let Some(page) = self.replayed_page(replay, id)? else { return Ok(()) };
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

    /// File data lies elsewhere. Returns its entry of before; `None` if it stands in a page that is lost.
    pub(super) fn apply_data(
        &mut self,
        replay: &mut Replay,
        slot: Slot,
        entry: Entry,
    ) -> Result<Option<Entry>, OpenError> {
        let Some(page) = self.replayed_page(replay, slot.page)? else { return Ok(None) };
        let before = Entry::at(page, slot.index.into());
        entry.put(page, slot.index.into());
        let was_reserved = u64::from(before.position == RESERVED);
        self.usage.reserved = self.usage.reserved.saturating_sub(was_reserved);
        self.usage.stored += u64::from(!before.is_stored());
        self.replayed.insert(slot);
        Ok(Some(before))
    }

    /// Lets the entry of a block lead to it. Returns the entry of before; `None` if it stands in a page that is lost.
    fn apply_record(
        &mut self,
        replay: &mut Replay,
        record: &Record,
        position: u32,
        content: &Arc<Page>,
    ) -> Result<Option<Entry>, OpenError> {
        let entry = record.entry(position);
        match record.name {
            BlockName::Data(page, index) => self.apply_data(replay, Slot { page, index }, entry),
            BlockName::Page(id) => {
                replay.lost_pages.remove(&id);
                self.load_table(id / TABLE_ENTRIES)?;
                let before = self.tables.set(id, entry);
                self.tables.set_dirty(id / TABLE_ENTRIES);
                if let Some(cached) = self.cache.get(id)
                    && cached.content != *content
                {
                    return damaged(format!("page {id} was written in another state than the redo log leads to"));
                }
                self.cache.set_clean(id, position, entry.heat);
                Ok(Some(before))
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
                Ok(Some(before))
            }
        }
    }

    /// A block has left one place for another.
    pub(super) fn count(&self, replay: &mut Replay, before: Entry, entry: Entry) -> Result<(), OpenError> {
        self.leave(replay, before)?;
        let segment = &mut replay.segments[self.segment_of(entry.position) as usize];
        segment.youngest =
            if segment.referenced == 0 { entry.heat.time } else { segment.youngest.max(entry.heat.time) };
        segment.referenced += 1;
        segment.writes += u64::from(entry.heat.writes);
        segment.times += u64::from(entry.heat.time);
        Ok(())
    }

    /// A page that roll-forward changes; `None` if it is lost.
    fn replayed_page(&mut self, replay: &mut Replay, id: PageId) -> Result<Option<&mut Page>, OpenError> {
        if replay.lost_pages.contains(&id) {
            return Ok(None);
        }
        if let Err(error) = self.load_page(id) {
            let entry = self.page_entry(id)?;
            let is_damage = matches!(error, StoreError::Damaged(_));
            if !entry.is_stored() || !is_damage && !self.settings.read_only {
                return Err(error.into());
            }
            if !self.settings.read_only && !replay.given_up.contains(&id) {
                return Err(OpenError::UnreadablePage { id, entry });
            }
            replay.lose(id);
            return Ok(None);
        }
        self.cache.set_dirty(id, false);
        Ok(Some(Arc::make_mut(self.cache.content_mut(id))))
    }

    /// The newest copy of a block is no longer where `entry` says.
    fn leave(&self, replay: &mut Replay, entry: Entry) -> Result<(), OpenError> {
        if !entry.is_stored() {
            return Ok(());
        }
        let is_exact = replay.is_exact();
        let number = self.superblock.segment_of(entry.position);
        let segment =
            number.map(|number| &mut replay.segments[number as usize]).filter(|segment| segment.referenced > 0);
        let Some(segment) = segment else {
            let problem = damaged(format!("block {} was in use, and its segment holds nothing", entry.position));
            return if is_exact { problem } else { Ok(()) };
        };
        segment.referenced -= 1;
        segment.writes = segment.writes.saturating_sub(entry.heat.writes.into());
        segment.times = segment.times.saturating_sub(entry.heat.time.into());
        Ok(())
    }
}
