//! Cleaning: which segment, and what becomes of it.

use super::{Cleaner, Machine};
use crate::options::TrimPoint;

impl Machine {
    /// Whether so few segments are free that cleaning is due.
    pub fn is_cleaning_due(&self) -> bool {
        self.segments.freed() <= self.options.clean_below
    }

    /// Cleans a few segments if few are free. Returns how many.
    ///
    /// # Errors
    /// The mechanism's.
    pub fn clean_if_needed<M: Cleaner>(&mut self, mechanism: &mut M) -> Result<u32, M::Error> {
        if !self.is_cleaning_due() {
            return Ok(0);
        }
        for cleaned in 0..self.options.clean_segments {
            if !self.clean_one(mechanism)? {
                return Ok(cleaned);
            }
        }
        Ok(self.options.clean_segments)
    }

    /// Cleans a segment, however many are free. Returns false if none is worth it.
    ///
    /// # Errors
    /// The mechanism's.
    pub fn clean_one<M: Cleaner>(&mut self, mechanism: &mut M) -> Result<bool, M::Error> {
        let Some(victim) = self.pick_victim(u32::MAX, |_| true) else { return Ok(false) };
        mechanism.take_live(self, victim)?;
        if self.free_victim(victim) {
            self.counters.segments_trimmed += 1;
            mechanism.trim(victim)?;
        }
        Ok(true)
    }

    /// The segment that is worth cleaning most among those that may be, which counts as cleaned from here on. The policy chooses
    /// among the `emptiest` segments with the fewest live blocks, and those that hold as many as the last of these.
    pub fn pick_victim(&mut self, emptiest: u32, may_be: impl Fn(u32) -> bool) -> Option<u32> {
        let live = self.segments.live_of_emptiest(emptiest, &may_be);
        let may_be = |segment: u32| self.segments.live(segment) <= live && may_be(segment);
        let victim = self.segments.pick(self.options.victim, self.now, self.ticks(), may_be)?;
        self.counters.count_victim(self.segments.utilisation(victim));
        Some(victim)
    }

    /// The live blocks of a segment wait to be written elsewhere: it is queued for writing. Returns whether it is to be trimmed
    /// now; [`Machine::on_checkpoint`] names it later if not.
    pub fn free_victim(&mut self, victim: u32) -> bool {
        self.segments.free(victim);
        match self.options.trim {
            TrimPoint::Reusable => self.segments.is_reusable(victim),
            TrimPoint::AtFree => true,
            TrimPoint::Never => false,
        }
    }
}
