//! A store over a medium that holds data: after a loss of power.

use super::{BlockStore, OpenBlock, StoreOptions};
use crate::address::{BlockId, Ppn, StreamId};
use crate::blocks::BlockState;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::nand::{Kind, Medium};
use crate::placement::Placement;
use crate::victim::{VictimPolicy, Written};

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// A store over a medium that holds data. Blocks with pages in them are closed, but partly written ones go on being
    /// filled, one a stream: else every loss of power would cost their rest, and a collection that was cut short the room
    /// that it counted on. Nothing is valid yet: [`BlockStore::adopt`] tells what is, and [`BlockStore::finish_restore`] ends it.
    pub fn restore(medium: M, placement: P, victim: V, options: StoreOptions, last_sequence: u64) -> Self {
        let mut store = Self::new(medium, placement, victim, options);
        store.free.append(&mut store.parked);
        store.free.retain(|block| store.medium.programmed_pages(*block) == 0);
        let pages_per_block = store.medium.geometry().pages_per_block();
        let mut partly_written = Vec::new();
        for block in (0..store.blocks.blocks()).map(BlockId) {
            let written = store.medium.programmed_pages(block);
            if written == 0 || store.blocks.state(block) == BlockState::Retired {
                continue;
            }
            store.used_pages += u64::from(pages_per_block);
            store.restore_sort(block);
            if written < pages_per_block {
                partly_written.push((written, block));
            }
        }
        partly_written.sort_unstable();
        for (written, block) in partly_written {
            store.reopen(block, written);
        }
        store.sequence = last_sequence;
        store.park();
        store
    }

    /// Closes a block as one of meta streams or of data. Which stream filled it is not known any more: it counts as the first
    /// of its sort.
    pub(super) fn restore_sort(&mut self, block: BlockId) {
        let first = self.medium.geometry().first_page(block);
        let is_meta = self.options.meta_streams > 0 && self.medium.owner(first).kind() == Kind::Translation;
        let stream = if is_meta { self.meta_stream(0) } else { StreamId(0) };
        if is_meta {
            self.meta_blocks.push(block);
        }
        self.blocks.validity.set_stream(block, stream);
        self.blocks.validity.set_state(block, self.closed_state(stream));
    }

    /// Gives a partly written block to a stream of its sort that has none.
    pub(super) fn reopen(&mut self, block: BlockId, written: u32) {
        let data_streams = usize::from(self.data_streams);
        let is_meta = self.is_meta(self.blocks.stream(block));
        let levelled = usize::from(self.levelled_slot().0);
        let mut streams = if is_meta { data_streams..levelled } else { 0..data_streams };
        let Some(stream) = streams.find(|s| self.open[*s].next == self.open[*s].end) else { return };
        let geometry = self.medium.geometry();
        let first = geometry.first_page(block).0;
        let end = first + geometry.pages_per_block();
        self.open[stream] = OpenBlock { next: first + written, end, ..OpenBlock::default() };
        self.used_pages -= u64::from(geometry.pages_per_block() - written);
        self.blocks.validity.set_state(block, BlockState::Open);
        self.blocks.validity.set_stream(block, StreamId(stream as u16));
    }

    /// A page of a store being restored is valid.
    pub fn adopt(&mut self, at: Ppn) {
        self.blocks.validity.set(at);
        self.valid_pages += 1;
        self.victim.on_program(at, Written::Meta(self.now), &mut self.history);
    }

    /// All valid pages are told: blocks become candidates for cleaning. A collection that was cut short may have used up
    /// the reserve, so blocks without valid pages are erased until it is there again.
    ///
    /// # Errors
    /// Loss of power.
    pub fn finish_restore(&mut self) -> Result<(), DeviceError> {
        // What was invalidated before the loss is whatever was programmed and is not valid now.
        self.counters.invalidated_pages = self.medium.counters().programmed().total() - self.valid_pages;
        for block in self.blocks.full().collect::<Vec<_>>() {
            if self.blocks.valid(block) == 0 && self.free.len() as u32 <= self.options.floor {
                self.release(block, Cause::Recovery)?;
            } else if self.blocks.state(block) == BlockState::Closed {
                self.victim.on_close(block, &self.blocks);
                self.placement.on_close(block, self.blocks.stream(block));
            }
        }
        Ok(())
    }
}
