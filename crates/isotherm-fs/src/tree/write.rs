//! write(2): blocks that have their entry change in memory only; a transaction makes leaves of the map where they are missing.

use std::sync::Arc;

use isotherm_vfs::{Errno, Ino, WriteFlags};

use super::Tree;
use super::error::Result;
use super::inode::DIRECT_BLOCKS;
use super::prepare::{BLOCK, FILE_BYTES_MAX};
use crate::store::{BLOCK_BYTES, Found, Heat, Page, Purpose, Slot, Store};

/// A block that is to be changed, with all that could fail for other reasons than space done.
pub(super) struct Prepared<'a> {
    slot: Slot,
    /// It takes new space.
    is_hole: bool,
    at: usize,
    bytes: &'a [u8],
    /// The content before: `None` where the block is replaced, or was zeros.
    before: Option<Arc<Page>>,
}

impl Prepared<'_> {
    fn content(&self) -> Arc<Page> {
        let mut page = self.before.as_deref().copied().unwrap_or([0; BLOCK_BYTES]);
        page[self.at..self.at + self.bytes.len()].copy_from_slice(self.bytes);
        Arc::new(page)
    }
}

impl<S: Store> Tree<S> {
    /// Reads what is needed to change a part of a block.
    pub(super) fn prepare_block<'a>(&mut self, slot: Slot, at: usize, bytes: &'a [u8]) -> Result<Prepared<'a>> {
        let found = self.store.find_block(slot)?;
        let is_hole = matches!(found, Found::Hole);
        let before = match found {
            _ if bytes.len() == BLOCK_BYTES => None,
            Found::Hole | Found::Reserved => None,
            Found::Cached(page) => Some(page),
            Found::Stored(stored) => Some(self.store.read_stored(stored)?),
        };
        Ok(Prepared { slot, is_hole, at, bytes, before })
    }

    /// Changes a block.
    pub(super) fn put_prepared(&mut self, ino: Ino, heat: Heat, change: Prepared<'_>) -> Result<()> {
        let is_part = change.before.is_some();
        if is_part && self.store.patch_block(change.slot, change.at, change.bytes) {
            return Ok(());
        }
        Ok(self.store.put_block(change.slot, ino, heat, change.content())?)
    }

    /// Writes all of `data`, or nothing. Returns where it begins, which for an append is the end of the file.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EISDIR`, `EINVAL` for other nodes than regular files.
    pub fn write(&mut self, ino: Ino, offset: u64, data: &[u8], flags: WriteFlags) -> Result<u64> {
        let inode = self.regular(ino)?;
        let offset = if flags.append { inode.size } else { offset };
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        if data.is_empty() {
            return Ok(offset);
        }
        if end > inode.size {
            self.prepare_growth(ino, offset)?;
        }
        let blocks = offset / BLOCK..end.div_ceil(BLOCK);
        let made = self.make_missing_leaves(ino, blocks.start, blocks.end)?;
        if let Err(error) = self.put_data(ino, offset, data) {
            self.undo_leaves(ino, &made);
            return Err(error);
        }
        if flags.kills_privileges {
            self.drop_privileges(ino)?;
        }
        let mut inode = self.regular(ino)?;
        inode.size = inode.size.max(end);
        inode.modified = self.now;
        inode.changed = self.now;
        inode.heat.writes = inode.heat.writes.saturating_add((blocks.end - blocks.start) as u32);
        self.nodes.keep(ino, &inode);
        Ok(offset)
    }

    /// Makes the leaves that a range of blocks needs, in a transaction of its own where some are missing.
    pub(super) fn make_missing_leaves(&mut self, ino: Ino, first: u64, end: u64) -> Result<Vec<u64>> {
        let inode = self.inode(ino)?;
        if self.has_leaves(ino, &inode, first, end)? {
            return Ok(Vec::new());
        }
        self.transaction(Purpose::Grow, |tree| {
            let mut inode = inode;
            let made = tree.make_leaves(ino, &mut inode, first, end)?;
            tree.save_inode(ino, &inode)?;
            Ok(made)
        })
    }

    /// Takes leaves out again that hold nothing. Should that fail, they stay empty.
    pub(super) fn undo_leaves(&mut self, ino: Ino, made: &[u64]) {
        if made.is_empty() {
            return;
        }
        let undone = self.transaction(Purpose::Shrink, |tree| {
            let mut inode = tree.inode(ino)?;
            for block in made {
                debug_assert!(*block >= DIRECT_BLOCKS);
                tree.release_range(ino, &mut inode, *block, *block + 1, &mut 1)?;
            }
            tree.save_inode(ino, &inode)
        });
        drop(undone);
    }

    /// Puts data into blocks that have their entries: first those that take space, so that nothing is changed if one fails.
    fn put_data(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<()> {
        let mut inode = self.regular(ino)?;
        let mut changes = Vec::with_capacity(data.len() / BLOCK_BYTES + 2);
        let mut done = 0;
        let end = (offset + data.len() as u64).div_ceil(BLOCK);
        let mut block = offset / BLOCK;
        while block < end {
            let extent = self.extent(ino, &inode, block, end)?;
            for i in extent.block..extent.end() {
                let slot = extent.slot_of(i).expect("the leaves are made");
                let at = ((offset + done as u64) % BLOCK) as usize;
                let length = (BLOCK_BYTES - at).min(data.len() - done);
                changes.push(self.prepare_block(slot, at, &data[done..done + length])?);
                done += length;
            }
            block = extent.end();
        }
        let (holes, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.is_hole);
        let mut put = Vec::with_capacity(holes.len());
        for change in holes {
            let slot = change.slot;
            if let Err(error) = self.put_prepared(ino, inode.heat, change) {
                self.undo_blocks(&put);
                return Err(error);
            }
            put.push(slot);
        }
        inode.blocks += put.len() as u64;
        self.nodes.keep(ino, &inode);
        others.into_iter().try_for_each(|change| self.put_prepared(ino, inode.heat, change))
    }

    /// Makes blocks that were written a moment ago holes again. They lie behind no end that anyone has seen, and should this
    /// fail, so does everything else.
    fn undo_blocks(&mut self, put: &[Slot]) {
        let undone = self.transaction(Purpose::Shrink, |tree| {
            for slot in put {
                tree.store.release_blocks(slot.page, u16::from(slot.index)..u16::from(slot.index) + 1)?;
            }
            Ok(())
        });
        drop(undone);
    }
}
