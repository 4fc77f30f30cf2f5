//! Oracle: knows when each page is written next.
//!
//! Not a published scheme but the yardstick for them: a write is hot if its page is rewritten within `window` page
//! writes. It is what every other scheme tries to guess from the past.
//!
//! With more than two classes, each colder class reaches `ratio` times further into the future; pages never written
//! again are in the coldest.
//!
//! Complexity: O(classes) per write; 4 bytes for each write of the trace and 4 for each logical page.

use std::sync::Arc;

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::registry::{Parameter, Parameters, SpecError};

/// Never written (again).
const NEVER: u32 = u32::MAX;

/// What can be set.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "window",
        default: "4096",
        allowed: "1..=2147483648",
        help: "hottest class: rewritten within so many page writes",
    },
    Parameter { key: "classes", default: "2", allowed: "2..=16", help: "temperatures" },
    Parameter { key: "ratio", default: "4", allowed: "2..=1024", help: "each colder class reaches this much further" },
];

/// For each page write of a trace, when the same page is written next.
#[derive(Clone, Debug)]
pub struct Future {
    /// Index of the next write of the same page, or [`NEVER`].
    next_write: Box<[u32]>,
}

impl Future {
    /// Reads the future of a whole sequence of page writes within `0..logical_pages`.
    ///
    /// # Panics
    /// If there are 2^32 - 1 writes or more, or a page lies outside.
    pub fn of(writes: &[Lpn], logical_pages: u32) -> Self {
        assert!((writes.len() as u64) < u64::from(NEVER), "the oracle numbers writes with 32 bits");
        let mut next_of_page = vec![NEVER; logical_pages as usize];
        let mut next_write = vec![NEVER; writes.len()].into_boxed_slice();
        for (index, lpn) in writes.iter().enumerate().rev() {
            next_write[index] = std::mem::replace(&mut next_of_page[lpn.0 as usize], index as u32);
        }
        Self { next_write }
    }
}

/// The scheme that knows.
#[derive(Clone, Debug)]
pub struct Oracle {
    future: Arc<Future>,
    /// Index of each page's next write, of those written already.
    next_of_page: Box<[u32]>,
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
        let window = parameters.integer("window", 1..=1 << 31)?;
        let classes = parameters.integer("classes", 2..=16)?;
        let ratio = parameters.integer("ratio", 2..=1024)?;
        Ok(Self {
            future,
            next_of_page: vec![NEVER; context.logical_pages as usize].into_boxed_slice(),
            observed: 0,
            intervals: super::class_bounds(window, ratio, classes),
        })
    }

    #[inline(always)]
    fn judge(&self, next_write: u32, latest: u32) -> Temperature {
        if next_write == NEVER {
            return Temperature::COLD;
        }
        super::class_of(next_write - latest, &self.intervals)
    }
}

impl Hotness for Oracle {
    /// # Panics
    /// If there are more writes than the future had.
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        let index = self.observed;
        let next_write = self.future.next_write[index as usize];
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
        (size_of_val(&*self.future.next_write) + size_of_val(&*self.next_of_page)) as u64
    }
}
