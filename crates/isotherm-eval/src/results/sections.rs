//! Sections of a run that only some devices have.

use isotherm_sfs::drive::Drive;
use isotherm_sfs::snapshot::LogSnapshot;
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
    /// Decisions over time; absent for a split that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SplitSeries>,
    /// The ghost mapping's bitmap against an exact ghost; absent where the rule keeps no such audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ghost_audit: Option<GhostAuditSection>,
}

/// A bitmap ghost beside an exact one that hears the same look-ups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GhostAuditSection {
    /// Look-ups that missed the map's cache.
    pub lookups: u64,
    /// Of these, hits of the bitmap.
    pub bitmap_hits: u64,
    /// Of these, hits of the exact ghost.
    pub exact_hits: u64,
    /// Hits of the bitmap where the exact ghost missed.
    pub excess_hits: u64,
    /// Of the excess hits, those on a bit that nobody but the address itself has set: the exact ghost forgot it first. The
    /// others are false.
    pub late_hits: u64,
    /// Excess hits for each look-up that the exact ghost missed.
    pub excess_hit_rate: Option<f64>,
    /// The same without late hits.
    pub false_hit_rate: Option<f64>,
    /// What the bitmap's density predicts: its mean over those look-ups.
    pub false_hit_rate_predicted: Option<f64>,
}

/// Decisions on the split over time, or every 2^n-th of them. All lists are of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitSeries {
    /// Requests since the start of the measured run.
    pub requests: Vec<u64>,
    /// Share of the mapping after the decision.
    pub mapping_share: Vec<f64>,
    /// Nanoseconds of flash time that a byte more of buffer would have saved, as the rule sees it.
    pub cost_benefit_buffer: Vec<f64>,
    /// Nanoseconds of flash time that a byte more of mapping would have saved.
    pub cost_benefit_mapping: Vec<f64>,
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
    /// Blocks that the log wrote for each block of the host that reached it, after the dirty cache.
    pub write_amplification: Option<f64>,
    /// Write cost as defined by the SFS paper: time of writes and of cleaning's reads over that of the host's writes.
    pub write_cost: Option<f64>,
    /// Host bytes that the log could write in a second at that cost, on the drive named in the specification.
    pub write_throughput_bytes_per_second: Option<f64>,
    /// Host block writes that reached the log.
    pub host_blocks_logged: u64,
    /// Host block writes that the dirty cache absorbed.
    pub host_blocks_absorbed: u64,
    /// Blocks moved by cleaning.
    pub blocks_cleaned: u64,
    /// Blocks of summaries and checkpoints.
    pub metadata_blocks: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Mean utilisation of cleaned segments.
    pub victim_utilisation_mean: Option<f64>,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Segments by the share of live blocks, in equal buckets from 0 to 1.
    pub segment_utilisation_histogram: Vec<u64>,
    /// Groups of hotness.
    pub groups: u32,
    /// Centre of hotness of each group, coldest first: writes of a block per host block write.
    pub group_centres: Vec<f64>,
    /// Blocks that each group wrote in whole segments, coldest first.
    pub group_blocks: Vec<u64>,
}

impl LogSection {
    /// What a log counted from `start` to `end`, on a drive.
    pub fn between(start: &LogSnapshot, end: &LogSnapshot, drive: &Drive) -> Self {
        let counters = end.counters.since(&start.counters);
        let real = |value: f64| Some(value).filter(|v| v.is_finite());
        let write_cost = real(counters.write_cost(drive.read_cost));
        Self {
            write_amplification: real(counters.write_amplification()),
            write_cost,
            write_throughput_bytes_per_second: write_cost.map(|cost| drive.log_throughput_bytes_per_second(cost)),
            host_blocks_logged: counters.logged_blocks,
            host_blocks_absorbed: counters.absorbed_blocks,
            blocks_cleaned: counters.cleaned_blocks,
            metadata_blocks: counters.summary_blocks + counters.checkpoint_blocks,
            checkpoints: counters.checkpoints,
            victim_utilisation_mean: real(counters.victim_utilisation / counters.segments_cleaned as f64),
            segments_cleaned: counters.segments_cleaned,
            segment_utilisation_histogram: end.utilisation_histogram.to_vec(),
            groups: counters.groups.len() as u32,
            group_centres: end.centres.clone(),
            group_blocks: counters.groups.iter().map(|group| group.blocks).collect(),
        }
    }
}
