//! Oracle: knows when each page is written next.
//!
//! Not a published scheme but the yardstick for them: a write is hot if its page is rewritten within `window` page
//! writes. It is what every other scheme tries to guess from the past. On a device that hears of trims, a page that is
//! trimmed soon counts as hot too: what matters to a placement is when the page dies.
//!
//! With more than two classes, each colder class reaches `ratio` times further into the future; pages never written
//! again are in the coldest.
//!
//! Complexity: O(classes) per write; 4 bytes for each write of the trace and 4 for each logical page.

use std::sync::Arc;

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::future::{Future, NEVER};
use crate::memory;
use crate::registry::{Parameter, Parameters, SpecError};

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("window", 1..=1 << 31, "4096").help("hottest class: rewritten within so many page writes"),
    Parameter::integer("classes", 2..=16, "2").help("temperatures"),
    Parameter::integer("ratio", 2..=1024, "4").help("each colder class reaches this much further"),
];

/// The scheme that knows.
#[derive(Clone, Debug)]
pub struct Oracle {
    future: Arc<Future>,
    /// Index of each page's next write, of those written already.
    next_of_page: Vec<u32>,
    /// Writes observed so far.
    observed: u32,
    intervals: Box<[u32]>,
}

impl Oracle {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range, or a context without a future.
    pub fn build(parameters: &Parameters<'_>, context: &HotnessContext) -> Result<Self, SpecError> {
        let future = context.future.clone().ok_or_else(|| {
            SpecError::new(
                "oracle",
                "the writes to come are not known here",
                "use it where the whole trace is read first",
            )
        })?;
        let window = parameters.integer("window");
        let classes = parameters.integer("classes");
        let ratio = parameters.integer("ratio");
        Ok(Self {
            future,
            next_of_page: memory::table(context.logical_pages as usize, NEVER),
            observed: 0,
            intervals: super::class_bounds(window, ratio, classes),
        })
    }

    #[inline(always)]
    fn judge(&self, next_write: u32, latest: u32) -> Temperature {
        if next_write == NEVER {
            return Temperature::COLD;
        }
        // A page may be asked for after it was trimmed: nobody will miss it, so it is as hot as can be.
        super::class_of(next_write.saturating_sub(latest), &self.intervals)
    }
}

impl Hotness for Oracle {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        let index = self.observed;
        let next_write = self.future.deaths.get(index as usize).copied().unwrap_or(NEVER);
        self.next_of_page[lpn.0 as usize] = next_write;
        self.observed += 1;
        self.judge(next_write, index)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        self.judge(self.next_of_page[lpn.0 as usize], self.observed.saturating_sub(1))
    }

    fn temperatures(&self) -> u8 {
        self.intervals.len() as u8 + 1
    }

    fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.future.deaths) + size_of_val(&*self.next_of_page)) as u64
    }
}
