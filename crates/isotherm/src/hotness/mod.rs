//! Hot data identification: which logical pages are hot, judged write by write.
//!
//! A scheme holds no NAND and no map: it sees the stream of page writes and says how hot each page is. Each scheme is one
//! file and one line of its registry table, [`SCHEMES`].
//!
//! | scheme | keeps | memory |
//! |---|---|---|
//! | [`mbf`] | which of several Bloom filters hold a page | 1 KiB |
//! | [`mhf`] | small counters under several hash functions | 2 KiB |
//! | [`wdac`] | weighted count in a sliding window (the ideal of the MBF paper) | per page |
//! | [`dam`] | one halving counter for each page (the ideal of the MHF paper) | per page |
//! | [`two_level_lru`] | a hot and a candidate list | per entry |
//! | [`fms`] | last write time of each page | per page |
//! | [`dac`] | a region for each page, climbing and descending | per page |
//! | [`oracle`] | the future | per write |

pub mod dac;
pub mod dam;
pub mod fms;
mod hash;
pub mod heat;
pub mod history;
pub mod lifetime;
pub mod mbf;
pub mod mhf;
pub mod oracle;
pub mod quantise;
mod scheme;
pub mod two_level_lru;
pub mod wdac;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use scheme::{AnyHotness, BuildScheme, HotnessContext, SCHEMES, build_scheme, scheme_needs_future};

pub mod kmeans;

use crate::address::Lpn;

/// How hot a page is: 0 is the coldest. A scheme with two classes says 0 (cold) and 1 (hot).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Temperature(pub u8);

impl Temperature {
    /// The coldest class of every scheme.
    pub const COLD: Self = Self(0);
    /// Hot, of a scheme with two classes.
    pub const HOT: Self = Self(1);

    /// The verdict of a scheme with two classes.
    #[inline(always)]
    pub fn hot_if(hot: bool) -> Self {
        Self(u8::from(hot))
    }

    /// Whether this is in the hotter half of `temperatures` classes: what it means where only hot and cold count.
    #[inline(always)]
    pub fn is_hot(self, temperatures: u8) -> bool {
        2 * u32::from(self.0) >= u32::from(temperatures)
    }
}

/// A scheme that judges pages by their writes.
///
/// # Contract
/// - [`observe`](Hotness::observe) is called once for each host page write, in order; its verdict is about that write.
/// - [`peek`](Hotness::peek) changes nothing.
/// - Verdicts lie in `0..temperatures()`.
/// - A scheme with a [`decay_interval`](Hotness::decay_interval) of `n` ages at the end of every `n`-th write.
/// - [`memory_bytes`](Hotness::memory_bytes) is what the scheme would take in firmware, and what it takes here; a handful
///   of words that depend on nothing but the parameters are not counted.
pub trait Hotness {
    /// Records a host write of `lpn` and judges it.
    fn observe(&mut self, lpn: Lpn) -> Temperature;

    /// Records the host writes of `lpns` in order and puts their verdicts into `verdicts`: one dispatch for a batch.
    ///
    /// # Panics
    /// If the lengths differ.
    fn observe_all(&mut self, lpns: &[Lpn], verdicts: &mut [Temperature]) {
        assert_eq!(lpns.len(), verdicts.len());
        for (verdict, &lpn) in verdicts.iter_mut().zip(lpns) {
            *verdict = self.observe(lpn);
        }
    }

    /// Judges `lpn` without recording a write.
    fn peek(&self, lpn: Lpn) -> Temperature;

    /// Hears that the collector copied `lpn` (schemes that demote on copying use it).
    fn on_gc_copy(&mut self, _lpn: Lpn) {}

    /// Ages everything by one step, ahead of the schedule, which starts anew. Schemes that age continuously do nothing.
    fn decay(&mut self) {}

    /// Page writes between two aging steps; `None` for a scheme that ages continuously or not at all.
    fn decay_interval(&self) -> Option<u64> {
        None
    }

    /// Number of classes that verdicts are drawn from, at least 2.
    fn temperatures(&self) -> u8;

    /// Bytes of state.
    fn memory_bytes(&self) -> u64;
}

/// Longest intervals of the classes of a scheme that judges by time, hottest first, without the coldest: `window`,
/// `window * ratio`, `window * ratio^2` ...
fn class_bounds(window: u64, ratio: u64, classes: u64) -> Box<[u32]> {
    let bounds = std::iter::successors(Some(window), |&bound| Some(bound.saturating_mul(ratio)));
    bounds.take(classes as usize - 1).map(|bound| u32::try_from(bound).unwrap_or(u32::MAX)).collect()
}

/// The class of an interval among `bounds`, as a temperature: `bounds.len()` is the hottest.
#[inline(always)]
fn class_of(interval: u32, bounds: &[u32]) -> Temperature {
    let too_short = bounds.iter().take_while(|&&bound| interval > bound).count();
    Temperature((bounds.len() - too_short) as u8)
}
