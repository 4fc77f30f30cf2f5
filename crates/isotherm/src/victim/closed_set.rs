//! The closed blocks as dense arrays, for policies that sample them: all of them, and those of each group of streams that was asked for.

use crate::address::BlockId;
use crate::blocks::{BlockTable, Streams};
use crate::random::Random;

const OUT: u32 = u32::MAX;

/// A set of blocks with O(1) insertion, removal and access by position.
#[derive(Clone, Debug)]
struct ClosedSet {
    members: Vec<u32>,
    positions: Vec<u32>,
}

impl ClosedSet {
    fn new(blocks: u32) -> Self {
        Self { members: Vec::with_capacity(blocks as usize), positions: vec![OUT; blocks as usize] }
    }

    fn insert(&mut self, block: BlockId) {
        self.positions[block.0 as usize] = self.members.len() as u32;
        self.members.push(block.0);
    }

    fn remove(&mut self, block: BlockId) {
        let position = std::mem::replace(&mut self.positions[block.0 as usize], OUT) as usize;
        let last = self.members.pop().expect("a block that is removed was inserted");
        if last != block.0 {
            self.members[position] = last;
            self.positions[last as usize] = position as u32;
        }
    }

    fn draw(&self, random: &mut Random) -> Option<BlockId> {
        let length = self.members.len() as u64;
        (length > 0).then(|| BlockId(self.members[random.below(length) as usize]))
    }

    fn bytes(&self) -> u64 {
        self.positions.len() as u64 * 8
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct ClosedSets {
    all: ClosedSet,
    within: Vec<(Streams, ClosedSet)>,
}

impl ClosedSets {
    pub(super) fn new(blocks: u32) -> Self {
        Self { all: ClosedSet::new(blocks), within: Vec::new() }
    }

    fn sets_of(&mut self, block: BlockId, blocks: &BlockTable) -> impl Iterator<Item = &mut ClosedSet> {
        let stream = blocks.stream(block);
        let within = self.within.iter_mut().filter(move |(streams, _)| streams.contains(stream)).map(|(_, set)| set);
        std::iter::once(&mut self.all).chain(within)
    }

    pub(super) fn insert(&mut self, block: BlockId, blocks: &BlockTable) {
        self.sets_of(block, blocks).for_each(|set| set.insert(block));
    }

    pub(super) fn remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.sets_of(block, blocks).for_each(|set| set.remove(block));
    }

    /// A closed block, all equally likely.
    pub(super) fn draw(&self, random: &mut Random) -> Option<BlockId> {
        self.all.draw(random)
    }

    /// The set that [`ClosedSets::draw_of`] draws from: the closed blocks that `streams` filled.
    pub(super) fn group(&mut self, blocks: &BlockTable, streams: Streams) -> usize {
        self.within.iter().position(|(of, _)| *of == streams).unwrap_or_else(|| {
            let mut set = ClosedSet::new(blocks.blocks());
            blocks.closed_of(streams).for_each(|block| set.insert(block));
            self.within.push((streams, set));
            self.within.len() - 1
        })
    }

    /// A block of a group, all equally likely.
    pub(super) fn draw_of(&self, group: usize, random: &mut Random) -> Option<BlockId> {
        self.within[group].1.draw(random)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.all.bytes() + self.within.iter().map(|(_, set)| set.bytes()).sum::<u64>()
    }
}
