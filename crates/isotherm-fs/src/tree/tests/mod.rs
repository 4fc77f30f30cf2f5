//! Tests of the tree over a store in memory.

mod crash;
mod files;
mod links;
mod model;
mod names;
mod operations;
mod random;
mod spoilt;

use isotherm_vfs::{Attributes, Caller, Errno, FileKind, Ino, NewNode, ROOT, Time, WriteFlags};

use super::check::{Finding, FindingKind};
use super::error::{Result, TreeError};
use super::{FormatOptions, Tree};
use crate::memory_store::MemoryStore;
use crate::store::Store;

const CALLER: Caller = Caller { uid: 0, gid: 0, pid: 1 };

fn options() -> FormatOptions {
    FormatOptions { hash_key: [3; 16], permissions: 0o755, now: time(1), ..FormatOptions::default() }
}

fn tree_of(total: u64) -> Tree<MemoryStore> {
    Tree::format(MemoryStore::new(total), &options()).unwrap()
}

fn tree() -> Tree<MemoryStore> {
    tree_of(100_000)
}

fn time(seconds: i64) -> Time {
    Time { seconds, nanoseconds: 7 }
}

fn node(kind: FileKind) -> NewNode {
    NewNode { kind, permissions: if kind == FileKind::Directory { 0o755 } else { 0o644 }, umask: 0, device: 0 }
}

fn errno<T>(result: Result<T>) -> Errno {
    result.err().expect("the request fails").into()
}

/// Everything is settled and agrees.
#[track_caller]
fn assert_whole(tree: &mut Tree<MemoryStore>) {
    tree.settle_all().unwrap();
    assert_eq!(tree.check().unwrap(), Vec::<Finding>::new());
}

impl Tree<MemoryStore> {
    /// Makes a node, without a reference.
    fn make(&mut self, parent: Ino, name: &str, kind: FileKind) -> Ino {
        let ino = self.make_node(CALLER, parent, name.as_bytes(), node(kind)).unwrap().ino;
        self.forget(ino, 1).unwrap();
        ino
    }

    fn put(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<u64> {
        self.write(ino, offset, data, WriteFlags::default())
    }

    fn whole(&mut self, ino: Ino) -> Vec<u8> {
        let size = self.attributes(ino).unwrap().size;
        self.read(ino, 0, size as usize).unwrap()
    }

    fn find(&mut self, parent: Ino, name: &str) -> Result<Attributes> {
        let found = self.lookup(parent, name.as_bytes())?;
        self.forget(found.ino, 1)?;
        Ok(found)
    }

    /// Writes all that waits, settles, and opens the store anew.
    fn reopen(mut self) -> Self {
        self.store.write_out(|_| true);
        self.settle_all().unwrap();
        let now = self.now;
        let mut tree = Self::open_store(self.into_store()).unwrap();
        tree.recover_orphans().unwrap();
        tree.set_now(now);
        tree
    }

    fn kinds(&mut self) -> Vec<FindingKind> {
        self.check().unwrap().into_iter().map(|finding| finding.kind).collect()
    }
}
