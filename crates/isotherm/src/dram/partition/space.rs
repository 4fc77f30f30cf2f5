//! FTLs whose map can be resized while they run, and what they measure of themselves: Table IV of adaptive partitioning.

use super::sides::{MapSide, ReadsAndWrites};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::Ftl;
use crate::ftl::dftl::Dftl;
use crate::ftl::fast::{FastFtl, log_block_map_bytes};
use crate::nand::Medium;
use crate::nand::timing::Latency;
use crate::placement::Placement;
use crate::victim::VictimPolicy;

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
    pub(super) fn since(&self, earlier: &Self) -> Self {
        self.zip(earlier, |now, before| now - before)
    }
    pub(super) fn plus(&self, other: &Self) -> Self {
        self.zip(other, |one, two| one + two)
    }
    pub(super) fn decayed(&self, factor: f64) -> Self {
        self.zip(self, |amount, _| amount * factor)
    }
    pub(super) fn add_accesses(&mut self, accesses: &ReadsAndWrites, misses: &ReadsAndWrites) {
        self.reads += accesses.reads as f64;
        self.writes += accesses.writes as f64;
        self.read_misses += misses.reads as f64;
        self.write_misses += misses.writes as f64;
    }
}

/// Part of a whole, or `otherwise` where there is no whole yet.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 { part / whole } else { otherwise }
}

/// An FTL whose map takes part of the DRAM and can be resized while it runs.
///
/// # Contract
/// - `mapping_bytes_used` never exceeds what `set_mapping_bytes` allowed last.
/// - It was built for the largest size; `set_mapping_bytes` writes back what does not fit any more.
pub trait MappingSpace: Ftl {
    /// DRAM that the map uses now.
    fn mapping_bytes_used(&self) -> u64;
    /// Allows the map `bytes` from now on.
    ///
    /// # Errors
    /// No space, or faults of the medium.
    fn set_mapping_bytes(&mut self, bytes: u64) -> Result<(), DeviceError>;
    /// What listens to the map.
    fn map_side(&self) -> &MapSide;
    /// What listens to the map, to change it.
    fn map_side_mut(&mut self) -> &mut MapSide;
    /// Everything done so far.
    fn map_work(&self, flash: &FlashCosts) -> MapWork;
    /// What hits are worth, from recent work.
    fn profits(recent: &MapWork, flash: &FlashCosts) -> Profits;
}

impl<M: Medium, P: Placement, V: VictimPolicy> MappingSpace for Dftl<M, P, V, MapSide> {
    #[inline(always)]
    fn mapping_bytes_used(&self) -> u64 {
        self.mapping_bytes_fixed() + u64::from(self.cmt().len()) * u64::from(self.options().cached_bytes())
    }
    fn set_mapping_bytes(&mut self, bytes: u64) -> Result<(), DeviceError> {
        self.set_cache_bytes(bytes)
    }
    fn map_side(&self) -> &MapSide {
        self.observer()
    }
    fn map_side_mut(&mut self) -> &mut MapSide {
        self.observer_mut()
    }

    fn map_work(&self, flash: &FlashCosts) -> MapWork {
        let (map, medium) = (self.counters(), self.medium().counters());
        let reclaims = |cause| medium.erases[cause] as f64;
        let reclaims_ns = |cause| medium.copies[cause] as f64 * flash.copy_ns + reclaims(cause) * flash.erase_ns;
        // Collections of data also update the map of what they move.
        let updates_ns = map.update_reads as f64 * flash.read_ns + map.updates as f64 * flash.program_ns;
        MapWork {
            data_reclaims: reclaims(Cause::Gc),
            data_reclaims_ns: reclaims_ns(Cause::Gc) + updates_ns,
            translation_reclaims: reclaims(Cause::TranslationGc),
            translation_reclaims_ns: reclaims_ns(Cause::TranslationGc),
            writebacks: map.writebacks as f64,
            entries_written_back: map.entries_written_back as f64,
            updates: map.updates as f64,
            updates_ns,
            ..MapWork::default()
        }
    }

    /// PFr_GM = Tr; PFw_GM = (Tr + Tw + Ttwo) / Fb; PFr_GB = Tr + Tr * Rr_mis; PFw_GB = Tw + Tdwo + PFw_GM * Rw_mis.
    fn profits(recent: &MapWork, flash: &FlashCosts) -> Profits {
        let FlashCosts { read_ns, program_ns, copy_ns, pages_per_block, .. } = *flash;
        let translation_overhead =
            ratio(recent.translation_reclaims_ns, recent.translation_reclaims, 0.0) / pages_per_block;
        let data_overhead = ratio(recent.data_reclaims_ns, recent.data_reclaims, 0.0) / pages_per_block;
        let batch = ratio(recent.entries_written_back, recent.writebacks, 1.0).max(1.0);
        let map_rewrite_ns = read_ns + program_ns + translation_overhead;
        let map_write_ns = map_rewrite_ns / batch;
        Profits {
            map_read_ns: read_ns,
            map_write_ns,
            buffer_read_ns: read_ns + read_ns * ratio(recent.read_misses, recent.reads, 0.0),
            buffer_write_ns: program_ns + data_overhead + map_write_ns * ratio(recent.write_misses, recent.writes, 0.0),
            read_ns,
            program_ns,
            map_rewrite_ns,
            map_rewrites: recent.writebacks + recent.updates,
            collections_ns: recent.data_reclaims_ns - recent.updates_ns,
            copy_ns,
            ..Profits::default()
        }
    }
}

impl<M: Medium> MappingSpace for FastFtl<M, MapSide> {
    #[inline(always)]
    fn mapping_bytes_used(&self) -> u64 {
        let log = u64::from(self.log_blocks_in_use()) * log_block_map_bytes(self.medium().geometry());
        self.block_map_bytes() + log
    }
    fn set_mapping_bytes(&mut self, bytes: u64) -> Result<(), DeviceError> {
        let entry = log_block_map_bytes(self.medium().geometry());
        let blocks = bytes.saturating_sub(self.block_map_bytes()) / entry;
        self.set_log_blocks(u32::try_from(blocks).unwrap_or(u32::MAX))?;
        Ok(())
    }
    fn map_side(&self) -> &MapSide {
        self.observer()
    }
    fn map_side_mut(&mut self) -> &mut MapSide {
        self.observer_mut()
    }

    fn map_work(&self, flash: &FlashCosts) -> MapWork {
        let (merges, collector, medium) = (self.merges(), self.collector(), self.medium().counters());
        let time_ns = |cause: Cause| {
            medium.copies[cause] as f64 * flash.copy_ns
                + medium.programs[cause] as f64 * flash.program_ns
                + medium.erases[cause] as f64 * flash.erase_ns
        };
        let full_ns = time_ns(Cause::FullMerge);
        // Full merges also empty the sequential log block; those of reclaims take their share.
        let of_reclaims = ratio(merges.full_of_reclaims as f64, merges.full as f64, 0.0);
        MapWork {
            data_reclaims: collector.collections as f64,
            data_reclaims_ns: full_ns * of_reclaims + medium.erases[Cause::Gc] as f64 * flash.erase_ns,
            writebacks: merges.full_of_reclaims as f64,
            entries_written_back: (collector.victim_pages - collector.victim_invalid_pages) as f64,
            sequential_ns: full_ns * (1.0 - of_reclaims) + time_ns(Cause::PartialMerge) + time_ns(Cause::SwitchMerge),
            ..MapWork::default()
        }
    }

    /// PFw_GM = Tfull_merge / Fas_set; PFr_GB = Tr; PFw_GB = Tw + Tlog_GC / Nppb; Tfull_merge = Nppb (Tr + Tw) + Te. Reads
    /// never miss the map: PFr_GM is none.
    fn profits(recent: &MapWork, flash: &FlashCosts) -> Profits {
        let FlashCosts { read_ns, program_ns, copy_ns, erase_ns, pages_per_block } = *flash;
        let full_merge_ns = pages_per_block * (read_ns + program_ns) + erase_ns;
        let associated = ratio(recent.entries_written_back, recent.writebacks, 1.0).max(1.0);
        let reclaim_ns = ratio(recent.data_reclaims_ns, recent.data_reclaims, 0.0);
        Profits {
            map_write_ns: full_merge_ns / associated,
            buffer_read_ns: read_ns,
            buffer_write_ns: program_ns + reclaim_ns / pages_per_block,
            read_ns,
            program_ns,
            map_rewrite_ns: ratio(recent.data_reclaims_ns, recent.writebacks, full_merge_ns),
            map_rewrites: recent.writebacks,
            sequential_ns: recent.sequential_ns,
            copy_ns,
            ..Profits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profit_factors_of_dftl_are_those_of_table_iv() {
        // SLC of Table I; a worked example with round counts, in microseconds.
        let latency = Latency { read_ns: 72_800, program_ns: 252_800, erase_ns: 1_500_000, transfer_ns: 0 };
        let flash = FlashCosts::new(&latency, 64);
        let recent = MapWork {
            data_reclaims: 10.0,
            data_reclaims_ns: 10.0 * 6_400_000.0,
            translation_reclaims: 4.0,
            translation_reclaims_ns: 4.0 * 3_200_000.0,
            writebacks: 5.0,
            entries_written_back: 40.0,
            updates: 0.0,
            updates_ns: 0.0,
            sequential_ns: 0.0,
            reads: 100.0,
            read_misses: 25.0,
            writes: 200.0,
            write_misses: 20.0,
        };
        type Any = Dftl<
            crate::nand::array::NandArray<crate::nand::payload::NoBytes>,
            crate::placement::AnyPlacement,
            crate::victim::AnyVictim,
            MapSide,
        >;
        let profits = Any::profits(&recent, &flash);
        // Ttwo = 3.2 ms / 64 = 50 us, Tdwo = 6.4 ms / 64 = 100 us, Fb = 8, Rr = 25 %, Rw = 10 %.
        let map_write = (72_800.0 + 252_800.0 + 50_000.0) / 8.0;
        assert_eq!(profits.map_read_ns, 72_800.0);
        assert!((profits.map_write_ns - map_write).abs() < 1e-6);
        assert!((profits.buffer_read_ns - 72_800.0 * 1.25).abs() < 1e-6);
        assert!((profits.buffer_write_ns - (252_800.0 + 100_000.0 + map_write * 0.1)).abs() < 1e-6);
    }

    #[test]
    fn the_profit_factors_of_fast_are_those_of_table_iv() {
        let latency = Latency { read_ns: 72_800, program_ns: 252_800, erase_ns: 1_500_000, transfer_ns: 0 };
        let flash = FlashCosts::new(&latency, 64);
        let recent = MapWork {
            data_reclaims: 10.0,
            data_reclaims_ns: 10.0 * 64_000_000.0,
            writebacks: 30.0,
            entries_written_back: 120.0,
            ..MapWork::default()
        };
        let profits =
            FastFtl::<crate::nand::array::NandArray<crate::nand::payload::NoBytes>, MapSide>::profits(&recent, &flash);
        // Tfull_merge = 64 * 325.6 us + 1.5 ms = 22.3384 ms, Fas_set = 4, Tlog_GC = 64 ms.
        assert!((profits.map_write_ns - 22_338_400.0 / 4.0).abs() < 1e-6);
        assert!((profits.buffer_write_ns - (252_800.0 + 1_000_000.0)).abs() < 1e-6);
        assert_eq!((profits.buffer_read_ns, profits.map_read_ns), (72_800.0, 0.0));
    }
}
