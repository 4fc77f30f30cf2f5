//! What the tree of files stands on: numbered pages that change in transactions, and blocks of file data.
//!
//! A *page* is 4 KiB of metadata with a number that stays the same wherever the log puts it, so that no change of a page changes
//! another one. A *block* is 4 KiB of file data. It is named by the *slot* where its entry stands: 16 bytes at 16-byte steps
//! of a page, slots 1 to 255. The tree decides which slots of which pages are entries; what is in them is the store's.
//!
//! The first byte of a page says what it is ([`page_kind`]); by it the store knows which slots are entries of blocks.
//!
//! A block's entry never moves to another slot as long as the block exists: the log names blocks by slots.

pub use isotherm::hotness::heat::Heat;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page and of a block.
pub const BLOCK_BYTES: usize = 4096;
/// Bytes of the entry of a block.
pub const ENTRY_BYTES: usize = 16;

/// Number of a page.
pub type PageId = u32;
/// Content of a page or block.
pub type Page = [u8; BLOCK_BYTES];

/// What the first byte of a page says.
pub mod page_kind {
    /// Nothing yet.
    pub const NONE: u8 = 0;
    /// A leaf of a file's map: every slot is an entry.
    pub const MAP: u8 = 1;
    /// Inodes: the direct entries of regular files are entries.
    pub const INODES: u8 = 2;
    /// The root page: what the tree knows of itself.
    pub const ROOT: u8 = 3;
    /// Part of a file's map above the leaves.
    pub const MAP_INDEX: u8 = 4;
    /// A leaf of a directory.
    pub const NAMES: u8 = 5;
    /// Part of a directory above the leaves.
    pub const NAMES_INDEX: u8 = 6;
    /// A piece of a symbolic link's target.
    pub const TARGET: u8 = 7;
    /// A piece of a node's extended attributes.
    pub const XATTRS: u8 = 8;
}

/// Where the entry of a block stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot {
    /// The page.
    pub page: PageId,
    /// Byte offset in it over [`ENTRY_BYTES`], 1 to 255.
    pub index: u8,
}

/// Where the newest content of a block is.
#[derive(Clone, Debug)]
pub enum Found {
    /// Never written: zeros.
    Hole,
    /// Space is set aside, nothing is written: zeros.
    Reserved,
    /// In memory.
    Cached(Arc<Page>),
    /// On the device: to be read by [`Store::read_stored`] or by [`BlockReader`].
    Stored(Stored),
}

/// A block on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its position in the log, in blocks.
    pub position: u32,
    /// crc32c of its content.
    pub checksum: u32,
}

/// Reads blocks without the store's lock.
pub trait BlockReader: Clone + Send + Sync + 'static {
    /// Reads `out.len() / 4096` consecutive blocks from `position` on. Checksums are the caller's business: if one is wrong, the
    /// block may have been moved meanwhile, and is to be looked up once more.
    ///
    /// # Errors
    /// Of the device.
    fn read_blocks(&self, position: u32, out: &mut [u8]) -> Result<(), StoreError>;
}

/// Space of a volume, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// All that files and metadata may take.
    pub total: u64,
    /// Of these, free for data that comes.
    pub free: u64,
}

/// Why a request cannot be carried out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No room for new data.
    #[error("the volume is full")]
    NoSpace,
    /// What is on the device is not what was written.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The device failed, now or before: nothing is written from then on.
    #[error("the device failed: {0}")]
    Device(String),
    /// Nothing can be written, by request.
    #[error("the volume is read-only")]
    ReadOnly,
}

/// How much a transaction may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Anything: fails where only the reserve is left.
    Grow,
    /// Takes little now to give back more: may use the reserve, so that deleting works on a full volume.
    Shrink,
}

/// See the module's text.
///
/// # Contract
/// - Pages change inside a transaction only, and a transaction is seen whole or not at all after a crash; transactions are seen in
///   the order in which they were committed.
/// - `abort` brings every page back to what it was at `begin`.
/// - Transactions do not nest.
pub trait Store {
    /// Reads blocks without this store's lock.
    type Reader: BlockReader;

    /// Begins a transaction.
    ///
    /// # Errors
    /// Read-only.
    fn begin(&mut self, purpose: Purpose) -> Result<(), StoreError>;
    /// Ends it: all of it happens. It is durable when the log says so.
    fn commit(&mut self);
    /// Ends it: nothing of it happens.
    fn abort(&mut self);

    /// Content of a page, that of the transaction under way included.
    ///
    /// # Errors
    /// The device, damage, and a page that does not exist.
    fn page(&mut self, id: PageId) -> Result<Arc<Page>, StoreError>;
    /// The content, to be changed.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn page_mut(&mut self, id: PageId) -> Result<&mut Page, StoreError>;
    /// A new page, all zeros. The first two of a new volume are 0 and 1.
    ///
    /// # Errors
    /// No space.
    fn allocate(&mut self) -> Result<PageId, StoreError>;
    /// A page goes. None of its slots is an entry of a block any more ([`Store::release_blocks`]).
    ///
    /// # Errors
    /// The device, damage.
    fn free(&mut self, id: PageId) -> Result<(), StoreError>;
    /// The first page that exists with this number or a higher one: by this a check walks over all of them.
    ///
    /// # Errors
    /// The device, damage.
    fn next_page(&mut self, from: PageId) -> Result<Option<PageId>, StoreError>;

    /// Where a block is.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn find_block(&mut self, slot: Slot) -> Result<Found, StoreError>;
    /// Reads a block that was found on the device, and checks it.
    ///
    /// # Errors
    /// The device, damage.
    fn read_stored(&mut self, stored: Stored) -> Result<Arc<Page>, StoreError>;
    /// New content of a block of the file `owner`, outside of any transaction. It is kept in memory until the log writes it. A
    /// block that was never written is as hot as its file.
    ///
    /// # Errors
    /// No space for a block that was a hole; read-only.
    fn put_block(&mut self, slot: Slot, owner: u64, file: Heat, content: Arc<Page>) -> Result<(), StoreError>;
    /// Changes a part of a block, as [`Store::put_block`] would, if its content is in memory to be written. Returns whether it
    /// was.
    fn patch_block(&mut self, slot: Slot, at: usize, bytes: &[u8]) -> bool;
    /// Blocks become holes, what waits to be written of them included. In a transaction. Returns how many were no holes.
    ///
    /// # Errors
    /// As [`Store::page`].
    fn release_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError>;
    /// Sets space aside for those of the blocks that are holes. In a transaction. Returns how many there were.
    ///
    /// # Errors
    /// No space; never for blocks that the same transaction has released.
    fn reserve_blocks(&mut self, page: PageId, slots: Range<u16>) -> Result<u32, StoreError>;

    /// Blocks of a file that wait to be written.
    fn waiting(&self, owner: u64) -> u64;
    /// Of these, those whose entries are holes until then. What the transaction under way has released or set aside is not among them.
    fn waiting_holes(&self, owner: u64) -> u64;
    /// Host block writes so far: the clock of hotness, modulo 2^32.
    fn now(&self) -> u32;
    /// Space of the volume.
    fn space(&self) -> Space;
    /// Sets how many pages [`Purpose::Shrink`] may have to take before it gives any back: [`Purpose::Grow`] leaves them.
    fn keep_for_shrinking(&mut self, _pages: u64) {}
    /// What reads blocks without the store's lock.
    fn reader(&self) -> Self::Reader;
}
