//! What a device counted: by cause, by collection, by block, by request. Snapshots subtract, so that any window of a run
//! can be reported.
//!
//! Here are what every device counts, and the mechanism by which its parts count what is their own: a part declares its
//! counters with [`counters!`](crate::counters) where it stands, and puts them into [`Snapshot::sections`].

mod collector;
mod counters;
mod host;
mod latency;
mod medium;
mod results;
mod section;

pub use collector::{CollectorCounters, VICTIM_BUCKETS};
pub use counters::{Counter, share};
pub use host::HostCounters;
pub use latency::Latencies;
pub use medium::{FlashTime, MediumCounters, WearSummary};
pub use results::{Description, Key, Reported, Results, Shape, Value};
pub use section::{Section, SectionEntry, Sections};

/// A named number of bytes: one table of the device's DRAM.
pub type MemoryItem = (&'static str, u64);

/// Everything a device counted since it was built.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The host's requests.
    pub host: HostCounters,
    /// The medium's operations.
    pub medium: MediumCounters,
    /// The collector's work.
    pub collector: CollectorCounters,
    /// Time of the flash array; zero without a timing model.
    pub time: FlashTime,
    /// When the flash array will have done all that it was asked for, on the clock of arrivals; none where operations do not
    /// queue.
    pub busy_until_ns: Option<u64>,
    /// Valid pages on the medium now, of every kind.
    pub valid_pages: u64,
    /// Logical pages that hold data now.
    pub mapped_pages: u64,
    /// Blocks free now.
    pub free_blocks: u32,
    /// DRAM of the simulated controller, by table.
    pub dram: Vec<MemoryItem>,
    /// What parts that only some devices have counted.
    pub sections: Sections,
}

impl Snapshot {
    /// Pages programmed for each page the host wrote; NaN before the first write.
    pub fn write_amplification(&self) -> f64 {
        self.medium.programmed().total() as f64 / self.host.pages_written as f64
    }
}
