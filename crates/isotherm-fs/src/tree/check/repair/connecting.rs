//! Nodes without a name: those that were deleted are listed as to be freed, the others get a name in `lost+found`.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_vfs::{Caller, FileKind, Ino, NewNode, ROOT};

use super::super::super::inode::inodes_of;
use super::super::super::{Result, Tree};
use super::Mending;
use crate::store::{PageId, Purpose, Store, page_kind};

/// Where nodes are put that lost their names.
const LOST_AND_FOUND: &[u8] = b"lost+found";

impl<S: Store> Tree<S> {
    /// Gives every node a name that was not deleted, and lets every directory lie below the root.
    pub(super) fn connect(&mut self, mending: &mut Mending) -> Result<()> {
        let check = self.run_check()?;
        let mut parents: BTreeMap<Ino, Ino> = BTreeMap::new();
        let mut lost: Vec<Ino> = Vec::new();
        for (ino, seen) in check.inodes.iter().filter(|(ino, _)| **ino != ROOT) {
            let Some((kind, links, _)) = seen.stored else { continue };
            if seen.names > 0 {
                if let (FileKind::Directory, Some((_, parent))) = (kind, seen.named) {
                    parents.insert(*ino, parent);
                }
                if links == 0 {
                    // Its name says that it was not deleted.
                    self.transaction(Purpose::Shrink, |tree| tree.delist(*ino))?;
                }
                continue;
            }
            if links > 0 || kind == FileKind::Directory && self.stored_inode(*ino)?.size > 0 {
                lost.push(*ino);
            }
        }
        for (ino, parent) in circles(&parents, &lost) {
            self.cut_loose(ino, parent)?;
            lost.push(ino);
        }
        for ino in lost {
            self.find_again(mending, ino)?;
        }
        Ok(())
    }

    /// Puts nodes that were deleted and that nothing lists onto the list of what is to be freed, after [`Tree::repair`]: `most` and a few, in pages
    /// from a number on. Returns where to go on if that was not all.
    ///
    /// # Errors
    /// Of the store. What is done stays done.
    pub fn list_deleted(&mut self, mut from: PageId, most: usize) -> Result<Option<PageId>> {
        let mut listed = 0;
        while listed < most {
            let Some(id) = self.store.next_page(from)? else { return Ok(None) };
            if self.store.page(id)?[0] == page_kind::INODES {
                let mut deleted = Vec::new();
                for ino in inodes_of(id) {
                    // A free place is an error.
                    if self.stored_inode(ino).is_ok_and(|inode| inode.links == 0) && !self.is_listed(ino)? {
                        deleted.push(ino);
                    }
                }
                listed += deleted.len();
                self.transaction(Purpose::Shrink, |tree| deleted.iter().try_for_each(|ino| tree.list_nameless(*ino)))?;
            }
            let Some(next) = id.checked_add(1) else { return Ok(None) };
            from = next;
        }
        Ok(Some(from))
    }

    /// Takes the name of a directory out of its parent.
    fn cut_loose(&mut self, ino: Ino, parent: Ino) -> Result<()> {
        let mut key = None;
        self.read_directory(parent, 0, &mut |entry| {
            if entry.ino == ino && entry.cookie >= 256 {
                key = Some(entry.cookie);
            }
            key.is_none()
        })?;
        let Some(key) = key else { return Ok(()) };
        self.transaction(Purpose::Shrink, |tree| {
            let mut directory = tree.inode(parent)?;
            tree.drop_name(parent, &mut directory, key)?;
            tree.save_inode(parent, &directory)
        })
    }

    /// Gives a node a name in `lost+found`.
    fn find_again(&mut self, mending: &mut Mending, ino: Ino) -> Result<()> {
        let above = self.lost_and_found()?;
        let mut name = format!("#{ino}");
        let directory = self.directory(above)?;
        while self.maybe_entry(above, &directory, name.as_bytes())?.is_some() {
            name.push('~');
        }
        self.transaction(Purpose::Shrink, |tree| {
            tree.delist(ino)?;
            let mut directory = tree.directory(above)?;
            let key = tree.free_key(above, &directory, name.as_bytes())?;
            let mut inode = tree.inode(ino)?;
            if inode.is_directory() {
                inode.parent = above;
            }
            inode.links = inode.links.max(1);
            tree.save_inode(ino, &inode)?;
            tree.add_name(above, &mut directory, key, name.as_bytes(), (ino, inode.kind))?;
            tree.save_inode(above, &directory)
        })?;
        mending.act(ino, format!("it had no name, and is lost+found/{name} now"));
        Ok(())
    }

    fn lost_and_found(&mut self) -> Result<Ino> {
        let mut name = LOST_AND_FOUND.to_vec();
        loop {
            let root = self.directory(ROOT)?;
            match self.maybe_entry(ROOT, &root, &name)? {
                Some(entry) if entry.kind == FileKind::Directory => return Ok(entry.ino),
                // Something else has the name.
                Some(_) => name.push(b'~'),
                None => {
                    let node = NewNode { kind: FileKind::Directory, permissions: 0o700, umask: 0, device: 0 };
                    return self
                        .transaction(Purpose::Shrink, |tree| tree.add_node(Caller::default(), ROOT, &name, node, &[]));
                }
            }
        }
    }
}

/// A directory of each circle, and the directory that has its name. Those below one that has no name are in none.
fn circles(parents: &BTreeMap<Ino, Ino>, nameless: &[Ino]) -> Vec<(Ino, Ino)> {
    let mut below: BTreeSet<Ino> = nameless.iter().copied().chain([ROOT]).collect();
    let mut found = Vec::new();
    for ino in parents.keys() {
        let mut path = BTreeSet::new();
        let mut at = *ino;
        while !below.contains(&at) && path.insert(at) {
            match parents.get(&at) {
                Some(parent) => at = *parent,
                None => break,
            }
        }
        if !below.contains(&at)
            && let Some(parent) = parents.get(&at)
        {
            found.push((at, *parent));
        }
        below.extend(path);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_each_circle_is_found() {
        // A circle of two with one below it, one below the root, one below a directory without a name.
        let parents = BTreeMap::from([(4, 5), (5, 4), (6, 4), (7, ROOT), (9, 8)]);
        assert_eq!(circles(&parents, &[8]), [(4, 5)]);
    }
}
