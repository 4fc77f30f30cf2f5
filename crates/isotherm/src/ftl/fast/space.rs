//! A hybrid map whose log's map shares the DRAM: Table IV of adaptive partitioning, FAST's rows.

use super::{FastFtl, LogObserver, log_block_map_bytes};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::mapping_space::ratio;
use crate::ftl::{FlashCosts, Ftl, MapWork, MappingSpace, Profits};
use crate::nand::Medium;

impl<M: Medium, O: LogObserver> MappingSpace for FastFtl<M, O> {
    type Side = O;

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
    fn side(&self) -> &O {
        self.observer()
    }
    fn side_mut(&mut self) -> &mut O {
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
    use crate::nand::array::NandArray;
    use crate::nand::payload::NoBytes;
    use crate::nand::timing::Latency;

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
        let profits = FastFtl::<NandArray<NoBytes>>::profits(&recent, &flash);
        // Tfull_merge = 64 * 325.6 us + 1.5 ms = 22.3384 ms, Fas_set = 4, Tlog_GC = 64 ms.
        assert!((profits.map_write_ns - 22_338_400.0 / 4.0).abs() < 1e-6);
        assert!((profits.buffer_write_ns - (252_800.0 + 1_000_000.0)).abs() < 1e-6);
        assert_eq!((profits.buffer_read_ns, profits.map_read_ns), (72_800.0, 0.0));
    }
}
