//! Cleaning, as far as it needs the lock: what of a segment is live, and taking it out.

use super::Log;
use super::batch::victims;
use super::waiting::{Beginning, Origin};
use crate::format::checkpoint::TABLE_ENTRIES;
use crate::format::entry::Entry;
use crate::format::redo::Operation;
use crate::format::summary::{BlockName, Record};
use crate::recording::Event;
use crate::store::{Heat, Page, Slot, StoreError};
use crate::tree::is_entry;
use isotherm_sfs::segments::SegmentState;
use std::sync::Arc;

/// The file of blocks that the cleaner took: none. They are durable where they are.
pub(super) const NOBODY: u64 = 0;

/// Segments chosen to be cleaned that are remembered, for whoever watches.
const VICTIMS_MAX: usize = 100;

/// A segment that was chosen to be cleaned.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Victim {
    /// How many had been chosen by then since the log was opened, this one included.
    pub number: u64,
    /// Which.
    pub segment: u32,
    /// Live blocks over payload, at the time.
    pub utilisation: f32,
    /// The group that it was written for as a whole.
    pub group: Option<u8>,
}

impl Log {
    /// The segment that is worth cleaning most among the emptiest; where room is short, the one with the fewest live blocks.
    pub fn pick_victim(&mut self, room_is_short: bool) -> Option<u32> {
        let emptiest = victims(self.machine().segments().count(), room_is_short);
        let unreadable = std::mem::take(&mut self.unreadable);
        let victim = self.machine_mut().pick_victim(emptiest, |segment| !unreadable.contains(&segment));
        self.tell(|| Event::Victim { segment: victim, barred: unreadable.clone(), emptiest });
        self.unreadable = unreadable;
        if let Some(segment) = victim {
            self.remember_victim(segment);
        }
        victim
    }

    fn remember_victim(&mut self, segment: u32) {
        let segments = self.machine().segments();
        let (utilisation, group) =
            (segments.utilisation(segment) as f32, segments.written(segment).map(|(group, _)| group));
        let number = self.victims.back().map_or(1, |last| last.number + 1);
        if self.victims.len() == VICTIMS_MAX {
            self.victims.pop_front();
        }
        self.victims.push_back(Victim { number, segment, utilisation, group });
    }

    /// The segments that were chosen last, oldest first.
    pub fn victims(&self) -> impl Iterator<Item = Victim> + '_ {
        self.victims.iter().copied()
    }

    /// Whether the newest content of a block lies at `position`, and nowhere else.
    ///
    /// # Errors
    /// The device, damage.
    pub fn is_live(&mut self, name: BlockName, position: u32) -> Result<bool, StoreError> {
        Ok(match name {
            BlockName::Data(id, index) => {
                let slot = Slot { page: id, index };
                if self.page_entry(id)?.position == 0 || self.waiting.number(slot).is_some() {
                    return Ok(false);
                }
                let page = self.load_page(id)?;
                is_entry(&page, index) && Entry::at(&*page, index.into()).position == position
            }
            BlockName::Page(id) => self.page_entry(id)?.position == position && !self.cache.is_dirty(id),
            BlockName::Table(number) => self.tables.root(number).position == position && !self.tables.is_dirty(number),
        })
    }

    /// Takes a block out of the segment that is being cleaned, if it is still live: it waits to be written elsewhere.
    ///
    /// # Errors
    /// The device, damage.
    pub fn adopt(&mut self, record: &Record, position: u32, content: Arc<Page>) -> Result<(), StoreError> {
        if !self.is_live(record.name, position)? {
            return Ok(());
        }
        match record.name {
            BlockName::Data(page, index) => {
                let slot = Slot { page, index };
                let entry = self.entry_of(slot)?;
                self.block_died(position, entry.heat);
                let number = self.waiting.insert(Beginning {
                    slot,
                    owner: NOBODY,
                    content,
                    origin: Origin::Cleaning,
                    entry,
                    heat: entry.heat,
                    file: Heat::default(),
                });
                self.tell_waiting(number);
            }
            BlockName::Page(id) => {
                let entry = self.page_entry(id)?;
                if self.cache.get(id).is_none() {
                    self.cache.insert(id, content, entry.heat, position);
                }
                self.cache.set_dirty(id, true);
                self.block_died(position, entry.heat);
            }
            BlockName::Table(number) => {
                self.load_table(number)?;
                self.dirty_table(number);
            }
        }
        Ok(())
    }

    /// Frees a segment of which every live block was taken out. Returns whether it was: a segment with blocks that cannot be found
    /// is left as it is.
    pub fn free_segment(&mut self, segment: u32) -> bool {
        if self.machine().segments().live(segment) > 0 {
            self.unreadable.push(segment);
            return false;
        }
        // Segments are discarded when a checkpoint has made them reusable.
        self.tell(|| Event::Free(segment));
        let _ = self.machine_mut().free_victim(segment);
        let mut operation = Vec::new();
        Operation::FreeSegment(segment).put(&mut operation);
        self.redo.extend_from_slice(&(operation.len() as u32).to_le_bytes());
        self.redo.extend_from_slice(&operation);
        self.tell(|| Event::Transaction(4 + operation.len() as u32));
        self.counters.segments_cleaned += 1;
        self.is_changed = true;
        true
    }

    /// Frees the written segments that hold nothing any more. Returns how many.
    pub fn free_empty_segments(&mut self) -> u32 {
        let segments = self.machine().segments();
        let is_empty = |segment: &u32| {
            segments.state(*segment) == SegmentState::Written
                && segments.live(*segment) == 0
                && segments.referenced(*segment) == 0
        };
        let empty: Vec<u32> = (0..segments.count()).filter(is_empty).collect();
        empty.iter().filter(|segment| self.free_segment(**segment)).count() as u32
    }

    /// Counts blocks that the cleaner read.
    pub fn count_cleaning_reads(&mut self, blocks: u64) {
        self.counters.cleaning_reads += blocks;
    }

    /// Page by which a record's liveness is known: look-ups in its order load each page once.
    #[must_use]
    pub fn lookup_order(name: BlockName) -> (u32, u32) {
        match name {
            BlockName::Data(page, _) => (page / TABLE_ENTRIES, page),
            BlockName::Page(page) => (page / TABLE_ENTRIES, 0),
            BlockName::Table(number) => (number, 0),
        }
    }
}
