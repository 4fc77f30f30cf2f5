//! From a specification to a device: the one place that names types.

mod log;

pub use log::plan_below;

use crate::address::{Geometry, MAX_PAGES};
use crate::device::{Device, DeviceError};
use crate::dram::buffer::{AnyBuffer, BufferContext, build_buffer};
use crate::dram::partition::sides::MapSide;
use crate::dram::partition::{AnySplit, Sizes, SplitContext, SplitRule, build_split};
use crate::dram::{Partition, WriteBuffer};
use crate::ftl::dftl::{DemandOptions, Dftl, TranslationSpace};
use crate::ftl::fast::{FastFtl, RESERVE_BLOCKS};
use crate::ftl::page::PageFtl;
use crate::ftl::{FTLS, Ftl, FtlOptions};
use crate::log::LogOptions;
use crate::nand::Medium;
use crate::nand::array::NandArray;
use crate::nand::store::NoBytes;
use crate::nand::timing::{Latency, TIMINGS, Timed};
use crate::placement::asa::{Asa, AsaOptions, Keeps};
use crate::placement::{AnyPlacement, Future, Placement, PlacementContext, build_placement};
use crate::registry::{Parameters, PolicyName, SpecError, find};
use crate::spec::{DeviceSpec, TimingSection};
use crate::ssd::Ssd;
use crate::victim::{AnyVictim, VictimContext, build_victim};
use std::sync::Arc;

/// What a device depends on beside its specification.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Logical size where the specification gives none: the span of the trace.
    pub logical_bytes: u64,
    /// Seed of the run.
    pub seed: u64,
    /// When every page is written next, for the clairvoyant placement.
    pub future: Option<Arc<Future>>,
}

/// The device that a specification describes, before it is built.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Shape of the array, the collector's reserve included.
    pub geometry: Geometry,
    /// U: pages that the host sees.
    pub logical_pages: u32,
    /// T: pages that data may fill; the reserve is on top.
    pub physical_pages: u32,
    /// Blocks that the collector keeps free, on top of T.
    pub reserve_blocks: u32,
    /// Streams that the placement writes to, each with an open block.
    pub streams: u32,
    /// (T-U)/U, after rounding to whole blocks.
    pub over_provisioning: f64,
    /// (T-U)/T, after rounding to whole blocks.
    pub spare: f64,
    /// Blocks of the translation area of a demand-paged map, its own spare included.
    pub translation_blocks: u32,
    /// The spare factor of data alone: what is left of T after translation pages, where they are not on top of it.
    pub spare_left: f64,
    /// Memory of the simulator's tables, estimated.
    pub memory_bytes: u64,
}

const DEFAULT_OVER_PROVISIONING: f64 = 0.07;

fn power_of_two(key: &str, value: u64, least: u64, most: u64) -> Result<u8, SpecError> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(value.trailing_zeros() as u8);
    }
    Err(SpecError::new(key, format!("{value} is not allowed"), format!("give a power of two from {least} to {most}")))
}

/// T for U logical pages.
fn target_pages(spec: &DeviceSpec, logical_pages: u32) -> Result<f64, SpecError> {
    let logical = f64::from(logical_pages);
    match (spec.device.over_provisioning, spec.device.spare) {
        (Some(_), Some(_)) => {
            Err(SpecError::new("--op and --spare", "both are given", "give one: --op is (T-U)/U, --spare is (T-U)/T"))
        }
        (Some(op), _) if op.0 > 0.0 && op.0 <= 10.0 => Ok(logical * (1.0 + op.0)),
        (Some(op), _) => Err(SpecError::new(
            "device.over_provisioning (--op)",
            format!("{op} is out of range"),
            "give more than 0 and at most 1000%: without spare space nothing can be cleaned",
        )),
        (_, Some(spare)) if spare.0 > 0.0 && spare.0 < 0.95 => Ok(logical / (1.0 - spare.0)),
        (_, Some(spare)) => Err(SpecError::new(
            "device.spare (--spare)",
            format!("{spare} is out of range"),
            "give more than 0 and less than 95%: without spare space nothing can be cleaned",
        )),
        (None, None) => Ok(logical * (1.0 + DEFAULT_OVER_PROVISIONING)),
    }
}

/// The shape of a device, without the collector's reserve.
fn shape(spec: &DeviceSpec, logical_bytes: u64) -> Result<(Geometry, u32), SpecError> {
    let device = &spec.device;
    let log2_page_bytes = power_of_two("device.page_size", device.page_size.0, 512, 16 << 20)?;
    let log2_block = power_of_two("device.pages_per_block", device.pages_per_block.into(), 2, 32768)?;
    power_of_two("device.channels", device.channels.into(), 1, 256)?;
    power_of_two("device.dies_per_channel", device.dies_per_channel.into(), 1, 256)?;
    power_of_two("device.planes_per_die", device.planes_per_die.into(), 1, 16)?;
    let logical_bytes = device.logical_size.map_or(logical_bytes, |size| size.0);
    let logical_pages = logical_bytes.div_ceil(device.page_size.0);
    let logical_pages =
        u32::try_from(logical_pages).ok().filter(|p| (1..MAX_PAGES / 2).contains(p)).ok_or_else(|| {
            SpecError::new(
                "device.logical_size (--logical-size)",
                format!("{logical_bytes} bytes are {logical_pages} pages"),
                format!("give at least one page and fewer than {} pages; larger pages hold more", MAX_PAGES / 2),
            )
        })?;
    let mut geometry = Geometry {
        blocks: 0,
        log2_pages_per_block: log2_block,
        log2_page_bytes,
        spare_bytes: device.spare_bytes,
        channels: device.channels,
        dies_per_channel: device.dies_per_channel,
        planes_per_die: device.planes_per_die,
        striping: device.striping,
    };
    if device.striping == crate::address::Striping::Superblock {
        geometry.log2_pages_per_block += geometry.planes().trailing_zeros() as u8;
    }
    if geometry.log2_pages_per_block > 15 {
        return Err(SpecError::new(
            "device",
            format!("a superblock would have {} pages", 1u64 << geometry.log2_pages_per_block),
            "at most 32768: use fewer planes or pages per block, or striping = \"per_die\"",
        ));
    }
    let pages = target_pages(spec, logical_pages)?;
    let needed = (logical_pages >> geometry.log2_pages_per_block) + 1;
    geometry.blocks = ((pages / f64::from(geometry.pages_per_block())).round() as u32).max(needed);
    if u64::from(geometry.blocks) << geometry.log2_pages_per_block >= u64::from(MAX_PAGES) {
        return Err(SpecError::new(
            "device",
            format!("{pages:.0} physical pages are too many"),
            format!("at most {MAX_PAGES}: use larger pages or less over-provisioning"),
        ));
    }
    Ok((geometry, logical_pages))
}

/// What a specification is made of, before any of it is built.
struct Parts {
    plan: Plan,
    placement: AnyPlacement,
    ftl: FtlOptions,
}

/// Blocks of the translation area, and how many of them come on top of T.
fn translation_blocks(ftl: &FtlOptions, geometry: &Geometry, logical_pages: u32) -> Result<(u32, u32), SpecError> {
    let FtlOptions::Demand { map: options, .. } = ftl else { return Ok((0, 0)) };
    options.check(logical_pages, geometry.page_bytes())?;
    let blocks = options.translation_blocks(logical_pages, geometry.page_bytes(), geometry.pages_per_block());
    if options.translation_space == TranslationSpace::OnTop {
        return Ok((blocks, blocks));
    }
    if blocks + logical_pages.div_ceil(geometry.pages_per_block()) >= geometry.blocks {
        return Err(SpecError::new(
            "ftl:translation_space",
            format!("{blocks} blocks of translation pages leave no spare space"),
            "give more over-provisioning (--op), or translation_space=on_top",
        ));
    }
    Ok((blocks, 0))
}

/// The placement that ASA-FTL brings along.
fn own_placement(
    spec: &DeviceSpec,
    options: AsaOptions,
    context: &PlacementContext,
) -> Result<AnyPlacement, SpecError> {
    let default = DeviceSpec::default().placement.name;
    if spec.placement.name != default {
        return Err(SpecError::new(
            "placement",
            format!("{} is given, but the FTL places pages itself", spec.placement.name),
            format!("leave --placement out (or \"{default}\"), or use --ftl dftl"),
        ));
    }
    Ok(AnyPlacement::Asa(Asa::new(options, context.logical_pages, context.seed, Keeps::InTranslationPages)))
}

/// Placement, FTL and plan of a specification.
fn prepare(spec: &DeviceSpec, environment: &Environment) -> Result<Parts, SpecError> {
    let entry = find(FTLS, "ftl", &spec.ftl.name)?;
    let ftl = (entry.build)(&Parameters::new(&spec.ftl.name, entry.parameters)?, spec)?;
    let (mut geometry, logical_pages) = shape(spec, environment.logical_bytes)?;
    let context = PlacementContext {
        logical_pages,
        pages_per_block: geometry.pages_per_block(),
        page_bytes: geometry.page_bytes(),
        blocks: geometry.blocks,
        seed: environment.seed,
        future: environment.future.clone(),
    };
    let placement = match ftl {
        FtlOptions::Demand { asa: Some(options), .. } => own_placement(spec, options, &context)?,
        _ => build_placement(&spec.placement.name, &context)?,
    };
    let physical_pages = geometry.pages();
    let (translation_blocks, blocks_on_top) = translation_blocks(&ftl, &geometry, logical_pages)?;
    let spare_blocks = geometry.blocks - logical_pages.div_ceil(geometry.pages_per_block());
    let streams = u32::from(placement.streams());
    if streams > spare_blocks.max(1) {
        return Err(SpecError::new(
            "placement",
            format!("{} has {streams} open blocks, the spare space is {spare_blocks} blocks", spec.placement.name),
            "give more over-provisioning (--op), smaller blocks (--pages-per-block) or a larger device",
        ));
    }
    let for_copies = u32::from(placement.gc_streams().max(1));
    let (least, default) = match ftl {
        FtlOptions::Page => (1, for_copies),
        FtlOptions::Demand { .. } => (1, for_copies + DemandOptions::RESERVE_BLOCKS),
        FtlOptions::Hybrid(_) => (RESERVE_BLOCKS, RESERVE_BLOCKS.max(for_copies)),
    };
    let reserve_blocks = spec.gc.floor.unwrap_or(default);
    if !(least..=65_536).contains(&reserve_blocks) {
        return Err(SpecError::new(
            "gc.floor",
            format!("{reserve_blocks} is out of range"),
            format!("give {least} to 65536 blocks"),
        ));
    }
    geometry.blocks += reserve_blocks + blocks_on_top;
    let (used, logical) = (f64::from(physical_pages), f64::from(logical_pages));
    let per_page = if spec.device.recovery { 13 } else { 5 };
    let memory_bytes = u64::from(logical_pages) * 4
        + u64::from(geometry.pages()) * per_page
        + u64::from(geometry.blocks) * 48
        + placement.memory_bytes();
    let left = used - f64::from((translation_blocks - blocks_on_top) << geometry.log2_pages_per_block);
    let plan = Plan {
        geometry,
        logical_pages,
        physical_pages,
        reserve_blocks,
        streams,
        over_provisioning: (used - logical) / logical,
        spare: (used - logical) / used,
        translation_blocks,
        spare_left: (left - logical) / left,
        memory_bytes,
    };
    Ok(Parts { plan, placement, ftl })
}

/// The device that `spec` describes, with every default decided, without building it.
///
/// # Errors
/// Anything wrong with the specification.
pub fn plan(spec: &DeviceSpec, environment: &Environment) -> Result<Plan, SpecError> {
    let Some(section) = &spec.log else { return Ok(prepare(spec, environment)?.plan) };
    log::plan(spec, section, environment)
}

/// Latencies in force: the preset's, with the given ones over it.
fn latency(timing: &TimingSection) -> Result<Latency, SpecError> {
    let preset = timing.preset.parse()?;
    let entry = find(TIMINGS, "timing.preset (--timing)", &preset)?;
    if timing.queue_depth == 0 || timing.queue_depth > 65_536 {
        return Err(SpecError::new(
            "timing.queue_depth",
            format!("{} is out of range", timing.queue_depth),
            "give 1 to 65536 requests",
        ));
    }
    Ok(Latency {
        read_ns: timing.read_ns.unwrap_or(entry.build.read_ns),
        program_ns: timing.program_ns.unwrap_or(entry.build.program_ns),
        erase_ns: timing.erase_ns.unwrap_or(entry.build.erase_ns),
        transfer_ns: timing.transfer_ns.unwrap_or(entry.build.transfer_ns),
    })
}

/// The medium of simulated devices.
pub type SimulatedMedium = Timed<NandArray<NoBytes>>;
/// The page-mapped FTL that specifications build.
pub type SimulatedPageFtl = PageFtl<SimulatedMedium, AnyPlacement, AnyVictim>;
/// The demand-paged FTL that specifications build.
pub type SimulatedDftl = Dftl<SimulatedMedium, AnyPlacement, AnyVictim>;
/// The hybrid FTL that specifications build.
pub type SimulatedFastFtl = FastFtl<SimulatedMedium>;

/// The demand-paged FTL behind a buffer with which it shares the DRAM.
pub type SharedDftl = Dftl<SimulatedMedium, AnyPlacement, AnyVictim, MapSide>;

/// The write buffer that a specification asks for, built for at most `frames`.
fn buffer(spec: &DeviceSpec, frames: u32, geometry: &Geometry) -> Result<AnyBuffer, SpecError> {
    let context = BufferContext { frames, pages_per_block: geometry.pages_per_block() };
    build_buffer(spec.dram.buffer.as_ref().unwrap_or(&PolicyName::plain("lru")), &context)
}

/// An FTL whose map is not in the DRAM that is shared, with a buffer where one is asked for.
fn finish<F>(ftl: F, spec: &DeviceSpec) -> Result<Box<dyn Device>, SpecError>
where
    F: Ftl<Medium = SimulatedMedium> + Send + 'static,
{
    if let Some(split) = &spec.dram.split {
        let problem = format!("\"{split}\" splits nothing: the map of {} has no share of --dram", spec.ftl.name);
        return Err(SpecError::new("dram.split (--split)", problem, "use --ftl dftl with --dram, or leave it out"));
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

/// The rule that splits the DRAM, and the sizes to begin with.
fn split(
    spec: &DeviceSpec,
    geometry: &Geometry,
    map: &DemandOptions,
    plan: &Plan,
    seed: u64,
) -> Result<(AnySplit, Sizes), SpecError> {
    let page_bytes = u64::from(geometry.page_bytes());
    let dram_bytes = spec.dram.size.map_or(0, |size| size.0);
    let entry_bytes = u64::from(map.cached_bytes());
    let context =
        SplitContext { dram_bytes, page_bytes, paper_interval_requests: 1000, paper_unit_bytes: entry_bytes, seed };
    let rule = build_split(spec.dram.split.as_ref().unwrap_or(&PolicyName::plain("fixed")), &context)?;
    // The floor of the map: the entries of one translation page.
    let map_page_entries = geometry.page_bytes() / map.translation_entry_bytes;
    let fixed = map.fixed_bytes(plan.logical_pages, geometry.page_bytes());
    let sizes = Sizes {
        dram_bytes,
        metadata_bytes: rule.metadata_bytes(),
        mapping_bytes: 0,
        mapping_bytes_min: fixed + u64::from(map_page_entries) * entry_bytes,
        mapping_bytes_fixed: fixed,
        entry_bytes,
        page_bytes,
        map_pages: map.translation_pages(plan.logical_pages, geometry.page_bytes()),
        map_page_entries,
    };
    let least = sizes.metadata_bytes + sizes.mapping_bytes_min + page_bytes;
    if dram_bytes < least {
        return Err(SpecError::new(
            "dram.size (--dram)",
            format!(
                "{dram_bytes} bytes do not hold the rule's own {}, the directory, one translation page's entries and one page",
                sizes.metadata_bytes
            ),
            format!("give at least {least} bytes, or another --split"),
        ));
    }
    let start = (sizes.shared_bytes() as f64 * rule.start_share()) as u64;
    Ok((rule, sizes.with_mapping(start)))
}

/// Builds the device that `spec` describes.
///
/// # Errors
/// Anything wrong with the specification: the error names the key, what is wrong and what would be right.
pub fn build(spec: &DeviceSpec, environment: &Environment) -> Result<Box<dyn Device>, SpecError> {
    if let Some(section) = &spec.log {
        return log::build(spec, section, environment);
    }
    let Parts { plan, placement, ftl } = prepare(spec, environment)?;
    let geometry = plan.geometry;
    let context = VictimContext {
        blocks: geometry.blocks,
        pages_per_block: geometry.pages_per_block(),
        logical_pages: plan.logical_pages,
        seed: environment.seed,
    };
    let victim = build_victim(&spec.gc.victim, &context)?;
    if spec.wear.threshold == 0 {
        return Err(SpecError::new("wear.threshold", "0 is out of range", "give at least 1, or wear.leveling = false"));
    }
    let options = LogOptions {
        floor: plan.reserve_blocks,
        age: spec.gc.age,
        meta_streams: u16::from(plan.translation_blocks > 0),
        meta_blocks: plan.translation_blocks,
        wear_threshold: spec.wear.leveling.then_some(spec.wear.threshold),
    };
    let array = NandArray::without_bytes(geometry, spec.device.endurance, spec.device.recovery);
    let latency = latency(&spec.timing)?;
    let medium = Timed::new(array, latency, &spec.timing);
    let format_failed = |error: DeviceError| SpecError::new("device", error.to_string(), "give a larger device");
    Ok(match ftl {
        FtlOptions::Page => {
            finish(SimulatedPageFtl::new(medium, placement, victim, plan.logical_pages, options), spec)?
        }
        FtlOptions::Demand { map, .. } if spec.dram.size.is_some() && spec.dram.has_buffer() => {
            let (rule, sizes) = split(spec, &geometry, &map, &plan, environment.seed)?;
            let map =
                DemandOptions { cache_bytes: sizes.mapping_bytes, cache_bytes_max: sizes.mapping_bytes_max(), ..map };
            let (observer, judge) = rule.sides(&sizes);
            let ftl = SharedDftl::new(medium, placement, victim, plan.logical_pages, options, map, MapSide::new(judge))
                .map_err(format_failed)?;
            let policy = buffer(spec, Partition::<SharedDftl>::frames(&sizes), &geometry)?;
            let shared = Partition::new(ftl, policy, observer, rule, sizes, &latency).map_err(format_failed)?;
            Box::new(Ssd::new(shared.protect(spec.dram.power_loss_protection), spec.gc.idle))
        }
        FtlOptions::Demand { map, .. } => {
            // Without a buffer the map has all of the DRAM.
            let map = DemandOptions { cache_bytes: spec.dram.size.map_or(map.cache_bytes, |size| size.0), ..map };
            let ftl = SimulatedDftl::new(medium, placement, victim, plan.logical_pages, options, map, ())
                .map_err(format_failed)?;
            finish(ftl, spec)?
        }
        FtlOptions::Hybrid(hybrid) => {
            finish(SimulatedFastFtl::new(medium, plan.logical_pages, hybrid.resolve(spec, &plan)?, ()), spec)?
        }
    })
}
