//! Pages of inodes: those with room form a ring through the root page, so that a place is found in O(1). Page 0 has the root
//! directory and stands on the ring like the others; it is never freed.

use isotherm_vfs::{Errno, FileKind, Ino};

use super::Tree;
use super::bytes::{get_u16, get_u32, put_u16, put_u32};
use super::error::{Result, damaged};
use super::inode::{INODES_PER_PAGE, Inode, place};
use super::root_page::{self, NEXT, PREVIOUS, ROOT_PAGE};
use crate::store::{Page, PageId, Store, page_kind};

/// Where the bits of the places in use stand; bit i is that of index i.
const IN_USE: usize = 2;
/// All places.
pub(super) const ALL_IN_USE: u16 = 0xfffe;
const _: () = assert!(ALL_IN_USE.count_ones() as u64 == INODES_PER_PAGE);

/// Makes a page of inodes that are all free.
fn format(page: &mut Page) {
    page[0] = page_kind::INODES;
    page[1] = 1;
}

/// Bits of the places in use.
pub(super) fn in_use(page: &Page) -> u16 {
    get_u16(page, IN_USE)
}

/// Makes page 0, with the root directory.
pub(super) fn format_first(store: &mut impl Store, root: &Inode) -> Result<()> {
    let page = store.page_mut(0)?;
    format(page);
    put_u16(page, IN_USE, 1 << 1);
    root.encode(page, 16);
    enter_ring(store, 0)
}

fn enter_ring(store: &mut impl Store, id: PageId) -> Result<()> {
    let first = get_u32(&store.page(ROOT_PAGE)?[..], NEXT);
    let page = store.page_mut(id)?;
    put_u32(page, NEXT, first);
    put_u32(page, PREVIOUS, ROOT_PAGE);
    put_u32(store.page_mut(first)?, PREVIOUS, id);
    put_u32(store.page_mut(ROOT_PAGE)?, NEXT, id);
    Ok(())
}

fn leave_ring(store: &mut impl Store, id: PageId) -> Result<()> {
    let page = store.page_mut(id)?;
    let (next, previous) = (get_u32(page, NEXT), get_u32(page, PREVIOUS));
    put_u32(page, NEXT, 0);
    put_u32(page, PREVIOUS, 0);
    put_u32(store.page_mut(previous)?, NEXT, next);
    put_u32(store.page_mut(next)?, PREVIOUS, previous);
    Ok(())
}

impl<S: Store> Tree<S> {
    /// What an inode says, what is only known in memory included.
    pub(super) fn inode(&mut self, ino: Ino) -> Result<Inode> {
        let mut inode = self.stored_inode(ino)?;
        if let Some(lazy) = self.nodes.lazy(ino) {
            lazy.apply(&mut inode);
        }
        Ok(inode)
    }

    /// What the page of an inode says.
    pub(super) fn stored_inode(&mut self, ino: Ino) -> Result<Inode> {
        let (id, at) = place(ino).ok_or(Errno::STALE)?;
        let page = self.store.page(id)?;
        if page[0] != page_kind::INODES {
            return Err(Errno::STALE.into());
        }
        Ok(Inode::decode(&page, at)?.ok_or(Errno::STALE)?)
    }

    /// Saves an inode, in a transaction. A file's size that waits for its data does not get into the page, and blocks that are holes until
    /// their data is written are not counted there.
    pub(super) fn save_inode(&mut self, ino: Ino, inode: &Inode) -> Result<()> {
        let (id, at) = place(ino).ok_or(Errno::STALE)?;
        let mut stored = *inode;
        if self.nodes.lazy(ino).is_some() {
            // That of a directory is the number of its names, which waits for nothing.
            if inode.kind == FileKind::Regular {
                stored.size = stored.size.min(self.stored_inode(ino)?.size);
                stored.blocks = stored.blocks.saturating_sub(self.store.waiting_holes(ino));
            }
            self.nodes.keep(ino, inode);
        }
        stored.encode(self.store.page_mut(id)?, at);
        Ok(())
    }

    /// Takes a free place for an inode, in a transaction; generation and times are set.
    pub(super) fn make_inode(&mut self, mut inode: Inode) -> Result<(Ino, Inode)> {
        let mut id = get_u32(&self.store.page(ROOT_PAGE)?[..], NEXT);
        if id == ROOT_PAGE {
            id = self.store.allocate()?;
            format(self.store.page_mut(id)?);
            enter_ring(&mut self.store, id)?;
        }
        let bits = in_use(&*self.store.page(id)?);
        let index = (!bits & ALL_IN_USE).trailing_zeros();
        if index >= 16 {
            return Err(damaged(format!("inode page {id} is full, and listed as one with room")));
        }
        let bits = bits | 1 << index;
        put_u16(self.store.page_mut(id)?, IN_USE, bits);
        if bits == ALL_IN_USE {
            leave_ring(&mut self.store, id)?;
        }
        inode.generation = root_page::count_inode(&mut self.store)?;
        let ino = u64::from(id) * 16 + u64::from(index);
        let (_, at) = place(ino).expect("the index is not 0");
        inode.encode(self.store.page_mut(id)?, at);
        Ok((ino, inode))
    }

    /// Gives the place of an inode back, in a transaction. It has no blocks and no pages any more.
    pub(super) fn free_inode(&mut self, ino: Ino) -> Result<()> {
        let (id, at) = place(ino).ok_or(Errno::STALE)?;
        let page = self.store.page_mut(id)?;
        Inode::clear(page, at);
        let before = in_use(page);
        let bits = before & !(1 << (ino % 16));
        put_u16(page, IN_USE, bits);
        if before == ALL_IN_USE {
            enter_ring(&mut self.store, id)?;
        }
        if bits == 0 && id != 0 {
            leave_ring(&mut self.store, id)?;
            self.store.free(id)?;
        }
        root_page::uncount_inode(&mut self.store)
    }
}
