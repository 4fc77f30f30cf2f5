//! Reading files: what is in memory is taken under the lock, what is on the device is read without it.

use super::{Volume, lock};
use crate::log::DeviceReader;
use crate::store::{BLOCK_BYTES, BlockReader, Store, StoreError, Stored};
use crate::tree::{Piece, ReadPlan, TreeError};
use isotherm_vfs::{Handle, KEEPS_ACCESS_TIME};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How often a block is looked up again that was moved while it was read.
const ATTEMPTS: u32 = 4;

impl Volume {
    /// Reads up to `length` bytes of a file from `offset` on into the empty `out`.
    pub(super) fn read_file(
        &self,
        ino: u64,
        handle: Handle,
        offset: u64,
        length: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), TreeError> {
        for attempt in 1..=ATTEMPTS {
            let (plan, reader, verifies) = {
                let mut tree = lock(&self.tree)?;
                tree.set_now((self.clock)());
                let plan = tree.read_plan(ino, offset, length as usize, handle & KEEPS_ACCESS_TIME != 0)?;
                (plan, tree.store().reader(), tree.store().verifies_data())
            };
            out.clear();
            out.reserve(plan.length);
            match fetch(&plan, &reader, verifies, out) {
                // It may have been moved, and its place taken by another block, while it was read.
                Err(StoreError::Damaged(_)) if attempt < ATTEMPTS => {}
                done => {
                    self.bytes_read.fetch_add(out.len() as u64, Ordering::Relaxed);
                    if let Err(error) = &done {
                        self.read_errors.fetch_add(1, Ordering::Relaxed);
                        *lock(&self.last_read_error)? = Some(format!("inode {ino}: {error}"));
                    }
                    return done.map_err(TreeError::from);
                }
            }
        }
        unreachable!("the last attempt returns")
    }
}

fn fetch(plan: &ReadPlan, reader: &DeviceReader, verifies: bool, out: &mut Vec<u8>) -> Result<(), StoreError> {
    for piece in &plan.pieces {
        match piece {
            Piece::Zeros(zeros) => out.resize(out.len() + zeros, 0),
            Piece::Page { page, bytes } => out.extend_from_slice(&page[bytes.clone()]),
            Piece::Stored { blocks, bytes } => fetch_run(blocks, bytes, reader, verifies, out)?,
        }
    }
    Ok(())
}

/// Consecutive blocks of the device.
fn fetch_run(
    blocks: &[Stored],
    bytes: &Range<usize>,
    reader: &DeviceReader,
    verifies: bool,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let from = out.len();
    out.resize(from + blocks.len() * BLOCK_BYTES, 0);
    reader.read_blocks(blocks[0].position, &mut out[from..])?;
    if verifies {
        for (stored, block) in blocks.iter().zip(out[from..].chunks_exact(BLOCK_BYTES)) {
            if crc32c::crc32c(block) != stored.checksum {
                return Err(StoreError::Damaged(format!("the checksum of block {} is wrong", stored.position)));
            }
        }
    }
    out.copy_within(from + bytes.start..from + bytes.end, from);
    out.truncate(from + bytes.len());
    Ok(())
}
