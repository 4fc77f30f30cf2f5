//! rename(2).

use isotherm_vfs::{Caller, Errno, FileKind, Ino, NewNode, ROOT, RenameMode};

use super::Tree;
use super::directory::Entry;
use super::error::{Result, damaged};
use crate::store::{Purpose, Store};

/// Levels of directories: a parent chain that is longer goes round in a circle.
const DEPTH_MAX: usize = 1 << 24;

/// A name of a directory.
#[derive(Clone, Copy)]
struct Name<'a> {
    parent: Ino,
    name: &'a [u8],
}

impl<S: Store> Tree<S> {
    /// Moves a name.
    ///
    /// # Errors
    /// `ENOENT`, `EEXIST`, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL` for a directory into itself, `EMLINK`, `ENOSPC`.
    pub fn rename(
        &mut self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        let (old, new) = (Name { parent, name }, Name { parent: new_parent, name: new_name });
        // What replaces another name takes no space for one, and may give back what that one held.
        let replaces = mode == RenameMode::Replace && matches!(self.has_name(new_parent, new_name), Ok(true));
        let purpose = if replaces { Purpose::Shrink } else { Purpose::Grow };
        let replaced = self.transaction(purpose, |tree| {
            let directory = tree.directory(parent)?;
            let source = tree.find_entry(parent, &directory, name)?;
            let new_directory = tree.directory(new_parent)?;
            let target = tree.maybe_entry(new_parent, &new_directory, new_name)?;
            if new_directory.links == 0 {
                return Err(Errno::NOENT.into());
            }
            match (mode, target) {
                (mode, Some(_)) if mode.is_exclusive() => Err(Errno::EXIST.into()),
                (RenameMode::Exchange, None) => Err(Errno::NOENT.into()),
                (_, Some(target)) if target.ino == source.ino => Ok(None),
                (RenameMode::Exchange, Some(target)) => tree.exchange(old, source, new, target).map(|()| None),
                (RenameMode::Whiteout { caller, .. }, target) => {
                    tree.move_name(old, source, new, target, Some(caller)).map(|()| target)
                }
                (_, target) => tree.move_name(old, source, new, target, None).map(|()| target),
            }
        })?;
        if let Some(target) = replaced {
            self.reap_quietly(target.ino);
        }
        Ok(())
    }

    fn has_name(&mut self, parent: Ino, name: &[u8]) -> Result<bool> {
        let directory = self.directory(parent)?;
        Ok(self.maybe_entry(parent, &directory, name)?.is_some())
    }

    /// `EINVAL` if a directory would lie below itself.
    fn check_circle(&mut self, moved: Entry, new_parent: Ino) -> Result<()> {
        if moved.kind != FileKind::Directory {
            return Ok(());
        }
        let mut ino = new_parent;
        for _ in 0..DEPTH_MAX {
            if ino == moved.ino {
                return Err(Errno::INVAL.into());
            }
            if ino == ROOT {
                return Ok(());
            }
            ino = self.directory(ino)?.parent;
        }
        Err(damaged(format!("directory {new_parent} does not lie below the root")))
    }

    /// Moves a name, in a transaction; where `whiteout` says whose it is, a whiteout is left.
    fn move_name(
        &mut self,
        old: Name<'_>,
        source: Entry,
        new: Name<'_>,
        target: Option<Entry>,
        whiteout: Option<Caller>,
    ) -> Result<()> {
        self.check_circle(source, new.parent)?;
        let moves_directory = source.kind == FileKind::Directory;
        if let Some(target) = target {
            match (moves_directory, target.kind == FileKind::Directory) {
                (true, false) => return Err(Errno::NOTDIR.into()),
                (false, true) => return Err(Errno::ISDIR.into()),
                _ => {}
            }
            let mut directory = self.directory(new.parent)?;
            self.redirect_name(new.parent, &mut directory, target.key, (source.ino, source.kind))?;
            if moves_directory {
                directory.links = directory.links.saturating_sub(1);
            }
            self.save_inode(new.parent, &directory)?;
            if moves_directory { self.lose_directory(target)? } else { self.lose_name(target)? }
        } else {
            let mut directory = self.directory(new.parent)?;
            let key = self.free_key(new.parent, &directory, new.name)?;
            self.add_name(new.parent, &mut directory, key, new.name, (source.ino, source.kind))?;
            self.save_inode(new.parent, &directory)?;
        }
        let mut directory = self.directory(old.parent)?;
        if let Some(caller) = whiteout {
            let ino = self.make_nameless(caller, old.parent, &directory, NewNode::WHITEOUT, &[])?;
            self.redirect_name(old.parent, &mut directory, source.key, (ino, NewNode::WHITEOUT.kind))?;
        } else {
            self.drop_name(old.parent, &mut directory, source.key)?;
        }
        self.save_inode(old.parent, &directory)?;
        self.settle_in(source, old.parent, new.parent)
    }

    fn exchange(&mut self, old: Name<'_>, source: Entry, new: Name<'_>, target: Entry) -> Result<()> {
        self.check_circle(source, new.parent)?;
        self.check_circle(target, old.parent)?;
        for (place, key, entry) in [(old, source.key, target), (new, target.key, source)] {
            let mut directory = self.directory(place.parent)?;
            self.redirect_name(place.parent, &mut directory, key, (entry.ino, entry.kind))?;
            self.save_inode(place.parent, &directory)?;
        }
        self.settle_in(source, old.parent, new.parent)?;
        self.settle_in(target, new.parent, old.parent)
    }

    /// A node has moved from one directory to another: its time, its `..`, and the links of the two.
    fn settle_in(&mut self, moved: Entry, from: Ino, to: Ino) -> Result<()> {
        let mut inode = self.inode(moved.ino)?;
        inode.changed = self.now;
        if moved.kind == FileKind::Directory && from != to {
            inode.parent = to;
            let mut directory = self.directory(from)?;
            directory.links = directory.links.saturating_sub(1);
            self.save_inode(from, &directory)?;
            let mut directory = self.directory(to)?;
            directory.links = directory.links.checked_add(1).ok_or(Errno::MLINK)?;
            self.save_inode(to, &directory)?;
        }
        self.save_inode(moved.ino, &inode)
    }
}
