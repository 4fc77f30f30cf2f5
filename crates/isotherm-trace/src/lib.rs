//! Block traces: readers for the formats in use, synthetic workloads, and profiles of either.
//!
//! Everything is a stream of [`Request`]s in batches. [`open()`] takes the path of a trace (format and compression are
//! told by content) or the specification of a synthetic workload:
//!
//! ```
//! use isotherm_trace::{OpenOptions, open};
//! let mut reader = open("synth:zipf,theta=0.99,pages=1024,writes=10000,seed=1", &OpenOptions::default())?;
//! let mut batch = Vec::new();
//! let mut requests = 0;
//! while reader.fill(&mut batch, 4096)? > 0 {
//!     requests += batch.len();
//!     batch.clear();
//! }
//! assert_eq!(requests, 10000);
//! # Ok::<(), isotherm_trace::TraceError>(())
//! ```
//!
//! `examples/requests.rs` is a whole program. [`FORMATS`] lists what can be read, [`synth`] what can be made, and
//! [`TraceWriter`] writes the canonical forms, [`TraceLog`] one that can be read while it grows, [`split()`] a file for each volume.
//!
//! # Features
//! `parquet` (off by default): the canonical form in Parquet. Without it, such files are recognised and refused with
//! [`TraceError::NoParquet`].
//!
//! Layers, from the bytes up: `source` (file, packing) -> `lines` and `row` (scanning) -> `formats` (one file each) ->
//! `sink` (limits) and `volumes` (end to end) -> `order` (times) ->
//! `leading` (mkfs's discard) -> [`TraceReader`].

mod binary;
mod detect;
mod error;
mod footprint;
mod formats;
mod leading;
mod lines;
mod log;
mod open;
mod options;
mod order;
mod profile;
mod records;
mod registry;
mod row;
mod sink;
mod source;
mod split;
mod spool;
pub mod synth;
mod text;
mod volumes;
mod write;

pub use error::{Place, TraceError};
pub use isotherm::request::{Op, Request};
pub use leading::LeadingTrims;
pub use log::TraceLog;
pub use open::{open, open_bytes};
pub use options::{BlktraceAction, OpenOptions, SORT_WINDOW, Sort, TimeUnit};
pub use profile::{LengthBin, OpProfile, Profile, profile, profile_pages, profile_reader};
pub use registry::{FORMATS, Format, FormatEntry, Need};
pub use sink::{END_BYTES_MAX, TRANSFER_BYTES_MAX};
pub use split::{Split, split};
pub use spool::Spool;
pub use volumes::VOLUME_ALIGNMENT;
pub use write::{TraceWriter, push_csv_line};

/// A source of requests in order of time.
///
/// # Contract
/// - [`fill`](TraceReader::fill) appends at most `most` requests and returns how many; 0 (for `most` > 0) is the end.
/// - Times never run backwards. Requests lie below [`END_BYTES_MAX`]; only flushes have length 0.
/// - A trace without any request is an error, not an end.
/// - After an error the reader is not used again.
pub trait TraceReader {
    /// Appends up to `most` requests to `batch`.
    ///
    /// # Errors
    /// The file cannot be read on, a row is wrong and may not be skipped, times run backwards, the trace is empty.
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError>;
    /// Rows skipped so far because they could not be read.
    fn skipped(&self) -> u64;
    /// Requests so far that came later in the file than their time says, and were put in order.
    fn reordered(&self) -> u64 {
        0
    }
    /// Trims at the head that were dropped so far ([`OpenOptions::drop_leading_trims`]).
    fn leading_trims(&self) -> LeadingTrims {
        LeadingTrims::default()
    }
    /// Whether what was read so far has a column that says who asks, as the canonical text may.
    fn names_streams(&self) -> bool {
        false
    }
    /// Name of the format, as [`FORMATS`] has it; `synth` for synthetic workloads.
    fn format(&self) -> &'static str;
}
