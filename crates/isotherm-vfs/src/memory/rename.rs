//! rename(2): the one request that holds two directories.

use std::sync::{Arc, MutexGuard, PoisonError, RwLockWriteGuard};

use super::MemoryFileSystem;
use super::node::{Body, Node, State, now};
use crate::{Errno, FileKind, Ino, NewNode, ROOT, RenameMode, Result};

/// The directories of a rename, locked.
struct Places<'a> {
    old: RwLockWriteGuard<'a, State>,
    /// `None` where it is the same.
    new: Option<RwLockWriteGuard<'a, State>>,
    /// Directories from the old one up to the root.
    above_old: Vec<Ino>,
    above_new: Vec<Ino>,
}

impl Places<'_> {
    fn source(&mut self) -> &mut State {
        &mut self.old
    }

    fn target(&mut self) -> &mut State {
        self.new.as_mut().unwrap_or(&mut self.old)
    }
}

impl MemoryFileSystem {
    pub(super) fn move_name(
        &self,
        (parent, name): (Ino, &[u8]),
        (new_parent, new_name): (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let (old, new) = (self.directory(parent)?, self.directory(new_parent)?);
        let mut _turn = None;
        let mut places = self.lock(&old, &new, &mut _turn)?;
        let source = places.source().entries()?.get(name)?;
        let target = places.target().entries()?.find(new_name)?;
        if places.target().links == 0 {
            return Err(Errno::NOENT);
        }
        match (mode, target) {
            (mode, Some(_)) if mode.is_exclusive() => return Err(Errno::EXIST),
            (RenameMode::Exchange, None) => return Err(Errno::NOENT),
            (_, Some(target)) if target.ino == source.ino => return Ok(()),
            _ if places.above_new.contains(&source.ino) => return Err(Errno::INVAL),
            (RenameMode::Exchange, Some(target)) => {
                if places.above_old.contains(&target.ino) {
                    return Err(Errno::INVAL);
                }
                places.source().entries_mut()?.put(name, Arc::clone(&target));
                places.target().entries_mut()?.put(new_name, Arc::clone(&source));
                settle(&source, new_parent);
                settle(&target, parent);
                // Where both are directories, each takes the other's place; in one directory nothing comes or goes.
                match (is_directory(&source), is_directory(&target)) {
                    (true, false) => move_link(&mut places, 1),
                    (false, true) => move_link(&mut places, -1),
                    _ => {}
                }
            }
            (_, target) => {
                // What may fail comes first; where more fails, nobody has seen the whiteout.
                let whiteout = match mode {
                    RenameMode::Whiteout { caller, .. } => {
                        Some(self.nameless(caller, places.source(), NewNode::WHITEOUT, Body::Special)?)
                    }
                    _ => None,
                };
                if let Some(target) = &target {
                    lose_name(&source, target, &places)?;
                }
                places.target().entries_mut()?.put(new_name, Arc::clone(&source));
                match whiteout {
                    Some(whiteout) => {
                        self.nodes.insert(Arc::clone(&whiteout));
                        places.source().entries_mut()?.put(name, whiteout);
                    }
                    None => places.source().entries_mut()?.remove(name),
                }
                if is_directory(&source) {
                    places.source().links -= 1;
                    places.target().links += u32::from(target.is_none());
                }
                settle(&source, new_parent);
                places.source().mark_modified();
                places.target().mark_modified();
                drop(places);
                if let Some(target) = target {
                    self.reap(&target);
                }
                return Ok(());
            }
        }
        places.source().mark_modified();
        places.target().mark_modified();
        Ok(())
    }

    /// Locks the directories of a rename: first the one that the other lies below.
    fn lock<'a>(&'a self, old: &'a Node, new: &'a Node, turn: &mut Option<MutexGuard<'a, ()>>) -> Result<Places<'a>> {
        if old.ino == new.ino {
            return Ok(Places { old: old.write(), new: None, above_old: Vec::new(), above_new: Vec::new() });
        }
        // While it is held no directory comes to lie elsewhere.
        *turn = Some(self.moving.lock().unwrap_or_else(PoisonError::into_inner));
        let (above_old, above_new) = (self.path_up(old.ino)?, self.path_up(new.ino)?);
        let (old, new) = if above_old.contains(&new.ino) {
            let new = new.write();
            (old.write(), new)
        } else {
            (old.write(), new.write())
        };
        Ok(Places { old, new: Some(new), above_old, above_new })
    }

    /// The directories from one up to the root, itself included.
    fn path_up(&self, ino: Ino) -> Result<Vec<Ino>> {
        let mut path = vec![ino];
        let mut at = ino;
        while at != ROOT {
            let directory = self.directory(at)?;
            let state = directory.read();
            if state.links == 0 {
                return Err(Errno::NOENT);
            }
            at = state.entries()?.parent;
            path.push(at);
        }
        Ok(path)
    }
}

fn is_directory(node: &Node) -> bool {
    node.kind == FileKind::Directory
}

/// The node that the new name led to loses it, if it may.
fn lose_name(source: &Node, target: &Node, places: &Places<'_>) -> Result<()> {
    match (is_directory(source), is_directory(target)) {
        (true, false) => return Err(Errno::NOTDIR),
        (false, true) => return Err(Errno::ISDIR),
        // It holds what is moved; and it lies above what is locked.
        (true, true) if places.above_old.contains(&target.ino) => return Err(Errno::NOTEMPTY),
        _ => {}
    }
    target.write().lose_name()
}

/// A node has moved: its time, and its `..`.
fn settle(moved: &Node, to: Ino) {
    let mut state = moved.write();
    state.changed = now();
    if let Ok(entries) = state.entries_mut() {
        entries.parent = to;
    }
}

/// A `..` that led to the old directory leads to the new one, or the other way round for -1.
fn move_link(places: &mut Places<'_>, links: i32) {
    places.source().links = places.source().links.wrapping_add_signed(-links);
    places.target().links = places.target().links.wrapping_add_signed(links);
}
