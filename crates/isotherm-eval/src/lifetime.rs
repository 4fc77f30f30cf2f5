//! Lifetime in the terms of vendors' data sheets: terabytes written (TBW), drive writes per day (DWPD), years.

use crate::results::{DeviceSummary, Lifetime};
use serde::Serialize;

/// Endurance that is assumed where the specification gives none: erases of a block of MLC flash (HP, "Solid state drive
/// technology: differences between SLC, MLC and TLC NAND", Table 1).
pub const ASSUMED_ENDURANCE: u64 = 3000;
/// The same of SLC flash: cells with one bit endure more than ten times as many as those with several (ATP).
const ASSUMED_ENDURANCE_SLC: u64 = 60_000;
/// The same of TLC flash (same table), and what 3D QLC flash was first rated for at most.
const ASSUMED_ENDURANCE_TLC_QLC: u64 = 1000;

/// Endurance that is assumed of the flash whose latencies `preset` names.
fn assumed(preset: &str) -> u64 {
    match preset {
        "slc" => ASSUMED_ENDURANCE_SLC,
        "tlc" | "qlc" => ASSUMED_ENDURANCE_TLC_QLC,
        _ => ASSUMED_ENDURANCE,
    }
}

/// Warranty time over which drive writes per day are counted where nothing else is said.
const WARRANTY_YEARS: f64 = 5.0;
/// Days of a year in all of these formulas.
pub const DAYS_PER_YEAR: f64 = 365.25;
const NS_PER_YEAR: f64 = DAYS_PER_YEAR * 86_400e9;

/// The flash of a drive, and what is promised of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// Erases of a block, on average, until the drive is worn out.
    pub erases: u64,
    /// Years over which drive writes per day are counted.
    pub warranty_years: f64,
}

/// The life of a drive under one write amplification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Life {
    /// Host bytes until the flash is worn out (TBW, in bytes).
    pub terabytes_written_bytes: f64,
    /// Drive writes a day over the warranty (DWPD).
    pub drive_writes_per_day: f64,
    /// Years at the host's rate; none where it is not known.
    pub years: Option<f64>,
    /// Share of the drive's life that a year takes, in per cent (NVMe's Percentage Used a year).
    pub percent_used_per_year: Option<f64>,
}

impl Flash {
    /// The life under a write amplification (in bytes) and a host that writes so many bytes a year.
    pub fn life(&self, wa_bytes: f64, host_bytes_per_year: Option<f64>) -> Life {
        let terabytes_written_bytes = self.flash_bytes as f64 * self.erases as f64 / wa_bytes;
        let years = host_bytes_per_year.map(|bytes| terabytes_written_bytes / bytes);
        Life {
            terabytes_written_bytes,
            drive_writes_per_day: self.drive_writes_per_day(terabytes_written_bytes, self.warranty_years),
            years,
            percent_used_per_year: years.map(|years| 100.0 / years),
        }
    }

    /// Drive writes a day of a host that writes so many bytes within so many years.
    pub fn drive_writes_per_day(&self, host_bytes: f64, years: f64) -> f64 {
        host_bytes / (self.capacity_bytes as f64 * years * DAYS_PER_YEAR)
    }
}

/// Bytes a year of a host that writes `host_bytes` within `duration_ns`; none where the trace has no times.
pub fn bytes_per_year(host_bytes: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0 && host_bytes > 0).then(|| host_bytes as f64 / duration_ns as f64 * NS_PER_YEAR)
}

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
    let flash = Flash {
        flash_bytes: device.blocks * device.pages_per_block * device.page_bytes,
        capacity_bytes: device.logical_pages * device.page_bytes,
        erases: endurance_erases,
        warranty_years: WARRANTY_YEARS,
    };
    let life = wa_bytes.map(|wa| flash.life(wa, bytes_per_year(host_bytes, duration_ns)));
    Lifetime {
        endurance_erases,
        endurance_assumed: endurance == 0,
        terabytes_written_bytes: life.map(|life| life.terabytes_written_bytes),
        drive_writes_per_day: life.map(|life| life.drive_writes_per_day),
        warranty_years: WARRANTY_YEARS,
        years: life.and_then(|life| life.years),
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
        let erases = ["slc", "mlc", "tlc", "qlc"].map(|preset| assumed(preset).endurance_erases);
        assert_eq!(erases, [60_000, 3000, 1000, 1000]);
    }
}
