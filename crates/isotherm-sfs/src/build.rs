//! A log and the device below it, from a specification.

use crate::below::{Below, below_bytes};
use crate::byte_store::ByteStore;
use crate::device::LogDevice;
use crate::drive::{DRIVES, Drive};
use crate::log::SegmentLog;
use crate::options::{BLOCK_BYTES, LOGS, LogChoice, LogKind, parse_log};
use crate::spec::{LogSection, SystemSpec};
use crate::summary::SUMMARY_BYTES_MIN;
use isotherm::address::MAX_PAGES;
use isotherm::build::{Environment, Plan, check_name};
use isotherm::device::{BlockDevice, Replay};
use isotherm::ftl::FTLS;
use isotherm::hotness::lifetime::Lifetimes;
use isotherm::hotness::quantise::Criterion;
use isotherm::quantity::ByteSize;
use isotherm::registry::{SpecError, find};
use isotherm::spec::{self, DeviceSpec};

/// The system that `spec` describes, with every default decided, without building it. A log and the device below it count as
/// one: U is what the files hold, T what the device below can hold, or the log's own disk where there is none.
///
/// # Errors
/// Anything wrong with the specification.
pub fn plan(spec: &SystemSpec, environment: &Environment) -> Result<Plan, SpecError> {
    check_names(spec)?;
    let Some(section) = &spec.log else { return isotherm::build::plan(&spec.ssd(), environment) };
    let log = LogPlan::new(spec, section, environment)?;
    let mut plan = isotherm::build::plan(&log.below, &log.environment)?;
    if section.below.name == NO_DEVICE {
        let blocks = plan.logical_pages.div_ceil(plan.geometry.pages_per_block());
        plan.geometry.blocks = blocks;
        plan = Plan { physical_pages: plan.logical_pages, reserve_blocks: 0, streams: 1, memory_bytes: 0, ..plan };
    }
    let (used, logical) = (f64::from(plan.physical_pages), f64::from(log.blocks));
    Ok(Plan {
        logical_pages: log.blocks,
        over_provisioning: (used - logical) / logical,
        spare: (used - logical) / used,
        memory_bytes: plan.memory_bytes + log.memory_bytes(),
        ..plan
    })
}

/// Looks up every policy that a specification names, and the keys of its parameters.
///
/// # Errors
/// An unknown name or parameter.
pub fn check_names(spec: &SystemSpec) -> Result<(), SpecError> {
    isotherm::build::check_names(&spec.ssd())?;
    let Some(log) = &spec.log else { return Ok(()) };
    check_name(LOGS, "log.name", &log.name)?;
    check_name(DRIVES, "log.drive", &log.drive)?;
    if log.below.name == NO_DEVICE { Ok(()) } else { check_name(FTLS, "log.below", &log.below) }
}

/// The device below the log of `spec` as a specification of its own, with its plan; `None` without one.
///
/// # Errors
/// Anything wrong with the specification.
pub fn plan_below(spec: &SystemSpec, environment: &Environment) -> Result<Option<(DeviceSpec, Plan)>, SpecError> {
    let Some(section) = spec.log.as_ref().filter(|log| log.below.name != NO_DEVICE) else { return Ok(None) };
    let log = LogPlan::new(spec, section, environment)?;
    let plan = isotherm::build::plan(&log.below, &log.environment)?;
    Ok(Some((log.below, plan)))
}

/// What stands for no device below a log.
pub const NO_DEVICE: &str = "none";

/// A log and the device below it, before they are built.
struct LogPlan {
    drive: Drive,
    choice: LogChoice,
    /// Blocks of the files that the log holds.
    blocks: u32,
    segments: u32,
    /// The device below, and what it depends on.
    below: DeviceSpec,
    environment: Environment,
}

/// Checks that a log has below it what it needs: the trace as it is needs a device.
///
/// # Errors
/// An unknown log, or nothing below one that needs a device.
pub fn check_below(section: &LogSection) -> Result<(), SpecError> {
    let kind = find(LOGS, "log.name", &section.name)?.build;
    if kind == LogKind::InPlace && section.below.name == NO_DEVICE {
        let fix = "name the FTL that the trace goes to in log.below, page for instance";
        return Err(SpecError::new("log.name", format!("\"{}\" has no device below", section.name), fix));
    }
    Ok(())
}

/// Checks what does not depend on the log's size.
fn check(spec: &SystemSpec, section: &LogSection) -> Result<(), SpecError> {
    spec::check(spec)?;
    check_below(section)?;
    if spec.device.page_size.0 != u64::from(BLOCK_BYTES) {
        return Err(SpecError::new(
            "device.page_size",
            format!("{} is not the block of the log", spec.device.page_size),
            "leave it at 4KiB under a log",
        ));
    }
    Ok(())
}

impl LogPlan {
    fn new(spec: &SystemSpec, section: &LogSection, environment: &Environment) -> Result<Self, SpecError> {
        check(spec, section)?;
        let drive = find(DRIVES, "log.drive", &section.drive)?.build;
        let mut choice = parse_log(&section.name, environment.seed)?;
        let utilisation = section.utilisation.0;
        let logical_bytes = spec.device.logical_size.map_or(environment.logical_bytes, |size| size.0);
        let blocks = logical_bytes.div_ceil(u64::from(BLOCK_BYTES));
        let capacity = blocks as f64 / utilisation;
        if blocks == 0 || capacity >= f64::from(MAX_PAGES / 2) {
            return Err(SpecError::new(
                "device.logical_size",
                format!("{blocks} blocks at a utilisation of {} are {capacity:.0}", section.utilisation),
                format!("give at least one block, and fewer than {} in all", MAX_PAGES / 2),
            ));
        }
        let options = &mut choice.options;
        let segments = (capacity / f64::from(options.payload_blocks())).ceil() as u32;
        // Cleaning starts with two free segments at the latest: one to write, one that the guard looks at.
        options.clean_below = (((1.0 - choice.clean_at) * f64::from(segments)).round() as u32).max(2);
        let needed = (blocks as u32).div_ceil(options.payload_blocks()) + options.clean_below + 2;
        if choice.kind == LogKind::Segments && segments < needed {
            return Err(SpecError::new(
                "log",
                format!("{segments} segments hold the data, but {needed} are needed to clean"),
                format!(
                    "use smaller segments ({}:segment=...), a lower log.utilisation or a larger device",
                    section.name.name
                ),
            ));
        }
        let disk_bytes = match choice.kind {
            LogKind::Segments => below_bytes(segments, options.segment_blocks),
            LogKind::InPlace => capacity as u64 * u64::from(BLOCK_BYTES),
        };
        let mut below = spec.ssd();
        if section.below.name != NO_DEVICE {
            below.ftl.name = section.below.clone();
        }
        below.device.logical_size = Some(ByteSize(disk_bytes));
        Ok(Self { choice, drive, blocks: blocks as u32, segments, below, environment: environment.clone() })
    }

    fn memory_bytes(&self) -> u64 {
        let options = &self.choice.options;
        let positions = u64::from(self.segments) * u64::from(options.segment_blocks);
        let learnt = if options.quantiser.criterion == Criterion::Isotherm { self.blocks } else { 0 };
        u64::from(self.blocks) * 20 + positions * 4 + u64::from(self.segments) * 64 + Lifetimes::bytes_of(learnt)
    }
}

/// Builds the system that `spec` describes.
///
/// # Errors
/// Anything wrong with the specification: the error names the key, what is wrong and what would be right.
pub fn build(spec: &SystemSpec, environment: &Environment) -> Result<Box<dyn Replay>, SpecError> {
    let Some(section) = &spec.log else { return isotherm::build::build(&spec.ssd(), environment) };
    let LogPlan { choice, drive, blocks, segments, below, environment } = LogPlan::new(spec, section, environment)?;
    if choice.kind == LogKind::InPlace {
        return isotherm::build::build(&below, &environment);
    }
    let has_device = section.below.name != NO_DEVICE;
    let device = if has_device { Some(isotherm::build::build(&below, &environment)?) } else { None };
    let below = Below::new(device, segments, choice.options.segment_blocks);
    let log = SegmentLog::new(below, blocks, segments, choice.options);
    Ok(Box::new(LogDevice::new(log, choice.sync, drive)))
}

/// Builds the system that `spec` describes, with its bytes in memory: a log over a device that keeps them, or, over nothing,
/// over a [`ByteStore`]. Counters are those of [`build`], whatever the bytes.
///
/// # Errors
/// As [`build`] and [`isotherm::build::build_with_bytes`]; and summaries of a log that have no room for what recovery needs.
pub fn build_with_bytes(spec: &SystemSpec, environment: &Environment) -> Result<Box<dyn BlockDevice>, SpecError> {
    let Some(section) = &spec.log else { return isotherm::build::build_with_bytes(&spec.ssd(), environment) };
    let LogPlan { choice, drive, blocks, segments, below, environment } = LogPlan::new(spec, section, environment)?;
    if choice.kind == LogKind::InPlace {
        return isotherm::build::build_with_bytes(&below, &environment);
    }
    let options = choice.options;
    if options.summary_bytes < SUMMARY_BYTES_MIN {
        return Err(SpecError::new(
            format!("{}:summary_bytes", section.name.name),
            format!("{} bytes for each block have no room for what recovery needs", options.summary_bytes),
            format!("give at least {SUMMARY_BYTES_MIN}, or leave it out"),
        ));
    }
    if section.below.name == NO_DEVICE {
        let store = ByteStore::new(below_bytes(segments, options.segment_blocks));
        let log = SegmentLog::new(Below::new(store, segments, options.segment_blocks), blocks, segments, options);
        return Ok(Box::new(LogDevice::new(log, choice.sync, drive)));
    }
    let device = isotherm::build::build_with_bytes(&below, &environment)?;
    let log = SegmentLog::new(Below::new(device, segments, options.segment_blocks), blocks, segments, options);
    Ok(Box::new(LogDevice::new(log, choice.sync, drive)))
}
