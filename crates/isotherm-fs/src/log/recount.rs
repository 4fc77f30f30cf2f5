//! Repairs of the log: counters set to what a census has found, and blocks whose entries lead nowhere taken out.
//!
//! For volumes that are out of use. Nothing is written before the next checkpoint.

use super::Log;
use super::census::Census;
use super::tables::is_new;
use crate::format::checkpoint::TABLE_ENTRIES;
use crate::format::entry::{Entry, HOLE};
use crate::format::redo::Operation;
use crate::store::{BLOCK_BYTES, Heat, PageId, Purpose, Slot, Store, StoreError};
use isotherm::hotness::heat::HeatSums;
use isotherm_sfs::segments::SegmentState;
use std::sync::Arc;

impl Log {
    /// Sets all counters to those of a census that was taken of this very state.
    pub fn recount(&mut self, census: &Census) {
        (self.usage.stored, self.usage.reserved, self.usage.pages) = (census.stored, census.reserved, census.pages);
        self.tables.set_used(&census.used);
        self.is_changed = true;
        let mut state = self.machine().state();
        let open = state.open.map(|open| open.segment);
        let held: Vec<u32> =
            state.queue.iter().copied().filter(|segment| !self.machine().segments().is_reusable(*segment)).collect();
        let mut is_queued = vec![false; state.segments.len()];
        state.queue.retain(|segment| {
            let is_free = census.segments[*segment as usize].referenced == 0;
            is_queued[*segment as usize] |= is_free;
            is_free
        });
        let mut new = Vec::new();
        for (number, (segment, count)) in (0..).zip(state.segments.iter_mut().zip(&census.segments)) {
            (segment.referenced, segment.live) = (count.referenced, count.live);
            segment.heat = HeatSums::of(count.writes, count.times);
            segment.youngest = segment.youngest.max(count.latest);
            segment.state = match segment.state {
                _ if open == Some(number) => SegmentState::Open,
                _ if is_queued[number as usize] => SegmentState::Freed,
                SegmentState::Freed if count.referenced == 0 => {
                    new.push(number);
                    SegmentState::Freed
                }
                _ => SegmentState::Written,
            };
        }
        state.queue.extend(&new);
        let machine = self.machine_mut();
        machine.restore(&state);
        // The last checkpoint may need what they hold.
        held.into_iter().chain(new).for_each(|segment| machine.hold(segment));
    }

    /// The open segment takes no more.
    pub fn close_segment(&mut self) {
        let mut state = self.machine().state();
        let Some(open) = state.open.take() else { return };
        state.segments[open.segment as usize].state = SegmentState::Written;
        let held: Vec<u32> =
            state.queue.iter().copied().filter(|segment| !self.machine().segments().is_reusable(*segment)).collect();
        let machine = self.machine_mut();
        machine.restore(&state);
        held.into_iter().for_each(|segment| machine.hold(segment));
    }

    /// Makes a page that cannot be read zeros. Whether the census has counted its durable copy is the caller's to know.
    ///
    /// # Errors
    /// The device, damage of the table of pages; read-only.
    pub fn reset_page(&mut self, id: PageId, is_counted: bool) -> Result<(), StoreError> {
        self.check_writable()?;
        let table = id / TABLE_ENTRIES;
        self.load_table(table)?;
        let was_dirty = self.cache.is_dirty(id);
        let entry = self.tables.set(id, Entry::RESERVED);
        self.dirty_table(table);
        self.cache.remove(id);
        if is_counted && !is_new(entry) && entry.position != HOLE {
            if !was_dirty {
                self.block_died(entry.position, entry.heat);
            }
            self.block_released(entry.position);
        }
        self.cache.insert(id, Arc::new([0; BLOCK_BYTES]), Heat::default(), HOLE);
        self.cache.set_dirty(id, false);
        let mut operations = Vec::new();
        Operation::Free(id).put(&mut operations);
        Operation::Allocate(id).put(&mut operations);
        self.redo.extend_from_slice(&(operations.len() as u32).to_le_bytes());
        self.redo.extend_from_slice(&operations);
        self.is_changed = true;
        Ok(())
    }

    /// Makes a hole of a block whose entry the census has counted nowhere.
    ///
    /// # Errors
    /// The device, damage; read-only.
    pub fn drop_entry(&mut self, slot: Slot) -> Result<(), StoreError> {
        self.begin(Purpose::Shrink)?;
        match self.page_mut(slot.page) {
            Ok(page) => Entry::default().put(page, slot.index.into()),
            Err(error) => {
                self.abort();
                return Err(error);
            }
        }
        self.commit();
        Ok(())
    }
}
