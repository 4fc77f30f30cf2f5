//! What a store has counted, and the laws that its counts obey.

use super::BlockStore;
use crate::address::BlockId;
use crate::blocks::BlockState;
use crate::device::DeviceError;
use crate::nand::Medium;
use crate::nand::clock::Clock as _;
use crate::placement::Placement;
use crate::stats::{Snapshot, VICTIM_BUCKETS, WearSummary};
use crate::victim::VictimPolicy;

impl<M: Medium, P: Placement, V: VictimPolicy> BlockStore<M, P, V> {
    /// Adds medium, collector, time and tables to `snapshot`.
    pub fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.medium = *self.medium.counters();
        snapshot.collector = self.counters;
        snapshot.time = self.medium.clock().time(self.medium.counters());
        snapshot.busy_until_ns = self.medium.clock().busy_until_ns();
        self.placement.fill_snapshot(snapshot);
        self.victim.fill_snapshot(snapshot);
        snapshot.valid_pages = self.valid_pages;
        snapshot.free_blocks = self.free_blocks();
        // A history that both judge by is kept once.
        let (placement, victim) = (self.placement.wanted(), self.victim.wanted());
        let of_placement = placement.bytes();
        let of_victim = placement.and(victim).bytes() - of_placement;
        snapshot.dram.push(("placement", self.placement.memory_bytes() + of_placement));
        snapshot.dram.push(("victim", self.victim.memory_bytes() + of_victim));
        snapshot.dram.push(("blocks", self.blocks.bytes()));
    }

    /// Why no page can be written.
    pub(super) fn no_space(&self) -> DeviceError {
        let retired = self.counters.retired_blocks;
        if retired > 0 {
            return DeviceError::WornOut { retired_blocks: retired as u32, blocks: self.blocks.blocks() };
        }
        DeviceError::NoSpace {
            detail: format!(
                "{} of {} pages are valid, {} blocks are free, {} streams hold open blocks",
                self.valid_pages,
                self.medium.geometry().pages(),
                self.free_blocks(),
                self.open.iter().filter(|o| o.next < o.end).count()
            ),
        }
    }

    /// Counts a victim.
    pub(super) fn count_victim(&mut self, block: BlockId) {
        let pages = u64::from(self.blocks.pages_per_block());
        let invalid = pages - u64::from(self.blocks.valid(block));
        self.counters.collections += 1;
        self.counters.victim_invalid_pages += invalid;
        self.counters.victim_pages += pages;
        self.counters.victim_histogram[(invalid * (VICTIM_BUCKETS as u64 - 1) / pages) as usize] += 1;
    }

    /// Erase counts over the blocks.
    pub fn wear(&self) -> WearSummary {
        let erases = self.blocks.every_erases();
        let total: u64 = erases.clone().map(u64::from).sum();
        WearSummary {
            total,
            min: erases.clone().min().unwrap_or(0),
            max: erases.clone().max().unwrap_or(0),
            mean: total as f64 / erases.len().max(1) as f64,
        }
    }

    /// Bytes of the simulator's tables: medium, blocks, bitmap and policies.
    pub fn table_bytes(&self) -> u64 {
        self.medium.table_bytes()
            + self.blocks.bytes()
            + self.victim.simulator_bytes()
            + self.placement.simulator_bytes()
    }

    /// Checks the conservation laws: every page programmed is valid, was invalidated, or was spoiled; columns agree with
    /// the bitmap, and blocks with the medium.
    ///
    /// # Errors
    /// The law that is broken.
    pub fn check(&self) -> Result<(), String> {
        let law = |holds: bool, text: &dyn Fn() -> String| if holds { Ok(()) } else { Err(text()) };
        let programmed = self.medium.counters().programmed().total();
        let accounted = self.valid_pages + self.counters.invalidated_pages;
        law(programmed == accounted, &|| format!("{programmed} programs, {accounted} pages valid or invalidated"))?;
        let (mut used, mut valid) = (0, 0);
        for block in (0..self.blocks.blocks()).map(BlockId) {
            let mut bits = 0;
            self.blocks.validity.for_each_valid(block, |_| bits += 1);
            valid += u64::from(bits);
            let (state, written) = (self.blocks.state(block), self.medium.programmed_pages(block));
            law(bits == self.blocks.valid(block), &|| {
                format!("{block}: {bits} bits, {} valid", self.blocks.valid(block))
            })?;
            law(bits <= written, &|| format!("{block}: {bits} valid of {written} programmed"))?;
            law(state != BlockState::Free || written == 0, &|| format!("{block} is free with {written} pages"))?;
            used += match state {
                BlockState::Retired => 0,
                BlockState::Free | BlockState::Open => u64::from(written),
                _ => u64::from(self.blocks.pages_per_block()),
            };
        }
        law(valid == self.valid_pages, &|| format!("{valid} valid bits, {} valid pages", self.valid_pages))?;
        law(used == self.used_pages, &|| format!("{used} pages used, {} accounted", self.used_pages))?;
        self.placement.check(&self.blocks)
    }
}
