//! Runs that differ in their seed alone, and what could not be run.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::collections::BTreeMap;

/// A mean over runs, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Runs that have the number.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `null` for a single run.
    pub confidence_95: Option<f64>,
    /// Least number.
    pub min: f64,
    /// Largest number.
    pub max: f64,
}

/// Runs that differ in their seed alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicates {
    /// Label of the runs.
    pub label: String,
    /// Their axes, the seed aside.
    pub axes: Map<String, serde_json::Value>,
    /// Their seeds.
    pub seeds: Vec<u64>,
    /// Numbers of the runs, by their key (with dots into objects).
    pub values: BTreeMap<String, Estimate>,
}

/// What was asked for and has no result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its label, or the trace of several.
    pub label: String,
    /// Why there is no result, and what to change.
    pub reason: String,
}
