//! Transactions: pages change in memory, and what has changed goes to the redo log when the transaction ends.

use super::Log;
use super::cache::Cached;
use super::tables::is_new;
use crate::format::checkpoint::TABLE_ENTRIES;
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::format::redo::{Operation, put_changes};
use crate::recording::Event;
use crate::store::{BLOCK_BYTES, Heat, Page, PageId, Purpose, Slot, StoreError};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// A transaction under way.
#[derive(Debug)]
pub(super) struct Transaction {
    purpose: Purpose,
    /// Pages that it has changed, as they were; `None` for those that it has made.
    before: Vec<(PageId, Option<Cached>)>,
    touched: HashSet<PageId>,
    /// Pages that it frees.
    freed: Vec<PageId>,
    /// Blocks that it makes holes, and their entries before.
    released: Vec<(Slot, Entry)>,
    dropped: HashSet<Slot>,
    /// Entries that releasing and reserving leaves behind.
    entries: Vec<(Slot, Entry)>,
    /// Holes that it reserves; blocks among them that wait, and were holes.
    reserved: u64,
    adopted: Vec<u32>,
    /// Operations but for changes of bytes.
    operations: Vec<u8>,
}

impl Log {
    pub(super) fn begin_transaction(&mut self, purpose: Purpose) -> Result<(), StoreError> {
        assert!(self.transaction.is_none(), "transactions do not nest");
        self.check_writable()?;
        self.transaction = Some(Transaction {
            purpose,
            before: Vec::new(),
            touched: HashSet::new(),
            freed: Vec::new(),
            released: Vec::new(),
            dropped: HashSet::new(),
            entries: Vec::new(),
            reserved: 0,
            adopted: Vec::new(),
            operations: Vec::new(),
        });
        Ok(())
    }

    /// The transaction under way.
    fn transaction(&mut self) -> &mut Transaction {
        self.transaction.as_mut().expect("a transaction is under way")
    }

    /// Whether the transaction under way has made a hole of a block.
    pub(super) fn is_dropped(&self, slot: Slot) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.dropped.contains(&slot))
    }

    /// Blocks of a file that wait, and that were holes before the transaction under way released them or set their space aside.
    pub(super) fn holes_filled_by_transaction(&self, owner: u64) -> u64 {
        let Some(transaction) = &self.transaction else { return 0 };
        let dropped = transaction.dropped.iter().filter_map(|slot| self.waiting.number(*slot));
        let numbers: HashSet<u32> = dropped.chain(transaction.adopted.iter().copied()).collect();
        let blocks = numbers.into_iter().map(|number| self.waiting.get(number));
        blocks.filter(|block| block.owner == owner && block.home == HOLE).count() as u64
    }

    /// Space that the transaction under way gives back.
    pub(super) fn released_by_transaction(&self) -> u64 {
        self.transaction.as_ref().map_or(0, |transaction| (transaction.released.len() + transaction.freed.len()) as u64)
    }

    /// Whether the transaction under way frees a page.
    pub(super) fn is_freed(&self, id: PageId) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.freed.contains(&id))
    }

    pub(super) fn change_page(&mut self, id: PageId) -> Result<&mut Page, StoreError> {
        self.load_page(id)?;
        let is_first = self.transaction().touched.insert(id);
        if is_first {
            let cached = self.cache.get(id).expect("it was loaded").clone();
            self.transaction().before.push((id, Some(cached)));
            // So that it stays in memory; the segments learn of it on commit.
            self.cache.set_dirty(id, false);
        }
        Ok(Arc::make_mut(self.cache.content_mut(id)))
    }

    pub(super) fn allocate_page(&mut self) -> Result<PageId, StoreError> {
        let purpose = self.transaction().purpose;
        self.check_space(1, purpose)?;
        let table = self.tables.with_room().ok_or(StoreError::NoSpace)?;
        self.load_table(table)?;
        let index = self.free_entry(table)?;
        let id = table * TABLE_ENTRIES + index;
        self.tables.set(id, Entry::RESERVED);
        self.dirty_table(table);
        self.usage.pages += 1;
        self.cache.insert(id, Arc::new([0; BLOCK_BYTES]), Heat::default(), HOLE);
        self.cache.set_dirty(id, false);
        let transaction = self.transaction();
        transaction.before.push((id, None));
        transaction.touched.insert(id);
        Operation::Allocate(id).put(&mut transaction.operations);
        Ok(id)
    }

    fn free_entry(&mut self, table: u32) -> Result<u32, StoreError> {
        let page = self.load_table(table)?;
        page.free_entry()
            .ok_or_else(|| StoreError::Damaged(format!("table page {table} has fewer free entries than counted")))
    }

    pub(super) fn free_page(&mut self, id: PageId) -> Result<(), StoreError> {
        // Its changes until now are undone by an abort, and its content may be asked for no more.
        self.change_page(id)?;
        let transaction = self.transaction();
        transaction.freed.push(id);
        Operation::Free(id).put(&mut transaction.operations);
        Ok(())
    }

    pub(super) fn release(&mut self, id: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        let mut released = Vec::new();
        let content = self.load_page(id)?;
        for index in slots.clone() {
            let slot = Slot { page: id, index: index as u8 };
            let entry = Entry::at(&*content, index.into());
            if entry.position != HOLE || self.waiting.number(slot).is_some() && !self.is_dropped(slot) {
                released.push((slot, entry));
            }
        }
        if released.is_empty() {
            return Ok(0);
        }
        let page = self.change_page(id)?;
        for (slot, _) in &released {
            Entry::default().put(page, slot.index.into());
        }
        let transaction = self.transaction();
        transaction.dropped.extend(released.iter().map(|(slot, _)| *slot));
        transaction.entries.extend(released.iter().map(|(slot, _)| (*slot, Entry::default())));
        let count = released.len() as u32;
        transaction.released.append(&mut released);
        Operation::Release(id, slots).put(&mut transaction.operations);
        Ok(count)
    }

    pub(super) fn reserve(&mut self, id: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        let content = self.load_page(id)?;
        let mut holes = Vec::new();
        let mut adopted = Vec::new();
        for index in slots.clone().filter(|index| Entry::at(&*content, usize::from(*index)).position == HOLE) {
            let slot = Slot { page: id, index: index as u8 };
            let waits = self.waiting.number(slot).filter(|_| !self.is_dropped(slot));
            holes.push(index);
            adopted.extend(waits);
        }
        let count = (holes.len() - adopted.len()) as u32;
        if holes.is_empty() {
            return Ok(0);
        }
        self.check_space(count.into(), self.transaction.as_ref().expect("a transaction is under way").purpose)?;
        let page = self.change_page(id)?;
        for index in &holes {
            Entry::RESERVED.put(page, usize::from(*index));
        }
        // A transaction that runs out of space later is undone with what it took.
        self.usage.reserved += u64::from(count);
        let transaction = self.transaction();
        transaction.reserved += u64::from(count);
        transaction.entries.extend(holes.iter().map(|index| (Slot { page: id, index: *index as u8 }, Entry::RESERVED)));
        transaction.adopted.extend(adopted);
        Operation::Reserve(id, slots).put(&mut transaction.operations);
        Ok(count)
    }

    pub(super) fn commit_transaction(&mut self) {
        let transaction = self.transaction.take().expect("a transaction is under way");
        for number in transaction.adopted {
            self.waiting.set_aside(number);
            self.usage.waiting -= 1;
            self.usage.reserved += 1;
        }
        for (slot, entry) in transaction.released {
            self.forget_block(slot, entry);
        }
        let mut changes = Vec::new();
        for (id, before) in transaction.before {
            if transaction.freed.contains(&id) {
                self.forget_page(id, before.as_ref().is_none_or(|before| before.is_dirty));
                continue;
            }
            let now = self.clock() as u32;
            let from = changes.len();
            let after = self.cache.get(id).expect("what was changed is in memory").content.clone();
            let mut base = before.as_ref().map_or_else(|| Arc::new([0; BLOCK_BYTES]), |before| before.content.clone());
            // What these operations make of the page is known without its bytes.
            for (slot, entry) in transaction.entries.iter().filter(|(slot, _)| slot.page == id) {
                entry.put(&mut Arc::make_mut(&mut base)[..], slot.index.into());
            }
            put_changes(id, &base, &after, &mut changes);
            let is_changed = changes.len() > from || transaction.entries.iter().any(|(slot, _)| slot.page == id);
            match before {
                Some(before) if !is_changed => {
                    // Looked at to be changed, and left as it was.
                    self.cache.put_back(id, before);
                    continue;
                }
                Some(before) if !before.is_dirty => self.page_died(id),
                _ => {}
            }
            let heat = self.cache.heat_mut(id);
            *heat = Heat { writes: heat.writes.saturating_add(1), time: now };
        }
        let length = transaction.operations.len() + changes.len();
        if length > 0 {
            self.redo.extend_from_slice(&(length as u32).to_le_bytes());
            self.redo.extend_from_slice(&transaction.operations);
            self.redo.extend_from_slice(&changes);
            self.tell(|| Event::Transaction(4 + length as u32));
            self.counters.transactions += 1;
        }
    }

    pub(super) fn abort_transaction(&mut self) {
        let transaction = self.transaction.take().expect("a transaction is under way");
        self.usage.reserved -= transaction.reserved;
        for (id, before) in transaction.before.into_iter().rev() {
            if let Some(before) = before {
                self.cache.put_back(id, before);
            } else {
                self.cache.remove(id);
                // Its table page stays dirty, with nothing new in it.
                self.tables.set(id, Entry::default());
                self.usage.pages -= 1;
            }
        }
    }

    /// A block is a hole now; its entry, which was `entry`, is gone.
    pub(super) fn forget_block(&mut self, slot: Slot, entry: Entry) {
        let waited = self.waiting.number(slot).map(|number| self.waiting.remove(number));
        if waited.is_some() {
            self.tell_forgotten(slot);
        }
        match entry.position {
            HOLE => self.usage.waiting -= 1,
            RESERVED => self.usage.reserved -= 1,
            position => {
                if waited.is_none() {
                    self.block_died(position, entry.heat);
                }
                self.block_released(position);
                self.usage.stored -= 1;
            }
        }
    }

    /// A page does not exist any more.
    pub(super) fn forget_page(&mut self, id: PageId, was_dirty: bool) {
        let table = id / TABLE_ENTRIES;
        // It was loaded when the page was, and may have left since.
        if self.load_table(table).is_err() {
            // Left as it is, the page is one that nothing refers to: a check finds it.
            self.fail("a page of the table of pages cannot be read");
            return;
        }
        let entry = self.tables.set(id, Entry::default());
        self.dirty_table(table);
        self.cache.remove(id);
        self.usage.pages -= 1;
        if !is_new(entry) && entry.position != HOLE {
            if !was_dirty {
                self.block_died(entry.position, entry.heat);
            }
            self.block_released(entry.position);
        }
    }

    /// A page that was as on the device is dirty now.
    pub(super) fn page_died(&mut self, id: PageId) {
        match self.page_entry(id) {
            Ok(entry) if entry.is_stored() => self.block_died(entry.position, entry.heat),
            Ok(_) => {}
            Err(error) => self.fail(&error.to_string()),
        }
    }
}
