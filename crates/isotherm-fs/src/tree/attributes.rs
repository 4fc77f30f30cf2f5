//! stat(2), chmod(2), chown(2), truncate(2), utimensat(2), statfs(2).

use isotherm_vfs::{Attributes, Caller, Change, Errno, Ino, NewTime, Time, VolumeStatistics};

use super::Tree;
use super::error::Result;
use super::inode::{INODES_PER_PAGE, Inode};
use super::prepare::{BLOCK, FILE_BYTES_MAX};
use super::root_page;
use crate::store::{BLOCK_BYTES, Purpose, Store};

impl<S: Store> Tree<S> {
    /// What is known of a node.
    ///
    /// # Errors
    /// `ESTALE` where there is none.
    pub fn attributes(&mut self, ino: Ino) -> Result<Attributes> {
        Ok(self.inode(ino)?.attributes(ino))
    }

    /// Changes attributes, all of them or none. What the caller may do is the kernel's business.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for the size of other nodes than files, `EFBIG`.
    pub fn change(&mut self, _: Caller, ino: Ino, change: Change) -> Result<Attributes> {
        let inode = self.inode(ino)?;
        if change == Change::default() {
            return Ok(inode.attributes(ino));
        }
        let mut waits = false;
        if let Some(size) = change.size {
            let size_now = self.regular(ino)?.size;
            if size > FILE_BYTES_MAX {
                return Err(Errno::FBIG.into());
            }
            waits = size > size_now && self.prepare_growth(ino, size)?;
        }
        let shrinks = change.size.is_some_and(|size| size < inode.size);
        let purpose = if shrinks { Purpose::Shrink } else { Purpose::Grow };
        let rest = self.transaction(purpose, |tree| {
            let mut inode = tree.inode(ino)?;
            tree.apply(ino, &mut inode, &change)?;
            let mut rest = None;
            match change.size {
                Some(size) if size < inode.size => {
                    inode.size = size;
                    rest = tree.begin_cut(ino, &mut inode, size.div_ceil(BLOCK))?;
                }
                Some(size) => tree.grow_size(ino, &mut inode, size, waits),
                None => {}
            }
            tree.save_inode(ino, &inode)?;
            Ok(rest)
        })?;
        if let Some(next) = rest {
            self.finish_cut(ino, next).inspect_err(|_| self.nodes.set_clean_tail(ino, false))?;
        }
        self.attributes(ino)
    }

    /// All but the size, in a transaction. The inode is to be saved.
    fn apply(&mut self, ino: Ino, inode: &mut Inode, change: &Change) -> Result<()> {
        let now = self.now;
        let time = |new: NewTime| -> Time {
            match new {
                NewTime::Now => now,
                NewTime::At(time) => time,
            }
        };
        if change.kills_privileges && !inode.is_directory() {
            self.kill_privileges(ino, inode)?;
        }
        if let Some(permissions) = change.permissions {
            inode.permissions = permissions & 0o7777;
            if inode.xattrs != 0 {
                self.chmod_acl(ino, inode)?;
            }
        }
        inode.uid = change.uid.unwrap_or(inode.uid);
        inode.gid = change.gid.unwrap_or(inode.gid);
        inode.accessed = change.accessed.map_or(inode.accessed, time);
        if change.size.is_some() {
            inode.modified = now;
        }
        inode.modified = change.modified.map_or(inode.modified, time);
        inode.changed = now;
        Ok(())
    }

    /// Space and inodes. There can be as many inodes as there is space for.
    ///
    /// # Errors
    /// Of the store.
    pub fn statistics(&mut self) -> Result<VolumeStatistics> {
        // What cannot be freed now, on a volume that is not written any more, takes space.
        let _ = self.free_doomed();
        let space = self.store.space();
        let used = root_page::inodes_in_use(&mut self.store)?;
        let free = space.free.saturating_mul(INODES_PER_PAGE);
        Ok(VolumeStatistics {
            block_bytes: BLOCK_BYTES as u32,
            blocks: space.total,
            blocks_free: space.free,
            blocks_available: space.free,
            inodes: used.saturating_add(free),
            inodes_free: free,
        })
    }
}
