//! The closed blocks as a dense array, for policies that sample them.

use crate::address::BlockId;
use crate::blocks::{BlockTable, Streams};
use crate::random::Random;

/// Draws until a block of the streams that are asked for is looked for among all: streams that have a hundredth of the blocks
/// are found within these nine times in ten.
const DRAWS_MAX: u32 = 256;

const OUT: u32 = u32::MAX;

/// A set of blocks with O(1) insertion, removal and access by position.
#[derive(Clone, Debug)]
pub(super) struct ClosedSet {
    members: Vec<u32>,
    positions: Vec<u32>,
}

impl ClosedSet {
    pub(super) fn new(blocks: u32) -> Self {
        Self { members: Vec::with_capacity(blocks as usize), positions: vec![OUT; blocks as usize] }
    }

    pub(super) fn insert(&mut self, block: BlockId) {
        self.positions[block.0 as usize] = self.members.len() as u32;
        self.members.push(block.0);
    }

    pub(super) fn remove(&mut self, block: BlockId) {
        let position = std::mem::replace(&mut self.positions[block.0 as usize], OUT) as usize;
        let last = self.members.pop().expect("a block that is removed was inserted");
        if last != block.0 {
            self.members[position] = last;
            self.positions[last as usize] = position as u32;
        }
    }

    pub(super) fn length(&self) -> usize {
        self.members.len()
    }

    pub(super) fn at(&self, position: usize) -> BlockId {
        BlockId(self.members[position])
    }

    /// A member that `streams` filled, all equally likely.
    pub(super) fn draw(&self, blocks: &BlockTable, streams: Streams, random: &mut Random) -> Option<BlockId> {
        let length = self.length() as u64;
        for _ in 0..DRAWS_MAX.min(self.length() as u32) {
            let block = self.at(random.below(length) as usize);
            if streams.contains(blocks.stream(block)) {
                return Some(block);
            }
        }
        let count = blocks.closed_of(streams).count() as u64;
        (count > 0).then(|| blocks.closed_of(streams).nth(random.below(count) as usize)).flatten()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.positions.len() as u64 * 8
    }
}
