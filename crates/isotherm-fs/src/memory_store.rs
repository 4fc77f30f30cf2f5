//! A store in memory, for tests: what is asked of a store and nothing more. A crash keeps what a log could have kept.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::store::{
    BLOCK_BYTES, BlockReader, Found, Heat, Page, PageId, Purpose, Slot, Space, Store, StoreError, Stored,
};

/// Pages that only [`Purpose::Shrink`] may take.
const RESERVE_PAGES: u64 = 8;

/// A block that is no hole.
#[derive(Clone, Debug)]
enum Block {
    Reserved,
    /// Content that a crash loses, and what it falls back to.
    Waiting {
        content: Arc<Page>,
        owner: u64,
        before: Option<Box<Block>>,
    },
    Stored(Stored),
}

/// What `abort` needs.
#[derive(Clone, Debug, Default)]
struct Undo {
    pages: BTreeMap<PageId, Option<Arc<Page>>>,
    blocks: HashMap<Slot, Option<Block>>,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    pages: Vec<Option<Arc<Page>>>,
    blocks: BTreeMap<Slot, Block>,
    written: Arc<Mutex<Vec<Arc<Page>>>>,
    waiting: HashMap<u64, u64>,
    total: u64,
    transaction: Option<(Purpose, Undo)>,
    writes: u32,
    failure: Option<u64>,
    history: Option<Vec<MemoryStore>>,
}

impl MemoryStore {
    /// An empty store that holds `total` pages and blocks.
    pub fn new(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// The `after`-th request for space from now on fails, and none after it; `None` lets all succeed.
    pub fn fail_after(&mut self, after: Option<u64>) {
        self.failure = after;
    }

    /// Sets the space of the volume.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// Keeps a copy of the store after every commit from now on.
    pub fn record_history(&mut self) {
        self.history = Some(Vec::new());
    }

    /// The copies.
    pub fn take_history(&mut self) -> Vec<MemoryStore> {
        self.history.take().unwrap_or_default()
    }

    /// Writes the blocks that wait and that `keeps` is true of.
    pub fn write_out(&mut self, mut keeps: impl FnMut(Slot) -> bool) {
        let mut written = self.written.lock().expect("no panic holds the lock");
        for (slot, block) in &mut self.blocks {
            if let Block::Waiting { content, owner, .. } = block
                && keeps(*slot)
            {
                let stored = Stored { position: written.len() as u32, checksum: checksum(content) };
                written.push(Arc::clone(content));
                *self.waiting.get_mut(owner).expect("the owner has a count") -= 1;
                *block = Block::Stored(stored);
            }
        }
    }

    /// What a crash leaves if blocks that `keeps` is true of were written before: pages as they were after the last commit.
    pub fn crash(&self, keeps: impl FnMut(Slot) -> bool) -> Self {
        let mut store = self.clone();
        if store.transaction.is_some() {
            store.abort();
        }
        store.write_out(keeps);
        let mut left = BTreeMap::new();
        for (slot, mut block) in std::mem::take(&mut store.blocks) {
            loop {
                match block {
                    Block::Waiting { before: None, .. } => break,
                    Block::Waiting { before: Some(before), .. } => block = *before,
                    Block::Stored(_) | Block::Reserved => {
                        left.insert(slot, block);
                        break;
                    }
                }
            }
        }
        store.blocks = left;
        store.waiting.clear();
        store.failure = None;
        store.history = None;
        store
    }

    /// Slots of all blocks that are no holes.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.blocks.keys().copied()
    }

    fn take_space(&mut self) -> Result<(), StoreError> {
        if let Some(after) = &mut self.failure {
            if *after == 0 {
                self.failure = None;
                return Err(StoreError::NoSpace);
            }
            *after -= 1;
        }
        let reserve = match &self.transaction {
            Some((Purpose::Shrink, _)) => 0,
            _ => RESERVE_PAGES,
        };
        if self.used() + reserve >= self.total { Err(StoreError::NoSpace) } else { Ok(()) }
    }

    fn used(&self) -> u64 {
        self.pages.iter().flatten().count() as u64 + self.blocks.len() as u64
    }

    fn undo(&mut self) -> &mut Undo {
        &mut self.transaction.as_mut().expect("pages change in transactions only").1
    }

    fn note_page(&mut self, id: PageId) {
        let before = self.pages.get(id as usize).cloned().flatten();
        self.undo().pages.entry(id).or_insert(before);
    }

    /// Replaces what a slot holds; in a transaction it can be undone.
    fn set_block(&mut self, slot: Slot, block: Option<Block>) -> Option<Block> {
        if let Some(Block::Waiting { owner, .. }) = &block {
            *self.waiting.entry(*owner).or_default() += 1;
        }
        let before = match block {
            Some(block) => self.blocks.insert(slot, block),
            None => self.blocks.remove(&slot),
        };
        if let Some(Block::Waiting { owner, .. }) = &before {
            *self.waiting.get_mut(owner).expect("the owner has a count") -= 1;
        }
        before
    }

    fn exists(&self, id: PageId) -> bool {
        self.pages.get(id as usize).is_some_and(Option::is_some)
    }
}

fn checksum(page: &Page) -> u32 {
    page.iter().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte))
}

fn missing(id: PageId) -> StoreError {
    StoreError::Damaged(format!("there is no page {id}"))
}

impl Store for MemoryStore {
    type Reader = MemoryReader;

    fn begin(&mut self, purpose: Purpose) -> Result<(), StoreError> {
        assert!(self.transaction.is_none(), "transactions do not nest");
        self.transaction = Some((purpose, Undo::default()));
        Ok(())
    }

    fn commit(&mut self) {
        assert!(self.transaction.take().is_some(), "a transaction is under way");
        if let Some(mut history) = self.history.take() {
            history.push(self.clone());
            self.history = Some(history);
        }
    }

    fn abort(&mut self) {
        let (_, undo) = self.transaction.take().expect("a transaction is under way");
        for (id, page) in undo.pages {
            self.pages[id as usize] = page;
        }
        while self.pages.last().is_some_and(Option::is_none) {
            self.pages.pop();
        }
        for (slot, block) in undo.blocks {
            self.set_block(slot, block);
        }
    }

    fn page(&mut self, id: PageId) -> Result<Arc<Page>, StoreError> {
        self.pages.get(id as usize).cloned().flatten().ok_or_else(|| missing(id))
    }

    fn page_mut(&mut self, id: PageId) -> Result<&mut Page, StoreError> {
        if !self.exists(id) {
            return Err(missing(id));
        }
        self.note_page(id);
        Ok(Arc::make_mut(self.pages[id as usize].as_mut().expect("the page exists")))
    }

    fn allocate(&mut self) -> Result<PageId, StoreError> {
        self.take_space()?;
        let id = self.pages.iter().position(Option::is_none).unwrap_or(self.pages.len());
        self.note_page(id as PageId);
        if id == self.pages.len() {
            self.pages.push(None);
        }
        self.pages[id] = Some(Arc::new([0; BLOCK_BYTES]));
        Ok(id as PageId)
    }

    fn free(&mut self, id: PageId) -> Result<(), StoreError> {
        if !self.exists(id) {
            return Err(missing(id));
        }
        let slots = Slot { page: id, index: 0 }..=Slot { page: id, index: 255 };
        assert!(self.blocks.range(slots).next().is_none(), "page {id} is freed and has blocks");
        self.note_page(id);
        self.pages[id as usize] = None;
        Ok(())
    }

    fn next_page(&mut self, from: PageId) -> Result<Option<PageId>, StoreError> {
        Ok((from..self.pages.len() as PageId).find(|id| self.exists(*id)))
    }

    fn find_block(&mut self, slot: Slot) -> Result<Found, StoreError> {
        assert!(crate::tree::is_entry(&*self.page(slot.page)?, slot.index), "{slot:?} is no entry");
        Ok(match self.blocks.get(&slot) {
            None => Found::Hole,
            Some(Block::Reserved) => Found::Reserved,
            Some(Block::Waiting { content, .. }) => Found::Cached(Arc::clone(content)),
            Some(Block::Stored(stored)) => Found::Stored(*stored),
        })
    }

    fn read_stored(&mut self, stored: Stored) -> Result<Arc<Page>, StoreError> {
        let written = self.written.lock().expect("no panic holds the lock");
        let page = Arc::clone(&written[stored.position as usize]);
        assert_eq!(checksum(&page), stored.checksum);
        Ok(page)
    }

    fn put_block(&mut self, slot: Slot, owner: u64, _: Heat, content: Arc<Page>) -> Result<(), StoreError> {
        assert!(self.transaction.is_none(), "blocks are put outside of transactions");
        assert!(crate::tree::is_entry(&*self.page(slot.page)?, slot.index), "{slot:?} is no entry");
        let before = match self.blocks.get(&slot) {
            None => {
                self.take_space()?;
                None
            }
            Some(Block::Waiting { before, .. }) => before.clone(),
            Some(other) => Some(Box::new(other.clone())),
        };
        self.writes = self.writes.wrapping_add(1);
        self.set_block(slot, Some(Block::Waiting { content, owner, before }));
        Ok(())
    }

    fn patch_block(&mut self, slot: Slot, at: usize, bytes: &[u8]) -> bool {
        let Some(Block::Waiting { content, .. }) = self.blocks.get_mut(&slot) else { return false };
        Arc::make_mut(content)[at..at + bytes.len()].copy_from_slice(bytes);
        self.writes = self.writes.wrapping_add(1);
        true
    }

    fn release_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        let mut released = 0;
        for index in slots {
            let slot = Slot { page, index: index as u8 };
            assert!(crate::tree::is_entry(&*self.page(page)?, slot.index), "{slot:?} is no entry");
            if let Some(before) = self.set_block(slot, None) {
                self.undo().blocks.entry(slot).or_insert(Some(before));
                released += 1;
            }
        }
        Ok(released)
    }

    fn reserve_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        let mut reserved = 0;
        for index in slots {
            let slot = Slot { page, index: index as u8 };
            assert!(crate::tree::is_entry(&*self.page(page)?, slot.index), "{slot:?} is no entry");
            if let Some(Block::Waiting { content, owner, before: None }) = self.blocks.get(&slot).cloned() {
                let before = Some(Box::new(Block::Reserved));
                let hole = self.set_block(slot, Some(Block::Waiting { content, owner, before }));
                self.undo().blocks.entry(slot).or_insert(hole);
            } else if !self.blocks.contains_key(&slot) {
                if !matches!(self.undo().blocks.get(&slot), Some(Some(_))) {
                    self.take_space()?;
                }
                self.undo().blocks.entry(slot).or_insert(None);
                self.set_block(slot, Some(Block::Reserved));
                reserved += 1;
            }
        }
        Ok(reserved)
    }

    fn waiting(&self, owner: u64) -> u64 {
        self.waiting.get(&owner).copied().unwrap_or(0)
    }

    fn waiting_holes(&self, owner: u64) -> u64 {
        let is_one = |block: &&Block| matches!(block, Block::Waiting { owner: of, before: None, .. } if *of == owner);
        self.blocks.values().filter(is_one).count() as u64
    }

    fn now(&self) -> u32 {
        self.writes
    }

    fn space(&self) -> Space {
        Space { total: self.total, free: self.total.saturating_sub(self.used() + RESERVE_PAGES) }
    }

    fn reader(&self) -> MemoryReader {
        MemoryReader { written: Arc::clone(&self.written) }
    }
}

/// Reads what a [`MemoryStore`] has written out.
#[derive(Clone, Debug)]
pub struct MemoryReader {
    written: Arc<Mutex<Vec<Arc<Page>>>>,
}

impl BlockReader for MemoryReader {
    fn read_blocks(&self, position: u32, out: &mut [u8]) -> Result<(), StoreError> {
        let written = self.written.lock().expect("no panic holds the lock");
        for (i, block) in out.chunks_mut(BLOCK_BYTES).enumerate() {
            let page = written.get(position as usize + i);
            block.copy_from_slice(&page.ok_or_else(|| StoreError::Device("past the end".into()))?[..]);
        }
        Ok(())
    }
}
