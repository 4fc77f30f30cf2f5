//! A census: every entry of the volume is read, and what the counters say is counted anew. For checks; it takes as long as reading
//! all metadata does.

use super::Log;
use super::tables::{exists, is_new};
use crate::format::checkpoint::{Root, TABLE_ENTRIES};
use crate::format::entry::{Entry, RESERVED};
use crate::format::summary::BlockName;
use crate::store::{BLOCK_BYTES, Page, PageId, StoreError};
use crate::tree::is_entry;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the entries say of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentCount {
    /// Blocks whose newest durable copy lies in it.
    pub referenced: u32,
    /// Of these, those that are the newest content: the others are newer in memory.
    pub live: u32,
    /// Sum of the live blocks' counts of writes.
    pub writes: u64,
    /// Sum of their times.
    pub times: u64,
    /// The latest of their times.
    pub latest: u32,
}

/// What is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Its entry leads out of the volume. It is counted nowhere.
    OutOfRange,
    /// Another entry has its position already. It is counted nowhere.
    Shared,
    /// Its checksum is wrong, or the device cannot read it.
    Unreadable,
}

/// Something that is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Of which block.
    pub name: BlockName,
    /// Where its entry leads.
    pub position: u32,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// By number.
    pub segments: Vec<SegmentCount>,
    /// Pages of each table page.
    pub used: Vec<u16>,
    /// Pages.
    pub pages: u64,
    /// Blocks of file data on the device.
    pub stored: u64,
    /// Blocks whose space is set aside.
    pub reserved: u64,
    /// What is wrong, in the order in which it was found.
    pub faults: Vec<Fault>,
    /// A bit for each block of the segments, set where an entry leads.
    taken: Vec<u64>,
}

impl Census {
    /// Whether a table page cannot be read, so that nobody knows what exists.
    #[must_use]
    pub fn lacks_tables(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.name, BlockName::Table(_)))
    }

    /// Sets the bit of a block. Returns whether it was set.
    fn take(&mut self, block: usize) -> bool {
        let (word, bit) = (block / 64, 1 << (block % 64));
        let was_set = self.taken[word] & bit != 0;
        self.taken[word] |= bit;
        was_set
    }
}

impl Log {
    /// Reads all metadata and counts. `verifies_data` reads all file data, too.
    #[must_use]
    pub fn census(&mut self, verifies_data: bool) -> Census {
        let segments = self.superblock.segments as usize;
        let blocks = segments * self.superblock.segment_blocks as usize;
        let mut census = Census {
            segments: vec![SegmentCount::default(); segments],
            taken: vec![0; blocks.div_ceil(64)],
            ..Census::default()
        };
        for number in 0..self.tables.roots().len() as u32 {
            self.count_table(&mut census, number, verifies_data);
        }
        census
    }

    /// Notes where an entry leads. Returns whether it leads to a block of its own.
    fn count_entry(&self, census: &mut Census, name: BlockName, entry: Entry, is_live: bool) -> bool {
        let mut fault = |kind| census.faults.push(Fault { kind, name, position: entry.position });
        let Some(segment) = self.superblock.segment_of(entry.position) else {
            fault(FaultKind::OutOfRange);
            return false;
        };
        if census.take((entry.position - self.superblock.first_block) as usize) {
            census.faults.push(Fault { kind: FaultKind::Shared, name, position: entry.position });
            return false;
        }
        let count = &mut census.segments[segment as usize];
        count.referenced += 1;
        if is_live {
            count.live += 1;
            count.writes += u64::from(entry.heat.writes);
            count.times += u64::from(entry.heat.time);
            count.latest = count.latest.max(entry.heat.time);
        }
        true
    }

    /// The durable copy of a block, if it is whole. One whose content roll-forward has put into memory is not looked at.
    fn durable_copy(&self, census: &mut Census, name: BlockName, entry: Entry) -> Option<Arc<Page>> {
        if self.rebuilt.contains(&entry.position) {
            return None;
        }
        let content = self.read_block(entry.position, entry.checksum, true).ok();
        if content.is_none() {
            census.faults.push(Fault { kind: FaultKind::Unreadable, name, position: entry.position });
        }
        content
    }

    fn count_table(&mut self, census: &mut Census, number: u32, verifies_data: bool) {
        let root = self.tables.root(number);
        let name = BlockName::Table(number);
        if root.is_stored() {
            let is_dirty = self.tables.is_dirty(number);
            if self.count_entry(census, name, root, !is_dirty) {
                self.durable_copy(census, name, root);
            }
        }
        let Ok(table) = self.load_table(number) else {
            census.used.push(self.tables.roots()[number as usize].used);
            return;
        };
        let content = table.content.clone();
        let mut used = 0;
        for index in 0..TABLE_ENTRIES {
            let entry = Entry::at(&*content, index as usize);
            if exists(entry) {
                used += 1;
                self.count_page(census, number * TABLE_ENTRIES + index, entry, verifies_data);
            }
        }
        census.used.push(used);
        census.pages += u64::from(used);
    }

    fn count_page(&mut self, census: &mut Census, id: PageId, entry: Entry, verifies_data: bool) {
        let name = BlockName::Page(id);
        let mut newest = self.cache.get(id).map(|cached| cached.content.clone());
        if !is_new(entry) {
            let is_dirty = self.cache.is_dirty(id);
            if self.count_entry(census, name, entry, !is_dirty) {
                let durable = self.durable_copy(census, name, entry);
                newest = newest.or(durable);
            }
        }
        let Some(page) = newest else { return };
        for index in (1..=255).filter(|index| is_entry(&page, *index)) {
            let entry = Entry::at(&*page, index.into());
            let name = BlockName::Data(id, index);
            if entry.position == RESERVED {
                census.reserved += 1;
            } else if entry.is_stored() && self.count_entry(census, name, entry, true) {
                census.stored += 1;
                if verifies_data {
                    self.durable_copy(census, name, entry);
                }
            }
        }
    }

    /// The entry of a block, in memory or on the device; `None` if nothing of this name exists.
    ///
    /// # Errors
    /// The device, damage.
    pub fn entry_named(&mut self, name: BlockName) -> Result<Option<Entry>, StoreError> {
        Ok(match name {
            BlockName::Data(id, index) => {
                if !exists(self.page_entry(id)?) {
                    return Ok(None);
                }
                let page = self.load_page(id)?;
                is_entry(&page, index).then(|| Entry::at(&*page, index.into()))
            }
            BlockName::Page(id) => Some(self.page_entry(id)?),
            BlockName::Table(number) => Some(self.tables.root(number)),
        })
    }

    /// Every entry that leads to one of some positions.
    pub fn names_at(&mut self, positions: &BTreeSet<u32>) -> Vec<(Entry, BlockName)> {
        let mut found = Vec::new();
        let mut note = |entry: Entry, name| {
            if positions.contains(&entry.position) {
                found.push((entry, name));
            }
        };
        if positions.is_empty() {
            return found;
        }
        for number in 0..self.tables.roots().len() as u32 {
            note(self.tables.root(number), BlockName::Table(number));
            for id in (0..TABLE_ENTRIES).map(|index| number * TABLE_ENTRIES + index) {
                let Ok(entry) = self.page_entry(id) else { continue };
                note(entry, BlockName::Page(id));
                let Some(page) = self.raw_page(id) else { continue };
                for index in (1..=255).filter(|index| is_entry(&page, *index)) {
                    note(Entry::at(&*page, index.into()), BlockName::Data(id, index));
                }
            }
        }
        found
    }

    /// Bytes of a page as they are, whatever their checksum; `None` if it does not exist, or lies nowhere.
    pub fn raw_page(&mut self, id: PageId) -> Option<Arc<Page>> {
        if let Some(cached) = self.cache.get(id) {
            return Some(cached.content.clone());
        }
        let entry = self.page_entry(id).ok().filter(|entry| exists(*entry))?;
        if is_new(entry) { Some(Arc::new([0; BLOCK_BYTES])) } else { self.read_block(entry.position, 0, false).ok() }
    }

    /// Whether a page is newer in memory than where its entry leads.
    #[must_use]
    pub fn is_newer(&self, id: PageId) -> bool {
        self.cache.is_dirty(id)
    }

    /// The entries of table pages, and how many pages each is said to have.
    pub fn page_roots(&self) -> &[Root] {
        self.tables.roots()
    }
}
