//! Queues of blocks that most of them leave before their turn: who leaves touches nothing of the others.
//!
//! A doubly linked list serves the same, but a step out of it changes both neighbours, two places that no cache foresees on a large
//! device. Here a block that leaves stays behind as an entry without meaning, and is skipped when it comes to the front. Every step is
//! O(1), amortised. Memory: four bytes a block, and eight for each entry; when a block joins a queue, at most half of its entries and a
//! few more mean nothing.

use crate::address::BlockId;
use crate::memory;

/// The number of no entry: that of a block in no queue.
const NONE: u32 = u32::MAX;
/// Entries without meaning that a queue may keep beside as many as it has with one.
const SPARE_ENTRIES: usize = 64;

/// A block that joined a queue, and when: entries are numbered over all queues.
#[derive(Clone, Copy, Debug)]
struct Joined {
    block: BlockId,
    number: u32,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// The first `passed` are done with.
    entries: Vec<Joined>,
    passed: usize,
    blocks: usize,
}

/// Several queues over one set of blocks; a block is in at most one.
#[derive(Clone, Debug)]
pub(crate) struct BlockQueues {
    queues: Vec<Queue>,
    /// For each block, the number of its entry.
    numbers: Vec<u32>,
    next_number: u32,
    length: usize,
}

impl BlockQueues {
    /// Empty queues over `blocks` and those that are added beyond.
    pub(crate) fn new(blocks: u32, queues: usize) -> Self {
        Self {
            queues: vec![Queue::default(); queues],
            numbers: memory::table(blocks as usize, NONE),
            next_number: 0,
            length: 0,
        }
    }

    /// Blocks in all queues together.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether so many entries were numbered that the queues should be cleared before the numbers run out.
    pub(crate) fn is_worn(&self) -> bool {
        self.next_number > NONE / 2
    }

    pub(crate) fn contains(&self, block: BlockId) -> bool {
        self.numbers.get(block.0 as usize).is_some_and(|number| *number != NONE)
    }

    /// When a block joined its queue, beside others; none is later for a block in no queue.
    pub(crate) fn joined(&self, block: BlockId) -> u32 {
        self.numbers.get(block.0 as usize).copied().unwrap_or(NONE)
    }

    /// Appends a block that is in no queue.
    pub(crate) fn push(&mut self, queue: usize, block: BlockId) {
        debug_assert!(!self.contains(block));
        self.length += 1;
        self.join(queue, block);
    }

    /// Takes a block from the queue where it is to the end of another.
    pub(crate) fn change(&mut self, from: usize, to: usize, block: BlockId) {
        debug_assert!(self.contains(block));
        self.queues[from].blocks -= 1;
        self.join(to, block);
    }

    /// Takes a block out of `queue`, where it is.
    pub(crate) fn remove(&mut self, queue: usize, block: BlockId) {
        debug_assert!(self.contains(block));
        self.queues[queue].blocks -= 1;
        self.length -= 1;
        self.numbers[block.0 as usize] = NONE;
    }

    fn join(&mut self, queue: usize, block: BlockId) {
        let index = block.0 as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, NONE);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.numbers[index] = number;
        let queue = &mut self.queues[queue];
        queue.blocks += 1;
        queue.entries.push(Joined { block, number });
        if queue.entries.len() - queue.passed > 2 * queue.blocks + SPARE_ENTRIES {
            let numbers = &self.numbers;
            queue.entries.drain(..queue.passed);
            queue.passed = 0;
            queue.entries.retain(|entry| numbers[entry.block.0 as usize] == entry.number);
        }
    }

    /// The first block of `queue`.
    #[inline]
    pub(crate) fn head(&mut self, queue: usize) -> Option<BlockId> {
        let numbers = &self.numbers;
        let Queue { entries, passed, .. } = &mut self.queues[queue];
        let left = entries[*passed..].iter().position(|entry| numbers[entry.block.0 as usize] == entry.number);
        let Some(left) = left else {
            entries.clear();
            *passed = 0;
            return None;
        };
        *passed += left;
        Some(entries[*passed].block)
    }

    /// Empties every queue.
    pub(crate) fn clear(&mut self) {
        self.numbers.fill(NONE);
        self.next_number = 0;
        self.length = 0;
        for queue in &mut self.queues {
            queue.entries.clear();
            (queue.passed, queue.blocks) = (0, 0);
        }
    }

    /// The block that follows the head of `queue`, which [`BlockQueues::head`] has just told.
    #[inline]
    pub(crate) fn after_head(&self, queue: usize) -> Option<BlockId> {
        let Queue { entries, passed, .. } = &self.queues[queue];
        let next = entries.get(passed + 1..)?.iter().find(|entry| self.numbers[entry.block.0 as usize] == entry.number);
        next.map(|entry| entry.block)
    }

    /// Bytes of doubly linked lists of the same, which a drive's firmware would keep: two links a block and two ends a list.
    pub(crate) fn bytes_as_lists(&self) -> u64 {
        (2 * size_of::<u32>() * (self.numbers.len() + self.queues.len())) as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        let entries: usize = self.queues.iter().map(|queue| queue.entries.capacity()).sum();
        (self.numbers.len() * size_of::<u32>() + entries * size_of::<Joined>() + self.queues.len() * size_of::<Queue>())
            as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::VecDeque;

    /// Against plain queues, over random changes, of which many leave entries behind.
    #[test]
    fn random_changes_agree_with_plain_queues() {
        let mut queues = BlockQueues::new(200, 4);
        let mut plain = vec![VecDeque::new(); 4];
        let mut random = Random::new(7);
        let mut longest = 0;
        for step in 0..20_000 {
            if step % 5000 == 0 {
                queues.clear();
                plain.iter_mut().for_each(VecDeque::clear);
                // One that stays first in each: what leaves behind it is not skipped by whoever looks at the front.
                for (index, queue) in plain.iter_mut().enumerate() {
                    queues.push(index, BlockId(300 + index as u32));
                    queue.push_back(BlockId(300 + index as u32));
                }
            }
            let block = BlockId(random.below(260) as u32);
            let to = random.below(4) as usize;
            let place = plain.iter().position(|queue| queue.contains(&block));
            match (random.below(8), place) {
                (0, Some(at)) => {
                    queues.remove(at, block);
                    plain[at].retain(|other| *other != block);
                }
                (_, Some(at)) => {
                    queues.change(at, to, block);
                    plain[at].retain(|other| *other != block);
                    plain[to].push_back(block);
                }
                (_, None) => {
                    queues.push(to, block);
                    plain[to].push_back(block);
                }
            }
            assert_eq!(queues.contains(block), plain.iter().any(|queue| queue.contains(&block)));
            assert_eq!(queues.length(), plain.iter().map(VecDeque::len).sum::<usize>());
            let kept = &queues.queues[to];
            longest = longest.max(kept.entries.len() - kept.passed);
            let queue = random.below(4) as usize;
            assert_eq!(queues.head(queue), plain[queue].front().copied(), "step {step}");
            assert_eq!(queues.after_head(queue), plain[queue].get(1).copied(), "step {step}");
        }
        queues.next_number = NONE / 2 + 1;
        assert!(queues.is_worn());
        queues.clear();
        assert!(!queues.is_worn());
        // Without dropping entries that mean nothing, a queue would have come to some 1,250.
        assert!(longest <= 2 * 260 + SPARE_ENTRIES, "{longest} entries");
    }
}
