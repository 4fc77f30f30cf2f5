//! Addresses and geometry: the newtypes that every layer speaks.
//!
//! All addresses are 32 bits wide, because cache misses cost more than anything else in this system: a
//! logical-to-physical entry is four bytes, so 256 Mi pages (1 TiB of 4 KiB pages) need 1 GiB of map.
//! Page numbers are limited to 30 bits ([`MAX_PAGES`]); the two bits above carry tags in the map and in the OOB.

use std::fmt;

/// Largest number of logical or physical pages that one device may have (2^30, 4 TiB of 4 KiB pages).
pub const MAX_PAGES: u32 = 1 << 30;

/// Logical page number: the host's address of one page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Lpn(pub u32);

/// Physical page number: block number times pages per block, plus the page's index in the block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Ppn(pub u32);

impl Ppn {
    /// No page: what an unmapped logical page points to.
    pub const NONE: Self = Self(u32::MAX);
}

/// Some of 64 pages that follow each other, taken out in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageSet {
    first: u32,
    left: u64,
}

impl PageSet {
    /// Of the 64 pages from `first` on those whose bits are set, the lowest bit being that of `first`.
    #[inline(always)]
    pub fn new(first: Ppn, bits: u64) -> Self {
        Self { first: first.0, left: bits }
    }

    /// Whether some page is left in it.
    #[inline(always)]
    pub fn has_pages(&self) -> bool {
        self.left != 0
    }
}

impl Iterator for PageSet {
    type Item = Ppn;

    #[inline(always)]
    fn next(&mut self) -> Option<Ppn> {
        let next = (self.left != 0).then(|| Ppn(self.first + self.left.trailing_zeros()))?;
        self.left &= self.left - 1;
        Some(next)
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let length = self.left.count_ones() as usize;
        (length, Some(length))
    }
}

impl ExactSizeIterator for PageSet {}

/// The unit that is erased whole: an erase block, or a superblock striped over all dies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct BlockId(pub u32);

/// An append stream: pages of one stream share open blocks. 16 bits, as placement by future writes needs thousands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct StreamId(pub u16);

/// How erase blocks are joined into the blocks that the block store opens and cleans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Striping {
    /// One block spans all planes of all dies; page `i` of it lies on plane `i mod planes`.
    #[default]
    Superblock,
    /// One block lies in one plane of one die; consecutive blocks lie on consecutive planes.
    PerDie,
}

/// The shape of the flash array, as the block store sees it: `blocks` units that are erased whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Number of blocks (superblocks where [`Striping::Superblock`]).
    pub blocks: u32,
    /// Binary logarithm of the pages in one block (all dies together for a superblock); at most 15.
    pub log2_pages_per_block: u8,
    /// Binary logarithm of the page size in bytes (9 to 24).
    pub log2_page_bytes: u8,
    /// Spare (OOB) bytes of each page; stated in results, not simulated byte by byte.
    pub spare_bytes: u16,
    /// Channels; a power of two.
    pub channels: u16,
    /// Dies on each channel; a power of two.
    pub dies_per_channel: u16,
    /// Planes in each die; a power of two.
    pub planes_per_die: u16,
    /// How erase blocks form the blocks of the block store.
    pub striping: Striping,
}

impl Geometry {
    /// A single-die array: what the closed forms describe.
    ///
    /// # Panics
    /// If `pages_per_block` or `page_bytes` is not a power of two.
    pub fn simple(blocks: u32, pages_per_block: u32, page_bytes: u32) -> Self {
        assert!(pages_per_block.is_power_of_two() && page_bytes.is_power_of_two());
        Self {
            blocks,
            log2_pages_per_block: pages_per_block.trailing_zeros() as u8,
            log2_page_bytes: page_bytes.trailing_zeros() as u8,
            spare_bytes: 0,
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            striping: Striping::Superblock,
        }
    }

    /// Pages in one block.
    #[inline(always)]
    pub fn pages_per_block(&self) -> u32 {
        1 << self.log2_pages_per_block
    }

    /// Bytes in one page.
    #[inline(always)]
    pub fn page_bytes(&self) -> u32 {
        1 << self.log2_page_bytes
    }

    /// Physical pages of the whole array.
    #[inline(always)]
    pub fn pages(&self) -> u32 {
        self.blocks << self.log2_pages_per_block
    }

    /// Dies of the whole array.
    pub fn dies(&self) -> u32 {
        u32::from(self.channels) * u32::from(self.dies_per_channel)
    }

    /// Planes of the whole array: the units that can each execute one operation.
    pub fn planes(&self) -> u32 {
        self.dies() * u32::from(self.planes_per_die)
    }

    /// The block that holds a page.
    #[inline(always)]
    pub fn block_of(&self, page: Ppn) -> BlockId {
        BlockId(page.0 >> self.log2_pages_per_block)
    }

    /// The page's index in its block.
    #[inline(always)]
    pub fn index_in_block(&self, page: Ppn) -> u32 {
        page.0 & (self.pages_per_block() - 1)
    }

    /// The first page of a block.
    #[inline(always)]
    pub fn first_page(&self, block: BlockId) -> Ppn {
        Ppn(block.0 << self.log2_pages_per_block)
    }

    /// The plane (numbered over the whole array) on which a page lies. Consecutive numbers alternate channels first.
    #[inline(always)]
    pub fn plane_of(&self, page: Ppn) -> u32 {
        match self.striping {
            Striping::Superblock => page.0 & (self.planes() - 1),
            Striping::PerDie => self.block_of(page).0 & (self.planes() - 1),
        }
    }

    /// The channel that a plane hangs on.
    #[inline(always)]
    pub fn channel_of_plane(&self, plane: u32) -> u32 {
        plane & (u32::from(self.channels) - 1)
    }
}

impl fmt::Display for Lpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LPN {}", self.0)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_pages_gives_them_in_order_and_once() {
        let mut pages = PageSet::new(Ppn(128), 1 << 63 | 1 << 5 | 1);
        assert_eq!((pages.len(), pages.next(), pages.len()), (3, Some(Ppn(128)), 2));
        assert!(pages.has_pages());
        assert_eq!(pages.by_ref().collect::<Vec<_>>(), [Ppn(133), Ppn(191)]);
        assert_eq!((pages.has_pages(), pages.next(), PageSet::default().next()), (false, None, None));
    }
}
