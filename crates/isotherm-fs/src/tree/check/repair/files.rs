//! Files: what their maps lead to, as far as it can be read.

use isotherm_vfs::Ino;

use super::super::super::bytes::{get_u32, put_u32};
use super::super::super::inode::{DIRECT_BLOCKS, Inode, direct_slot};
use super::super::super::map::{self, HEIGHT_MAX, INDEX_ENTRIES, LEAF_ENTRIES, child_at};
use super::super::super::prepare::BLOCK;
use super::super::super::{Result, Tree};
use super::Mending;
use super::nodes::readable;
use crate::store::{Found, PageId, Purpose, Slot, Store};

/// Where a page above the leaves counts its children.
const CHILDREN: usize = 2;

/// A map under repair.
struct Walk {
    ino: Ino,
    blocks: u64,
    /// The first block whose entry cannot be read.
    lost: Option<u64>,
}

impl<S: Store> Tree<S> {
    /// A regular file.
    pub(super) fn mend_file(&mut self, mending: &mut Mending, ino: Ino, mut inode: Inode) -> Result<()> {
        self.mend_attributes(mending, ino, &mut inode)?;
        let mut walk = Walk { ino, blocks: 0, lost: None };
        if inode.height > HEIGHT_MAX || (inode.root == 0) != (inode.height == 0) {
            walk.lost = Some(DIRECT_BLOCKS);
            (inode.root, inode.height) = (0, 0);
        } else if inode.root != 0 && !self.mend_map(mending, &mut walk, inode.root, inode.height, 0)? {
            (inode.root, inode.height) = (0, 0);
        }
        if let Some(lost) = walk.lost {
            let size = inode.size.min(lost * BLOCK);
            mending.act(ino, format!("part of its map is lost: it is cut from {} to {size} bytes", inode.size));
            inode.size = size;
            self.save_mended(ino, &inode)?;
            self.finish_cut(ino, lost)?;
            inode = self.stored_inode(ino)?;
            inode.blocks = 0;
            walk.blocks = self.count_blocks(ino, &inode)?;
        } else {
            for block in 0..DIRECT_BLOCKS {
                walk.blocks += u64::from(self.is_stored_or_reserved(direct_slot(ino, block))?);
            }
        }
        inode.blocks = walk.blocks;
        self.save_mended(ino, &inode)
    }

    /// Blocks of a file whose map is whole.
    fn count_blocks(&mut self, ino: Ino, inode: &Inode) -> Result<u64> {
        let (mut block, mut count) = (0, 0);
        while block < map::FILE_BLOCKS_MAX {
            let extent = self.extent(ino, inode, block, map::FILE_BLOCKS_MAX)?;
            for i in extent.slot.map_or(0..0, |_| extent.block..extent.end()) {
                let slot = extent.slot_of(i).expect("the extent has slots");
                count += u64::from(self.is_stored_or_reserved(slot)?);
            }
            block = extent.end();
        }
        Ok(count)
    }

    fn is_stored_or_reserved(&mut self, slot: Slot) -> Result<bool> {
        Ok(!matches!(self.store.find_block(slot)?, Found::Hole))
    }

    /// Returns whether a page of a map is whole, and holds something; what is below it is mended.
    fn mend_map(&mut self, mending: &mut Mending, walk: &mut Walk, id: PageId, height: u8, first: u64) -> Result<bool> {
        let mut lose = |first: u64| {
            let block = DIRECT_BLOCKS + first * LEAF_ENTRIES;
            walk.lost = Some(walk.lost.map_or(block, |lost| lost.min(block)));
            Ok(false)
        };
        if mending.reached.contains(&id) {
            return lose(first);
        }
        let Some(page) = readable(self.store.page(id).map_err(Into::into))? else { return lose(first) };
        if map::check(&page, id, walk.ino, height).is_err() || (height == 1 && map::leaf_number(&page) != first) {
            return lose(first);
        }
        mending.reached.insert(id);
        if height == 1 {
            for index in 1..=LEAF_ENTRIES as u8 {
                walk.blocks += u64::from(self.is_stored_or_reserved(Slot { page: id, index })?);
            }
            return Ok(true);
        }
        let span = INDEX_ENTRIES.pow(u32::from(height) - 2);
        let mut children = 0;
        for i in 0..INDEX_ENTRIES {
            let child = get_u32(&page[..], child_at(i));
            if child == 0 {
                continue;
            }
            if self.mend_map(mending, walk, child, height - 1, first + i * span)? {
                children += 1;
            } else {
                self.transaction(Purpose::Shrink, |tree| {
                    put_u32(tree.store.page_mut(id)?, child_at(i), 0);
                    Ok(())
                })?;
            }
        }
        self.set_u16(id, CHILDREN, children)?;
        Ok(children > 0)
    }
}
