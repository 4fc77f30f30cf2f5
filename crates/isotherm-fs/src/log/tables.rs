//! The table of pages: page number to entry. Its pages lie in the log too; where they lie stands in the checkpoint, so that no
//! change of one page makes another one move.

use crate::format::checkpoint::{Root, TABLE_ENTRIES};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::store::{Page, PageId, StoreError};
use std::collections::HashMap;
use std::sync::Arc;

/// A page of the table in memory.
#[derive(Clone, Debug)]
pub(crate) struct TablePage {
    pub content: Arc<Page>,
    pub is_dirty: bool,
    was_used: bool,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Tables {
    roots: Vec<Root>,
    loaded: HashMap<u32, TablePage>,
    capacity: usize,
    /// Below it no table page has a free entry.
    first_free: u32,
    /// Table pages that a volume may have.
    limit: u32,
}

impl Tables {
    /// A table with these roots, of at most `limit` pages; `capacity` of them are kept in memory.
    pub fn new(roots: Vec<Root>, limit: u32, capacity: usize) -> Self {
        Self { roots, loaded: HashMap::new(), capacity, first_free: 0, limit }
    }

    /// What a checkpoint says of the table's pages.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// The entry of a table page.
    pub fn root(&self, number: u32) -> Entry {
        self.roots.get(number as usize).map_or(Entry::default(), |root| root.entry)
    }

    /// Sets how many pages each table page has.
    pub fn set_used(&mut self, used: &[u16]) {
        self.roots.iter_mut().zip(used).for_each(|(root, used)| root.used = *used);
        self.first_free = 0;
    }

    /// A table page was written.
    pub fn set_root(&mut self, number: u32, entry: Entry) {
        if self.roots.len() <= number as usize {
            self.roots.resize(number as usize + 1, Root::default());
        }
        self.roots[number as usize].entry = entry;
    }

    /// A table page is as it was written.
    pub fn set_clean(&mut self, number: u32) {
        self.loaded.get_mut(&number).expect("the table page is in memory").is_dirty = false;
    }

    /// Whether a table page is dirty.
    pub fn is_dirty(&self, number: u32) -> bool {
        self.loaded.get(&number).is_some_and(|page| page.is_dirty)
    }

    /// A dirty table page's content.
    pub fn content(&self, number: u32) -> Arc<Page> {
        self.loaded[&number].content.clone()
    }

    /// Makes a table page dirty that is in memory. Returns whether it was clean.
    pub fn set_dirty(&mut self, number: u32) -> bool {
        let page = self.loaded.get_mut(&number).expect("the table page is in memory");
        !std::mem::replace(&mut page.is_dirty, true)
    }

    /// Numbers of the dirty table pages, ascending.
    pub fn dirty_pages(&self) -> Vec<u32> {
        let mut dirty: Vec<u32> = self.loaded.iter().filter(|(_, page)| page.is_dirty).map(|(n, _)| *n).collect();
        dirty.sort_unstable();
        dirty
    }

    /// The table page, which `load` reads if it is not in memory.
    pub fn load(
        &mut self,
        number: u32,
        load: impl FnOnce(Entry) -> Result<Arc<Page>, StoreError>,
    ) -> Result<&mut TablePage, StoreError> {
        if !self.loaded.contains_key(&number) {
            self.make_room();
            let root = self.root(number);
            let content = if root.position == HOLE { Arc::new([0; 4096]) } else { load(root)? };
            self.loaded.insert(number, TablePage { content, is_dirty: false, was_used: false });
        }
        let page = self.loaded.get_mut(&number).expect("it was put there");
        page.was_used = true;
        Ok(page)
    }

    /// Changes an entry of a table page in memory, and counts the pages that exist. Returns the entry before.
    pub fn set(&mut self, id: PageId, entry: Entry) -> Entry {
        let (number, index) = (id / TABLE_ENTRIES, (id % TABLE_ENTRIES) as usize);
        let page = self.loaded.get_mut(&number).expect("the table page is in memory");
        let before = Entry::at(&*page.content, index);
        entry.put(&mut Arc::make_mut(&mut page.content)[..], index);
        if self.roots.len() <= number as usize {
            self.roots.resize(number as usize + 1, Root::default());
        }
        let used = &mut self.roots[number as usize].used;
        match (before.position == HOLE, entry.position == HOLE) {
            (true, false) => *used += 1,
            (false, true) => {
                *used -= 1;
                self.first_free = self.first_free.min(number);
            }
            _ => {}
        }
        before
    }

    /// A table page that has a free entry; `None` if the table is full.
    pub fn with_room(&mut self) -> Option<u32> {
        while let Some(root) = self.roots.get(self.first_free as usize) {
            if u32::from(root.used) < TABLE_ENTRIES {
                break;
            }
            self.first_free += 1;
        }
        (self.first_free < self.limit).then_some(self.first_free)
    }

    fn make_room(&mut self) {
        if self.loaded.len() < self.capacity {
            return;
        }
        // Half of the clean ones go at once, so that the pass costs little a page.
        let mut spared = 0;
        let keep = self.capacity / 2;
        self.loaded.retain(|_, page| {
            let stays = page.is_dirty || (std::mem::take(&mut page.was_used) && spared < keep);
            spared += usize::from(stays);
            stays
        });
    }
}

impl TablePage {
    /// The first free entry.
    pub fn free_entry(&self) -> Option<u32> {
        (0..TABLE_ENTRIES).find(|index| Entry::at(&*self.content, *index as usize).position == HOLE)
    }
}

/// Whether an entry of the table stands for a page that exists.
pub(crate) fn exists(entry: Entry) -> bool {
    entry.position != HOLE
}

/// Whether it was never written to the log.
pub(crate) fn is_new(entry: Entry) -> bool {
    entry.position == RESERVED
}
