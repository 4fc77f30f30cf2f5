//! What a log writes to: a row of blocks, cut into segments, and a place for checkpoints.

use crate::blocks::Block;
use crate::content::Content;
use crate::dirty::DirtyCache;
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
pub struct SegmentWrite<'a, C> {
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
    /// What the log knows of the blocks.
    pub(crate) cache: DirtyRun<'a, C>,
}

/// Where the log keeps what it knows of dirty blocks. Looked up only by a device that stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirtyRun<'a, C> {
    pub(crate) table: &'a [Block],
    pub(crate) dirty: &'a DirtyCache<C>,
}

impl<'a, C: Content> SegmentWrite<'a, C> {
    /// What the data blocks hold, in order.
    pub fn contents(&self) -> impl Iterator<Item = &'a C> {
        let DirtyRun { table, dirty } = self.cache;
        self.blocks.iter().map(move |block| dirty.content(table[*block as usize].slot))
    }
}

/// The device below a log.
///
/// # Contract
/// - Writes are durable in order when `flush` returns, and some may be before.
/// - `checkpoint` is called after a flush, and is itself durable after the next one.
/// - A read gives what was written last at a position, in the log's own order, flushed or not.
pub trait Disk {
    /// What a block holds: `()` where nothing is stored.
    type Block: Content;
    /// Writes a run of blocks of one segment.
    ///
    /// # Errors
    /// Faults of the device.
    fn write(&mut self, write: &SegmentWrite<'_, Self::Block>) -> Result<(), DeviceError>;
    /// Reads consecutive blocks from `position` on, as many as `out` has room for.
    ///
    /// # Errors
    /// Faults of the device.
    fn read(&mut self, position: u32, out: &mut [Self::Block]) -> Result<(), DeviceError>;
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
