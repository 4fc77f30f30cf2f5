//! Directories: one in which anything is wrong is written anew, of the names that can be read and lead somewhere.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_vfs::{FileKind, Ino, ROOT};

use super::super::super::hash::DISAMBIGUATOR_BITS;
use super::super::super::inode::{Inode, format_bits};
use super::super::super::name_page::{self as pages, Record};
use super::super::super::name_tree::NameTree;
use super::super::super::orphans::{CUT, NAMELESS};
use super::super::super::root_page;
use super::super::super::{Result, Tree, directory};
use super::super::names::Name;
use super::Mending;
use super::nodes::readable;
use crate::store::{PageId, Purpose, Store};

/// Names that one transaction inserts.
const NAMES_AT_ONCE: usize = 128;

/// Names of a tree, as far as they can be read.
#[derive(Default)]
struct Walk {
    names: Vec<Name>,
    pages: BTreeSet<PageId>,
    is_damaged: bool,
}

impl<S: Store> Tree<S> {
    /// Mends all directories.
    pub(super) fn mend_directories(&mut self, mending: &mut Mending) -> Result<()> {
        let mut kinds: BTreeMap<Ino, FileKind> = BTreeMap::new();
        for id in self.inode_pages()? {
            for ino in (1..16).map(|index| u64::from(id) * 16 + index) {
                if let Ok(inode) = self.stored_inode(ino) {
                    kinds.insert(ino, inode.kind);
                }
            }
        }
        // A directory has one name.
        let mut named = BTreeSet::from([ROOT]);
        for ino in kinds.iter().filter(|(_, kind)| **kind == FileKind::Directory).map(|(ino, _)| *ino) {
            self.mend_directory(mending, &kinds, &mut named, ino)?;
        }
        Ok(())
    }

    fn mend_directory(
        &mut self,
        mending: &mut Mending,
        kinds: &BTreeMap<Ino, FileKind>,
        named: &mut BTreeSet<Ino>,
        ino: Ino,
    ) -> Result<()> {
        let mut inode = self.stored_inode(ino)?;
        let mut walk = self.read_names(mending, ino, inode.root)?;
        let before = walk.names.len();
        let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut is_sorted = true;
        let mut last = 0;
        let hash = self.hash;
        walk.names.retain_mut(|name| {
            let kind = kinds.get(&name.ino).copied();
            let text = name.bytes.escape_ascii().to_string();
            let Some(kind) = kind.filter(|_| directory::check_name(&name.bytes).is_ok()) else {
                mending.act(ino, format!("the name {text} led to inode {}, which there is not", name.ino));
                return false;
            };
            if kind == FileKind::Directory && !named.insert(name.ino) {
                mending.act(ino, format!("the name {text} was another name of directory {}", name.ino));
                return false;
            }
            if !known.insert(name.bytes.clone()) {
                mending.act(ino, format!("the name {text} was there twice, the second time for inode {}", name.ino));
                return false;
            }
            let mode = (format_bits(kind) >> 12) as u8;
            let low = (1 << DISAMBIGUATOR_BITS) - 1;
            is_sorted &= name.key > last && name.key & !low == hash.base(&name.bytes) && name.kind == mode;
            last = name.key;
            name.kind = mode;
            true
        });
        let is_whole = !walk.is_damaged && is_sorted && walk.names.len() == before;
        if !is_whole {
            if walk.is_damaged {
                mending.act(ino, "part of the directory was lost");
            }
            inode.root = self.write_names(ino, walk.names.as_mut_slice())?;
        }
        inode.size = walk.names.len() as u64;
        self.save_mended(ino, &inode)?;
        let now = self.read_names(&Mending::default(), ino, inode.root)?;
        mending.reached.extend(now.pages);
        Ok(())
    }

    /// A new tree of names; the old one stays until the inode leads to this one.
    fn write_names(&mut self, owner: Ino, names: &mut [Name]) -> Result<PageId> {
        let low = (1u64 << DISAMBIGUATOR_BITS) - 1;
        let mut keys = BTreeSet::new();
        // Names keep their keys, which are cookies, where they can.
        for name in names.iter_mut() {
            let base = if owner == 0 { name.ino } else { self.hash.base(&name.bytes) };
            if owner == 0 || name.key & !low != base || keys.contains(&name.key) {
                let free = (base..=base + low).find(|key| !keys.contains(key));
                name.key = free.unwrap_or(base);
            }
            keys.insert(name.key);
        }
        let mut root = 0;
        for some in names.chunks(NAMES_AT_ONCE) {
            root = self.transaction(Purpose::Shrink, |tree| {
                let mut built = NameTree { store: &mut tree.store, root, owner };
                for name in some {
                    built.insert(&Record { key: name.key, ino: name.ino, kind: name.kind, name: &name.bytes })?;
                }
                Ok(built.root)
            })?;
        }
        Ok(root)
    }

    fn read_names(&mut self, mending: &Mending, owner: Ino, root: PageId) -> Result<Walk> {
        let mut walk = Walk::default();
        if root != 0 {
            self.read_names_below(mending, &mut walk, owner, root, None)?;
        }
        Ok(walk)
    }

    fn read_names_below(
        &mut self,
        mending: &Mending,
        walk: &mut Walk,
        owner: Ino,
        id: PageId,
        level: Option<u8>,
    ) -> Result<()> {
        let page = readable(self.store.page(id).map_err(Into::into))?;
        let page = page.filter(|page| {
            pages::check(page).is_ok()
                && pages::owner(page) == owner
                && level.is_none_or(|level| level == pages::level(page))
                && pages::count(page) > 0
        });
        let Some(page) = page.filter(|_| !mending.reached.contains(&id) && walk.pages.insert(id)) else {
            walk.is_damaged = true;
            return Ok(());
        };
        for i in 0..pages::count(&page) {
            if pages::level(&page) == 0 {
                let Record { key, ino, kind, name } = pages::record(&page, i);
                walk.names.push(Name { key, ino, kind, bytes: name.to_vec() });
                continue;
            }
            let (low, child) = pages::child(&page, i);
            let first = walk.names.len();
            self.read_names_below(mending, walk, owner, child, Some(pages::level(&page) - 1))?;
            let high = if i + 1 < pages::count(&page) { pages::child(&page, i + 1).0 } else { u64::MAX };
            let low = if i == 0 { 0 } else { low };
            walk.is_damaged |= low >= high || walk.names[first..].iter().any(|name| !(low..high).contains(&name.key));
        }
        Ok(())
    }

    /// Takes out of the list of what is to be freed what is wrong. Where the list is damaged it begins anew: nodes without a name are found again
    /// ([`Tree::list_deleted`]), a portion at a time.
    pub(super) fn mend_orphans(&mut self) -> Result<()> {
        let root = root_page::orphans(&mut self.store)?;
        let walk = self.read_names(&Mending::default(), 0, root)?;
        let mut listed: BTreeMap<Ino, Name> = BTreeMap::new();
        let mut wrong = Vec::new();
        let mut is_damaged = walk.is_damaged;
        let mut last = None;
        for name in walk.names {
            is_damaged |= last.is_some_and(|last| last >= name.key);
            last = Some(name.key);
            let inode: Option<Inode> = readable(self.stored_inode(name.ino))?;
            let is_right = name.key == name.ino
                && match (name.kind, inode) {
                    (NAMELESS, Some(inode)) => inode.links == 0 && name.bytes.is_empty(),
                    (CUT, Some(inode)) => inode.links > 0 && name.bytes.len() == 8 && inode.kind == FileKind::Regular,
                    _ => false,
                };
            if !is_right {
                wrong.push(name.key);
            } else if name.kind == CUT {
                listed.insert(name.ino, name);
            }
        }
        if is_damaged {
            let mut cut: Vec<Name> = listed.into_values().collect();
            let root = self.write_names(0, &mut cut)?;
            return self.transaction(Purpose::Shrink, |tree| root_page::set_orphans(&mut tree.store, root));
        }
        wrong.into_iter().try_for_each(|key| self.transaction(Purpose::Shrink, |tree| tree.delist(key)))
    }
}
