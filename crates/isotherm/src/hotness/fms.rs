//! FMS: the last write time of every page.
//!
//! Chiang, Lee and Chang, "Managing Flash Memory in Personal Communication Devices" (the Flash Memory Server), ISCE
//! 1997, as section II-C of the MBF paper restates it: every page keeps its last access time, and a page that is
//! written again soon is hot.
//!
//! A page is in the hottest class if its previous write lies at most `window` page writes back, in the next class if at
//! most `window * ratio`, and so on; the coldest class takes the rest and pages never written before.
//!
//! Departures: the restatement gives neither the unit of time nor the bound; time is host page writes, and `window`,
//! `classes` and `ratio` are parameters. A verdict without a write (for a page that the collector copies) takes the time
//! since the last write as a lower bound of the interval to come.
//!
//! Complexity: O(classes) per write; 4 bytes for each logical page. The clock has 32 bits: a page idle for 2^32 writes
//! looks young for `window` writes.

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::memory;
use crate::registry::{Parameter, Parameters, SpecError};

/// Never written.
const NEVER: u32 = 0;

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("window", 1..=1 << 31, "4096")
        .help("longest rewrite interval of the hottest class, in page writes"),
    Parameter::integer("classes", 2..=16, "2").help("temperatures"),
    Parameter::integer("ratio", 2..=1024, "4").help("each colder class reaches this much further"),
];

/// Last write times.
#[derive(Clone, Debug)]
pub struct Fms {
    /// Time of each page's last write, or [`NEVER`].
    last_write: Vec<u32>,
    /// Index of the latest write.
    now: u32,
    /// Longest intervals of the classes, hottest first, without the coldest.
    intervals: Box<[u32]>,
}

impl Fms {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn build(parameters: &Parameters<'_>, context: &HotnessContext) -> Result<Self, SpecError> {
        let window = parameters.integer("window");
        let classes = parameters.integer("classes");
        let ratio = parameters.integer("ratio");
        Ok(Self {
            last_write: memory::table(context.logical_pages as usize, NEVER),
            now: NEVER,
            intervals: super::class_bounds(window, ratio, classes),
        })
    }

    #[inline(always)]
    fn judge(&self, last_write: u32) -> Temperature {
        if last_write == NEVER {
            return Temperature::COLD;
        }
        super::class_of(self.now.wrapping_sub(last_write), &self.intervals)
    }
}

impl Hotness for Fms {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        self.now = self.now.wrapping_add(1).max(1);
        let last_write = std::mem::replace(&mut self.last_write[lpn.0 as usize], self.now);
        self.judge(last_write)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        self.judge(self.last_write[lpn.0 as usize])
    }

    fn temperatures(&self) -> u8 {
        self.intervals.len() as u8 + 1
    }

    fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.last_write) as u64
    }
}
