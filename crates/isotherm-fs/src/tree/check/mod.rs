//! Whether a tree is whole: every page is reached once, and all that is said twice agrees. Pages are read once each, in a walk over
//! all of them; memory grows with the inodes, not with the data.

mod inodes;
mod names;
mod repair;

use std::collections::{BTreeMap, BTreeSet};

use isotherm_vfs::{FileKind, Ino, ROOT};

use super::Tree;
use super::bytes::get_u32;
use super::error::{Result, TreeError};
use super::inode::{Inode, place};
use super::inodes::{ALL_IN_USE, in_use};
use super::orphans::{CUT, NAMELESS};
use super::root_page::{self, NEXT, PREVIOUS, ROOT_PAGE};
use crate::store::{PageId, Store, StoreError, page_kind};

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// A page is not what it should be, or cannot be read.
    Page,
    /// A page that exists is not reached, or is reached twice.
    Reach,
    /// The ring of inode pages with room, or the bits of the places in use.
    Room,
    /// A field of an inode.
    Inode,
    /// The number of a file's blocks. After a crash it may be off for files that were being written.
    BlockCount,
    /// A file's map.
    Map,
    /// Names of a directory.
    Names,
    /// The number of names of a node.
    Links,
    /// The list of what is to be freed.
    Orphans,
    /// Extended attributes.
    Xattrs,
}

/// Where it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// A page.
    Page(PageId),
    /// An inode.
    Inode(Ino),
    /// The whole volume.
    Volume,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// Where it is.
    pub place: Place,
    /// What is wrong, for people.
    pub text: String,
}

/// An inode, as its page and the names say.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// What its page says: kind, links and parent.
    stored: Option<(FileKind, u32, Ino)>,
    /// Names that lead to it.
    names: u32,
    /// The kind that they say, and the directory of the last.
    named: Option<(FileKind, Ino)>,
    /// Directories in it.
    directories: u32,
}

/// A check under way.
#[derive(Debug, Default)]
struct Check {
    findings: Vec<Finding>,
    reached: BTreeSet<PageId>,
    inodes: BTreeMap<Ino, Seen>,
    with_room: BTreeSet<PageId>,
    /// Inodes that are no free places.
    in_use: u64,
}

impl Check {
    fn find(&mut self, kind: FindingKind, place: Place, text: impl Into<String>) {
        self.findings.push(Finding { kind, place, text: text.into() });
    }

    /// Damage is a finding; if the device fails, so does the check.
    fn damage<T>(&mut self, kind: FindingKind, place: Place, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(TreeError::Store(StoreError::Damaged(text))) => {
                self.find(kind, place, text);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that something leads to a page; whether it is the first.
    fn reach(&mut self, id: PageId, place: Place) -> bool {
        let is_first = self.reached.insert(id);
        if !is_first {
            self.find(FindingKind::Reach, place, format!("page {id} belongs to something else as well"));
        }
        is_first
    }
}

impl<S: Store> Tree<S> {
    /// Checks everything, and changes nothing. What memory knows and pages do not is left out of account: settle it before.
    ///
    /// # Errors
    /// Of the device. Damage is no error but a finding.
    pub fn check(&mut self) -> Result<Vec<Finding>> {
        Ok(self.run_check()?.findings)
    }

    fn run_check(&mut self) -> Result<Check> {
        let mut check = Check::default();
        check.reached.insert(ROOT_PAGE);
        let mut from = Some(0);
        while let Some(id) = from.and_then(|id| self.store.next_page(id).transpose()).transpose()? {
            if let Some(page) =
                check.damage(FindingKind::Page, Place::Page(id), self.store.page(id).map_err(Into::into))?
                && page[0] == page_kind::INODES
            {
                check.reach(id, Place::Page(id));
                self.check_inode_page(&mut check, id, &page)?;
            }
            from = id.checked_add(1);
        }
        self.check_ring(&mut check)?;
        self.check_orphans(&mut check)?;
        check_links(&mut check);
        check_parents(&mut check);
        let counted = root_page::inodes_in_use(&mut self.store)?;
        if counted != check.in_use {
            let text = format!("{counted} inodes are counted, {} are in use", check.in_use);
            check.find(FindingKind::Inode, Place::Volume, text);
        }
        self.check_reach(&mut check)?;
        Ok(check)
    }

    fn check_ring(&mut self, check: &mut Check) -> Result<()> {
        let mut listed = BTreeSet::new();
        let mut before = ROOT_PAGE;
        loop {
            let next = get_u32(&self.store.page(before)?[..], NEXT);
            let place = Place::Page(next);
            let Some(page) = check.damage(FindingKind::Room, place, self.store.page(next).map_err(Into::into))? else {
                break;
            };
            if get_u32(&page[..], PREVIOUS) != before {
                check.find(FindingKind::Room, place, format!("it does not lead back to page {before}"));
            }
            if next == ROOT_PAGE {
                break;
            }
            if page[0] != page_kind::INODES || in_use(&page) == ALL_IN_USE {
                check.find(FindingKind::Room, place, "it is listed as an inode page with room, and is none");
            }
            if !listed.insert(next) {
                check.find(FindingKind::Room, place, "the ring of inode pages with room runs in a circle");
                break;
            }
            before = next;
        }
        for id in check.with_room.difference(&listed).copied().collect::<Vec<_>>() {
            check.find(FindingKind::Room, Place::Page(id), "it has room for inodes and is not listed");
        }
        Ok(())
    }

    fn check_orphans(&mut self, check: &mut Check) -> Result<()> {
        let root = root_page::orphans(&mut self.store)?;
        let mut listed = BTreeSet::new();
        for name in self.check_names(check, 0, root)? {
            let place = Place::Inode(name.ino);
            let links = check.inodes.get(&name.ino).and_then(|seen| seen.stored).map(|stored| stored.1);
            let is_right = match (name.kind, links) {
                (NAMELESS, Some(0)) => name.bytes.is_empty(),
                (CUT, Some(1..)) => name.bytes.len() == 8,
                _ => false,
            };
            if name.key != name.ino || !is_right {
                check.find(FindingKind::Orphans, place, "it is listed as to be freed, and is not");
            }
            listed.insert(name.ino);
        }
        let nameless = |seen: &Seen| seen.stored.is_some_and(|(_, links, _)| links == 0);
        let all: Vec<Ino> = check.inodes.iter().filter(|(_, seen)| nameless(seen)).map(|(ino, _)| *ino).collect();
        for ino in all.into_iter().filter(|ino| !listed.contains(ino)) {
            check.find(FindingKind::Orphans, Place::Inode(ino), "it has no links and is not listed as to be freed");
        }
        Ok(())
    }

    fn check_reach(&mut self, check: &mut Check) -> Result<()> {
        let mut from = Some(0);
        let mut existing = 0;
        while let Some(id) = from.and_then(|id| self.store.next_page(id).transpose()).transpose()? {
            existing += 1;
            if !check.reached.contains(&id) {
                check.find(FindingKind::Reach, Place::Page(id), "it belongs to nothing");
            }
            from = id.checked_add(1);
        }
        if existing < check.reached.len() {
            check.find(FindingKind::Reach, Place::Volume, "pages are in use that do not exist");
        }
        Ok(())
    }

    /// The inode of a place in its page.
    fn check_decode(&mut self, check: &mut Check, ino: Ino) -> Result<Option<Inode>> {
        let Some((id, at)) = place(ino) else { return Ok(None) };
        let decoded = Inode::decode(&*self.store.page(id)?, at);
        Ok(check.damage(FindingKind::Inode, Place::Inode(ino), decoded)?.flatten())
    }
}

/// Names and links of each node agree.
fn check_links(check: &mut Check) {
    for (ino, seen) in std::mem::take(&mut check.inodes) {
        check.inodes.insert(ino, seen);
        let place = Place::Inode(ino);
        let Some((kind, links, parent)) = seen.stored else {
            check.find(FindingKind::Names, place, "a name leads to it, and it is free");
            continue;
        };
        if seen.named.is_some_and(|(named, _)| named != kind) {
            check.find(FindingKind::Names, place, format!("a name says that it is a {:?}", seen.named));
        }
        let is_root = ino == ROOT;
        let expected = match kind {
            FileKind::Directory if is_root || seen.names > 0 => 2 + seen.directories,
            FileKind::Directory => 0,
            _ => seen.names,
        };
        if links != expected {
            check.find(FindingKind::Links, place, format!("it has {links} links, and should have {expected}"));
        }
        if kind == FileKind::Directory && seen.names != u32::from(!is_root && links > 0) {
            check.find(FindingKind::Names, place, format!("a directory has {} names", seen.names));
        }
        if kind == FileKind::Directory && seen.named.is_some_and(|(_, above)| above != parent) {
            check.find(FindingKind::Names, place, format!("its parent is said to be {parent}, and is not"));
        }
    }
}

/// Every directory with a name lies below the root.
fn check_parents(check: &mut Check) {
    let directories: Vec<Ino> = check
        .inodes
        .iter()
        .filter(|(_, seen)| seen.stored.is_some_and(|(kind, links, _)| kind == FileKind::Directory && links > 0))
        .map(|(ino, _)| *ino)
        .collect();
    let parent = |ino| match check.inodes.get(&ino).and_then(|seen| seen.stored) {
        Some((FileKind::Directory, _, parent)) => Some(parent),
        _ => None,
    };
    for ino in apart(&directories, parent) {
        check.find(FindingKind::Names, Place::Inode(ino), "the directory does not lie below the root");
    }
}

/// Those of some directories that do not lie below the root. Each directory is passed once, however many lie below it.
fn apart(directories: &[Ino], parent: impl Fn(Ino) -> Option<Ino>) -> Vec<Ino> {
    let mut is_below: BTreeMap<Ino, bool> = BTreeMap::from([(ROOT, true)]);
    let mut leads_to_root = |ino: Ino| {
        let mut path = Vec::new();
        let mut at = ino;
        while !is_below.contains_key(&at) {
            // A circle ends here.
            is_below.insert(at, false);
            path.push(at);
            match parent(at) {
                Some(above) => at = above,
                None => break,
            }
        }
        let known = is_below[&at];
        is_below.extend(path.into_iter().map(|ino| (ino, known)));
        known
    };
    directories.iter().copied().filter(|ino| !leads_to_root(*ino)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn directories_lie_below_the_root_or_apart() {
        // 2 and 3 below the root, 4 and 5 a circle with 6 below it, 7 below nothing.
        let parents = BTreeMap::from([(2, ROOT), (3, 2), (4, 5), (5, 4), (6, 4), (7, 99)]);
        let directories: Vec<Ino> = [ROOT].into_iter().chain(parents.keys().copied()).collect();
        assert_eq!(apart(&directories, |ino| parents.get(&ino).copied()), [4, 5, 6, 7]);
    }

    /// A chain that begins nowhere was once followed from each directory in it.
    #[test]
    fn many_directories_are_passed_once() {
        let directories: Vec<Ino> = (2..5_000).collect();
        let asked = Cell::new(0);
        let ask = |parent| {
            asked.set(asked.get() + 1);
            parent
        };
        assert!(apart(&directories, |_| ask(Some(ROOT))).is_empty());
        assert_eq!(apart(&directories, |ino| ask((ino > 2).then_some(ino - 1))), directories);
        // What the chain begins with is asked for too.
        assert!(asked.get() <= 2 * directories.len() + 1, "{} times", asked.get());
    }
}
