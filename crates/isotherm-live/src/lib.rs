//! A page that shows what a served drive or a mounted volume does, as it does it: write amplification by cause, throughput, free
//! blocks or segments, what is chosen to be cleaned, latencies, and a map of every block or segment. Prometheus reads the same server.
//!
//! Whatever can be sampled is a [`Source`]: a drive, a mounted file system. The server knows nothing else of it, and nothing that a
//! client sends reaches it: one thread asks the source at a steady pace, and clients get what that thread published.
//!
//! | address | answer |
//! |---|---|
//! | `/` | the page; it fetches nothing from elsewhere |
//! | `/stats` | everything, as JSON |
//! | `/metrics` | Prometheus' text format |
//! | `/cells?most=N` | the map of all units as JSON, in at most N cells |
//! | `/events` | server-sent events: `about`, `history`, then `sample` every 500 ms and `cells` every 2 s |
//!
//! Everything is read only. The page is bound to a loopback address unless remote readers are allowed, and answers only requests
//! that name the address they came to, so that no web page of another origin can read it by rebinding a name.

mod assets;
mod board;
mod cells;
mod colouring;
mod connections;
mod deadline;
mod events;
mod figures;
mod host;
mod request;
mod response;
mod routes;
mod sampler;
mod server;
mod source;

pub use cells::{Cells, State, Unit};
pub use colouring::{Colouring, Scale};
pub use figures::{Counter, Figure, Ratio, Table, Value};
pub use server::LivePage;
pub use source::{About, Fact, LatencyRow, Sample, Slow, Source, Threshold, Victim, Words};

/// The most cells that a map is published with; where there are more units, several are drawn in a cell.
pub const MOST_CELLS: usize = 20_000;
