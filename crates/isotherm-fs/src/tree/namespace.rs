//! Names come and go: look-up, creation, links and removal.

use isotherm_vfs::{Attributes, Caller, Errno, FileKind, Ino, NewNode};

use super::Tree;
use super::chain;
use super::directory::{Entry, Looked};
use super::error::Result;
use super::inode::Inode;
use crate::store::{Purpose, Store, page_kind};

impl<S: Store> Tree<S> {
    /// Answers with a node's attributes, which is a reference.
    pub(super) fn refer(&mut self, ino: Ino) -> Result<Attributes> {
        let attributes = self.attributes(ino)?;
        self.nodes.refer(ino);
        Ok(attributes)
    }

    /// The node that a name of a directory leads to; `.` and `..` too.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`.
    pub fn lookup(&mut self, parent: Ino, name: &[u8]) -> Result<Attributes> {
        let directory = self.directory(parent)?;
        let ino = match name {
            b"." => parent,
            b".." if directory.links == 0 => return Err(Errno::NOENT.into()),
            b".." => directory.parent,
            _ => self.find_entry(parent, &directory, name)?.ino,
        };
        self.refer(ino)
    }

    /// Gives back references. A node without a name goes with the last.
    ///
    /// # Errors
    /// Of the store: what could not be freed is freed by [`Tree::recover_orphans`].
    pub fn forget(&mut self, ino: Ino, references: u64) -> Result<()> {
        self.nodes.forget(ino, references);
        self.reap(ino)
    }

    /// Makes a node of any kind but a symbolic link.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` in a removed directory, `ENAMETOOLONG`, `EMLINK`, `ENOSPC`.
    pub fn make_node(&mut self, caller: Caller, parent: Ino, name: &[u8], node: NewNode) -> Result<Attributes> {
        if node.kind == FileKind::Symlink {
            return Err(Errno::INVAL.into());
        }
        let ino = self.transaction(Purpose::Grow, |tree| tree.add_node(caller, parent, name, node, &[]))?;
        self.refer(ino)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`Tree::make_node`]; targets have 1 to 4095 bytes.
    pub fn symlink(&mut self, caller: Caller, parent: Ino, name: &[u8], target: &[u8]) -> Result<Attributes> {
        match target.len() {
            0 => return Err(Errno::NOENT.into()),
            1..=4095 => {}
            _ => return Err(Errno::NAMETOOLONG.into()),
        }
        let node = NewNode { kind: FileKind::Symlink, permissions: 0o777, umask: 0, device: 0 };
        let ino = self.transaction(Purpose::Grow, |tree| tree.add_node(caller, parent, name, node, target))?;
        self.refer(ino)
    }

    /// Makes a node and its name, in a transaction.
    pub(super) fn add_node(
        &mut self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        node: NewNode,
        target: &[u8],
    ) -> Result<Ino> {
        let mut directory = self.directory(parent)?;
        let key = self.free_key(parent, &directory, name)?;
        if node.kind == FileKind::Directory {
            directory.links = directory.links.checked_add(1).ok_or(Errno::MLINK)?;
        }
        let ino = self.make_nameless(caller, parent, &directory, node, target)?;
        self.add_name(parent, &mut directory, key, name, (ino, node.kind))?;
        self.save_inode(parent, &directory)?;
        Ok(ino)
    }

    /// Makes a node for a directory that gives it a name, in the same transaction.
    pub(super) fn make_nameless(
        &mut self,
        caller: Caller,
        parent: Ino,
        directory: &Inode,
        node: NewNode,
        target: &[u8],
    ) -> Result<Ino> {
        let (wanted, xattrs) = self.inherit(caller, parent, directory, node)?;
        let mut wanted = Inode { size: target.len() as u64, ..wanted };
        if node.kind == FileKind::Directory {
            (wanted.links, wanted.parent) = (2, parent);
        }
        let (ino, mut inode) = self.make_inode(wanted)?;
        inode.root = chain::write(&mut self.store, 0, page_kind::TARGET, ino, target)?;
        inode.xattrs = chain::write(&mut self.store, 0, page_kind::XATTRS, ino, &xattrs)?;
        self.save_inode(ino, &inode)?;
        Ok(ino)
    }

    /// Gives a node that is no directory another name.
    ///
    /// # Errors
    /// `EPERM` for directories, `EEXIST`, `ENOENT`, `EMLINK`, `ENOSPC`.
    pub fn link(&mut self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attributes> {
        self.transaction(Purpose::Grow, |tree| {
            let mut inode = tree.inode(ino)?;
            if inode.is_directory() {
                return Err(Errno::PERM.into());
            }
            let mut directory = tree.directory(parent)?;
            let key = tree.free_key(parent, &directory, name)?;
            if inode.links == 0 {
                return Err(Errno::NOENT.into());
            }
            inode.links = inode.links.checked_add(1).ok_or(Errno::MLINK)?;
            inode.changed = tree.now;
            tree.save_inode(ino, &inode)?;
            tree.add_name(parent, &mut directory, key, name, (ino, inode.kind))?;
            tree.save_inode(parent, &directory)
        })?;
        self.refer(ino)
    }

    /// Takes a name from a node that is no directory.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn unlink(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        let entry = self.transaction(Purpose::Shrink, |tree| {
            let mut directory = tree.directory(parent)?;
            let entry = tree.find_entry(parent, &directory, name)?;
            if entry.kind == FileKind::Directory {
                return Err(Errno::ISDIR.into());
            }
            tree.drop_name(parent, &mut directory, entry.key)?;
            tree.save_inode(parent, &directory)?;
            tree.lose_name(entry)?;
            Ok(entry)
        })?;
        self.reap_quietly(entry.ino);
        Ok(())
    }

    /// A node that is no directory loses a name, in a transaction.
    pub(super) fn lose_name(&mut self, entry: Entry) -> Result<()> {
        let mut inode = self.inode(entry.ino)?;
        inode.changed = self.now;
        if inode.links <= 1 {
            return self.lose_last_name(entry.ino, &mut inode);
        }
        inode.links -= 1;
        self.save_inode(entry.ino, &inode)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL` for `.`.
    pub fn remove_directory(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        if name == b".." {
            return Err(Errno::NOTEMPTY.into());
        }
        let entry = self.transaction(Purpose::Shrink, |tree| {
            let mut directory = tree.directory(parent)?;
            let entry = tree.find_entry(parent, &directory, name)?;
            tree.drop_name(parent, &mut directory, entry.key)?;
            directory.links = directory.links.saturating_sub(1);
            tree.save_inode(parent, &directory)?;
            tree.lose_directory(entry)?;
            Ok(entry)
        })?;
        self.reap_quietly(entry.ino);
        Ok(())
    }

    /// A directory loses its name, in a transaction. It is empty, or the request fails.
    pub(super) fn lose_directory(&mut self, entry: Entry) -> Result<()> {
        let mut inode = self.directory(entry.ino)?;
        if inode.size > 0 {
            return Err(Errno::NOTEMPTY.into());
        }
        inode.changed = self.now;
        self.lose_last_name(entry.ino, &mut inode)
    }

    /// Frees a node that has lost its name and is not held. The request has happened already: if this fails, the node stays on
    /// the list of orphans until the next start.
    pub(super) fn reap_quietly(&mut self, ino: Ino) {
        drop(self.reap(ino));
    }

    /// The target of a symbolic link. It sets the time of access.
    ///
    /// # Errors
    /// `EINVAL` for other nodes.
    pub fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.inode(ino)?;
        if inode.kind != FileKind::Symlink {
            return Err(Errno::INVAL.into());
        }
        let target = chain::read(&mut self.store, inode.root, page_kind::TARGET, ino)?;
        self.touch_accessed(ino, &inode);
        Ok(target)
    }

    /// The entry of a name, if it is there.
    pub(super) fn maybe_entry(&mut self, ino: Ino, directory: &Inode, name: &[u8]) -> Result<Option<Entry>> {
        match self.look(ino, directory, name)? {
            Looked::Found(entry) => Ok(Some(entry)),
            Looked::Missing(_) => Ok(None),
        }
    }
}
