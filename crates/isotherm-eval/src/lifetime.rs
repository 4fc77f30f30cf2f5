//! Lifetime in the terms of vendors' data sheets: terabytes written (TBW), drive writes per day (DWPD), years.

use crate::results::{DeviceSummary, Lifetime};

/// Endurance that is assumed where the specification gives none: erases of a block of MLC flash (HP, "Solid state drive
/// technology: differences between SLC, MLC and TLC NAND", Table 1).
pub const ASSUMED_ENDURANCE: u64 = 3000;
/// The same of TLC flash (same table), and what 3D QLC flash was first rated for at most.
const ASSUMED_ENDURANCE_TLC_QLC: u64 = 1000;

/// Endurance that is assumed of the flash whose latencies `preset` names.
fn assumed(preset: &str) -> u64 {
    match preset {
        "tlc" | "qlc" => ASSUMED_ENDURANCE_TLC_QLC,
        _ => ASSUMED_ENDURANCE,
    }
}

/// Warranty time over which drive writes per day are counted.
const WARRANTY_YEARS: f64 = 5.0;
const DAYS_PER_YEAR: f64 = 365.25;
const NS_PER_YEAR: f64 = DAYS_PER_YEAR * 86_400e9;

/// Lifetime of a device under a workload that wrote `host_bytes` with a write amplification of `wa_bytes` (in bytes) within
/// `duration_ns` of trace time (0 where the trace has no times). Where `endurance` is 0, that of the flash is assumed whose
/// latencies `preset` names.
pub fn lifetime(
    device: &DeviceSummary,
    (endurance, preset): (u32, &str),
    wa_bytes: Option<f64>,
    host_bytes: u64,
    duration_ns: u64,
) -> Lifetime {
    let endurance_erases = if endurance == 0 { assumed(preset) } else { u64::from(endurance) };
    let physical_bytes = (device.blocks * device.pages_per_block * device.page_bytes) as f64;
    let logical_bytes = (device.logical_pages * device.page_bytes) as f64;
    let terabytes_written_bytes = wa_bytes.map(|wa| physical_bytes * endurance_erases as f64 / wa);
    let years = terabytes_written_bytes.filter(|_| duration_ns > 0 && host_bytes > 0).map(|bytes| {
        let bytes_per_year = host_bytes as f64 / duration_ns as f64 * NS_PER_YEAR;
        bytes / bytes_per_year
    });
    Lifetime {
        endurance_erases,
        endurance_assumed: endurance == 0,
        terabytes_written_bytes,
        drive_writes_per_day: terabytes_written_bytes
            .map(|bytes| bytes / (logical_bytes * WARRANTY_YEARS * DAYS_PER_YEAR)),
        warranty_years: WARRANTY_YEARS,
        years,
        formulas: vec![
            "TBW = physical bytes x endurance / write amplification in bytes".to_owned(),
            format!("DWPD = TBW / (logical bytes x {WARRANTY_YEARS} years x {DAYS_PER_YEAR} days)"),
            "years = TBW / (host bytes written / duration of the trace)".to_owned(),
            "percent used = 100 x mean erases of a block / endurance".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_rewritten_once_a_day_lives_as_long_as_its_endurance_says() {
        let device = DeviceSummary {
            logical_pages: 1000,
            physical_pages: 1000,
            reserve_blocks: 0,
            blocks: 10,
            pages_per_block: 100,
            page_bytes: 4096,
            streams: 1,
            over_provisioning: 0.0,
            spare: 0.0,
            simulator_memory_bytes: 0,
        };
        // 2922 erases at WA 1 and one drive write a day: eight years of 365.25 days.
        let day_ns = 86_400_000_000_000;
        let life = lifetime(&device, (2922, "mlc"), Some(1.0), 4_096_000, day_ns);
        assert!((life.years.unwrap() - 8.0).abs() < 1e-9);
        assert!((life.drive_writes_per_day.unwrap() - 1.6).abs() < 1e-9);
        assert_eq!(life.terabytes_written_bytes, Some(2922.0 * 4_096_000.0));
        let halved = lifetime(&device, (2922, "mlc"), Some(2.0), 4_096_000, day_ns);
        assert!((halved.years.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(lifetime(&device, (0, "mlc"), None, 0, 0).years, None);
        let assumed = |preset| lifetime(&device, (0, preset), Some(1.0), 0, 0);
        assert!(assumed("mlc").endurance_assumed);
        assert_eq!([assumed("mlc"), assumed("qlc")].map(|life| life.endurance_erases), [3000, 1000]);
    }
}
