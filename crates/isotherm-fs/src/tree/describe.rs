//! Pages and inodes as text, for people who look at a volume.

use std::fmt::{self, Write};

use isotherm_vfs::{FileKind, Ino, Time};

use super::Tree;
use super::bytes::{get_u16, get_u32, get_u64};
use super::error::Result;
use super::inode::{Inode, place};
use super::inodes::in_use;
use super::map::{FILE_BLOCKS_MAX, INDEX_ENTRIES, child_at, leaf_number};
use super::name_page as names;
use super::{directory, root_page};
use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::store::{Page, Slot, Store, page_kind};

/// An entry as text.
#[must_use]
pub fn describe_entry(entry: Entry) -> String {
    match entry.position {
        HOLE => "hole".into(),
        RESERVED => "set aside".into(),
        position => {
            let heat = entry.heat;
            format!("block {position}, {} writes, the last at {}, crc {:#010x}", heat.writes, heat.time, entry.checksum)
        }
    }
}

/// A page as text, whatever stands in it.
///
/// # Errors
/// Those of `out`.
pub fn describe_page(page: &Page, out: &mut impl Write) -> fmt::Result {
    match page[0] {
        page_kind::NONE => writeln!(out, "no kind of page"),
        page_kind::MAP => describe_leaf(page, out),
        page_kind::MAP_INDEX => {
            writeln!(out, "map, level {}, of inode {}, {} pages", page[4], get_u64(page, 8), get_u16(page, 2))?;
            (0..INDEX_ENTRIES).filter(|i| get_u32(page, child_at(*i)) != 0).try_for_each(|i| {
                let child = get_u32(page, child_at(i));
                writeln!(out, "  {i}: page {child}")
            })
        }
        page_kind::INODES => {
            let (next, previous) = (get_u32(page, root_page::NEXT), get_u32(page, root_page::PREVIOUS));
            writeln!(out, "inodes, in use {:#06x}, ring: before {previous}, after {next}", in_use(page))?;
            (1..16).try_for_each(|index| {
                let (_, at) = place(index).expect("the index is not 0");
                match Inode::decode(page, at) {
                    Ok(Some(inode)) => writeln!(out, "  index {index}: {:?}, {} bytes", inode.kind, inode.size),
                    Ok(None) => Ok(()),
                    Err(error) => writeln!(out, "  index {index}: {error}"),
                }
            })
        }
        page_kind::ROOT => {
            let (next, previous) = (get_u32(page, root_page::NEXT), get_u32(page, root_page::PREVIOUS));
            let in_use = get_u64(page, root_page::INODES_IN_USE);
            writeln!(out, "root of the tree, {in_use} inodes, ring: before {previous}, after {next}")?;
            writeln!(out, "  next generation {}, orphans in page {}", get_u32(page, 24), get_u32(page, 28))
        }
        page_kind::NAMES | page_kind::NAMES_INDEX => describe_names(page, out),
        kind @ (page_kind::TARGET | page_kind::XATTRS) => {
            let what = if kind == page_kind::TARGET { "target of a symbolic link" } else { "extended attributes" };
            let (owner, next) = (get_u64(page, 8), get_u32(page, 4));
            writeln!(out, "{what}, of inode {owner}, {} bytes, next page {next}", get_u16(page, 2))?;
            let end = 16 + usize::from(get_u16(page, 2)).min(page.len() - 16);
            writeln!(out, "  {}", page[16..end].escape_ascii())
        }
        kind => writeln!(out, "a page of the kind {kind}, which there is not"),
    }
}

fn describe_leaf(page: &Page, out: &mut impl Write) -> fmt::Result {
    writeln!(out, "leaf {} of the map of inode {}", leaf_number(page), get_u64(page, 8))?;
    (1..=255).try_for_each(|index| match Entry::at(page, index) {
        entry if entry.position == HOLE => Ok(()),
        entry => writeln!(out, "  slot {index}: {}", describe_entry(entry)),
    })
}

fn describe_names(page: &Page, out: &mut impl Write) -> fmt::Result {
    if let Err(error) = names::check(page) {
        return writeln!(out, "{error}");
    }
    let (owner, level, count) = (names::owner(page), names::level(page), names::count(page));
    writeln!(out, "names of directory {owner}, level {level}, {count} of them")?;
    for i in 0..count {
        if level == 0 {
            let names::Record { key, ino, kind, name } = names::record(page, i);
            writeln!(out, "  key {key:#018x}: inode {ino}, kind {kind}, {}", name.escape_ascii())?;
        } else {
            let (key, child) = names::child(page, i);
            writeln!(out, "  from key {key:#018x}: page {child}")?;
        }
    }
    Ok(())
}

fn time(time: Time) -> String {
    format!("{}.{:09}", time.seconds, time.nanoseconds)
}

impl<S: Store> Tree<S> {
    /// All fields of an inode, and the extents of a file.
    ///
    /// # Errors
    /// `ESTALE` where the place is free; damage.
    pub fn describe_inode(&mut self, ino: Ino) -> Result<String> {
        let inode = self.stored_inode(ino)?;
        let mut text = format!(
            "inode {ino}: {:?}, permissions {:04o}, {} links, owner {}, group {}\n",
            inode.kind, inode.permissions, inode.links, inode.uid, inode.gid
        );
        let kept = [
            format!("  size {}, blocks {}, generation {}", inode.size, inode.blocks, inode.generation),
            format!("  accessed {}, modified {}", time(inode.accessed), time(inode.modified)),
            format!("  changed {}, born {}", time(inode.changed), time(inode.born)),
            format!("  {} writes, the last at {}", inode.heat.writes, inode.heat.time),
            format!(
                "  root in page {}, height {}, extended attributes in page {}",
                inode.root, inode.height, inode.xattrs
            ),
            format!("  device {:#x}, parent {}", inode.device, inode.parent),
        ];
        text += &kept.join("\n");
        text.push('\n');
        let mut block = 0;
        while inode.kind == FileKind::Regular && block < FILE_BLOCKS_MAX {
            let extent = self.extent(ino, &inode, block, FILE_BLOCKS_MAX)?;
            for i in extent.slot.map_or(0..0, |_| extent.block..extent.end()) {
                let slot = extent.slot_of(i).expect("the extent has slots");
                let entry = Entry::at(&*self.store.page(slot.page)?, slot.index.into());
                if entry.position != HOLE {
                    let place = format!("slot {} of page {}", slot.index, slot.page);
                    text += &format!("  block {i}: {}, {place}\n", describe_entry(entry));
                }
            }
            block = extent.end();
        }
        Ok(text)
    }

    /// Names of a directory: key, inode, kind and name, in the order of keys.
    ///
    /// # Errors
    /// `ENOTDIR`, damage.
    pub fn describe_directory(&mut self, ino: Ino) -> Result<String> {
        let inode = self.directory(ino)?;
        let mut text = format!("directory {ino}: {} names, parent {}\n", inode.size, inode.parent);
        let mut from = Some(0);
        while let Some(key) = from {
            let Some(leaf) = self.names_leaf(ino, &inode, key)? else { break };
            for record in leaf.records() {
                let kind = directory::recorded_kind(record.kind);
                let kind = kind.map_or_else(|error| error.to_string(), |kind| format!("{kind:?}"));
                let (key, name) = (record.key, record.name.escape_ascii());
                text += &format!("  {key:#018x}: inode {}, {kind}, {name}\n", record.ino);
            }
            from = leaf.next;
        }
        Ok(text)
    }

    /// Where the entry of a block of a file stands, and what it says; `None` where there is no slot for it.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for other nodes than regular files; damage.
    pub fn locate_block(&mut self, ino: Ino, block: u64) -> Result<Option<(Slot, Entry)>> {
        let inode = self.regular(ino)?;
        if block >= FILE_BLOCKS_MAX {
            return Ok(None);
        }
        let Some(slot) = self.slot(ino, &inode, block)? else { return Ok(None) };
        Ok(Some((slot, Entry::at(&*self.store.page(slot.page)?, slot.index.into()))))
    }
}
