//! The DRAM of a device: none, a buffer in front of any FTL, or one that shares the DRAM with the map.

use super::Finish;
use crate::dram::buffer::{AnyBuffer, BufferContext, build_buffer};
use crate::dram::partition::sides::{BufferSide, MapSide};
use crate::dram::partition::{AnySplit, Sizes, SplitContext, SplitRule, build_split};
use crate::dram::{Partition, WriteBuffer};
use crate::ftl::{AnyDesign, Design as _, Ftl, FtlParts, MapBytes, MapSizes, MappingSpace, Receive};
use crate::nand::Medium;
use crate::nand::timing::Latency;
use crate::registry::{PolicyName, SpecError};
use crate::spec::DeviceSpec;
use crate::ssd::Ssd;

/// Builds `ftl` and the DRAM before it.
pub(super) fn build<M, K>(
    ftl: AnyDesign,
    mut parts: FtlParts<M>,
    spec: &DeviceSpec,
    latency: &Latency,
    seed: u64,
    finish: K,
) -> Result<K::Device, SpecError>
where
    M: Medium + Send + 'static,
    K: Finish<M>,
{
    let has_buffer = spec.dram.has_buffer();
    let sizes = if has_buffer { ftl.map_sizes(&parts.plan)? } else { None };
    if let Some(sizes) = sizes {
        let page_bytes = parts.plan.geometry.page_bytes();
        let shared = Shared::new(spec, seed, page_bytes.into(), sizes)?;
        parts.map_bytes = Some(MapBytes { now: shared.sizes.mapping_bytes, most: shared.sizes.mapping_bytes_max() });
        return ftl.build(parts, IntoShared { spec, latency, shared, finish });
    }
    if !has_buffer {
        // Without a buffer the map has all of the DRAM.
        parts.map_bytes = spec.dram.size.map(|size| MapBytes { now: size.0, most: 0 });
    }
    ftl.build(parts, IntoSsd { spec, finish })
}

/// The write buffer that a specification asks for, built for at most `frames`.
fn buffer(spec: &DeviceSpec, frames: u32, pages_per_block: u32) -> Result<AnyBuffer, SpecError> {
    let context = BufferContext { frames, pages_per_block };
    build_buffer(spec.dram.buffer.as_ref().unwrap_or(&PolicyName::plain("lru")), &context)
}

/// An FTL whose map has no share of a DRAM, with a buffer where one is asked for.
struct IntoSsd<'a, K> {
    spec: &'a DeviceSpec,
    finish: K,
}

impl<M: Medium, K: Finish<M>> Receive<M> for IntoSsd<'_, K> {
    type Output = K::Device;
    type Side = ();

    fn side(&self) {}

    fn take(self, ftl: impl Ftl<Medium = M> + Send + 'static) -> Result<K::Device, SpecError> {
        let spec = self.spec;
        refuse_idle_split(spec)?;
        let Some(size) = spec.dram.size.filter(|_| spec.dram.has_buffer()) else {
            return Ok(self.finish.finish(Ssd::new(ftl, spec.gc.idle)));
        };
        let geometry = *ftl.medium().geometry();
        let frames = u32::try_from(size.0 / u64::from(geometry.page_bytes())).unwrap_or(0);
        if frames == 0 {
            let fix = format!("give at least a page ({} bytes), and less than 2^32 pages", geometry.page_bytes());
            return Err(SpecError::new("dram.size", format!("{size} is out of range"), fix));
        }
        let policy = buffer(spec, frames, geometry.pages_per_block())?;
        let buffered = WriteBuffer::new(ftl, policy, frames, ()).protect(spec.dram.power_loss_protection);
        Ok(self.finish.finish(Ssd::new(buffered, spec.gc.idle)))
    }

    fn take_space(
        self,
        ftl: impl MappingSpace<Medium = M, Side = ()> + Send + 'static,
    ) -> Result<K::Device, SpecError> {
        self.take(ftl)
    }
}

/// A split that splits nothing is a slip.
fn refuse_idle_split(spec: &DeviceSpec) -> Result<(), SpecError> {
    let Some(split) = &spec.dram.split else { return Ok(()) };
    let (problem, fix) = if spec.dram.has_buffer() || spec.dram.size.is_none() {
        (
            format!("the map of {} has no share of dram.size", spec.ftl.name),
            "use the FTL dftl, asa or fast with dram.size",
        )
    } else {
        ("without a buffer the map has all of dram.size".to_owned(), "name a dram.buffer")
    };
    let problem = format!("\"{split}\" splits nothing: {problem}");
    Err(SpecError::new("dram.split", problem, format!("{fix}, or leave it out")))
}

/// The rule that splits the DRAM, and the sizes to begin with.
struct Shared {
    rule: AnySplit,
    sizes: Sizes,
    observer: BufferSide,
    side: MapSide,
}

impl Shared {
    fn new(spec: &DeviceSpec, seed: u64, page_bytes: u64, map: MapSizes) -> Result<Self, SpecError> {
        let dram_bytes = spec.dram.size.map_or(0, |size| size.0);
        let sizes = Sizes {
            mapping_bytes_min: map.least_bytes,
            mapping_bytes_fixed: map.fixed_bytes,
            entry_bytes: map.entry_bytes,
            ghost_entry_bytes: map.ghost_entry_bytes,
            map_pages: map.map_pages,
            map_page_entries: map.map_page_entries,
            log_blocks_max: map.log_blocks_max,
            ..Sizes::new(dram_bytes, page_bytes)
        };
        let rule_of = |dram_bytes| {
            let context = SplitContext {
                dram_bytes,
                page_bytes,
                paper_interval_requests: map.paper_interval_requests,
                paper_unit_bytes: sizes.entry_bytes,
                is_demand: map.log_blocks_max == 0,
                map_page_entries: sizes.map_page_entries,
                seed,
            };
            build_split(spec.dram.split.as_ref().unwrap_or(&PolicyName::plain("fixed")), &context)
        };
        let rule = rule_of(dram_bytes)?;
        let least_with = |rule: &AnySplit| rule.metadata_bytes() + sizes.mapping_bytes_min + sizes.page_bytes;
        if sizes.dram_bytes < least_with(&rule) {
            // What a rule keeps may grow with the DRAM: the least that holds it is where both agree.
            let mut least = least_with(&rule);
            while let more @ 1.. = least_with(&rule_of(least)?).saturating_sub(least) {
                least += more;
            }
            return Err(SpecError::new(
                "dram.size",
                format!(
                    "{} bytes do not hold the rule's own {}, the map's least {} and one page",
                    sizes.dram_bytes,
                    rule.metadata_bytes(),
                    sizes.mapping_bytes_min
                ),
                format!("give at least {least} bytes, or another dram.split"),
            ));
        }
        let sizes = Sizes { metadata_bytes: rule.metadata_bytes(), ghost_page_bytes: rule.ghost_page_bytes(), ..sizes };
        let start = (sizes.shared_bytes() as f64 * rule.start_share()) as u64;
        let sizes = sizes.with_mapping(start);
        let (observer, judge) = rule.sides(&sizes);
        Ok(Self { rule, sizes, observer, side: MapSide::new(judge) })
    }
}

/// An FTL whose map shares the DRAM with a buffer.
struct IntoShared<'a, K> {
    spec: &'a DeviceSpec,
    latency: &'a Latency,
    shared: Shared,
    finish: K,
}

impl<M: Medium, K: Finish<M>> Receive<M> for IntoShared<'_, K> {
    type Output = K::Device;
    type Side = MapSide;

    fn side(&self) -> MapSide {
        self.shared.side.clone()
    }

    fn take(self, _: impl Ftl<Medium = M> + Send + 'static) -> Result<K::Device, SpecError> {
        unreachable!("an FTL that states the sizes of its map takes a share of the DRAM")
    }

    fn take_space(
        self,
        ftl: impl MappingSpace<Medium = M, Side = MapSide> + Send + 'static,
    ) -> Result<K::Device, SpecError> {
        let Self { spec, latency, shared: Shared { rule, sizes, observer, .. }, finish } = self;
        let policy = buffer(spec, sizes.frames_max(), ftl.medium().geometry().pages_per_block())?;
        let partition = Partition::new(ftl, policy, observer, rule, sizes, latency)?;
        Ok(finish.finish(Ssd::new(partition.protect(spec.dram.power_loss_protection), spec.gc.idle)))
    }
}
