//! Page 1: what the tree knows of itself. It is also the head of the ring of inode pages with room, by the same two fields that
//! link these.

use super::bytes::{get_u32, get_u64, put_u32, put_u64};
use super::error::{Result, damaged};
use super::hash::NameHash;
use crate::store::{Page, PageId, Store, page_kind};

/// Number of the root page.
pub(super) const ROOT_PAGE: PageId = 1;
/// Where an inode page and the root page name the next of the ring.
pub(super) const NEXT: usize = 8;
/// And the one before.
pub(super) const PREVIOUS: usize = 12;
/// Where it counts inodes.
pub(super) const INODES_IN_USE: usize = 16;
const NEXT_GENERATION: usize = 24;
const ORPHANS: usize = 28;
const HASH_KEY: usize = 32;
const HASH_DROPPED_BITS: usize = 48;
const VERSION: u8 = 1;

/// Fills the root page of a new volume.
pub(super) fn format(page: &mut Page, hash: &NameHash) {
    page.fill(0);
    page[0] = page_kind::ROOT;
    page[1] = VERSION;
    put_u32(page, NEXT, ROOT_PAGE);
    put_u32(page, PREVIOUS, ROOT_PAGE);
    put_u32(page, NEXT_GENERATION, 1);
    page[HASH_KEY..HASH_KEY + 16].copy_from_slice(&hash.key);
    page[HASH_DROPPED_BITS] = hash.dropped_bits;
}

/// Checks the root page, and reads the key of names.
pub(super) fn open(page: &Page) -> Result<NameHash> {
    if page[0] != page_kind::ROOT || page[1] != VERSION || page[HASH_DROPPED_BITS] > 55 {
        return Err(damaged(format!("page 1 is no root page of version {VERSION}")));
    }
    let key = page[HASH_KEY..HASH_KEY + 16].try_into().expect("16 bytes");
    Ok(NameHash { key, dropped_bits: page[HASH_DROPPED_BITS] })
}

/// Inodes in use.
pub(super) fn inodes_in_use(store: &mut impl Store) -> Result<u64> {
    Ok(get_u64(&store.page(ROOT_PAGE)?[..], INODES_IN_USE))
}

/// One inode more, and its generation.
pub(super) fn count_inode(store: &mut impl Store) -> Result<u32> {
    let page = store.page_mut(ROOT_PAGE)?;
    let (used, generation) = (get_u64(page, INODES_IN_USE), get_u32(page, NEXT_GENERATION));
    put_u64(page, INODES_IN_USE, used + 1);
    put_u32(page, NEXT_GENERATION, generation.wrapping_add(1));
    Ok(generation)
}

/// One inode less.
pub(super) fn uncount_inode(store: &mut impl Store) -> Result<()> {
    let page = store.page_mut(ROOT_PAGE)?;
    let used = get_u64(page, INODES_IN_USE);
    put_u64(page, INODES_IN_USE, used.saturating_sub(1));
    Ok(())
}

/// Root of the tree of orphans; 0 where there are none.
pub(super) fn orphans(store: &mut impl Store) -> Result<PageId> {
    Ok(get_u32(&store.page(ROOT_PAGE)?[..], ORPHANS))
}

/// Sets it.
pub(super) fn set_orphans(store: &mut impl Store, root: PageId) -> Result<()> {
    if orphans(store)? != root {
        put_u32(store.page_mut(ROOT_PAGE)?, ORPHANS, root);
    }
    Ok(())
}
