//! Blocks of file data whose newest content is in memory and waits to be written, by number, by slot and by file.

use crate::format::entry::{Entry, HOLE, RESERVED};
use crate::store::{Heat, Page, Slot};
use std::collections::HashMap;
use std::sync::Arc;

/// Why a block waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A file was written.
    Host,
    /// Its segment is being cleaned; the content is that of its durable copy.
    Cleaning,
}

/// A block that waits.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub slot: Slot,
    pub owner: u64,
    pub content: Arc<Page>,
    pub origin: Origin,
    /// Position of its newest durable copy, or [`HOLE`], or [`RESERVED`].
    pub home: u32,
    /// The heat that stands in its entry.
    pub stored_heat: Heat,
    pub heat: Heat,
    /// Of its file when it was written first: what a block without a history is as hot as.
    pub file: Heat,
    /// Neighbours in the list of its file's blocks.
    previous: u32,
    next: u32,
}

/// What is known of a block when it begins to wait.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    pub slot: Slot,
    pub owner: u64,
    pub content: Arc<Page>,
    pub origin: Origin,
    /// Its entry.
    pub entry: Entry,
    pub heat: Heat,
    /// Of its file.
    pub file: Heat,
}

/// No number.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Owned {
    first: u32,
    last: u32,
    count: u64,
    /// Of these, those that are holes.
    holes: u64,
}

/// See the module's text. Numbers are small, and used again.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    blocks: Vec<Option<Block>>,
    unused: Vec<u32>,
    /// In the order in which blocks began to wait; numbers that wait no more are dropped now and then.
    order: Vec<u32>,
    by_slot: HashMap<Slot, u32>,
    by_owner: HashMap<u64, Owned>,
}

impl Waiting {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_slot.len()
    }

    /// The number of the block of a slot, if it waits.
    pub fn number(&self, slot: Slot) -> Option<u32> {
        self.by_slot.get(&slot).copied()
    }

    /// A block that waits.
    ///
    /// # Panics
    /// If it does not.
    pub fn get(&self, number: u32) -> &Block {
        self.blocks[number as usize].as_ref().expect("the block waits")
    }

    /// A block that waits, to be changed.
    ///
    /// # Panics
    /// If it does not.
    pub fn get_mut(&mut self, number: u32) -> &mut Block {
        self.blocks[number as usize].as_mut().expect("the block waits")
    }

    /// Whether a block waits under this number.
    pub fn contains(&self, number: u32) -> bool {
        self.blocks.get(number as usize).is_some_and(Option::is_some)
    }

    /// Numbers of all of them, in the order in which they began to wait.
    pub fn numbers(&self) -> &[u32] {
        &self.order
    }

    /// Blocks of a file.
    pub fn count_of(&self, owner: u64) -> u64 {
        self.by_owner.get(&owner).map_or(0, |owned| owned.count)
    }

    /// Blocks of a file that are holes until they are written.
    pub fn holes_of(&self, owner: u64) -> u64 {
        self.by_owner.get(&owner).map_or(0, |owned| owned.holes)
    }

    /// Space is set aside for a block that was a hole.
    pub fn set_aside(&mut self, number: u32) {
        let block = self.get_mut(number);
        let was_hole = std::mem::replace(&mut block.home, RESERVED) == HOLE;
        let owner = block.owner;
        self.by_owner.get_mut(&owner).expect("its file has blocks").holes -= u64::from(was_hole);
    }

    /// Numbers of a file's blocks, in the order in which they began to wait.
    pub fn of(&self, owner: u64) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.by_owner.get(&owner).map_or(NONE, |owned| owned.first);
        std::iter::from_fn(move || {
            let number = (at != NONE).then_some(at)?;
            at = self.get(number).next;
            Some(number)
        })
    }

    /// A block that did not wait begins to. Returns its number.
    pub fn insert(&mut self, beginning: Beginning) -> u32 {
        let Beginning { slot, owner, content, origin, entry, heat, file } = beginning;
        let number = self.unused.pop().unwrap_or_else(|| {
            self.blocks.push(None);
            self.blocks.len() as u32 - 1
        });
        self.blocks[number as usize] = Some(Block {
            slot,
            owner,
            content,
            origin,
            home: entry.position,
            stored_heat: entry.heat,
            heat,
            file,
            previous: NONE,
            next: NONE,
        });
        self.link(number, owner);
        self.order.push(number);
        self.by_slot.insert(slot, number);
        number
    }

    /// Appends a block to the list of a file's blocks.
    fn link(&mut self, number: u32, owner: u64) {
        let is_hole = self.get(number).home == HOLE;
        let owned = self.by_owner.entry(owner).or_insert(Owned { first: number, last: NONE, count: 0, holes: 0 });
        let previous = std::mem::replace(&mut owned.last, number);
        owned.count += 1;
        owned.holes += u64::from(is_hole);
        let block = self.get_mut(number);
        (block.owner, block.previous, block.next) = (owner, previous, NONE);
        if previous != NONE {
            self.get_mut(previous).next = number;
        }
    }

    /// Takes a block out of the list of its file's blocks.
    fn unlink(&mut self, number: u32) {
        let Block { owner, previous, next, home, .. } = *self.get(number);
        let owned = self.by_owner.get_mut(&owner).expect("its file has blocks");
        owned.count -= 1;
        owned.holes -= u64::from(home == HOLE);
        match previous {
            NONE => owned.first = next,
            previous => self.blocks[previous as usize].as_mut().expect("neighbours wait").next = next,
        }
        match next {
            NONE => owned.last = previous,
            next => self.blocks[next as usize].as_mut().expect("neighbours wait").previous = previous,
        }
        if owned.count == 0 {
            self.by_owner.remove(&owner);
        }
    }

    /// A block waits no more. Its number stays in [`Waiting::numbers`] until [`Waiting::tidy`].
    pub fn remove(&mut self, number: u32) -> Block {
        self.unlink(number);
        let block = self.blocks[number as usize].take().expect("the block waits");
        self.by_slot.remove(&block.slot);
        // Its number is free for another block only when it has left the order.
        if self.order.len() > 64 && self.order.len() > 2 * self.len() {
            self.tidy();
        }
        block
    }

    /// A block belongs to another file now.
    pub fn set_owner(&mut self, number: u32, owner: u64) {
        if self.get(number).owner == owner {
            return;
        }
        self.unlink(number);
        self.link(number, owner);
    }

    /// Drops numbers of blocks that wait no more, for others to use.
    pub fn tidy(&mut self) {
        let (blocks, unused) = (&self.blocks, &mut self.unused);
        self.order.retain(|number| {
            let waits = blocks[*number as usize].is_some();
            if !waits {
                unused.push(*number);
            }
            waits
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(slot: Slot, owner: u64, content: Arc<Page>) -> Beginning {
        let (entry, heat) = (Entry::default(), Heat::default());
        Beginning { slot, owner, content, origin: Origin::Host, entry, heat, file: heat }
    }

    #[test]
    fn blocks_are_found_by_slot_and_by_file() {
        let mut waiting = Waiting::default();
        let slot = |index| Slot { page: 9, index };
        let page: Arc<Page> = Arc::new([0; 4096]);
        for index in 1..=6 {
            let owner = u64::from(index % 2);
            waiting.insert(beginning(slot(index), owner, page.clone()));
        }
        let of = |waiting: &Waiting, owner| waiting.of(owner).map(|n| waiting.get(n).slot.index).collect::<Vec<_>>();
        assert_eq!(of(&waiting, 1), [1, 3, 5]);
        for index in [3, 2, 6] {
            let number = waiting.number(slot(index)).expect("it waits");
            waiting.remove(number);
        }
        waiting.tidy();
        assert_eq!((of(&waiting, 1), of(&waiting, 0)), (vec![1, 5], vec![4]));
        waiting.insert(beginning(slot(3), 1, page));
        assert_eq!((of(&waiting, 1), waiting.count_of(1), waiting.len()), (vec![1, 5, 3], 3, 4));
        let number = waiting.number(slot(5)).expect("it waits");
        (0..2).for_each(|_| waiting.set_aside(number));
        assert_eq!((waiting.holes_of(1), waiting.holes_of(0)), (2, 1));
        waiting.set_owner(number, 0);
        waiting.remove(waiting.number(slot(1)).expect("it waits"));
        assert_eq!((waiting.holes_of(1), waiting.holes_of(0), waiting.count_of(0)), (1, 1, 2));
        assert_eq!(waiting.numbers().len(), 4);
    }
}
