//! What a source shows beside what every source has: figures, ratios, tables.

use serde::{Serialize, Serializer};

/// A value, written as people read it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Words.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number, of which three digits are shown.
    Number(f64),
    /// 0 to 1.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

/// A value with its name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// What it is now.
    pub value: Value,
}

/// A product of quotients of counters, such as a cost: shown as it was of late.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// What it is.
    pub name: &'static str,
    /// Pairs of dividend and divisor, counted since serving began. Most ratios have one.
    pub quotients: Vec<[u64; 2]>,
}

/// A counter with its name. In JSON a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// What is counted.
    pub name: String,
    /// How many there were since serving began.
    pub count: u64,
}

impl Counter {
    /// A counter.
    pub fn new(name: impl Into<String>, count: u64) -> Self {
        Self { name: name.into(), count }
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.name, self.count).serialize(serializer)
    }
}

/// A table. The first column names the rows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// Its heading.
    pub title: &'static str,
    /// A sentence below the heading; may be empty.
    pub note: String,
    /// Headings of the columns.
    pub columns: Vec<&'static str>,
    /// As many values as columns in each.
    pub rows: Vec<Vec<Value>>,
}
