//! How a device is planned around FAST, and how it is built.

use super::{FastFtl, FastOptions, LogShare, RESERVE_BLOCKS, log_block_map_bytes};
use crate::ftl::{Design, Found, FtlParts, FtlPlan, MapSizes, Receive, Reserve, Uses};
use crate::nand::Medium;
use crate::quantity::ByteSize;
use crate::registry::SpecError;

/// FAST, before it is built. It has its own placement and its own order of reclaiming.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FastDesign {
    /// Random-write log blocks. Default: all.
    pub log_blocks: LogShare,
    /// Write a page that holds no data straight to its place where NAND's order allows. Default: no.
    pub in_place_first_write: bool,
}

impl FastDesign {
    /// What a map with room for `log_blocks` needs: the block map is always resident, the floor is the map of one log block.
    fn sizes(plan: &FtlPlan, log_blocks: u32) -> MapSizes {
        let geometry = &plan.geometry;
        let entry_bytes = log_block_map_bytes(geometry);
        let logical_blocks = plan.logical_pages.div_ceil(geometry.pages_per_block());
        let fixed_bytes = u64::from(logical_blocks) * 4;
        MapSizes {
            fixed_bytes,
            least_bytes: fixed_bytes + entry_bytes,
            entry_bytes,
            ghost_entry_bytes: entry_bytes / u64::from(geometry.pages_per_block()),
            map_pages: logical_blocks,
            map_page_entries: geometry.pages_per_block(),
            log_blocks_max: log_blocks,
            paper_interval_requests: 10_000,
        }
    }
}

impl Design for FastDesign {
    fn uses(&self) -> Uses {
        Uses { placement: false, victim: false, shared_dram: true }
    }
    fn reserve(&self, for_copies: u32) -> Reserve {
        Reserve { least: RESERVE_BLOCKS, default: RESERVE_BLOCKS.max(for_copies) }
    }
    fn map_sizes(&self, plan: &FtlPlan) -> Result<Option<MapSizes>, SpecError> {
        Ok(Some(Self::sizes(plan, self.resolve(plan)?.log_blocks)))
    }
    fn build<M: Medium + Send + 'static, R: Receive<M>>(
        &self,
        parts: FtlParts<M>,
        receive: R,
    ) -> Result<R::Output, SpecError> {
        let FtlParts { medium, found, plan, map_bytes, .. } = parts;
        let mut options = self.resolve(&plan)?;
        if let Some(bytes) = map_bytes {
            let sizes = Self::sizes(&plan, options.log_blocks);
            if bytes.now < sizes.least_bytes {
                return Err(SpecError::new(
                    "dram.size",
                    format!("{} does not hold the block map and the map of one log block", ByteSize(bytes.now)),
                    format!("give at least {} bytes", sizes.least_bytes),
                ));
            }
            let entries = (bytes.now - sizes.fixed_bytes) / sizes.entry_bytes;
            let fitting = u32::try_from(entries).unwrap_or(u32::MAX);
            options = FastOptions { log_blocks: options.log_blocks.min(fitting), ..options };
        }
        let (pages, side) = (plan.logical_pages, receive.side());
        receive.take_space(match found {
            Found::Nothing => FastFtl::new(medium, pages, options, side),
            Found::Written => FastFtl::recover(medium, pages, options, side)?,
        })
    }
}
