//! The DRAM of a simulated device: a buffer in front of any FTL, or one that shares the DRAM with the map.

use super::{Plan, SimulatedMedium};
use crate::address::Geometry;
use crate::device::{DeviceError, Replay};
use crate::dram::buffer::{AnyBuffer, BufferContext, build_buffer};
use crate::dram::partition::sides::{BufferSide, MapSide};
use crate::dram::partition::{AnySplit, MappingSpace, Sizes, SplitContext, SplitRule, build_split};
use crate::dram::{Partition, WriteBuffer};
use crate::ftl::Ftl;
use crate::ftl::dftl::{DemandOptions, Dftl};
use crate::ftl::fast::{FastFtl, FastOptions, log_block_map_bytes};
use crate::nand::Medium;
use crate::nand::timing::Latency;
use crate::placement::AnyPlacement;
use crate::registry::{PolicyName, SpecError};
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;
use crate::victim::AnyVictim;

/// The demand-paged FTL behind a buffer with which it shares the DRAM.
pub(super) type SharedDftl = Dftl<SimulatedMedium, AnyPlacement, AnyVictim, MapSide>;
/// The hybrid FTL behind a buffer with which its log's map shares the DRAM.
pub(super) type SharedFastFtl = FastFtl<SimulatedMedium, MapSide>;

/// The write buffer that a specification asks for, built for at most `frames`.
fn buffer(spec: &DeviceSpec, frames: u32, geometry: &Geometry) -> Result<AnyBuffer, SpecError> {
    let context = BufferContext { frames, pages_per_block: geometry.pages_per_block() };
    build_buffer(spec.dram.buffer.as_ref().unwrap_or(&PolicyName::plain("lru")), &context)
}

/// An FTL whose map is not in the DRAM that is shared, with a buffer where one is asked for.
pub(super) fn with_buffer<F>(ftl: F, spec: &DeviceSpec) -> Result<Box<dyn Replay>, SpecError>
where
    F: Ftl<Medium = SimulatedMedium> + Send + 'static,
{
    if let Some(split) = &spec.dram.split {
        let (problem, fix) = if spec.dram.has_buffer() || spec.dram.size.is_none() {
            (format!("the map of {} has no share of --dram", spec.ftl.name), "use --ftl dftl, asa or fast with --dram")
        } else {
            ("without a buffer the map has all of --dram".to_owned(), "name a --buffer")
        };
        let problem = format!("\"{split}\" splits nothing: {problem}");
        return Err(SpecError::new("dram.split (--split)", problem, format!("{fix}, or leave it out")));
    }
    let Some(size) = spec.dram.size.filter(|_| spec.dram.has_buffer()) else {
        return Ok(Box::new(Ssd::new(ftl, spec.gc.idle)));
    };
    let geometry = *ftl.medium().geometry();
    let frames = u32::try_from(size.0 / u64::from(geometry.page_bytes())).unwrap_or(0);
    if frames == 0 {
        let fix = format!("give at least a page ({} bytes), and less than 2^32 pages", geometry.page_bytes());
        return Err(SpecError::new("dram.size (--dram)", format!("{size} is out of range"), fix));
    }
    let policy = buffer(spec, frames, &geometry)?;
    let buffered = WriteBuffer::new(ftl, policy, frames, ()).protect(spec.dram.power_loss_protection);
    Ok(Box::new(Ssd::new(buffered, spec.gc.idle)))
}

/// An FTL that could not take its first form.
pub(super) fn failed(error: DeviceError) -> SpecError {
    SpecError::new("device", error.to_string(), "give a larger device")
}

/// A log whose map keeps to all of the DRAM, where a size is given and no buffer takes a part.
pub(super) fn whole_for_log(parts: &DramParts<'_>, options: FastOptions) -> Result<FastOptions, SpecError> {
    let Some(size) = parts.spec.dram.size else { return Ok(options) };
    let sizes = hybrid_sizes(parts, options.log_blocks);
    if size.0 < sizes.mapping_bytes_min {
        let problem = format!("{size} does not hold the block map and the map of one log block");
        return Err(SpecError::new(
            "dram.size (--dram)",
            problem,
            format!("give at least {} bytes", sizes.mapping_bytes_min),
        ));
    }
    Ok(FastOptions { log_blocks: options.log_blocks.min(sizes.entries(size.0)), ..options })
}

/// What a hybrid map with room for `log_blocks` needs: the block map is always resident, the floor is the map of one log block.
fn hybrid_sizes(parts: &DramParts<'_>, log_blocks: u32) -> Sizes {
    let geometry = parts.plan.geometry;
    let entry_bytes = log_block_map_bytes(&geometry);
    let logical_blocks = parts.plan.logical_pages.div_ceil(geometry.pages_per_block());
    let fixed = u64::from(logical_blocks) * 4;
    Sizes {
        mapping_bytes_min: fixed + entry_bytes,
        mapping_bytes_fixed: fixed,
        entry_bytes,
        ghost_entry_bytes: entry_bytes / u64::from(geometry.pages_per_block()),
        map_pages: logical_blocks,
        map_page_entries: geometry.pages_per_block(),
        log_blocks_max: log_blocks,
        ..Sizes::new(parts.spec.dram.size.map_or(0, |size| size.0), geometry.page_bytes().into())
    }
}

/// What a shared DRAM is built from.
pub(super) struct DramParts<'a> {
    pub(super) spec: &'a DeviceSpec,
    pub(super) plan: &'a Plan,
    pub(super) latency: &'a Latency,
    pub(super) seed: u64,
}

/// The rule that splits the DRAM, and the sizes to begin with.
pub(super) struct Shared {
    rule: AnySplit,
    sizes: Sizes,
    observer: BufferSide,
    side: MapSide,
}

impl Shared {
    /// For a demand-paged map: the floor is the entries of one translation page.
    pub(super) fn of_demand(parts: &DramParts<'_>, map: &DemandOptions) -> Result<Self, SpecError> {
        let page_bytes = parts.plan.geometry.page_bytes();
        let entry_bytes = u64::from(map.cached_bytes());
        let map_page_entries = page_bytes / map.translation_entry_bytes;
        let fixed = map.fixed_bytes(parts.plan.logical_pages, page_bytes);
        let sizes = Sizes {
            mapping_bytes_min: fixed + u64::from(map_page_entries) * entry_bytes,
            mapping_bytes_fixed: fixed,
            entry_bytes,
            ghost_entry_bytes: entry_bytes,
            map_pages: map.translation_pages(parts.plan.logical_pages, page_bytes),
            map_page_entries,
            ..Sizes::new(parts.spec.dram.size.map_or(0, |size| size.0), page_bytes.into())
        };
        Self::new(parts, sizes, 1000, true)
    }

    /// For a hybrid map with room for `log_blocks`.
    pub(super) fn of_hybrid(parts: &DramParts<'_>, log_blocks: u32) -> Result<Self, SpecError> {
        Self::new(parts, hybrid_sizes(parts, log_blocks), 10_000, false)
    }

    fn new(parts: &DramParts<'_>, sizes: Sizes, paper_interval: u64, is_demand: bool) -> Result<Self, SpecError> {
        let rule_of = |dram_bytes| {
            let context = SplitContext {
                dram_bytes,
                page_bytes: sizes.page_bytes,
                paper_interval_requests: paper_interval,
                paper_unit_bytes: sizes.entry_bytes,
                is_demand,
                map_page_entries: sizes.map_page_entries,
                seed: parts.seed,
            };
            build_split(parts.spec.dram.split.as_ref().unwrap_or(&PolicyName::plain("fixed")), &context)
        };
        let rule = rule_of(sizes.dram_bytes)?;
        let least_with = |rule: &AnySplit| rule.metadata_bytes() + sizes.mapping_bytes_min + sizes.page_bytes;
        if sizes.dram_bytes < least_with(&rule) {
            // What a rule keeps may grow with the DRAM: the least that holds it is where both agree.
            let mut least = least_with(&rule);
            while let more @ 1.. = least_with(&rule_of(least)?).saturating_sub(least) {
                least += more;
            }
            return Err(SpecError::new(
                "dram.size (--dram)",
                format!(
                    "{} bytes do not hold the rule's own {}, the map's least {} and one page",
                    sizes.dram_bytes,
                    rule.metadata_bytes(),
                    sizes.mapping_bytes_min
                ),
                format!("give at least {least} bytes, or another --split"),
            ));
        }
        let sizes = Sizes { metadata_bytes: rule.metadata_bytes(), ghost_page_bytes: rule.ghost_page_bytes(), ..sizes };
        let start = (sizes.shared_bytes() as f64 * rule.start_share()) as u64;
        let sizes = sizes.with_mapping(start);
        let (observer, judge) = rule.sides(&sizes);
        Ok(Self { rule, sizes, observer, side: MapSide::new(judge) })
    }

    pub(super) fn map_side(&self) -> MapSide {
        self.side.clone()
    }

    /// A cache for the first size that may grow to the largest.
    pub(super) fn demand_options(&self, map: DemandOptions) -> DemandOptions {
        let (now, most) = (self.sizes.mapping_bytes, self.sizes.mapping_bytes_max());
        DemandOptions { cache_bytes: now, cache_bytes_max: most, ..map }
    }

    /// A log of the first size, as far as blocks allow.
    pub(super) fn hybrid_options(&self, options: FastOptions) -> FastOptions {
        let entries = self.sizes.entries(self.sizes.mapping_bytes);
        FastOptions { log_blocks: options.log_blocks.min(entries).max(1), ..options }
    }

    /// The device over `ftl`.
    pub(super) fn finish<F>(self, ftl: F, parts: &DramParts<'_>) -> Result<Box<dyn Replay>, SpecError>
    where
        F: MappingSpace + Ftl<Medium = SimulatedMedium> + Send + 'static,
    {
        let policy = buffer(parts.spec, self.sizes.frames_max(), &parts.plan.geometry)?;
        let shared =
            Partition::new(ftl, policy, self.observer, self.rule, self.sizes, parts.latency).map_err(failed)?;
        Ok(Box::new(Ssd::new(shared.protect(parts.spec.dram.power_loss_protection), parts.spec.gc.idle)))
    }
}
