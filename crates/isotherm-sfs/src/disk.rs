//! What a log writes to: a row of blocks, cut into segments, and a place for checkpoints.

use crate::options::BLOCK_BYTES;
use isotherm::device::DeviceError;

/// Bytes that a checkpoint records of a segment: live blocks, state and time.
const CHECKPOINT_BYTES_PER_SEGMENT: u32 = 16;

/// Blocks of one checkpoint: a superblock with the centres, and the table of segments. The map itself is found in the summaries.
pub fn checkpoint_blocks(segments: u32) -> u32 {
    1 + segments.div_ceil(BLOCK_BYTES / CHECKPOINT_BYTES_PER_SEGMENT)
}

/// Mark of a position that holds no data block: a summary, or nothing.
pub const NO_BLOCK: u32 = u32::MAX;

/// A run of blocks that is written at once: summaries first, then data.
#[derive(Clone, Copy, Debug)]
pub struct SegmentWrite<'a> {
    /// Position of the first block: segment number times blocks per segment, plus the index in it.
    pub position: u32,
    /// Summary blocks at its head.
    pub summary_blocks: u32,
    /// The data blocks, in order.
    pub blocks: &'a [u32],
    /// Of these, how many the cleaner moves.
    pub cleaned: u32,
    /// Rises with every write: roll-forward replays in this order.
    pub sequence: u64,
}

/// The device below a log.
///
/// # Contract
/// - Writes are durable in order when `flush` returns, and some may be before.
/// - `checkpoint` is called after a flush, and is itself durable after the next one.
pub trait Disk {
    /// Writes a run of blocks of one segment.
    ///
    /// # Errors
    /// Faults of the device.
    fn write(&mut self, write: &SegmentWrite<'_>) -> Result<(), DeviceError>;
    /// Reads `count` consecutive blocks from `position` on.
    ///
    /// # Errors
    /// Faults of the device.
    fn read(&mut self, position: u32, count: u32) -> Result<(), DeviceError>;
    /// A segment holds nothing any more.
    ///
    /// # Errors
    /// Faults of the device.
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError>;
    /// Makes everything so far durable.
    ///
    /// # Errors
    /// Faults of the device.
    fn flush(&mut self) -> Result<(), DeviceError>;
    /// Writes the checkpoint's blocks to one of two alternating places.
    ///
    /// # Errors
    /// Faults of the device.
    fn checkpoint(&mut self, number: u64, sequence: u64) -> Result<(), DeviceError>;
}
