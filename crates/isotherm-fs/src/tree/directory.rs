//! Names of a directory: found by the hash of the name, told apart by the low 8 bits of the key where hashes agree. The key is
//! the cookie of the entry, and stays as long as the entry does.

use isotherm_vfs::{Errno, FileKind, Ino};

use super::Tree;
use super::error::{Result, damaged};
use super::hash::DISAMBIGUATOR_BITS;
use super::inode::{Inode, format_bits, kind_of};
use super::name_page::Record;
use super::name_tree::{Leaf, NameTree};
use crate::store::Store;

/// Names of one hash.
const KEYS_OF_HASH: u64 = 1 << DISAMBIGUATOR_BITS;

/// Where a name of a directory leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) ino: Ino,
    pub(super) kind: FileKind,
}

/// What a look-up of a name comes to: its entry, or the key that it would get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Looked {
    /// It is there.
    Found(Entry),
    /// It is not. There is no key where 256 names have the hash.
    Missing(Option<u64>),
}

/// The kind that stands in a record.
pub(super) fn recorded_kind(kind: u8) -> Result<FileKind> {
    kind_of(u16::from(kind) << 12).ok_or_else(|| damaged(format!("a name leads to a node of the kind {kind}")))
}

/// Checks a name that a node is to get or has.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        [] => Err(Errno::NOENT.into()),
        b"." | b".." => Err(Errno::INVAL.into()),
        _ if name.len() > 255 => Err(Errno::NAMETOOLONG.into()),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Errno::INVAL.into()),
        _ => Ok(()),
    }
}

impl<S: Store> Tree<S> {
    fn names<'a>(&'a mut self, ino: Ino, directory: &Inode) -> NameTree<'a, S> {
        NameTree { store: &mut self.store, root: directory.root, owner: ino }
    }

    /// A directory's inode.
    pub(super) fn directory(&mut self, ino: Ino) -> Result<Inode> {
        let inode = self.inode(ino)?;
        if inode.is_directory() { Ok(inode) } else { Err(Errno::NOTDIR.into()) }
    }

    /// The leaf of a directory that holds the key or what follows it.
    pub(super) fn names_leaf(&mut self, ino: Ino, directory: &Inode, key: u64) -> Result<Option<Leaf>> {
        self.names(ino, directory).leaf(key)
    }

    /// Looks a name up.
    pub(super) fn look(&mut self, ino: Ino, directory: &Inode, name: &[u8]) -> Result<Looked> {
        check_name(name)?;
        let base = self.hash.base(name);
        let mut taken = [false; KEYS_OF_HASH as usize];
        let mut from = Some(base);
        while let Some(key) = from {
            let Some(leaf) = self.names_leaf(ino, directory, key)? else { break };
            for record in leaf.records().take_while(|record| record.key < base + KEYS_OF_HASH) {
                if record.name == name {
                    let kind = recorded_kind(record.kind)?;
                    return Ok(Looked::Found(Entry { key: record.key, ino: record.ino, kind }));
                }
                let Some(low) = record.key.checked_sub(base) else {
                    return Err(damaged(format!("names of directory {ino} are out of order")));
                };
                taken[low as usize] = true;
            }
            from = leaf.next.filter(|next| *next < base + KEYS_OF_HASH);
        }
        let free = taken.iter().position(|taken| !taken);
        Ok(Looked::Missing(free.map(|low| base + low as u64)))
    }

    /// The entry of a name; `ENOENT` where there is none.
    pub(super) fn find_entry(&mut self, ino: Ino, directory: &Inode, name: &[u8]) -> Result<Entry> {
        match self.look(ino, directory, name)? {
            Looked::Found(entry) => Ok(entry),
            Looked::Missing(_) => Err(Errno::NOENT.into()),
        }
    }

    /// The key that a new name gets; `EEXIST` where it is there, `ENOENT` where the directory was removed.
    pub(super) fn free_key(&mut self, ino: Ino, directory: &Inode, name: &[u8]) -> Result<u64> {
        match self.look(ino, directory, name)? {
            Looked::Found(_) => Err(Errno::EXIST.into()),
            Looked::Missing(_) if directory.links == 0 => Err(Errno::NOENT.into()),
            Looked::Missing(None) => Err(Errno::NOSPC.into()),
            Looked::Missing(Some(key)) => Ok(key),
        }
    }

    /// Adds a name, in a transaction. The directory is to be saved.
    pub(super) fn add_name(
        &mut self,
        ino: Ino,
        directory: &mut Inode,
        key: u64,
        name: &[u8],
        target: (Ino, FileKind),
    ) -> Result<()> {
        let mut names = self.names(ino, directory);
        names.insert(&Record { key, ino: target.0, kind: (format_bits(target.1) >> 12) as u8, name })?;
        directory.root = names.root;
        directory.size += 1;
        self.touch_directory(directory);
        Ok(())
    }

    /// Takes a name out, in a transaction. The directory is to be saved.
    pub(super) fn drop_name(&mut self, ino: Ino, directory: &mut Inode, key: u64) -> Result<()> {
        let mut names = self.names(ino, directory);
        names.remove(key)?;
        directory.root = names.root;
        directory.size = directory.size.saturating_sub(1);
        self.touch_directory(directory);
        Ok(())
    }

    /// Lets a name lead elsewhere, in a transaction. The directory is to be saved.
    pub(super) fn redirect_name(
        &mut self,
        ino: Ino,
        directory: &mut Inode,
        key: u64,
        target: (Ino, FileKind),
    ) -> Result<()> {
        self.names(ino, directory).redirect(key, target.0, (format_bits(target.1) >> 12) as u8)?;
        self.touch_directory(directory);
        Ok(())
    }

    fn touch_directory(&self, directory: &mut Inode) {
        directory.modified = self.now;
        directory.changed = self.now;
    }
}
