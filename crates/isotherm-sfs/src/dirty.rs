//! The dirty cache: blocks whose newest data is in memory, in the order in which they became dirty.

/// Why a block is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The host wrote it.
    Host,
    /// Its segment is being cleaned; the data is that of its durable copy.
    Cleaning,
}

/// A dirty block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirty {
    /// The block.
    pub block: u32,
    /// Why it is dirty.
    pub origin: Origin,
}

/// See the module's text. Whoever holds it keeps each block's position ([`DirtyCache::push`]) for O(1) changes.
#[derive(Clone, Debug, Default)]
pub struct DirtyCache {
    entries: Vec<Dirty>,
}

impl DirtyCache {
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
    pub fn entries(&self) -> &[Dirty] {
        &self.entries
    }
    /// Adds a block that is not dirty. Returns its position.
    #[inline(always)]
    pub fn push(&mut self, dirty: Dirty) -> u32 {
        self.entries.push(dirty);
        self.entries.len() as u32 - 1
    }
    /// The host wrote the dirty block at `position`. Returns why it was dirty before.
    #[inline(always)]
    pub fn rewrite(&mut self, position: u32) -> Origin {
        std::mem::replace(&mut self.entries[position as usize].origin, Origin::Host)
    }
    /// Why the block at `position` is dirty.
    pub fn origin(&self, position: u32) -> Origin {
        self.entries[position as usize].origin
    }
    /// Takes a block out. Returns the block that moved into its position, if one did.
    #[inline(always)]
    pub fn remove(&mut self, position: u32) -> Option<u32> {
        self.entries.swap_remove(position as usize);
        self.entries.get(position as usize).map(|moved| moved.block)
    }
    /// Keeps the blocks for which `keep` holds, in order, telling each its new position.
    pub fn retain(&mut self, mut keep: impl FnMut(Dirty, u32) -> bool) {
        let mut kept = 0;
        self.entries.retain(|dirty| {
            let keep = keep(*dirty, kept);
            kept += u32::from(keep);
            keep
        });
    }
    /// Bytes of the list.
    pub fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Dirty>()) as u64
    }
}
