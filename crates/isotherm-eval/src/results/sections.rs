//! Sections of a run that only some devices have.

use serde::{Deserialize, Serialize};

/// The cached map of a demand-paged FTL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MappingSection {
    /// Look-ups that the cache answered.
    pub hits: u64,
    /// Look-ups that it did not.
    pub misses: u64,
    /// Translation pages read.
    pub translation_reads: u64,
    /// Translation pages programmed.
    pub translation_programs: u64,
    /// Dirty entries that one rewrite of a translation page carried, on average.
    pub entries_per_writeback_mean: Option<f64>,
}

/// Clustering of recency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AsaSection {
    /// Times that the samples were clustered.
    pub clusterings: u64,
    /// Flash reads made for samples.
    pub sampling_reads: u64,
    /// Centroids of the last clustering, hottest first, in host page writes.
    pub centroids: Vec<f64>,
    /// Share of writes that the last clustering predicted wrongly.
    pub irr_miss_ratio: Option<f64>,
}

/// The write buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferSection {
    /// Share of page reads that the buffer answered.
    pub read_hit_ratio: Option<f64>,
    /// Share of page writes that met their page in the buffer.
    pub write_hit_ratio: Option<f64>,
    /// Pages written out to flash.
    pub flushed_pages: u64,
}

/// The split of DRAM between mapping and buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSection {
    /// Share of the mapping, on average over host pages.
    pub mapping_share_mean: f64,
    /// Share of the mapping at the end.
    pub mapping_share_last: f64,
}

/// Merges of a hybrid map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergesSection {
    /// Switch merges.
    pub switch: u64,
    /// Partial merges.
    pub partial: u64,
    /// Full merges.
    pub full: u64,
}

/// The log above the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogSection {
    /// Pages that the log wrote for each page that the host wrote.
    pub write_amplification: Option<f64>,
    /// Write cost as defined by the SFS paper.
    pub write_cost: Option<f64>,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Segments by the share of live blocks, in equal buckets from 0 to 1.
    pub segment_utilisation_histogram: Vec<u64>,
    /// Groups of hotness.
    pub groups: u32,
}
