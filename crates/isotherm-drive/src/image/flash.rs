//! The pages of a flash array in an image: what a device of bytes is built over.
//!
//! Pages go to the disk in runs, with their OOB areas: each open block has a tail in memory, which is written when it is long, when
//! its block is full or erased, and at every flush. A loss of power thus takes what no flush has covered, as it may, but always
//! leaves a prefix of the operations (see [`super::open`]).

use super::disk::Disk;
use super::durability::Durability;
use super::layout::{EraseRecord, Event, Layout, OOB_BYTES, PageRecord, page_check};
use super::record::Totals;
use super::saved::{self, SavedFrames};
use isotherm::address::{BlockId, Lpn, Ppn};
use isotherm::cause::Cause;
use isotherm::nand::content::Bytes;
use isotherm::nand::payload::{Kept, Payload};
use isotherm::nand::{Kind, Oob, Owner};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Bytes of a tail before it is written.
const TAIL_BYTES: usize = 64 << 10;
/// Bytes of free slots whose space is kept, to be written again soon: a hole that is filled costs more than an overwrite.
const KEPT_SLOT_BYTES: u64 = 32 << 20;
/// A block without a slot.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Where the blocks of an array lie in an image, and what is known of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tables {
    /// Slot of each block, or [`NO_SLOT`].
    pub(crate) slots: Vec<u32>,
    /// Checksum of each page that is programmed.
    pub(crate) checks: Vec<u32>,
    /// Erases of each block.
    pub(crate) erases: Vec<u32>,
    /// The operation that erased each block last.
    pub(crate) erased_by: Vec<u64>,
    /// The last operation.
    pub(crate) number: u64,
}

/// Pages of an open block that are not on the disk yet.
struct Tail {
    block: BlockId,
    slot: u32,
    /// Index of its first page in the block.
    first: u32,
    data: Vec<u8>,
    oobs: Vec<u8>,
}

/// See the module's text.
pub(crate) struct Flash<D> {
    layout: Layout,
    durability: Arc<Durability<D>>,
    tables: Tables,
    totals: Totals,
    tails: Vec<Tail>,
    /// Buffers of tails that are not in use.
    spare_tails: Vec<Tail>,
    free: VecDeque<u32>,
    /// Slots of erased blocks, with the operation that erased them.
    erased: VecDeque<(u64, u32)>,
    scratch: Vec<u8>,
    saved: SavedFrames,
    /// The page after the last one that was written, where its block has one: block, slot, index.
    next_page: Option<(BlockId, u32, u32)>,
}

impl<D: Disk> Flash<D> {
    /// The pages that `tables` tells of. Slots that no block has are free.
    pub(crate) fn new(layout: Layout, durability: Arc<Durability<D>>, tables: Tables) -> Self {
        let mut is_used = vec![false; layout.slots as usize];
        tables.slots.iter().filter(|slot| **slot != NO_SLOT).for_each(|slot| is_used[*slot as usize] = true);
        Self {
            free: (0..layout.slots).filter(|slot| !is_used[*slot as usize]).collect(),
            totals: durability.totals(),
            layout,
            durability,
            tables,
            tails: Vec::new(),
            spare_tails: Vec::new(),
            erased: VecDeque::new(),
            scratch: vec![0; layout.geometry.page_bytes() as usize],
            saved: SavedFrames::new(&layout),
            next_page: None,
        }
    }

    /// What a checkpoint must keep. Everything is on the disk after a flush.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn durability(&self) -> &Durability<D> {
        &self.durability
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    fn next_event(&mut self, cause: Cause, is_copy: bool) -> Event {
        self.tables.number += 1;
        Event { number: self.tables.number, cause, is_copy }
    }

    /// A slot for a block whose first page is to be programmed.
    fn take_slot(&mut self) -> io::Result<u32> {
        self.release_erased()?;
        if self.free.is_empty() {
            self.hand_over()?;
            self.durability.sync_with_record()?;
            self.release_erased()?;
        }
        // One slot a block, and as many as were erased since the last sync: either is free now.
        Ok(self.free.pop_front().expect("an image has more slots than blocks"))
    }

    /// Frees the slots of blocks whose erase is durable, and gives back the space of those that will not be needed soon.
    fn release_erased(&mut self) -> io::Result<()> {
        let Some((first, _)) = self.erased.front() else { return Ok(()) };
        let recorded = self.durability.recorded();
        if *first > recorded {
            return Ok(());
        }
        let kept = KEPT_SLOT_BYTES / self.layout.slot_bytes();
        while let Some((_, slot)) = self.erased.front().copied().filter(|(number, _)| *number <= recorded) {
            self.erased.pop_front();
            if (self.free.len() as u64) < kept {
                // The ones whose space is kept are taken first.
                self.free.push_front(slot);
            } else {
                self.durability.disk().punch(self.layout.data_of(slot, 0), self.layout.slot_bytes())?;
                self.free.push_back(slot);
            }
        }
        Ok(())
    }

    fn tail_of(&self, block: BlockId) -> Option<usize> {
        self.tails.iter().position(|tail| tail.block == block)
    }

    /// The tail of a block, begun at page `index` where there is none.
    fn open_tail(&mut self, block: BlockId, index: u32) -> io::Result<usize> {
        if let Some(at) = self.tail_of(block) {
            return Ok(at);
        }
        let slot = match index {
            0 => {
                let slot = self.take_slot()?;
                self.tables.slots[block.0 as usize] = slot;
                slot
            }
            _ => self.tables.slots[block.0 as usize],
        };
        let spare = self.spare_tails.pop();
        let mut tail = spare.unwrap_or_else(|| Tail { block, slot, first: 0, data: Vec::new(), oobs: Vec::new() });
        (tail.block, tail.slot, tail.first) = (block, slot, index);
        self.tails.push(tail);
        Ok(self.tails.len() - 1)
    }

    /// Programs a page; with `check` it is a copy of one that has this checksum.
    fn append(&mut self, at: Ppn, oob: Oob, check: Option<u32>, cause: Cause, page: &[u8]) -> io::Result<()> {
        let geometry = self.layout.geometry;
        let (block, index) = (geometry.block_of(at), geometry.index_in_block(at));
        let tail_at = self.open_tail(block, index)?;
        // Only now: what has a number is on its way to the disk, also where finding a slot took a sync.
        let event = self.next_event(cause, check.is_some());
        let check = check.unwrap_or_else(|| page_check(page, oob));
        self.tables.checks[at.0 as usize] = check;
        let tail = &mut self.tails[tail_at];
        tail.data.extend_from_slice(page);
        tail.oobs.extend_from_slice(&PageRecord { oob, block, check, event }.encode());
        if tail.data.len() >= TAIL_BYTES || index + 1 == geometry.pages_per_block() {
            self.write_tail(tail_at)?;
        }
        Ok(())
    }

    /// Writes a tail to the disk, data first, and closes it.
    fn write_tail(&mut self, at: usize) -> io::Result<()> {
        let mut tail = self.tails.swap_remove(at);
        let disk = self.durability.disk();
        disk.write(self.layout.data_of(tail.slot, tail.first), &tail.data)?;
        let oobs_at = self.layout.oob_of(tail.slot, tail.first);
        disk.write(oobs_at, &tail.oobs)?;
        disk.write(self.layout.mirror_of(oobs_at), &tail.oobs)?;
        let next = tail.first + (tail.oobs.len() as u64 / OOB_BYTES) as u32;
        self.next_page = (next < self.layout.slot_pages()).then_some((tail.block, tail.slot, next));
        tail.data.clear();
        tail.oobs.clear();
        self.spare_tails.push(tail);
        Ok(())
    }

    /// Writes all tails, and tells what can be made durable now.
    fn hand_over(&mut self) -> io::Result<()> {
        while !self.tails.is_empty() {
            self.write_tail(self.tails.len() - 1)?;
        }
        self.durability.hand(self.tables.number, &self.totals);
        Ok(())
    }

    /// Reads a page as it lies there, whether damaged or not.
    fn read_raw(&self, at: Ppn, out: &mut [u8]) -> io::Result<()> {
        let geometry = &self.layout.geometry;
        let (block, index) = (geometry.block_of(at), geometry.index_in_block(at));
        if let Some(tail) = self.tail_of(block).map(|at| &self.tails[at]).filter(|tail| index >= tail.first) {
            let start = (index - tail.first) as usize * page_len(geometry);
            out.copy_from_slice(&tail.data[start..start + out.len()]);
            return Ok(());
        }
        self.durability.disk().read(self.layout.data_of(self.tables.slots[block.0 as usize], index), out)
    }

    fn read_checked(&self, at: Ppn, oob: Oob, out: &mut [u8]) -> Kept {
        self.read_raw(at, out).map_err(|error| error.kind())?;
        if page_check(out, oob) != self.tables.checks[at.0 as usize] {
            return Err(ErrorKind::InvalidData);
        }
        Ok(())
    }

    /// Programs half a page, as a loss of power does: its OOB area is there, and says of the whole page what it was to be. Everything
    /// else was handed over.
    pub(crate) fn tear(&mut self) -> io::Result<()> {
        let Some((block, slot, index)) = self.next_page.take() else { return Ok(()) };
        if self.tables.slots[block.0 as usize] != slot {
            return Ok(());
        }
        let page = vec![0xA5; page_len(&self.layout.geometry)];
        let oob = Oob { owner: Owner::new(Kind::Data, 0), sequence: u64::MAX >> 1 };
        let event = Event { number: self.tables.number + 1, cause: Cause::Host, is_copy: false };
        let record = PageRecord { oob, block, check: page_check(&page, oob), event }.encode();
        let disk = self.durability.disk();
        disk.write(self.layout.data_of(slot, index), &page[..page.len() / 2])?;
        let at = self.layout.oob_of(slot, index);
        disk.write(at, &record)?;
        disk.write(self.layout.mirror_of(at), &record)
    }

    /// Operation `number` is durable after this. Of two records that take turns, the one before is, before it is followed: so one of
    /// them always is.
    fn settle(&mut self, number: u64) -> io::Result<()> {
        if number > self.durability.synced() {
            self.hand_over()?;
            self.durability.sync()?;
        }
        Ok(())
    }

    /// Saves a frame of the write buffer, or forgets what was saved of it.
    fn save(&mut self, frame: u32, held: Option<(Lpn, &[u8])>) -> io::Result<()> {
        let Some(before) = self.saved.before(frame, held.is_some()) else { return Ok(()) };
        self.settle(before)?;
        let number = self.next_event(Cause::Host, false).number;
        self.saved.write(self.durability.disk(), &self.layout, frame, number, held)
    }

    /// Forgets what was saved of the write buffer. All of it is on flash, and durable.
    pub(crate) fn forget_saved_frames(&self) -> io::Result<()> {
        if self.saved.is_used() { saved::forget_all(self.durability.disk(), &self.layout) } else { Ok(()) }
    }

    fn erase_block(&mut self, block: BlockId, erases: u32, cause: Cause) -> io::Result<()> {
        let index = block.0 as usize;
        if let Some(tail) = self.tail_of(block) {
            self.write_tail(tail)?;
        }
        self.settle(self.tables.erased_by[index])?;
        let event = self.next_event(cause, false);
        let record = EraseRecord { block, erases, event }.encode();
        let at = self.layout.erase_of(block, erases);
        self.durability.disk().write(at, &record)?;
        self.durability.disk().write(self.layout.mirror_of(at), &record)?;
        self.totals.erases[cause] += 1;
        self.tables.erases[index] = erases;
        self.tables.erased_by[index] = event.number;
        let slot = std::mem::replace(&mut self.tables.slots[index], NO_SLOT);
        if slot != NO_SLOT {
            self.erased.push_back((event.number, slot));
        }
        Ok(())
    }
}

fn page_len(geometry: &isotherm::address::Geometry) -> usize {
    geometry.page_bytes() as usize
}

impl<D: Disk> Payload for Flash<D> {
    type Content = Bytes;

    fn needs_recovery(&self) -> bool {
        true
    }

    fn program(&mut self, at: Ppn, oob: Oob, page: &[u8], cause: Cause) -> Kept {
        self.append(at, oob, None, cause, page).map_err(|error| error.kind())?;
        self.totals.programs[cause] += 1;
        Ok(())
    }

    fn read(&self, at: Ppn, oob: Oob, out: &mut [u8]) -> Kept {
        self.read_checked(at, oob, out)
    }

    /// The checksum goes with the page, so that damage stays what it is.
    fn copy(&mut self, source: Ppn, target: Ppn, oob: Oob, cause: Cause) -> Kept {
        let mut page = std::mem::take(&mut self.scratch);
        let check = self.tables.checks[source.0 as usize];
        let result =
            self.read_raw(source, &mut page).and_then(|()| self.append(target, oob, Some(check), cause, &page));
        self.scratch = page;
        result.map_err(|error| error.kind())?;
        self.totals.copies[cause] += 1;
        Ok(())
    }

    fn program_bytes(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<bool, ErrorKind> {
        let mut page = std::mem::take(&mut self.scratch);
        page.fill(0);
        page[..content.len()].copy_from_slice(content);
        let result = self.program(at, oob, &page, cause);
        self.scratch = page;
        result.map(|()| true)
    }

    fn read_bytes(&self, at: Ppn, oob: Oob, out: &mut Vec<u8>) -> Result<bool, ErrorKind> {
        out.resize(page_len(&self.layout.geometry), 0);
        self.read_checked(at, oob, out)?;
        Ok(true)
    }

    fn erase(&mut self, block: BlockId, erases: u32, cause: Cause) -> Kept {
        self.erase_block(block, erases, cause).map_err(|error| error.kind())
    }

    fn flush(&mut self) -> Kept {
        self.hand_over().map_err(|error| error.kind())
    }

    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, &[u8])>) -> Kept {
        self.save(frame, held).map_err(|error| error.kind())
    }

    fn bytes(&self) -> u64 {
        let tables = &self.tables;
        let blocks = tables.slots.len() as u64 * (4 + 4 + 8) + u64::from(self.layout.slots) * 16;
        blocks + tables.checks.len() as u64 * 4 + (self.tails.len() + self.spare_tails.len()) as u64 * TAIL_BYTES as u64
    }
}
