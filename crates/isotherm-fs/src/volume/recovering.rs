//! What is left to be done when the log is rolled forward, before anybody is served: at a mount, and in a repair.

use super::writer::lock;
use super::{FREED_TOGETHER, Volume};
use crate::log::Log;
use crate::store::StoreError;
use crate::tree::{self, Tree};
use isotherm_vfs::Ino;

impl Volume {
    /// Gives back what a crash left that no size covers or that has no name, counts blocks of files anew, and makes durable what was found.
    ///
    /// # Errors
    /// No space, the device, damage. What is done stays done.
    pub(crate) fn recover(&self) -> Result<(), StoreError> {
        let orphans = {
            let mut tree = lock(&self.tree)?;
            tree.set_now((self.clock)());
            finish_files(&mut tree).and_then(|()| free_some(&mut tree, 0)).map_err(StoreError::from)?
        };
        // From here on writes that the replay did not reach never count again.
        self.seated(|writer| self.commit_and_make_room(writer))?;
        match orphans {
            Some(from) => self.free_orphans(from),
            None => Ok(()),
        }
    }

    /// Frees nodes without a name, and makes that durable: of any number at once the log would have more to say than there is room for on a
    /// full volume.
    fn free_orphans(&self, from: Ino) -> Result<(), StoreError> {
        self.in_portions(from, free_some)
    }

    /// The same for those that nothing lists, in a tree that was repaired.
    ///
    /// # Errors
    /// No space, the device, damage. What is done stays done.
    pub(crate) fn free_unlisted(&self) -> Result<(), StoreError> {
        self.in_portions(0, |tree, from| {
            let next = tree.list_deleted(from, FREED_TOGETHER)?;
            tree.free_nameless(0, u64::MAX)?;
            Ok(next)
        })
    }

    /// Does something a portion at a time, each of which says where the next begins, and lets the log be written in between.
    fn in_portions<T>(
        &self,
        first: T,
        mut portion: impl FnMut(&mut Tree<Log>, T) -> tree::Result<Option<T>>,
    ) -> Result<(), StoreError> {
        let mut next = Some(first);
        while let Some(from) = next {
            next = portion(&mut *lock(&self.tree)?, from).map_err(StoreError::from)?;
            self.wait_for_room(0)?;
        }
        self.seated(|writer| self.commit_and_make_room(writer))
    }
}

/// Files that were cut, and those whose size or number of blocks is not that of their data.
fn finish_files(tree: &mut Tree<Log>) -> tree::Result<()> {
    tree.finish_cuts()?;
    for ino in tree.store_mut().take_replayed_owners()? {
        tree.mend(ino)?;
    }
    let lagging = tree.store_mut().take_lagging();
    tree.mend_lagging(&lagging)
}

/// Frees a portion of the nodes without a name, from an inode on. Returns where to go on if that was not all.
fn free_some(tree: &mut Tree<Log>, from: Ino) -> tree::Result<Option<Ino>> {
    Ok(tree.free_nameless(from, FREED_TOGETHER as u64)?.1)
}
