//! A log-structured file system over a device: how large both are, and how they are stacked.

use super::{Environment, build};
use crate::address::MAX_PAGES;
use crate::device::Device;
use crate::quantity::ByteSize;
use crate::registry::SpecError;
use crate::sfs::device::{Below, LogDevice};
use crate::sfs::log::SegmentLog;
use crate::sfs::options::{BLOCK_BYTES, LogChoice, LogKind, parse_log};
use crate::spec::{DeviceSpec, LogSection};

/// A log and the device below it, before they are built.
pub(super) struct LogPlan {
    choice: LogChoice,
    /// Blocks of the files that the log holds.
    pub(super) blocks: u32,
    segments: u32,
    /// The device below, and what it depends on.
    pub(super) below: DeviceSpec,
    pub(super) environment: Environment,
}

impl LogPlan {
    pub(super) fn new(spec: &DeviceSpec, section: &LogSection, environment: &Environment) -> Result<Self, SpecError> {
        let mut choice = parse_log(&section.name, environment.seed)?;
        let utilisation = section.utilisation.0;
        if !(0.01..=0.99).contains(&utilisation) {
            return Err(SpecError::new(
                "log.utilisation (--utilisation)",
                format!("{} is out of range", section.utilisation),
                "give 1% to 99%",
            ));
        }
        let logical_bytes = spec.device.logical_size.map_or(environment.logical_bytes, |size| size.0);
        let blocks = logical_bytes.div_ceil(u64::from(BLOCK_BYTES));
        let capacity = blocks as f64 / utilisation;
        if blocks == 0 || capacity >= f64::from(MAX_PAGES / 2) {
            return Err(SpecError::new(
                "device.logical_size (--logical-size)",
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
                "use smaller segments (--log sfs:segment=1MiB), a lower --utilisation or a later clean_at",
            ));
        }
        let disk_bytes = match choice.kind {
            LogKind::Segments => Below::bytes(segments, options.segment_blocks),
            LogKind::InPlace => capacity as u64 * u64::from(BLOCK_BYTES),
        };
        let mut below = DeviceSpec { log: None, ..spec.clone() };
        if section.below.name != "none" {
            below.ftl.name = section.below.clone();
        }
        below.device.logical_size = Some(ByteSize(disk_bytes));
        Ok(Self { choice, blocks: blocks as u32, segments, below, environment: environment.clone() })
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let positions = u64::from(self.segments) * u64::from(self.choice.options.segment_blocks);
        u64::from(self.blocks) * 20 + positions * 4 + u64::from(self.segments) * 64
    }
}

/// Builds the log that `section` describes, and the device below it.
pub(super) fn build_log(
    spec: &DeviceSpec,
    section: &LogSection,
    environment: &Environment,
) -> Result<Box<dyn Device>, SpecError> {
    let LogPlan { choice, blocks, segments, below, environment } = LogPlan::new(spec, section, environment)?;
    let has_device = section.below.name != "none";
    if choice.kind == LogKind::InPlace {
        let fix = "name the FTL that the trace goes to: --below page";
        return if has_device {
            build(&below, &environment)
        } else {
            Err(SpecError::new("--log in_place", "there is no device below", fix))
        };
    }
    let device = if has_device { Some(build(&below, &environment)?) } else { None };
    let below = Below::new(device, segments, choice.options.segment_blocks);
    let log = SegmentLog::new(below, blocks, segments, choice.options);
    Ok(Box::new(LogDevice::new(log, choice.sync)))
}
