//! A node: what never changes of it, who holds it, and behind a lock of its own all that changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use super::content::{BLOCK_BYTES, Content, FILE_BYTES_MAX};
use super::entries::Entries;
use super::space::Space;
use crate::{Attributes, Change, Errno, FileKind, Ino, NewTime, Result, SetXattr, Time, acl};

/// Bytes of all extended attributes of a node, 5 for each included.
const XATTRS_BYTES_MAX: usize = 128 << 10;
const XATTR_BYTES_MAX: usize = 65_536;
const DAY_SECONDS: i64 = 86_400;

/// Names and values of extended attributes.
pub(super) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) ino: Ino,
    pub(super) kind: FileKind,
    pub(super) device: u32,
    /// Answers that named it and were not given back.
    references: AtomicU64,
    opens: AtomicU64,
    state: RwLock<State>,
    space: Arc<Space>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) permissions: u16,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) accessed: Time,
    pub(super) modified: Time,
    pub(super) changed: Time,
    pub(super) xattrs: Xattrs,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    File(Content),
    Directory(Entries),
    Symlink(Vec<u8>),
    Special,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.space.give_inode();
    }
}

/// The time now.
pub(super) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

impl Node {
    /// A node that has taken its inode of `space`.
    pub(super) fn new(ino: Ino, kind: FileKind, device: u32, state: State, space: Arc<Space>) -> Self {
        let state = RwLock::new(state);
        Self { ino, kind, device, references: AtomicU64::new(0), opens: AtomicU64::new(0), state, space }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn refer(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.opens.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn forget(&self, references: u64) {
        let less = |now: u64| Some(now.saturating_sub(references));
        // The closure never refuses.
        let _ = self.references.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    pub(super) fn close(&self) {
        let _ = self.opens.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(now.saturating_sub(1)));
    }

    pub(super) fn is_held(&self) -> bool {
        self.references.load(Ordering::Acquire) + self.opens.load(Ordering::Acquire) > 0
    }

    pub(super) fn attributes(&self) -> Attributes {
        self.attributes_of(&self.read())
    }

    pub(super) fn attributes_of(&self, state: &State) -> Attributes {
        let (size, blocks) = match &state.body {
            Body::File(content) => (content.size(), content.blocks()),
            Body::Directory(entries) => (entries.len() as u64, 0),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Special => (0, 0),
        };
        Attributes {
            ino: self.ino,
            generation: 0,
            kind: self.kind,
            permissions: state.permissions,
            links: state.links,
            uid: state.uid,
            gid: state.gid,
            device: self.device,
            size,
            blocks_512: blocks * (BLOCK_BYTES / 512),
            accessed: state.accessed,
            modified: state.modified,
            changed: state.changed,
        }
    }

    /// Sets the time of access where it is older than the last change, or than a day (the kernel's `relatime`). Returns whether it did.
    pub(super) fn touch(&self, state: RwLockReadGuard<'_, State>) -> bool {
        let now = now();
        let is_stale = state.accessed <= state.modified
            || state.accessed <= state.changed
            || now.seconds - state.accessed.seconds >= DAY_SECONDS;
        drop(state);
        if is_stale {
            self.write().accessed = now;
        }
        is_stale
    }
}

impl State {
    pub(super) fn content(&self) -> Result<&Content> {
        match &self.body {
            Body::File(content) => Ok(content),
            Body::Directory(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn content_mut(&mut self) -> Result<&mut Content> {
        match &mut self.body {
            Body::File(content) => Ok(content),
            Body::Directory(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn entries(&self) -> Result<&Entries> {
        match &self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn entries_mut(&mut self) -> Result<&mut Entries> {
        match &mut self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Content or names have changed.
    pub(super) fn mark_modified(&mut self) {
        self.modified = now();
        self.changed = self.modified;
    }

    /// A name of the node goes; a directory's one name only if it is empty.
    pub(super) fn lose_name(&mut self) -> Result<()> {
        match &self.body {
            Body::Directory(entries) if entries.len() > 0 => return Err(Errno::NOTEMPTY),
            Body::Directory(_) => self.links = 0,
            _ => self.links -= 1,
        }
        self.changed = now();
        Ok(())
    }

    pub(super) fn kill_privileges(&mut self) {
        if !matches!(self.body, Body::Directory(_)) {
            let group = if self.permissions & 0o010 != 0 { 0o2000 } else { 0 };
            self.permissions &= !(0o4000 | group);
            self.xattrs.remove(&b"security.capability"[..]);
        }
    }

    pub(super) fn change(&mut self, change: &Change) -> Result<()> {
        if *change == Change::default() {
            return Ok(());
        }
        if let Some(size) = change.size {
            let content = self.content_mut()?;
            if size > FILE_BYTES_MAX {
                return Err(Errno::FBIG);
            }
            content.resize(size);
        }
        let now = now();
        let time = |new: NewTime| match new {
            NewTime::Now => now,
            NewTime::At(time) => time,
        };
        if change.kills_privileges {
            self.kill_privileges();
        }
        if let Some(permissions) = change.permissions {
            self.permissions = permissions & 0o7777;
            if let Some(access) = self.xattrs.get_mut(acl::ACCESS) {
                *access = acl::chmod(access, self.permissions);
            }
        }
        self.uid = change.uid.unwrap_or(self.uid);
        self.gid = change.gid.unwrap_or(self.gid);
        self.accessed = change.accessed.map_or(self.accessed, time);
        if change.size.is_some() {
            self.modified = now;
        }
        self.modified = change.modified.map_or(self.modified, time);
        self.changed = now;
        Ok(())
    }

    pub(super) fn set_xattr(&mut self, is_member: bool, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        if name.is_empty() || name.len() > 255 {
            return Err(Errno::RANGE);
        }
        if value.len() > XATTR_BYTES_MAX {
            return Err(Errno::TOOBIG);
        }
        match (how, self.xattrs.contains_key(name)) {
            (SetXattr::Create, true) => return Err(Errno::EXIST),
            (SetXattr::Replace, false) => return Err(Errno::NODATA),
            _ => {}
        }
        let mut permissions = self.permissions;
        let value = if name == acl::ACCESS {
            let (mode, access) = self.access(value)?;
            permissions = if is_member { mode } else { mode & !0o2000 };
            access
        } else if name == acl::DEFAULT {
            self.default(value)?
        } else if name.starts_with(b"system.") {
            return Err(Errno::OPNOTSUPP);
        } else {
            Some(value.to_vec())
        };
        if let Some(value) = value {
            let others = self.xattrs.iter().filter(|(other, _)| *other != name);
            let bytes: usize = others.map(|(name, value)| 5 + name.len() + value.len()).sum();
            if bytes + 5 + name.len() + value.len() > XATTRS_BYTES_MAX {
                return Err(Errno::NOSPC);
            }
            self.xattrs.insert(name.to_vec(), value);
        } else {
            self.xattrs.remove(name);
        }
        self.permissions = permissions;
        self.changed = now();
        Ok(())
    }

    /// The permissions that an access ACL sets, and the ACL where they do not say it all.
    fn access(&self, value: &[u8]) -> Result<(u16, Option<Vec<u8>>)> {
        match self.body {
            Body::Symlink(_) => Err(Errno::OPNOTSUPP),
            _ if acl::is_empty(value) => Ok((self.permissions, None)),
            _ => acl::mode_of(value, self.permissions),
        }
    }

    fn default(&self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.body {
            Body::Directory(_) if acl::is_empty(value) => Ok(None),
            Body::Directory(_) => acl::check(value).map(|()| Some(value.to_vec())),
            _ => Err(Errno::ACCESS),
        }
    }
}
