//! Where the blocks of a file lie on the device at this moment: with every write, and whenever its segment is cleaned, a block
//! moves.

use isotherm_vfs::Ino;

use super::Tree;
use super::error::Result;
use super::map::FILE_BLOCKS_MAX;
use crate::format::entry::Entry;
use crate::store::Store;

/// Blocks of a file that follow one another on the device too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredExtent {
    /// Number of the first in the file.
    pub block: u64,
    /// Its block of the device.
    pub position: u32,
    /// How many there are.
    pub count: u64,
}

impl<S: Store> Tree<S> {
    /// The first `most` extents of a regular file from a block on. What waits in memory has no place yet, or that of its last
    /// durable copy.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for other nodes than regular files; damage.
    pub fn stored_extents(&mut self, ino: Ino, from: u64, most: usize) -> Result<Vec<StoredExtent>> {
        let inode = self.regular(ino)?;
        let mut found: Vec<StoredExtent> = Vec::new();
        let mut block = from;
        while block < FILE_BLOCKS_MAX {
            let extent = self.extent(ino, &inode, block, FILE_BLOCKS_MAX)?;
            for block in extent.slot.map_or(0..0, |_| extent.block..extent.end()) {
                let slot = extent.slot_of(block).expect("the extent has slots");
                let entry = Entry::at(&*self.store.page(slot.page)?, slot.index.into());
                if !entry.is_stored() {
                    continue;
                }
                let goes_on = found.last().is_some_and(|last| {
                    last.block + last.count == block
                        && u64::from(last.position) + last.count == u64::from(entry.position)
                });
                if !goes_on && found.len() == most {
                    return Ok(found);
                }
                match found.last_mut() {
                    Some(last) if goes_on => last.count += 1,
                    _ => found.push(StoredExtent { block, position: entry.position, count: 1 }),
                }
            }
            block = extent.end();
        }
        Ok(found)
    }
}
