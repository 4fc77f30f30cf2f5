//! DAM: the direct address method, the baseline of the MHF paper.
//!
//! Hsieh, Kuo and Chang, ACM Transactions on Storage 2(1), 2006, as sections II-C and III-B of the MBF paper restate it:
//! unlimited memory, one counter for each logical page, all halved every `decay` writes; hot from `threshold` on.
//!
//! Halving every counter at once would cost O(logical pages). Here each counter remembers the number of decays it has
//! seen and is shifted by those that it missed when it is next looked at, which gives the same values: halving twice
//! and rounding down each time equals one shift by two.
//!
//! Departures: none. Complexity: O(1) per write and per decay; 8 bytes for each logical page.

use super::{Hotness, HotnessContext, Temperature};
use crate::address::Lpn;
use crate::memory;
use crate::registry::{Parameter, Parameters, SpecError};

/// Longest decay interval: counters stay below twice that, which fits the 24 bits above the number of decays.
const DECAY_MAX: u64 = 1 << 22;
/// Bits of the number of decays seen: with one decay at each write they last 2^40 writes.
const DECAYS_BITS: u32 = 40;
const DECAYS_MASK: u64 = (1 << DECAYS_BITS) - 1;

const _: () = assert!(2 * DECAY_MAX < 1 << (64 - DECAYS_BITS));

/// What can be set, and the values of the MBF paper's Table I.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("decay", 1..=DECAY_MAX, "4096").help("page writes between two halvings"),
    Parameter::integer("threshold", 1..=2 * DECAY_MAX - 1, "4").help("a page is hot from this counter value on"),
];

/// The direct address method.
#[derive(Clone, Debug)]
pub struct Dam {
    /// Of each logical page: its counter above, the number of decays that the counter has seen below.
    pages: Vec<u64>,
    /// Decays so far.
    decays: u64,
    threshold: u64,
    decay: u32,
    /// Writes until the next decay, 1..=decay.
    until_decay: u32,
}

impl Dam {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range; a threshold that a page could not reach even if nothing else were written.
    pub fn build(parameters: &Parameters<'_>, context: &HotnessContext) -> Result<Self, SpecError> {
        let decay = parameters.integer("decay");
        let threshold = parameters.integer("threshold");
        if threshold >= 2 * decay {
            return Err(SpecError::new(
                "dam:threshold",
                format!("{threshold} is out of reach: a counter halved every {decay} writes stays below {}", 2 * decay),
                format!("allowed: 1..={}", 2 * decay - 1),
            ));
        }
        Ok(Self {
            pages: memory::zeroed_table(context.logical_pages as usize),
            decays: 0,
            threshold,
            decay: decay as u32,
            until_decay: decay as u32,
        })
    }

    /// Counter of `lpn` as of now.
    #[inline(always)]
    pub fn count(&self, lpn: Lpn) -> u64 {
        let page = self.pages[lpn.0 as usize];
        let missed = self.decays - (page & DECAYS_MASK);
        (page >> DECAYS_BITS).checked_shr(missed.min(64) as u32).unwrap_or(0)
    }
}

impl Hotness for Dam {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        let count = self.count(lpn) + 1;
        self.pages[lpn.0 as usize] = count << DECAYS_BITS | self.decays;
        self.until_decay -= 1;
        if self.until_decay == 0 {
            self.decay();
        }
        Temperature::hot_if(count >= self.threshold)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        Temperature::hot_if(self.count(lpn) >= self.threshold)
    }

    /// Halves all counters (each of them when it is next looked at).
    fn decay(&mut self) {
        self.decays += 1;
        self.until_decay = self.decay;
    }

    fn decay_interval(&self) -> Option<u64> {
        Some(u64::from(self.decay))
    }

    fn temperatures(&self) -> u8 {
        2
    }

    fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.pages) as u64
    }
}
