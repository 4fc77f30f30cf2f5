//! Results as a table with one row per run and one column per number, for CSV and Parquet. A measurement of hot data
//! identification has a row for each scheme.
//!
//! Columns are the keys of `results.json`, objects flattened with dots (`erase_count.max`, `spec.gc.victim`); lists stay in
//! the JSON. A column that some run does not have is empty there.

use crate::results::{HotnessResult, ResultsFile};
use serde::Serialize;
use serde_json::Value;

/// The values of one column, by run.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Real numbers.
    Real(Vec<Option<f64>>),
    /// Anything else, as text.
    Text(Vec<Option<String>>),
}

/// Named columns of equal length.
pub type Columns = Vec<(String, Column)>;

/// The columns of a results file.
pub fn columns(file: &ResultsFile) -> Columns {
    let mut names: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<(String, Value)>> = Vec::new();
    for value in file.runs.iter().map(to_value).chain(file.hotness.iter().flat_map(by_scheme)) {
        let mut row = Vec::new();
        flatten("", value, &mut row);
        for (name, _) in &row {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push(row);
    }
    names.into_iter().map(|name| column_of(name, &rows)).collect()
}

fn to_value(result: &impl Serialize) -> Value {
    serde_json::to_value(result).expect("results have string keys and finite numbers")
}

/// A measurement once for each of its schemes, which stands in place of the list.
fn by_scheme(measured: &HotnessResult) -> impl Iterator<Item = Value> {
    let whole = to_value(measured);
    measured.schemes.iter().map(move |scheme| {
        let mut row = whole.clone();
        row["scheme"] = to_value(scheme);
        row
    })
}

fn flatten(prefix: &str, value: Value, row: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                flatten(&name, value, row);
            }
        }
        // The reasons of a verdict are what a reader of a table looks for; other lists are distributions.
        Value::Array(list) if prefix == "verdict.reasons" => {
            let texts: Vec<_> = list.iter().filter_map(Value::as_str).collect();
            row.push((prefix.to_owned(), Value::from(texts.join("; "))));
        }
        Value::Array(_) => {}
        scalar => row.push((prefix.to_owned(), scalar)),
    }
}

fn column_of(name: String, rows: &[Vec<(String, Value)>]) -> (String, Column) {
    let cells: Vec<Option<&Value>> =
        rows.iter().map(|row| row.iter().find(|c| c.0 == name).map(|c| &c.1).filter(|v| !v.is_null())).collect();
    let all = |test: fn(&Value) -> bool| cells.iter().flatten().all(|v| test(v));
    let column = if cells.iter().all(Option::is_none) || all(Value::is_f64) {
        Column::Real(cells.iter().map(|v| v.and_then(Value::as_f64)).collect())
    } else if all(|v| v.as_i64().is_some()) {
        Column::Whole(cells.iter().map(|v| v.and_then(Value::as_i64)).collect())
    } else if all(Value::is_number) {
        Column::Real(cells.iter().map(|v| v.and_then(Value::as_f64)).collect())
    } else {
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        Column::Text(cells.iter().map(|v| v.map(text)).collect())
    };
    (name, column)
}

/// The table as CSV (RFC 4180), with a header.
pub fn to_csv(columns: &Columns) -> String {
    let quoted = |text: &str| {
        if text.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let mut csv = columns.iter().map(|c| quoted(&c.0)).collect::<Vec<_>>().join(",");
    csv.push('\n');
    let rows = columns.first().map_or(0, |c| c.1.len());
    for row in 0..rows {
        let cells: Vec<String> = columns.iter().map(|c| quoted(&c.1.cell(row))).collect();
        csv.push_str(&cells.join(","));
        csv.push('\n');
    }
    csv
}

impl Column {
    /// Number of runs.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(cells) => cells.len(),
            Self::Real(cells) => cells.len(),
            Self::Text(cells) => cells.len(),
        }
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, row: usize) -> String {
        match self {
            Self::Whole(cells) => cells[row].map_or_else(String::new, |v| v.to_string()),
            Self::Real(cells) => cells[row].map_or_else(String::new, |v| v.to_string()),
            Self::Text(cells) => cells[row].clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_are_found_over_all_rows_and_cells_are_quoted() {
        let mut rows = Vec::new();
        for value in [json!({"a": {"b": 1}, "c": "x,\"y\"", "list": [1]}), json!({"a": {"b": 2.5}, "d": null, "e": 7})]
        {
            let mut row = Vec::new();
            flatten("", value, &mut row);
            rows.push(row);
        }
        let columns: Columns =
            ["a.b", "c", "d", "e"].into_iter().map(|name| column_of(name.to_owned(), &rows)).collect();
        assert_eq!(columns[0].1, Column::Real(vec![Some(1.0), Some(2.5)]));
        assert_eq!(columns[3].1, Column::Whole(vec![None, Some(7)]));
        assert_eq!(to_csv(&columns), "a.b,c,d,e\n1,\"x,\"\"y\"\"\",,\n2.5,,,7\n");
        assert!(rows[0].iter().all(|c| c.0 != "list"));
    }
}
