//! A device that is larger than the memory it takes.

use isotherm_fs::device::{Device, DeviceCounters};
use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

const BLOCK: usize = 4096;

/// A block, or the one byte that it consists of.
enum Block {
    Uniform(u8),
    Whole(Box<[u8; BLOCK]>),
}

/// A device in memory on which blocks of one byte repeated take next to nothing. It is read and written by whole blocks.
pub struct Thin {
    length: u64,
    blocks: Mutex<HashMap<u64, Block>>,
}

impl Thin {
    /// A device of `length` bytes, all zeros.
    pub fn new(length: u64) -> Self {
        Self { length, blocks: Mutex::default() }
    }
}

impl Device for Thin {
    fn length(&self) -> u64 {
        self.length
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        assert!(offset.is_multiple_of(BLOCK as u64) && out.len().is_multiple_of(BLOCK));
        let blocks = self.blocks.lock().expect("no panic");
        for (number, out) in (offset / BLOCK as u64..).zip(out.chunks_exact_mut(BLOCK)) {
            match blocks.get(&number) {
                None => out.fill(0),
                Some(Block::Uniform(byte)) => out.fill(*byte),
                Some(Block::Whole(content)) => out.copy_from_slice(&content[..]),
            }
        }
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        assert!(offset.is_multiple_of(BLOCK as u64) && offset + data.len() as u64 <= self.length);
        let (contents, rest) = data.as_chunks::<BLOCK>();
        assert!(rest.is_empty());
        let mut blocks = self.blocks.lock().expect("no panic");
        for (number, content) in (offset / BLOCK as u64..).zip(contents) {
            let is_uniform = content.iter().all(|byte| *byte == content[0]);
            let block = if is_uniform { Block::Uniform(content[0]) } else { Block::Whole(Box::new(*content)) };
            blocks.insert(number, block);
        }
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut blocks = self.blocks.lock().expect("no panic");
        let (first, end) = (offset.div_ceil(BLOCK as u64), (offset + length) / BLOCK as u64);
        (first..end).for_each(|number| drop(blocks.remove(&number)));
        Ok(())
    }
    fn counters(&self) -> Option<DeviceCounters> {
        None
    }
}
