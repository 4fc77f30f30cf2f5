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
            let Some(victim) = self.segments.pick(self.options.victim, self.now, self.ticks()) else {
                return Ok(cleaned);
            };
            self.clean(victim)?;
        }
        Ok(self.options.clean_segments)
    }

    /// Reads a segment's live blocks into the dirty cache and frees it.
    fn clean(&mut self, victim: u32) -> Result<(), DeviceError> {
        self.counters.count_victim(self.segments.utilisation(victim));
        let (from, to) = (victim * self.options.segment_blocks, (victim + 1) * self.options.segment_blocks);
        let mut run = 0;
        for position in from..to {
            if let Some(ahead) = self.owners.get(position as usize + 16).filter(|b| **b != NO_BLOCK) {
                memory::prefetch(&self.blocks, *ahead as usize);
            }
            let block = self.owners[position as usize];
            let is_live = block != NO_BLOCK
                && self.blocks[block as usize].position == position
                && self.blocks[block as usize].slot == CLEAN;
            if is_live {
                let state = &mut self.blocks[block as usize];
                self.segments.on_death(victim, state.heat);
                let content = S::Block::default();
                state.slot = self.dirty.push(Dirty { block, origin: Origin::Cleaning, content });
                run += 1;
            } else if run > 0 {
                self.read_run(victim, position, std::mem::take(&mut run))?;
            }
        }
        if run > 0 {
            self.read_run(victim, to, run)?;
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

    /// Reads what the last `count` dirty blocks hold: positions of the victim that end before `end`. Where that fails they are
    /// clean again, and live where they were.
    #[inline(always)]
    fn read_run(&mut self, victim: u32, end: u32, count: u32) -> Result<(), DeviceError> {
        self.counters.cleaning_reads += u64::from(count);
        let contents = &mut self.contents[..count as usize];
        match self.store.read(end - count, contents) {
            Ok(()) => self.dirty.fill_last(contents),
            Err(error) => {
                self.take_back(victim, count);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The last `count` dirty blocks, which come from `victim`, could not be read.
    #[cold]
    fn take_back(&mut self, victim: u32, count: u32) {
        for _ in 0..count {
            let state = &mut self.blocks[self.dirty.pop() as usize];
            state.slot = CLEAN;
            self.segments.on_rescue(victim, state.heat);
        }
    }
}
