//! From a specification to a device: the one place that names types.

mod dram;
mod names;
mod sections;

pub use names::{check_name, check_names};
pub use sections::SECTIONS;

use crate::address::{Geometry, MAX_PAGES};
use crate::device::{BlockDevice, DeviceError, Replay};
use crate::ftl::{
    AnyDesign, Design as _, Found, Ftl, FtlParts, FtlPlan, Reserve, Uses, WishedDram, Wishes, read_design,
};
use crate::nand::Medium;
use crate::nand::array::NandArray;
use crate::nand::clock::Clock as _;
use crate::nand::content::Nothing;
use crate::nand::payload::{AnyPayload, HeapBytes, NoBytes, Payload};
use crate::nand::timing::{Latency, TIMINGS, TimeMode, Timed};
use crate::placement::{AnyPlacement, Future, Placement, PlacementContext, SharedPlacement, build_placement};
use crate::registry::{SpecError, find};
use crate::spec::{self, DeviceSpec, Specification as _, TimingSection};
use crate::ssd::Ssd;
use crate::store::StoreOptions;
use crate::victim::{SharedVictim, VictimContext, build_victim};
use std::sync::Arc;

/// What a device depends on beside its specification.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Logical size where the specification gives none: the span of the trace.
    pub logical_bytes: u64,
    /// Seed of the run.
    pub seed: u64,
    /// When every page is written next, for placement by future writes.
    pub future: Option<Arc<Future>>,
    /// What decides where a specification names the placement `external`.
    pub placement: Option<SharedPlacement>,
    /// What decides where a specification names the victim policy `external`.
    pub victim: Option<SharedVictim>,
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
    /// What [`Placement::learns_for`] says.
    pub learns_for: u32,
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

/// Checks the page size, which surveys of a trace need before a device is planned; returns its logarithm.
///
/// # Errors
/// No power of two, or out of range.
pub fn check_page_size(bytes: u64) -> Result<u8, SpecError> {
    DeviceSpec::row("device.page_size").expect("a key of the device").check(&bytes.to_string())?;
    Ok(bytes.trailing_zeros() as u8)
}

/// T for U logical pages.
fn target_pages(spec: &DeviceSpec, logical_pages: u32) -> f64 {
    let logical = f64::from(logical_pages);
    match spec.device.spare {
        Some(spare) => logical / (1.0 - spare.0),
        None => logical * (1.0 + spec.device.over_provisioning.map_or(DEFAULT_OVER_PROVISIONING, |op| op.0)),
    }
}

/// The shape of a device, without the collector's reserve.
fn shape(spec: &DeviceSpec, logical_bytes: u64) -> Result<(Geometry, u32), SpecError> {
    let device = &spec.device;
    let log2_page_bytes = device.page_size.0.trailing_zeros() as u8;
    let log2_block = device.pages_per_block.trailing_zeros() as u8;
    let logical_bytes = device.logical_size.map_or(logical_bytes, |size| size.0);
    let logical_pages = logical_bytes.div_ceil(device.page_size.0);
    let logical_pages =
        u32::try_from(logical_pages).ok().filter(|p| (1..MAX_PAGES / 2).contains(p)).ok_or_else(|| {
            SpecError::new(
                "device.logical_size",
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
    let pages = target_pages(spec, logical_pages);
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
    store: StoreOptions,
    placement: AnyPlacement,
    ftl: AnyDesign,
}

/// Refuses policies that are given though the FTL has no use for them.
fn check_uses(spec: &DeviceSpec, uses: Uses) -> Result<(), SpecError> {
    let default = DeviceSpec::default();
    for (key, is_used, given, only) in [
        ("placement", uses.placement, &spec.placement.name, &default.placement.name),
        ("gc.victim", uses.victim, &spec.gc.victim, &default.gc.victim),
    ] {
        if !is_used && given != only {
            return Err(SpecError::new(
                key,
                format!("the FTL \"{}\" has no use for \"{given}\"", spec.ftl.name.name),
                format!("leave it at \"{only}\": the FTL's own rules decide"),
            ));
        }
    }
    Ok(())
}

/// Refuses cleaning in idle time where no time passes between requests.
fn check_idle(spec: &DeviceSpec) -> Result<(), SpecError> {
    if spec.gc.idle && matches!(spec.timing.mode, TimeMode::None | TimeMode::Serial) {
        return Err(SpecError::new(
            "gc.idle",
            "no time passes between requests in timing.mode none and serial",
            "set timing.mode open or closed, or leave gc.idle out",
        ));
    }
    Ok(())
}

/// The flash translation layer that a specification asks for.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn ftl_design(spec: &DeviceSpec) -> Result<AnyDesign, SpecError> {
    let wishes = Wishes {
        cache_bytes: spec.dram.cache_bytes.map(|size| size.0),
        dram: spec.dram.size.map(|_| WishedDram { has_buffer: spec.dram.has_buffer() }),
    };
    read_design(&spec.ftl.name, &wishes)
}

/// Placement, FTL and plan of a specification.
fn prepare(spec: &DeviceSpec, environment: &Environment) -> Result<Parts, SpecError> {
    spec::check(spec)?;
    let ftl = ftl_design(spec)?;
    check_uses(spec, ftl.uses())?;
    check_idle(spec)?;
    let (mut geometry, logical_pages) = shape(spec, environment.logical_bytes)?;
    let context = PlacementContext {
        logical_pages,
        pages_per_block: geometry.pages_per_block(),
        page_bytes: geometry.page_bytes(),
        blocks: geometry.blocks,
        seed: environment.seed,
        future: environment.future.clone(),
        external: environment.placement.clone(),
    };
    let (placement, placer) = match ftl.own_placement(&context) {
        Some(own) => (own, &spec.ftl.name),
        None => (build_placement(&spec.placement.name, &context)?, &spec.placement.name),
    };
    let physical_pages = geometry.pages();
    let area = ftl.meta_area(&geometry, logical_pages)?;
    let spare_blocks = geometry.blocks - logical_pages.div_ceil(geometry.pages_per_block());
    let streams = u32::from(placement.streams());
    if streams > spare_blocks.max(1) {
        return Err(SpecError::new(
            "placement",
            format!("{placer} has {streams} open blocks, the spare space is {spare_blocks} blocks"),
            "give more device.over_provisioning, fewer device.pages_per_block or a larger device",
        ));
    }
    let Reserve { least, default } = ftl.reserve(u32::from(placement.gc_streams().max(1)));
    let default = default + if spec.device.endurance > 0 { FAILED_ERASES } else { 0 };
    let reserve_blocks = spec.gc.floor.unwrap_or(default);
    if !(least..=65_536).contains(&reserve_blocks) {
        return Err(SpecError::new(
            "gc.floor",
            format!("{reserve_blocks} free blocks are out of range with this FTL"),
            format!("give {least} to 65536 blocks, or leave it out for {default}"),
        ));
    }
    geometry.blocks += reserve_blocks + area.on_top;
    let (used, logical) = (f64::from(physical_pages), f64::from(logical_pages));
    let per_page = if spec.device.recovery { 13 } else { 5 };
    let memory_bytes = u64::from(logical_pages) * 4
        + u64::from(geometry.pages()) * per_page
        + u64::from(geometry.blocks) * 48
        + placement.simulator_bytes()
        + placement.wanted().bytes();
    let left = used - f64::from((area.blocks - area.on_top) << geometry.log2_pages_per_block);
    let plan = Plan {
        geometry,
        logical_pages,
        physical_pages,
        reserve_blocks,
        streams,
        learns_for: placement.learns_for(),
        over_provisioning: (used - logical) / logical,
        spare: (used - logical) / used,
        translation_blocks: area.blocks,
        spare_left: (left - logical) / left,
        memory_bytes,
    };
    let store = StoreOptions {
        floor: reserve_blocks,
        age: spec.gc.age,
        meta_streams: u16::from(area.blocks > 0),
        meta_blocks: area.blocks,
        wear_threshold: spec.wear.leveling.then_some(spec.wear.threshold),
    };
    Ok(Parts { plan, store, placement, ftl })
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
    let of_preset = find(TIMINGS, "timing.preset", &preset)?.build.latency;
    Ok(Latency {
        read_ns: timing.read_ns.unwrap_or(of_preset.read_ns),
        program_ns: timing.program_ns.unwrap_or(of_preset.program_ns),
        erase_ns: timing.erase_ns.unwrap_or(of_preset.erase_ns),
        transfer_ns: timing.transfer_ns.unwrap_or(of_preset.transfer_ns),
    })
}

/// Builds the device that `spec` describes, for replay.
///
/// # Errors
/// Anything wrong with the specification: the error names the key, what is wrong and what would be right.
pub fn build(spec: &DeviceSpec, environment: &Environment) -> Result<Box<dyn Replay>, SpecError> {
    assemble(spec, environment, |_| Ok(Array::New(NoBytes)), ForReplay)
}

/// Builds the device that `spec` describes, with its bytes in memory.
///
/// # Errors
/// As [`build`]; and `dram.power_loss_protection`, which needs somebody who writes the buffer out.
pub fn build_with_bytes(spec: &DeviceSpec, environment: &Environment) -> Result<Box<dyn BlockDevice>, SpecError> {
    if spec.dram.power_loss_protection {
        return Err(SpecError::new(
            "dram.power_loss_protection",
            "a device that keeps bytes in memory cannot write its buffer out when power fails",
            "leave it false",
        ));
    }
    Ok(build_over(spec, environment, |geometry| Ok(Array::New(in_memory(geometry))))?)
}

/// Pages of bytes in memory, for an array of this shape.
pub fn in_memory(geometry: &Geometry) -> AnyPayload {
    Box::new(HeapBytes::new(geometry.pages(), geometry.log2_page_bytes))
}

/// Builds the device that `spec` describes, over bytes that are kept elsewhere: `array` is asked for them once the shape is known.
///
/// # Errors
/// As [`build`]; what `array` refuses, or an array that fails while a device takes it over.
///
/// # Panics
/// If the array that another device left has another shape.
pub fn build_over(
    spec: &DeviceSpec,
    environment: &Environment,
    array: impl FnOnce(&Geometry) -> Result<Array<AnyPayload>, SpecError>,
) -> Result<Box<dyn HeldDevice>, SpecError> {
    // The SSD is compiled here, not where `array` is known.
    let mut array = Some(array);
    held(spec, environment, &mut |geometry| (array.take().expect("asked once"))(geometry))
}

type AskArray<'a> = &'a mut dyn FnMut(&Geometry) -> Result<Array<AnyPayload>, SpecError>;

fn held(spec: &DeviceSpec, environment: &Environment, array: AskArray<'_>) -> Result<Box<dyn HeldDevice>, SpecError> {
    assemble(spec, environment, array, ForBytes)
}

/// A device that holds bytes, and the array that it keeps them in.
pub trait HeldDevice: BlockDevice {
    /// The array.
    fn array(&self) -> &NandArray<AnyPayload>;
    /// The array.
    fn array_mut(&mut self) -> &mut NandArray<AnyPayload>;
    /// The array that is left when the device ends, as a loss of power ends it.
    fn into_array(self: Box<Self>) -> NandArray<AnyPayload>;
    /// Writes everything to flash, also what a protected write buffer holds. No request, as the device sees it.
    ///
    /// # Errors
    /// The device is full or stopped.
    fn write_out(&mut self) -> Result<(), DeviceError>;
    /// How long the latest request waited at most for a plane that worked for others, in nanoseconds.
    fn waited_ns(&self) -> u64;
}

impl<F: Ftl<Medium = Timed<NandArray<AnyPayload>>> + Send> HeldDevice for Ssd<F> {
    fn array(&self) -> &NandArray<AnyPayload> {
        self.ftl().medium().inner()
    }

    fn array_mut(&mut self) -> &mut NandArray<AnyPayload> {
        self.ftl_mut().medium_mut().inner_mut()
    }

    fn into_array(self: Box<Self>) -> NandArray<AnyPayload> {
        self.into_ftl().into_medium().into_inner()
    }

    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.ftl_mut().write_out()
    }

    fn waited_ns(&self) -> u64 {
        self.ftl().medium().clock().waited_ns()
    }
}

/// The array that a device is built over.
#[derive(Debug)]
pub enum Array<P> {
    /// A new one, whose content `P` keeps.
    New(P),
    /// One that a device of the same specification left: its map is rebuilt from the OOB areas.
    Left(Box<NandArray<P>>),
}

/// What is made of an SSD once it is built, whatever the type of its FTL.
trait Finish<M: Medium> {
    /// What is made.
    type Device;
    /// Makes it.
    fn finish<F: Ftl<Medium = M> + Send + 'static>(self, ssd: Ssd<F>) -> Self::Device;
}

/// A device that replays.
struct ForReplay;

impl<M: Medium<Content = Nothing>> Finish<M> for ForReplay {
    type Device = Box<dyn Replay>;
    fn finish<F: Ftl<Medium = M> + Send + 'static>(self, ssd: Ssd<F>) -> Self::Device {
        Box::new(ssd)
    }
}

/// A device that holds bytes.
struct ForBytes;

impl Finish<Timed<NandArray<AnyPayload>>> for ForBytes {
    type Device = Box<dyn HeldDevice>;
    fn finish<F: Ftl<Medium = Timed<NandArray<AnyPayload>>> + Send + 'static>(self, ssd: Ssd<F>) -> Self::Device {
        Box::new(ssd)
    }
}

/// Builds the device that `spec` describes, whatever its pages hold: `array` is asked for what keeps their content, once the
/// shape is known, and `finish` for what is made of the SSD.
fn assemble<P, K>(
    spec: &DeviceSpec,
    environment: &Environment,
    array: impl FnOnce(&Geometry) -> Result<Array<P>, SpecError>,
    finish: K,
) -> Result<K::Device, SpecError>
where
    P: Payload + 'static,
    K: Finish<Timed<NandArray<P>>>,
{
    let Parts { plan, store, placement, ftl } = prepare(spec, environment)?;
    let geometry = plan.geometry;
    let context = VictimContext {
        blocks: geometry.blocks,
        pages_per_block: geometry.pages_per_block(),
        logical_pages: plan.logical_pages,
        seed: environment.seed,
        external: environment.victim.clone(),
    };
    let victim = build_victim(&spec.gc.victim, &context)?;
    let (array, found) = match array(&geometry)? {
        // Bytes can always be found again after a loss of power.
        Array::New(payload) => {
            let recovery = spec.device.recovery || payload.needs_recovery();
            (NandArray::new(geometry, spec.device.endurance, recovery, payload), Found::Nothing)
        }
        Array::Left(array) => (*array, Found::Written),
    };
    assert_eq!(*array.geometry(), geometry, "the array has another shape than its specification");
    let latency = latency(&spec.timing)?;
    let medium = Timed::new(array, latency, spec.timing.options());
    let plan = FtlPlan { geometry, logical_pages: plan.logical_pages, store };
    let parts = FtlParts { medium, found, placement, victim, plan, map_bytes: None };
    dram::build(ftl, parts, spec, &latency, environment.seed, finish)
}
