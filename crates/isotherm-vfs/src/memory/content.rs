//! What a regular file holds: blocks that are there, and holes between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::space::Space;
use crate::{Allocation, Errno, Result, SeekFrom};

/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// The largest file: offsets of the kernel are signed.
pub(super) const FILE_BYTES_MAX: u64 = i64::MAX as u64;

#[derive(Debug)]
enum Block {
    Data(Box<[u8]>),
    /// Zeros; its space is set aside.
    Reserved,
}

/// The bytes of a file. What lies behind its end is zeros in every block.
#[derive(Debug)]
pub(super) struct Content {
    size: u64,
    blocks: BTreeMap<u64, Block>,
    space: Arc<Space>,
}

impl Drop for Content {
    fn drop(&mut self) {
        self.space.give_blocks(self.blocks());
    }
}

impl Content {
    pub(super) fn new(space: Arc<Space>) -> Self {
        Self { size: 0, blocks: BTreeMap::new(), space }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Blocks that take space.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn read(&self, offset: u64, length: u32, out: &mut Vec<u8>) {
        let end = offset.saturating_add(u64::from(length)).min(self.size);
        if offset >= end {
            return;
        }
        out.reserve((end - offset) as usize);
        let zeros = |out: &mut Vec<u8>, until: u64| out.resize((until - offset) as usize, 0);
        for (index, block) in self.blocks.range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)) {
            if let Block::Data(bytes) = block {
                let start = index * BLOCK_BYTES;
                zeros(out, start.max(offset));
                let part = (offset.max(start) - start) as usize..(end.min(start + BLOCK_BYTES) - start) as usize;
                out.extend_from_slice(&bytes[part]);
            }
        }
        zeros(out, end);
    }

    /// Writes all of `data`, or nothing.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let end = checked_end(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.take_missing(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES))?;
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let first = (at % BLOCK_BYTES) as usize;
            let (part, behind) = rest.split_at(rest.len().min(BLOCK_BYTES as usize - first));
            self.put(at / BLOCK_BYTES, first, part);
            at += part.len() as u64;
            rest = behind;
        }
        self.size = self.size.max(end);
        Ok(())
    }

    /// Takes space for the blocks of a range that take none yet; for all of them, or for none.
    fn take_missing(&self, range: Range<u64>) -> Result<()> {
        let there = self.blocks.range(range.clone()).count() as u64;
        self.space.take_blocks(range.end - range.start - there)
    }

    /// Writes a part of a block that has its space.
    fn put(&mut self, index: u64, first: usize, part: &[u8]) {
        match self.blocks.get_mut(&index) {
            Some(Block::Data(bytes)) => bytes[first..first + part.len()].copy_from_slice(part),
            _ if part.len() as u64 == BLOCK_BYTES => drop(self.blocks.insert(index, Block::Data(part.into()))),
            _ => {
                let mut bytes = vec![0; BLOCK_BYTES as usize].into_boxed_slice();
                bytes[first..first + part.len()].copy_from_slice(part);
                self.blocks.insert(index, Block::Data(bytes));
            }
        }
    }

    pub(super) fn resize(&mut self, size: u64) {
        // Also what was set aside behind the end goes, as truncate(2) has it.
        if size <= self.size {
            let gone = self.blocks.split_off(&size.div_ceil(BLOCK_BYTES));
            self.space.give_blocks(gone.len() as u64);
            self.zero_part(size, size.next_multiple_of(BLOCK_BYTES));
        }
        self.size = size;
    }

    pub(super) fn allocate(&mut self, offset: u64, length: u64, how: Allocation) -> Result<()> {
        if length == 0 {
            return Err(Errno::INVAL);
        }
        let end = checked_end(offset, length)?;
        let keep_size = match how {
            Allocation::PunchHole => {
                self.punch(offset, if end >= self.size { end.next_multiple_of(BLOCK_BYTES) } else { end });
                return Ok(());
            }
            Allocation::Reserve { keep_size } => {
                self.reserve(offset, end)?;
                keep_size
            }
            Allocation::ZeroRange { keep_size } => {
                self.reserve(offset, end)?;
                self.punch(offset, end);
                self.reserve(offset, end)?;
                keep_size
            }
        };
        if !keep_size {
            self.size = self.size.max(end);
        }
        Ok(())
    }

    fn reserve(&mut self, offset: u64, end: u64) -> Result<()> {
        let range = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        self.take_missing(range.clone())?;
        for index in range {
            self.blocks.entry(index).or_insert(Block::Reserved);
        }
        Ok(())
    }

    /// Makes a range zeros: whole blocks become holes.
    fn punch(&mut self, offset: u64, end: u64) {
        let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first > last {
            return self.zero_part(offset, end);
        }
        self.zero_part(offset, first * BLOCK_BYTES);
        self.zero_part(last * BLOCK_BYTES, end);
        let gone: Vec<u64> = self.blocks.range(first..last).map(|(index, _)| *index).collect();
        for index in &gone {
            self.blocks.remove(index);
        }
        self.space.give_blocks(gone.len() as u64);
    }

    /// Zeros a range within a block.
    fn zero_part(&mut self, from: u64, until: u64) {
        if from == until {
            return;
        }
        if let Some(Block::Data(bytes)) = self.blocks.get_mut(&(from / BLOCK_BYTES)) {
            let first = (from % BLOCK_BYTES) as usize;
            bytes[first..first + (until - from) as usize].fill(0);
        }
    }

    pub(super) fn seek(&self, offset: u64, to: SeekFrom) -> Result<u64> {
        if offset >= self.size {
            return Err(Errno::NXIO);
        }
        let first = offset / BLOCK_BYTES;
        let blocks = self.blocks.range(first..self.size.div_ceil(BLOCK_BYTES));
        let mut data = blocks.filter(|(_, block)| matches!(block, Block::Data(_))).map(|(index, _)| *index);
        match to {
            SeekFrom::Data => data.next().map(|index| offset.max(index * BLOCK_BYTES)).ok_or(Errno::NXIO),
            SeekFrom::Hole => {
                let hole = (first..).find(|index| data.next() != Some(*index)).expect("files end");
                Ok((hole * BLOCK_BYTES).clamp(offset, self.size))
            }
        }
    }
}

/// Where a range ends; `EFBIG` where no file reaches.
pub(super) fn checked_end(offset: u64, length: u64) -> Result<u64> {
    offset.checked_add(length).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(blocks: u64) -> Content {
        Content::new(Arc::new(Space::new(blocks, 1)))
    }

    fn all(content: &Content) -> Vec<u8> {
        let mut out = Vec::new();
        content.read(0, u32::MAX, &mut out);
        out
    }

    #[test]
    fn holes_take_no_space_and_read_as_zeros() {
        let mut file = content(4);
        file.write(3 * BLOCK_BYTES + 1, b"end").unwrap();
        assert_eq!((file.size(), file.blocks()), (3 * BLOCK_BYTES + 4, 1));
        let bytes = all(&file);
        assert!(bytes[..3 * 4096 + 1].iter().all(|byte| *byte == 0));
        assert_eq!(&bytes[3 * 4096 + 1..], b"end");
        assert_eq!(file.seek(5, SeekFrom::Data), Ok(3 * BLOCK_BYTES));
        assert_eq!(file.seek(3 * BLOCK_BYTES + 2, SeekFrom::Data), Ok(3 * BLOCK_BYTES + 2));
        assert_eq!(file.seek(5, SeekFrom::Hole), Ok(5));
        assert_eq!(file.seek(3 * BLOCK_BYTES, SeekFrom::Hole), Ok(3 * BLOCK_BYTES + 4));
        assert_eq!(file.seek(3 * BLOCK_BYTES + 4, SeekFrom::Hole), Err(Errno::NXIO));
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let mut file = content(4);
        file.write(0, &[7; 5000]).unwrap();
        file.resize(10);
        file.resize(5000);
        assert_eq!(all(&file)[..10], [7; 10]);
        assert!(all(&file)[10..].iter().all(|byte| *byte == 0));
        assert_eq!(file.blocks(), 1);
    }

    #[test]
    fn without_space_nothing_changes() {
        let mut file = content(3);
        file.write(0, &[1; 4096]).unwrap();
        assert_eq!(file.write(100, &[2; 3 * 4096]), Err(Errno::NOSPC));
        assert_eq!(all(&file), [1; 4096]);
        assert_eq!(file.allocate(0, 4 * BLOCK_BYTES, Allocation::Reserve { keep_size: false }), Err(Errno::NOSPC));
        assert_eq!((file.size(), file.blocks()), (4096, 1));
        file.allocate(0, 3 * BLOCK_BYTES, Allocation::Reserve { keep_size: true }).unwrap();
        assert_eq!((file.size(), file.blocks()), (4096, 3));
        file.allocate(1, 3 * BLOCK_BYTES - 1, Allocation::PunchHole).unwrap();
        assert_eq!((file.size(), file.blocks()), (4096, 1));
        assert_eq!(all(&file)[..2], [1, 0]);
        file.write(BLOCK_BYTES, &[1; 8192]).unwrap();
        assert_eq!(file.blocks(), 3);
        file.allocate(0, 2 * BLOCK_BYTES, Allocation::ZeroRange { keep_size: false }).unwrap();
        assert_eq!(file.blocks(), 3);
        assert_eq!(file.seek(0, SeekFrom::Data), Ok(2 * BLOCK_BYTES));
    }
}
