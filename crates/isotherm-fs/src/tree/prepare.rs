//! What comes before a file grows: nothing that was written may come to light behind its old end.
//!
//! The rest of the last block is zeroed when the file grows, not when it is cut: it is then never seen, whatever a crash keeps.
//! After a crash blocks may lie behind the end, because data is durable before the size is; they go when the volume is mounted, as far as
//! roll-forward has met them, and before the file grows.

use isotherm_vfs::{Errno, FileKind, Ino};

use super::Tree;
use super::error::Result;
use super::inode::Inode;
use super::map::FILE_BLOCKS_MAX;
use crate::store::{BLOCK_BYTES, Found, Purpose, Slot, Store};

/// Bytes of a block.
pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;
/// Bytes of the largest file.
pub const FILE_BYTES_MAX: u64 = FILE_BLOCKS_MAX * BLOCK;

impl<S: Store> Tree<S> {
    /// A regular file's inode.
    pub(super) fn regular(&mut self, ino: Ino) -> Result<Inode> {
        let inode = self.inode(ino)?;
        match inode.kind {
            FileKind::Regular => Ok(inode),
            FileKind::Directory => Err(Errno::ISDIR.into()),
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// The slot of a block, if it has one.
    pub(super) fn slot(&mut self, ino: Ino, inode: &Inode, block: u64) -> Result<Option<Slot>> {
        Ok(self.extent(ino, inode, block, block + 1)?.slot)
    }

    /// Makes everything behind the end of a file zeros, before its end moves to a byte behind it: `from` is where new data
    /// begins. Returns whether a block was changed, so that the new size has to wait for it.
    pub(super) fn prepare_growth(&mut self, ino: Ino, from: u64) -> Result<bool> {
        self.clean_tail(ino)?;
        let inode = self.regular(ino)?;
        let end = inode.size.next_multiple_of(BLOCK).min(from);
        self.zero_part(ino, &inode, inode.size, end)
    }

    /// Releases what was written behind the end of a file. What is set aside there stays.
    pub(super) fn clean_tail(&mut self, ino: Ino) -> Result<()> {
        if self.nodes.has_clean_tail(ino) {
            return Ok(());
        }
        let mut inode = self.regular(ino)?;
        let mut block = inode.size.div_ceil(BLOCK);
        while block < FILE_BLOCKS_MAX {
            let extent = self.extent(ino, &inode, block, FILE_BLOCKS_MAX)?;
            let mut written = Vec::new();
            for i in extent.slot.map_or(0..0, |_| extent.block..extent.end()) {
                let slot = extent.slot_of(i).expect("the extent has slots");
                if matches!(self.store.find_block(slot)?, Found::Cached(_) | Found::Stored(_)) {
                    written.push(i);
                }
            }
            if !written.is_empty() {
                inode = self.transaction(Purpose::Shrink, |tree| {
                    let mut inode = tree.inode(ino)?;
                    for i in written {
                        tree.release_range(ino, &mut inode, i, i + 1, &mut 1)?;
                    }
                    tree.save_inode(ino, &inode)?;
                    Ok(inode)
                })?;
            }
            block = extent.end();
        }
        if self.is_listed(ino)? {
            self.transaction(Purpose::Shrink, |tree| tree.end_cut(ino, &inode))?;
        }
        self.nodes.set_clean_tail(ino, true);
        Ok(())
    }

    /// Zeros a part of one block, unless it reads as zeros anyway. Returns whether something was changed.
    pub(super) fn zero_part(&mut self, ino: Ino, inode: &Inode, from: u64, end: u64) -> Result<bool> {
        if from >= end {
            return Ok(false);
        }
        let Some(slot) = self.slot(ino, inode, from / BLOCK)? else { return Ok(false) };
        if matches!(self.store.find_block(slot)?, Found::Hole | Found::Reserved) {
            return Ok(false);
        }
        let zeros = [0; BLOCK_BYTES];
        let part = &zeros[..(end - from) as usize];
        let change = self.prepare_block(slot, (from % BLOCK) as usize, part)?;
        self.put_prepared(ino, inode.heat, change)?;
        Ok(true)
    }

    /// Privileges of a file that is written to, cut or given away go, in a transaction. The inode is to be saved.
    pub(super) fn kill_privileges(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        let permissions = inode.without_privileges();
        if permissions != inode.permissions {
            inode.permissions = permissions;
            inode.changed = self.now;
        }
        if inode.xattrs != 0 {
            self.drop_capabilities(ino, inode)?;
        }
        Ok(())
    }

    /// The same in a transaction of its own, where there are any.
    pub(crate) fn drop_privileges(&mut self, ino: Ino) -> Result<()> {
        let inode = self.regular(ino)?;
        if inode.without_privileges() == inode.permissions && inode.xattrs == 0 {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| {
            let mut inode = tree.inode(ino)?;
            tree.kill_privileges(ino, &mut inode)?;
            tree.save_inode(ino, &inode)
        })
    }

    /// A new size in a transaction: it goes into the page at once if no data has to come before it. The inode is to be saved.
    pub(super) fn grow_size(&mut self, ino: Ino, inode: &mut Inode, size: u64, waits: bool) {
        inode.size = size;
        if waits || self.store.waiting(ino) > 0 {
            self.nodes.keep(ino, inode);
        }
    }
}
