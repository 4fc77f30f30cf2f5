//! The log below the tree: pages in transactions, blocks that wait, and what of them is where on the device.
//!
//! What is durable at any time is a prefix of what happened: the newest whole checkpoint, and the writes of the log after it up to
//! the first that is missing. Each write carries the transactions that were committed before it, then the blocks whose turn
//! it is. So metadata after a crash is as it was at some moment, and a block of file data holds its newest durable content.
//!
//! - Pages are written by checkpoints only, or when too many are dirty: until then the redo log is enough. A change of a block
//!   costs one record of 24 bytes, its share of a leaf of the map at the next checkpoint, and that leaf's share of a table page:
//!   no tree wanders, since pages are named by numbers.
//! - Positions are given when a write is planned, under the lock; the device is written later, without it ([`Job`]). Until then
//!   blocks are read from memory.
//! - Which blocks are written together, which segment is cleaned and which is written next, the segment machine of the simulator
//!   decides ([`isotherm_sfs::machine`]).

mod apply;
mod batch;
mod cache;
pub mod census;
mod checkpointing;
mod cleaning;
mod damaged;
mod load;
mod observing;
mod opening;
pub mod options;
mod planning;
mod recount;
mod recover;
mod room;
pub mod segment_reader;
mod space;
mod tables;
mod transaction;
mod waiting;
mod writing;

pub use checkpointing::CheckpointImage;
pub use cleaning::Victim;
pub use load::DeviceReader;
pub use opening::{GivenUp, LostWrites, OpenError, Recovery, read_checkpoints, read_superblock};
pub use options::LogSettings;
pub use planning::{Goal, Planned};
pub(crate) use room::{Room, hotness_of};
pub use space::Pressure;
pub use writing::Job;

use crate::device::Device;
use crate::format::checkpoint::{Lagging, NO_HEAT};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::format::superblock::Superblock;
use crate::recording::{Event, Observer};
use crate::store::{Found, Heat, Page, PageId, Purpose, Slot, Space, Store, StoreError, Stored};
use crate::tree::owner_of;
use batch::Batch;
use cache::Cache;
use isotherm_sfs::machine::Machine;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use tables::{Tables, exists};
use transaction::Transaction;
use waiting::{Beginning, Origin, Waiting};

/// What takes space, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Blocks of file data on the device.
    pub stored: u64,
    /// Blocks whose space is set aside, those that wait to be written into it included.
    pub reserved: u64,
    /// Blocks that wait, and were holes.
    pub waiting: u64,
    /// Pages.
    pub pages: u64,
}

/// What a log counted since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Transactions committed.
    pub transactions: u64,
    /// Blocks that files wrote.
    pub host_blocks: u64,
    /// Of these, those that replaced one that waited.
    pub absorbed_blocks: u64,
    /// Blocks of file data written to the log.
    pub data_blocks: u64,
    /// Of these, those that the cleaner moved.
    pub cleaned_blocks: u64,
    /// Pages written to the log.
    pub page_blocks: u64,
    /// Pages of the table of pages written to the log.
    pub table_blocks: u64,
    /// Blocks of summaries, the redo log included.
    pub summary_blocks: u64,
    /// Blocks of checkpoints.
    pub checkpoint_blocks: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Writes of the log.
    pub writes: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Blocks read for cleaning.
    pub cleaning_reads: u64,
}

/// See the module's text. All methods that do not say otherwise are called under one lock.
#[derive(Debug)]
pub struct Log {
    device: Arc<dyn Device>,
    superblock: Superblock,
    settings: LogSettings,
    /// Taken out while it plans.
    machine: Option<Machine>,
    tables: Tables,
    cache: Cache,
    waiting: Waiting,
    /// Blocks that have a position, and are not yet on the device.
    under_way: HashMap<u32, Arc<Page>>,
    transaction: Option<Transaction>,
    /// Transactions that are in no write yet.
    redo: Vec<u8>,
    /// Writes that are planned.
    jobs: Vec<Job>,
    /// What the machine is shown as waiting.
    view: planning::View,
    /// All of that, where it is not every block of file data.
    shown: Vec<u32>,
    /// Whether anything happened since the last checkpoint.
    is_changed: bool,
    /// Segments that had been written at the last checkpoint.
    checkpoint_at: u64,
    /// Segments that had been written when cleaning gave no more.
    exhausted_at: Option<u64>,
    /// Requests wait until there is room again.
    holds_requests: bool,
    usage: Usage,
    /// Pages that giving room back may have to take.
    kept_for_shrinking: u64,
    counters: Counters,
    incarnation: u32,
    checkpoint_number: u64,
    /// Files of which blocks were written, and that may lag behind unseen.
    written_files: HashSet<u64>,
    /// Blocks that roll-forward has let lie where they were written.
    replayed: HashSet<Slot>,
    /// Files whose inodes lag behind, as the checkpoint says that it was opened from.
    lagging: Lagging,
    /// Where roll-forward has found damaged copies of pages and pages of the table whose content is in memory: nobody reads them there
    /// before they are written anew.
    rebuilt: HashSet<u32>,
    /// Why nothing can be written any more.
    failure: Option<String>,
    /// Segments with blocks that cannot be read: never cleaned.
    unreadable: Vec<u32>,
    /// The last write that was carried out, by its number, and the last that is durable with all before it; 0 for none of this mount.
    written: u64,
    flushed: u64,
    /// The segments that were chosen last to be cleaned, oldest first.
    victims: VecDeque<Victim>,
    /// The batch of segments to clean, and how many had been written when that was found.
    batch: Cell<Option<(u64, Batch)>>,
    /// Who is told what the machine's decisions follow from.
    observer: Option<RefCell<Box<dyn Observer>>>,
}

impl Log {
    /// What mkfs has decided.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }
    /// What was set.
    pub fn settings(&self) -> &LogSettings {
        &self.settings
    }
    /// What it decides by: segments, groups and their counters.
    pub fn machine(&self) -> &Machine {
        self.machine.as_ref().expect("it is here but while it plans")
    }
    /// Host block writes so far.
    pub fn clock(&self) -> u64 {
        self.machine().now()
    }
    fn machine_mut(&mut self) -> &mut Machine {
        self.machine.as_mut().expect("it is here but while it plans")
    }
    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// What takes space.
    pub fn usage(&self) -> Usage {
        self.usage
    }
    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }
    /// Why nothing can be written any more.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
    /// Blocks that wait to be written.
    pub fn waiting_blocks(&self) -> usize {
        self.waiting.len()
    }
    /// Pages that wait to be written.
    pub fn dirty_pages(&self) -> usize {
        self.cache.dirty()
    }
    /// Blocks whose write is under way.
    pub fn blocks_under_way(&self) -> usize {
        self.under_way.len()
    }
    /// Bytes of transactions that are in no write yet.
    pub fn redo_bytes(&self) -> usize {
        self.redo.len()
    }

    /// Files whose blocks roll-forward has placed: what their inodes count may be older. They are told once.
    ///
    /// # Errors
    /// The device, damage.
    pub fn take_replayed_owners(&mut self) -> Result<BTreeSet<u64>, StoreError> {
        let mut slots: Vec<Slot> = std::mem::take(&mut self.replayed).into_iter().collect();
        slots.sort_unstable();
        let mut owners = BTreeSet::new();
        for slot in slots {
            if exists(self.page_entry(slot.page)?) {
                owners.extend(owner_of(&*self.load_page(slot.page)?, slot));
            }
        }
        Ok(owners)
    }

    /// Files that lag behind by the checkpoint that the log was opened from. They are told once.
    pub fn take_lagging(&mut self) -> Lagging {
        std::mem::take(&mut self.lagging)
    }

    /// Files of which blocks were written since [`Log::forget_written_files`]. Others may wait, or the same ones again, so that nothing
    /// settles what their inodes say of them.
    pub fn written_files(&self) -> Vec<u64> {
        let mut files: Vec<u64> = self.written_files.iter().copied().collect();
        files.sort_unstable();
        files
    }

    /// What lags behind of the files of which blocks were written is on the volume.
    pub fn forget_written_files(&mut self) {
        self.written_files.clear();
    }

    /// From now on nothing is written: what is on the device stays as it is.
    pub fn fail(&mut self, why: &str) {
        self.failure.get_or_insert_with(|| why.to_owned());
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        match &self.failure {
            _ if self.settings.read_only => Err(StoreError::ReadOnly),
            // Not as if somebody had wanted it to be read-only: what was taken before, and not made durable, is lost.
            Some(why) => Err(StoreError::Device(why.clone())),
            None => Ok(()),
        }
    }

    /// Blocks that data and metadata may take together.
    fn capacity(&self) -> u64 {
        let usable = self.superblock.segments - self.superblock.reserve_segments;
        u64::from(usable) * self.payload_of_segment()
    }

    /// Blocks of a segment that are not its summaries', as far as cleaning leaves them few.
    fn payload_of_segment(&self) -> u64 {
        let blocks = u64::from(self.superblock.segment_blocks);
        blocks - 1 - blocks / 64
    }

    fn used(&self) -> u64 {
        self.usage.stored
            + self.usage.reserved
            + self.usage.waiting
            + self.usage.pages
            + self.tables.roots().len() as u64
    }

    /// What may be taken of the reserve so that room is given back.
    fn extra(&self) -> u64 {
        u64::from(self.superblock.reserve_segments) * self.payload_of_segment() / 4
    }

    /// Blocks that data and metadata may take together where nothing is given back.
    fn offered(&self) -> u64 {
        self.capacity().saturating_sub(self.kept_for_shrinking.saturating_sub(self.extra()))
    }

    fn check_space(&self, blocks: u64, purpose: Purpose) -> Result<(), StoreError> {
        let limit = match purpose {
            Purpose::Grow => self.offered(),
            Purpose::Shrink => self.capacity() + self.extra(),
        };
        let used = self.used().saturating_sub(self.released_by_transaction());
        if used + blocks <= limit { Ok(()) } else { Err(StoreError::NoSpace) }
    }

    fn segment_of(&self, position: u32) -> u32 {
        self.superblock.segment_of(position).expect("entries were checked when they were read")
    }

    /// The newest content of a block is not at its position any more.
    fn block_died(&mut self, position: u32, heat: Heat) {
        let segment = self.segment_of(position);
        self.tell_death(segment, heat);
        self.machine_mut().on_death(segment, heat);
    }

    /// Its newest durable copy is not there any more either.
    fn block_released(&mut self, position: u32) {
        let segment = self.segment_of(position);
        self.tell(|| Event::Release(segment));
        self.machine_mut().release(segment);
    }

    /// A table page in memory was changed.
    fn dirty_table(&mut self, table: u32) {
        if self.tables.set_dirty(table) {
            let root = self.tables.root(table);
            if root.is_stored() {
                self.block_died(root.position, NO_HEAT);
            }
        }
    }

    fn entry_of(&mut self, slot: Slot) -> Result<Entry, StoreError> {
        let page = self.load_page(slot.page)?;
        let entry = Entry::at(&*page, slot.index.into());
        if entry.is_stored() && self.superblock.segment_of(entry.position).is_none() {
            return Err(StoreError::Damaged(format!(
                "slot {} of page {} leads out of the volume",
                slot.index, slot.page
            )));
        }
        Ok(entry)
    }
}

impl Store for Log {
    type Reader = DeviceReader;

    fn begin(&mut self, purpose: Purpose) -> Result<(), StoreError> {
        self.begin_transaction(purpose)
    }
    fn commit(&mut self) {
        self.commit_transaction();
    }
    fn abort(&mut self) {
        self.abort_transaction();
    }
    fn page(&mut self, id: PageId) -> Result<Arc<Page>, StoreError> {
        self.load_page(id)
    }
    fn page_mut(&mut self, id: PageId) -> Result<&mut Page, StoreError> {
        self.change_page(id)
    }
    fn allocate(&mut self) -> Result<PageId, StoreError> {
        self.allocate_page()
    }
    fn free(&mut self, id: PageId) -> Result<(), StoreError> {
        self.free_page(id)
    }
    fn next_page(&mut self, from: PageId) -> Result<Option<PageId>, StoreError> {
        self.page_from(from)
    }

    fn find_block(&mut self, slot: Slot) -> Result<Found, StoreError> {
        if !self.is_dropped(slot)
            && let Some(number) = self.waiting.number(slot)
        {
            return Ok(Found::Cached(self.waiting.get(number).content.clone()));
        }
        let entry = self.entry_of(slot)?;
        Ok(match entry.position {
            HOLE => Found::Hole,
            RESERVED => Found::Reserved,
            position => match self.under_way.get(&position) {
                Some(content) => Found::Cached(content.clone()),
                None => Found::Stored(Stored { position, checksum: entry.checksum }),
            },
        })
    }

    fn read_stored(&mut self, stored: Stored) -> Result<Arc<Page>, StoreError> {
        self.read_block(stored.position, stored.checksum, self.verifies_data())
    }

    fn put_block(&mut self, slot: Slot, owner: u64, file: Heat, content: Arc<Page>) -> Result<(), StoreError> {
        self.check_writable()?;
        debug_assert!(self.transaction.is_none(), "blocks are written outside of transactions");
        let now = self.clock() as u32;
        let number = self.waiting.number(slot);
        if let Some(number) = number {
            // What the cleaner took belongs to no file.
            self.waiting.set_owner(number, owner);
        }
        if let Some(number) = number {
            let block = self.waiting.get_mut(number);
            block.content = content;
            block.heat = Heat { writes: block.heat.writes.saturating_add(1), time: now };
            if block.origin == Origin::Host {
                self.counters.absorbed_blocks += 1;
            }
            block.origin = Origin::Host;
            self.tell_waiting(number);
        } else {
            let entry = self.entry_of(slot)?;
            match entry.position {
                HOLE => {
                    self.check_space(1, Purpose::Grow)?;
                    self.usage.waiting += 1;
                }
                RESERVED => {}
                position => self.block_died(position, entry.heat),
            }
            let heat = Heat { writes: entry.heat.writes.saturating_add(1), time: now };
            let number =
                self.waiting.insert(Beginning { slot, owner, content, origin: Origin::Host, entry, heat, file });
            self.tell_waiting(number);
        }
        self.tell(|| Event::Tick);
        self.machine_mut().on_host_write();
        self.counters.host_blocks += 1;
        Ok(())
    }

    fn patch_block(&mut self, slot: Slot, at: usize, bytes: &[u8]) -> bool {
        let Some(number) = self.waiting.number(slot) else { return false };
        let now = self.clock() as u32;
        let block = self.waiting.get_mut(number);
        if block.origin == Origin::Cleaning {
            // It has no owner yet.
            return false;
        }
        Arc::make_mut(&mut block.content)[at..at + bytes.len()].copy_from_slice(bytes);
        block.heat = Heat { writes: block.heat.writes.saturating_add(1), time: now };
        self.counters.absorbed_blocks += 1;
        self.tell_waiting(number);
        self.tell(|| Event::Tick);
        self.machine_mut().on_host_write();
        self.counters.host_blocks += 1;
        true
    }

    fn release_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        self.release(page, slots)
    }
    fn reserve_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError> {
        self.reserve(page, slots)
    }
    fn waiting(&self, owner: u64) -> u64 {
        self.waiting.count_of(owner)
    }
    fn waiting_holes(&self, owner: u64) -> u64 {
        self.waiting.holes_of(owner) - self.holes_filled_by_transaction(owner)
    }
    fn now(&self) -> u32 {
        self.clock() as u32
    }
    fn space(&self) -> Space {
        Space { total: self.capacity(), free: self.offered().saturating_sub(self.used()) }
    }
    fn keep_for_shrinking(&mut self, pages: u64) {
        self.kept_for_shrinking = pages;
    }
    fn reader(&self) -> DeviceReader {
        DeviceReader { device: self.device.clone() }
    }
}
