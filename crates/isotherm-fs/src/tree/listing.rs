//! Directories are listed in the order of their keys, which are the cookies: `.` has 1, `..` has 2, names 256 and more.

use isotherm_vfs::{Attributes, DirectoryEntry, FileKind, Ino};

use super::Tree;
use super::directory::recorded_kind;
use super::error::Result;
use crate::store::Store;

const DOT_COOKIE: u64 = 1;
const DOT_DOT_COOKIE: u64 = 2;

impl<S: Store> Tree<S> {
    /// Lists a directory from `cookie` on (0 for the start) until `take` returns false. A removed directory has no entries.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn read_directory(
        &mut self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<()> {
        self.list(ino, cookie, &mut |_, entry| Ok(take(entry)))
    }

    /// The same with attributes. Each entry that `take` accepted is a reference to its node, but for `.` and `..`.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn read_directory_plus(
        &mut self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(DirectoryEntry<'_>, &Attributes) -> bool,
    ) -> Result<()> {
        self.list(ino, cookie, &mut |tree, entry| {
            let attributes = tree.attributes(entry.ino)?;
            let takes = take(entry, &attributes);
            if takes && entry.cookie > DOT_DOT_COOKIE {
                tree.nodes.refer(entry.ino);
            }
            Ok(takes)
        })
    }

    fn list(
        &mut self,
        ino: Ino,
        cookie: u64,
        take: &mut dyn FnMut(&mut Self, DirectoryEntry<'_>) -> Result<bool>,
    ) -> Result<()> {
        let directory = self.directory(ino)?;
        self.touch_accessed(ino, &directory);
        if directory.links == 0 {
            return Ok(());
        }
        let dots: [(u64, Ino, &[u8]); 2] = [(DOT_COOKIE, ino, b"."), (DOT_DOT_COOKIE, directory.parent, b"..")];
        for (own, ino, name) in dots {
            let entry = DirectoryEntry { ino, kind: FileKind::Directory, name, cookie: own };
            if cookie < own && !take(self, entry)? {
                return Ok(());
            }
        }
        let mut from = cookie.checked_add(1);
        while let Some(key) = from {
            let Some(leaf) = self.names_leaf(ino, &directory, key)? else { break };
            for record in leaf.records() {
                let kind = recorded_kind(record.kind)?;
                let entry = DirectoryEntry { ino: record.ino, kind, name: record.name, cookie: record.key };
                if !take(self, entry)? {
                    return Ok(());
                }
            }
            from = leaf.next;
        }
        Ok(())
    }
}
