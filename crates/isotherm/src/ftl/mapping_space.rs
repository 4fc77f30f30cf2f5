//! FTLs whose map can be resized while they run, and what they measure of themselves: Table IV of adaptive partitioning.

use super::Ftl;
use crate::device::DeviceError;
use crate::nand::Medium;
use crate::nand::timing::Latency;

/// What flash operations cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlashCosts {
    /// Tr: a page read, with its transfer.
    pub read_ns: f64,
    /// Tw: a page program, with its transfer.
    pub program_ns: f64,
    /// A copy inside the array.
    pub copy_ns: f64,
    /// Te: the erase of a block.
    pub erase_ns: f64,
    /// Nppb: pages of a block.
    pub pages_per_block: f64,
}

impl FlashCosts {
    /// The costs of a chip.
    pub fn new(latency: &Latency, pages_per_block: u32) -> Self {
        Self {
            read_ns: (latency.read_ns + latency.transfer_ns) as f64,
            program_ns: (latency.program_ns + latency.transfer_ns) as f64,
            copy_ns: (latency.read_ns + latency.program_ns) as f64,
            erase_ns: latency.erase_ns as f64,
            pages_per_block: pages_per_block.into(),
        }
    }

    /// Flash time of everything that a medium did.
    pub fn time_ns(&self, medium: &impl Medium) -> f64 {
        let counters = medium.counters();
        counters.reads.total() as f64 * self.read_ns
            + counters.programs.total() as f64 * self.program_ns
            + counters.copies.total() as f64 * self.copy_ns
            + counters.erases.total() as f64 * self.erase_ns
    }
}

/// What hits in the two ghosts are worth, in nanoseconds of flash time (Table IV).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Profits {
    /// PFr_GM: a read whose entry would have been cached.
    pub map_read_ns: f64,
    /// PFw_GM: a write whose entry would have been cached.
    pub map_write_ns: f64,
    /// PFr_GB: a read that would have found its page in the buffer.
    pub buffer_read_ns: f64,
    /// PFw_GB: a write that would have found its page in the buffer.
    pub buffer_write_ns: f64,
    /// Tr.
    pub read_ns: f64,
    /// Tw.
    pub program_ns: f64,
    /// Tr + Tw + Ttwo: a translation page read and written, with its share of collections; or a full merge as measured.
    pub map_rewrite_ns: f64,
    /// Translation pages written lately, by evictions and by collections; or full merges of reclaims.
    pub map_rewrites: f64,
    /// Time that collections of data took lately, without what they wrote of the map.
    pub collections_ns: f64,
    /// Time that merges of the sequential log block took lately; none for a demand-paged map.
    pub sequential_ns: f64,
    /// A copy inside the array.
    pub copy_ns: f64,
}

/// What an FTL did, in amounts that can be subtracted and faded.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MapWork {
    /// Blocks of data (or log blocks) reclaimed, and the time that took.
    pub data_reclaims: f64,
    /// See `data_reclaims`.
    pub data_reclaims_ns: f64,
    /// Blocks of translation pages reclaimed, and the time that took.
    pub translation_reclaims: f64,
    /// See `translation_reclaims`.
    pub translation_reclaims_ns: f64,
    /// Translation pages written because of evictions, and the dirty entries that these carried; full merges of reclaims,
    /// and the valid pages of the victims.
    pub writebacks: f64,
    /// See `writebacks`.
    pub entries_written_back: f64,
    /// Translation pages written because collections moved pages, and the time that took; none for a log.
    pub updates: f64,
    /// See `updates`.
    pub updates_ns: f64,
    /// Time of merges that emptied the sequential log block.
    pub sequential_ns: f64,
    /// Look-ups of the map and misses among them.
    pub reads: f64,
    /// See `reads`.
    pub read_misses: f64,
    /// See `reads`.
    pub writes: f64,
    /// See `reads`.
    pub write_misses: f64,
}

impl MapWork {
    fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            data_reclaims: f(self.data_reclaims, other.data_reclaims),
            data_reclaims_ns: f(self.data_reclaims_ns, other.data_reclaims_ns),
            translation_reclaims: f(self.translation_reclaims, other.translation_reclaims),
            translation_reclaims_ns: f(self.translation_reclaims_ns, other.translation_reclaims_ns),
            writebacks: f(self.writebacks, other.writebacks),
            entries_written_back: f(self.entries_written_back, other.entries_written_back),
            updates: f(self.updates, other.updates),
            updates_ns: f(self.updates_ns, other.updates_ns),
            sequential_ns: f(self.sequential_ns, other.sequential_ns),
            reads: f(self.reads, other.reads),
            read_misses: f(self.read_misses, other.read_misses),
            writes: f(self.writes, other.writes),
            write_misses: f(self.write_misses, other.write_misses),
        }
    }
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        self.zip(earlier, |now, before| now - before)
    }
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.zip(other, |one, two| one + two)
    }
    pub(crate) fn decayed(&self, factor: f64) -> Self {
        self.zip(self, |amount, _| amount * factor)
    }
}

/// Part of a whole, or `otherwise` where there is no whole yet.
pub(super) fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 { part / whole } else { otherwise }
}

/// An FTL whose map takes part of the DRAM and can be resized while it runs.
///
/// # Contract
/// - `mapping_bytes_used` never exceeds what `set_mapping_bytes` allowed last.
/// - It was built for the largest size; `set_mapping_bytes` writes back what does not fit any more.
pub trait MappingSpace: Ftl {
    /// What listens to the map.
    type Side;

    /// DRAM that the map uses now.
    fn mapping_bytes_used(&self) -> u64;
    /// Allows the map `bytes` from now on.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn set_mapping_bytes(&mut self, bytes: u64) -> Result<(), DeviceError>;
    /// What listens to the map.
    fn side(&self) -> &Self::Side;
    /// What listens to the map, to change it.
    fn side_mut(&mut self) -> &mut Self::Side;
    /// Everything done so far.
    fn map_work(&self, flash: &FlashCosts) -> MapWork;
    /// What hits are worth, from recent work.
    fn profits(recent: &MapWork, flash: &FlashCosts) -> Profits;
}
