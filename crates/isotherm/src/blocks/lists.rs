//! Doubly linked lists of blocks, threaded through two arrays: eight bytes a block, every step O(1).

use crate::address::BlockId;

const END: u32 = u32::MAX;
/// Mark of a block that is in no list; distinct from `END`, the link of a list's first and last block.
const OUT: u32 = u32::MAX - 1;

/// Several lists over one set of blocks; a block is in at most one.
#[derive(Clone, Debug)]
pub(crate) struct BlockLists {
    next: Vec<u32>,
    previous: Vec<u32>,
    heads: Vec<u32>,
    tails: Vec<u32>,
    length: usize,
}

impl BlockLists {
    /// Empty lists over `blocks` and those that are added beyond.
    pub(crate) fn new(blocks: u32, lists: usize) -> Self {
        let blocks = blocks as usize;
        Self {
            next: vec![OUT; blocks],
            previous: vec![OUT; blocks],
            heads: vec![END; lists],
            tails: vec![END; lists],
            length: 0,
        }
    }

    /// Blocks in all lists together.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn contains(&self, block: BlockId) -> bool {
        self.next.get(block.0 as usize).is_some_and(|next| *next != OUT)
    }

    pub(crate) fn head(&self, list: usize) -> Option<BlockId> {
        Some(self.heads[list]).filter(|b| *b != END).map(BlockId)
    }

    /// Appends a block that is in no list.
    pub(crate) fn push_back(&mut self, list: usize, block: BlockId) {
        debug_assert!(!self.contains(block));
        let blocks = self.next.len().max(block.0 as usize + 1);
        if blocks > self.next.len() {
            self.next.resize(blocks, OUT);
            self.previous.resize(blocks, OUT);
        }
        let tail = std::mem::replace(&mut self.tails[list], block.0);
        self.next[block.0 as usize] = END;
        self.previous[block.0 as usize] = tail;
        match tail {
            END => self.heads[list] = block.0,
            tail => self.next[tail as usize] = block.0,
        }
        self.length += 1;
    }

    /// Takes a block out of `list`, where it is.
    pub(crate) fn remove(&mut self, list: usize, block: BlockId) {
        debug_assert!(self.contains(block));
        let next = std::mem::replace(&mut self.next[block.0 as usize], OUT);
        let previous = std::mem::replace(&mut self.previous[block.0 as usize], OUT);
        match previous {
            END => self.heads[list] = next,
            previous => self.next[previous as usize] = next,
        }
        match next {
            END => self.tails[list] = previous,
            next => self.previous[next as usize] = previous,
        }
        self.length -= 1;
    }

    /// Empties every list.
    pub(crate) fn clear(&mut self) {
        self.next.fill(OUT);
        self.previous.fill(OUT);
        self.heads.fill(END);
        self.tails.fill(END);
        self.length = 0;
    }

    /// The block that follows in the list where this one is.
    pub(crate) fn after(&self, block: BlockId) -> Option<BlockId> {
        Some(self.next[block.0 as usize]).filter(|b| *b != END).map(BlockId)
    }

    /// The block before this one in the list where it is.
    pub(crate) fn before(&self, block: BlockId) -> Option<BlockId> {
        Some(self.previous[block.0 as usize]).filter(|b| *b != END).map(BlockId)
    }

    /// The blocks of `list`, first to last.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        let mut at = self.heads[list];
        std::iter::from_fn(move || {
            let block = Some(at).filter(|b| *b != END)?;
            at = self.next[block as usize];
            Some(BlockId(block))
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.next.len() * 8 + self.heads.len() * 8) as u64
    }
}
