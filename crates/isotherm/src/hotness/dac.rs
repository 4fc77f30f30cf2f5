//! DAC: dynamic data clustering, a ladder of regions.
//!
//! Chiang, Lee and Chang, "Using Data Clustering to Improve Cleaning Performance for Flash Memory", Software: Practice
//! and Experience 29(3), 1999. A page that is written again moves one region hotter; a page that the collector copies
//! moves one region colder. `promote_within` and `demote_after` add bounds on the time since the page's last write, so
//! that only a page written again soon climbs and only a page left alone for long descends; both are off by default.
//!
//! Departures: time is host page writes. Where nothing is ever copied (a measurement of verdicts alone, without a
//! device) pages only climb, so every page written often enough ends up in the hottest region.
//!
//! Complexity: O(1) per write and per copy; 1 byte for each logical page, and 4 more when a time bound is in force.

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::memory;
use crate::registry::{Kind, Parameter, Parameters, SpecError};

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("regions", 2..=64, "4").help("regions, that is temperatures"),
    Parameter::any("promote_within", &[Kind::integer(1..=u32::MAX as u64), Kind::word(&["inf"])], "inf")
        .help("climb only if the previous write lies at most so many page writes back"),
    Parameter::integer("demote_after", 0..=u32::MAX as u64, "0")
        .help("descend only if the last write lies at least so many page writes back"),
];

/// Dynamic data clustering.
#[derive(Clone, Debug)]
pub struct Dac {
    /// Region of each page, one more than the temperature; 0 is a page never written.
    regions: Vec<u8>,
    /// Time of each page's last write; empty when no bound asks for it.
    last_write: Vec<u32>,
    /// Index of the latest write.
    now: u32,
    hottest: u8,
    promote_within: u32,
    demote_after: u32,
}

impl Dac {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn build(parameters: &Parameters<'_>, context: &HotnessContext) -> Result<Self, SpecError> {
        let promote_within = match parameters.text("promote_within") {
            "inf" => u32::MAX,
            _ => parameters.integer("promote_within") as u32,
        };
        let demote_after = parameters.integer("demote_after") as u32;
        let timed = if promote_within == u32::MAX && demote_after == 0 { 0 } else { context.logical_pages };
        Ok(Self {
            regions: memory::zeroed_table(context.logical_pages as usize),
            last_write: memory::zeroed_table(timed as usize),
            now: 0,
            hottest: parameters.integer("regions") as u8,
            promote_within,
            demote_after,
        })
    }

    /// Page writes since the last write of `lpn`; nothing is known of it without a time bound.
    #[inline(always)]
    fn idle(&self, lpn: Lpn) -> Option<u32> {
        self.last_write.get(lpn.0 as usize).map(|&last| self.now.wrapping_sub(last))
    }
}

impl Hotness for Dac {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        self.now = self.now.wrapping_add(1);
        let soon = self.idle(lpn).is_none_or(|idle| idle <= self.promote_within);
        if let Some(last_write) = self.last_write.get_mut(lpn.0 as usize) {
            *last_write = self.now;
        }
        let region = &mut self.regions[lpn.0 as usize];
        if *region == 0 || soon {
            *region = (*region + 1).min(self.hottest);
        }
        Temperature(*region - 1)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        Temperature(self.regions[lpn.0 as usize].saturating_sub(1))
    }

    #[inline]
    fn on_gc_copy(&mut self, lpn: Lpn) {
        let long_ago = self.idle(lpn).is_none_or(|idle| idle >= self.demote_after);
        let region = &mut self.regions[lpn.0 as usize];
        if *region > 1 && long_ago {
            *region -= 1;
        }
    }

    fn temperatures(&self) -> u8 {
        self.hottest
    }

    fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.regions) + size_of_val(&*self.last_write)) as u64
    }
}
