//! Repairs of a tree that nobody else uses, each in transactions of its own. Nothing is invented: what cannot be read is left out,
//! nodes that lost their names get new ones in `lost+found`, and the two root pages have to be whole.
//!
//! The order matters: inodes and what hangs below each; where there is room for new ones; what is to be freed; directories; nodes
//! without a name; then what is only counted. What is to be freed is so only when the tree is mended, as at a mount.

mod connecting;
mod counting;
mod directories;
mod files;
mod nodes;

use std::collections::BTreeSet;

use isotherm_vfs::{Ino, ROOT};

use super::super::error::damaged;
use super::super::{Result, Tree};
use super::Place;
use crate::store::{PageId, Store, page_kind};
use nodes::readable;

/// What people may miss.
pub type Action = (Place, String);

/// A repair under way.
#[derive(Default)]
struct Mending {
    actions: Vec<Action>,
    /// Pages that something leads to.
    reached: BTreeSet<PageId>,
}

impl Mending {
    fn act(&mut self, ino: Ino, what: impl Into<String>) {
        self.actions.push((Place::Inode(ino), what.into()));
    }
}

impl<S: Store> Tree<S> {
    /// Repairs what a check finds, as far as it can be. Returns what was changed that people may miss. What a crash left to be freed still
    /// is, and [`Tree::list_deleted`] finds what is not listed of it.
    ///
    /// # Errors
    /// Of the store. What is done stays done.
    pub fn repair(&mut self) -> Result<Vec<Action>> {
        if readable(self.directory(ROOT))?.is_none() {
            return Err(damaged("there is no root directory"));
        }
        let mut mending = Mending::default();
        // Files that are cut are taken off the list, and inodes that are cleared may be on it.
        self.mend_orphans()?;
        for id in self.inode_pages()? {
            self.mend_inodes(&mut mending, id)?;
        }
        self.mend_ring()?;
        self.mend_orphans()?;
        self.mend_directories(&mut mending)?;
        self.connect(&mut mending)?;
        self.mend_links()?;
        self.free_unreached()?;
        self.mend_totals()?;
        Ok(mending.actions)
    }

    /// Numbers of all pages, ascending.
    fn all_pages(&mut self) -> Result<Vec<PageId>> {
        let mut all = Vec::new();
        let mut from = Some(0);
        while let Some(id) = from.and_then(|id| self.store.next_page(id).transpose()).transpose()? {
            all.push(id);
            from = id.checked_add(1);
        }
        Ok(all)
    }

    /// Numbers of the pages of inodes, ascending.
    fn inode_pages(&mut self) -> Result<Vec<PageId>> {
        let mut all = self.all_pages()?;
        let mut pages = Vec::new();
        for id in all.drain(..) {
            if self.store.page(id)?[0] == page_kind::INODES {
                pages.push(id);
            }
        }
        Ok(pages)
    }
}
