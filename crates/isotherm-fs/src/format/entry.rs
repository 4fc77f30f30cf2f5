//! The entry of a block or page: where its newest durable copy is, how often and when it was written, and its checksum.

use super::bytes::{put, u32_at};
use crate::store::{ENTRY_BYTES, Heat};

/// Position of what is not there.
pub const HOLE: u32 = 0;
/// Position of a block whose space is set aside, and of a page that was never written to the log.
pub const RESERVED: u32 = u32::MAX;

/// See the module's text. 16 bytes: position, writes, time, checksum, four each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Block of the device, [`HOLE`] or [`RESERVED`].
    pub position: u32,
    /// Writes so far, and the time of the last one.
    pub heat: Heat,
    /// crc32c of the 4096 bytes.
    pub checksum: u32,
}

impl Entry {
    /// Of a block whose space is set aside, or of a page that was never written.
    pub const RESERVED: Self = Self { position: RESERVED, heat: Heat { writes: 0, time: 0 }, checksum: 0 };

    /// Reads the entry at slot `index` of `page`.
    #[must_use]
    pub fn at(page: &[u8], index: usize) -> Self {
        let at = index * ENTRY_BYTES;
        Self {
            position: u32_at(page, at),
            heat: Heat { writes: u32_at(page, at + 4), time: u32_at(page, at + 8) },
            checksum: u32_at(page, at + 12),
        }
    }

    /// Writes it to slot `index` of `page`.
    pub fn put(self, page: &mut [u8], index: usize) {
        let at = index * ENTRY_BYTES;
        put(page, at, &self.position.to_le_bytes());
        put(page, at + 4, &self.heat.writes.to_le_bytes());
        put(page, at + 8, &self.heat.time.to_le_bytes());
        put(page, at + 12, &self.checksum.to_le_bytes());
    }

    /// Whether there is a copy on the device.
    #[must_use]
    pub fn is_stored(self) -> bool {
        self.position != HOLE && self.position != RESERVED
    }
}
