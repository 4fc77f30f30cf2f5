//! Blocks of writes that were durable, and are not what their records say: what is known of them all the same.
//!
//! Later writes go on from each block as it was written, so entries lead to the damaged copies as they would to whole ones. What stood in
//! a page, or in a page of the table, is what the redo log and the records have made of its copy of before, and the checksum of the record
//! proves it: it stays in memory, to be written anew. File data that cleaning moved still lies where it was; when all writes are applied its
//! entry leads there again. Only file data that the host wrote is lost.
//!
//! A page whose copy of before cannot be read either is lost until a later write has a whole copy of it, frees it or makes it anew. Who
//! only reads, and fsck, go on without it: what the writes say of it is passed over, and counters are not what entries say.

use super::Log;
use super::opening::{OpenError, Recovery, damaged};
use super::recover::Replay;
use super::tables::exists;
use crate::format::checkpoint::TABLE_ENTRIES;
use crate::format::entry::Entry;
use crate::format::summary::{BlockName, Record};
use crate::store::{PageId, Slot};
use crate::tree::is_entry;

/// A damaged block of file data.
#[derive(Clone, Copy)]
pub(super) struct DamagedData {
    /// Where it lies.
    position: u32,
    /// Where a copy of the same content lies, if it was moved.
    before: Option<u32>,
}

impl Replay {
    /// A segment is written again: no copies of before are left in it.
    pub(super) fn forget_copies(&mut self, is_in_segment: impl Fn(u32) -> bool) {
        for damaged in self.damaged.values_mut() {
            damaged.before = damaged.before.filter(|before| !is_in_segment(*before));
        }
    }

    /// Passes over a page from here on.
    pub(super) fn lose(&mut self, id: PageId) {
        self.lost_pages.insert(id);
        self.unreadable_pages.insert(id);
    }

    /// Whether counters are what entries say: no page was passed over.
    pub(super) fn is_exact(&self) -> bool {
        self.unreadable_pages.is_empty()
    }
}

impl Log {
    /// Lets the entry of a damaged block lead to it. Returns the entry of before; `None` if it stands in a page that is lost.
    pub(super) fn apply_damaged(
        &mut self,
        replay: &mut Replay,
        record: &Record,
        position: u32,
        recovery: &mut Recovery,
    ) -> Result<Option<Entry>, OpenError> {
        let entry = record.entry(position);
        match record.name {
            BlockName::Data(page, index) => self.apply_damaged_data(replay, Slot { page, index }, entry),
            BlockName::Page(id) => self.apply_damaged_page(id, entry, recovery).map(Some),
            BlockName::Table(number) => {
                let content = self.load_table(number)?.content.clone();
                if crc32c::crc32c(&*content) != entry.checksum {
                    return damaged(format!(
                        "table page {number} was written in another state than the redo log leads to"
                    ));
                }
                let before = self.tables.root(number);
                self.tables.set_root(number, entry);
                self.tables.set_dirty(number);
                self.rebuilt.insert(position);
                recovery.rebuilt_pages += 1;
                Ok(Some(before))
            }
        }
    }

    fn apply_damaged_page(&mut self, id: PageId, entry: Entry, recovery: &mut Recovery) -> Result<Entry, OpenError> {
        let known = self.load_page(id).ok().filter(|content| crc32c::crc32c(&**content) == entry.checksum);
        self.load_table(id / TABLE_ENTRIES)?;
        let before = self.tables.set(id, entry);
        self.tables.set_dirty(id / TABLE_ENTRIES);
        if known.is_some() {
            self.cache.set_clean(id, entry.position, entry.heat);
            self.cache.set_dirty(id, false);
            self.rebuilt.insert(entry.position);
            recovery.rebuilt_pages += 1;
        } else {
            self.cache.remove(id);
        }
        Ok(before)
    }

    fn apply_damaged_data(
        &mut self,
        replay: &mut Replay,
        slot: Slot,
        entry: Entry,
    ) -> Result<Option<Entry>, OpenError> {
        let Some(before) = self.apply_data(replay, slot, entry)? else { return Ok(None) };
        let copy = match replay.damaged.get(&slot) {
            Some(damaged) if damaged.position == before.position => damaged.before,
            _ => Some(before.position),
        };
        let is_copy = before.is_stored() && before.checksum == entry.checksum;
        let copy = copy.filter(|position| is_copy && self.superblock.segment_of(*position).is_some());
        replay.damaged.insert(slot, DamagedData { position: entry.position, before: copy });
        Ok(Some(before))
    }

    /// All writes are applied: what was moved, and is damaged where it was moved to, is where it was. Counts what is lost.
    pub(super) fn settle_damaged(&mut self, replay: &mut Replay, recovery: &mut Recovery) -> Result<(), OpenError> {
        recovery.unreadable_pages = replay.unreadable_pages.len() as u64;
        for (slot, damaged) in std::mem::take(&mut replay.damaged) {
            if replay.lost_pages.contains(&slot.page) || !exists(self.page_entry(slot.page)?) {
                continue;
            }
            // A page that cannot be read says where nothing is.
            let Ok(page) = self.load_page(slot.page) else { continue };
            let entry = Entry::at(&*page, slot.index.into());
            if !is_entry(&page, slot.index) || entry.position != damaged.position {
                continue;
            }
            let is_whole = |position: &u32| self.read_block(*position, entry.checksum, true).is_ok();
            match damaged.before.filter(is_whole) {
                Some(position) => {
                    let whole = Entry { position, ..entry };
                    let before = self.apply_data(replay, slot, whole)?.expect("its page can be read");
                    self.count(replay, before, whole)?;
                }
                None => recovery.unreadable_blocks += 1,
            }
        }
        Ok(())
    }
}
