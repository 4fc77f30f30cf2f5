//! What a device counted: by cause, by collection, by block, by request. Snapshots subtract, so that any window of a run
//! can be reported.

use crate::cause::ByCause;
use hdrhistogram::Histogram;
use std::any::Any;
use std::fmt::Debug;

/// What the host asked for, as the device counted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// Bytes of write requests.
    pub bytes_written: u64,
    /// Bytes of read requests.
    pub bytes_read: u64,
    /// Bytes of trim requests.
    pub bytes_trimmed: u64,
    /// Pages touched by write requests, partly or whole.
    pub pages_written: u64,
    /// Pages touched by read requests.
    pub pages_read: u64,
    /// Whole pages that trim requests covered (partly covered pages keep their data).
    pub pages_trimmed: u64,
    /// Pages read that held no data: no flash was touched for them.
    pub pages_read_unmapped: u64,
    /// Page writes that covered only a part of a page (read-modify-write where the page held data).
    pub pages_partly_written: u64,
    /// Flush requests.
    pub flushes: u64,
}

/// What the medium did. A copy counts here alone: it is one read and one program inside the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MediumCounters {
    /// Pages read to the controller.
    pub reads: ByCause,
    /// Pages programmed from the controller.
    pub programs: ByCause,
    /// Pages copied inside the array (copy-back), each a read and a program without transfer.
    pub copies: ByCause,
    /// Blocks erased.
    pub erases: ByCause,
}

impl MediumCounters {
    /// Pages programmed by any means: programs and copies.
    pub fn programmed(&self) -> ByCause {
        let mut sum = self.programs;
        for cause in crate::cause::Cause::ALL {
            sum[cause] += self.copies[cause];
        }
        sum
    }
}

/// Buckets of the histogram of victims' invalid share: bucket `i` of 0..=20 holds shares in [i/20, (i+1)/20).
pub const VICTIM_BUCKETS: usize = 21;

/// What the collector did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectorCounters {
    /// Victims collected (foreground and background, wear levelling aside).
    pub collections: u64,
    /// Of these, in idle time.
    pub background_collections: u64,
    /// Invalid pages found in victims.
    pub victim_invalid_pages: u64,
    /// Pages of all victims, valid or not.
    pub victim_pages: u64,
    /// Victims by their invalid share.
    pub victim_histogram: [u64; VICTIM_BUCKETS],
    /// Pages that went to another stream than the placement asked for, because no free block was left for it.
    pub displaced_pages: u64,
    /// Pages invalidated since the device was built, by overwrites, trims and moves.
    pub invalidated_pages: u64,
    /// Blocks retired after a program or erase failure or at the end of their endurance.
    pub retired_blocks: u64,
}

/// Merges of a hybrid map. Pages are those programmed by merges, which write amplification counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct MergeCounters {
    /// Switch merges: a complete sequential log block became the data block. They program nothing.
    pub switch: u64,
    /// Partial merges: the rest was copied behind a sequential log block, which became the data block.
    pub partial: u64,
    /// Full merges: a logical block was gathered from everywhere into a new data block.
    pub full: u64,
    /// Of the full merges, those made to reclaim a random-write log block; the others emptied the sequential one.
    pub full_of_reclaims: u64,
    /// Pages programmed by switch merges: always 0.
    pub switch_pages: u64,
    /// Pages programmed by partial merges, filler pages included.
    pub partial_pages: u64,
    /// Pages programmed by full merges, filler pages included.
    pub full_pages: u64,
    /// Of the pages above, those that hold nothing and only keep the order that NAND demands.
    pub filler_pages: u64,
    /// Host writes that made a page of a random-write log block invalid, so that no merge has to move it.
    pub log_hits: u64,
}

/// What a write buffer did. Padding is counted apart: it is not what the host wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferCounters {
    /// Pages that the host read.
    pub reads: u64,
    /// Of these, found in the buffer.
    pub read_hits: u64,
    /// Pages that the host wrote.
    pub writes: u64,
    /// Of these, overwriting a page that flash has not seen: a flash write saved.
    pub write_hits: u64,
    /// Pages written to flash for the host, by evictions and flushes.
    pub flushed_pages: u64,
    /// Pages that were trimmed before flash saw them.
    pub discarded_pages: u64,
    /// Pages written to flash only to fill the unit of an eviction.
    pub padded_pages: u64,
}

/// What results say of a write buffer over a window.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct BufferReport {
    /// Share of the pages read that were found in the buffer; 0 if none was read.
    pub read_hit_ratio: f64,
    /// Share of the pages written that overwrote a buffered one; 0 if none was written.
    pub write_hit_ratio: f64,
    /// Pages written to flash by evictions and flushes.
    pub flushed_pages: u64,
    /// Pages written to flash only to fill the unit of an eviction.
    pub padded_pages: u64,
}

impl BufferCounters {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_hits: self.read_hits - earlier.read_hits,
            writes: self.writes - earlier.writes,
            write_hits: self.write_hits - earlier.write_hits,
            flushed_pages: self.flushed_pages - earlier.flushed_pages,
            discarded_pages: self.discarded_pages - earlier.discarded_pages,
            padded_pages: self.padded_pages - earlier.padded_pages,
        }
    }

    /// The ratios of results.
    pub fn report(&self) -> BufferReport {
        let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        BufferReport {
            read_hit_ratio: ratio(self.read_hits, self.reads),
            write_hit_ratio: ratio(self.write_hits, self.writes),
            flushed_pages: self.flushed_pages,
            padded_pages: self.padded_pages,
        }
    }
}

/// One decision on the split of the DRAM.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct SplitSample {
    /// Requests so far.
    pub requests: u64,
    /// The map's share of the DRAM after the decision.
    pub mapping_share: f64,
    /// Nanoseconds of flash time that a byte more of buffer would have saved in the interval.
    pub cost_benefit_buffer: f64,
    /// Nanoseconds of flash time that a byte more of map would have saved.
    pub cost_benefit_mapping: f64,
}

/// Decisions on the split of the DRAM.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SplitCounters {
    /// Decisions so far.
    pub decisions: u64,
    /// Sum of the map's shares after each.
    pub share_sum: f64,
    /// The map's share now.
    pub last: f64,
    /// Every 2^n-th decision, n growing so that there are at most 1024.
    pub series: Vec<SplitSample>,
    /// Requests before the last decision.
    pub requests: u64,
    log2_stride: u8,
}

/// What results say of the split over a window.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct SplitReport {
    /// The map's share of the DRAM, averaged over the decisions of the window.
    pub mapping_share_mean: f64,
    /// The map's share at the end.
    pub mapping_share_last: f64,
}

impl SplitCounters {
    const SERIES_MOST: usize = 1024;

    /// Adds a decision.
    pub fn record(&mut self, sample: SplitSample) {
        if self.decisions.trailing_zeros() >= u32::from(self.log2_stride) {
            self.series.push(sample);
        }
        self.decisions += 1;
        self.share_sum += sample.mapping_share;
        self.last = sample.mapping_share;
        self.requests = sample.requests;
        if self.series.len() > Self::SERIES_MOST {
            let mut index = 0;
            self.series.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.log2_stride += 1;
        }
    }

    /// Mean and last share since `earlier`; the last share stands for the mean where nothing was decided.
    pub fn report_since(&self, earlier: &Self) -> SplitReport {
        let decisions = self.decisions - earlier.decisions;
        let mean = if decisions == 0 { self.last } else { (self.share_sum - earlier.share_sum) / decisions as f64 };
        SplitReport { mapping_share_mean: mean, mapping_share_last: self.last }
    }
}

/// What a bitmap ghost and an exact one said to the same look-ups (those that missed the cache).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct GhostAuditCounters {
    /// Look-ups.
    pub lookups: u64,
    /// Of these, in the bitmap by what it seems.
    pub bitmap_hits: u64,
    /// Of these, in the exact ghost.
    pub exact_hits: u64,
    /// In the bitmap and not in the exact ghost.
    pub excess_hits: u64,
    /// Of the excess hits, those on a bit that nobody but the address itself has set; the others are false.
    pub late_hits: u64,
    /// Sum of the bitmap's densities at the look-ups that the exact ghost missed: the false hits to be expected.
    pub density_sum: f64,
}

/// What results say of an audited bitmap ghost over a window; rates are absent where nothing was looked up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GhostAuditReport {
    /// Share of the look-ups that the exact ghost missed and the bitmap hit.
    pub excess_hit_rate: Option<f64>,
    /// The same without late hits.
    pub false_hit_rate: Option<f64>,
    /// What the bitmap's density predicts: its mean over those look-ups.
    pub false_hit_rate_predicted: Option<f64>,
}

impl GhostAuditCounters {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            lookups: self.lookups - earlier.lookups,
            bitmap_hits: self.bitmap_hits - earlier.bitmap_hits,
            exact_hits: self.exact_hits - earlier.exact_hits,
            excess_hits: self.excess_hits - earlier.excess_hits,
            late_hits: self.late_hits - earlier.late_hits,
            density_sum: self.density_sum - earlier.density_sum,
        }
    }

    /// The rates of results.
    pub fn report(&self) -> GhostAuditReport {
        let missed = self.lookups - self.exact_hits;
        let share = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        GhostAuditReport {
            excess_hit_rate: share(self.excess_hits as f64, missed),
            false_hit_rate: share((self.excess_hits - self.late_hits) as f64, missed),
            false_hit_rate_predicted: share(self.density_sum, missed),
        }
    }
}

/// Erase counts over the blocks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WearSummary {
    /// Sum over all blocks.
    pub total: u64,
    /// Least worn block.
    pub min: u32,
    /// Most worn block.
    pub max: u32,
    /// Mean over all blocks.
    pub mean: f64,
}

/// Time spent by the flash array, as counts times latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlashTime {
    /// Cell reads (copies included).
    pub read_ns: u64,
    /// Cell programs (copies included).
    pub program_ns: u64,
    /// Block erases.
    pub erase_ns: u64,
    /// Transfers over the channel.
    pub transfer_ns: u64,
}

impl FlashTime {
    /// All of it.
    pub fn total_ns(&self) -> u64 {
        self.read_ns + self.program_ns + self.erase_ns + self.transfer_ns
    }
}

/// Look-ups of a demand-paged map, and the flash operations that they and collections caused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct MappingCounters {
    /// Look-ups that the cache answered.
    pub hits: u64,
    /// Look-ups that it did not.
    pub misses: u64,
    /// Translation pages read because of a miss.
    pub fetches: u64,
    /// Translation pages read to write an evicted entry back.
    pub writeback_reads: u64,
    /// Translation pages written because a dirty entry was evicted.
    pub writebacks: u64,
    /// Dirty entries that these carried.
    pub entries_written_back: u64,
    /// Translation pages read to update entries of pages that a collection moved or a trim took.
    pub update_reads: u64,
    /// Translation pages written for the same.
    pub updates: u64,
    /// Translation pages written when the device was formatted, or repaired after a loss of power.
    pub rewrites: u64,
}

impl MappingCounters {
    /// Translation pages read.
    pub fn translation_reads(&self) -> u64 {
        self.fetches + self.writeback_reads + self.update_reads
    }

    /// Translation pages programmed; copies by the collector are counted by their cause alone.
    pub fn translation_programs(&self) -> u64 {
        self.writebacks + self.updates + self.rewrites
    }

    /// Dirty entries that one eviction's write carried, on average.
    pub fn entries_per_writeback_mean(&self) -> Option<f64> {
        (self.writebacks > 0).then(|| self.entries_written_back as f64 / self.writebacks as f64)
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            fetches: self.fetches - earlier.fetches,
            writeback_reads: self.writeback_reads - earlier.writeback_reads,
            writebacks: self.writebacks - earlier.writebacks,
            entries_written_back: self.entries_written_back - earlier.entries_written_back,
            update_reads: self.update_reads - earlier.update_reads,
            updates: self.updates - earlier.updates,
            rewrites: self.rewrites - earlier.rewrites,
        }
    }
}

/// Clusterings of recency (ASA-FTL).
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct AsaCounters {
    /// Times that samples were clustered.
    pub clusterings: u64,
    /// Pages whose recency was sampled.
    pub samples: u64,
    /// Centroids of the last clustering, hottest first, in page writes.
    pub centroids: Vec<f64>,
    /// Writes with a recency before and after.
    pub judged_writes: u64,
    /// Of these, writes whose new recency fell into another cluster than the old one.
    pub irr_misses: u64,
}

/// A named number of bytes: one table of the device's DRAM.
pub type MemoryItem = (&'static str, u64);

/// Counters that only some devices have.
pub trait Section: Any + Debug + Send + Sync {
    /// The same counters.
    fn boxed(&self) -> Box<dyn Section>;
    /// The counters under their own type.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + Clone + Debug + Send + Sync> Section for T {
    fn boxed(&self) -> Box<dyn Section> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Counters of several types: whoever counts puts them in, whoever knows the type takes them out.
#[derive(Debug, Default)]
pub struct Sections(Vec<Box<dyn Section>>);

impl Sections {
    /// Adds counters, in place of others of their type.
    pub fn put<T: Section>(&mut self, section: T) {
        self.0.retain(|other| !(**other).as_any().is::<T>());
        self.0.push(Box::new(section));
    }

    /// The counters of a type, if anything counts them.
    pub fn get<T: Section>(&self) -> Option<&T> {
        self.0.iter().find_map(|section| (**section).as_any().downcast_ref())
    }
}

impl Clone for Sections {
    fn clone(&self) -> Self {
        // The box itself is a section too: the one inside is meant.
        Self(self.0.iter().map(|section| (**section).boxed()).collect())
    }
}

/// Everything a device counted since it was built.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The host's requests.
    pub host: HostCounters,
    /// The medium's operations.
    pub medium: MediumCounters,
    /// The collector's work.
    pub collector: CollectorCounters,
    /// Time of the flash array; zero without a timing model.
    pub time: FlashTime,
    /// When the flash array will have done all that it was asked for, on the clock of arrivals; none where operations do not
    /// queue.
    pub busy_until_ns: Option<u64>,
    /// Valid pages on the medium now, of every kind.
    pub valid_pages: u64,
    /// Logical pages that hold data now.
    pub mapped_pages: u64,
    /// Blocks free now.
    pub free_blocks: u32,
    /// Merges, where the map is hybrid.
    pub merges: Option<MergeCounters>,
    /// Look-ups of a demand-paged map; `None` where the whole map is in DRAM.
    pub mapping: Option<MappingCounters>,
    /// Clusterings of recency; `None` without them.
    pub asa: Option<AsaCounters>,
    /// DRAM of the simulated controller, by table.
    pub dram: Vec<MemoryItem>,
    /// The write buffer, where there is one.
    pub buffer: Option<BufferCounters>,
    /// The split of the DRAM, where one is shared.
    pub split: Option<SplitCounters>,
    /// The bitmap ghost of the rule that splits it, where an exact one audits it.
    pub ghost_audit: Option<GhostAuditCounters>,
    /// What else was counted, by those who know what it is.
    pub sections: Sections,
}

impl Snapshot {
    /// Pages programmed for each page the host wrote; NaN before the first write.
    pub fn write_amplification(&self) -> f64 {
        self.medium.programmed().total() as f64 / self.host.pages_written as f64
    }
}

/// Latency histograms of requests, by operation, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Reads.
    pub read: Histogram<u64>,
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
        Self { read: empty(), write: empty(), trim: empty(), flush: empty() }
    }
}
