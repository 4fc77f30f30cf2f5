//! Hot data identification: which logical pages are hot, judged write by write.
//!
//! A scheme holds no NAND and no map: it sees the stream of page writes and says how hot each page is. Each scheme is one
//! file and one line of its registry table.

pub mod kmeans;

use crate::address::Lpn;

/// How hot a page is: 0 is the coldest. A scheme with two classes says 0 (cold) and 1 (hot).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Temperature(pub u8);

/// A scheme that judges pages by their writes.
///
/// # Contract
/// - [`observe`](Hotness::observe) is called once for each host page write, in order; its verdict is about that write.
/// - [`peek`](Hotness::peek) changes nothing.
/// - Verdicts lie in `0..temperatures()`.
/// - [`memory_bytes`](Hotness::memory_bytes) is what the scheme would take in firmware, and what it takes here.
pub trait Hotness {
    /// Records a host write of `lpn` and judges it.
    fn observe(&mut self, lpn: Lpn) -> Temperature;
    /// Judges `lpn` without recording a write.
    fn peek(&self, lpn: Lpn) -> Temperature;
    /// Hears that the collector copied `lpn` (schemes that demote on copying use it).
    fn on_gc_copy(&mut self, _lpn: Lpn) {}
    /// Number of classes that verdicts are drawn from, at least 2.
    fn temperatures(&self) -> u8;
    /// Bytes of state.
    fn memory_bytes(&self) -> u64;
}
