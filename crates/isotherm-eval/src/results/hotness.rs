//! Measurements of hot data identification: what was asked, and what schemes made of the writes of a trace.

use isotherm::quantity::ByteSize;
use isotherm::registry::PolicyName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One measurement: the schemes of one trace against one reference. All rates are shares of all page writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotnessResult {
    /// What tells it from its neighbours: `sqlite-wal-ext4, wdac`.
    pub label: String,
    /// Value of each axis: `trace` and `reference`.
    #[serde(default)]
    pub axes: Map<String, Value>,
    /// Name of the trace.
    pub trace: String,
    /// What was measured.
    pub spec: HotnessSettings,
    /// Version of isotherm.
    pub version: String,
    /// Page writes judged.
    pub writes: u64,
    /// Pages from address 0 to the end of the last write.
    pub logical_pages: u64,
    /// Page writes in each window; the last window may be shorter.
    pub window_writes: u64,
    /// Different pages in each unit of writes; the last unit may be shorter. Empty where they were not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unique_pages: Vec<u32>,
    /// Share of writes that the reference judges hot.
    pub reference_hot_ratio: f64,
    /// The same by window.
    pub reference_hot_ratio_by_window: Vec<f64>,
    /// The schemes, in the order in which they were named.
    pub schemes: Vec<SchemeAgreement>,
    /// Wall time. Differs from run to run.
    pub simulator_elapsed_ns: u64,
}

/// What a measurement depends on beside its trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessSettings {
    /// Page size; a write counts once for each page that it touches.
    pub page_size: ByteSize,
    /// The scheme that is right by definition.
    pub reference: PolicyName,
    /// The schemes that are judged.
    pub schemes: Vec<PolicyName>,
    /// Windows that the trace is cut into, at least 1.
    pub windows: u64,
    /// Writes of each unit in which different pages are counted; they are not counted where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_unit: Option<u64>,
    /// Times that each scheme runs alone, in turn, to measure its cost; not measured where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_rounds: Option<u32>,
}

/// One scheme against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemeAgreement {
    /// The scheme.
    pub name: String,
    /// Bytes of state.
    pub memory_bytes: u64,
    /// Share of writes judged hot.
    pub hot_ratio: f64,
    /// Share judged differently.
    pub false_identification_rate: f64,
    /// Share judged hot, but cold by the reference.
    pub false_hot_rate: f64,
    /// Share judged cold, but hot by the reference.
    pub false_cold_rate: f64,
    /// Of the writes judged hot, the share that the reference judges so.
    pub precision: f64,
    /// Of the writes that the reference judges hot, the share judged so.
    pub recall: f64,
    /// By window.
    pub hot_ratio_by_window: Vec<f64>,
    /// By window.
    pub false_identification_rate_by_window: Vec<f64>,
    /// Time of a verdict with its share of the aging, best of the rounds. Differs from run to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulator_ns_per_check: Option<f64>,
    /// Time of an aging step, best of the rounds; absent for schemes without such steps. Differs from run to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulator_ns_per_decay: Option<f64>,
}

/// What an experiment asks of hot data identification: the section `[hotness]` of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessExperiment {
    /// Page size of all traces that do not set their own.
    pub page_size: ByteSize,
    /// Schemes of the comparison.
    pub schemes: Vec<PolicyName>,
    /// The references to hold them against. Sweeps and published numbers refer to the first.
    pub references: Vec<PolicyName>,
    /// Windows that each trace is cut into for the figures over time, at least 1.
    pub windows: u64,
    /// Writes of each unit of the count of different pages, at least 1.
    pub unique_unit: u64,
    /// Name of the picture that shows which scheme errs where, among those of all experiments; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// Traces that pictures show; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub picture_traces: Vec<String>,
    /// Parameters over their ranges.
    #[serde(default)]
    pub sweeps: Vec<HotnessSweep>,
    /// What a check and an aging step cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<HotnessCost>,
    /// Published numbers to stand beside ours.
    #[serde(default)]
    pub published: Vec<PublishedChange>,
}

/// A parameter over its range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessSweep {
    /// Figure of the paper.
    pub figure: String,
    /// Name of the picture that it is among those of all experiments; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
    /// What is varied, with its unit.
    pub x: String,
    /// What is looked at.
    pub measure: HotnessMeasure,
    /// What is seen, and why.
    pub note: String,
    /// The lines of the figure.
    pub series: Vec<HotnessSeries>,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<HotnessPoint>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessPoint {
    /// Value of what is varied.
    pub x: f64,
    /// The scheme there.
    pub scheme: PolicyName,
}

/// A number of a scheme on a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HotnessMeasure {
    /// Share of writes judged differently from the reference.
    FalseIdentificationRate,
    /// Share of writes judged hot.
    HotRatio,
    /// Time of a verdict.
    NsPerCheck,
    /// Time of an aging step.
    NsPerDecay,
}

/// Which costs to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotnessCost {
    /// Label of the trace.
    pub trace: String,
    /// Each scheme runs alone, in turn, so many times; the best time counts.
    pub rounds: u32,
    /// The schemes.
    pub schemes: Vec<PolicyName>,
}

/// A published change of a number, from `against` to `scheme`, and what we have to say about ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedChange {
    /// Figure of the paper.
    pub figure: String,
    /// What was published.
    pub claim: String,
    /// The trace that it was published for.
    pub published_trace: String,
    /// Label of our nearest trace.
    pub trace: String,
    /// The number.
    pub measure: HotnessMeasure,
    /// The scheme that changes it.
    pub scheme: PolicyName,
    /// What it is compared with.
    pub against: PolicyName,
    /// The published relative change: -0.41 is 41 % less; absent where the publication gives no number for its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Why ours differs.
    pub difference: String,
}

impl HotnessMeasure {
    /// Whether it is a time of this machine rather than a count of verdicts.
    pub fn is_cost(self) -> bool {
        matches!(self, Self::NsPerCheck | Self::NsPerDecay)
    }

    /// The number of `scheme`, if it was measured.
    pub fn of(self, result: &HotnessResult, scheme: &PolicyName) -> Option<f64> {
        let found = result.scheme(scheme)?;
        match self {
            Self::FalseIdentificationRate => Some(found.false_identification_rate),
            Self::HotRatio => Some(found.hot_ratio),
            Self::NsPerCheck => found.simulator_ns_per_check,
            Self::NsPerDecay => found.simulator_ns_per_decay,
        }
    }
}

impl HotnessResult {
    /// What a scheme did, if it was measured.
    pub fn scheme(&self, name: &PolicyName) -> Option<&SchemeAgreement> {
        let at = self.spec.schemes.iter().position(|scheme| scheme == name)?;
        self.schemes.get(at)
    }
}
