//! What a run is: the trace, the device, and how the one is brought to the other.

use crate::fold::AddressMode;
use crate::source::TraceSource;
use isotherm::placement::SharedPlacement;
use isotherm::quantity::Share;
use isotherm::registry::{Kind, Parameter};
use isotherm::spec::Specification;
use isotherm::victim::SharedVictim;
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
    /// The trace itself, again and again until steady; of a synthetic workload first all pages that it names, in order.
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
    /// Policies that the program brings along, where the device names the placement or the victim policy `external`.
    pub policies: Policies,
}

/// Policies of the program, for one run: they keep what they learn.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// The placement.
    pub placement: Option<SharedPlacement>,
    /// The victim policy.
    pub victim: Option<SharedVictim>,
}

impl RunSpec {
    /// Share of the log's capacity that its fill mode asks filler for.
    pub(crate) fn log_filler(&self) -> f64 {
        self.device.log.as_ref().map_or(0.0, |log| log.filler_share())
    }
}

isotherm::section! {
    /// How a trace is brought to a device.
    pub struct Replay("replay") {
        /// What is done with addresses past the device's end: they are refused, wrapped (modulo the size), or the touched pages
        /// are compacted densely (of a synthetic workload all that it names).
        address: AddressMode = "refuse", Kind::Choice(&["refuse", "wrap", "compact"]), option "address";
        /// How full the device is before the measured run: pages that the trace does not touch are written once, and never again,
        /// until they and those of the trace take this share of the logical capacity.
        fill: Share = "0%", Kind::share(0.0..=1.0), option "fill";
        /// What is written before the measured run: nothing but the filler, every page in order, then also uniform overwrites until
        /// write amplification is steady (random), or the trace itself until steady (of a synthetic workload
        /// all pages first that it names).
        precondition: Precondition = "none", Kind::Choice(&["none", "sequential", "random", "trace"]), option "precondition";
        /// Times that the trace is replayed; a synthetic workload is drawn anew each time.
        repeat: u32 = "1", Kind::integer(1..=u32::MAX as u64), option "repeat";
        /// Host page writes of the last window, which is reported beside the whole run and which the verdict is about.
        measure_last: Option<u64> = none "the whole run", Kind::integer(1..=i64::MAX as u64), unit "pages", option "measure-last";
    }
}

/// The replay as a specification of its own, for what reads and checks specifications.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplaySpec {
    /// How a trace is brought to a device.
    pub replay: Replay,
}

impl Specification for ReplaySpec {
    const TABLES: &'static [&'static [Parameter]] = &[Replay::TABLE];
    const MAIN_KEYS: &'static [(&'static str, &'static str)] = &[];
}
