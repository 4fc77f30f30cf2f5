//! What a log counted.

use isotherm::stats::Snapshot;

/// Buckets of the histograms of utilisation: bucket `i` of 0..=20 holds `[i/20, (i+1)/20)`.
pub const UTILISATION_BUCKETS: usize = 21;

/// The bucket of a utilisation from 0 to 1.
pub fn utilisation_bucket(utilisation: f64) -> usize {
    ((utilisation * (UTILISATION_BUCKETS - 1) as f64) as usize).min(UTILISATION_BUCKETS - 1)
}

/// What one group wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupCounters {
    /// Whole segments.
    pub segments: u64,
    /// Blocks in them, guarded blocks included.
    pub blocks: u64,
}

/// Counters of a log, since it was built.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LogCounters {
    /// Block writes of the host.
    pub host_blocks: u64,
    /// Of these, absorbed: the block's last write was still dirty.
    pub absorbed_blocks: u64,
    /// Blocks written to the log because the host had written them.
    pub logged_blocks: u64,
    /// Blocks written to the log because their segment was cleaned.
    pub cleaned_blocks: u64,
    /// Blocks written ahead of their group, because the segment that they come from is reused next.
    pub guarded_blocks: u64,
    /// Segment summaries.
    pub summary_blocks: u64,
    /// Blocks of checkpoints.
    pub checkpoint_blocks: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Syncs.
    pub syncs: u64,
    /// Segments begun.
    pub segments_written: u64,
    /// Writes of less than a segment.
    pub partial_writes: u64,
    /// Segments cleaned.
    pub segments_cleaned: u64,
    /// Segments trimmed.
    pub segments_trimmed: u64,
    /// Blocks read by the cleaner.
    pub cleaning_reads: u64,
    /// Reads of the host that the dirty cache served.
    pub reads_from_cache: u64,
    /// Sum of the utilisations of cleaned segments.
    pub victim_utilisation: f64,
    /// Cleaned segments by utilisation.
    pub victim_histogram: [u64; UTILISATION_BUCKETS],
    /// By group, coldest first.
    pub groups: Vec<GroupCounters>,
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

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let group = |(now, then): (&GroupCounters, &GroupCounters)| GroupCounters {
            segments: now.segments - then.segments,
            blocks: now.blocks - then.blocks,
        };
        Self {
            host_blocks: self.host_blocks - earlier.host_blocks,
            absorbed_blocks: self.absorbed_blocks - earlier.absorbed_blocks,
            logged_blocks: self.logged_blocks - earlier.logged_blocks,
            cleaned_blocks: self.cleaned_blocks - earlier.cleaned_blocks,
            guarded_blocks: self.guarded_blocks - earlier.guarded_blocks,
            summary_blocks: self.summary_blocks - earlier.summary_blocks,
            checkpoint_blocks: self.checkpoint_blocks - earlier.checkpoint_blocks,
            checkpoints: self.checkpoints - earlier.checkpoints,
            syncs: self.syncs - earlier.syncs,
            segments_written: self.segments_written - earlier.segments_written,
            partial_writes: self.partial_writes - earlier.partial_writes,
            segments_cleaned: self.segments_cleaned - earlier.segments_cleaned,
            segments_trimmed: self.segments_trimmed - earlier.segments_trimmed,
            cleaning_reads: self.cleaning_reads - earlier.cleaning_reads,
            reads_from_cache: self.reads_from_cache - earlier.reads_from_cache,
            victim_utilisation: self.victim_utilisation - earlier.victim_utilisation,
            victim_histogram: std::array::from_fn(|i| self.victim_histogram[i] - earlier.victim_histogram[i]),
            groups: self.groups.iter().zip(&earlier.groups).map(group).collect(),
        }
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
#[derive(Clone, Debug, Default)]
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
