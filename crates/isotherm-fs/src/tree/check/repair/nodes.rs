//! Inodes, each for itself, and the pages that hold them.

use std::collections::BTreeSet;

use isotherm_vfs::{FileKind, Ino};

use super::super::super::bytes::{get_u16, get_u32, put_u16, put_u32};
use super::super::super::chain;
use super::super::super::error::TreeError;
use super::super::super::inode::{DIRECT_BLOCKS, INODE_BYTES, Inode, place};
use super::super::super::inodes::{ALL_IN_USE, in_use};
use super::super::super::root_page::{NEXT, PREVIOUS, ROOT_PAGE};
use super::super::super::xattrs::{self, ALL_MAX};
use super::super::super::{Result, Tree};
use super::Mending;
use crate::store::{ENTRY_BYTES, PageId, Purpose, Store, StoreError, page_kind};

/// Where the bits of the places in use stand.
const IN_USE: usize = 2;
/// Pages that one transaction changes a little.
const PAGES_AT_ONCE: usize = 256;

/// What can be read; `None` where it is damaged.
pub(super) fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(TreeError::Store(StoreError::Damaged(_)) | TreeError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl<S: Store> Tree<S> {
    /// Mends the inodes of a page, and what hangs below those that are no directories.
    pub(super) fn mend_inodes(&mut self, mending: &mut Mending, id: PageId) -> Result<()> {
        mending.reached.insert(id);
        for index in 1..16 {
            let ino = u64::from(id) * 16 + index;
            let (_, at) = place(ino).expect("the index is not 0");
            let decoded = Inode::decode(&*self.store.page(id)?, at);
            let Some(decoded) = readable(decoded)? else {
                mending.act(ino, "it is no inode, and is free now");
                self.clear_place(ino)?;
                continue;
            };
            match decoded {
                Some(inode) if inode.kind == FileKind::Regular => self.mend_file(mending, ino, inode)?,
                Some(inode) => self.mend_special(mending, ino, inode)?,
                None => {}
            }
            if decoded.is_none_or(|inode| inode.kind != FileKind::Regular) {
                self.clear_direct(ino)?;
            }
        }
        let bits = self.bits_in_use(id)?;
        self.set_u16(id, IN_USE, bits)
    }

    fn bits_in_use(&mut self, id: PageId) -> Result<u16> {
        let page = self.store.page(id)?;
        let is_used = |index: &u64| {
            let (_, at) = place(*index).expect("the index is not 0");
            matches!(Inode::decode(&page, at), Ok(Some(_)))
        };
        Ok((1..16).filter(is_used).fold(0, |bits, index| bits | 1 << index))
    }

    /// Makes a place free, whatever stands there.
    pub(super) fn clear_place(&mut self, ino: Ino) -> Result<()> {
        let (id, at) = place(ino).expect("the index is not 0");
        self.transaction(Purpose::Shrink, |tree| {
            tree.store.page_mut(id)?[at..at + INODE_BYTES].fill(0);
            Ok(())
        })
    }

    /// What stands where files have entries, in an inode that is none.
    fn clear_direct(&mut self, ino: Ino) -> Result<()> {
        let (id, at) = place(ino).expect("the index is not 0");
        let direct = at..at + DIRECT_BLOCKS as usize * ENTRY_BYTES;
        if self.store.page(id)?[direct.clone()].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| {
            tree.store.page_mut(id)?[direct].fill(0);
            Ok(())
        })
    }

    /// Saves an inode if it is not as it stands in its page.
    pub(super) fn save_mended(&mut self, ino: Ino, inode: &Inode) -> Result<()> {
        if self.stored_inode(ino)? == *inode {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| tree.save_inode(ino, inode))
    }

    /// A node that is no file.
    fn mend_special(&mut self, mending: &mut Mending, ino: Ino, mut inode: Inode) -> Result<()> {
        self.mend_attributes(mending, ino, &mut inode)?;
        inode.blocks = 0;
        match inode.kind {
            FileKind::Directory => {}
            FileKind::Symlink => {
                let target = self.mend_chain(mending, ino, inode.root, page_kind::TARGET)?;
                if target.is_none_or(|target| target.is_empty() || target.len() as u64 != inode.size) {
                    mending.act(ino, "its target is lost: the symbolic link is gone");
                    return self.clear_place(ino);
                }
            }
            _ => (inode.root, inode.size) = (0, 0),
        }
        self.save_mended(ino, &inode)
    }

    /// Times and extended attributes.
    pub(super) fn mend_attributes(&mut self, mending: &mut Mending, ino: Ino, inode: &mut Inode) -> Result<()> {
        for time in [&mut inode.accessed, &mut inode.modified, &mut inode.changed, &mut inode.born] {
            time.nanoseconds = time.nanoseconds.min(999_999_999);
        }
        if inode.xattrs == 0 {
            return Ok(());
        }
        let bytes = self.mend_chain(mending, ino, inode.xattrs, page_kind::XATTRS)?;
        let all = bytes.filter(|bytes| bytes.len() <= ALL_MAX).map(|bytes| xattrs::decode(&bytes, ino));
        let is_sound = all.is_some_and(|all| {
            all.is_ok_and(|all| all.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() == all.len())
        });
        if !is_sound {
            mending.act(ino, "its extended attributes are lost");
            inode.xattrs = 0;
        }
        Ok(())
    }

    /// The bytes of a chain, if all of it is there and belongs to nothing else.
    fn mend_chain(&mut self, mending: &mut Mending, ino: Ino, first: PageId, kind: u8) -> Result<Option<Vec<u8>>> {
        let (mut bytes, mut pages) = (Vec::new(), Vec::new());
        let mut id = first;
        while id != 0 {
            let part = chain::part(&mut self.store, id, kind, ino);
            let Some((part, next)) = readable(part)? else { return Ok(None) };
            let is_full = part.len() == chain::PART_BYTES || (next == 0 && !part.is_empty());
            if !is_full || pages.contains(&id) || mending.reached.contains(&id) {
                return Ok(None);
            }
            pages.push(id);
            bytes.extend(part);
            id = next;
        }
        mending.reached.extend(pages);
        Ok(Some(bytes))
    }

    /// Links all pages of inodes with room into a ring, if they are not; pages of inodes without any go.
    pub(super) fn mend_ring(&mut self) -> Result<()> {
        let mut with_room = Vec::new();
        for id in self.inode_pages()? {
            match in_use(&*self.store.page(id)?) {
                0 if id != 0 => self.transaction(Purpose::Shrink, |tree| Ok(tree.store.free(id)?))?,
                ALL_IN_USE => self.set_neighbours(&[(id, 0, 0)])?,
                _ => with_room.push(id),
            }
        }
        if self.is_ring(&with_room)? {
            return Ok(());
        }
        let neighbours: Vec<(PageId, PageId, PageId)> = (0..=with_room.len())
            .map(|i| {
                let page = |i: usize| i.checked_sub(1).and_then(|i| with_room.get(i)).copied().unwrap_or(ROOT_PAGE);
                (page(i), page(i + 1), page(if i == 0 { with_room.len() } else { i - 1 }))
            })
            .collect();
        neighbours.chunks(PAGES_AT_ONCE).try_for_each(|some| self.set_neighbours(some))
    }

    /// Sets the next page of the ring, and the one before, of some pages.
    fn set_neighbours(&mut self, some: &[(PageId, PageId, PageId)]) -> Result<()> {
        self.transaction(Purpose::Shrink, |tree| {
            for (id, next, previous) in some {
                let page = tree.store.page(*id)?;
                if (get_u32(&page[..], NEXT), get_u32(&page[..], PREVIOUS)) != (*next, *previous) {
                    let page = tree.store.page_mut(*id)?;
                    put_u32(page, NEXT, *next);
                    put_u32(page, PREVIOUS, *previous);
                }
            }
            Ok(())
        })
    }

    /// Whether the ring has these pages, each once, in any order.
    fn is_ring(&mut self, pages: &[PageId]) -> Result<bool> {
        let mut left: BTreeSet<PageId> = pages.iter().copied().collect();
        let mut before = ROOT_PAGE;
        loop {
            let next = get_u32(&self.store.page(before)?[..], NEXT);
            let Some(page) = readable(self.store.page(next).map_err(Into::into))? else { return Ok(false) };
            if get_u32(&page[..], PREVIOUS) != before {
                return Ok(false);
            }
            if next == ROOT_PAGE {
                return Ok(left.is_empty());
            }
            if !left.remove(&next) {
                return Ok(false);
            }
            before = next;
        }
    }

    /// Sets a number of two bytes, if it is another one.
    pub(super) fn set_u16(&mut self, id: PageId, at: usize, value: u16) -> Result<()> {
        if get_u16(&self.store.page(id)?[..], at) == value {
            return Ok(());
        }
        self.transaction(Purpose::Shrink, |tree| {
            put_u16(tree.store.page_mut(id)?, at, value);
            Ok(())
        })
    }
}
