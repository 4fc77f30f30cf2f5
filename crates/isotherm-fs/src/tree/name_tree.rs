//! A B+tree of records by key: directories, and the list of orphans. Leaves have no links: a scan descends once for each leaf.
//! An empty tree has no page. O(log n) pages are read for a look-up, and one or two changed for an insert or a removal.

use std::sync::Arc;

use isotherm_vfs::Ino;

use super::error::{Result, damaged};
use super::name_page::{self as pages, CHILDREN_MAX, LEAF_BYTES, Record};
use crate::store::{BLOCK_BYTES, Page, PageId, Store};

/// Pages from the root to a leaf and which child was taken of each.
type Path = Vec<(PageId, usize)>;

/// A leaf from some key on.
pub(super) struct Leaf {
    pub(super) page: Arc<Page>,
    /// The first record whose key is not lower.
    pub(super) first: usize,
    /// The lowest key that the next leaf may hold, if there is one.
    pub(super) next: Option<u64>,
}

impl Leaf {
    /// Its records from the key on.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        (self.first..pages::count(&self.page)).map(|i| pages::record(&self.page, i))
    }
}

/// A tree of names in a store.
pub(super) struct NameTree<'a, S> {
    pub(super) store: &'a mut S,
    /// 0 where the tree is empty.
    pub(super) root: PageId,
    /// Whose directory it is; 0 for the orphans.
    pub(super) owner: u64,
}

impl<S: Store> NameTree<'_, S> {
    /// The leaf where a key is or would be.
    pub(super) fn leaf(&mut self, key: u64) -> Result<Option<Leaf>> {
        if self.root == 0 {
            return Ok(None);
        }
        let (page, _, next) = self.descend(key, &mut Vec::new())?;
        if next.is_some_and(|next| next <= key) {
            return Err(damaged(format!("keys are out of order in the directory {}", self.owner)));
        }
        Ok(Some(Leaf { first: pages::search(&page, key).0, page, next }))
    }

    /// Where a key leads: the inode, the kind and the name.
    pub(super) fn get(&mut self, key: u64) -> Result<Option<(Ino, u8, Vec<u8>)>> {
        let Some(leaf) = self.leaf(key)? else { return Ok(None) };
        let found = leaf.records().next().filter(|record| record.key == key);
        Ok(found.map(|record| (record.ino, record.kind, record.name.to_vec())))
    }

    /// Adds a record. Its key is new.
    pub(super) fn insert(&mut self, record: &Record<'_>) -> Result<()> {
        if self.root == 0 {
            self.root = self.allocate(0)?;
        }
        let mut path = Vec::new();
        let (page, leaf, next) = self.descend(record.key, &mut path)?;
        let (i, found) = pages::search(&page, record.key);
        if found {
            return Err(damaged(format!("key {:#x} is twice in the directory {}", record.key, self.owner)));
        }
        if pages::insert(self.store.page_mut(leaf)?, i, record) {
            return Ok(());
        }
        // Records that come in the order of their keys fill their leaves.
        let is_last = next.is_none() && i == pages::count(&page);
        let middle = if is_last { i } else { half(&page) };
        let split_key = if is_last { record.key } else { pages::record(&page, middle).key };
        let right = self.allocate(0)?;
        self.move_between(leaf, middle, right)?;
        let target = if record.key < split_key { leaf } else { right };
        let page = self.store.page_mut(target)?;
        let (i, _) = pages::search(page, record.key);
        let fits = pages::insert(page, i, record);
        debug_assert!(fits, "half a leaf has room for the longest name");
        self.insert_above(path, split_key, right)
    }

    /// Takes the record of a key out.
    pub(super) fn remove(&mut self, key: u64) -> Result<()> {
        let mut path = Vec::new();
        let (i, leaf) = self.find(key, &mut path)?;
        pages::remove(self.store.page_mut(leaf)?, i);
        self.shrink(path, leaf)
    }

    /// Lets a key lead to another inode.
    pub(super) fn redirect(&mut self, key: u64, ino: Ino, kind: u8) -> Result<()> {
        let (i, leaf) = self.find(key, &mut Vec::new())?;
        pages::redirect(self.store.page_mut(leaf)?, i, ino, kind);
        Ok(())
    }

    fn find(&mut self, key: u64, path: &mut Path) -> Result<(usize, PageId)> {
        let missing = || damaged(format!("key {key:#x} is not in its directory"));
        if self.root == 0 {
            return Err(missing());
        }
        let (page, leaf, _) = self.descend(key, path)?;
        match pages::search(&page, key) {
            (i, true) => Ok((i, leaf)),
            _ => Err(missing()),
        }
    }

    fn descend(&mut self, key: u64, path: &mut Path) -> Result<(Arc<Page>, PageId, Option<u64>)> {
        let mut id = self.root;
        let mut next = None;
        let mut above = None;
        loop {
            let page = self.load(id)?;
            let level = pages::level(&page);
            if above.is_some_and(|above: u8| above != level + 1) {
                return Err(damaged(format!("page {id} has the wrong level in the directory {}", self.owner)));
            }
            if level == 0 {
                return Ok((page, id, next));
            }
            let i = pages::search_child(&page, key);
            path.push((id, i));
            if i + 1 < pages::count(&page) {
                next = Some(pages::child(&page, i + 1).0);
            }
            above = Some(level);
            id = pages::child(&page, i).1;
        }
    }

    fn load(&mut self, id: PageId) -> Result<Arc<Page>> {
        let page = self.store.page(id)?;
        pages::check(&page)?;
        if pages::owner(&page) != self.owner {
            return Err(damaged(format!("page {id} is not of the directory {}", self.owner)));
        }
        Ok(page)
    }

    fn allocate(&mut self, level: u8) -> Result<PageId> {
        let id = self.store.allocate()?;
        pages::format(self.store.page_mut(id)?, self.owner, level);
        Ok(id)
    }

    /// Moves what `from` holds from an index on to the end of `to`.
    fn move_between(&mut self, from: PageId, index: usize, to: PageId) -> Result<()> {
        let mut target: Page = *self.store.page(to)?;
        let source = self.store.page_mut(from)?;
        if pages::level(source) == 0 {
            pages::move_records(source, index, &mut target);
        } else {
            pages::move_children(source, index, &mut target);
        }
        *self.store.page_mut(to)? = target;
        Ok(())
    }

    /// A page was split: what is right of it gets its place in the page above.
    fn insert_above(&mut self, mut path: Path, mut key: u64, mut right: PageId) -> Result<()> {
        while let Some((id, i)) = path.pop() {
            if pages::insert_child(self.store.page_mut(id)?, i + 1, key, right) {
                return Ok(());
            }
            let page = self.load(id)?;
            let middle = CHILDREN_MAX / 2;
            let split_key = pages::child(&page, middle).0;
            let sibling = self.allocate(pages::level(&page))?;
            self.move_between(id, middle, sibling)?;
            let (target, at) = if i < middle { (id, i + 1) } else { (sibling, i + 1 - middle) };
            let fits = pages::insert_child(self.store.page_mut(target)?, at, key, right);
            debug_assert!(fits, "half a page has room");
            (key, right) = (split_key, sibling);
        }
        let level = pages::level(&*self.load(self.root)?) + 1;
        let root = self.allocate(level)?;
        let page = self.store.page_mut(root)?;
        pages::insert_child(page, 0, 0, self.root);
        pages::insert_child(page, 1, key, right);
        self.root = root;
        Ok(())
    }

    /// A page has lost something: pages that are empty go, and pages that are nearly empty are joined with a neighbour.
    fn shrink(&mut self, mut path: Path, mut id: PageId) -> Result<()> {
        while let Some((above, i)) = path.pop() {
            let page = self.store.page(id)?;
            let parent = self.load(above)?;
            if pages::count(&page) == 0 {
                self.store.free(id)?;
                pages::remove_child(self.store.page_mut(above)?, i);
            } else if weight(&page) < BLOCK_BYTES / 4 {
                let Some(goes) = self.join(&parent, i)? else { return Ok(()) };
                pages::remove_child(self.store.page_mut(above)?, goes);
            } else {
                return Ok(());
            }
            id = above;
        }
        self.lower_root()
    }

    /// Joins a child with a neighbour where both together leave a quarter of a page free. Returns which of the two is gone.
    fn join(&mut self, parent: &Page, i: usize) -> Result<Option<usize>> {
        let children = pages::count(parent);
        for left in [i, i.wrapping_sub(1)] {
            if left >= children || left + 1 >= children {
                continue;
            }
            let (a, b) = (pages::child(parent, left).1, pages::child(parent, left + 1).1);
            if weight(&*self.load(a)?) + weight(&*self.load(b)?) <= LEAF_BYTES / 4 * 3 {
                self.move_between(b, 0, a)?;
                self.store.free(b)?;
                return Ok(Some(left + 1));
            }
        }
        Ok(None)
    }

    /// A root that holds nothing goes, and so does one with a single child.
    fn lower_root(&mut self) -> Result<()> {
        loop {
            let page = self.store.page(self.root)?;
            let below = match (pages::level(&page), pages::count(&page)) {
                (_, 0) => 0,
                (1.., 1) => pages::child(&page, 0).1,
                _ => return Ok(()),
            };
            self.store.free(self.root)?;
            self.root = below;
            if below == 0 {
                return Ok(());
            }
        }
    }
}

/// Bytes of a page that are in use.
fn weight(page: &Page) -> usize {
    if pages::level(page) == 0 { pages::used(page) } else { pages::count(page) * LEAF_BYTES / CHILDREN_MAX }
}

/// The record at which the second half of a leaf begins.
fn half(page: &Page) -> usize {
    let total = pages::used(page);
    let mut sum = 0;
    for i in 0..pages::count(page) {
        sum += pages::record(page, i).cost();
        if sum >= total / 2 {
            return (i + 1).min(pages::count(page) - 1);
        }
    }
    unreachable!("the sum reaches its half")
}
