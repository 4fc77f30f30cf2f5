//! The bytes of a log that stands on nothing: no medium, no time, no wear. A block that was never written reads as zeros and
//! takes 16 bytes, a written one its own 4 KiB more. O(1) a block.

use crate::below::{KeepsBytes, Lower};
use crate::options::BLOCK_BYTES;
use isotherm::device::{DeviceError, Observe};

/// See the module's text.
#[derive(Clone, Debug)]
pub struct ByteStore {
    /// The blocks; one that was never written, or was trimmed, is empty.
    blocks: Vec<Box<[u8]>>,
}

impl ByteStore {
    /// A store of `bytes`, rounded up to whole blocks, that reads as zeros.
    pub fn new(bytes: u64) -> Self {
        Self { blocks: vec![Box::default(); bytes.div_ceil(u64::from(BLOCK_BYTES)) as usize] }
    }

    /// The blocks of a range of whole blocks.
    fn range(&mut self, offset: u64, length: usize) -> &mut [Box<[u8]>] {
        let block = BLOCK_BYTES as usize;
        assert!(offset.is_multiple_of(block as u64) && length.is_multiple_of(block), "a log asks for whole blocks");
        let from = (offset / block as u64) as usize;
        &mut self.blocks[from..from + length / block]
    }
}

impl Lower for ByteStore {
    fn observed(&self) -> Option<&dyn Observe> {
        None
    }
    fn observed_mut(&mut self) -> Option<&mut dyn Observe> {
        None
    }
    fn idle(&mut self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl KeepsBytes for ByteStore {
    fn arrive(&mut self, _: u64) {}
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        let blocks = self.range(offset, out.len());
        for (block, out) in blocks.iter().zip(out.chunks_mut(BLOCK_BYTES as usize)) {
            if block.is_empty() { out.fill(0) } else { out.copy_from_slice(block) }
        }
        Ok(())
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        for (block, data) in self.range(offset, data.len()).iter_mut().zip(data.chunks(BLOCK_BYTES as usize)) {
            *block = data.into();
        }
        Ok(())
    }
    fn trim(&mut self, offset: u64, length: u64) -> Result<(), DeviceError> {
        self.range(offset, length as usize).fill(Box::default());
        Ok(())
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}
