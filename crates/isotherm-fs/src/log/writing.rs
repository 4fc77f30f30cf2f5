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
    /// Its number among the writes of the log.
    pub sequence: u64,
    /// The summary.
    pub summary: Vec<u8>,
    /// The blocks after it.
    pub blocks: Vec<Arc<Page>>,
}

/// Blocks handed to the device at a time, the summary counting as one: a mebibyte.
const CHUNK_PARTS: usize = 256;

impl Job {
    /// Carries it out.
    ///
    /// # Errors
    /// The device's.
    pub fn perform(&self, device: &dyn Device) -> io::Result<()> {
        let mut offset = u64::from(self.position) * BLOCK_BYTES as u64;
        let parts: Vec<&[u8]> =
            std::iter::once(&self.summary[..]).chain(self.blocks.iter().map(|block| &block[..])).collect();
        for parts in parts.chunks(CHUNK_PARTS) {
            device.write_parts(offset, parts)?;
            offset += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        }
        Ok(())
    }

    /// Bytes of the device that it covers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.summary.len() + self.blocks.len() * BLOCK_BYTES
    }
}
