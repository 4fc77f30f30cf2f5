//! What a log counted.

use crate::drive::Drive;
use isotherm::stats::{Counter, Section, SectionEntry, Snapshot};

/// Buckets of the histograms of utilisation: bucket `i` of 0..=20 holds `[i/20, (i+1)/20)`.
pub const UTILISATION_BUCKETS: usize = 21;

/// The bucket of a utilisation from 0 to 1.
pub fn utilisation_bucket(utilisation: f64) -> usize {
    ((utilisation * (UTILISATION_BUCKETS - 1) as f64) as usize).min(UTILISATION_BUCKETS - 1)
}

/// Buckets of lifetimes: bucket `i` holds `[2^i, 2^(i+1))` host block writes, the last one all that is longer.
pub const LIFETIME_BUCKETS: usize = 32;

isotherm::counters! {
    /// What one group wrote, and what became of it.
    #[derive(Copy, Eq)]
    pub struct GroupCounters {
        /// Whole segments.
        segments: u64,
        /// Blocks in them, guarded blocks included.
        blocks: u64,
        /// Of these, blocks whose segment was cleaned.
        cleaned_blocks: u64,
        /// Blocks in them that the host has written again or trimmed since, by the time that took.
        lifetimes: [u64; LIFETIME_BUCKETS],
    }
}

impl GroupCounters {
    /// A block was written again or trimmed, `lifetime` host block writes after its segment was written.
    #[inline(always)]
    pub(super) fn count_death(&mut self, lifetime: u64) {
        self.lifetimes[(lifetime.max(1).ilog2() as usize).min(LIFETIME_BUCKETS - 1)] += 1;
    }
}

isotherm::counters! {
    /// Counters of a log, since it was built.
    pub struct LogCounters {
        /// Block writes of the host.
        host_blocks: u64,
        /// Of these, absorbed: the block's last write was still dirty.
        absorbed_blocks: u64,
        /// Blocks written to the log because the host had written them.
        logged_blocks: u64,
        /// Blocks written to the log because their segment was cleaned.
        cleaned_blocks: u64,
        /// Blocks written ahead of their group, because the segment that they come from is reused next.
        guarded_blocks: u64,
        /// Segment summaries.
        summary_blocks: u64,
        /// Blocks of checkpoints.
        checkpoint_blocks: u64,
        /// Checkpoints.
        checkpoints: u64,
        /// Syncs.
        syncs: u64,
        /// Segments begun.
        segments_written: u64,
        /// Writes of less than a segment.
        partial_writes: u64,
        /// Segments cleaned.
        segments_cleaned: u64,
        /// Segments trimmed.
        segments_trimmed: u64,
        /// Blocks read by the cleaner.
        cleaning_reads: u64,
        /// Reads of the host that the dirty cache served.
        reads_from_cache: u64,
        /// Sum of the utilisations of cleaned segments.
        victim_utilisation: f64,
        /// Cleaned segments by utilisation.
        victim_histogram: [u64; UTILISATION_BUCKETS],
        /// By group, coldest first.
        groups: Vec<GroupCounters>,
    }
}

impl LogCounters {
    /// Zeros for `groups` groups.
    pub fn new(groups: usize) -> Self {
        Self { groups: vec![GroupCounters::default(); groups], ..Self::default() }
    }

    pub(super) fn count_victim(&mut self, utilisation: f64) {
        self.segments_cleaned += 1;
        self.victim_utilisation += utilisation;
        self.victim_histogram[utilisation_bucket(utilisation)] += 1;
    }

    /// How much of the variance of the blocks' lifetimes their groups explain, lifetimes measured by their binary logarithm:
    /// 1 if all blocks of a group live equally long, 0 if the groups do not differ; NaN before two blocks have died.
    pub fn lifetime_explained(&self) -> f64 {
        // Sums over blocks of 1, of the logarithm and of its square: of one group, and of all.
        let sums = |lifetimes: &[u64; LIFETIME_BUCKETS]| {
            (0..).zip(lifetimes).fold([0.0; 3], |[n, sum, squares], (log2, count)| {
                let (log2, count) = (f64::from(log2), *count as f64);
                [n + count, sum + log2 * count, squares + log2 * log2 * count]
            })
        };
        let groups: Vec<[f64; 3]> = self.groups.iter().map(|group| sums(&group.lifetimes)).collect();
        let [n, sum, squares] = groups.iter().fold([0.0; 3], |all, group| [0, 1, 2].map(|i| all[i] + group[i]));
        let total = squares - sum * sum / n;
        let within: f64 = groups.iter().filter(|g| g[0] > 0.0).map(|[n, sum, squares]| squares - sum * sum / n).sum();
        1.0 - within / total
    }

    /// All blocks written to the device below.
    pub fn written_blocks(&self) -> u64 {
        self.logged_blocks + self.cleaned_blocks + self.summary_blocks + self.checkpoint_blocks
    }

    /// Blocks written below for each block of the host that reached the log; NaN before the first.
    pub fn write_amplification(&self) -> f64 {
        self.written_blocks() as f64 / self.logged_blocks as f64
    }

    /// Time of all writes and of cleaning's reads over the time of the host's writes, where a block read at random takes
    /// `read_cost` times as long as a block written in sequence.
    pub fn write_cost(&self, read_cost: f64) -> f64 {
        (self.written_blocks() as f64 + read_cost * self.cleaned_blocks as f64) / self.logged_blocks as f64
    }
}

/// A log and the device below it, at one time.
#[derive(Clone, Debug)]
pub struct LogSnapshot {
    /// Counters since the log was built.
    pub counters: LogCounters,
    /// Centre of hotness of each group, coldest first; empty before the first segment write.
    pub centres: Vec<f64>,
    /// Written segments by utilisation now.
    pub utilisation_histogram: [u64; UTILISATION_BUCKETS],
    /// Segments.
    pub segments: u32,
    /// Blocks of data in a segment.
    pub payload_blocks: u32,
    /// The drive profile used to compute write cost and throughput.
    pub drive: Drive,
    /// Dirty blocks now.
    pub dirty_blocks: u64,
    /// The device below, as it sees the log; `None` if there is none.
    pub below: Option<Snapshot>,
}

impl LogSnapshot {
    /// Pages programmed by the device below for each block of the host that reached the log. Without a device below it is the
    /// log's own write amplification.
    pub fn write_amplification_end_to_end(&self) -> f64 {
        let log = self.counters.write_amplification();
        self.below.as_ref().map_or(log, |below| log * below.write_amplification())
    }
}

impl Counter for LogSnapshot {
    fn since(&self, earlier: &Self) -> Self {
        Self { counters: self.counters.since(&earlier.counters), ..self.clone() }
    }
    fn plus(&self, later: &Self) -> Self {
        Self { counters: self.counters.plus(&later.counters), ..later.clone() }
    }
}

impl Section for LogSnapshot {
    const NAME: &'static str = "log";
    type Results = LogResults;

    fn results(&self) -> LogResults {
        let counters = &self.counters;
        let real = |value: f64| Some(value).filter(|v| v.is_finite());
        let write_cost = real(counters.write_cost(self.drive.read_cost));
        LogResults {
            write_amplification: real(counters.write_amplification()),
            write_cost,
            write_throughput_bytes_per_second: write_cost.map(|cost| self.drive.log_throughput_bytes_per_second(cost)),
            application_throughput_bytes_per_second: write_cost.map(|cost| {
                let absorbed = counters.absorbed_blocks as f64 / counters.logged_blocks as f64;
                self.drive.log_throughput_bytes_per_second(cost) * (1.0 + absorbed)
            }),
            host_blocks_logged: counters.logged_blocks,
            host_blocks_absorbed: counters.absorbed_blocks,
            blocks_cleaned: counters.cleaned_blocks,
            metadata_blocks: counters.summary_blocks + counters.checkpoint_blocks,
            checkpoints: counters.checkpoints,
            victim_utilisation_mean: real(counters.victim_utilisation / counters.segments_cleaned as f64),
            segments_cleaned: counters.segments_cleaned,
            segment_utilisation_histogram: self.utilisation_histogram.to_vec(),
            groups: counters.groups.len() as u64,
            group_centres: self.centres.clone(),
            group_blocks: counters.groups.iter().map(|group| group.blocks).collect(),
            group_blocks_cleaned: counters.groups.iter().map(|group| group.cleaned_blocks).collect(),
            group_lifetimes: counters.groups.iter().map(|group| group.lifetimes.to_vec()).collect(),
            lifetime_explained: real(counters.lifetime_explained()),
        }
    }
}

isotherm::results! {
    /// The log above the device.
    pub struct LogResults {
        /// Blocks that the log wrote for each block of the host that reached it, after the dirty cache.
        write_amplification: Option<f64>,
        /// Write cost as defined by the SFS paper: time of writes and of cleaning's reads over that of the host's writes.
        write_cost: Option<f64>,
        /// Host bytes that the log could write in a second at that cost, on the drive named in the specification.
        write_throughput_bytes_per_second: Option<f64>,
        /// The same with what the dirty cache absorbed: what an application sees that waits for nothing but the log.
        application_throughput_bytes_per_second: Option<f64>,
        /// Host block writes that reached the log.
        host_blocks_logged: u64,
        /// Host block writes that the dirty cache absorbed.
        host_blocks_absorbed: u64,
        /// Blocks moved by cleaning.
        blocks_cleaned: u64,
        /// Blocks of summaries and checkpoints.
        metadata_blocks: u64,
        /// Checkpoints.
        checkpoints: u64,
        /// Mean utilisation of cleaned segments.
        victim_utilisation_mean: Option<f64>,
        /// Segments cleaned.
        segments_cleaned: u64,
        /// Segments by the share of live blocks, in equal buckets from 0 to 1.
        segment_utilisation_histogram: Vec<u64>,
        /// Groups of hotness.
        groups: u64,
        /// Centre of hotness of each group, coldest first: writes of a block per host block write.
        group_centres: Vec<f64>,
        /// Blocks that each group wrote in whole segments, coldest first.
        group_blocks: Vec<u64>,
        /// Of these, blocks whose segment was cleaned.
        group_blocks_cleaned: Vec<u64>,
        /// Of each group, the blocks that the host wrote again or trimmed, by how long that took after their segment was written:
        /// number `i` counts from `2^i` host block writes to twice that.
        group_lifetimes: Vec<Vec<u64>>,
        /// Share of the variance of these lifetimes (of their logarithms) that the groups explain: 1 if all blocks of a group
        /// live equally long, 0 if groups do not differ.
        lifetime_explained: Option<f64>,
    }
}

/// The sections that a log adds to those of the core.
pub const SECTIONS: &[SectionEntry] = &[SectionEntry::of::<LogSnapshot>()];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::DRIVES;

    #[test]
    fn groups_explain_lifetimes_that_they_tell_apart() {
        let counters = |deaths: [&[u64]; 2]| {
            let mut counters = LogCounters::new(2);
            for (group, lifetimes) in counters.groups.iter_mut().zip(deaths) {
                lifetimes.iter().for_each(|lifetime| group.count_death(*lifetime));
            }
            counters
        };
        assert_eq!(counters([&[4, 5, 7], &[1000, 600]]).lifetime_explained(), 1.0);
        assert_eq!(counters([&[4, 1000], &[4, 1000]]).lifetime_explained(), 0.0);
        // Logarithms 2, 4 and 4, 6: a variance of 2 in all, of which 1 is within groups.
        assert_eq!(counters([&[4, 16], &[16, 64]]).lifetime_explained(), 0.5);
        assert!(counters([&[], &[]]).lifetime_explained().is_nan());
        let mut longest = GroupCounters::default();
        [0, u64::MAX].into_iter().for_each(|lifetime| longest.count_death(lifetime));
        assert_eq!((longest.lifetimes[0], longest.lifetimes[LIFETIME_BUCKETS - 1]), (1, 1));
    }

    #[test]
    fn write_cost_follows_the_slides_formula() {
        // Zipf and TPC-C at 85 %: WA 1.65 and 1.18 are write costs of 6.96 and 2.64.
        for (cleaned, expected) in [(65, 6.96), (18, 2.64)] {
            let counters = LogCounters { logged_blocks: 100, cleaned_blocks: cleaned, ..LogCounters::default() };
            let cost = counters.write_cost(DRIVES[0].build.read_cost);
            assert!((cost - expected).abs() < 0.05, "{cost}");
        }
    }
}
