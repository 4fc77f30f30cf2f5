//! The dirty cache: blocks whose newest data is in memory, in the order in which they became dirty.

use crate::content::BlockContent;

/// Why a block is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The host wrote it.
    Host,
    /// Its segment is being cleaned; the data is that of its durable copy.
    Cleaning,
}

/// A dirty block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dirty<C> {
    /// The block.
    pub block: u32,
    /// Why it is dirty.
    pub origin: Origin,
    /// Its newest data.
    pub content: C,
}

const _: () = assert!(size_of::<Dirty<()>>() == 8);

/// See the module's text. Whoever holds it keeps each block's position ([`DirtyCache::push`]) for O(1) changes.
#[derive(Clone, Debug, Default)]
pub struct DirtyCache<C> {
    entries: Vec<Dirty<C>>,
}

impl<C: BlockContent> DirtyCache<C> {
    /// Dirty blocks.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether nothing is dirty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The dirty blocks.
    pub fn entries(&self) -> &[Dirty<C>] {
        &self.entries
    }
    /// Adds a block that is not dirty. Returns its position.
    #[inline(always)]
    pub fn push(&mut self, dirty: Dirty<C>) -> u32 {
        self.entries.push(dirty);
        self.entries.len() as u32 - 1
    }
    /// Moves `contents` into the blocks that were added last.
    #[inline(always)]
    pub fn fill_last(&mut self, contents: &mut [C]) {
        let from = self.entries.len() - contents.len();
        for (entry, content) in self.entries[from..].iter_mut().zip(contents) {
            entry.content = std::mem::take(content);
        }
    }
    /// Takes out the block that was added last.
    ///
    /// # Panics
    /// If nothing is dirty.
    pub fn pop(&mut self) -> u32 {
        self.entries.pop().expect("a block is dirty").block
    }
    /// The host wrote the dirty block at `position`. Returns why it was dirty before.
    #[inline(always)]
    pub fn rewrite(&mut self, position: u32, content: C) -> Origin {
        let entry = &mut self.entries[position as usize];
        entry.content = content;
        std::mem::replace(&mut entry.origin, Origin::Host)
    }
    /// Why the block at `position` is dirty.
    pub fn origin(&self, position: u32) -> Origin {
        self.entries[position as usize].origin
    }
    /// Newest data of the block at `position`.
    pub fn content(&self, position: u32) -> &C {
        &self.entries[position as usize].content
    }
    /// Takes a block out. Returns the block that moved into its position, if one did.
    #[inline(always)]
    pub fn remove(&mut self, position: u32) -> Option<u32> {
        self.entries.swap_remove(position as usize);
        self.entries.get(position as usize).map(|moved| moved.block)
    }
    /// Keeps the blocks for which `keep` holds, in order, telling each its new position.
    pub fn retain(&mut self, mut keep: impl FnMut(&Dirty<C>, u32) -> bool) {
        let mut kept = 0;
        self.entries.retain(|dirty| {
            let keep = keep(dirty, kept);
            kept += u32::from(keep);
            keep
        });
    }
    /// Bytes of the list, and of what the blocks hold.
    pub fn bytes(&self) -> u64 {
        let contents: usize = self.entries.iter().map(|dirty| dirty.content.bytes().len()).sum();
        (self.entries.capacity() * size_of::<Dirty<C>>() + contents) as u64
    }
}
