//! What a page shows: the trait of whatever can be sampled, and the numbers that it gives.

use crate::figures::{Counter, Figure, Ratio, Table};
use crate::{Cells, Colouring};
use serde::Serialize;

/// Something that a live page shows.
///
/// # Contract
/// - One thread of the page calls the methods, one call at a time; what they return is shared among all clients. A method that
///   takes long delays the page and nobody else.
/// - Counters never decrease, and begin at zero together with [`Sample::time_ms`].
/// - A method that panics ends the sampling; the page then says that nothing comes.
/// - Lists keep their length and order from one call to the next, so that a cause, an operation or a ratio keeps its colour; the
///   slowest requests, the victims and the rows of tables come and go.
pub trait Source: Send + Sync + 'static {
    /// What is shown. Called once, before anything else.
    fn about(&self) -> About;
    /// Everything that is counted, as other tools print it. Called when somebody asks for it, twice a second at most.
    fn stats(&self) -> serde_json::Value;
    /// The numbers of this moment. Called twice a second, so it must be cheap.
    fn sample(&self) -> Sample;
    /// Every unit, in at most `most` cells. Called every two seconds while somebody looks. [`Cells::gather`] makes them from
    /// units.
    fn cells(&self, most: usize) -> Cells;
    /// The counters in Prometheus' text format. Called when somebody asks for it, twice a second at most.
    fn metrics(&self) -> String;
}

/// What a page is about.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Title of the page, such as the name of the drive.
    pub title: String,
    /// What is served and how it was built: specification, mapping, placement, victim policy, sizes.
    pub facts: Vec<Fact>,
    /// What things are called.
    pub words: Words,
    /// How the map can be coloured, the first one at the start; by the units' states it always can.
    pub colourings: Vec<Colouring>,
    /// Whether latencies of requests are measured: [`Sample::latencies`] and [`Sample::slowest`].
    pub has_latencies: bool,
}

/// A name and its value, for people.
#[derive(Clone, Debug, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value with the unit.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// What things are called on a page. A *unit* is what is written as a whole, and erased or cleaned as a whole: a block of flash, a
/// segment of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Words {
    /// A unit, in lower case.
    pub one: &'static str,
    /// Several of them, in lower case.
    pub many: &'static str,
    /// What units in each of the [states](crate::State) are called; empty where none is ever in it.
    pub states: [&'static str; 4],
    /// What write amplification is here, as a sentence without its full stop: "Pages programmed for each page that the host wrote".
    pub amplification: &'static str,
    /// What [`Sample::ratios`] are, in the same way; may be empty where there are none.
    pub ratios: &'static str,
    /// What latencies are measured by, as a sentence; may be empty where there are none.
    pub latencies: &'static str,
    /// What happens when free units are down to the thresholds, as a sentence.
    pub thresholds: &'static str,
    /// What is done to a unit so that it becomes free, as a participle: "collected", "cleaned".
    pub collected: &'static str,
    /// What had to be moved for that: "valid pages moved".
    pub moved: &'static str,
}

impl Default for Words {
    /// Of a drive.
    fn default() -> Self {
        Self {
            one: "block",
            many: "blocks",
            states: ["free", "open", "closed", "bad"],
            amplification: "Pages programmed for each page that the host wrote",
            ratios: "",
            latencies: "Latencies are of the drive's simulated time, not of wall time.",
            thresholds: "Collection begins when free blocks are down to the floor.",
            collected: "collected",
            moved: "valid pages moved",
        }
    }
}

/// The numbers of one moment. Counts run since serving began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Milliseconds since serving began.
    pub time_ms: u64,
    /// Pages that were written from above: what write amplification is measured against.
    pub pages_wanted: u64,
    /// Pages written by cause; write amplification is their sum over [`Sample::pages_wanted`].
    pub pages_written: Vec<Counter>,
    /// Bytes that went from one place to another, such as "host writes".
    pub bytes: Vec<Counter>,
    /// Other ratios of interest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// What happens now and then, such as "erases".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Counter>,
    /// Units that hold nothing.
    pub free_units: u32,
    /// Counts of free units at which something happens, the one that matters most first.
    pub thresholds: Vec<Threshold>,
    /// Other values of interest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Why nothing is written any more; none where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Latencies by operation.
    pub latencies: Vec<LatencyRow>,
    /// The slowest requests of late, slowest first; ten or so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slow>,
    /// The units that were chosen last to be collected, newest last; a hundred or so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<Victim>,
    /// Other tables of interest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
}

/// A count of free units at which something happens.
#[derive(Clone, Debug, Serialize)]
pub struct Threshold {
    /// Its name.
    pub name: &'static str,
    /// The count.
    pub units: u32,
}

/// Latencies of one kind of operation, over every request since serving began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LatencyRow {
    /// The operation: "read", "write", "trim", "flush".
    pub op: String,
    /// Requests that ended.
    pub count: u64,
    /// Half of the requests took at most this long, in nanoseconds.
    pub p50_ns: u64,
    /// Nine of ten took at most this long.
    pub p90_ns: u64,
    /// 99 of 100 took at most this long.
    pub p99_ns: u64,
    /// 999 of 1000 took at most this long.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// P99 of the requests that ended in the last ten seconds, for the curve; absent where none did.
    pub recent_p99_ns: Option<u64>,
}

/// A request that took long.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Slow {
    /// When it ended, in milliseconds since serving began.
    pub time_ms: u64,
    /// The operation, as in [`LatencyRow::op`].
    pub op: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Nanoseconds from its arrival to its end.
    pub latency_ns: u64,
    /// What it waited for, in words: "collection of block 17", "an erase on die 3". Empty where nothing delayed it.
    pub delayed_by: String,
}

/// A unit that was chosen to be collected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Victim {
    /// When, in milliseconds since serving began.
    pub time_ms: u64,
    /// Its number, from 0 on.
    pub unit: u32,
    /// The share of it that was valid and had to be moved, 0 to 1.
    pub valid_share: f32,
    /// Its class, by the first colouring that has classes.
    pub class: u16,
}
