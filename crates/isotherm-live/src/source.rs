//! What a page shows: the trait of whatever can be sampled, and the numbers that it gives.

use crate::Cells;
use serde::Serialize;

/// Something that a live page shows.
///
/// # Contract
/// - One thread of the page calls the methods, one call at a time; what they return is shared among all clients. A method that
///   takes long delays the page and nobody else.
/// - Counters never decrease, and begin at zero together with [`Sample::time_ms`].
/// - A method that panics ends the sampling; the page then says that nothing comes.
/// - Lists keep their order from one call to the next, so that a cause, an operation or a stream keeps its colour.
pub trait Source: Send + Sync + 'static {
    /// What is shown. Called once, before anything else.
    fn about(&self) -> About;
    /// Everything that is counted, as other tools print it. Called when somebody asks for it, twice a second at most.
    fn stats(&self) -> serde_json::Value;
    /// The numbers of this moment. Called twice a second, so it must be cheap.
    fn sample(&self) -> Sample;
    /// Every block, in at most `most` cells. Called every two seconds while somebody looks. [`Cells::gather`] makes them from
    /// blocks.
    fn cells(&self, most: usize) -> Cells;
    /// The counters in Prometheus' text format. Called when somebody asks for it, twice a second at most.
    fn metrics(&self) -> String;
}

/// What a page is about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    /// Title of the page, such as the name of the drive.
    pub title: String,
    /// What is served and how it was built: specification, mapping, placement, victim policy, sizes.
    pub facts: Vec<Fact>,
    /// What the cells of the map and the free pool are made of.
    pub unit: Unit,
    /// Names of the streams by number, such as "host" and "gc". Streams without one are shown by number.
    pub streams: Vec<String>,
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

/// What is written as a whole, and erased or cleaned as a whole: a block of flash, a segment of a log.
#[derive(Clone, Debug, Serialize)]
pub struct Unit {
    /// One of them, in lower case.
    pub one: String,
    /// Several of them, in lower case.
    pub many: String,
    /// What makes one free again, said of the unit in the plural: "erases" for a block.
    pub erases: String,
}

impl Default for Unit {
    /// A block of flash.
    fn default() -> Self {
        Self { one: "block".into(), many: "blocks".into(), erases: "erases".into() }
    }
}

/// The numbers of one moment. Counts run since serving began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Milliseconds since serving began.
    pub time_ms: u64,
    /// Pages that the host wrote: what write amplification is measured against.
    pub host_pages_written: u64,
    /// Bytes that the host wrote.
    pub host_bytes_written: u64,
    /// Bytes that the host read.
    pub host_bytes_read: u64,
    /// Bytes programmed into the medium, for whatever reason.
    pub media_bytes_written: u64,
    /// Pages programmed by cause; write amplification is their sum over [`Sample::host_pages_written`].
    pub pages_programmed: Vec<(String, u64)>,
    /// Blocks that hold nothing.
    pub free_blocks: u32,
    /// Free blocks at which collection begins.
    pub floor_blocks: u32,
    /// Latencies by operation.
    pub latencies: Vec<LatencyRow>,
    /// The slowest requests of late, slowest first; ten or so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slow>,
    /// The blocks that were chosen last to be collected, newest last; a hundred or so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<Victim>,
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

/// A block that was chosen to be collected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Victim {
    /// When, in milliseconds since serving began.
    pub time_ms: u64,
    /// Its number, from 0 on.
    pub block: u32,
    /// The share of its pages that were valid and had to be moved, 0 to 1.
    pub valid_share: f32,
    /// The stream that had written it.
    pub stream: u16,
}
