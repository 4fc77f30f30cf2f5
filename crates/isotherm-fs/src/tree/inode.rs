//! An inode as it stands in its page: 272 bytes, of which the first 128 are the entries of a regular file's first 8 blocks.

use isotherm_vfs::{Attributes, FileKind, Ino, Time};

use super::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use super::error::{Result, damaged};
use crate::store::{BLOCK_BYTES, ENTRY_BYTES, Heat, Page, PageId, Slot, page_kind};

/// Bytes of an inode.
pub(super) const INODE_BYTES: usize = 272;
/// Inodes of a page; they have the indices 1 to 15.
pub(super) const INODES_PER_PAGE: u64 = 15;
/// Blocks whose entries stand in the inode.
pub(super) const DIRECT_BLOCKS: u64 = 8;
/// Where attributes begin in an inode.
const ATTRIBUTES: usize = DIRECT_BLOCKS as usize * ENTRY_BYTES;
const FORMAT_MASK: u16 = 0o170_000;
const FORMAT_REGULAR: u16 = 0o100_000;
const _: () = assert!(16 + INODES_PER_PAGE as usize * INODE_BYTES == BLOCK_BYTES);

/// What an inode says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Inode {
    pub(super) kind: FileKind,
    pub(super) permissions: u16,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Bytes of a file or of a symbolic link's target; entries of a directory.
    pub(super) size: u64,
    /// Blocks of a regular file that are no holes.
    pub(super) blocks: u64,
    pub(super) accessed: Time,
    pub(super) modified: Time,
    pub(super) changed: Time,
    pub(super) born: Time,
    pub(super) device: u32,
    pub(super) generation: u32,
    pub(super) heat: Heat,
    /// Top of a file's map or of a directory, first page of a symbolic link's target; 0 where there is none.
    pub(super) root: PageId,
    /// Levels of a file's map, leaves included.
    pub(super) height: u8,
    /// First page of the extended attributes; 0 where there are none.
    pub(super) xattrs: PageId,
    /// Of a directory.
    pub(super) parent: Ino,
}

/// The page and the byte in it where an inode begins.
pub(super) fn place(ino: Ino) -> Option<(PageId, usize)> {
    let index = ino % 16;
    let page = PageId::try_from(ino / 16).ok()?;
    (index != 0).then(|| (page, 16 + (index as usize - 1) * INODE_BYTES))
}

/// The inodes of a page, free places included.
pub(super) fn inodes_of(page: PageId) -> impl Iterator<Item = Ino> {
    (1..=INODES_PER_PAGE).map(move |index| 16 * Ino::from(page) + index)
}

/// The slot of one of an inode's direct blocks.
pub(super) fn direct_slot(ino: Ino, block: u64) -> Slot {
    debug_assert!(block < DIRECT_BLOCKS);
    let first = 1 + (ino % 16 - 1) * (INODE_BYTES / ENTRY_BYTES) as u64;
    Slot { page: (ino / 16) as PageId, index: (first + block) as u8 }
}

/// Whether a slot of a page is the entry of a block: every slot of a map's leaf, and the direct slots of regular files.
pub fn is_entry(page: &Page, index: u8) -> bool {
    match (page[0], index) {
        (_, 0) => false,
        (page_kind::MAP, _) => true,
        (page_kind::INODES, _) => {
            let slot = usize::from(index) - 1;
            let slots = INODE_BYTES / ENTRY_BYTES;
            let start = 16 + slot / slots * INODE_BYTES;
            slot % slots < DIRECT_BLOCKS as usize && get_u16(page, start + ATTRIBUTES) & FORMAT_MASK == FORMAT_REGULAR
        }
        _ => false,
    }
}

/// The file that the block of a slot belongs to; none where no block's entry stands.
pub fn owner_of(page: &Page, slot: Slot) -> Option<Ino> {
    if !is_entry(page, slot.index) {
        return None;
    }
    if page[0] == page_kind::MAP {
        return Some(get_u64(page, 8));
    }
    let place = (u64::from(slot.index) - 1) / (INODE_BYTES / ENTRY_BYTES) as u64;
    Some(u64::from(slot.page) * 16 + place + 1)
}

/// The file type bits of st_mode.
pub(super) fn format_bits(kind: FileKind) -> u16 {
    match kind {
        FileKind::Fifo => 0o010_000,
        FileKind::CharacterDevice => 0o020_000,
        FileKind::Directory => 0o040_000,
        FileKind::BlockDevice => 0o060_000,
        FileKind::Regular => FORMAT_REGULAR,
        FileKind::Symlink => 0o120_000,
        FileKind::Socket => 0o140_000,
    }
}

/// The kind that file type bits stand for.
pub(super) fn kind_of(mode: u16) -> Option<FileKind> {
    use FileKind::{BlockDevice, CharacterDevice, Directory, Fifo, Regular, Socket, Symlink};
    [Fifo, CharacterDevice, Directory, BlockDevice, Regular, Symlink, Socket]
        .into_iter()
        .find(|kind| format_bits(*kind) == mode & FORMAT_MASK)
}

impl Inode {
    /// The inode that begins at `at`; `None` where the place is free.
    pub(super) fn decode(page: &Page, at: usize) -> Result<Option<Self>> {
        let bytes = &page[at + ATTRIBUTES..at + INODE_BYTES];
        let mode = get_u16(bytes, 0);
        if mode == 0 {
            return Ok(None);
        }
        let kind = kind_of(mode).ok_or_else(|| damaged(format!("an inode's mode is {mode:#o}, no kind of file")))?;
        let time = |seconds, nanoseconds| Time {
            seconds: get_u64(bytes, seconds) as i64,
            nanoseconds: get_u32(bytes, nanoseconds),
        };
        Ok(Some(Self {
            kind,
            permissions: mode & !FORMAT_MASK,
            links: get_u32(bytes, 4),
            uid: get_u32(bytes, 8),
            gid: get_u32(bytes, 12),
            size: get_u64(bytes, 16),
            blocks: get_u64(bytes, 24),
            accessed: time(32, 64),
            modified: time(40, 68),
            changed: time(48, 72),
            born: time(56, 76),
            device: get_u32(bytes, 80),
            generation: get_u32(bytes, 84),
            heat: Heat { writes: get_u32(bytes, 88), time: get_u32(bytes, 92) },
            root: get_u32(bytes, 96),
            height: bytes[100],
            xattrs: get_u32(bytes, 104),
            parent: get_u64(bytes, 112),
        }))
    }

    /// Writes the attributes of the inode that begins at `at`; entries of blocks stay.
    pub(super) fn encode(&self, page: &mut Page, at: usize) {
        let bytes = &mut page[at + ATTRIBUTES..at + INODE_BYTES];
        put_u16(bytes, 0, format_bits(self.kind) | self.permissions);
        put_u32(bytes, 4, self.links);
        put_u32(bytes, 8, self.uid);
        put_u32(bytes, 12, self.gid);
        put_u64(bytes, 16, self.size);
        put_u64(bytes, 24, self.blocks);
        for (i, time) in [self.accessed, self.modified, self.changed, self.born].into_iter().enumerate() {
            put_u64(bytes, 32 + 8 * i, time.seconds as u64);
            put_u32(bytes, 64 + 4 * i, time.nanoseconds);
        }
        put_u32(bytes, 80, self.device);
        put_u32(bytes, 84, self.generation);
        put_u32(bytes, 88, self.heat.writes);
        put_u32(bytes, 92, self.heat.time);
        put_u32(bytes, 96, self.root);
        bytes[100] = self.height;
        put_u32(bytes, 104, self.xattrs);
        put_u64(bytes, 112, self.parent);
    }

    /// Makes a place free. Its entries are holes already.
    pub(super) fn clear(page: &mut Page, at: usize) {
        page[at + ATTRIBUTES..at + INODE_BYTES].fill(0);
    }

    /// What stat(2) says.
    pub(super) fn attributes(&self, ino: Ino) -> Attributes {
        Attributes {
            ino,
            generation: self.generation,
            kind: self.kind,
            permissions: self.permissions,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            device: self.device,
            size: self.size,
            blocks_512: self.blocks * (BLOCK_BYTES / 512) as u64,
            accessed: self.accessed,
            modified: self.modified,
            changed: self.changed,
        }
    }

    /// Whether it is a directory.
    pub(super) fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Set-user-ID goes, and set-group-ID where the group may execute: without that it means mandatory locking.
    pub(super) fn without_privileges(&self) -> u16 {
        let group = if self.permissions & 0o010 != 0 { 0o2000 } else { 0 };
        if self.kind == FileKind::Directory { self.permissions } else { self.permissions & !(0o4000 | group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode(kind: FileKind) -> Inode {
        let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
        Inode {
            kind,
            permissions: 0o7654,
            links: 1 << 31,
            uid: 2,
            gid: 3,
            size: 1 << 44,
            blocks: 5,
            accessed: time(-6, 7),
            modified: time(8, 9),
            changed: time(10, 11),
            born: time(i64::MAX, 999_999_999),
            device: 12,
            generation: 13,
            heat: Heat { writes: 14, time: 15 },
            root: 16,
            height: 17,
            xattrs: 18,
            parent: 19,
        }
    }

    #[test]
    fn every_field_comes_back_and_entries_stay() {
        let mut page = [0xa5; BLOCK_BYTES];
        let (id, at) = place(7 * 16 + 15).unwrap();
        assert_eq!((id, at + INODE_BYTES), (7, BLOCK_BYTES));
        inode(FileKind::Socket).encode(&mut page, at);
        assert_eq!(Inode::decode(&page, at).unwrap(), Some(inode(FileKind::Socket)));
        assert!(page[..at + 128].iter().all(|byte| *byte == 0xa5));
        Inode::clear(&mut page, at);
        assert_eq!(Inode::decode(&page, at).unwrap(), None);
    }

    #[test]
    fn entries_are_those_of_regular_files_and_of_maps() {
        let mut page = [0; BLOCK_BYTES];
        page[0] = page_kind::INODES;
        let (_, at) = place(3).unwrap();
        inode(FileKind::Regular).encode(&mut page, at);
        inode(FileKind::Symlink).encode(&mut page, place(4).unwrap().1);
        let entries: Vec<u8> = (0..=255).filter(|index| is_entry(&page, *index)).collect();
        let expected: Vec<u8> = (0..8).map(|block| direct_slot(3, block).index).collect();
        assert_eq!(entries, expected);
        assert_eq!(usize::from(expected[0]) * ENTRY_BYTES, at);
        page[0] = page_kind::MAP;
        assert_eq!((0..=255).filter(|index| is_entry(&page, *index)).count(), 255);
        page[0] = page_kind::NAMES;
        assert!((0..=255).all(|index| !is_entry(&page, index)));
    }

    #[test]
    fn index_0_is_no_inode() {
        assert_eq!(place(16), None);
        assert_eq!(place(u64::MAX), None);
        assert_eq!(place(1), Some((0, 16)));
    }

    #[test]
    fn a_wrong_mode_is_damage() {
        let mut page = [0; BLOCK_BYTES];
        put_u16(&mut page, 16 + ATTRIBUTES, 0o170_000);
        assert!(Inode::decode(&page, 16).is_err());
    }
}
