//! What ASA counts.

use crate::stats::share;

crate::counters! {
    /// Clustering of recency.
    pub struct AsaCounters: AsaResults in "asa" {
        /// Times that the samples were clustered.
        clusterings: u64,
        /// Flash reads made for samples.
        sampling_reads: u64,
        /// Pages whose recency was sampled.
        unreported samples: u64,
        /// Centroids of the last clustering, hottest first, in host page writes.
        latest centroids: Vec<f64>,
        /// Writes with a recency before and after.
        unreported judged_writes: u64,
        /// Of these, writes whose new recency fell into another cluster than the old one.
        unreported irr_misses: u64,
        /// Share of writes that the last clustering predicted wrongly.
        fn irr_miss_ratio(&self) -> Option<f64> {
            share(self.irr_misses, self.judged_writes)
        }
    }
}
