//! Reading files: what is in memory is taken under the lock, what is on the device is read without it.

use super::{Volume, lock};
use crate::device::Device;
use crate::store::{BLOCK_BYTES, BlockReader, Store, StoreError};
use crate::tree::Piece;

/// How often a block is looked up again that was moved while it was read.
const ATTEMPTS: u32 = 4;

impl<D: Device> Volume<D> {
    /// Appends up to `length` bytes of a file from `offset` on to `out`.
    pub(super) fn read_file(&self, ino: u64, offset: u64, length: u32, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let from = out.len();
        for attempt in 1..=ATTEMPTS {
            out.truncate(from);
            let (pieces, reader, verifies) = {
                let mut tree = lock(&self.tree)?;
                tree.set_now((self.clock)());
                let pieces = tree.read_plan(ino, offset, length)?;
                (pieces, tree.store().reader(), tree.store().verifies_data())
            };
            match self.fetch(&pieces, &reader, verifies, out) {
                // It may have been moved, and its place taken by another block, while it was read.
                Err(StoreError::Damaged(_)) if attempt < ATTEMPTS => {}
                done => return done,
            }
        }
        unreachable!("the last attempt returns")
    }
}
