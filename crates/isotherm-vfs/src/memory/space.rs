//! What there is of blocks and inodes, counted without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Errno, Result};

/// Blocks and inodes in use, and how many there may be.
#[derive(Debug)]
pub(super) struct Space {
    blocks_max: u64,
    blocks: AtomicU64,
    inodes_max: u64,
    inodes: AtomicU64,
}

impl Space {
    pub(super) fn new(blocks_max: u64, inodes_max: u64) -> Self {
        Self { blocks_max, blocks: AtomicU64::new(0), inodes_max, inodes: AtomicU64::new(0) }
    }

    /// Takes blocks, all of them or none.
    pub(super) fn take_blocks(&self, count: u64) -> Result<()> {
        take(&self.blocks, count, self.blocks_max)
    }

    pub(super) fn give_blocks(&self, count: u64) {
        self.blocks.fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn take_inode(&self) -> Result<()> {
        take(&self.inodes, 1, self.inodes_max)
    }

    pub(super) fn give_inode(&self) {
        self.inodes.fetch_sub(1, Ordering::Relaxed);
    }

    /// All blocks, and those that are free.
    pub(super) fn blocks(&self) -> (u64, u64) {
        (self.blocks_max, self.blocks_max - self.blocks.load(Ordering::Relaxed))
    }

    /// All inodes, and those that are free.
    pub(super) fn inodes(&self) -> (u64, u64) {
        (self.inodes_max, self.inodes_max - self.inodes.load(Ordering::Relaxed))
    }
}

fn take(used: &AtomicU64, count: u64, max: u64) -> Result<()> {
    let take = |now: u64| now.checked_add(count).filter(|after| *after <= max);
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map(drop).map_err(|_| Errno::NOSPC)
}
