//! What a demand-paged map counts.

use crate::stats::share;

crate::counters! {
    /// The cached map of a demand-paged FTL: its look-ups, and the flash operations that they and collections caused.
    #[derive(Copy, Eq)]
    pub struct MappingCounters: MappingResults in "mapping" {
        /// Look-ups that the cache answered.
        hits: u64,
        /// Look-ups that it did not.
        misses: u64,
        /// Translation pages read because of a miss.
        unreported fetches: u64,
        /// Translation pages read to write an evicted entry back.
        unreported writeback_reads: u64,
        /// Translation pages written because a dirty entry was evicted.
        unreported writebacks: u64,
        /// Dirty entries that these carried.
        unreported entries_written_back: u64,
        /// Translation pages read to update entries of pages that a collection moved or a trim took.
        unreported update_reads: u64,
        /// Translation pages written for the same.
        unreported updates: u64,
        /// Translation pages written when the device was formatted, or repaired after a loss of power.
        unreported rewrites: u64,
        /// Translation pages read.
        fn translation_reads(&self) -> u64 {
            self.fetches + self.writeback_reads + self.update_reads
        }
        /// Translation pages programmed; copies by the collector are counted by their cause alone.
        fn translation_programs(&self) -> u64 {
            self.writebacks + self.updates + self.rewrites
        }
        /// Dirty entries that one eviction's write carried, on average.
        fn entries_per_writeback_mean(&self) -> Option<f64> {
            share(self.entries_written_back, self.writebacks)
        }
    }
}
