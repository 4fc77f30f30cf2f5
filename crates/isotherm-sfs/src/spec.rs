//! The specification of a system: an SSD, and perhaps a log-structured file system on it.

use isotherm::quantity::Share;
use isotherm::registry::{Kind, Parameter, PolicyName, SpecError};
use isotherm::spec::{
    self, DeviceSection, DeviceSpec, DramSection, FtlSection, GcSection, PlacementSection, Specification,
    TimingSection, WearSection,
};
use serde::{Deserialize, Serialize};

/// An SSD and what stands on it: the sections of [`DeviceSpec`], and `log`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct SystemSpec {
    /// Capacity and shape of the array.
    pub device: DeviceSection,
    /// The flash translation layer.
    pub ftl: FtlSection,
    /// DRAM of the controller.
    pub dram: DramSection,
    /// Which stream a page goes to.
    pub placement: PlacementSection,
    /// Cleaning.
    pub gc: GcSection,
    /// Static wear levelling.
    pub wear: WearSection,
    /// Latencies and the queueing model.
    pub timing: TimingSection,
    /// A log-structured file system on top; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSection>,
}

impl Specification for SystemSpec {
    const TABLES: &'static [&'static [Parameter]] = &[
        DeviceSection::TABLE,
        FtlSection::TABLE,
        DramSection::TABLE,
        PlacementSection::TABLE,
        GcSection::TABLE,
        WearSection::TABLE,
        TimingSection::TABLE,
        LogSection::TABLE,
    ];
    const MAIN_KEYS: &'static [(&'static str, &'static str)] =
        &[("ftl", "name"), ("placement", "name"), ("log", "name")];
}

impl SystemSpec {
    /// Parses a TOML text and applies `sets` (`log.name=sfs`) over it.
    ///
    /// # Errors
    /// Broken TOML (with line and column), unknown keys, values out of range.
    pub fn from_toml(text: &str, sets: &[String]) -> Result<Self, SpecError> {
        spec::parse(text, sets)
    }

    /// The specification as TOML, every key in force.
    pub fn to_toml(&self) -> String {
        spec::to_toml(self)
    }

    /// The SSD alone.
    pub fn ssd(&self) -> DeviceSpec {
        DeviceSpec {
            device: self.device.clone(),
            ftl: self.ftl.clone(),
            dram: self.dram.clone(),
            placement: self.placement.clone(),
            gc: self.gc.clone(),
            wear: self.wear.clone(),
            timing: self.timing.clone(),
        }
    }
}

impl From<DeviceSpec> for SystemSpec {
    /// The SSD with nothing on it.
    fn from(ssd: DeviceSpec) -> Self {
        let DeviceSpec { device, ftl, dram, placement, gc, wear, timing } = ssd;
        Self { device, ftl, dram, placement, gc, wear, timing, log: None }
    }
}

isotherm::section! {
    /// A log-structured file system on top of the device.
    pub struct LogSection("log") {
        /// Log-structured file system on top; `in_place` is the trace as it is on a disk of the same size.
        name: PolicyName = "sfs", Kind::Policy("logs"), option "log";
        /// FTL below the log, or `none` for a device that costs nothing.
        below: PolicyName = "none", Kind::Policy("ftls"), option "below";
        /// Share of the log's blocks that hold data.
        utilisation: Share = "85%", Kind::share(0.01..=0.99), option "utilisation";
        /// What the utilisation is made of: filler (written first, never updated, beside the workload's own blocks) or active
        /// (the workload's own blocks alone).
        fill_mode: FillMode = "active", Kind::Choice(&["active", "filler"]), option "fill-mode";
        /// With filler: share of the log's blocks that the workload itself uses; the filler is the rest of the utilisation.
        active: Share = "20%", Kind::share(0.01..=0.99);
        /// Drive profile used to compute write cost and throughput.
        drive: PolicyName = "ssd_m", Kind::Policy("drives"), option "drive";
    }
}

/// What a log's utilisation is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillMode {
    /// The workload's own blocks: every block may be updated.
    #[default]
    Active,
    /// The workload's blocks and filler: blocks that are written first and never updated.
    Filler,
}

impl LogSection {
    /// Share of the log's data that is filler.
    pub fn filler_share(&self) -> f64 {
        match self.fill_mode {
            FillMode::Active => 0.0,
            FillMode::Filler => (1.0 - self.active.0 / self.utilisation.0).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_prints_back_and_its_ssd_knows_no_log() {
        let sets = ["log=lfs:victim=greedy".to_owned(), "gc.victim=fifo".to_owned()];
        let spec = SystemSpec::from_toml("", &sets).unwrap();
        assert_eq!(SystemSpec::from_toml(&spec.to_toml(), &[]).unwrap(), spec);
        assert_eq!(spec.log.as_ref().unwrap().name.to_string(), "lfs:victim=greedy");
        assert_eq!(SystemSpec::from(spec.ssd()), SystemSpec { log: None, ..spec.clone() });
        assert!(DeviceSpec::from_toml(&spec.to_toml(), &[]).unwrap_err().to_string().contains("log"));
    }
}
