//! The tree of files: inodes, directories, file maps and extended attributes, which are nothing but pages of a [`Store`].
//!
//! `docs/sfs-format-tree.md` says what stands where. Every request that changes something is a transaction, but for writes to
//! blocks that have their entry: these change memory only ([`Tree::settle_idle`]). What frees more than a bounded number of pages
//! is done in several transactions, and a list on the volume says what is left ([`Tree::recover_orphans`]).
//!
//! Requests are those of [`isotherm_vfs::FileSystem`], with `&mut self`.

mod access;
mod attributes;
mod bytes;
mod chain;
pub mod check;
mod copy;
mod describe;
mod directory;
mod error;
mod extents;
mod hash;
mod inode;
mod inodes;
mod listing;
mod map;
mod name_page;
mod name_tree;
mod namespace;
mod nodes;
mod orphans;
mod prepare;
mod read;
mod references;
mod rename;
mod root_page;
mod space;
#[cfg(test)]
mod tests;
mod write;
mod xattrs;

use std::collections::BTreeSet;

use isotherm_vfs::{FileKind, Ino, ROOT, Time};

pub use describe::{describe_entry, describe_page};
pub use error::{Result, TreeError};
pub use extents::StoredExtent;
pub use inode::{is_entry, owner_of};
pub use prepare::FILE_BYTES_MAX;
pub use read::{Piece, ReadPlan};

/// Pages without which there is no tree: that of the root directory's inode, and what the tree knows of itself.
pub const ROOT_PAGES: [PageId; 2] = [0, root_page::ROOT_PAGE];

use crate::store::{Heat, PageId, Purpose, Store};
use error::damaged;
use hash::NameHash;
use inode::Inode;
use nodes::Nodes;

/// Pages that one transaction of a truncation or removal changes: 1 MiB.
const BATCH_PAGES: usize = 256;

/// How a volume is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions {
    /// Random: without it nobody can make names that collide.
    pub hash_key: [u8; 16],
    /// Bits of the hash of names that are not used: 0, but for tests of collisions. At most 55.
    pub hash_dropped_bits: u8,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
    /// Permissions of the root directory.
    pub permissions: u16,
    /// When.
    pub now: Time,
}

/// When reading sets a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AccessTimes {
    /// Never.
    Never,
    /// When the time is not later than the last change, or older than a day.
    #[default]
    Relative,
    /// Whenever something is read.
    Strict,
}

/// See the module's text.
#[derive(Debug)]
pub struct Tree<S> {
    store: S,
    nodes: Nodes,
    hash: NameHash,
    now: Time,
    access_times: AccessTimes,
    keeps_directory_times: bool,
    batch_pages: usize,
    handles: u64,
    /// Small files without a name that are freed when there are so many of them.
    doomed: BTreeSet<Ino>,
    freed_together: usize,
}

impl<S: Store> Tree<S> {
    /// Makes a new tree on a store without pages: the root directory and nothing else.
    ///
    /// # Errors
    /// Of the store, and of one that has pages.
    pub fn format(store: S, options: &FormatOptions) -> Result<Self> {
        let hash = NameHash { key: options.hash_key, dropped_bits: options.hash_dropped_bits.min(55) };
        let mut tree = Self::new(store, hash);
        tree.now = options.now;
        tree.transaction(Purpose::Grow, |tree| {
            let pages: [PageId; 2] = [tree.store.allocate()?, tree.store.allocate()?];
            if pages != [0, root_page::ROOT_PAGE] {
                return Err(damaged("a new volume has pages already"));
            }
            root_page::format(tree.store.page_mut(root_page::ROOT_PAGE)?, &hash);
            let generation = root_page::count_inode(&mut tree.store)?;
            let owner = (options.uid, options.gid);
            let root = Inode {
                generation,
                links: 2,
                parent: ROOT,
                ..tree.blank(FileKind::Directory, options.permissions, owner)
            };
            inodes::format_first(&mut tree.store, &root)
        })?;
        Ok(tree)
    }

    /// Opens the tree of a store. [`Tree::finish_cuts`] is to be called before anything is changed, and [`Tree::free_nameless`] before anybody is served;
    /// [`Tree::recover_orphans`] does both.
    ///
    /// # Errors
    /// Of the store, and where it holds no tree.
    pub fn open_store(mut store: S) -> Result<Self> {
        let hash = root_page::open(&*store.page(root_page::ROOT_PAGE)?)?;
        let mut tree = Self::new(store, hash);
        tree.keep_room_for_orphans();
        Ok(tree)
    }

    fn new(store: S, hash: NameHash) -> Self {
        let (nodes, access_times) = (Nodes::default(), AccessTimes::default());
        Self {
            store,
            nodes,
            hash,
            now: Time::default(),
            access_times,
            keeps_directory_times: true,
            batch_pages: BATCH_PAGES,
            handles: 0,
            doomed: BTreeSet::new(),
            freed_together: 1,
        }
    }

    /// The store, to write its log, say.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Gives the store back. What was not settled is lost.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Sets the time of the requests that follow.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Sets how many small files are freed in one transaction when their last reference is gone; 1 unless told. The others wait for it on
    /// the list of orphans: [`Tree::free_doomed`] is to be called where the space or the memory that they take matters.
    pub fn free_together(&mut self, files: usize) {
        self.freed_together = files;
    }

    /// Sets when reading sets a time, and whether that of a directory too.
    pub fn set_access_times(&mut self, access_times: AccessTimes, of_directories: bool) {
        self.access_times = access_times;
        self.keeps_directory_times = of_directories;
    }

    /// Does something in a transaction: all of it, or nothing.
    fn transaction<T>(&mut self, purpose: Purpose, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.store.begin(purpose)?;
        self.nodes.begin();
        let result = work(self);
        if result.is_ok() {
            self.store.commit();
            self.nodes.commit();
            self.keep_room_for_orphans();
        } else {
            self.store.abort();
            self.nodes.abort();
        }
        result
    }

    /// An inode without anything, made now.
    fn blank(&self, kind: FileKind, permissions: u16, (uid, gid): (u32, u32)) -> Inode {
        Inode {
            kind,
            permissions: permissions & 0o7777,
            links: 1,
            uid,
            gid,
            size: 0,
            blocks: 0,
            accessed: self.now,
            modified: self.now,
            changed: self.now,
            born: self.now,
            device: 0,
            generation: 0,
            heat: Heat { writes: 0, time: self.store.now() },
            root: 0,
            height: 0,
            xattrs: 0,
            parent: 0,
        }
    }
}
