//! Where the entries of a file's blocks stand: the first 8 in the inode, the others in leaves of 255 below a radix tree of
//! pages with 1,020 numbers each. The tree grows at its top, so that no entry ever moves. What no block needs is not there.

use std::ops::Range;

use isotherm_vfs::Ino;

use super::Tree;
use super::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use super::error::{Result, damaged};
use super::inode::{DIRECT_BLOCKS, Inode, direct_slot};
use crate::store::{Found, Page, PageId, Slot, Store, page_kind};

/// Entries of a leaf.
pub(super) const LEAF_ENTRIES: u64 = 255;
/// Numbers of pages in a page above the leaves.
pub(super) const INDEX_ENTRIES: u64 = 1020;
/// Levels of the highest map: 255 * 1,020^3 blocks are more than 2^32.
pub(super) const HEIGHT_MAX: u8 = 4;
/// Blocks of the largest file: 16 TiB.
pub(super) const FILE_BLOCKS_MAX: u64 = 1 << 32;

/// Blocks in a row whose entries stand in one page, or have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) block: u64,
    pub(super) count: u64,
    /// Slot of the first.
    pub(super) slot: Option<Slot>,
}

impl Extent {
    /// The slot of one of its blocks.
    pub(super) fn slot_of(&self, block: u64) -> Option<Slot> {
        self.slot.map(|slot| Slot { page: slot.page, index: slot.index + (block - self.block) as u8 })
    }

    /// The page and the slots of all of them.
    pub(super) fn slots(&self) -> Option<(PageId, Range<u16>)> {
        let first = self.slot.map(|slot| (slot.page, u16::from(slot.index)));
        first.map(|(page, first)| (page, first..first + self.count as u16))
    }

    /// The first block behind it.
    pub(super) fn end(&self) -> u64 {
        self.block + self.count
    }
}

/// Leaves that a map of some height can have.
fn leaves_max(height: u8) -> u64 {
    if height == 0 { 0 } else { INDEX_ENTRIES.pow(u32::from(height) - 1) }
}

/// Where the number of a child stands in a page.
pub(super) fn child_at(i: u64) -> usize {
    16 + 4 * i as usize
}

/// Checks the header of a page of a map.
pub(super) fn check(page: &Page, id: PageId, ino: Ino, height: u8) -> Result<()> {
    let right =
        if height == 1 { page[0] == page_kind::MAP } else { page[0] == page_kind::MAP_INDEX && page[4] == height };
    if right && get_u64(page, 8) == ino {
        Ok(())
    } else {
        Err(damaged(format!("page {id} is no page of height {height} in the map of inode {ino}")))
    }
}

/// The number of a leaf, as it says itself.
pub(super) fn leaf_number(page: &Page) -> u64 {
    u64::from(get_u32(page, 4))
}

impl<S: Store> Tree<S> {
    /// Blocks from `block` on, below `end`.
    pub(super) fn extent(&mut self, ino: Ino, inode: &Inode, block: u64, end: u64) -> Result<Extent> {
        debug_assert!(block < end);
        if block < DIRECT_BLOCKS {
            let count = end.min(DIRECT_BLOCKS) - block;
            return Ok(Extent { block, count, slot: Some(direct_slot(ino, block)) });
        }
        let leaf = (block - DIRECT_BLOCKS) / LEAF_ENTRIES;
        let hole = |until: u64| Extent { block, count: end.min(until) - block, slot: None };
        if inode.height > HEIGHT_MAX {
            return Err(damaged(format!("the map of inode {ino} has the height {}", inode.height)));
        }
        if leaf >= leaves_max(inode.height) {
            return Ok(hole(end));
        }
        let Some((found, page)) = self.next_leaf(ino, inode.root, inode.height, leaf)? else { return Ok(hole(end)) };
        if found > leaf {
            return Ok(hole(DIRECT_BLOCKS + found * LEAF_ENTRIES));
        }
        let first = (block - DIRECT_BLOCKS) % LEAF_ENTRIES;
        let count = (end - block).min(LEAF_ENTRIES - first);
        Ok(Extent { block, count, slot: Some(Slot { page, index: 1 + first as u8 }) })
    }

    /// The first leaf from a number on.
    fn next_leaf(&mut self, ino: Ino, id: PageId, height: u8, from: u64) -> Result<Option<(u64, PageId)>> {
        if id == 0 {
            return Ok(None);
        }
        let page = self.store.page(id)?;
        check(&page, id, ino, height)?;
        if height == 1 {
            return Ok((from == 0).then_some((0, id)));
        }
        let span = leaves_max(height - 1);
        for i in from / span..INDEX_ENTRIES {
            let child = get_u32(&page[..], child_at(i));
            let inner = if i == from / span { from % span } else { 0 };
            if let Some((leaf, id)) = self.next_leaf(ino, child, height - 1, inner)? {
                return Ok(Some((i * span + leaf, id)));
            }
        }
        Ok(None)
    }

    /// Makes the leaf of a block, and what stands above it. The inode is to be saved.
    pub(super) fn make_leaf(&mut self, ino: Ino, inode: &mut Inode, block: u64) -> Result<()> {
        let number = (block - DIRECT_BLOCKS) / LEAF_ENTRIES;
        while number >= leaves_max(inode.height) {
            if inode.root != 0 {
                let root = self.make_index(ino, inode.height + 1)?;
                self.set_child(root, 0, inode.root)?;
                inode.root = root;
            }
            inode.height += 1;
        }
        let mut above: Option<(PageId, u64)> = None;
        let mut id = inode.root;
        for height in (1..=inode.height).rev() {
            if id == 0 {
                id = if height == 1 { self.make_map_leaf(ino, number)? } else { self.make_index(ino, height)? };
                match above {
                    None => inode.root = id,
                    Some((above, i)) => self.set_child(above, i, id)?,
                }
            }
            if height > 1 {
                let page = self.store.page(id)?;
                check(&page, id, ino, height)?;
                let i = number / leaves_max(height - 1) % INDEX_ENTRIES;
                above = Some((id, i));
                id = get_u32(&page[..], child_at(i));
            }
        }
        Ok(())
    }

    /// Takes a leaf without blocks out of the map, and what stands above it for no other. The inode is to be saved.
    fn drop_leaf(&mut self, ino: Ino, inode: &mut Inode, number: u64) -> Result<()> {
        let mut path = Vec::new();
        let mut id = inode.root;
        for height in (2..=inode.height).rev() {
            let page = self.store.page(id)?;
            check(&page, id, ino, height)?;
            let i = number / leaves_max(height - 1) % INDEX_ENTRIES;
            path.push((id, i));
            id = get_u32(&page[..], child_at(i));
        }
        self.store.free(id)?;
        while let Some((above, i)) = path.pop() {
            self.set_child(above, i, 0)?;
            if get_u16(&self.store.page(above)?[..], 2) != 0 {
                return self.lower_map(inode);
            }
            self.store.free(above)?;
        }
        inode.root = 0;
        inode.height = 0;
        Ok(())
    }

    /// The top of a map that leads to its first page alone goes.
    fn lower_map(&mut self, inode: &mut Inode) -> Result<()> {
        while inode.height > 1 {
            let page = self.store.page(inode.root)?;
            let first = get_u32(&page[..], child_at(0));
            if get_u16(&page[..], 2) != 1 || first == 0 {
                break;
            }
            self.store.free(inode.root)?;
            inode.root = first;
            inode.height -= 1;
        }
        Ok(())
    }

    fn make_map_leaf(&mut self, ino: Ino, number: u64) -> Result<PageId> {
        let id = self.store.allocate()?;
        let page = self.store.page_mut(id)?;
        page[0] = page_kind::MAP;
        page[1] = 1;
        put_u32(page, 4, number as u32);
        put_u64(page, 8, ino);
        Ok(id)
    }

    fn make_index(&mut self, ino: Ino, height: u8) -> Result<PageId> {
        let id = self.store.allocate()?;
        let page = self.store.page_mut(id)?;
        page[0] = page_kind::MAP_INDEX;
        page[1] = 1;
        page[4] = height;
        put_u64(page, 8, ino);
        Ok(id)
    }

    fn set_child(&mut self, id: PageId, i: u64, child: PageId) -> Result<()> {
        let page = self.store.page_mut(id)?;
        let (before, count) = (get_u32(page, child_at(i)), get_u16(page, 2));
        let more = count.checked_add(u16::from(child != 0));
        let Some(count) = more.and_then(|count| count.checked_sub(u16::from(before != 0))) else {
            return Err(damaged(format!("page {id} of a map counts {count} children, and has others")));
        };
        put_u32(page, child_at(i), child);
        put_u16(page, 2, count);
        Ok(())
    }

    /// Makes every leaf that a range of blocks needs. Returns those that were missing, by a block of each.
    pub(super) fn make_leaves(&mut self, ino: Ino, inode: &mut Inode, first: u64, end: u64) -> Result<Vec<u64>> {
        let mut made = Vec::new();
        let mut block = first;
        while block < end {
            let extent = self.extent(ino, inode, block, end)?;
            if extent.slot.is_none() {
                self.make_leaf(ino, inode, block)?;
                made.push(block);
            } else {
                block = extent.end();
            }
        }
        Ok(made)
    }

    /// Whether every leaf that a range of blocks needs is there.
    pub(super) fn has_leaves(&mut self, ino: Ino, inode: &Inode, first: u64, end: u64) -> Result<bool> {
        let mut block = first;
        while block < end {
            let extent = self.extent(ino, inode, block, end)?;
            if extent.slot.is_none() {
                return Ok(false);
            }
            block = extent.end();
        }
        Ok(true)
    }

    /// Blocks of a range become holes, until `budget` pages have been changed. Returns the block to go on from, `end` where
    /// nothing is left. The inode is to be saved.
    pub(super) fn release_range(
        &mut self,
        ino: Ino,
        inode: &mut Inode,
        first: u64,
        end: u64,
        budget: &mut usize,
    ) -> Result<u64> {
        let mut block = first;
        while block < end {
            let extent = self.extent(ino, inode, block, end)?;
            if let Some((page, slots)) = extent.slots() {
                if *budget == 0 {
                    return Ok(block);
                }
                let released = self.store.release_blocks(page, slots)?;
                inode.blocks = inode.blocks.saturating_sub(u64::from(released));
                let drops = block >= DIRECT_BLOCKS && self.is_empty_leaf(page, extent.count)?;
                // Holes are free, so that a removal that begins anew in each transaction gets on however small the budget is.
                *budget -= usize::from(released > 0 || drops);
                if drops {
                    self.drop_leaf(ino, inode, (block - DIRECT_BLOCKS) / LEAF_ENTRIES)?;
                }
            }
            block = extent.end();
        }
        Ok(end)
    }

    /// Whether a leaf holds nothing, of which so many entries are known to be holes.
    fn is_empty_leaf(&mut self, page: PageId, known: u64) -> Result<bool> {
        if known < LEAF_ENTRIES {
            for index in 1..=u8::MAX {
                if !matches!(self.store.find_block(Slot { page, index })?, Found::Hole) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
