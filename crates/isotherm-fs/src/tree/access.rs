//! Opening and closing.

use isotherm_vfs::{Attributes, Caller, Change, Errno, FileKind, Ino, KEEPS_ACCESS_TIME, NewNode, OpenFlags, Opened};

use super::Tree;
use super::error::Result;
use super::inode::Inode;
use crate::store::{Purpose, Store};

/// Seconds of a day.
const DAY_SECONDS: i64 = 86_400;

impl<S: Store> Tree<S> {
    /// Opens a regular file. To read it sets the time of access, as reading does: what the kernel's cache answers is not seen here.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for other nodes.
    pub fn open(&mut self, ino: Ino, flags: OpenFlags) -> Result<Opened> {
        let mut inode = self.regular(ino)?;
        if flags.truncate {
            let change = Change { size: Some(0), kills_privileges: flags.kills_privileges, ..Change::default() };
            self.change(Caller::default(), ino, change)?;
            inode = self.regular(ino)?;
        }
        let sets_access_time = flags.read && !flags.keeps_access_time && self.touch_accessed(ino, &inode);
        Ok(self.opened(ino, flags, sets_access_time))
    }

    fn opened(&mut self, ino: Ino, flags: OpenFlags, sets_access_time: bool) -> Opened {
        self.nodes.open(ino);
        self.handles += 1;
        let handle = self.handles | if flags.keeps_access_time { KEEPS_ACCESS_TIME } else { 0 };
        Opened { handle, keeps_cache: true, sets_access_time }
    }

    /// Opens a regular file, which is made where there is none. The attributes are a reference.
    ///
    /// # Errors
    /// Those of [`Tree::make_node`] and [`Tree::open`].
    pub fn create(
        &mut self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        flags: OpenFlags,
    ) -> Result<(Attributes, Opened)> {
        if node.kind != FileKind::Regular {
            return Err(Errno::INVAL.into());
        }
        let directory = self.directory(parent)?;
        let opened = match self.maybe_entry(parent, &directory, name)? {
            Some(_) if flags.exclusive => return Err(Errno::EXIST.into()),
            Some(entry) => (entry.ino, self.open(entry.ino, flags)?),
            None => {
                let ino = self.transaction(Purpose::Grow, |tree| tree.add_node(caller, parent, name, node, &[]))?;
                (ino, self.opened(ino, flags, false))
            }
        };
        Ok((self.refer(opened.0)?, opened.1))
    }

    /// Closes a file. A node without a name goes with the last.
    ///
    /// # Errors
    /// Of the store: what could not be freed is freed by [`Tree::recover_orphans`].
    pub fn release(&mut self, ino: Ino) -> Result<()> {
        self.nodes.close(ino);
        self.reap(ino)
    }

    /// Opens a directory, which sets its time of access; it stays readable, and empty, when it is removed.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn open_directory(&mut self, ino: Ino) -> Result<Opened> {
        let directory = self.directory(ino)?;
        let sets_access_time = self.touch_accessed(ino, &directory);
        Ok(self.opened(ino, OpenFlags::default(), sets_access_time))
    }

    /// Whether a node is a directory.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn expect_directory(&mut self, ino: Ino) -> Result<()> {
        self.directory(ino).map(drop)
    }

    /// Closes a directory.
    ///
    /// # Errors
    /// As [`Tree::release`].
    pub fn release_directory(&mut self, ino: Ino) -> Result<()> {
        self.release(ino)
    }

    /// A node was read, or opened for it: its time is set in memory, where [`Tree::set_access_times`] says so. Returns whether it was.
    pub(super) fn touch_accessed(&mut self, ino: Ino, inode: &Inode) -> bool {
        let is_stale = inode.accessed <= inode.modified
            || inode.accessed <= inode.changed
            || self.now.seconds.saturating_sub(inode.accessed.seconds) >= DAY_SECONDS;
        let sets = match self.access_times {
            super::AccessTimes::Never => false,
            super::AccessTimes::Relative => is_stale,
            super::AccessTimes::Strict => true,
        };
        let is_kept = inode.kind != FileKind::Directory || self.keeps_directory_times;
        let sets = sets && is_kept && inode.accessed != self.now;
        if sets {
            let mut inode = *inode;
            inode.accessed = self.now;
            self.nodes.touch(ino, &inode);
        }
        sets
    }
}
