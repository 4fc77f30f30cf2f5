//! What a run is: the trace, the device, and how the one is brought to the other.

use crate::fold::AddressMode;
use crate::source::TraceSource;
use isotherm::quantity::Share;
use isotherm_sfs::SystemSpec;

/// What is written before the measured run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// Nothing but the filler.
    #[default]
    None,
    /// Every active page once, in order.
    Sequential,
    /// Every active page once, then at least one drive write of uniform random overwrites, until steady.
    Random,
    /// The trace itself, again and again until steady.
    Trace,
}

impl Precondition {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Trace => "trace",
        }
    }
}

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The trace.
    pub trace: TraceSource,
    /// The device.
    pub device: SystemSpec,
    /// How the trace is brought to it.
    pub replay: Replay,
    /// Seed of every random choice.
    pub seed: u64,
}

impl RunSpec {
    /// Share of the log's capacity that its fill mode asks filler for.
    pub(super) fn log_filler(&self) -> f64 {
        self.device.log.as_ref().map_or(0.0, |log| log.filler_share())
    }
}

/// How a trace is brought to a device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// What is done with addresses past the device's end.
    pub address: AddressMode,
    /// How full the device is before the measured run, as a share of its logical pages: pages that the trace does not touch are
    /// written once, and never again, until they and those of the trace are so many. 0 (no filler) to 1.
    pub fill: Share,
    /// What is written before the measured run.
    pub precondition: Precondition,
    /// Times that the trace is replayed, at least 1.
    pub repeat: u32,
    /// Host page writes of the last window; the whole run unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_last: Option<u64>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            address: AddressMode::Refuse,
            fill: Share(0.0),
            precondition: Precondition::None,
            repeat: 1,
            measure_last: None,
        }
    }
}
