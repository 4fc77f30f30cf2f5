//! How a device is planned around a demand-paged map, and how it is built. ASA-FTL shares it.

use super::{DemandOptions, Dftl, TranslationSpace};
use crate::address::Geometry;
use crate::ftl::{Design, Found, FtlParts, FtlPlan, MapSizes, MetaArea, Receive, Reserve, Uses};
use crate::nand::Medium;
use crate::placement::{AnyPlacement, PlacementContext};
use crate::registry::SpecError;

/// DFTL, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DftlDesign {
    /// How its map behaves.
    pub map: DemandOptions,
}

/// An FTL with a demand-paged map: all of its design but the map's options and the placement is the same.
pub(in crate::ftl) trait DemandDesign {
    /// Whether the FTL brings a placement along, and has no use for another.
    const PLACES: bool = false;

    /// How the map behaves.
    fn map(&self) -> &DemandOptions;
    /// The placement that the FTL brings along.
    fn placement(&self, context: &PlacementContext) -> Option<AnyPlacement>;

    /// Translation blocks.
    fn translation_area(&self, geometry: &Geometry, logical_pages: u32) -> Result<MetaArea, SpecError> {
        let options = self.map();
        options.check(logical_pages, geometry.page_bytes())?;
        let blocks = options.translation_blocks(logical_pages, geometry.page_bytes(), geometry.pages_per_block());
        if options.translation_space == TranslationSpace::OnTop {
            return Ok(MetaArea { blocks, on_top: blocks });
        }
        if blocks + logical_pages.div_ceil(geometry.pages_per_block()) >= geometry.blocks {
            return Err(SpecError::new(
                "ftl:translation_space",
                format!("{blocks} blocks of translation pages leave no spare space"),
                "give more device.over_provisioning, or translation_space=on_top",
            ));
        }
        Ok(MetaArea { blocks, on_top: 0 })
    }

    /// The floor of a shared DRAM is the entries of one translation page.
    fn demand_sizes(&self, plan: &FtlPlan) -> MapSizes {
        let (map, page_bytes) = (self.map(), plan.geometry.page_bytes());
        let entry_bytes = u64::from(map.cached_bytes());
        let map_page_entries = page_bytes / map.translation_entry_bytes;
        let fixed_bytes = map.fixed_bytes(plan.logical_pages, page_bytes);
        MapSizes {
            fixed_bytes,
            least_bytes: fixed_bytes + u64::from(map_page_entries) * entry_bytes,
            entry_bytes,
            ghost_entry_bytes: entry_bytes,
            map_pages: map.translation_pages(plan.logical_pages, page_bytes),
            map_page_entries,
            log_blocks_max: 0,
            paper_interval_requests: 1000,
        }
    }

    /// Builds the map over its medium.
    fn build_demand<M: Medium + Send + 'static, R: Receive<M>>(
        &self,
        parts: FtlParts<M>,
        receive: R,
    ) -> Result<R::Output, SpecError> {
        let FtlParts { medium, found, placement, victim, plan, map_bytes } = parts;
        let map = map_bytes.map_or(*self.map(), |bytes| DemandOptions {
            cache_bytes: bytes.now,
            cache_bytes_max: bytes.most,
            ..*self.map()
        });
        let (pages, store, side) = (plan.logical_pages, plan.store, receive.side());
        receive.take_space(match found {
            Found::Nothing => Dftl::new(medium, placement, victim, pages, store, map, side)?,
            Found::Written => Dftl::recover(medium, placement, victim, pages, store, map, side)?,
        })
    }
}

impl DemandDesign for DftlDesign {
    fn map(&self) -> &DemandOptions {
        &self.map
    }
    fn placement(&self, _: &PlacementContext) -> Option<AnyPlacement> {
        None
    }
}

impl<D: DemandDesign> Design for D {
    fn uses(&self) -> Uses {
        Uses { placement: !D::PLACES, victim: true, shared_dram: true }
    }
    fn own_placement(&self, context: &PlacementContext) -> Option<AnyPlacement> {
        self.placement(context)
    }
    fn meta_area(&self, geometry: &Geometry, logical_pages: u32) -> Result<MetaArea, SpecError> {
        self.translation_area(geometry, logical_pages)
    }
    fn reserve(&self, for_copies: u32) -> Reserve {
        Reserve { least: DemandOptions::FLOOR_MIN, default: for_copies + DemandOptions::RESERVE_BLOCKS }
    }
    fn map_sizes(&self, plan: &FtlPlan) -> Result<Option<MapSizes>, SpecError> {
        Ok(Some(self.demand_sizes(plan)))
    }
    fn build<M: Medium + Send + 'static, R: Receive<M>>(
        &self,
        parts: FtlParts<M>,
        receive: R,
    ) -> Result<R::Output, SpecError> {
        self.build_demand(parts, receive)
    }
}
