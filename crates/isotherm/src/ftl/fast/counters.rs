//! What FAST counts.

crate::counters! {
    /// Merges of a hybrid map. Pages are those programmed by merges, which write amplification counts.
    #[derive(Copy, Eq)]
    pub struct MergeCounters: MergesResults in "merges" {
        /// Switch merges: a complete sequential log block became the data block. They program nothing.
        switch: u64,
        /// Partial merges: the rest was copied behind a sequential log block, which became the data block.
        partial: u64,
        /// Full merges: a logical block was gathered from everywhere into a new data block.
        full: u64,
        /// Of the full merges, those made to reclaim a random-write log block; the others emptied the sequential one.
        unreported full_of_reclaims: u64,
        /// Pages programmed by switch merges: always 0.
        unreported switch_pages: u64,
        /// Pages programmed by partial merges, filler pages included.
        unreported partial_pages: u64,
        /// Pages programmed by full merges, filler pages included.
        unreported full_pages: u64,
        /// Of the pages above, those that hold nothing and only keep the order that NAND demands.
        unreported filler_pages: u64,
        /// Host writes that made a page of a random-write log block invalid, so that no merge has to move it.
        unreported log_hits: u64,
    }
}
