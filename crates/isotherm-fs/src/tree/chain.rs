//! Bytes of any length in a chain of pages: targets of symbolic links, and extended attributes.
//!
//! A page of a chain: bytes 2 to 3 are the length of its part, 4 to 7 the next page or 0, 8 to 15 the owner; the part begins at
//! 16. Every page but the last is full.

use isotherm_vfs::Ino;

use super::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use super::error::{Result, damaged};
use crate::store::{BLOCK_BYTES, PageId, Store};

/// Bytes of a page of a chain.
pub(super) const PART_BYTES: usize = BLOCK_BYTES - 16;
/// Pages of the longest chain: 128 KiB and what names and lengths take.
const PAGES_MAX: usize = 64;

/// A page of a chain: its part, and the next page.
pub(super) fn part(store: &mut impl Store, id: PageId, kind: u8, owner: Ino) -> Result<(Vec<u8>, PageId)> {
    let page = store.page(id)?;
    let length = usize::from(get_u16(&page[..], 2));
    if page[0] != kind || get_u64(&page[..], 8) != owner || length > PART_BYTES {
        return Err(damaged(format!("page {id} is no part of a chain of inode {owner}")));
    }
    Ok((page[16..16 + length].to_vec(), get_u32(&page[..], 4)))
}

/// All bytes of a chain.
pub(super) fn read(store: &mut impl Store, first: PageId, kind: u8, owner: Ino) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut id = first;
    for _ in 0..PAGES_MAX {
        if id == 0 {
            return Ok(bytes);
        }
        let (part, next) = part(store, id, kind, owner)?;
        bytes.extend_from_slice(&part);
        id = next;
    }
    Err(damaged(format!("a chain of inode {owner} does not end")))
}

/// Replaces the bytes of a chain. Returns its first page: 0 for no bytes.
pub(super) fn write(store: &mut impl Store, first: PageId, kind: u8, owner: Ino, bytes: &[u8]) -> Result<PageId> {
    let mut old = Vec::new();
    let mut id = first;
    while id != 0 && old.len() < PAGES_MAX {
        old.push(id);
        id = part(store, id, kind, owner)?.1;
    }
    let wanted = bytes.len().div_ceil(PART_BYTES);
    for id in old.drain(wanted.min(old.len())..) {
        store.free(id)?;
    }
    while old.len() < wanted {
        old.push(store.allocate()?);
    }
    for (i, part) in bytes.chunks(PART_BYTES).enumerate() {
        let page = store.page_mut(old[i])?;
        page[0] = kind;
        page[1] = 1;
        put_u16(page, 2, part.len() as u16);
        put_u32(page, 4, old.get(i + 1).copied().unwrap_or(0));
        put_u64(page, 8, owner);
        page[16..16 + part.len()].copy_from_slice(part);
        page[16 + part.len()..].fill(0);
    }
    Ok(old.first().copied().unwrap_or(0))
}
