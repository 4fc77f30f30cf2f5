//! read(2) in two steps: what to read is found under the lock of the tree, and blocks on the device are read without it.

use std::ops::Range;
use std::sync::Arc;

use isotherm_vfs::Ino;

use super::Tree;
use super::error::Result;
use super::prepare::BLOCK;
use crate::store::{BLOCK_BYTES, Found, Page, Store, Stored};

/// A piece of what is read.
#[derive(Clone, Debug)]
pub enum Piece {
    /// So many zeros.
    Zeros(usize),
    /// Bytes of a block in memory.
    Page {
        /// The block.
        page: Arc<Page>,
        /// Which of its bytes.
        bytes: Range<usize>,
    },
    /// Bytes of blocks that follow one another on the device.
    Stored {
        /// The blocks.
        blocks: Vec<Stored>,
        /// Which of their bytes.
        bytes: Range<usize>,
    },
}

/// What a read consists of, in order. It ends where the file does.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// Bytes of all of them.
    pub length: usize,
}

impl ReadPlan {
    fn push(&mut self, found: Found, bytes: Range<usize>) {
        self.length += bytes.len();
        match (found, self.pieces.last_mut()) {
            (Found::Hole | Found::Reserved, Some(Piece::Zeros(zeros))) => *zeros += bytes.len(),
            (Found::Hole | Found::Reserved, _) => self.pieces.push(Piece::Zeros(bytes.len())),
            (Found::Cached(page), _) => self.pieces.push(Piece::Page { page, bytes }),
            (Found::Stored(stored), Some(Piece::Stored { blocks, bytes: run }))
                if blocks.last().is_some_and(|last| last.position.checked_add(1) == Some(stored.position)) =>
            {
                blocks.push(stored);
                run.end += bytes.len();
            }
            (Found::Stored(stored), _) => self.pieces.push(Piece::Stored { blocks: vec![stored], bytes }),
        }
    }
}

impl<S: Store> Tree<S> {
    /// What a read of a regular file consists of. It sets the time of access, unless `keeps_access_time`.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for other nodes than regular files.
    pub fn read_plan(&mut self, ino: Ino, offset: u64, length: usize, keeps_access_time: bool) -> Result<ReadPlan> {
        let inode = self.regular(ino)?;
        let mut plan = ReadPlan::default();
        let end = offset.saturating_add(length as u64).min(inode.size);
        let mut at = offset;
        while at < end {
            let extent = self.extent(ino, &inode, at / BLOCK, end.div_ceil(BLOCK))?;
            if extent.slot.is_none() {
                let until = end.min(extent.end() * BLOCK);
                plan.push(Found::Hole, 0..(until - at) as usize);
                at = until;
                continue;
            }
            for block in extent.block..extent.end() {
                let slot = extent.slot_of(block).expect("the extent has slots");
                let found = self.store.find_block(slot)?;
                let until = end.min((block + 1) * BLOCK);
                let first = (at % BLOCK) as usize;
                plan.push(found, first..first + (until - at) as usize);
                at = until;
            }
        }
        if length > 0 && !keeps_access_time {
            self.touch_accessed(ino, &inode);
        }
        Ok(plan)
    }

    /// Reads whole, holding the lock: [`Tree::read_plan`], carried out.
    ///
    /// # Errors
    /// As [`Tree::read_plan`], and those of reading.
    pub fn read(&mut self, ino: Ino, offset: u64, length: usize) -> Result<Vec<u8>> {
        let plan = self.read_plan(ino, offset, length, false)?;
        let mut out = Vec::with_capacity(plan.length);
        for piece in plan.pieces {
            match piece {
                Piece::Zeros(zeros) => out.resize(out.len() + zeros, 0),
                Piece::Page { page, bytes } => out.extend_from_slice(&page[bytes]),
                Piece::Stored { blocks, bytes } => {
                    let mut run = Vec::with_capacity(blocks.len() * BLOCK_BYTES);
                    for stored in blocks {
                        run.extend_from_slice(&self.store.read_stored(stored)?[..]);
                    }
                    out.extend_from_slice(&run[bytes]);
                }
            }
        }
        Ok(out)
    }
}
