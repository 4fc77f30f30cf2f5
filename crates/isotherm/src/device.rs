//! What a simulated device is to those who use it: observed ([`Observe`]), given requests ([`Replay`]), or read and written
//! ([`BlockDevice`]).

use crate::registry::SpecError;
use crate::request::Request;
use crate::stats::{Latencies, Snapshot, WearSummary};

/// Why a device stopped. The fault is in the workload or the specification, never in the simulator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// A request reaches past the end of the device.
    #[error(
        "bytes {offset} to {end} reach past the device's {capacity_bytes} bytes; give a larger device.logical_size, or fold addresses by replay.address, wrap or compact"
    )]
    OutOfRange {
        /// Index of the request in its batch.
        request: usize,
        /// First byte asked for.
        offset: u64,
        /// One past the last byte asked for.
        end: u64,
        /// The device's logical size.
        capacity_bytes: u64,
    },
    /// No free block is left and no victim would free one.
    #[error("the device is full: {detail}; give more device.over_provisioning or fewer streams")]
    NoSpace {
        /// What the collector found.
        detail: String,
    },
    /// So many blocks failed that the rest cannot hold the logical pages.
    #[error("the device is worn out: {retired_blocks} of {blocks} blocks have failed; it is read-only now")]
    WornOut {
        /// Blocks that failed.
        retired_blocks: u32,
        /// Blocks in all.
        blocks: u32,
    },
    /// A page could not be read back.
    #[error("LPN {lpn} cannot be read: its page has failed")]
    Unreadable {
        /// The logical page.
        lpn: u32,
    },
    /// What lies on the medium cannot be what a device left there: pages were changed or lost.
    #[error("the pages on flash contradict one another: {detail}")]
    Contradiction {
        /// What was found.
        detail: String,
    },
    /// Power was cut (fault injection).
    #[error("power was lost")]
    PowerLost,
    /// A policy that the embedding program brought along could not decide.
    #[error("a policy failed: {detail}")]
    Policy {
        /// What it said.
        detail: String,
    },
    /// What keeps the content of pages failed. The device stops as in a loss of power: it answers nothing more until it is opened
    /// again.
    #[error("the content of the device cannot be kept or read: {0}")]
    Payload(std::io::ErrorKind),
}

impl DeviceError {
    /// Whether nothing could be written for want of room, so that the device still answers reads.
    pub fn is_out_of_room(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::WornOut { .. })
    }
}

impl From<DeviceError> for SpecError {
    /// A device that could not take its first form.
    fn from(error: DeviceError) -> Self {
        Self::new("device", error.to_string(), "give a larger device")
    }
}

/// What a block is doing, as those who watch a device see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockPhase {
    /// Erased, or never used.
    #[default]
    Free,
    /// Being filled.
    Open,
    /// Full: it may be chosen to be cleaned for room.
    Closed,
    /// Full, and cleaned by rules of its own: it holds the FTL's own pages, or is being emptied.
    Reserved,
    /// Never to be used again.
    Retired,
}

/// A block as those who watch a device see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockView {
    /// What it is doing.
    pub phase: BlockPhase,
    /// The stream that filled it; 0 where blocks have no streams.
    pub stream: u16,
    /// Valid pages.
    pub valid: u32,
    /// Times that it was erased.
    pub erases: u32,
    /// What its age counts from, in host page writes; 0 where blocks have no age.
    pub stamp: u64,
}

/// What every device can be asked, whatever is done with it.
pub trait Observe {
    /// Everything counted since the device was built.
    fn snapshot(&self) -> Snapshot;
    /// Erase counts over the blocks.
    fn wear(&self) -> WearSummary;
    /// Erase count of every block, for distributions.
    fn block_erases(&self) -> Vec<u32>;
    /// Every block now.
    fn blocks(&self) -> Vec<BlockView>;
    /// Latency of requests since the last reset; empty without a timing model.
    fn latencies(&self) -> &Latencies;
    /// Forgets latencies recorded so far, as at the start of a measured window.
    fn reset_latencies(&mut self);
    /// Checks every conservation law of the counters and tables.
    ///
    /// # Errors
    /// The first law that is broken, in words: a bug of the simulator.
    fn check(&self) -> Result<(), String>;
    /// Logical pages.
    fn logical_pages(&self) -> u32;
    /// Physical pages, the collector's reserve included.
    fn physical_pages(&self) -> u32;
    /// Bytes in a page.
    fn page_bytes(&self) -> u32;
}

/// A device that replays requests and counts. One virtual call serves a batch of a few thousand requests.
///
/// # Contract
/// - After an error the requests before the one at fault have been carried out, and counters are whole.
/// - The same build, the same requests: the same counters.
pub trait Replay: Observe + Send {
    /// Carries out `batch` in order.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn submit(&mut self, batch: &[Request]) -> Result<(), DeviceError>;
    /// Lets the device clean in the background for `budget_ns` of its own time.
    ///
    /// # Errors
    /// As [`Replay::submit`].
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError>;
}

/// A device that keeps its bytes: what a file system or a block server stands on. Ranges need not be aligned to pages.
///
/// # Contract
/// - A read returns the last write of every byte, and zeros where nothing was written or everything was trimmed.
/// - Everything is durable after the next flush; without a write buffer, a write is durable when it returns. Durable means
///   that it outlives a loss of the device's power; where content is kept outside this process, whoever owns the store says when
///   it outlives that of the machine.
/// - The same build, the same requests, arriving at the same times: the counters of [`Replay`].
pub trait BlockDevice: Observe + Send {
    /// Bytes that the device holds.
    fn capacity_bytes(&self) -> u64;
    /// Requests from now on arrive at `now_ns`, on a clock that never runs back, and `source` asks (see
    /// [`Request::source`](crate::request::Request::source)); both are 0 until it is first told.
    fn arrive(&mut self, now_ns: u64, source: u16);
    /// Reads `out.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), DeviceError>;
    /// Writes `data` at `offset`; with `durable` it is durable when this returns.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), DeviceError>;
    /// Discards a range; only whole pages in it lose their content.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn trim(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError>;
    /// Makes a range zero: whole pages are discarded, parts of pages are written.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn write_zeroes(&mut self, offset: u64, length: u64, durable: bool) -> Result<(), DeviceError>;
    /// Makes everything durable.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn flush(&mut self) -> Result<(), DeviceError>;
    /// What the last request took on the device's own clock, from its arrival on; none without a clock.
    fn latency_ns(&self) -> Option<u64>;
    /// Whether a logical page, below [`Observe::logical_pages`], holds data; else it reads as zeros.
    fn holds_data(&self, page: u32) -> bool;
    /// Lets the device clean in the background for `budget_ns` of its own time.
    ///
    /// # Errors
    /// See [`DeviceError`].
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError>;
}
