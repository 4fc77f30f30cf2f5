//! What NVMe drives say of themselves, with the keys of nvme-cli's JSON: the SMART / Health log (identifier 02h) and the logs of
//! Flexible Data Placement (20h to 22h) of the NVM Express Base Specification 2.1, and of the extended SMART log C0h of the Open
//! Compute Project (Datacenter NVMe SSD Specification 2.7, section 4.8.6) the fields that a simulated drive has.

use crate::drive::{Drive, Health};
use crate::image::Totals;
use isotherm::stats::WearSummary;
use serde_json::{Value, json};

/// Bytes of a data unit: a thousand sectors of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Kelvin at 35 degrees Celsius: a simulated drive stays cool.
const TEMPERATURE_KELVIN: u64 = 308;
/// Spare blocks below which a drive warns, in per cent.
const SPARE_THRESHOLD: u64 = 10;

/// What the logs are made from, at one moment.
struct Facts {
    totals: Totals,
    wear: WearSummary,
    endurance: u32,
    page_bytes: u64,
    pages_per_block: u64,
    blocks: u64,
    free_blocks: u64,
    retired_blocks: u64,
    reserve_blocks: u64,
    mapped_bytes: u64,
}

impl Facts {
    fn of(drive: &Drive) -> Self {
        let totals = drive.totals();
        let plan = drive.plan();
        drive.observe(|device| {
            let snapshot = device.snapshot();
            Self {
                totals,
                wear: device.wear(),
                endurance: drive.spec().device.endurance,
                page_bytes: u64::from(device.page_bytes()),
                pages_per_block: u64::from(plan.geometry.pages_per_block()),
                blocks: u64::from(plan.geometry.blocks),
                free_blocks: u64::from(snapshot.free_blocks),
                retired_blocks: snapshot.collector.retired_blocks,
                reserve_blocks: u64::from(plan.reserve_blocks),
                mapped_bytes: snapshot.mapped_pages * u64::from(device.page_bytes()),
            }
        })
    }

    fn media_bytes_written(&self) -> u64 {
        (self.totals.programs.total() + self.totals.copies.total()) * self.page_bytes
    }

    /// Mean erases over the endurance, in per cent, at most 255; 0 where blocks endure for ever.
    fn percent_used(&self) -> u64 {
        match self.endurance {
            0 => 0,
            endurance => (100.0 * self.wear.mean / f64::from(endurance)).min(255.0) as u64,
        }
    }

    /// Blocks that may still fail, in per cent of those that may fail in all.
    fn available_spare(&self) -> u64 {
        100 - (100 * self.retired_blocks / self.reserve_blocks.max(1)).min(100)
    }
}

/// Byte 0 of the SMART / Health log: bit 0 for little spare, 2 for a drive that cannot be relied on, 3 for one that cannot be written.
fn critical_warning(facts: &Facts, health: Health) -> u64 {
    let spare_is_low = facts.available_spare() < SPARE_THRESHOLD;
    u64::from(spare_is_low) | u64::from(health == Health::Stopped) << 2 | u64::from(health != Health::Good) << 3
}

/// The SMART / Health log, as `nvme smart-log -o json` prints it.
pub fn smart_log(drive: &Drive) -> Value {
    let facts = Facts::of(drive);
    let host = facts.totals.host;
    json!({
        "critical_warning": critical_warning(&facts, drive.health()),
        "temperature": TEMPERATURE_KELVIN,
        "avail_spare": facts.available_spare(),
        "spare_thresh": SPARE_THRESHOLD,
        "percent_used": facts.percent_used(),
        "endurance_grp_critical_warning_summary": 0,
        "data_units_read": host.bytes_read.div_ceil(DATA_UNIT_BYTES),
        "data_units_written": host.bytes_written.div_ceil(DATA_UNIT_BYTES),
        "host_read_commands": host.reads,
        "host_write_commands": host.writes,
        "controller_busy_time": 0,
        "power_cycles": host.power_cycles,
        "power_on_hours": host.power_on_ns / 3_600_000_000_000,
        "unsafe_shutdowns": host.unsafe_shutdowns,
        "media_errors": host.media_errors,
        "num_err_log_entries": host.media_errors,
        "warning_temp_time": 0,
        "critical_comp_time": 0,
    })
}

/// The FDP statistics log, as `nvme fdp stats -o json` prints it: bytes that the host wrote with placement, bytes written to the
/// media, bytes erased there.
pub fn fdp_stats(drive: &Drive) -> Value {
    let facts = Facts::of(drive);
    json!({
        "hbmw": facts.totals.host.bytes_written,
        "mbmw": facts.media_bytes_written(),
        "mbe": facts.totals.erases.total() * facts.pages_per_block * facts.page_bytes,
    })
}

/// The FDP configurations, as `nvme fdp configs -o json` prints them: one configuration with a reclaim group, a handle for each stream
/// of the placement, and a block as the reclaim unit.
pub fn fdp_configs(drive: &Drive) -> Value {
    let plan = drive.plan();
    let unit_bytes = u64::from(plan.geometry.pages_per_block()) * u64::from(plan.geometry.page_bytes());
    // Bit 7: the configuration is valid. Handles are persistently isolated (type 2): a collection keeps the stream.
    let handles: Vec<Value> = (0..plan.streams).map(|_| json!({ "ruht": 2 })).collect();
    json!({
        "n": 0,
        "configs": [{
            "fdpa": 128,
            "vss": 0,
            "nrg": 1,
            "nruh": plan.streams,
            "nnss": 1,
            "runs": unit_bytes,
            "erutl": 0,
            "ruhs": handles,
        }],
    })
}

/// How reclaim unit handles are used, as `nvme fdp usage -o json` prints it: 1, used by the host, or 2, by the controller.
pub fn fdp_usage(drive: &Drive) -> Value {
    let by_host = drive.spec().placement.name.name == "streams";
    let streams = drive.plan().streams;
    let handles: Vec<Value> = (0..streams).map(|_| json!({ "ruha": if by_host { 1 } else { 2 } })).collect();
    json!({ "nruh": streams, "ruhu": handles })
}

/// The fields of the OCP extended SMART log that a simulated drive has, as `nvme ocp smart-add-log -o json` prints them.
pub fn ocp_smart_add_log(drive: &Drive) -> Value {
    let facts = Facts::of(drive);
    let wide = |bytes: u64| json!({ "hi": 0, "lo": bytes });
    let endurance_bytes = u64::from(facts.endurance) * facts.blocks * facts.pages_per_block * facts.page_bytes;
    json!({
        "Physical media units written": wide(facts.media_bytes_written()),
        "Physical media units read": wide(drive.media_bytes_read()),
        "Bad user nand blocks - Raw": facts.retired_blocks,
        "Bad user nand blocks - Normalized": facts.available_spare(),
        "Uncorrectable read error count": facts.totals.host.media_errors,
        "System data percent used": facts.percent_used(),
        "Max User data erase counts": facts.wear.max,
        "Min User data erase counts": facts.wear.min,
        "Incomplete shutdowns": facts.totals.host.unsafe_shutdowns,
        "Percent free blocks": 100 * facts.free_blocks / facts.blocks.max(1),
        "NUSE - Namespace utilization": facts.mapped_bytes / 512,
        "Endurance estimate": wide(endurance_bytes),
    })
}
