//! Inodes in memory: who refers to them, and what an overwriting write changed of them. That needs no transaction: sizes,
//! times and heat stay here until [`Tree::settle_idle`] brings them into pages, a size never before the data below it.

use std::collections::{BTreeSet, HashMap};

use isotherm_vfs::{Ino, Time};

use super::Tree;
use super::error::Result;
use super::inode::Inode;
use super::references::References;
use crate::store::{Heat, Purpose, Store};

/// Inodes that one transaction settles.
const SETTLED_AT_ONCE: usize = 128;

/// What is only known in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lazy {
    size: u64,
    blocks: u64,
    accessed: Time,
    modified: Time,
    changed: Time,
    heat: Heat,
}

impl Lazy {
    fn of(inode: &Inode) -> Self {
        Self {
            size: inode.size,
            blocks: inode.blocks,
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
            heat: inode.heat,
        }
    }

    /// Overlays what the page says.
    pub(super) fn apply(&self, inode: &mut Inode) {
        inode.size = self.size;
        inode.blocks = self.blocks;
        inode.accessed = self.accessed;
        inode.modified = self.modified;
        inode.changed = self.changed;
        inode.heat = self.heat;
    }
}

/// A node that is open, or changed in memory.
#[derive(Clone, Debug, Default)]
struct Node {
    opens: u64,
    lazy: Option<Lazy>,
    /// Nothing that was written lies behind the end of the file.
    has_clean_tail: bool,
    /// It is on the list of what a crash leaves to be mended, until it is settled.
    is_listed: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    references: References,
    table: HashMap<Ino, Node>,
    /// Those with something lazy.
    dirty: BTreeSet<Ino>,
    /// How many became lazy by being read since all that can be settled was.
    touched: usize,
    /// What was lazy before the transaction under way, if there is one.
    undo: Option<Vec<(Ino, Option<Lazy>)>>,
}

impl Nodes {
    /// What is only known in memory of a node.
    pub(super) fn lazy(&self, ino: Ino) -> Option<&Lazy> {
        self.table.get(&ino)?.lazy.as_ref()
    }

    /// Keeps what an inode says in memory.
    pub(super) fn keep(&mut self, ino: Ino, inode: &Inode) {
        self.set_lazy(ino, Some(Lazy::of(inode)));
    }

    /// The same for one that was only read.
    pub(super) fn touch(&mut self, ino: Ino, inode: &Inode) {
        self.touched += usize::from(self.lazy(ino).is_none());
        self.keep(ino, inode);
    }

    /// An inode goes, in a transaction: nothing of it is to be settled.
    pub(super) fn discard(&mut self, ino: Ino) {
        if self.lazy(ino).is_some() {
            self.set_lazy(ino, None);
        }
    }

    fn set_lazy(&mut self, ino: Ino, lazy: Option<Lazy>) {
        let node = self.table.entry(ino).or_default();
        let before = std::mem::replace(&mut node.lazy, lazy);
        if let Some(undo) = &mut self.undo {
            undo.push((ino, before));
        }
        self.mark(ino);
    }

    fn mark(&mut self, ino: Ino) {
        if self.lazy(ino).is_some() {
            self.dirty.insert(ino);
        } else {
            self.dirty.remove(&ino);
        }
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// The transaction is committed.
    pub(super) fn commit(&mut self) {
        self.undo = None;
    }

    /// The transaction is aborted.
    pub(super) fn abort(&mut self) {
        for (ino, lazy) in self.undo.take().into_iter().flatten().rev() {
            self.table.entry(ino).or_default().lazy = lazy;
            self.mark(ino);
        }
    }

    /// One reference more.
    pub(super) fn refer(&mut self, ino: Ino) {
        self.references.add(ino);
    }

    /// One opening more.
    pub(super) fn open(&mut self, ino: Ino) {
        self.table.entry(ino).or_default().opens += 1;
    }

    /// Some references less.
    pub(super) fn forget(&mut self, ino: Ino, references: u64) {
        self.references.subtract(ino, references);
        self.drop_idle(ino);
    }

    /// One opening less.
    pub(super) fn close(&mut self, ino: Ino) {
        if let Some(node) = self.table.get_mut(&ino) {
            node.opens = node.opens.saturating_sub(1);
        }
        self.drop_idle(ino);
    }

    /// A node that is not open needs no place here but for its references, unless something of it is to be settled.
    pub(super) fn drop_idle(&mut self, ino: Ino) {
        if self.table.get(&ino).is_some_and(|node| node.opens == 0 && node.lazy.is_none()) {
            self.table.remove(&ino);
        }
    }

    /// Whether a node is referred to or open.
    pub(super) fn is_held(&self, ino: Ino) -> bool {
        self.references.has(ino) || self.table.get(&ino).is_some_and(|node| node.opens > 0)
    }

    /// Whether it is known that nothing lies behind the end of a file.
    pub(super) fn has_clean_tail(&self, ino: Ino) -> bool {
        self.table.get(&ino).is_some_and(|node| node.has_clean_tail)
    }

    /// Notes whether it is.
    pub(super) fn set_clean_tail(&mut self, ino: Ino, clean: bool) {
        if clean || self.table.contains_key(&ino) {
            self.table.entry(ino).or_default().has_clean_tail = clean;
        }
    }

    /// Notes whether a file is on the list of what is to be mended after a crash until it is settled.
    pub(super) fn set_listed(&mut self, ino: Ino, listed: bool) {
        if let Some(node) = self.table.get_mut(&ino) {
            node.is_listed = listed;
        }
    }

    /// Whether it is.
    pub(super) fn is_listed(&self, ino: Ino) -> bool {
        self.table.get(&ino).is_some_and(|node| node.is_listed)
    }

    /// References and openings that are left.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let open = self.table.iter().filter(|(_, node)| node.opens > 0).map(|(ino, _)| *ino);
        open.chain(self.references.nodes()).collect::<BTreeSet<_>>().len()
    }
}

impl<S: Store> Tree<S> {
    /// Brings what memory knows of an inode into its page, whether its data waits or not: call it when the data is written.
    ///
    /// # Errors
    /// Of the store.
    pub fn settle(&mut self, ino: Ino) -> Result<()> {
        if self.nodes.lazy(ino).is_some() { self.settle_some(&[ino]) } else { Ok(()) }
    }

    /// Brings what memory knows into pages, for all inodes without data that waits to be written. Returns how many there were.
    ///
    /// # Errors
    /// Of the store.
    pub fn settle_idle(&mut self) -> Result<usize> {
        let idle: Vec<Ino> = self.nodes.dirty.iter().copied().filter(|ino| self.store.waiting(*ino) == 0).collect();
        for some in idle.chunks(SETTLED_AT_ONCE) {
            self.settle_some(some)?;
        }
        self.nodes.touched = 0;
        Ok(idle.len())
    }

    /// How many inodes were only read since [`Tree::settle_idle`].
    pub fn touched(&self) -> usize {
        self.nodes.touched
    }

    /// Brings all that memory knows into pages. Call it when all data is written.
    ///
    /// # Errors
    /// Of the store.
    pub fn settle_all(&mut self) -> Result<()> {
        let all: Vec<Ino> = self.nodes.dirty.iter().copied().collect();
        all.chunks(SETTLED_AT_ONCE).try_for_each(|some| self.settle_some(some))
    }

    /// Inodes of which memory knows more than their pages.
    pub fn unsettled(&self) -> impl Iterator<Item = Ino> {
        self.nodes.dirty.iter().copied()
    }

    fn settle_some(&mut self, some: &[Ino]) -> Result<()> {
        self.transaction(Purpose::Shrink, |tree| {
            for ino in some {
                let inode = tree.inode(*ino)?;
                tree.nodes.set_lazy(*ino, None);
                tree.save_inode(*ino, &inode)?;
                if tree.nodes.is_listed(*ino) {
                    tree.end_lag(*ino)?;
                }
            }
            Ok(())
        })?;
        for ino in some {
            self.nodes.set_listed(*ino, false);
            self.nodes.drop_idle(*ino);
        }
        Ok(())
    }
}
