//! Doubly linked lists over slots: the order of frames in a buffer, of ghosts, of groups of pages.
//!
//! Links of all slots lie in one array, and several lists may share it, as a slot is in one of them at a time. O(1).

use super::index::NO_SLOT;

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// The links of every slot.
#[derive(Clone, Debug)]
pub struct Links(Vec<Link>);

/// One list: its newest and its oldest slot.
#[derive(Clone, Copy, Debug)]
pub struct List {
    newest: u32,
    oldest: u32,
    length: u32,
}

impl Links {
    /// Links for `slots` slots, none of which is in a list.
    pub fn new(slots: u32) -> Self {
        Self(vec![Link { newer: NO_SLOT, older: NO_SLOT }; slots as usize])
    }

    /// The next newer slot.
    #[inline(always)]
    pub fn newer(&self, slot: u32) -> Option<u32> {
        some(self.0[slot as usize].newer)
    }

    /// The next older slot.
    #[inline(always)]
    pub fn older(&self, slot: u32) -> Option<u32> {
        some(self.0[slot as usize].older)
    }

    /// Bytes of the links.
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64 * size_of::<Link>() as u64
    }
}

#[inline(always)]
fn some(slot: u32) -> Option<u32> {
    (slot != NO_SLOT).then_some(slot)
}

impl Default for List {
    fn default() -> Self {
        Self { newest: NO_SLOT, oldest: NO_SLOT, length: 0 }
    }
}

impl List {
    /// Slots in the list.
    #[inline(always)]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The newest slot.
    #[inline(always)]
    pub fn newest(&self) -> Option<u32> {
        some(self.newest)
    }

    /// The oldest slot.
    #[inline(always)]
    pub fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    /// Puts `slot`, which is in no list, at the newest end.
    #[inline(always)]
    pub fn push_newest(&mut self, links: &mut Links, slot: u32) {
        links.0[slot as usize] = Link { newer: NO_SLOT, older: self.newest };
        match some(self.newest) {
            Some(newest) => links.0[newest as usize].newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
        self.length += 1;
    }

    /// Puts `slot`, which is in no list, at the oldest end.
    #[inline(always)]
    pub fn push_oldest(&mut self, links: &mut Links, slot: u32) {
        links.0[slot as usize] = Link { newer: self.oldest, older: NO_SLOT };
        match some(self.oldest) {
            Some(oldest) => links.0[oldest as usize].older = slot,
            None => self.newest = slot,
        }
        self.oldest = slot;
        self.length += 1;
    }

    /// Takes `slot` out of this list.
    #[inline(always)]
    pub fn remove(&mut self, links: &mut Links, slot: u32) {
        let Link { newer, older } = links.0[slot as usize];
        match some(newer) {
            Some(newer) => links.0[newer as usize].older = older,
            None => self.newest = older,
        }
        match some(older) {
            Some(older) => links.0[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        self.length -= 1;
    }

    /// Moves `slot` of this list to the newest end.
    #[inline(always)]
    pub fn touch(&mut self, links: &mut Links, slot: u32) {
        if self.newest != slot {
            self.remove(links, slot);
            self.push_newest(links, slot);
        }
    }

    /// Takes the oldest slot out.
    #[inline(always)]
    pub fn pop_oldest(&mut self, links: &mut Links) -> Option<u32> {
        let slot = self.oldest()?;
        self.remove(links, slot);
        Some(slot)
    }
}
