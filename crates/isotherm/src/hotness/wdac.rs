//! WDAC: window-based direct address counting, the baseline that the MBF paper takes for ideal.
//!
//! Park and Du, MSST 2011, section III-B. The last `window` page writes count; the newest has weight 2 and each older
//! one `2 / window` less. A page's hot data index is the sum of the weights of its writes in the window.
//!
//! The paper reevaluates every page at each write. Here nothing is: with `n` the index of the latest write and, for a
//! page's writes inside the window, their number `c` and the sum `s` of their indices, the index is
//! `2c - (2 / window)(c n - s)`. Both sides of the comparison with the threshold are multiplied by `window / 2`, so that
//! the verdict is exact integer arithmetic.
//!
//! Departures: none. Complexity: O(1) per write; 8 bytes for each logical page and 4 for each write in the window.

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::memory;
use crate::registry::{Parameter, Parameters, SpecError};

/// Largest window: the sum of ages of that many writes still fits the 40 bits of a page's sum.
const WINDOW_MAX: u64 = 1 << 20;
/// Bits of the sum of indices, which wraps; the count lies above it.
const SUM_BITS: u32 = 40;
const SUM_MASK: u64 = (1 << SUM_BITS) - 1;
/// No write in this place of the window yet.
const EMPTY: u32 = u32::MAX;

// The largest sum of ages is that of a window full of one page, and the largest count is the window.
const _: () = assert!(WINDOW_MAX * WINDOW_MAX / 2 <= SUM_MASK && WINDOW_MAX < 1 << (64 - SUM_BITS));

/// What can be set, and the values of the paper's Table I.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("window", 1..=WINDOW_MAX, "4096").help("page writes in the window (W)"),
    Parameter::real("threshold", f64::MIN_POSITIVE..=(WINDOW_MAX + 1) as f64, "4")
        .help("a page is hot from this hot data index on"),
];

/// Window-based direct address counting.
#[derive(Clone, Debug)]
pub struct Wdac {
    /// Of each logical page, its writes in the window: their number above, the sum of their indices (modulo 2^40) below.
    pages: Vec<u64>,
    /// The writes in the window, a ring.
    window: Box<[u32]>,
    /// Place in the ring of the next write, which is also the oldest write's.
    head: usize,
    /// Index of the latest write (modulo 2^40).
    now: u64,
    /// Hot from this `window * c - (c n - s)` on.
    threshold: u64,
}

impl Wdac {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range; a threshold that even a window full of one page could not reach.
    pub fn build(parameters: &Parameters<'_>, context: &HotnessContext) -> Result<Self, SpecError> {
        let window = parameters.integer("window");
        let reach = (window + 1) as f64;
        let threshold = parameters.real("threshold");
        if threshold > reach {
            return Err(SpecError::new(
                "wdac:threshold",
                format!("{threshold} is out of reach: a window full of one page has index {reach}"),
                format!("allowed: above 0, up to {reach}"),
            ));
        }
        Ok(Self {
            pages: memory::zeroed_table(context.logical_pages as usize),
            window: vec![EMPTY; window as usize].into_boxed_slice(),
            head: 0,
            now: 0,
            threshold: (threshold * window as f64 / 2.0).ceil() as u64,
        })
    }

    /// Hot data index of `lpn` as of the latest write.
    pub fn index(&self, lpn: Lpn) -> f64 {
        self.scaled_index(self.pages[lpn.0 as usize]) as f64 * 2.0 / self.window.len() as f64
    }

    /// `window * c - (c n - s)`: the hot data index in units of `2 / window`.
    #[inline(always)]
    fn scaled_index(&self, page: u64) -> u64 {
        let count = page >> SUM_BITS;
        // Exact although the indices wrap: the sum of ages is below 2^40.
        let ages = count.wrapping_mul(self.now).wrapping_sub(page) & SUM_MASK;
        count * self.window.len() as u64 - ages
    }

    /// Adds `count` times the write `index` to a page; the sum wraps within its own bits.
    #[inline(always)]
    fn with_write(page: u64, index: u64) -> u64 {
        ((page >> SUM_BITS) + 1) << SUM_BITS | (page.wrapping_add(index) & SUM_MASK)
    }

    #[inline(always)]
    fn without_write(page: u64, index: u64) -> u64 {
        ((page >> SUM_BITS) - 1) << SUM_BITS | (page.wrapping_sub(index) & SUM_MASK)
    }
}

impl Hotness for Wdac {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        self.now = (self.now + 1) & SUM_MASK;
        let expired = std::mem::replace(&mut self.window[self.head], lpn.0);
        if expired != EMPTY {
            let page = &mut self.pages[expired as usize];
            *page = Self::without_write(*page, self.now.wrapping_sub(self.window.len() as u64));
        }
        self.head = if self.head + 1 == self.window.len() { 0 } else { self.head + 1 };
        let page = Self::with_write(self.pages[lpn.0 as usize], self.now);
        self.pages[lpn.0 as usize] = page;
        Temperature::hot_if(self.scaled_index(page) >= self.threshold)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        Temperature::hot_if(self.scaled_index(self.pages[lpn.0 as usize]) >= self.threshold)
    }

    fn temperatures(&self) -> u8 {
        2
    }

    fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.pages) + size_of_val(&*self.window)) as u64
    }
}
