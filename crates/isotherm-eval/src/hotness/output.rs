//! A measurement as JSON (the stable interface), as CSV over time, and as text for people.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Measurement, SchemeResult};

impl Measurement {
    /// Whether hot means "rewritten soon" here, so that precision and recall are those of a prediction.
    fn is_prediction(&self) -> bool {
        self.reference.name == "oracle"
    }
}

/// The measurement of `trace` as one object. The keys that are always there are a stable interface; `precision` and
/// `recall` are added when the reference knows the future, `ns_per_decay` where a scheme ages in steps.
pub fn json(trace: &str, measurement: &Measurement) -> Value {
    let scheme = |result: &SchemeResult| {
        let total = &result.total;
        let mut object = Map::new();
        object.insert("name".into(), json!(result.name.to_string()));
        object.insert("hot_ratio".into(), json!(total.hot_ratio()));
        object.insert("false_identification_rate".into(), json!(total.false_identification_rate()));
        object.insert("false_hot_rate".into(), json!(total.false_hot_rate()));
        object.insert("false_cold_rate".into(), json!(total.false_cold_rate()));
        object.insert("memory_bytes".into(), json!(result.memory_bytes));
        object.insert("ns_per_check".into(), json!(result.ns_per_check));
        if let Some(ns) = result.ns_per_decay {
            object.insert("ns_per_decay".into(), json!(ns));
        }
        if measurement.is_prediction() {
            object.insert("precision".into(), json!(total.precision()));
            object.insert("recall".into(), json!(total.recall()));
        }
        Value::Object(object)
    };
    json!({
        "trace": trace,
        "writes": measurement.writes,
        "reference": measurement.reference.to_string(),
        "schemes": measurement.schemes.iter().map(scheme).collect::<Vec<_>>(),
    })
}

/// One line for each window of each scheme.
pub fn windows_csv(measurement: &Measurement) -> String {
    let mut csv = String::from(
        "scheme,window,writes,hot_ratio,reference_hot_ratio,false_identification_rate,false_hot_rate,false_cold_rate\n",
    );
    for result in &measurement.schemes {
        for (number, window) in result.windows.iter().enumerate() {
            // Parameters are separated by commas, so the name is quoted.
            let _ = writeln!(
                csv,
                "\"{}\",{number},{},{},{},{},{},{}",
                result.name,
                window.writes,
                window.hot_ratio(),
                window.reference_hot_ratio(),
                window.false_identification_rate(),
                window.false_hot_rate(),
                window.false_cold_rate()
            );
        }
    }
    csv
}

/// A table for people.
pub fn text(trace: &str, measurement: &Measurement) -> String {
    let name_width = measurement.schemes.iter().map(|s| s.name.to_string().len()).max().unwrap_or(0).max(6);
    let mut text = format!("{trace}: {} page writes, reference {}", measurement.writes, measurement.reference);
    if let Some(first) = measurement.schemes.first() {
        let _ = write!(text, " ({:.2} % hot)", 100.0 * first.total.reference_hot_ratio());
    }
    let _ = write!(
        text,
        "\n{:name_width$} {:>8} {:>9} {:>9} {:>10} {:>12} {:>9} {:>9}",
        "scheme", "hot %", "false %", "f. hot %", "f. cold %", "bytes", "ns/check", "ns/decay"
    );
    if measurement.is_prediction() {
        let _ = write!(text, " {:>10} {:>8}", "precision", "recall");
    }
    text.push('\n');
    for result in &measurement.schemes {
        let total = &result.total;
        let decay = result.ns_per_decay.map_or("-".to_owned(), |ns| format!("{ns:.1}"));
        let _ = write!(
            text,
            "{:name_width$} {:8.2} {:9.3} {:9.3} {:10.3} {:12} {:9.1} {decay:>9}",
            result.name.to_string(),
            100.0 * total.hot_ratio(),
            100.0 * total.false_identification_rate(),
            100.0 * total.false_hot_rate(),
            100.0 * total.false_cold_rate(),
            result.memory_bytes,
            result.ns_per_check
        );
        if measurement.is_prediction() {
            let _ = write!(text, " {:10.4} {:8.4}", total.precision(), total.recall());
        }
        text.push('\n');
    }
    text
}
