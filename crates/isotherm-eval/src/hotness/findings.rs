//! What an experiment on hot data identification found: the structures of its result files.
//!
//! [`Findings`] are the same on every machine; [`CostFindings`] are times.

use serde::Serialize;

use super::experiment::Measure;
use super::{Counts, Measurement, SchemeResult};

/// What an experiment found, apart from times.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// As in the description.
    pub title: String,
    /// As in the description.
    pub paper: String,
    /// As in the description.
    pub reference: String,
    /// As in the description.
    pub unique_unit_writes: usize,
    /// One for each trace that was there.
    pub traces: Vec<TraceFindings>,
    /// Traces that were not there, and why.
    pub skipped: Vec<Skipped>,
    /// Published numbers about verdicts beside ours.
    pub published: Vec<Comparison>,
}

/// A trace that was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Name of the trace.
    pub trace: String,
    /// Why.
    pub reason: String,
}

/// What one trace showed.
#[derive(Clone, Debug, Serialize)]
pub struct TraceFindings {
    /// As in the description.
    pub name: String,
    /// As in the description.
    pub summary: String,
    /// Page writes.
    pub writes: u64,
    /// Span of the addresses.
    pub logical_pages: u32,
    /// Page size.
    pub page_bytes: u64,
    /// Different pages in each unit of writes.
    pub unique_pages: Vec<u32>,
    /// The comparison, for the reference and then the others.
    pub agreements: Vec<Agreement>,
    /// The sweeps.
    pub sweeps: Vec<SweepFindings>,
}

/// The compared schemes against one reference.
#[derive(Clone, Debug, Serialize)]
pub struct Agreement {
    /// The reference.
    pub reference: String,
    /// Writes in each window.
    pub window_writes: u64,
    /// The reference's hot ratio, whole and by window.
    pub reference_hot_ratio: f64,
    /// See above.
    pub reference_hot_ratio_by_window: Vec<f64>,
    /// The schemes.
    pub schemes: Vec<SchemeAgreement>,
}

/// One scheme against one reference.
#[derive(Clone, Debug, Serialize)]
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
}

/// One sweep on one trace.
#[derive(Clone, Debug, Serialize)]
pub struct SweepFindings {
    /// As in the description.
    pub name: String,
    /// As in the description.
    pub figure: String,
    /// As in the description.
    pub x: String,
    /// As in the description.
    pub note: String,
    /// As in the description.
    pub measure: Measure,
    /// The lines.
    pub series: Vec<SeriesFindings>,
}

/// One line of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesFindings {
    /// As in the description.
    pub name: String,
    /// The points.
    pub points: Vec<PointFindings>,
}

/// One point of a line.
#[derive(Clone, Debug, Serialize)]
pub struct PointFindings {
    /// As in the description.
    pub x: f64,
    /// The value there.
    pub y: f64,
    /// The scheme there.
    pub scheme: String,
    /// Bytes of its state.
    pub memory_bytes: u64,
}

/// A published change beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// As in the description.
    pub figure: String,
    /// As in the description.
    pub claim: String,
    /// As in the description.
    pub trace: String,
    /// As in the description.
    pub published_change: f64,
    /// Ours; `None` if the trace was not there.
    pub our_change: Option<f64>,
    /// As in the description.
    pub difference: String,
}

/// What verdicts and aging steps cost on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct CostFindings {
    /// Name of the trace.
    pub trace: String,
    /// The schemes.
    pub schemes: Vec<SchemeCost>,
    /// Published numbers about costs beside ours.
    pub published: Vec<Comparison>,
}

/// What one scheme costs.
#[derive(Clone, Debug, Serialize)]
pub struct SchemeCost {
    /// The scheme.
    pub name: String,
    /// Bytes of state.
    pub memory_bytes: u64,
    /// Best of the rounds.
    pub ns_per_check: f64,
    /// Best of the rounds.
    pub ns_per_decay: Option<f64>,
}

impl SchemeAgreement {
    fn of(result: &SchemeResult) -> Self {
        let total = &result.total;
        Self {
            name: result.name.to_string(),
            memory_bytes: result.memory_bytes,
            hot_ratio: total.hot_ratio(),
            false_identification_rate: total.false_identification_rate(),
            false_hot_rate: total.false_hot_rate(),
            false_cold_rate: total.false_cold_rate(),
            precision: total.precision(),
            recall: total.recall(),
            hot_ratio_by_window: result.windows.iter().map(Counts::hot_ratio).collect(),
            false_identification_rate_by_window: result.windows.iter().map(Counts::false_identification_rate).collect(),
        }
    }
}

impl Agreement {
    /// The first `schemes` of a measurement.
    ///
    /// # Panics
    /// If it has fewer, or none.
    pub fn of(measurement: &Measurement, schemes: usize, window_writes: u64) -> Self {
        let first = &measurement.schemes[0];
        Self {
            reference: measurement.reference.to_string(),
            window_writes,
            reference_hot_ratio: first.total.reference_hot_ratio(),
            reference_hot_ratio_by_window: first.windows.iter().map(Counts::reference_hot_ratio).collect(),
            schemes: measurement.schemes[..schemes].iter().map(SchemeAgreement::of).collect(),
        }
    }
}

impl From<&SchemeResult> for SchemeCost {
    fn from(result: &SchemeResult) -> Self {
        Self {
            name: result.name.to_string(),
            memory_bytes: result.memory_bytes,
            ns_per_check: result.ns_per_check,
            ns_per_decay: result.ns_per_decay,
        }
    }
}

impl Findings {
    /// One line for each trace, reference and scheme.
    pub fn agreement_csv(&self) -> String {
        let mut csv = String::from(
            "trace,reference,scheme,memory_bytes,writes,reference_hot_ratio,hot_ratio,\
             false_identification_rate,false_hot_rate,false_cold_rate,precision,recall\n",
        );
        for trace in &self.traces {
            for agreement in &trace.agreements {
                for scheme in &agreement.schemes {
                    csv += &format!(
                        "{},\"{}\",\"{}\",{},{},{},{},{},{},{},{},{}\n",
                        trace.name,
                        agreement.reference,
                        scheme.name,
                        scheme.memory_bytes,
                        trace.writes,
                        agreement.reference_hot_ratio,
                        scheme.hot_ratio,
                        scheme.false_identification_rate,
                        scheme.false_hot_rate,
                        scheme.false_cold_rate,
                        scheme.precision,
                        scheme.recall
                    );
                }
            }
        }
        csv
    }

    /// One line for each point of each sweep on each trace.
    pub fn sweeps_csv(&self) -> String {
        let mut csv = String::from("trace,sweep,figure,series,x,y,scheme,memory_bytes\n");
        for trace in &self.traces {
            for sweep in &trace.sweeps {
                for series in &sweep.series {
                    for point in &series.points {
                        csv += &format!(
                            "{},{},{},\"{}\",{},{},\"{}\",{}\n",
                            trace.name,
                            sweep.name,
                            sweep.figure,
                            series.name,
                            point.x,
                            point.y,
                            point.scheme,
                            point.memory_bytes
                        );
                    }
                }
            }
        }
        csv
    }
}
