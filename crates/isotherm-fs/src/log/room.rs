//! What fits into a write of the log: a summary with its transactions, and the blocks after it.

use crate::format::summary::{HEADER_BYTES, RECORD_BYTES, blocks as summary_blocks};
use crate::store::{BLOCK_BYTES, Heat};

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes of transactions that one write takes at most.
    limit: usize,
}

impl Room {
    /// In segments of so many blocks.
    #[must_use]
    pub fn of(segment_blocks: u32) -> Self {
        Self { limit: segment_blocks as usize * BLOCK_BYTES / 4 }
    }

    /// Bytes of transactions that one write takes at most.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether transactions of so many bytes go into one write.
    #[must_use]
    pub fn takes(&self, transaction_bytes: usize) -> bool {
        transaction_bytes <= self.limit
    }

    /// Bytes of the transactions that the next write takes, and how many these are, by their lengths.
    pub fn end_of_write(&self, total: usize, lengths: impl Iterator<Item = usize>) -> (usize, usize) {
        let (mut end, mut count) = (0, 0);
        for length in lengths {
            // A transaction that is larger goes alone.
            if !self.takes(total) && end + length > self.limit && end > 0 {
                break;
            }
            end += length;
            count += 1;
        }
        (end, count)
    }

    /// Blocks that fit into `room` blocks, with transactions of so many bytes.
    #[must_use]
    pub fn payload(&self, transaction_bytes: usize, room: u32) -> u32 {
        // Blocks are written only when every transaction before them is.
        if !self.takes(transaction_bytes) {
            return 0;
        }
        let room = room as usize;
        let bytes = (room * BLOCK_BYTES).saturating_sub(HEADER_BYTES + transaction_bytes);
        let mut count = bytes / (BLOCK_BYTES + RECORD_BYTES);
        while count > 0 && summary_blocks(count, transaction_bytes) + count > room {
            count -= 1;
        }
        count as u32
    }

    /// Blocks of the summary of so many blocks and so many bytes of transactions.
    #[must_use]
    pub fn overhead(&self, blocks: u32, transaction_bytes: usize) -> u32 {
        summary_blocks(blocks as usize, transaction_bytes) as u32
    }
}

/// Hotness of a block of file data: where it was never rewritten, it is as hot as its file.
#[must_use]
pub fn hotness_of(block: Heat, file: Heat, now: u32) -> f64 {
    if block.writes <= 1 && file.writes > 0 { file.hotness(now) } else { block.hotness(now) }
}
