//! Picking the best of many blocks whose scores drift with time, without looking at all of them at every pick.
//!
//! One scan keeps the best `2 sqrt(blocks)` closed blocks; picks compare only these, until half of them are gone, and then
//! a scan starts anew. A block that loses a page and thereby passes the worst of the list joins it. Between two scans a
//! block outside the list may still overtake it by the passing of time alone: with scores that fall or rise together the
//! choice differs from a full scan's seldom and by little. O(sqrt(blocks)) a pick.

use crate::address::BlockId;
use crate::blocks::{BlockState, BlockTable};

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Shortlist {
    members: Vec<BlockId>,
    is_member: Vec<bool>,
    scored: Vec<(f64, BlockId)>,
    /// Worst score that the last scan let in.
    threshold: f64,
    /// Members at which a new scan is due.
    refill_at: usize,
}

impl Shortlist {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            members: Vec::new(),
            is_member: vec![false; blocks as usize],
            scored: Vec::with_capacity(blocks as usize),
            threshold: f64::INFINITY,
            refill_at: 0,
        }
    }

    /// A closed block has a better score than before.
    #[inline(always)]
    pub(super) fn offer(&mut self, block: BlockId, score: impl FnOnce() -> f64) {
        if !self.is_member[block.0 as usize] && score() >= self.threshold {
            self.is_member[block.0 as usize] = true;
            self.members.push(block);
        }
    }

    /// A block is no candidate any more.
    pub(super) fn remove(&mut self, block: BlockId) {
        if std::mem::replace(&mut self.is_member[block.0 as usize], false) {
            let position = self.members.iter().position(|m| *m == block).expect("a marked block is a member");
            self.members.swap_remove(position);
        }
    }

    /// The closed block with the largest score that is not full; `score` is finite, or infinite for an empty block.
    pub(super) fn best(&mut self, blocks: &BlockTable, score: impl Fn(BlockId) -> f64) -> Option<BlockId> {
        if self.members.len() <= self.refill_at {
            self.scan(blocks, &score);
        }
        // Equal scores are decided by the block's number: the order of the list must not show.
        self.members.iter().map(|b| (score(*b), *b)).reduce(|a, b| if better(&b, &a) { b } else { a }).map(|b| b.1)
    }

    fn scan(&mut self, blocks: &BlockTable, score: &impl Fn(BlockId) -> f64) {
        let full = blocks.pages_per_block();
        self.members.iter().for_each(|b| self.is_member[b.0 as usize] = false);
        self.members.clear();
        self.scored.clear();
        self.scored.extend(blocks.closed().filter(|b| blocks.valid(*b) < full).map(|b| (score(b), b)));
        let wanted = (2.0 * f64::from(blocks.blocks()).sqrt()) as usize;
        self.threshold = f64::NEG_INFINITY;
        if self.scored.len() > wanted {
            let order = |a: &(f64, BlockId), b: &(f64, BlockId)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            self.threshold = self.scored.select_nth_unstable_by(wanted, order).1.0;
            self.scored.truncate(wanted);
        }
        for (_, block) in &self.scored {
            debug_assert_eq!(blocks.state(*block), BlockState::Closed);
            self.is_member[block.0 as usize] = true;
            self.members.push(*block);
        }
        self.refill_at = self.members.len() / 2;
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.is_member.len() + self.scored.capacity() * size_of::<(f64, BlockId)>()) as u64
    }
}

#[inline(always)]
fn better(a: &(f64, BlockId), b: &(f64, BlockId)) -> bool {
    a.0 > b.0 || a.0 == b.0 && a.1 < b.1
}
