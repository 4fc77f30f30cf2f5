//! From a specification to a device: the one place that names types.

mod dram;
mod names;

pub use names::{check_name, check_names};

use crate::address::{Geometry, MAX_PAGES};
use crate::device::Replay;
use crate::ftl::dftl::{DemandOptions, Dftl, TranslationSpace};
use crate::ftl::fast::{FastFtl, RESERVE_BLOCKS};
use crate::ftl::page::PageFtl;
use crate::ftl::{FTLS, FtlOptions};
use crate::nand::array::NandArray;
use crate::nand::payload::NoBytes;
use crate::nand::timing::{Latency, TIMINGS, Timed};
use crate::placement::asa::{Asa, AsaOptions, Keeps};
use crate::placement::{AnyPlacement, Future, Placement, PlacementContext, build_placement};
use crate::registry::{Parameters, PolicyName, SpecError, find};
use crate::spec::{DeviceSpec, TimingSection};
use crate::store::StoreOptions;
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

/// Free blocks beyond the others where blocks wear out: a victim whose erase fails has taken room and gives none back, and as
/// many may fail in a row.
const FAILED_ERASES: u32 = 4;

fn power_of_two(key: &str, value: u64, least: u64, most: u64) -> Result<u8, SpecError> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(value.trailing_zeros() as u8);
    }
    Err(SpecError::new(key, format!("{value} is not allowed"), format!("give a power of two from {least} to {most}")))
}

/// Checks the page size, which surveys of a trace need before a device is planned; returns its logarithm.
///
/// # Errors
/// No power of two, or out of range.
pub fn check_page_size(bytes: u64) -> Result<u8, SpecError> {
    power_of_two("device.page_size (--page-size)", bytes, 512, 16 << 20)
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
    let log2_page_bytes = check_page_size(device.page_size.0)?;
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

/// Who places pages.
fn placer<'a>(spec: &'a DeviceSpec, ftl: &FtlOptions) -> &'a PolicyName {
    if matches!(ftl, FtlOptions::Demand { asa: Some(_), .. }) { &spec.ftl.name } else { &spec.placement.name }
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

/// What a specification asks of its flash translation layer.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn ftl_options(spec: &DeviceSpec) -> Result<FtlOptions, SpecError> {
    let entry = find(FTLS, "ftl", &spec.ftl.name)?;
    (entry.build)(&Parameters::new(&spec.ftl.name, entry.parameters)?, spec)
}

/// Placement, FTL and plan of a specification.
fn prepare(spec: &DeviceSpec, environment: &Environment) -> Result<Parts, SpecError> {
    let ftl = ftl_options(spec)?;
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
            format!("{} has {streams} open blocks, the spare space is {spare_blocks} blocks", placer(spec, &ftl)),
            "give more over-provisioning (--op), smaller blocks (--pages-per-block) or a larger device",
        ));
    }
    let for_copies = u32::from(placement.gc_streams().max(1));
    let (least, default) = match ftl {
        FtlOptions::Page => (1, for_copies),
        FtlOptions::Demand { .. } => (DemandOptions::FLOOR_MIN, for_copies + DemandOptions::RESERVE_BLOCKS),
        FtlOptions::Hybrid(_) => (RESERVE_BLOCKS, RESERVE_BLOCKS.max(for_copies)),
    };
    let default = default + if spec.device.endurance > 0 { FAILED_ERASES } else { 0 };
    let reserve_blocks = spec.gc.floor.unwrap_or(default);
    if !(least..=65_536).contains(&reserve_blocks) {
        return Err(SpecError::new(
            "gc.floor",
            format!("{reserve_blocks} free blocks are out of range with this FTL"),
            format!("give {least} to 65536 blocks, or leave it out for {default}"),
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
    check_names(spec)?;
    Ok(prepare(spec, environment)?.plan)
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

/// Builds the device that `spec` describes.
///
/// # Errors
/// Anything wrong with the specification: the error names the key, what is wrong and what would be right.
pub fn build(spec: &DeviceSpec, environment: &Environment) -> Result<Box<dyn Replay>, SpecError> {
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
    let options = StoreOptions {
        floor: plan.reserve_blocks,
        age: spec.gc.age,
        meta_streams: u16::from(plan.translation_blocks > 0),
        meta_blocks: plan.translation_blocks,
        wear_threshold: spec.wear.leveling.then_some(spec.wear.threshold),
    };
    let array = NandArray::without_bytes(geometry, spec.device.endurance, spec.device.recovery);
    let latency = latency(&spec.timing)?;
    let medium = Timed::new(array, latency, spec.timing.options());
    let dram_parts = dram::DramParts { spec, plan: &plan, latency: &latency, seed: environment.seed };
    Ok(match ftl {
        FtlOptions::Page => {
            let ftl = SimulatedPageFtl::new(medium, placement, victim, plan.logical_pages, options);
            dram::with_buffer(ftl, spec)?
        }
        FtlOptions::Demand { map, .. } if spec.dram.has_buffer() => {
            let shared = dram::Shared::of_demand(&dram_parts, &map)?;
            let map = shared.demand_options(map);
            let side = shared.map_side();
            let ftl = dram::SharedDftl::new(medium, placement, victim, plan.logical_pages, options, map, side)
                .map_err(dram::failed)?;
            shared.finish(ftl, &dram_parts)?
        }
        FtlOptions::Demand { map, .. } => {
            // Without a buffer the map has all of the DRAM.
            let map = DemandOptions { cache_bytes: spec.dram.size.map_or(map.cache_bytes, |size| size.0), ..map };
            let ftl = SimulatedDftl::new(medium, placement, victim, plan.logical_pages, options, map, ())
                .map_err(dram::failed)?;
            dram::with_buffer(ftl, spec)?
        }
        FtlOptions::Hybrid(hybrid) if spec.dram.has_buffer() => {
            let options = hybrid.resolve(spec, &plan)?;
            let shared = dram::Shared::of_hybrid(&dram_parts, options.log_blocks)?;
            let ftl =
                dram::SharedFastFtl::new(medium, plan.logical_pages, shared.hybrid_options(options), shared.map_side());
            shared.finish(ftl, &dram_parts)?
        }
        FtlOptions::Hybrid(hybrid) => {
            let options = dram::whole_for_log(&dram_parts, hybrid.resolve(spec, &plan)?)?;
            let ftl = SimulatedFastFtl::new(medium, plan.logical_pages, options, ());
            dram::with_buffer(ftl, spec)?
        }
    })
}
