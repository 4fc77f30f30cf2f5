//! What is left to be freed: nodes without a name that are still referred to, and files that were cut and have too many blocks
//! for one transaction. Both stand in a tree of records by inode number, so that a crash leaks nothing.

use std::collections::BTreeSet;

use isotherm_vfs::{FileKind, Ino};

use super::Tree;
use super::bytes::get_u64;
use super::chain;
use super::error::{Result, TreeError, damaged};
use super::inode::{Inode, inodes_of};
use super::map::FILE_BLOCKS_MAX;
use super::name_page::Record;
use super::name_tree::NameTree;
use super::root_page;
use crate::format::checkpoint::Lagging;
use crate::store::{Found, PageId, Purpose, Store, StoreError, page_kind};

/// Kind of a record: the node has no name.
pub(super) const NAMELESS: u8 = 0;
/// Kind of a record: blocks from some number on, 8 bytes in the name, are to be freed, and others may have been written behind the end.
pub(super) const CUT: u8 = 1;

/// Files that one transaction puts onto the list.
const LISTED_AT_ONCE: usize = 128;

/// Records of a leaf of the tree of orphans that was split: a leaf has room for 204 of nodes without a name, and the half that moves is the smaller.
const RECORDS_OF_HALF_A_LEAF: u64 = 101;
/// Leaves below an index that was split.
const LEAVES_OF_HALF_AN_INDEX: u64 = 170;
/// Pages beside these: the last leaf, an index of each level, a page of the table, and files that are listed to be mended, whose records are
/// longer.
const OTHER_PAGES: u64 = 32;

/// Pages that the tree of orphans takes at most if all of so many inodes are put onto it, in whatever order.
///
/// Only a full leaf is split. Each record that a leaf has above half of what it holds may so lead to 1/101 of a new leaf, those that are there
/// already included.
fn pages_for(inodes: u64) -> u64 {
    let leaves = inodes.div_ceil(RECORDS_OF_HALF_A_LEAF);
    leaves + leaves.div_ceil(LEAVES_OF_HALF_AN_INDEX - 1) + OTHER_PAGES
}

impl<S: Store> Tree<S> {
    /// Lets room for the case that all nodes lose their names while they are open: none of it is given back before they are closed.
    pub(super) fn keep_room_for_orphans(&mut self) {
        // Should the page not be readable, nothing can be made either.
        if let Ok(inodes) = root_page::inodes_in_use(&mut self.store) {
            self.store.keep_for_shrinking(pages_for(inodes));
        }
    }

    fn orphan_tree(&mut self) -> Result<NameTree<'_, S>> {
        let root: PageId = root_page::orphans(&mut self.store)?;
        Ok(NameTree { store: &mut self.store, root, owner: 0 })
    }

    fn enlist(&mut self, ino: Ino, kind: u8, name: &[u8]) -> Result<()> {
        let mut orphans = self.orphan_tree()?;
        match orphans.get(ino)? {
            Some((_, before, ref rest)) if before == kind && rest == name => return Ok(()),
            Some(_) => orphans.remove(ino)?,
            None => {}
        }
        orphans.insert(&Record { key: ino, ino, kind, name })?;
        let root = orphans.root;
        root_page::set_orphans(&mut self.store, root)
    }

    /// Puts a node without a name onto the list, in a transaction.
    pub(super) fn list_nameless(&mut self, ino: Ino) -> Result<()> {
        self.enlist(ino, NAMELESS, &[])
    }

    /// Takes an inode off the list, if it is there.
    pub(super) fn delist(&mut self, ino: Ino) -> Result<()> {
        if self.is_listed(ino)? {
            let mut orphans = self.orphan_tree()?;
            orphans.remove(ino)?;
            let root = orphans.root;
            root_page::set_orphans(&mut self.store, root)?;
        }
        Ok(())
    }

    /// Whether an inode is on the list.
    pub(super) fn is_listed(&mut self, ino: Ino) -> Result<bool> {
        Ok(self.orphan_tree()?.get(ino)?.is_some())
    }

    /// A node has lost its last name, in a transaction: it goes at once, or onto the list.
    pub(super) fn lose_last_name(&mut self, ino: Ino, inode: &mut Inode) -> Result<()> {
        inode.links = 0;
        if !self.nodes.is_held(ino) && self.free_contents(ino, inode, &mut self.batch_pages.clone())? {
            self.nodes.discard(ino);
            // It may have been cut, or have been written in part.
            self.delist(ino)?;
            return self.free_inode(ino);
        }
        self.save_inode(ino, inode)?;
        self.enlist(ino, NAMELESS, &[])
    }

    /// After a transaction in which a node may have lost its last name, or a reference: what is left of it is freed.
    pub(super) fn reap(&mut self, ino: Ino) -> Result<()> {
        if self.nodes.is_held(ino) {
            return Ok(());
        }
        self.nodes.drop_idle(ino);
        match self.stored_inode(ino) {
            Ok(inode) if inode.links == 0 => self.doom(ino, &inode),
            _ => Ok(()),
        }
    }

    /// Frees a node without a name that nobody refers to; a small file together with others, later: they stand on the list until then.
    fn doom(&mut self, ino: Ino, inode: &Inode) -> Result<()> {
        if inode.kind != FileKind::Regular || inode.root != 0 || inode.xattrs != 0 {
            return self.destroy(ino);
        }
        self.doomed.insert(ino);
        if self.doomed.len() < self.freed_together { Ok(()) } else { self.free_doomed().map(drop) }
    }

    /// Frees the files whose removal waits for others to be done with. Returns how many there were.
    ///
    /// # Errors
    /// Of the store: what could not be freed is freed by [`Tree::recover_orphans`].
    pub fn free_doomed(&mut self) -> Result<usize> {
        let doomed = std::mem::take(&mut self.doomed);
        if doomed.is_empty() {
            return Ok(0);
        }
        self.transaction(Purpose::Shrink, |tree| {
            for ino in &doomed {
                let mut inode = tree.inode(*ino)?;
                if !tree.free_contents(*ino, &mut inode, &mut 1)? {
                    return Err(damaged(format!("inode {ino} has more blocks than its own entries")));
                }
                tree.delist(*ino)?;
                tree.nodes.discard(*ino);
                tree.free_inode(*ino)?;
            }
            Ok(())
        })?;
        for ino in &doomed {
            self.nodes.drop_idle(*ino);
        }
        Ok(doomed.len())
    }

    /// Frees a node without a name, in as many transactions as it takes.
    fn destroy(&mut self, ino: Ino) -> Result<()> {
        let mut done = false;
        while !done {
            done = self.transaction(Purpose::Shrink, |tree| {
                let mut inode = tree.inode(ino)?;
                let done = tree.free_contents(ino, &mut inode, &mut tree.batch_pages.clone())?;
                if done {
                    tree.delist(ino)?;
                    tree.nodes.discard(ino);
                    tree.free_inode(ino)?;
                } else {
                    tree.save_inode(ino, &inode)?;
                }
                Ok(done)
            })?;
        }
        self.nodes.drop_idle(ino);
        Ok(())
    }

    /// Frees what an inode holds; whether nothing is left. The inode is to be saved.
    fn free_contents(&mut self, ino: Ino, inode: &mut Inode, budget: &mut usize) -> Result<bool> {
        let is_file = inode.kind == FileKind::Regular;
        if is_file && self.release_range(ino, inode, 0, FILE_BLOCKS_MAX, budget)? < FILE_BLOCKS_MAX {
            return Ok(false);
        }
        match inode.kind {
            FileKind::Symlink => {
                inode.root = chain::write(&mut self.store, inode.root, page_kind::TARGET, ino, &[])?;
            }
            FileKind::Directory if inode.root != 0 => {
                return Err(damaged(format!("directory {ino} was removed and is not empty")));
            }
            _ => {}
        }
        inode.xattrs = chain::write(&mut self.store, inode.xattrs, page_kind::XATTRS, ino, &[])?;
        Ok(true)
    }

    /// Puts files of which some data is written, and whose size and number of blocks wait for the rest of it, onto the list: a crash after
    /// the next checkpoint leaves that data behind their end, where roll-forward does not meet it.
    ///
    /// # Errors
    /// Of the store.
    pub fn list_unsettled(&mut self, files: &[Ino]) -> Result<()> {
        for some in files.chunks(LISTED_AT_ONCE) {
            let lagging = self.lagging(some)?;
            self.transaction(Purpose::Shrink, |tree| {
                lagging.iter().try_for_each(|ino| tree.list_unsettled_file(*ino))
            })?;
            lagging.into_iter().for_each(|ino| self.nodes.set_listed(ino, true));
        }
        Ok(())
    }

    fn list_unsettled_file(&mut self, ino: Ino) -> Result<()> {
        self.enlist(ino, CUT, &FILE_BLOCKS_MAX.to_le_bytes())
    }

    /// Those of some files whose size or number of blocks is not yet in their page, and that are not on the list.
    ///
    /// # Errors
    /// Of the store.
    pub fn lagging(&mut self, files: &[Ino]) -> Result<Vec<Ino>> {
        let mut lagging = Vec::new();
        for ino in files.iter().copied() {
            if self.nodes.lazy(ino).is_none() {
                continue;
            }
            let (known, stored) = (self.inode(ino)?, self.stored_inode(ino)?);
            let differs = (known.size, known.blocks) != (stored.size, stored.blocks);
            if differs && known.kind == FileKind::Regular && known.links > 0 && !self.is_listed(ino)? {
                lagging.push(ino);
            }
        }
        Ok(lagging)
    }

    /// Blocks of a file from `first` on become holes, in a transaction: some at once, the rest is put onto the list and the block
    /// to go on from returned, for [`Tree::finish_cut`]. The inode is to be saved.
    pub(super) fn begin_cut(&mut self, ino: Ino, inode: &mut Inode, first: u64) -> Result<Option<u64>> {
        let next = self.release_range(ino, inode, first, FILE_BLOCKS_MAX, &mut self.batch_pages.clone())?;
        if next == FILE_BLOCKS_MAX {
            self.end_cut(ino, inode)?;
            return Ok(None);
        }
        if inode.links > 0 {
            self.enlist(ino, CUT, &next.to_le_bytes())?;
        }
        Ok(Some(next))
    }

    /// Nothing lies behind the end of a file any more, in a transaction: a cut that was broken off must not be taken up again. That is the end
    /// which memory knows: behind the one in the page data may lie until the file is settled, and so long it stays listed.
    pub(super) fn end_cut(&mut self, ino: Ino, inode: &Inode) -> Result<()> {
        match inode.links {
            0 => Ok(()),
            _ if self.nodes.is_listed(ino) => self.list_unsettled_file(ino),
            _ => self.delist(ino),
        }
    }

    /// The page of a file that was listed until then says all that memory knows, in a transaction. A cut that was broken off is still to be taken up.
    pub(super) fn end_lag(&mut self, ino: Ino) -> Result<()> {
        let record = self.orphan_tree()?.get(ino)?;
        if record.is_some_and(|(_, kind, from)| kind == CUT && from == FILE_BLOCKS_MAX.to_le_bytes()) {
            self.delist(ino)?;
        }
        Ok(())
    }

    /// Frees the rest of what was cut, in as many transactions as it takes.
    pub(super) fn finish_cut(&mut self, ino: Ino, mut next: u64) -> Result<()> {
        while next < FILE_BLOCKS_MAX {
            next = self.transaction(Purpose::Shrink, |tree| {
                let mut inode = tree.inode(ino)?;
                let next = tree.release_range(ino, &mut inode, next, FILE_BLOCKS_MAX, &mut tree.batch_pages.clone())?;
                tree.save_inode(ino, &inode)?;
                if next == FILE_BLOCKS_MAX {
                    tree.end_cut(ino, &inode)?;
                }
                Ok(next)
            })?;
        }
        Ok(())
    }

    /// Frees what a crash left to be freed. Returns how many nodes that were.
    ///
    /// # Errors
    /// Of the store. What is done stays done.
    pub fn recover_orphans(&mut self) -> Result<u64> {
        let cut = self.finish_cuts()?;
        let (nameless, _) = self.free_nameless(0, u64::MAX)?;
        Ok(cut + nameless)
    }

    /// Finishes what a crash left of files that were cut, or not settled. Returns how many these were.
    ///
    /// # Errors
    /// Of the store. What is done stays done.
    pub fn finish_cuts(&mut self) -> Result<u64> {
        let mut count = 0;
        let mut from = 0;
        while let Some((ino, kind, name)) = self.next_orphan(from)? {
            from = ino + 1;
            match kind {
                NAMELESS => {}
                CUT if name.len() == 8 => {
                    self.finish_cut(ino, get_u64(&name, 0))?;
                    self.mend(ino)?;
                    count += 1;
                }
                _ => return Err(damaged(format!("inode {ino} is listed as an orphan of the kind {kind}"))),
            }
        }
        Ok(count)
    }

    /// Frees `most` nodes without a name that nobody refers to, from an inode on. Returns how many there were, and where to go on if that was not all.
    ///
    /// # Errors
    /// Of the store. What is done stays done.
    pub fn free_nameless(&mut self, mut from: Ino, most: u64) -> Result<(u64, Option<Ino>)> {
        let mut count = 0;
        let mut next = Some(from);
        while count < most {
            let Some((ino, kind, _)) = self.next_orphan(from)? else {
                next = None;
                break;
            };
            from = ino + 1;
            next = Some(from);
            if kind == NAMELESS && !self.nodes.is_held(ino) {
                let inode = self.stored_inode(ino)?;
                self.doom(ino, &inode)?;
                count += 1;
            }
        }
        self.free_doomed()?;
        Ok((count, next))
    }

    /// Gives back what a crash left behind the end of a regular file, whose data became durable before its size, and counts its blocks
    /// anew. What was set aside there stays.
    ///
    /// # Errors
    /// Of the store.
    pub fn mend(&mut self, ino: Ino) -> Result<()> {
        self.clean_tail(ino)?;
        self.nodes.drop_idle(ino);
        self.recount(ino)
    }

    /// The same for files that a checkpoint names. What cannot be read of them is left to a check.
    ///
    /// # Errors
    /// Of the store.
    pub fn mend_lagging(&mut self, lagging: &Lagging) -> Result<()> {
        if let Lagging::Files(files) = lagging {
            return files.iter().try_for_each(|ino| self.mend_named(*ino));
        }
        let mut from = Some(0);
        while let Some(id) = from.and_then(|id| self.store.next_page(id).transpose()).transpose()? {
            if self.store.page(id).is_ok_and(|page| page[0] == page_kind::INODES) {
                inodes_of(id).try_for_each(|ino| self.mend_named(ino))?;
            }
            from = id.checked_add(1);
        }
        Ok(())
    }

    fn mend_named(&mut self, ino: Ino) -> Result<()> {
        // Since the checkpoint it may have gone, and another node may have come.
        match self.stored_inode(ino) {
            Ok(inode) if inode.kind == FileKind::Regular && inode.links > 0 => {}
            _ => return Ok(()),
        }
        match self.mend(ino) {
            Err(TreeError::Store(StoreError::Damaged(_))) => Ok(()),
            done => done,
        }
    }

    /// Counts the blocks of a regular file anew: after a crash the number may be off for files whose blocks became durable and
    /// whose inode did not.
    ///
    /// # Errors
    /// Of the store.
    pub fn recount(&mut self, ino: Ino) -> Result<()> {
        let before = self.regular(ino)?;
        let mut blocks = 0;
        let mut block = 0;
        while block < FILE_BLOCKS_MAX {
            let extent = self.extent(ino, &before, block, FILE_BLOCKS_MAX)?;
            if extent.slot.is_some() {
                for i in extent.block..extent.end() {
                    let slot = extent.slot_of(i).expect("the extent has slots");
                    blocks += u64::from(!matches!(self.store.find_block(slot)?, Found::Hole));
                }
            }
            block = extent.end();
        }
        if blocks == before.blocks {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| {
            let mut inode = tree.inode(ino)?;
            inode.blocks = blocks;
            tree.save_inode(ino, &inode)
        })
    }

    /// Inodes on the list of what is left to be freed or counted anew.
    ///
    /// # Errors
    /// Of the store, damage.
    pub fn listed(&mut self) -> Result<BTreeSet<Ino>> {
        let mut listed = BTreeSet::new();
        while let Some((ino, ..)) = self.next_orphan(listed.last().map_or(0, |last| last + 1))? {
            listed.insert(ino);
        }
        Ok(listed)
    }

    /// The first record of the list whose inode is not lower.
    pub(super) fn next_orphan(&mut self, from: Ino) -> Result<Option<(Ino, u8, Vec<u8>)>> {
        let mut from = Some(from);
        while let Some(key) = from {
            let Some(leaf) = self.orphan_tree()?.leaf(key)? else { break };
            if let Some(record) = leaf.records().next() {
                if record.ino != record.key || record.key < key {
                    return Err(damaged(format!("inode {} is listed as an orphan in the wrong place", record.ino)));
                }
                return Ok(Some((record.ino, record.kind, record.name.to_vec())));
            }
            from = leaf.next;
        }
        Ok(None)
    }
}
