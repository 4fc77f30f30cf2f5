//! Pages of a directory. A leaf holds records in slots: an insert writes the record at the low end of the used bytes and moves
//! two bytes for each record of a higher key, so that the log, which keeps the bytes that differ, has little to write.

use isotherm_vfs::Ino;

use super::bytes::{get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};
use super::error::{Result, damaged};
use crate::store::{BLOCK_BYTES, Page, PageId, page_kind};

/// Bytes of a page's header.
pub(super) const HEADER_BYTES: usize = 16;
const COUNT: usize = 2;
const LEVEL: usize = 4;
const HEAP: usize = 6;
const OWNER: usize = 8;
const SLOT_BYTES: usize = 2;
const RECORD_BYTES: usize = 18;
const CHILD_BYTES: usize = 12;
/// Children of a page above the leaves.
pub(super) const CHILDREN_MAX: usize = (BLOCK_BYTES - HEADER_BYTES) / CHILD_BYTES;
/// Bytes that records and slots share.
pub(super) const LEAF_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;

/// A name and where it leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record<'a> {
    pub(super) key: u64,
    pub(super) ino: Ino,
    /// The file type bits of st_mode over 2^12; what an orphan is, among those.
    pub(super) kind: u8,
    pub(super) name: &'a [u8],
}

impl Record<'_> {
    /// What it takes of a leaf.
    pub(super) fn cost(&self) -> usize {
        SLOT_BYTES + RECORD_BYTES + self.name.len()
    }
}

/// Makes an empty page; level 0 is a leaf.
pub(super) fn format(page: &mut Page, owner: u64, level: u8) {
    page.fill(0);
    page[0] = if level == 0 { page_kind::NAMES } else { page_kind::NAMES_INDEX };
    page[1] = 1;
    page[LEVEL] = level;
    if level == 0 {
        put_u16(page, HEAP, BLOCK_BYTES as u16);
    }
    put_u64(page, OWNER, owner);
}

/// Records of a leaf, children of a page above.
pub(super) fn count(page: &Page) -> usize {
    usize::from(get_u16(page, COUNT))
}

/// Levels below the page.
pub(super) fn level(page: &Page) -> u8 {
    page[LEVEL]
}

/// Whose directory it is of.
pub(super) fn owner(page: &Page) -> u64 {
    get_u64(page, OWNER)
}

/// Checks that every offset stays within the page, so that nothing else needs to.
pub(super) fn check(page: &Page) -> Result<()> {
    let records = count(page);
    match (page[0], level(page)) {
        (page_kind::NAMES, 0) => {
            let heap = usize::from(get_u16(page, HEAP));
            if heap > BLOCK_BYTES || HEADER_BYTES + records * SLOT_BYTES > heap {
                return Err(damaged("a leaf of a directory is fuller than a page"));
            }
            for i in 0..records {
                let at = offset(page, i);
                if at < heap
                    || at + RECORD_BYTES > BLOCK_BYTES
                    || at + RECORD_BYTES + name_length(page, at) > BLOCK_BYTES
                {
                    return Err(damaged("a record of a directory lies outside of its page"));
                }
            }
            Ok(())
        }
        (page_kind::NAMES_INDEX, 1..=8) if (1..=CHILDREN_MAX).contains(&records) => Ok(()),
        _ => Err(damaged("a page is no part of a directory")),
    }
}

fn offset(page: &Page, i: usize) -> usize {
    usize::from(get_u16(page, HEADER_BYTES + i * SLOT_BYTES))
}

fn name_length(page: &Page, at: usize) -> usize {
    usize::from(page[at + 17])
}

/// A record of a leaf.
pub(super) fn record(page: &Page, i: usize) -> Record<'_> {
    let at = offset(page, i);
    let name = at + RECORD_BYTES;
    Record {
        key: get_u64(page, at),
        ino: get_u64(page, at + 8),
        kind: page[at + 16],
        name: &page[name..name + name_length(page, at)],
    }
}

/// The first record of a leaf whose key is not lower, and whether it has that key.
pub(super) fn search(page: &Page, key: u64) -> (usize, bool) {
    let (mut low, mut high) = (0, count(page));
    while low < high {
        let middle = usize::midpoint(low, high);
        if get_u64(page, offset(page, middle)) < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low, low < count(page) && get_u64(page, offset(page, low)) == key)
}

/// Bytes of a leaf that records and their slots take.
pub(super) fn used(page: &Page) -> usize {
    (0..count(page)).map(|i| record(page, i).cost()).sum()
}

/// Puts a record at index `i` of a leaf; false if it is too full.
pub(super) fn insert(page: &mut Page, i: usize, new: &Record<'_>) -> bool {
    let records = count(page);
    let contiguous = |page: &Page| usize::from(get_u16(page, HEAP)) - HEADER_BYTES - count(page) * SLOT_BYTES;
    if contiguous(page) < new.cost() {
        if LEAF_BYTES - used(page) < new.cost() {
            return false;
        }
        compact(page);
    }
    let at = usize::from(get_u16(page, HEAP)) - (new.cost() - SLOT_BYTES);
    put_u64(page, at, new.key);
    put_u64(page, at + 8, new.ino);
    page[at + 16] = new.kind;
    page[at + 17] = new.name.len() as u8;
    page[at + RECORD_BYTES..at + RECORD_BYTES + new.name.len()].copy_from_slice(new.name);
    put_u16(page, HEAP, at as u16);
    let slot = HEADER_BYTES + i * SLOT_BYTES;
    page.copy_within(slot..HEADER_BYTES + records * SLOT_BYTES, slot + SLOT_BYTES);
    put_u16(page, slot, at as u16);
    put_u16(page, COUNT, records as u16 + 1);
    true
}

/// Takes a record out of a leaf.
pub(super) fn remove(page: &mut Page, i: usize) {
    let records = count(page);
    let at = offset(page, i);
    if at == usize::from(get_u16(page, HEAP)) {
        let end = at + RECORD_BYTES + name_length(page, at);
        put_u16(page, HEAP, end as u16);
    }
    let slot = HEADER_BYTES + i * SLOT_BYTES;
    page.copy_within(slot + SLOT_BYTES..HEADER_BYTES + records * SLOT_BYTES, slot);
    put_u16(page, COUNT, records as u16 - 1);
}

/// Lets a record lead elsewhere.
pub(super) fn redirect(page: &mut Page, i: usize, ino: Ino, kind: u8) {
    let at = offset(page, i);
    put_u64(page, at + 8, ino);
    page[at + 16] = kind;
}

/// Moves the records from index `from` on to the end of another leaf, whose keys are lower.
pub(super) fn move_records(page: &mut Page, from: usize, to: &mut Page) {
    for i in from..count(page) {
        let end = count(to);
        let fits = insert(to, end, &record(page, i));
        debug_assert!(fits, "the other leaf has room for what is moved");
    }
    put_u16(page, COUNT, from as u16);
    compact(page);
}

fn compact(page: &mut Page) {
    let old = *page;
    put_u16(page, COUNT, 0);
    put_u16(page, HEAP, BLOCK_BYTES as u16);
    for i in 0..count(&old) {
        let fits = insert(page, i, &record(&old, i));
        debug_assert!(fits, "what a page held fits into it");
    }
}

/// The lowest key below a child, and the child.
pub(super) fn child(page: &Page, i: usize) -> (u64, PageId) {
    let at = HEADER_BYTES + i * CHILD_BYTES;
    (get_u64(page, at), get_u32(page, at + 8))
}

/// The child below which a key is. The first takes whatever is lower than the others.
pub(super) fn search_child(page: &Page, key: u64) -> usize {
    let (mut low, mut high) = (1, count(page));
    while low < high {
        let middle = usize::midpoint(low, high);
        if child(page, middle).0 <= key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low - 1
}

/// Puts a child at index `i`; false if the page is full.
pub(super) fn insert_child(page: &mut Page, i: usize, key: u64, id: PageId) -> bool {
    let children = count(page);
    if children == CHILDREN_MAX {
        return false;
    }
    let at = HEADER_BYTES + i * CHILD_BYTES;
    page.copy_within(at..HEADER_BYTES + children * CHILD_BYTES, at + CHILD_BYTES);
    put_u64(page, at, key);
    put_u32(page, at + 8, id);
    put_u16(page, COUNT, children as u16 + 1);
    true
}

/// Takes a child out.
pub(super) fn remove_child(page: &mut Page, i: usize) {
    let children = count(page);
    let at = HEADER_BYTES + i * CHILD_BYTES;
    page.copy_within(at + CHILD_BYTES..HEADER_BYTES + children * CHILD_BYTES, at);
    put_u16(page, COUNT, children as u16 - 1);
}

/// Moves the children from index `from` on to the end of another page, whose keys are lower.
pub(super) fn move_children(page: &mut Page, from: usize, to: &mut Page) {
    for i in from..count(page) {
        let (key, id) = child(page, i);
        let end = count(to);
        let fits = insert_child(to, end, key, id);
        debug_assert!(fits, "the other page has room for what is moved");
    }
    put_u16(page, COUNT, from as u16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_holds_what_was_inserted_through_removal_and_compaction() {
        let mut page = [0; BLOCK_BYTES];
        format(&mut page, 9, 0);
        let mut keys = Vec::new();
        for round in 0..2000_u64 {
            let key = round * 7919 % 1000;
            let name = vec![key as u8; (key % 256) as usize];
            let (i, found) = search(&page, key);
            assert_eq!(found, keys.contains(&key));
            if found {
                remove(&mut page, i);
                keys.retain(|other| *other != key);
            } else if insert(&mut page, i, &Record { key, ino: key + 1, kind: 4, name: &name }) {
                keys.push(key);
            }
            check(&page).unwrap();
            keys.sort_unstable();
            assert_eq!((0..count(&page)).map(|i| record(&page, i).key).collect::<Vec<_>>(), keys);
        }
        assert!(keys.len() > 10);
        for i in 0..count(&page) {
            let Record { key, ino, kind, name } = record(&page, i);
            assert_eq!((ino, kind), (key + 1, 4));
            assert_eq!(name, vec![key as u8; (key % 256) as usize]);
        }
        assert_eq!((owner(&page), level(&page)), (9, 0));
    }

    #[test]
    fn an_insert_changes_few_bytes() {
        let mut page = [0; BLOCK_BYTES];
        format(&mut page, 9, 0);
        for key in 0..90 {
            assert!(insert(
                &mut page,
                key,
                &Record { key: key as u64 * 2, ino: 1, kind: 8, name: b"a name of 20 letters" }
            ));
        }
        let before = page;
        assert!(insert(&mut page, 45, &Record { key: 89, ino: 1, kind: 8, name: b"a name of 20 letters" }));
        let changed = before.iter().zip(&page).filter(|(a, b)| a != b).count();
        assert!(changed <= 3 + 2 * 46 + 38, "{changed}");
    }

    #[test]
    fn offsets_outside_of_the_page_are_damage() {
        let mut page = [0; BLOCK_BYTES];
        format(&mut page, 9, 0);
        assert!(insert(&mut page, 0, &Record { key: 1, ino: 1, kind: 8, name: b"name" }));
        let mut wrong = page;
        put_u16(&mut wrong, HEADER_BYTES, 4090);
        assert!(check(&wrong).is_err());
        let mut wrong = page;
        put_u16(&mut wrong, COUNT, 2040);
        assert!(check(&wrong).is_err());
        let mut wrong = page;
        wrong[usize::from(get_u16(&page, HEADER_BYTES)) + 17] = 200;
        assert!(check(&wrong).is_err());
        assert!(check(&page).is_ok());
    }
}
