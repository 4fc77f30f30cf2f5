//! What a log writes to: a row of blocks, cut into segments, and a place for checkpoints.

use crate::blocks::Block;
use crate::checkpoint::CheckpointWrite;
use crate::content::BlockContent;
use crate::dirty::DirtyCache;
use isotherm::device::DeviceError;
use isotherm::hotness::heat::{Heat, Time};

/// Mark of a position that holds no data block: a summary, or nothing.
pub const NO_BLOCK: u32 = u32::MAX;

/// What a summary says of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SummaryEntry {
    /// The block.
    pub block: u32,
    /// Its heat when it was written.
    pub heat: Heat,
    /// Time of its last write by the host.
    pub modified: Time,
}

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
    /// Recoveries of the log so far.
    pub(crate) incarnation: u32,
    /// The log's clock: block writes of the host.
    pub(crate) now: u64,
    /// Segment that is written after the one at hand.
    pub(crate) next_segment: u32,
    /// Where the log keeps what it knows of blocks. Looked up only by a device that stores it.
    pub(crate) table: &'a [Block],
    /// Where it keeps what they hold.
    pub(crate) dirty: &'a DirtyCache<C>,
}

impl<'a, C: BlockContent> SegmentWrite<'a, C> {
    /// What the data blocks hold, in order.
    pub fn contents(&self) -> impl Iterator<Item = &'a C> {
        let (table, dirty) = (self.table, self.dirty);
        self.blocks.iter().map(move |block| dirty.content(table[*block as usize].slot))
    }

    /// What the summary says of the data blocks, in order.
    pub fn entries(&self) -> impl Iterator<Item = SummaryEntry> + 'a {
        let table = self.table;
        self.blocks.iter().map(move |block| {
            let Block { heat, modified, .. } = table[*block as usize];
            SummaryEntry { block: *block, heat, modified }
        })
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
    type Block: BlockContent;
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
    fn checkpoint(&mut self, write: &CheckpointWrite<'_>) -> Result<(), DeviceError>;
}

/// A device below a log that gives back, after a loss of power, what the log has written about itself.
///
/// # Contract
/// - What was never written, or was trimmed, comes back as zeros or as no bytes.
pub trait Recoverable: Disk {
    /// Reads the block at `position`, which may hold a part of a summary, into the empty `out`: a whole block or nothing.
    ///
    /// # Errors
    /// Faults of the device.
    fn read_summary(&mut self, position: u32, out: &mut Vec<u8>) -> Result<(), DeviceError>;
    /// Reads a whole checkpoint from one of the two places, 0 or 1, into the empty `out`.
    ///
    /// # Errors
    /// Faults of the device.
    fn read_checkpoint(&mut self, place: u32, out: &mut Vec<u8>) -> Result<(), DeviceError>;
}
