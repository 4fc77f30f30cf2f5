//! What is written, as the segment machine decides it: blocks by groups, chosen ones mixed, pages for a checkpoint.

use super::Log;
use super::cleaning::NOBODY;
use super::room::{Room, hotness_of};
use super::waiting::Origin;
use super::writing::Job;
use crate::format::bytes::u32_at;
use crate::format::checkpoint::{NO_HEAT, TABLE_ENTRIES};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::format::summary::{BlockName, Record, Summary};
use crate::recording::{Event, Name, Outcome};
use crate::store::{BLOCK_BYTES, Heat, Page, PageId, StoreError};
use isotherm_sfs::machine::{Extent, Machine, Mechanism, Progress, RunWrite};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Blocks that are written at most before the next checkpoint is due: 20 segments of 32 MiB.
const BLOCKS_PER_CHECKPOINT: u64 = 20 * (32 << 20) / BLOCK_BYTES as u64;

/// What is to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Goal {
    /// These files and all transactions, where that leaves room to clean on: groups of the files' own blocks that fill a segment, the
    /// rest mixed. Blocks of other files go on waiting, however many they are: whoever syncs a block does not wait for them.
    Files(HashSet<u64>),
    /// The same in the middle of other work, by whoever knows that there is room beside it.
    FilesInBetween(HashSet<u64>),
    /// A segment of the coldest blocks that fill one; all blocks where none do and memory is short.
    Coldest,
    /// All blocks that wait, and all transactions.
    Everything,
    /// Blocks that were taken out of segments, of groups that fill one.
    CleanedGroups,
    /// Blocks whose newest durable copy lies in a segment that was freed, and all transactions.
    Cleaned,
    /// All transactions.
    Transactions,
    /// All pages, so that a checkpoint can follow.
    Pages,
}

impl Goal {
    /// Whether it is about what files hold.
    pub(crate) fn is_of_files(&self) -> bool {
        match self {
            Self::Files(_) | Self::FilesInBetween(_) | Self::Coldest | Self::Everything => true,
            Self::CleanedGroups | Self::Cleaned | Self::Transactions | Self::Pages => false,
        }
    }
}

/// How far planning has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Planned {
    /// All of it is planned.
    Done,
    /// A checkpoint would let free segments be written over.
    NeedsCheckpoint,
    /// Segments are to be cleaned.
    NeedsCleaning,
}

/// What the machine is shown as waiting. The guard finds whatever else must be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum View {
    Blocks,
    /// Some of the blocks: groups of others that would fill a segment take no room from them.
    Some,
    Pages,
    Tables,
}

/// Why planning stops.
#[derive(Debug)]
pub enum Stop {
    /// Something else comes first.
    Planned(Planned),
    /// Something failed.
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Numbers of blocks that wait are those of [`Waiting`](super::waiting::Waiting), those of pages and table pages have these marks.
const KIND_SHIFT: u32 = 30;
const PAGE: u32 = 2;
const TABLE: u32 = 3;
const NUMBER: u32 = (1 << KIND_SHIFT) - 1;
impl Log {
    /// Plans what `goal` asks for: [`Log::take_jobs`] has what is to be written for it.
    ///
    /// # Errors
    /// The device and damage, where pages are read; read-only.
    pub fn plan(&mut self, goal: &Goal) -> Result<Planned, StoreError> {
        self.check_writable()?;
        let mut machine = self.machine.take().expect("plans do not nest");
        let outcome = self.plan_goal(&mut machine, goal);
        self.machine = Some(machine);
        match outcome {
            Ok(()) => Ok(Planned::Done),
            Err(Stop::Planned(planned)) => Ok(planned),
            Err(Stop::Failed(error)) => {
                self.fail(&error.to_string());
                Err(error)
            }
        }
    }

    /// The writes that were planned, in order.
    pub fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    /// A write has been carried out: its blocks are read from the device from here on.
    pub fn finish(&mut self, job: &Job) {
        let first = job.position + (job.summary.len() / BLOCK_BYTES) as u32;
        for position in first..first + job.blocks.len() as u32 {
            self.under_way.remove(&position);
        }
        self.written = self.written.max(job.sequence);
    }

    /// All writes that were carried out are durable. Whatever was planned before one of them has been carried out too.
    pub fn set_flushed(&mut self) {
        self.flushed = self.written;
    }

    /// Whether anything happened since the last checkpoint.
    pub fn is_changed(&self) -> bool {
        self.is_changed || self.waiting.len() > 0 || !self.redo.is_empty() || self.cache.dirty() > 0
    }

    /// Whether so much was written since the last checkpoint that the next one is due: as much as 20 of the published segments of 32 MiB
    /// hold, whatever the size of these. A checkpoint writes most pages of the map: after 20 small segments each, it would write more than they hold.
    pub fn is_checkpoint_due(&self) -> bool {
        let segments = self.machine().counters().segments_written - self.checkpoint_at;
        segments * u64::from(self.superblock.segment_blocks) >= BLOCKS_PER_CHECKPOINT
    }

    fn plan_goal(&mut self, machine: &mut Machine, goal: &Goal) -> Result<(), Stop> {
        self.view = View::Blocks;
        self.shown.clear();
        match goal {
            Goal::Files(files) | Goal::FilesInBetween(files) => {
                self.choose(files);
                if self.shown.is_empty() && self.redo.is_empty() {
                    return Ok(());
                }
                if matches!(goal, Goal::Files(_)) {
                    self.check_room(machine, self.shown.len() as u64)?;
                }
                self.pass_chosen(machine)
            }
            Goal::Coldest => {
                if !self.room().takes(self.redo.len()) {
                    self.check_room(machine, 0)?;
                    self.pass_chosen(machine)?;
                    self.view = View::Blocks;
                }
                let before = machine.counters().segments_written;
                self.portions(machine, Extent::Coldest)?;
                // Groups that all wait for their last blocks may be as much as there is room for.
                if machine.counters().segments_written > before || !self.is_memory_short() {
                    return Ok(());
                }
                self.portions(machine, Extent::Everything)
            }
            Goal::Everything => self.portions(machine, Extent::Everything),
            Goal::CleanedGroups => {
                (self.view, self.shown) = (View::Some, self.waiting.of(NOBODY).collect());
                self.pass(machine, Extent::FullGroups)
            }
            Goal::Cleaned => {
                let mut taken: Vec<u32> = self.waiting.of(NOBODY).collect();
                // Blocks that a file has written since they were taken out hold their segments just so.
                let freed: HashSet<u32> = machine.segments().queue().collect();
                let are_taken: HashSet<u32> = taken.iter().copied().collect();
                let is_other = |number: &u32| self.waiting.contains(*number) && !are_taken.contains(number);
                let waiting = self.waiting.numbers().iter().copied().filter(is_other);
                let mut held: HashMap<u32, Vec<u32>> = HashMap::new();
                for number in waiting {
                    if let Some(home) = self.home(number).filter(|home| freed.contains(home)) {
                        held.entry(home).or_default().push(number);
                    }
                }
                // A segment is of use when all of it is written elsewhere: those that hold least go first, as far as there is
                // room and still some for the checkpoint that lets them be written over.
                let mut held: Vec<(usize, u32, Vec<u32>)> =
                    held.into_iter().map(|(home, numbers)| (numbers.len(), home, numbers)).collect();
                held.sort_unstable();
                for (_, _, numbers) in held {
                    if !self.has_room_at_least(machine, (taken.len() + numbers.len()) as u64) {
                        break;
                    }
                    taken.extend(numbers);
                }
                (self.view, self.shown) = (View::Some, taken);
                self.pass(machine, Extent::Everything)
            }
            Goal::Transactions => {
                self.check_room(machine, 0)?;
                self.pass_chosen(machine)
            }
            Goal::Pages => self.plan_pages(machine),
        }
    }

    /// Pages, then the pages of the table. The guard may bring blocks along, which make pages dirty again.
    fn plan_pages(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        while self.cache.dirty() > 0 || !self.redo.is_empty() {
            self.view = View::Pages;
            self.shown =
                self.cache.dirty_pages().into_iter().map(|id| PAGE << KIND_SHIFT | self.cache.number(id)).collect();
            self.pass(machine, Extent::Everything)?;
            self.view = View::Tables;
            self.shown = self.tables.dirty_pages().into_iter().map(|number| TABLE << KIND_SHIFT | number).collect();
            self.pass(machine, Extent::Everything)?;
        }
        self.view = View::Tables;
        self.shown = self.tables.dirty_pages().into_iter().map(|number| TABLE << KIND_SHIFT | number).collect();
        if !self.shown.is_empty() {
            self.pass(machine, Extent::Everything)?;
        }
        if self.cache.dirty() > 0 || !self.tables.dirty_pages().is_empty() {
            return self.plan_pages(machine);
        }
        Ok(())
    }

    /// Chooses the blocks of some files, file by file.
    fn choose(&mut self, files: &HashSet<u64>) {
        let mut files: Vec<u64> = files.iter().copied().collect();
        files.sort_unstable();
        self.shown.extend(files.iter().flat_map(|file| self.waiting.of(*file)));
    }

    /// The chosen blocks, and nothing but them and transactions.
    fn pass_chosen(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        self.view = View::Some;
        self.pass(machine, Extent::Chosen)
    }

    /// What waits, as far as it leaves room to clean on; a segment of it where there is no more.
    fn portions(&mut self, machine: &mut Machine, extent: Extent) -> Result<(), Stop> {
        self.check_room(machine, self.portion_of(self.waiting.len() as u64))?;
        let most = self.segments_to_take(machine).max(1);
        self.pass_of(machine, extent, most)
    }

    fn pass(&mut self, machine: &mut Machine, extent: Extent) -> Result<(), Stop> {
        self.pass_of(machine, extent, u32::MAX)
    }

    /// A pass that takes `most` segments at most.
    fn pass_of(&mut self, machine: &mut Machine, extent: Extent, most: u32) -> Result<(), Stop> {
        self.tell_pass(extent, most);
        let progress = machine.write_pass(self, extent, most);
        let outcome = match &progress {
            Ok(Progress::Done) => Some(Outcome::Done),
            Ok(Progress::OutOfSegments) => Some(Outcome::OutOfSegments),
            Err(Stop::Planned(_)) => Some(Outcome::Stopped),
            Err(Stop::Failed(_)) => None,
        };
        if let Some(outcome) = outcome {
            self.tell_passed(machine, outcome);
        }
        match progress? {
            Progress::Done => Ok(()),
            Progress::OutOfSegments => Err(self.what_helps(machine)),
        }
    }

    pub(super) fn room(&self) -> Room {
        Room::of(self.superblock.segment_blocks)
    }

    /// The end of the transactions that the next write takes.
    fn redo_end(&self) -> usize {
        if self.room().takes(self.redo.len()) {
            return self.redo.len();
        }
        let mut at = 0;
        let lengths = std::iter::from_fn(|| {
            let length = (at < self.redo.len()).then(|| 4 + u32_at(&self.redo, at) as usize)?;
            at += length;
            Some(length)
        });
        self.room().end_of_write(self.redo.len(), lengths).0
    }

    fn position_of(&self, write: &RunWrite<'_>) -> u32 {
        self.superblock.segment_start(write.segment) + write.at
    }

    /// The segment of a stored block.
    fn home_of(&self, position: u32) -> Option<u32> {
        (position != HOLE && position != RESERVED).then(|| self.segment_of(position))
    }

    pub(super) fn name(&self, number: u32) -> Name {
        match number >> KIND_SHIFT {
            PAGE => Name::Page(self.cache.id(number & NUMBER)),
            TABLE => Name::Table(number & NUMBER),
            _ => self.waiting.get(number).slot.into(),
        }
    }

    /// Heat of a page by its number; the table's pages have none.
    pub(super) fn metadata_heat(&self, number: u32) -> Heat {
        if number >> KIND_SHIFT == PAGE { self.cache.heat(self.cache.id(number & NUMBER)) } else { NO_HEAT }
    }

    fn home(&self, number: u32) -> Option<u32> {
        match number >> KIND_SHIFT {
            PAGE => self.home_of(self.cache.home(self.cache.id(number & NUMBER))),
            TABLE => self.home_of(self.tables.root(number & NUMBER).position),
            _ => self.home_of(self.waiting.get(number).home),
        }
    }
}

impl Mechanism for Log {
    type Error = Stop;

    fn waiting(&self) -> impl Iterator<Item = u32> {
        let (blocks, shown): (&[u32], &[u32]) = match self.view {
            View::Blocks => (self.waiting.numbers(), &[]),
            View::Some | View::Pages | View::Tables => (&[], &self.shown),
        };
        blocks.iter().chain(shown).filter(|number| self.is_waiting(**number)).copied()
    }

    fn waiting_blocks(&self) -> usize {
        match self.view {
            View::Blocks => self.waiting.len(),
            View::Some | View::Pages | View::Tables => self.shown.len(),
        }
    }

    fn is_waiting(&self, number: u32) -> bool {
        match number >> KIND_SHIFT {
            PAGE => self.cache.is_dirty(self.cache.id(number & NUMBER)),
            TABLE => self.tables.is_dirty(number & NUMBER),
            _ => self.waiting.contains(number),
        }
    }

    fn is_homed_in(&self, number: u32, segment: u32) -> bool {
        self.home(number) == Some(segment)
    }

    fn homed_in(&self, segment: u32, out: &mut Vec<u32>) {
        let blocks = self.waiting.numbers().iter().copied().filter(|number| self.waiting.contains(*number));
        let pages = self.cache.dirty_pages().into_iter().map(|id| PAGE << KIND_SHIFT | self.cache.number(id));
        let tables = self.tables.dirty_pages().into_iter().map(|number| TABLE << KIND_SHIFT | number);
        let before = out.len();
        out.extend(blocks.chain(pages).chain(tables).filter(|number| self.home(*number) == Some(segment)));
        self.tell(|| Event::Guarded {
            segment,
            blocks: out[before..].iter().map(|number| self.name(*number)).collect(),
        });
    }

    fn hotness(&self, number: u32, ticks: u64) -> f64 {
        let now = ticks as u32;
        match number >> KIND_SHIFT {
            PAGE => self.cache.heat(self.cache.id(number & NUMBER)).hotness(now),
            // Written by every checkpoint: nothing is hotter.
            TABLE => f64::INFINITY,
            _ => {
                let block = self.waiting.get(number);
                hotness_of(block.heat, block.file, now)
            }
        }
    }

    fn is_chosen(&self, _: u32) -> bool {
        // Where only some wait for the machine, they are the chosen ones.
        self.view == View::Some
    }

    fn has_records(&self) -> bool {
        !self.redo.is_empty()
    }

    fn payload(&self, room: u32) -> u32 {
        self.room().payload(self.redo.len(), room)
    }

    fn overhead(&self, blocks: u32) -> u32 {
        self.room().overhead(blocks, self.redo_end())
    }

    fn write(&mut self, machine: &mut Machine, write: &RunWrite<'_>) -> Result<u32, Stop> {
        let mut numbers = write.blocks.to_vec();
        // Blocks before the pages that hold their entries, pages before the table: each is then written with all that it says.
        numbers.sort_by_key(|number| number >> KIND_SHIFT);
        self.tell(|| Event::Write {
            segment: write.segment,
            at: write.at,
            overhead: write.overhead_blocks,
            group: write.group,
            sequence: write.sequence,
            next: write.next_segment,
            blocks: numbers.iter().map(|number| self.name(*number)).collect(),
        });
        let first = self.position_of(write) + write.overhead_blocks;
        let mut records = Vec::with_capacity(numbers.len());
        let mut contents = Vec::with_capacity(numbers.len());
        let mut cleaned = 0;
        for (position, number) in (first..).zip(&numbers) {
            let (record, content, is_cleaned) = match number >> KIND_SHIFT {
                PAGE => self.place_page(machine, write, self.cache.id(number & NUMBER), position)?,
                TABLE => self.place_table(machine, write, number & NUMBER, position),
                _ => self.place_block(machine, write, *number, position)?,
            };
            cleaned += u32::from(is_cleaned);
            self.under_way.insert(position, content.clone());
            records.push(record);
            contents.push(content);
        }
        let end = self.redo_end();
        let rest = self.redo.split_off(end);
        let redo = std::mem::replace(&mut self.redo, rest);
        let left = self.superblock.segment_blocks - write.at - write.overhead_blocks - numbers.len() as u32;
        let summary = Summary {
            tag: self.superblock.tag(),
            incarnation: self.incarnation,
            sequence: write.sequence,
            position: self.position_of(write),
            now: write.now,
            flushed: self.flushed,
            is_first: write.at == 0,
            stays_open: write.group.is_none() && self.payload(left) > 0,
            group: write.group,
            next_segment: write.next_segment.unwrap_or(u32::MAX),
            records,
            redo,
        };
        debug_assert_eq!(summary.first_block(), first, "the overhead was foretold");
        self.counters.writes += 1;
        self.counters.summary_blocks += u64::from(write.overhead_blocks);
        self.is_changed = true;
        self.tell(|| Event::Written);
        let (position, sequence) = (summary.position, summary.sequence);
        self.jobs.push(Job { position, sequence, summary: summary.encode(), blocks: contents });
        Ok(cleaned)
    }

    fn forget_written(&mut self) {
        // They are dropped when they are as many as those that wait, so that a sync of one block does not go through all.
    }

    fn commit(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        // It is made without the lock, by whoever plans.
        Err(self.what_helps(machine))
    }

    fn no_space(&self, machine: &Machine) -> Stop {
        self.what_helps(machine)
    }
}

type Placed = (Record, Arc<Page>, bool);

impl Log {
    /// A block that waited has a position.
    fn place_block(
        &mut self,
        machine: &mut Machine,
        write: &RunWrite<'_>,
        number: u32,
        position: u32,
    ) -> Result<Placed, Stop> {
        let block = self.waiting.remove(number);
        if block.owner != NOBODY {
            self.written_files.insert(block.owner);
        }
        self.load_page(block.slot.page)?;
        if self.cache.set_dirty(block.slot.page, false) {
            self.tell_dirty(Name::Page(block.slot.page));
            let entry = self.page_entry(block.slot.page)?;
            if let Some(segment) = self.home_of(entry.position) {
                self.tell_death(segment, entry.heat);
                machine.on_death(segment, entry.heat);
            }
        }
        let entry = Entry { position, heat: block.heat, checksum: crc32c::crc32c(&*block.content) };
        entry.put(&mut Arc::make_mut(self.cache.content_mut(block.slot.page))[..], block.slot.index.into());
        match block.home {
            HOLE => {
                self.usage.waiting -= 1;
                self.usage.stored += 1;
            }
            RESERVED => {
                self.usage.reserved -= 1;
                self.usage.stored += 1;
            }
            _ => {}
        }
        let is_cleaned = block.origin == Origin::Cleaning;
        self.tell_placed(self.home_of(block.home), block.heat, is_cleaned);
        machine.on_written(write, self.home_of(block.home), block.heat, block.heat.time);
        self.counters.data_blocks += 1;
        self.counters.cleaned_blocks += u64::from(is_cleaned);
        let name = BlockName::Data(block.slot.page, block.slot.index);
        Ok((Record { name, heat: block.heat, checksum: entry.checksum }, block.content, is_cleaned))
    }

    /// A dirty page has a position.
    fn place_page(
        &mut self,
        machine: &mut Machine,
        write: &RunWrite<'_>,
        id: PageId,
        position: u32,
    ) -> Result<Placed, Stop> {
        self.load_table(id / TABLE_ENTRIES)?;
        let before = self.cache.home(id);
        let cached = self.cache.get(id).expect("dirty pages are in memory");
        let (content, heat) = (cached.content.clone(), cached.heat);
        let is_cleaned = self.cache.is_cleaned(id);
        let checksum = crc32c::crc32c(&*content);
        self.tables.set(id, Entry { position, heat, checksum });
        self.dirty_table_with(machine, id / TABLE_ENTRIES);
        self.cache.set_clean(id, position, heat);
        self.tell_placed(self.home_of(before), heat, is_cleaned);
        machine.on_written(write, self.home_of(before), heat, heat.time);
        self.counters.page_blocks += 1;
        Ok((Record { name: BlockName::Page(id), heat, checksum }, content, is_cleaned))
    }

    /// A dirty page of the table has a position.
    fn place_table(&mut self, machine: &mut Machine, write: &RunWrite<'_>, number: u32, position: u32) -> Placed {
        let before = self.tables.root(number);
        let content = self.tables.content(number);
        let checksum = crc32c::crc32c(&*content);
        self.tables.set_root(number, Entry { position, heat: NO_HEAT, checksum });
        self.tables.set_clean(number);
        self.tell_placed(self.home_of(before.position), NO_HEAT, false);
        machine.on_written(write, self.home_of(before.position), NO_HEAT, NO_HEAT.time);
        self.counters.table_blocks += 1;
        (Record { name: BlockName::Table(number), heat: NO_HEAT, checksum }, content, false)
    }

    fn dirty_table_with(&mut self, machine: &mut Machine, number: u32) {
        if !self.tables.set_dirty(number) {
            return;
        }
        self.tell_dirty(Name::Table(number));
        if let Some(segment) = self.home_of(self.tables.root(number).position) {
            self.tell_death(segment, NO_HEAT);
            machine.on_death(segment, NO_HEAT);
        }
    }
}
