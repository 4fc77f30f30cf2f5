//! What write amplification means for a drive, in the words of data sheets.

use crate::drives::DriveClass;
use isotherm_eval::lifetime::{DAYS_PER_YEAR, Flash, Life, bytes_per_year};
use serde::Serialize;

/// Erases that the most worn block may be ahead: the threshold of static wear levelling that drives are simulated with, or half of
/// what a block endures where that is less.
fn unlevelled(pe_cycles: u32) -> u32 {
    const THRESHOLD: u32 = 256;
    THRESHOLD.min(pe_cycles / 2)
}

/// What lives are computed from.
#[derive(Clone, Debug, Serialize)]
pub struct LifeInputs {
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Erases that a block endures.
    pub pe_cycles: u32,
    /// Years over which drive writes per day are counted.
    pub warranty_years: f64,
    /// Bytes that the host writes in a year, at the rate of the trace times the scale; none where the trace has no times.
    pub host_bytes_per_year: Option<f64>,
    /// The formulas.
    pub formulas: Vec<String>,
}

impl LifeInputs {
    /// For a drive on which a trace writes `host_bytes` within `duration_ns`, `scale` times as fast.
    pub fn new(drive: &DriveClass, host_bytes: u64, duration_ns: u64, scale: f64) -> Self {
        Self {
            capacity_bytes: drive.capacity_bytes,
            flash_bytes: drive.flash_bytes,
            pe_cycles: drive.pe_cycles,
            warranty_years: drive.warranty_years,
            host_bytes_per_year: bytes_per_year(host_bytes, duration_ns).map(|bytes| bytes * scale),
            formulas: vec![
                format!(
                    "TBW = flash bytes x (P/E cycles - {}) / write amplification in bytes",
                    unlevelled(drive.pe_cycles)
                ),
                format!("DWPD = TBW / (capacity x {} years x {DAYS_PER_YEAR} days)", drive.warranty_years),
                "years = TBW / host bytes a year; percentage used a year = 100 / years".to_owned(),
                format!(
                    "{} erases: what the most worn block may be ahead of the mean, under static wear levelling",
                    unlevelled(drive.pe_cycles)
                ),
            ],
        }
    }

    fn flash(&self) -> Flash {
        Flash {
            flash_bytes: self.flash_bytes,
            capacity_bytes: self.capacity_bytes,
            erases: u64::from(self.pe_cycles - unlevelled(self.pe_cycles)),
            warranty_years: self.warranty_years,
        }
    }

    /// The life under a write amplification (in bytes).
    pub fn life(&self, write_amplification_bytes: f64) -> Life {
        self.flash().life(write_amplification_bytes, self.host_bytes_per_year)
    }

    /// Drive writes a day that the host asks for.
    pub fn wanted_drive_writes_per_day(&self) -> Option<f64> {
        self.host_bytes_per_year.map(|bytes| self.flash().drive_writes_per_day(bytes, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_written_once_a_day_lives_as_long_as_its_flash_says() {
        let drive = DriveClass::find("tlc-1.92t").unwrap();
        let day_ns = 86_400_000_000_000;
        let inputs = LifeInputs::new(&drive, drive.capacity_bytes, day_ns, 1.0);
        assert!((inputs.wanted_drive_writes_per_day().unwrap() - 1.0).abs() < 1e-12);
        let life = inputs.life(2.0);
        let days = drive.flash_bytes as f64 * (5000.0 - 256.0) / 2.0 / drive.capacity_bytes as f64;
        assert!((life.years.unwrap() - days / 365.25).abs() < 1e-9);
        assert!((life.drive_writes_per_day - days / 365.25 / 5.0).abs() < 1e-9);
        assert!((life.percent_used_per_year.unwrap() * life.years.unwrap() - 100.0).abs() < 1e-9);
        assert!((inputs.life(4.0).years.unwrap() * 2.0 - life.years.unwrap()).abs() < 1e-9);
        assert!(LifeInputs::new(&drive, 1, 0, 1.0).life(1.0).years.is_none());
    }
}
