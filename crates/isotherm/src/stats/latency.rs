//! Latency of requests.

use hdrhistogram::Histogram;

/// Latency histograms of requests, by operation, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Reads.
    pub read: Histogram<u64>,
    /// Reads that found nothing and took no time: they are not among [`read`](Self::read).
    pub read_unmapped: u64,
    /// Writes.
    pub write: Histogram<u64>,
    /// Trims.
    pub trim: Histogram<u64>,
    /// Flushes.
    pub flush: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        // Three significant digits up to 2^42 ns (73 minutes); longer latencies count as that. A range that grew by itself
        // would allocate in the middle of a run.
        let empty = || Histogram::new_with_bounds(1, 1 << 42, 3).expect("bounds and precision are valid");
        Self { read: empty(), read_unmapped: 0, write: empty(), trim: empty(), flush: empty() }
    }
}
