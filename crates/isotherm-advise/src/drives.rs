//! Classes of drives, as data sheets tell them apart: capacity, spare space, endurance.
//!
//! Spare space follows from the capacity: drives hold flash of a power of two in GiB, and export decimal gigabytes of it. Erases
//! of a block are what flash of the kind is rated for in general (REFERENCES.md); a drive's own data sheet is better
//! (`--pe-cycles`).

use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::SpecError;

/// A class of drives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveClass {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Erases that a block endures.
    pub pe_cycles: u32,
    /// Where that is from (REFERENCES.md).
    pub pe_cycles_source: &'static str,
    /// Latencies, as `timing.preset` names them.
    pub timing: &'static str,
    /// Pages of 4 KiB that one program operation writes on a plane.
    pub pages_per_program: u32,
    /// Pages of 4 KiB in a block of one plane.
    pub block_pages: u32,
    /// Years of warranty, over which drive writes per day are counted.
    pub warranty_years: f64,
    /// Drive writes per day that vendors promise for the class; none where they promise terabytes written or nothing.
    pub rated_dwpd: Option<f64>,
}

/// What is known of a drive, in place of what its class says.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct KnownOfDrive {
    /// Bytes that the host sees: at least 16 MiB. Flash follows, in the class's proportion.
    pub capacity_bytes: Option<u64>,
    /// Over-provisioning (T-U)/U: 0.02 to 10.
    pub over_provisioning: Option<f64>,
    /// Erases that a block endures: 1 or more.
    pub pe_cycles: Option<u32>,
    /// Years over which drive writes per day are counted: above 0.
    pub warranty_years: Option<f64>,
}

/// Smallest drive.
const CAPACITY_MIN: u64 = 1 << 24;
const GB: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;

/// The classes, from small to large endurance within client and datacenter drives.
pub const DRIVES: &[DriveClass] = &[
    DriveClass {
        name: "client-qlc-1t",
        summary: "client drive of QLC flash, 1 TB",
        capacity_bytes: 1000 * GB,
        flash_bytes: 1024 * GIB,
        pe_cycles: 1000,
        pe_cycles_source: "what 3D QLC flash was first rated for at most (Shilov, 2024)",
        timing: "qlc",
        pages_per_program: 4,
        block_pages: 4096,
        warranty_years: 5.0,
        rated_dwpd: None,
    },
    DriveClass {
        name: "client-tlc-1t",
        summary: "client drive of TLC flash, 1 TB",
        capacity_bytes: 1000 * GB,
        flash_bytes: 1024 * GIB,
        pe_cycles: 1500,
        pe_cycles_source: "assumed: the 1,000 of planar TLC (HP, Table 1), and a half more for 3D TLC",
        timing: "tlc",
        pages_per_program: 4,
        block_pages: 4096,
        warranty_years: 5.0,
        rated_dwpd: None,
    },
    DriveClass {
        name: "tlc-1.92t",
        summary: "datacenter drive of TLC flash for mostly reading, 1.92 TB",
        capacity_bytes: 1920 * GB,
        flash_bytes: 2048 * GIB,
        pe_cycles: 5000,
        pe_cycles_source: "assumed: with it 1.92 TB take one drive write a day for five years at a write amplification of 3",
        timing: "tlc",
        pages_per_program: 4,
        block_pages: 4096,
        warranty_years: 5.0,
        rated_dwpd: Some(1.0),
    },
    DriveClass {
        name: "tlc-1.6t",
        summary: "datacenter drive of TLC flash for mixed use, 1.6 TB of the same flash",
        capacity_bytes: 1600 * GB,
        flash_bytes: 2048 * GIB,
        pe_cycles: 5000,
        pe_cycles_source: "assumed: with it 1.92 TB take one drive write a day for five years at a write amplification of 3",
        timing: "tlc",
        pages_per_program: 4,
        block_pages: 4096,
        warranty_years: 5.0,
        rated_dwpd: Some(3.0),
    },
    DriveClass {
        name: "slc-64g",
        summary: "industrial drive of SLC flash, 64 GB",
        capacity_bytes: 64 * GB,
        flash_bytes: 64 * GIB,
        pe_cycles: 60_000,
        pe_cycles_source: "assumed: cells with one bit endure more than ten times as many as those with several (ATP)",
        timing: "slc",
        pages_per_program: 1,
        block_pages: 256,
        warranty_years: 5.0,
        rated_dwpd: None,
    },
    DriveClass {
        name: "emmc-32g",
        summary: "embedded eMMC of MLC flash, 32 GB",
        capacity_bytes: 31 * GB,
        flash_bytes: 32 * GIB,
        pe_cycles: 3000,
        pe_cycles_source: "MLC flash (HP, Table 1)",
        timing: "mlc",
        pages_per_program: 1,
        block_pages: 256,
        warranty_years: 3.0,
        rated_dwpd: None,
    },
];

impl DriveClass {
    /// The class of this name.
    ///
    /// # Errors
    /// There is none; the message lists those that there are.
    pub fn find(name: &str) -> Result<Self, String> {
        DRIVES.iter().find(|drive| drive.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = DRIVES.iter().map(|drive| drive.name).collect();
            format!("there is no class of drives \"{name}\"; choose from {}", names.join(", "))
        })
    }

    /// The class with what is known of one of its drives.
    ///
    /// # Errors
    /// A value that is out of range.
    pub fn with(mut self, known: &KnownOfDrive) -> Result<Self, SpecError> {
        let wrong = |option: &str, value: String, range: &str| {
            Err(SpecError::new(option, format!("{value} is out of range"), format!("give {range}")))
        };
        if let Some(bytes) = known.capacity_bytes {
            if bytes < CAPACITY_MIN {
                return wrong("--capacity", ByteSize(bytes).to_string(), "at least 16MiB");
            }
            self.flash_bytes = (bytes as f64 * (1.0 + self.over_provisioning())) as u64;
            self.capacity_bytes = bytes;
        }
        if let Some(share) = known.over_provisioning {
            if !(0.02..=10.0).contains(&share) {
                return wrong("--op", Share(share).to_string(), "2% to 1000%");
            }
            self.flash_bytes = (self.capacity_bytes as f64 * (1.0 + share)) as u64;
        }
        if let Some(cycles) = known.pe_cycles {
            if cycles == 0 {
                return wrong("--pe-cycles", "0".to_owned(), "1 or more");
            }
            self.pe_cycles = cycles;
        }
        if let Some(years) = known.warranty_years {
            if !(years.is_finite() && years > 0.0) {
                return wrong("--warranty-years", years.to_string(), "a number above 0");
            }
            self.warranty_years = years;
        }
        Ok(self)
    }

    /// Over-provisioning (T-U)/U: flash over what the host sees.
    pub fn over_provisioning(&self) -> f64 {
        self.flash_bytes as f64 / self.capacity_bytes as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::nand::timing::TIMINGS;

    #[test]
    fn every_class_can_be_built() {
        for drive in DRIVES {
            assert!(TIMINGS.iter().any(|timing| timing.name == drive.timing), "{}", drive.timing);
            assert!((0.02..0.5).contains(&drive.over_provisioning()), "{}", drive.name);
            assert_eq!(DriveClass::find(drive.name).unwrap(), *drive);
        }
        assert!(DriveClass::find("tlc").unwrap_err().contains("tlc-1.92t"));
    }
}
