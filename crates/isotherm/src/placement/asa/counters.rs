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
        /// Clusterings that were held against those of all pages.
        unreported audited_clusterings: u64,
        /// Sum over these of what [`AsaCounters::clustering_error`] is the mean of.
        unreported excess_cost_sum: f64,
        /// How much larger the sum of squared distances of all pages is to the centroids of a sample than to those of all pages,
        /// on the mean of the clusterings; absent unless they are audited.
        fn clustering_error(&self) -> Option<f64> {
            (self.audited_clusterings > 0).then(|| self.excess_cost_sum / self.audited_clusterings as f64)
        }
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
