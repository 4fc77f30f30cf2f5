//! What the collector did.

/// Buckets of the histogram of victims' invalid share: bucket `i` of 0..=20 holds shares in [i/20, (i+1)/20).
pub const VICTIM_BUCKETS: usize = 21;

crate::counters! {
    /// What the collector did.
    #[derive(Copy, Eq)]
    pub struct CollectorCounters {
        /// Victims collected (foreground and background, wear levelling aside).
        collections: u64,
        /// Of these, in idle time.
        background_collections: u64,
        /// Invalid pages found in victims.
        victim_invalid_pages: u64,
        /// Pages of all victims, valid or not.
        victim_pages: u64,
        /// Victims by their invalid share.
        victim_histogram: [u64; VICTIM_BUCKETS],
        /// Pages that went to another stream than the placement asked for, because no free block was left for it.
        displaced_pages: u64,
        /// Pages invalidated since the device was built, by overwrites, trims and moves.
        invalidated_pages: u64,
        /// Blocks retired after a program or erase failure or at the end of their endurance.
        retired_blocks: u64,
    }
}
