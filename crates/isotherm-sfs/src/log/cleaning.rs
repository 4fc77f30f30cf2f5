//! Cleaning: live blocks of a victim become dirty.

use super::storage::Storage;
use crate::blocks::CLEAN;
use crate::dirty::{Dirty, Origin};
use crate::disk::{Disk, NO_BLOCK};
use crate::machine::{Cleaner, Machine};
use isotherm::device::DeviceError;
use isotherm::memory;

impl<S: Disk> Cleaner for Storage<S> {
    /// Reads a segment's live blocks into the dirty cache.
    fn take_live(&mut self, machine: &mut Machine, victim: u32) -> Result<(), DeviceError> {
        let positions = self.positions_of(victim);
        let to = positions.end;
        let mut run = 0;
        for position in positions {
            if let Some(ahead) = self.owners.get(position as usize + 16).filter(|b| **b != NO_BLOCK) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            let block = self.owners[position as usize];
            let is_live = block != NO_BLOCK
                && self.blocks[block as usize].position == position
                && self.blocks[block as usize].slot == CLEAN;
            if is_live {
                let state = &mut self.blocks[block as usize];
                machine.on_death(victim, state.heat);
                let content = S::Block::default();
                state.slot = self.dirty.push(Dirty { block, origin: Origin::Cleaning, content });
                run += 1;
            } else if run > 0 {
                self.read_run(machine, victim, position, std::mem::take(&mut run))?;
            }
        }
        if run > 0 {
            self.read_run(machine, victim, to, run)?;
        }
        Ok(())
    }

    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        self.store.trim(segment)
    }
}

impl<S: Disk> Storage<S> {
    /// Reads what the last `count` dirty blocks hold: positions of the victim that end before `end`. Where that fails they are
    /// clean again, and live where they were.
    #[inline(always)]
    fn read_run(&mut self, machine: &mut Machine, victim: u32, end: u32, count: u32) -> Result<(), DeviceError> {
        machine.counters_mut().cleaning_reads += u64::from(count);
        let contents = &mut self.contents[..count as usize];
        match self.store.read(end - count, contents) {
            Ok(()) => self.dirty.fill_last(contents),
            Err(error) => {
                self.take_back(machine, victim, count);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The last `count` dirty blocks, which come from `victim`, could not be read.
    #[cold]
    fn take_back(&mut self, machine: &mut Machine, victim: u32, count: u32) {
        for _ in 0..count {
            let state = &mut self.blocks[self.dirty.pop() as usize];
            state.slot = CLEAN;
            machine.on_rescue(victim, state.heat);
        }
    }
}
