//! The page cache: pages by number, as many as its bound allows. A page that was changed stays until it is written.

use crate::store::{Heat, Page};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A page in memory.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    pub content: Arc<Page>,
    /// Changed since it was written, or taken out of a segment that is being cleaned.
    pub is_dirty: bool,
    /// Of these, the latter.
    pub is_cleaned: bool,
    /// With what it would be written now.
    pub heat: Heat,
    /// Position of its newest durable copy, or 0.
    pub home: u32,
    /// Names the page among those in memory.
    pub number: u32,
    was_used: bool,
}

/// See the module's text. The victim is the page that was loaded first among those that were not used since they were last
/// looked at (second chance).
#[derive(Debug)]
pub(crate) struct Cache {
    pages: HashMap<u32, Cached>,
    /// Page ids by number, and the numbers that none has.
    by_number: Vec<u32>,
    unused: Vec<u32>,
    queue: VecDeque<u32>,
    capacity: usize,
    dirty: usize,
}

impl Cache {
    /// Room for `capacity` pages; more only as long as they are all dirty.
    pub fn new(capacity: usize) -> Self {
        Self {
            pages: HashMap::new(),
            by_number: Vec::new(),
            unused: Vec::new(),
            queue: VecDeque::new(),
            capacity,
            dirty: 0,
        }
    }

    /// A page, if it is here.
    pub fn get(&mut self, id: u32) -> Option<&Cached> {
        self.pages.get_mut(&id).map(|cached| {
            cached.was_used = true;
            &*cached
        })
    }

    /// A page that is here, to be changed.
    pub fn content_mut(&mut self, id: u32) -> &mut Arc<Page> {
        &mut self.pages.get_mut(&id).expect("the page is in memory").content
    }

    /// Whether a page is here and dirty.
    pub fn is_dirty(&self, id: u32) -> bool {
        self.pages.get(&id).is_some_and(|cached| cached.is_dirty)
    }

    /// Puts a page here, clean.
    pub fn insert(&mut self, id: u32, content: Arc<Page>, heat: Heat, home: u32) {
        self.make_room();
        debug_assert!(!self.pages.contains_key(&id), "page {id} is in memory already");
        let number = self.unused.pop().unwrap_or_else(|| {
            self.by_number.push(id);
            self.by_number.len() as u32 - 1
        });
        self.by_number[number as usize] = id;
        self.put_back(id, Cached { content, is_dirty: false, is_cleaned: false, heat, home, number, was_used: false });
    }

    /// The page that has a number.
    pub fn id(&self, number: u32) -> u32 {
        self.by_number[number as usize]
    }

    /// The number of a page that is here.
    pub fn number(&self, id: u32) -> u32 {
        self.pages[&id].number
    }

    /// Whether a page is dirty because its segment is being cleaned, and for no other reason.
    pub fn is_cleaned(&self, id: u32) -> bool {
        self.pages.get(&id).is_some_and(|cached| cached.is_cleaned)
    }

    /// Marks a page that is here. Returns whether it was clean.
    pub fn set_dirty(&mut self, id: u32, is_cleaned: bool) -> bool {
        let cached = self.pages.get_mut(&id).expect("the page is in memory");
        let was_clean = !cached.is_dirty;
        cached.is_cleaned = is_cleaned && (was_clean || cached.is_cleaned);
        cached.is_dirty = true;
        self.dirty += usize::from(was_clean);
        was_clean
    }

    /// Position of the newest durable copy of a page that is here.
    pub fn home(&self, id: u32) -> u32 {
        self.pages[&id].home
    }

    /// Heat of a page that is here.
    pub fn heat(&self, id: u32) -> Heat {
        self.pages[&id].heat
    }

    /// A page was written to `home`, with this heat: it is dirty no more.
    pub fn set_clean(&mut self, id: u32, home: u32, heat: Heat) {
        if let Some(cached) = self.pages.get_mut(&id) {
            (cached.home, cached.heat) = (home, heat);
            self.dirty -= usize::from(cached.is_dirty);
            (cached.is_dirty, cached.is_cleaned) = (false, false);
        }
    }

    /// Counts a change of a page that is here.
    pub fn heat_mut(&mut self, id: u32) -> &mut Heat {
        &mut self.pages.get_mut(&id).expect("the page is in memory").heat
    }

    /// A page is not here any more.
    pub fn remove(&mut self, id: u32) -> Option<Cached> {
        let cached = self.pages.remove(&id)?;
        self.dirty -= usize::from(cached.is_dirty);
        self.unused.push(cached.number);
        Some(cached)
    }

    /// Puts a page back as it was before it was changed.
    pub fn put_back(&mut self, id: u32, cached: Cached) {
        self.dirty += usize::from(cached.is_dirty);
        if let Some(replaced) = self.pages.insert(id, cached) {
            self.dirty -= usize::from(replaced.is_dirty);
            return;
        }
        // Pages that are gone, and were here before, stand in the queue until it is passed or too long.
        if self.queue.len() > 64 + 2 * self.pages.len() {
            let mut queued = HashSet::new();
            let pages = &self.pages;
            self.queue.retain(|id| pages.contains_key(id) && queued.insert(*id));
        }
        self.queue.push_back(id);
    }

    /// How many pages are dirty.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    /// Numbers of the dirty pages, ascending.
    pub fn dirty_pages(&self) -> Vec<u32> {
        let mut dirty: Vec<u32> = self.pages.iter().filter(|(_, cached)| cached.is_dirty).map(|(id, _)| *id).collect();
        dirty.sort_unstable();
        dirty
    }

    fn make_room(&mut self) {
        // Twice around: the first pass takes second chances away.
        let mut looks = 2 * self.queue.len();
        while self.pages.len() >= self.capacity && looks > 0 {
            looks -= 1;
            let Some(id) = self.queue.pop_front() else { return };
            let Some(cached) = self.pages.get_mut(&id) else { continue };
            if cached.is_dirty || std::mem::take(&mut cached.was_used) {
                self.queue.push_back(id);
            } else {
                self.unused.push(cached.number);
                self.pages.remove(&id);
            }
            if self.dirty == self.pages.len() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_pages_leave_and_used_ones_later() {
        let mut cache = Cache::new(3);
        let page: Arc<Page> = Arc::new([0; 4096]);
        for id in 0..3 {
            cache.insert(id, page.clone(), Heat::default(), 0);
        }
        cache.get(0);
        cache.set_dirty(1, false);
        cache.insert(3, page.clone(), Heat::default(), 0);
        assert_eq!([0, 1, 2, 3].map(|id| cache.get(id).is_some()), [true, true, false, true]);
        for id in [0, 3] {
            cache.set_dirty(id, true);
        }
        cache.insert(4, page, Heat::default(), 0);
        assert_eq!((cache.pages.len(), cache.dirty_pages()), (4, vec![0, 1, 3]));
    }
}
