//! Cleaning: live blocks of a victim become dirty, and the segment is freed.

use super::SegmentLog;
use crate::blocks::CLEAN;
use crate::dirty::{Dirty, Origin};
use crate::disk::{Disk, NO_BLOCK};
use crate::options::TrimPoint;
use isotherm::device::DeviceError;
use isotherm::memory;

impl<S: Disk> SegmentLog<S> {
    /// Cleans a few segments if few are free. Returns how many.
    pub(super) fn clean_if_needed(&mut self) -> Result<u32, DeviceError> {
        if self.segments.freed() > self.options.clean_below {
            return Ok(0);
        }
        for cleaned in 0..self.options.clean_segments {
            let Some(victim) = self.segments.pick(self.options.victim, self.now) else { return Ok(cleaned) };
            self.clean(victim)?;
        }
        Ok(self.options.clean_segments)
    }

    /// Reads a segment's live blocks into the dirty cache and frees it.
    fn clean(&mut self, victim: u32) -> Result<(), DeviceError> {
        self.counters.count_victim(self.segments.utilisation(victim));
        let (from, to) = (victim * self.options.segment_blocks, (victim + 1) * self.options.segment_blocks);
        self.run.clear();
        for position in from..to {
            if let Some(ahead) = self.owners.get(position as usize + 16).filter(|b| **b != NO_BLOCK) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            let block = self.owners[position as usize];
            let is_live = block != NO_BLOCK
                && self.blocks[block as usize].position == position
                && self.blocks[block as usize].slot == CLEAN;
            if is_live {
                self.run.push(block);
            } else if !self.run.is_empty() {
                self.take_run(victim, position)?;
            }
        }
        if !self.run.is_empty() {
            self.take_run(victim, to)?;
        }
        self.segments.free(victim);
        let trims = match self.options.trim {
            TrimPoint::Reusable => self.segments.is_reusable(victim),
            TrimPoint::AtFree => true,
            TrimPoint::Never => false,
        };
        if trims {
            self.counters.segments_trimmed += 1;
            self.store.trim(victim)?;
        }
        Ok(())
    }

    /// Reads the run, which ends before position `end` of the victim, and makes its blocks dirty. Where reading fails they stay
    /// where they are.
    fn take_run(&mut self, victim: u32, end: u32) -> Result<(), DeviceError> {
        let count = self.run.len();
        self.counters.cleaning_reads += count as u64;
        self.contents.resize_with(count, Default::default);
        self.store.read(end - count as u32, &mut self.contents)?;
        for (block, content) in self.run.drain(..).zip(self.contents.drain(..)) {
            let state = &mut self.blocks[block as usize];
            self.segments.on_death(victim, state.heat);
            state.slot = self.dirty.push(Dirty { block, origin: Origin::Cleaning, content });
        }
        Ok(())
    }
}
