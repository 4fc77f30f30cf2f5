//! Buffers for reads, used again: a fresh megabyte costs more in page faults than the read itself.

use std::sync::{Mutex, PoisonError};

/// Buffers that nobody needs are kept up to this many: more than threads, since held replies keep theirs.
const KEPT: usize = 16;

/// Buffers that are not in use.
#[derive(Default, Debug)]
pub(crate) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// A buffer of at least `length` bytes, with anything in it.
    pub(crate) fn take(&self, length: usize) -> Vec<u8> {
        let mut buffer = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if buffer.len() < length {
            buffer = vec![0; length];
        }
        buffer
    }

    /// Gives a buffer back.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(buffer);
        }
    }
}
