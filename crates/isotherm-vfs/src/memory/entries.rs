//! The names in a directory: found by name, listed by cookies that stay as long as the name does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::node::Node;
use crate::{Errno, Ino, Result};

/// Cookies of `.` and `..`; names follow.
pub(super) const DOT: u64 = 1;
pub(super) const DOT_DOT: u64 = 2;

#[derive(Debug)]
struct Entry {
    node: Arc<Node>,
    cookie: u64,
}

/// The names in a directory.
#[derive(Debug)]
pub(super) struct Entries {
    /// Where `..` leads.
    pub(super) parent: Ino,
    by_name: HashMap<Arc<[u8]>, Entry>,
    by_cookie: BTreeMap<u64, Arc<[u8]>>,
    last_cookie: u64,
}

impl Entries {
    pub(super) fn new(parent: Ino) -> Self {
        Self { parent, by_name: HashMap::new(), by_cookie: BTreeMap::new(), last_cookie: DOT_DOT }
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<Option<Arc<Node>>> {
        check_name(name)?;
        Ok(self.by_name.get(name).map(|entry| Arc::clone(&entry.node)))
    }

    /// The node of a name that must be there.
    pub(super) fn get(&self, name: &[u8]) -> Result<Arc<Node>> {
        self.find(name)?.ok_or(Errno::NOENT)
    }

    /// Lets a name lead to a node. A name that is there keeps its cookie.
    pub(super) fn put(&mut self, name: &[u8], node: Arc<Node>) {
        if let Some(entry) = self.by_name.get_mut(name) {
            entry.node = node;
            return;
        }
        let name: Arc<[u8]> = name.into();
        self.last_cookie += 1;
        self.by_cookie.insert(self.last_cookie, Arc::clone(&name));
        self.by_name.insert(name, Entry { node, cookie: self.last_cookie });
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(entry) = self.by_name.remove(name) {
            self.by_cookie.remove(&entry.cookie);
        }
    }

    /// Names behind a cookie, with their own.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], &Arc<Node>)> {
        let names = self.by_cookie.range(cookie.saturating_add(1)..);
        names.map(|(cookie, name)| (*cookie, &**name, &self.by_name[name].node))
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    match name {
        [] => Err(Errno::NOENT),
        b"." | b".." => Err(Errno::INVAL),
        _ if name.len() > 255 => Err(Errno::NAMETOOLONG),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Errno::INVAL),
        _ => Ok(()),
    }
}
