//! fallocate(2) and lseek(2) for data and holes.

use isotherm_vfs::{Allocation, Errno, Ino, SeekFrom};

use super::Tree;
use super::error::{Result, TreeError};
use super::inode::Inode;
use super::prepare::{BLOCK, FILE_BYTES_MAX};
use crate::store::{Found, Purpose, Slot, Store, StoreError};

impl<S: Store> Tree<S> {
    /// Sets space aside, punches holes, makes zeros.
    ///
    /// # Errors
    /// `EINVAL` for no bytes, `EFBIG`, `ENOSPC`, `EISDIR`.
    pub fn allocate(&mut self, ino: Ino, offset: u64, length: u64, how: Allocation) -> Result<()> {
        let inode = self.regular(ino)?;
        if length == 0 {
            return Err(Errno::INVAL.into());
        }
        let end = offset.checked_add(length).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
        match how {
            Allocation::PunchHole => {
                // What lies behind the end of the file is zeros to everyone, so that its last block can go whole.
                let end = if end >= inode.size { end.next_multiple_of(BLOCK) } else { end };
                self.punch(ino, offset, end)?;
                self.touch_changed(ino)
            }
            Allocation::Reserve { keep_size } => {
                let waits = self.prepare_larger(ino, &inode, end, keep_size)?;
                self.reserve(ino, offset, end)?;
                self.finish_allocation(ino, end, keep_size, waits)
            }
            Allocation::ZeroRange { keep_size } => {
                let waits = self.prepare_larger(ino, &inode, end, keep_size)?;
                self.reserve(ino, offset, end)?;
                self.empty(ino, offset, end)?;
                self.finish_allocation(ino, end, keep_size, waits)
            }
        }
    }

    fn prepare_larger(&mut self, ino: Ino, inode: &Inode, end: u64, keep_size: bool) -> Result<bool> {
        if keep_size || end <= inode.size { Ok(false) } else { self.prepare_growth(ino, end) }
    }

    fn finish_allocation(&mut self, ino: Ino, end: u64, keep_size: bool, waits: bool) -> Result<()> {
        self.transaction(Purpose::Shrink, |tree| {
            let mut inode = tree.inode(ino)?;
            if !keep_size && end > inode.size {
                tree.grow_size(ino, &mut inode, end, waits);
            }
            inode.modified = tree.now;
            inode.changed = tree.now;
            tree.save_inode(ino, &inode)
        })
    }

    fn touch_changed(&mut self, ino: Ino) -> Result<()> {
        self.finish_allocation(ino, 0, true, false)
    }

    /// Makes a range zeros: whole blocks become holes, parts of blocks are zeroed.
    fn punch(&mut self, ino: Ino, offset: u64, end: u64) -> Result<()> {
        let (mut next, last) = self.zero_edges(ino, offset, end)?;
        while next < last {
            next = self.transaction(Purpose::Shrink, |tree| {
                let mut inode = tree.inode(ino)?;
                let next = tree.release_range(ino, &mut inode, next, last, &mut tree.batch_pages.clone())?;
                tree.save_inode(ino, &inode)?;
                Ok(next)
            })?;
        }
        Ok(())
    }

    /// Makes a range without holes zeros: whole blocks are set aside, parts of blocks are zeroed. Takes no space.
    fn empty(&mut self, ino: Ino, offset: u64, end: u64) -> Result<()> {
        let (mut next, last) = self.zero_edges(ino, offset, end)?;
        while next < last {
            next = self.transaction(Purpose::Shrink, |tree| {
                let inode = tree.inode(ino)?;
                let mut block = next;
                for _ in 0..tree.batch_pages {
                    if block == last {
                        break;
                    }
                    let extent = tree.extent(ino, &inode, block, last)?;
                    if let Some((page, slots)) = extent.slots() {
                        tree.store.release_blocks(page, slots.clone())?;
                        tree.store.reserve_blocks(page, slots)?;
                    }
                    block = extent.end();
                }
                Ok(block)
            })?;
        }
        Ok(())
    }

    /// Zeros the parts of blocks at both ends of a range. Returns the whole blocks in it: the first, and the one behind the last.
    fn zero_edges(&mut self, ino: Ino, offset: u64, end: u64) -> Result<(u64, u64)> {
        let inode = self.regular(ino)?;
        let (first, last) = (offset.div_ceil(BLOCK), end / BLOCK);
        if first > last {
            self.zero_part(ino, &inode, offset, end)?;
        } else {
            self.zero_part(ino, &inode, offset, first * BLOCK)?;
            self.zero_part(ino, &inode, last * BLOCK, end)?;
        }
        Ok((first, last))
    }

    /// Sets space aside for the holes of a range; for all of them, or for none.
    fn reserve(&mut self, ino: Ino, offset: u64, end: u64) -> Result<()> {
        let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
        if last - first > self.store.space().total {
            return Err(TreeError::Store(StoreError::NoSpace));
        }
        let mut reserved = Vec::new();
        let mut next = first;
        while next < last {
            match self.reserve_some(ino, next, last) {
                Ok((until, mut some)) => {
                    next = until;
                    reserved.append(&mut some);
                }
                Err(error) => {
                    self.undo_reserve(ino, &reserved);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Sets space aside in one transaction. Returns the block to go on from, and ranges of blocks that were holes.
    fn reserve_some(&mut self, ino: Ino, first: u64, end: u64) -> Result<(u64, Vec<(u64, u64)>)> {
        self.transaction(Purpose::Grow, |tree| {
            let mut inode = tree.inode(ino)?;
            let mut holes: Vec<(u64, u64)> = Vec::new();
            let mut block = first;
            for _ in 0..tree.batch_pages {
                if block == end {
                    break;
                }
                let mut extent = tree.extent(ino, &inode, block, end)?;
                if extent.slot.is_none() {
                    tree.make_leaf(ino, &mut inode, block)?;
                    extent = tree.extent(ino, &inode, block, end)?;
                }
                for i in extent.block..extent.end() {
                    let slot = extent.slot_of(i).expect("the extent has slots");
                    if matches!(tree.store.find_block(slot)?, Found::Hole) {
                        match holes.last_mut() {
                            Some((_, end)) if *end == i => *end += 1,
                            _ => holes.push((i, i + 1)),
                        }
                    }
                }
                let (page, slots) = extent.slots().expect("the leaf is made");
                inode.blocks += u64::from(tree.store.reserve_blocks(page, slots)?);
                block = extent.end();
            }
            tree.save_inode(ino, &inode)?;
            Ok((block, holes))
        })
    }

    /// Gives space back that was set aside a moment ago. Should that fail, it stays set aside.
    fn undo_reserve(&mut self, ino: Ino, reserved: &[(u64, u64)]) {
        for (first, end) in reserved {
            drop(self.punch(ino, first * BLOCK, end * BLOCK));
        }
    }

    /// The next data or hole from `offset` on.
    ///
    /// # Errors
    /// `ENXIO` where there is none.
    pub fn seek(&mut self, ino: Ino, offset: u64, to: SeekFrom) -> Result<u64> {
        let inode = self.regular(ino)?;
        if offset >= inode.size {
            return Err(Errno::NXIO.into());
        }
        let end = inode.size.div_ceil(BLOCK);
        let mut block = offset / BLOCK;
        while block < end {
            let extent = self.extent(ino, &inode, block, end)?;
            for i in extent.block..extent.end() {
                let is_data = match extent.slot_of(i) {
                    Some(slot) => self.is_data(slot)?,
                    None => false,
                };
                if is_data == (to == SeekFrom::Data) {
                    return Ok((i * BLOCK).max(offset));
                }
                if extent.slot.is_none() {
                    break;
                }
            }
            block = extent.end();
        }
        match to {
            SeekFrom::Data => Err(Errno::NXIO.into()),
            SeekFrom::Hole => Ok(inode.size),
        }
    }

    fn is_data(&mut self, slot: Slot) -> Result<bool> {
        Ok(matches!(self.store.find_block(slot)?, Found::Cached(_) | Found::Stored(_)))
    }
}
