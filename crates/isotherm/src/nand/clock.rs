//! Time, apart from the medium: what a clock beside the flash array tells.

use crate::stats::{FlashTime, MediumCounters};

/// The clock of a medium. Operations move it where they happen (see [`super::timing`]); requests are marked by whoever serves
/// them.
pub trait Clock {
    /// A request of the host begins, having arrived at `arrival_ns` on the trace's clock.
    fn begin_request(&mut self, arrival_ns: u64);
    /// The request is done. Says how long it took; none without time.
    fn end_request(&mut self) -> Option<u64>;
    /// How long the request waited at most for a plane that worked for others; 0 where operations do not queue.
    fn waited_ns(&self) -> u64;
    /// Time between the end of all work and `arrival_ns`; 0 where operations do not queue.
    fn idle_before(&self, arrival_ns: u64) -> u64;
    /// Time that one background collection of `valid` pages would take.
    fn collection_ns(&self, valid: u32) -> u64;
    /// When the array will have done all that it was asked for, on the clock of arrivals; none where operations do not queue.
    fn busy_until_ns(&self) -> Option<u64>;
    /// Time of the array for what it did: counts times latencies.
    fn time(&self, counters: &MediumCounters) -> FlashTime;
}

/// No time at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClock;

impl Clock for NoClock {
    #[inline(always)]
    fn begin_request(&mut self, _: u64) {}
    #[inline(always)]
    fn end_request(&mut self) -> Option<u64> {
        None
    }
    fn waited_ns(&self) -> u64 {
        0
    }
    #[inline(always)]
    fn idle_before(&self, _: u64) -> u64 {
        0
    }
    fn collection_ns(&self, _: u32) -> u64 {
        0
    }
    fn busy_until_ns(&self) -> Option<u64> {
        None
    }
    fn time(&self, _: &MediumCounters) -> FlashTime {
        FlashTime::default()
    }
}
