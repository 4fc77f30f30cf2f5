//! Room on the disk below an image.
//!
//! A disk that turns out to be full in the middle of a request stops the device, which then answers nothing: its tables may be
//! halfway through a collection. So room is looked for before the device hears of a write. One that may not fit is refused; reads
//! go on, discards too, and writes do once there is room again. Asking the kernel takes a microsecond or two, so what was found
//! serves for many writes.

use crate::image::Layout;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

/// Kept for records and tables beside what is computed.
const SLACK_BYTES: u64 = 4 << 20;
/// What a checkpoint has of each block, and of each page that is programmed.
const CHECKPOINT_BYTES_OF_BLOCK: u64 = 24;
const CHECKPOINT_BYTES_OF_PAGE: u64 = 16;
/// Bytes that the image may grow by for each that the host writes: collections copy, and what they erase is given back later.
const GROWTH: u64 = 4;
/// Bytes that the host may write at most before the disk is looked at again: others fill it too.
const CREDIT_BYTES_MAX: u64 = 16 << 20;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Room {
    /// The image; none where it is no file.
    file: Option<File>,
    /// Bytes that are left free for what was acknowledged and for an end in order, but for what the checkpoint says of pages.
    kept_bytes: u64,
    page_bytes: u64,
    /// Bytes of the image once all of it is there.
    image_bytes: u64,
    /// Bytes that the host may write without another look.
    credit_bytes: u64,
    /// Whether the last write found no room.
    is_short: bool,
}

impl Room {
    /// No disk that could be full.
    pub(super) fn endless() -> Self {
        Self { file: None, kept_bytes: 0, page_bytes: 1, image_bytes: 0, credit_bytes: 0, is_short: false }
    }

    /// The room below `file`, for a device of so many streams with so much DRAM.
    pub(super) fn below(file: File, layout: &Layout, streams: u32, dram_bytes: u64) -> Self {
        let page_bytes = u64::from(layout.geometry.page_bytes());
        let block_bytes = u64::from(layout.geometry.pages_per_block()) * page_bytes;
        // Each stream has a block open, and one being emptied may follow it.
        let open_bytes = 2 * u64::from(streams) * block_bytes;
        let blocks_bytes = u64::from(layout.geometry.blocks) * CHECKPOINT_BYTES_OF_BLOCK;
        let kept_bytes = open_bytes + dram_bytes + blocks_bytes + SLACK_BYTES;
        Self { file: Some(file), kept_bytes, page_bytes, image_bytes: layout.length, ..Self::endless() }
    }

    /// Takes room for a write of `length` bytes; false where there may be none.
    pub(super) fn take(&mut self, length: u64) -> bool {
        let Some(file) = &self.file else { return true };
        if self.credit_bytes < length {
            // A disk that says nothing of itself is asked by writing to it.
            let left = self.left(file, length * GROWTH).unwrap_or(u64::MAX);
            self.is_short = left == 0;
            if self.is_short {
                return false;
            }
            self.credit_bytes = (left / GROWTH).min(CREDIT_BYTES_MAX) + length;
        }
        self.credit_bytes -= length;
        true
    }

    /// What was found of the disk is old.
    pub(super) fn forget(&mut self) {
        self.credit_bytes = 0;
    }

    /// Whether writes are refused now, as far as they were tried.
    pub(super) fn is_short(&mut self) -> bool {
        if self.is_short {
            self.forget();
            // What is taken here is forgotten by the next look.
            self.take(1);
        }
        self.is_short
    }

    /// Bytes that are free below the image beyond what is kept and `needed`; without end where the whole image fits.
    fn left(&self, file: &File, needed: u64) -> std::io::Result<u64> {
        let disk = rustix::fs::fstatvfs(file)?;
        let free = disk.f_bavail * disk.f_frsize;
        let taken = file.metadata()?.blocks() * 512;
        if free >= self.image_bytes.saturating_sub(taken) {
            return Ok(u64::MAX);
        }
        let checkpoint_bytes = taken / self.page_bytes * CHECKPOINT_BYTES_OF_PAGE;
        Ok(free.saturating_sub(self.kept_bytes + checkpoint_bytes + needed))
    }
}
