//! A demand-paged map that shares the DRAM: Table IV of adaptive partitioning, DFTL's rows.

use super::{Dftl, MapObserver};
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::mapping_space::ratio;
use crate::ftl::{FlashCosts, Ftl, MapWork, MappingSpace, Profits};
use crate::nand::Medium;
use crate::placement::Placement;
use crate::victim::VictimPolicy;

impl<M: Medium, P: Placement, V: VictimPolicy, O: MapObserver> MappingSpace for Dftl<M, P, V, O> {
    type Side = O;

    #[inline(always)]
    fn mapping_bytes_used(&self) -> u64 {
        self.mapping_bytes_fixed() + u64::from(self.cmt().len()) * u64::from(self.options().cached_bytes())
    }
    fn set_mapping_bytes(&mut self, bytes: u64) -> Result<(), DeviceError> {
        self.set_cache_bytes(bytes)
    }
    fn side(&self) -> &O {
        self.observer()
    }
    fn side_mut(&mut self) -> &mut O {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::array::NandArray;
    use crate::nand::payload::NoBytes;
    use crate::nand::timing::Latency;
    use crate::placement::AnyPlacement;
    use crate::victim::AnyVictim;

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
        type Any = Dftl<NandArray<NoBytes>, AnyPlacement, AnyVictim>;
        let profits = Any::profits(&recent, &flash);
        // Ttwo = 3.2 ms / 64 = 50 us, Tdwo = 6.4 ms / 64 = 100 us, Fb = 8, Rr = 25 %, Rw = 10 %.
        let map_write = (72_800.0 + 252_800.0 + 50_000.0) / 8.0;
        assert_eq!(profits.map_read_ns, 72_800.0);
        assert!((profits.map_write_ns - map_write).abs() < 1e-6);
        assert!((profits.buffer_read_ns - 72_800.0 * 1.25).abs() < 1e-6);
        assert!((profits.buffer_write_ns - (252_800.0 + 100_000.0 + map_write * 0.1)).abs() < 1e-6);
    }
}
