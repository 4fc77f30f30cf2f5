//! Doubly linked lists of blocks, threaded through one array: eight bytes a block, every step O(1).

use crate::address::BlockId;
use crate::memory;

const END: u32 = u32::MAX;
/// Mark of a block that is in no list; distinct from `END`, the link of a list's first and last block.
const OUT: u32 = u32::MAX - 1;

/// A block's neighbours, side by side: whoever needs one needs the other.
#[derive(Clone, Copy, Debug)]
struct Links {
    next: u32,
    previous: u32,
}

impl Links {
    const OUT: Self = Self { next: OUT, previous: OUT };
}

/// Several lists over one set of blocks; a block is in at most one.
#[derive(Clone, Debug)]
pub(crate) struct BlockLists {
    links: Vec<Links>,
    heads: Vec<u32>,
    tails: Vec<u32>,
    length: usize,
}

impl BlockLists {
    /// Empty lists over `blocks` and those that are added beyond.
    pub(crate) fn new(blocks: u32, lists: usize) -> Self {
        Self {
            links: memory::table(blocks as usize, Links::OUT),
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
        self.links.get(block.0 as usize).is_some_and(|links| links.next != OUT)
    }

    pub(crate) fn head(&self, list: usize) -> Option<BlockId> {
        Some(self.heads[list]).filter(|b| *b != END).map(BlockId)
    }

    /// Appends a block that is in no list.
    pub(crate) fn push_back(&mut self, list: usize, block: BlockId) {
        debug_assert!(!self.contains(block));
        let blocks = self.links.len().max(block.0 as usize + 1);
        if blocks > self.links.len() {
            self.links.resize(blocks, Links::OUT);
        }
        let tail = std::mem::replace(&mut self.tails[list], block.0);
        self.links[block.0 as usize] = Links { next: END, previous: tail };
        match tail {
            END => self.heads[list] = block.0,
            tail => self.links[tail as usize].next = block.0,
        }
        self.length += 1;
    }

    /// Takes a block out of `list`, where it is.
    pub(crate) fn remove(&mut self, list: usize, block: BlockId) {
        debug_assert!(self.contains(block));
        let Links { next, previous } = std::mem::replace(&mut self.links[block.0 as usize], Links::OUT);
        match previous {
            END => self.heads[list] = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            END => self.tails[list] = previous,
            next => self.links[next as usize].previous = previous,
        }
        self.length -= 1;
    }

    /// The block that follows in the list where this one is.
    pub(crate) fn after(&self, block: BlockId) -> Option<BlockId> {
        Some(self.links[block.0 as usize].next).filter(|b| *b != END).map(BlockId)
    }

    /// The block before this one in the list where it is.
    pub(crate) fn before(&self, block: BlockId) -> Option<BlockId> {
        Some(self.links[block.0 as usize].previous).filter(|b| *b != END).map(BlockId)
    }

    /// The blocks of `list`, first to last.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> + '_ {
        let mut at = self.heads[list];
        std::iter::from_fn(move || {
            let block = Some(at).filter(|b| *b != END)?;
            at = self.links[block as usize].next;
            Some(BlockId(block))
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.links.len() * size_of::<Links>() + self.heads.len() * 8) as u64
    }
}
