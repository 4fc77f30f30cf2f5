//! Writes of the log: planned under the lock, carried out without it.

use crate::device::Device;
use crate::store::{BLOCK_BYTES, Page};
use std::io;
use std::sync::Arc;

/// A planned write: consecutive blocks of the device.
#[derive(Clone, Debug)]
#[must_use]
pub struct Job {
    /// Its first block.
    pub position: u32,
    /// The summary.
    pub summary: Vec<u8>,
    /// The blocks after it.
    pub blocks: Vec<Arc<Page>>,
}

/// Bytes handed to the device at a time.
const CHUNK_BYTES: usize = 1 << 20;

impl Job {
    /// Carries it out.
    ///
    /// # Errors
    /// The device's.
    pub fn perform<D: Device>(&self, device: &D) -> io::Result<()> {
        let mut offset = u64::from(self.position) * BLOCK_BYTES as u64;
        let total = self.bytes();
        let mut chunk = Vec::with_capacity(total.min(CHUNK_BYTES + BLOCK_BYTES));
        chunk.extend_from_slice(&self.summary);
        for block in &self.blocks {
            if chunk.len() + BLOCK_BYTES > CHUNK_BYTES {
                device.write(offset, &chunk)?;
                offset += chunk.len() as u64;
                chunk.clear();
            }
            chunk.extend_from_slice(&**block);
        }
        if chunk.is_empty() { Ok(()) } else { device.write(offset, &chunk) }
    }

    /// Bytes of the device that it covers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.summary.len() + self.blocks.len() * BLOCK_BYTES
    }
}
