//! What is counted, and pages that belong to nothing.

use isotherm_vfs::{FileKind, ROOT};

use super::super::super::bytes::{get_u64, put_u64};
use super::super::super::root_page::{INODES_IN_USE, ROOT_PAGE};
use super::super::super::{Result, Tree};
use crate::store::{Purpose, Store, page_kind};

impl<S: Store> Tree<S> {
    /// Links of all nodes, and the parents of directories.
    pub(super) fn mend_links(&mut self) -> Result<()> {
        let check = self.run_check()?;
        for (ino, seen) in check.inodes {
            if seen.stored.is_none() || (seen.names == 0 && ino != ROOT) {
                continue;
            }
            let mut inode = self.stored_inode(ino)?;
            inode.links = match inode.kind {
                FileKind::Directory => 2 + seen.directories,
                _ => seen.names,
            };
            if inode.kind == FileKind::Directory {
                inode.parent = seen.named.map_or(ROOT, |(_, parent)| parent);
            }
            self.save_mended(ino, &inode)?;
        }
        Ok(())
    }

    /// Frees pages that nothing leads to.
    pub(super) fn free_unreached(&mut self) -> Result<()> {
        let reached = self.run_check()?.reached;
        for id in self.all_pages()?.into_iter().filter(|id| !reached.contains(id)) {
            self.transaction(Purpose::Shrink, |tree| {
                if tree.store.page(id)?[0] == page_kind::MAP {
                    tree.store.release_blocks(id, 1..256)?;
                }
                Ok(tree.store.free(id)?)
            })?;
        }
        Ok(())
    }

    /// The number of inodes.
    pub(super) fn mend_totals(&mut self) -> Result<()> {
        let in_use = self.run_check()?.in_use;
        if get_u64(&self.store.page(ROOT_PAGE)?[..], INODES_IN_USE) == in_use {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| {
            put_u64(tree.store.page_mut(ROOT_PAGE)?, INODES_IN_USE, in_use);
            Ok(())
        })
    }
}
