//! The nodes by number, in shards so that requests for different nodes seldom meet.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::node::Node;
use crate::Ino;

/// A power of two, several times the threads that a server has.
const SHARDS: usize = 64;

type Shard = RwLock<HashMap<Ino, Arc<Node>>>;

/// The nodes by number.
#[derive(Debug)]
pub(super) struct Table {
    shards: Vec<Shard>,
}

impl Default for Table {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }
}

impl Table {
    fn shard(&self, ino: Ino) -> &Shard {
        &self.shards[ino as usize % SHARDS]
    }

    pub(super) fn get(&self, ino: Ino) -> Option<Arc<Node>> {
        self.shard(ino).read().unwrap_or_else(PoisonError::into_inner).get(&ino).cloned()
    }

    pub(super) fn insert(&self, node: Arc<Node>) {
        self.shard(node.ino).write().unwrap_or_else(PoisonError::into_inner).insert(node.ino, node);
    }

    pub(super) fn remove(&self, ino: Ino) {
        let gone = self.shard(ino).write().unwrap_or_else(PoisonError::into_inner).remove(&ino);
        // What a large file held is freed here, with nothing locked.
        drop(gone);
    }
}
