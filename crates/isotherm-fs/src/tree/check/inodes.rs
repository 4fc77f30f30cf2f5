//! Inodes, and what hangs below each.

use isotherm_vfs::{FileKind, Ino};

use super::super::bytes::{get_u16, get_u32};
use super::super::inode::{DIRECT_BLOCKS, Inode, direct_slot, place};
use super::super::inodes::{ALL_IN_USE, in_use};
use super::super::map::{self, HEIGHT_MAX, INDEX_ENTRIES, LEAF_ENTRIES, child_at};
use super::super::xattrs::{self, ALL_MAX};
use super::super::{Result, Tree, chain, directory};
use super::{Check, FindingKind, Place};
use crate::store::{ENTRY_BYTES, Found, Page, PageId, Slot, Store, page_kind};

/// A map that is walked.
struct Map {
    ino: Ino,
    blocks: u64,
}

impl<S: Store> Tree<S> {
    /// Checks a page of inodes and all that belongs to them.
    pub(super) fn check_inode_page(&mut self, check: &mut Check, id: PageId, page: &Page) -> Result<()> {
        let bits = in_use(page);
        if bits != ALL_IN_USE {
            check.with_room.insert(id);
        }
        if bits & !ALL_IN_USE != 0 || (bits == 0 && id != 0) {
            check.find(FindingKind::Room, Place::Page(id), format!("the bits of the places in use are {bits:#x}"));
        }
        for index in 1..16 {
            let ino = u64::from(id) * 16 + index;
            let inode = self.check_decode(check, ino)?;
            if inode.is_some() != (bits >> index & 1 == 1) {
                check.find(FindingKind::Room, Place::Inode(ino), "its bit does not say whether it is in use");
            }
            let (_, at) = place(ino).expect("the index is not 0");
            let is_file = inode.is_some_and(|inode| inode.kind == FileKind::Regular);
            if !is_file && page[at..at + DIRECT_BLOCKS as usize * ENTRY_BYTES].iter().any(|byte| *byte != 0) {
                check.find(FindingKind::Inode, Place::Inode(ino), "it has blocks and is no file");
            }
            if let Some(inode) = inode {
                self.check_inode(check, ino, &inode)?;
            }
        }
        Ok(())
    }

    fn check_inode(&mut self, check: &mut Check, ino: Ino, inode: &Inode) -> Result<()> {
        let place = Place::Inode(ino);
        check.in_use += 1;
        check.inodes.entry(ino).or_default().stored = Some((inode.kind, inode.links, inode.parent));
        for time in [inode.accessed, inode.modified, inode.changed, inode.born] {
            if time.nanoseconds > 999_999_999 {
                check.find(FindingKind::Inode, place, format!("a time has {} nanoseconds", time.nanoseconds));
            }
        }
        if let Some(bytes) = self.check_chain(check, ino, inode.xattrs, page_kind::XATTRS)? {
            let all = xattrs::decode(&bytes, ino);
            if let Some(all) = check.damage(FindingKind::Xattrs, place, all)? {
                let names: std::collections::BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
                if names.len() != all.len() || bytes.len() > ALL_MAX {
                    check.find(FindingKind::Xattrs, place, "extended attributes are there twice, or too many");
                }
            }
        }
        match inode.kind {
            FileKind::Regular => self.check_file(check, ino, inode)?,
            FileKind::Directory => self.check_directory(check, ino, inode)?,
            FileKind::Symlink => {
                let target = self.check_chain(check, ino, inode.root, page_kind::TARGET)?;
                if target.is_some_and(|target| target.len() as u64 != inode.size || target.is_empty()) {
                    check.find(FindingKind::Inode, place, "its size is not the length of its target");
                }
            }
            _ if inode.root != 0 || inode.size != 0 => {
                check.find(FindingKind::Inode, place, "it has content and is no file");
            }
            _ => {}
        }
        if inode.kind != FileKind::Regular && inode.blocks != 0 {
            check.find(FindingKind::BlockCount, place, format!("it has {} blocks and is no file", inode.blocks));
        }
        Ok(())
    }

    fn check_chain(&mut self, check: &mut Check, ino: Ino, first: PageId, kind: u8) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let mut id = first;
        while id != 0 {
            if !check.reach(id, Place::Inode(ino)) {
                return Ok(None);
            }
            let part = chain::part(&mut self.store, id, kind, ino);
            let Some((part, next)) = check.damage(FindingKind::Page, Place::Page(id), part)? else { return Ok(None) };
            if part.is_empty() || (next != 0 && part.len() != chain::PART_BYTES) {
                check.find(FindingKind::Page, Place::Page(id), "a page of a chain is not full, and not the last");
            }
            bytes.extend(part);
            id = next;
        }
        Ok(Some(bytes))
    }

    fn check_file(&mut self, check: &mut Check, ino: Ino, inode: &Inode) -> Result<()> {
        let place = Place::Inode(ino);
        let mut map = Map { ino, blocks: 0 };
        for block in 0..DIRECT_BLOCKS {
            map.blocks += u64::from(self.is_block(check, direct_slot(ino, block))?);
        }
        if inode.height > HEIGHT_MAX || (inode.root == 0) != (inode.height == 0) {
            check.find(FindingKind::Map, place, format!("its map has the height {}", inode.height));
        } else if inode.root != 0 {
            self.check_map(check, &mut map, inode.root, inode.height, 0)?;
        }
        if map.blocks != inode.blocks {
            let text = format!("{} blocks are counted, {} are there", inode.blocks, map.blocks);
            check.find(FindingKind::BlockCount, place, text);
        }
        Ok(())
    }

    fn check_map(&mut self, check: &mut Check, map: &mut Map, id: PageId, height: u8, first: u64) -> Result<()> {
        let place = Place::Page(id);
        if !check.reach(id, Place::Inode(map.ino)) {
            return Ok(());
        }
        let page = self.store.page(id).map_err(Into::into);
        let Some(page) = check.damage(FindingKind::Map, place, page)? else { return Ok(()) };
        if check.damage(FindingKind::Map, place, map::check(&page, id, map.ino, height))?.is_none() {
            return Ok(());
        }
        if height == 1 {
            if map::leaf_number(&page) != first {
                check.find(FindingKind::Map, place, format!("it is no leaf with the number {first}"));
            }
            for index in 1..=LEAF_ENTRIES as u8 {
                map.blocks += u64::from(self.is_block(check, Slot { page: id, index })?);
            }
            return Ok(());
        }
        let span = INDEX_ENTRIES.pow(u32::from(height) - 2);
        let mut children = 0;
        for i in 0..INDEX_ENTRIES {
            let child = get_u32(&page[..], child_at(i));
            if child != 0 {
                children += 1;
                self.check_map(check, map, child, height - 1, first + i * span)?;
            }
        }
        if children == 0 || children != get_u16(&page[..], 2) {
            check.find(FindingKind::Map, place, format!("its {children} pages are counted wrongly"));
        }
        Ok(())
    }

    fn is_block(&mut self, check: &mut Check, slot: Slot) -> Result<bool> {
        let found = self.store.find_block(slot).map_err(Into::into);
        let found = check.damage(FindingKind::Map, Place::Page(slot.page), found)?;
        Ok(found.is_some_and(|found| !matches!(found, Found::Hole)))
    }

    fn check_directory(&mut self, check: &mut Check, ino: Ino, inode: &Inode) -> Result<()> {
        let place = Place::Inode(ino);
        let names = self.check_names(check, ino, inode.root)?;
        if names.len() as u64 != inode.size {
            let text = format!("{} names are counted, {} are there", inode.size, names.len());
            check.find(FindingKind::Names, place, text);
        }
        for (i, name) in names.iter().enumerate() {
            let base = self.hash.base(&name.bytes);
            if directory::check_name(&name.bytes).is_err() || name.key & !0xff != base {
                check.find(FindingKind::Names, place, format!("a name has the key {:#x}", name.key));
            }
            let same_hash = names[i + 1..].iter().take_while(|other| other.key & !0xff == name.key & !0xff);
            if same_hash.into_iter().any(|other| other.bytes == name.bytes) {
                check.find(FindingKind::Names, place, format!("{} is there twice", name.bytes.escape_ascii()));
            }
            let kind = directory::recorded_kind(name.kind);
            if let Some(kind) = check.damage(FindingKind::Names, place, kind)? {
                let seen = check.inodes.entry(name.ino).or_default();
                seen.names += 1;
                seen.named = Some((kind, ino));
                check.inodes.entry(ino).or_default().directories += u32::from(kind == FileKind::Directory);
            }
        }
        Ok(())
    }
}
