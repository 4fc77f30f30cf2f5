//! Trees of names.

use isotherm_vfs::Ino;

use super::super::name_page as pages;
use super::super::{Result, Tree};
use super::{Check, FindingKind, Place};
use crate::store::{PageId, Store};

/// A name that was found.
pub(super) struct Name {
    pub(super) key: u64,
    pub(super) ino: Ino,
    pub(super) kind: u8,
    pub(super) bytes: Vec<u8>,
}

/// A tree that is walked.
struct Walk {
    owner: Ino,
    names: Vec<Name>,
}

impl<S: Store> Tree<S> {
    /// Checks a tree of names: keys rise, and lie where the pages above say. Returns the names.
    pub(super) fn check_names(&mut self, check: &mut Check, owner: Ino, root: PageId) -> Result<Vec<Name>> {
        let mut walk = Walk { owner, names: Vec::new() };
        if root != 0 {
            self.walk_names(check, &mut walk, root, None, (0, u64::MAX))?;
        }
        Ok(walk.names)
    }

    fn walk_names(
        &mut self,
        check: &mut Check,
        walk: &mut Walk,
        id: PageId,
        level: Option<u8>,
        (low, high): (u64, u64),
    ) -> Result<()> {
        let place = Place::Page(id);
        if !check.reach(id, Place::Inode(walk.owner)) {
            return Ok(());
        }
        let Some(page) = check.damage(FindingKind::Names, place, self.store.page(id).map_err(Into::into))? else {
            return Ok(());
        };
        if check.damage(FindingKind::Names, place, pages::check(&page))?.is_none() {
            return Ok(());
        }
        if pages::owner(&page) != walk.owner || level.is_some_and(|level| level != pages::level(&page)) {
            check.find(FindingKind::Names, place, format!("it is of another directory than {}", walk.owner));
            return Ok(());
        }
        let count = pages::count(&page);
        if count == 0 {
            check.find(FindingKind::Names, place, "a page of a directory is empty");
        }
        if pages::level(&page) == 0 {
            for record in (0..count).map(|i| pages::record(&page, i)) {
                let rises = walk.names.last().is_none_or(|last| last.key < record.key);
                if !rises || record.key < low || record.key >= high {
                    check.find(FindingKind::Names, place, format!("the key {:#x} is out of order", record.key));
                }
                let (key, ino, kind) = (record.key, record.ino, record.kind);
                walk.names.push(Name { key, ino, kind, bytes: record.name.to_vec() });
            }
            return Ok(());
        }
        for i in 0..count {
            let (own, child) = pages::child(&page, i);
            let from = if i == 0 { low } else { own };
            let until = if i + 1 < count { pages::child(&page, i + 1).0 } else { high };
            if from >= until || from < low || until > high {
                check.find(FindingKind::Names, place, format!("the key {own:#x} is out of order"));
            }
            self.walk_names(check, walk, child, Some(pages::level(&page) - 1), (from, until))?;
        }
        Ok(())
    }
}
