//! What a crash left: one pass over the OOB areas, and the prefix of the operations that counts.
//!
//! Operations are numbered. All up to the last durable record are there; of those after it any part may be missing. They count up to
//! the first one that is missing, torn or damaged, so that what is found is what the array really held at some moment, no earlier
//! than the last flush. Slots that hold later pages are put aside in the pass, and taken up once that moment is known.

use super::checkpoint::empty;
use super::disk::Disk;
use super::flash::{NO_SLOT, Tables};
use super::layout::{EraseRecord, Event, Layout, OOB_BYTES, PageRecord, page_check};
use super::record::Totals;
use super::saved::{self, Found, HeldPage};
use isotherm::nand::array::ArrayState;
use isotherm::nand::{Kind, Owner};
use std::io;
use std::sync::mpsc::sync_channel;

/// Bytes of OOB areas that are read at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// What a scan found.
pub(super) struct Scanned {
    pub(super) tables: Tables,
    pub(super) state: ArrayState,
    /// What was counted, the operations after the last record included.
    pub(super) totals: Totals,
    /// The highest number of an operation seen, whether it counts or not.
    pub(super) number_max: u64,
    /// Pages and erases that do not count: their records are to be taken away before anything is written.
    pub(super) lost: Lost,
    /// Pages whose OOB area is damaged, with its copy.
    pub(super) damaged_pages: u64,
    /// Records that were not whole, and were read from their copies.
    pub(super) mended_records: u64,
    /// Bytes of OOB areas that were read.
    pub(super) bytes: u64,
    /// What a protected write buffer held, in the order of addresses; none where nothing was ever saved of it.
    pub(super) held: Option<Vec<HeldPage>>,
}

/// Places of records that do not count.
#[derive(Default)]
pub(super) struct Lost {
    /// OOB areas, by slot and index.
    pub(super) pages: Vec<(u32, u32)>,
    /// Records of erases and of saved frames.
    pub(super) records: Vec<u64>,
}

impl Lost {
    /// How many operations do not count.
    pub(super) fn operations(&self) -> u64 {
        (self.pages.len() + self.records.len()) as u64
    }
}

/// What an operation did that is not covered by a record of what is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Late {
    Page,
    Erase,
    Save,
}

/// An OOB area as it was read.
#[derive(Clone, Copy)]
enum Entry {
    Nothing,
    Damaged,
    Page(PageRecord),
}

struct Scan<'a, D> {
    disk: &'a D,
    layout: Layout,
    /// Operations up to here are all there.
    durable: u64,
    tables: Tables,
    state: ArrayState,
    /// First page's number of the slot that each block was found in.
    found_at: Vec<u64>,
    /// Slots with pages after `durable`.
    late_slots: Vec<(u32, Vec<Entry>)>,
    /// Operations after `durable` that are whole.
    late: Vec<(Event, Late)>,
    erases: Vec<EraseRecord>,
    saves: Vec<Found>,
    totals: Totals,
    number_max: u64,
    damaged_pages: u64,
    mended_records: u64,
    bytes: u64,
    /// Room for the entries of a slot.
    entries: Vec<Entry>,
}

/// Scans an image whose last record says that operations up to `durable` are all there.
pub(super) fn scan<D: Disk>(disk: &D, layout: &Layout, durable: u64, totals: Totals) -> io::Result<Scanned> {
    let (tables, state) = empty(layout);
    let (saves, mended_records) = saved::read_all(disk, layout)?;
    let mut scan = Scan {
        disk,
        layout: *layout,
        durable,
        tables,
        state,
        found_at: vec![0; layout.geometry.blocks as usize],
        late_slots: Vec::new(),
        late: Vec::new(),
        erases: Vec::new(),
        saves,
        totals,
        number_max: durable,
        damaged_pages: 0,
        mended_records,
        bytes: 0,
        entries: Vec::new(),
    };
    scan.read_erases()?;
    scan.check_saves()?;
    scan.apply_erases(durable);
    scan.read_slots()?;
    let end = scan.prefix();
    Ok(scan.finish(end))
}

impl<D: Disk> Scan<'_, D> {
    fn read_erases(&mut self) -> io::Result<()> {
        let places = self.layout.geometry.blocks as usize * 2;
        let mut bytes = vec![0; places * OOB_BYTES as usize];
        let (disk, at) = (self.disk, self.layout.erases_at);
        disk.read(at, &mut bytes)?;
        self.mended_records +=
            self.layout.mend(disk, at, &mut bytes, |record| EraseRecord::decode(record).is_some())?;
        self.erases = bytes.chunks_exact(OOB_BYTES as usize).filter_map(EraseRecord::decode).collect();
        let newest = self.erases.iter().map(|record| record.event.number).max();
        self.number_max = self.number_max.max(newest.unwrap_or(0));
        let late = self.erases.iter().filter(|record| record.event.number > self.durable);
        self.late.extend(late.map(|record| (record.event, Late::Erase)));
        Ok(())
    }

    /// Takes down the late records of saved frames whose page is whole.
    fn check_saves(&mut self) -> io::Result<()> {
        let mut page = vec![0; self.layout.geometry.page_bytes() as usize];
        for found in &self.saves {
            let event = found.record.event();
            self.number_max = self.number_max.max(event.number);
            let is_whole = match found.page(&self.layout).filter(|_| event.number > self.durable) {
                Some(held) => held.read(self.disk, &mut page)?,
                None => true,
            };
            if event.number > self.durable && is_whole {
                self.late.push((event, Late::Save));
            }
        }
        Ok(())
    }

    /// Takes the erases up to operation `end` as done.
    fn apply_erases(&mut self, end: u64) {
        for record in self.erases.iter().filter(|record| record.event.number <= end) {
            let index = record.block.0 as usize;
            if record.event.number > self.tables.erased_by[index] {
                self.tables.erased_by[index] = record.event.number;
                self.tables.erases[index] = record.erases;
            }
        }
    }

    /// Reads every OOB area in order, the next ones while these are looked at.
    fn read_slots(&mut self) -> io::Result<()> {
        let slot_bytes = u64::from(self.layout.slot_pages()) * OOB_BYTES;
        let slots_at_a_time = (CHUNK_BYTES as u64 / slot_bytes).max(1);
        let (disk, layout) = (self.disk, self.layout);
        std::thread::scope(|scope| {
            let (full, chunks) = sync_channel::<io::Result<(u32, Vec<u8>)>>(2);
            let (empty, buffers) = sync_channel::<Vec<u8>>(4);
            scope.spawn(move || {
                let mut slot = 0;
                while slot < u64::from(layout.slots) {
                    // What was never written is skipped: neither it nor its copy.
                    let at = layout.oob_at + slot * slot_bytes;
                    let copy = layout.mirror_of(at);
                    let ends = [(at, layout.mirror_at), (copy, layout.checkpoint_at)];
                    let found = ends.map(|(from, end)| {
                        Ok(disk.next_data(from)?.filter(|data| *data < end).map(|data| data - from))
                    });
                    let ahead = match found {
                        [Ok(area), Ok(copy)] => area.into_iter().chain(copy).min(),
                        [Err(error), _] | [_, Err(error)] => return drop(full.send(Err(error))),
                    };
                    match ahead {
                        Some(ahead) => slot += ahead / slot_bytes,
                        None => break,
                    }
                    if slot >= u64::from(layout.slots) {
                        break;
                    }
                    let count = slots_at_a_time.min(u64::from(layout.slots) - slot);
                    let mut bytes = buffers.try_recv().unwrap_or_default();
                    bytes.resize((count * slot_bytes) as usize, 0);
                    let chunk = disk.read(layout.oob_at + slot * slot_bytes, &mut bytes);
                    if full.send(chunk.map(|()| (slot as u32, bytes))).is_err() {
                        return;
                    }
                    slot += count;
                }
            });
            for chunk in chunks {
                let (first, mut bytes) = chunk?;
                self.bytes += bytes.len() as u64;
                for (slot, records) in (first..).zip(bytes.chunks_exact_mut(slot_bytes as usize)) {
                    self.take_slot(slot, records)?;
                }
                let _ = empty.try_send(bytes);
            }
            Ok(())
        })
    }

    /// Takes a slot that is as most are: every page of it there and durable. False if it must be looked at more closely; then
    /// nothing that counts was changed.
    fn take_full_slot(&mut self, slot: u32, records: &[u8]) -> bool {
        let Some(first) = PageRecord::decode(&records[..OOB_BYTES as usize]) else { return false };
        let block = first.block.0 as usize;
        if first.block.0 >= self.layout.geometry.blocks
            || first.event.number <= self.tables.erased_by[block]
            || self.found_at[block] > 0
        {
            return false;
        }
        let base = self.layout.geometry.first_page(first.block).0 as usize;
        let pages = records.len() / OOB_BYTES as usize;
        let owners = &mut self.state.owners[base..base + pages];
        let sequences = &mut self.state.sequences[base..base + pages];
        let checks = &mut self.tables.checks[base..base + pages];
        let mut last = 0;
        for (index, bytes) in records.chunks_exact(OOB_BYTES as usize).enumerate() {
            let Some(record) = PageRecord::decode(bytes) else { return false };
            if record.block != first.block || record.event.number <= last || record.event.number > self.durable {
                return false;
            }
            last = record.event.number;
            owners[index] = record.oob.owner;
            sequences[index] = record.oob.sequence;
            checks[index] = record.check;
        }
        self.number_max = self.number_max.max(last);
        self.found_at[block] = first.event.number;
        self.tables.slots[block] = slot;
        self.state.next_pages[block] = pages as u16;
        true
    }

    fn take_slot(&mut self, slot: u32, records: &mut [u8]) -> io::Result<()> {
        if self.take_full_slot(slot, records) {
            return Ok(());
        }
        let (disk, at) = (self.disk, self.layout.oob_of(slot, 0));
        self.mended_records += self.layout.mend(disk, at, records, |record| PageRecord::decode(record).is_some())?;
        let mut entries = std::mem::take(&mut self.entries);
        let mut is_late = false;
        for bytes in records.chunks_exact(OOB_BYTES as usize) {
            let entry = match PageRecord::decode(bytes) {
                Some(record) if record.block.0 < self.layout.geometry.blocks => Entry::Page(record),
                Some(_) => Entry::Damaged,
                None if bytes.iter().all(|byte| *byte == 0) => Entry::Nothing,
                None => Entry::Damaged,
            };
            if let Entry::Page(record) = entry {
                self.number_max = self.number_max.max(record.event.number);
                is_late |= record.event.number > self.durable;
            }
            entries.push(entry);
        }
        if is_late {
            self.check_late(slot, &mut entries)?;
            self.late_slots.push((slot, entries));
        } else {
            self.apply_slot(slot, &entries, self.durable);
            entries.clear();
            self.entries = entries;
        }
        Ok(())
    }

    /// Takes down the late pages of a slot that are whole: of these the data may be missing too.
    fn check_late(&mut self, slot: u32, entries: &mut [Entry]) -> io::Result<()> {
        let mut page = vec![0; self.layout.geometry.page_bytes() as usize];
        for (index, entry) in (0..).zip(entries) {
            let Entry::Page(record) = entry else { continue };
            if record.event.number <= self.durable {
                continue;
            }
            self.disk.read(self.layout.data_of(slot, index), &mut page)?;
            if page_check(&page, record.oob) == record.check {
                self.late.push((record.event, Late::Page));
            }
        }
        Ok(())
    }

    /// The last operation that counts.
    fn prefix(&mut self) -> u64 {
        self.late.sort_unstable_by_key(|(event, _)| event.number);
        let mut end = self.durable;
        for (event, _) in &self.late {
            if event.number > end + 1 {
                break;
            }
            end = event.number;
        }
        end
    }

    /// Takes a slot as what its pages up to operation `end` say.
    fn apply_slot(&mut self, slot: u32, entries: &[Entry], end: u64) {
        // The block is the one that the first readable page names. A page before it is damaged.
        let counts = |entry: &Entry| matches!(entry, Entry::Page(record) if record.event.number <= end);
        let Some(start) = entries.iter().position(counts) else { return };
        let Entry::Page(first) = entries[start] else { return };
        let block = first.block.0 as usize;
        let all_damaged = entries[..start].iter().all(|entry| matches!(entry, Entry::Damaged));
        let number = first.event.number;
        if !all_damaged || number <= self.tables.erased_by[block] || number <= self.found_at[block] {
            return;
        }
        self.found_at[block] = number;
        self.tables.slots[block] = slot;
        let base = self.layout.geometry.first_page(first.block).0 as usize;
        let mut last = 0;
        let mut programmed = 0;
        for (index, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Page(record) if record.block == first.block && record.event.number > last && counts(entry) => {
                    last = record.event.number;
                    self.state.owners[base + index] = record.oob.owner;
                    self.state.sequences[base + index] = record.oob.sequence;
                    self.tables.checks[base + index] = record.check;
                    programmed = index + 1;
                }
                Entry::Damaged => {
                    self.state.owners[base + index] = Owner::new(Kind::Unreadable, 0);
                    self.state.sequences[base + index] = 0;
                    self.tables.checks[base + index] = 0;
                }
                // Left by what lay here before, or not programmed.
                Entry::Page(_) | Entry::Nothing => break,
            }
        }
        let damaged = |entry: &&Entry| matches!(entry, Entry::Damaged);
        self.damaged_pages += entries[..programmed].iter().filter(damaged).count() as u64;
        self.state.next_pages[block] = programmed as u16;
    }

    fn finish(mut self, end: u64) -> Scanned {
        self.apply_erases(end);
        // A block whose erase came late is not where it was found before.
        for block in 0..self.found_at.len() {
            if self.found_at[block] > 0 && self.found_at[block] <= self.tables.erased_by[block] {
                self.found_at[block] = 0;
                self.tables.slots[block] = NO_SLOT;
                self.state.next_pages[block] = 0;
            }
        }
        let mut lost = Lost::default();
        for (slot, entries) in std::mem::take(&mut self.late_slots) {
            self.apply_slot(slot, &entries, end);
            for (index, entry) in (0..).zip(&entries) {
                if matches!(entry, Entry::Page(record) if record.event.number > end) {
                    lost.pages.push((slot, index));
                }
            }
        }
        for record in self.erases.iter().filter(|record| record.event.number > end) {
            lost.records.push(self.layout.erase_of(record.block, record.erases));
        }
        for found in self.saves.iter().filter(|found| found.record.number > end) {
            lost.records.push(found.at(&self.layout));
        }
        for (event, late) in self.late.iter().filter(|(event, _)| event.number <= end) {
            let counts = match (*late, event.is_copy) {
                (Late::Save, _) => continue,
                (Late::Erase, _) => &mut self.totals.erases,
                (Late::Page, true) => &mut self.totals.copies,
                (Late::Page, false) => &mut self.totals.programs,
            };
            counts[event.cause] += 1;
        }
        self.tables.number = end;
        self.state.erase_counts.clone_from(&self.tables.erases);
        Scanned {
            tables: self.tables,
            state: self.state,
            totals: self.totals,
            number_max: self.number_max,
            lost,
            damaged_pages: self.damaged_pages,
            mended_records: self.mended_records,
            bytes: self.bytes,
            held: (!self.saves.is_empty()).then(|| saved::held_at(&self.layout, &self.saves, end)),
        }
    }
}
