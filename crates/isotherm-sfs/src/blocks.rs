//! The log's table of blocks: 20 bytes each, in one cache line with what a write needs.

use isotherm::hotness::heat::{Heat, Time};

/// Position of a block that was never written.
pub(crate) const NOWHERE: u32 = u32::MAX;
/// Slot of a block that is not dirty.
pub(crate) const CLEAN: u32 = u32::MAX;

/// What the log knows of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Position of its newest durable copy, or [`NOWHERE`].
    pub(crate) position: u32,
    /// Its place in the dirty cache, or [`CLEAN`].
    pub(crate) slot: u32,
    pub(crate) heat: Heat,
    /// Time of its last write.
    pub(crate) modified: Time,
}

const _: () = assert!(size_of::<Block>() == 20);

/// A block that holds no data.
pub(crate) const NO_DATA: Block =
    Block { position: NOWHERE, slot: CLEAN, heat: Heat { writes: 0, time: 0 }, modified: 0 };
