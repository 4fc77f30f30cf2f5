//! The block with the largest score, without looking at all blocks at every pick: for scores that change by what happens to
//! the block, and that otherwise only rise with time.
//!
//! A scan scores the closed blocks as of a time to come, the horizon, and lists the best `4 sqrt(candidates)`. The worst of these
//! scores is the threshold: a block outside scores less until then. Within the list the order is that of scores as of a nearer
//! time, which bound what the members score until that; when it is passed, the members are scored and sorted anew. A block that
//! loses a page is scored anew, and joins, moves or leaves. A pick goes down the list until the bound
//! falls below the best score found; if that reaches the threshold, it is the best of all: the choice is that of a full
//! scan. A list that has grown to twice its size raises its threshold. A new scan is due when the horizon is passed, which
//! then moves farther away, or when the best of the list lies below the threshold, which draws the horizon nearer.
//! A pick scores a few blocks, and its share of a scan and of a sort. With one horizon for both, a pick under `cat` and a
//! single stream went by 163 members: the scores of young blocks grow manifold until a horizon that is worth a scan.
//!
//! Placements that divide the space ask for the best block of some streams: there is one list for each group of streams that
//! was asked for, and one for all of them.

use crate::address::BlockId;
use crate::bits::Bits;
use crate::blocks::{BlockTable, Streams};
use std::cmp::Ordering;

/// Host page writes up to the first horizon.
const FIRST_LOOKAHEAD: u64 = 1024;

/// Times that the members are sorted on the way to the horizon.
const SORTS: u64 = 16;

/// See the module's text. A score is a function of the block and of the time in host page writes; it is finite, or infinite
/// for a block that no other can beat.
#[derive(Clone, Debug)]
pub(super) struct Shortlists {
    lists: Vec<Shortlist>,
    /// Room for a scan of all blocks, taken at the first where it was not before.
    scored: Vec<Member>,
}

/// A member of a list.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its score at a time to come, the most that it can score until then.
    bound: f64,
    block: BlockId,
}

/// The best blocks of some streams.
#[derive(Clone, Debug)]
struct Shortlist {
    streams: Streams,
    /// Members after a scan, those aside that score the same as the last of them.
    wanted: usize,
    /// Members beyond which the threshold is raised: twice as many as there were when it was set.
    most: usize,
    /// In the order of [`Member::precedes`], their bounds as of the time `near`.
    members: Vec<Member>,
    /// The time up to which the members' bounds hold, in host page writes; at most the horizon.
    near: u64,
    is_member: Bits,
    /// Every closed block that scores as much at the horizon, and is not full, is a member.
    threshold: f64,
    /// The time up to which the threshold holds, in host page writes.
    horizon: u64,
    /// Host page writes from a scan to its horizon.
    lookahead: u64,
}

impl Shortlists {
    /// No lists yet, for a policy that may never need one.
    pub(super) fn new() -> Self {
        Self { lists: Vec::new(), scored: Vec::new() }
    }

    /// No lists yet, and room for a scan of a device of so many blocks.
    pub(super) fn with_room(blocks: u32) -> Self {
        Self { lists: Vec::new(), scored: Vec::with_capacity(blocks as usize) }
    }

    /// Whether no list was asked for yet.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// A closed block that is not full is new, or has lost a page.
    #[inline(always)]
    pub(super) fn offer(&mut self, block: BlockId, blocks: &BlockTable, score: impl Fn(BlockId, u64) -> f64) {
        for list in &mut self.lists {
            if list.streams.contains(blocks.stream(block)) {
                if score(block, list.horizon) >= list.threshold {
                    list.settle(Member { bound: score(block, list.near), block }, &mut self.scored, &score);
                } else if list.is_member.contains(block.0) {
                    list.remove(block);
                }
            }
        }
    }

    /// A block is no candidate any more.
    pub(super) fn remove(&mut self, block: BlockId) {
        self.lists.iter_mut().for_each(|list| list.remove(block));
    }

    /// The closed block of `streams` with the largest score that is not full; the first in number among equals.
    pub(super) fn best(
        &mut self,
        blocks: &BlockTable,
        streams: Streams,
        now: u64,
        score: impl Fn(BlockId, u64) -> f64,
    ) -> Option<BlockId> {
        let at = self.lists.iter().position(|list| list.streams == streams).unwrap_or_else(|| {
            self.lists.push(Shortlist::new(streams, blocks.blocks()));
            self.lists.len() - 1
        });
        let list = &mut self.lists[at];
        if now > list.horizon {
            list.lookahead += list.lookahead / 4 + 1;
        } else {
            if now > list.near {
                list.sort(now, &score);
            }
            if let Some(best) = list.best(now, &score) {
                return Some(best);
            }
            list.lookahead -= list.lookahead / 4;
        }
        // Nobody may ask again for the lists of streams whose horizon is past: they are not to cost anything meanwhile.
        self.lists.iter_mut().filter(|list| now > list.horizon).for_each(Shortlist::forget);
        let list = &mut self.lists[at];
        loop {
            list.scan(blocks, &mut self.scored, now, &score);
            if list.members.is_empty() {
                return None;
            }
            // With the horizon at the present time the best one reaches the threshold.
            if let Some(best) = list.best(now, &score) {
                return Some(best);
            }
            list.lookahead /= 2;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let of_list =
            |list: &Shortlist| list.is_member.bytes() + (list.members.capacity() * size_of::<Member>()) as u64;
        let scored = self.scored.capacity() * size_of::<Member>();
        self.lists.iter().map(of_list).sum::<u64>() + scored as u64
    }
}

/// A list of a few blocks has room for those to come.
const WANTED_MIN: usize = 16;

/// Members that make a scan of so many candidates worth while, and the keeping of the list too.
fn wanted(candidates: usize) -> usize {
    ((4.0 * (candidates as f64).sqrt()) as usize).max(WANTED_MIN)
}

impl Member {
    /// Whether another stands nearer to the end of the list, where victims are taken from: bounds ascend, and numbers descend among
    /// equals, since equal scores are decided by the block's number. Many blocks without a valid page score the same.
    #[inline(always)]
    fn precedes(&self, other: &Self) -> bool {
        self.bound < other.bound || self.bound == other.bound && self.block > other.block
    }

    /// The same as an order.
    fn order(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then(other.block.cmp(&self.block))
    }
}

impl Shortlist {
    /// A list without members whose horizon is past, but for the time 0.
    fn new(streams: Streams, blocks: u32) -> Self {
        Self {
            streams,
            wanted: WANTED_MIN,
            most: 2 * WANTED_MIN,
            members: Vec::new(),
            near: 0,
            is_member: Bits::new(blocks as usize),
            threshold: f64::INFINITY,
            horizon: 0,
            lookahead: FIRST_LOOKAHEAD,
        }
    }

    /// The best member, if no block outside can beat it now.
    #[inline(always)]
    fn best(&self, now: u64, score: &impl Fn(BlockId, u64) -> f64) -> Option<BlockId> {
        let scored = |member: &Member| Member { bound: score(member.block, now), ..*member };
        let mut best = scored(self.members.last()?);
        for member in self.members.iter().rev().skip(1) {
            // What a member may score at most does not make it better, nor those before it.
            if member.precedes(&best) {
                break;
            }
            let member = scored(member);
            if best.precedes(&member) {
                best = member;
            }
        }
        (best.bound >= self.threshold).then_some(best.block)
    }

    /// Scores the members anew as of a time that is near.
    fn sort(&mut self, now: u64, score: &impl Fn(BlockId, u64) -> f64) {
        self.near = self.horizon.min(now + self.lookahead / SORTS);
        self.members.iter_mut().for_each(|member| member.bound = score(member.block, self.near));
        self.members.sort_unstable_by(Member::order);
    }

    /// Puts a block where it belongs.
    #[inline(never)]
    fn settle(&mut self, member: Member, scored: &mut Vec<Member>, score: &impl Fn(BlockId, u64) -> f64) {
        let precedes = |other: &Member| other.precedes(&member);
        if self.is_member.insert(member.block.0) {
            let at = self.members.partition_point(precedes);
            self.members.insert(at, member);
        } else {
            // Most move by a few places: only what lies between is shifted.
            let from = self.place_of(member.block);
            let to = if precedes(&self.members[from]) {
                let above = &self.members[from + 1..];
                let to = from + above.partition_point(precedes);
                self.members.copy_within(from + 1..=to, from);
                to
            } else {
                let to = self.members[..from].partition_point(precedes);
                self.members.copy_within(to..from, to + 1);
                to
            };
            self.members[to] = member;
        }
        if self.members.len() > self.most {
            self.shorten(scored, score);
        }
    }

    /// Raises the threshold so that as many members stay as are wanted, and those that score the same.
    #[cold]
    fn shorten(&mut self, scored: &mut Vec<Member>, score: &impl Fn(BlockId, u64) -> f64) {
        scored.clear();
        let at_horizon = |member: &Member| Member { bound: score(member.block, self.horizon), ..*member };
        scored.extend(self.members.iter().map(at_horizon));
        let outside = scored.len() - self.wanted;
        self.threshold = scored.select_nth_unstable_by(outside, Member::order).1.bound;
        for member in scored.iter().filter(|member| member.bound < self.threshold) {
            self.is_member.remove(member.block.0);
        }
        self.members.retain(|member| self.is_member.contains(member.block.0));
        self.most = 2 * self.members.len();
    }

    fn remove(&mut self, block: BlockId) {
        if self.is_member.remove(block.0) {
            let at = self.place_of(block);
            self.members.remove(at);
        }
    }

    /// Where a member stands, looked for from the end, where victims are taken from.
    fn place_of(&self, block: BlockId) -> usize {
        self.members.iter().rposition(|member| member.block == block).expect("a marked block is a member")
    }

    fn scan(&mut self, blocks: &BlockTable, scored: &mut Vec<Member>, now: u64, score: &impl Fn(BlockId, u64) -> f64) {
        self.forget();
        let full = blocks.pages_per_block();
        self.horizon = now + self.lookahead;
        scored.clear();
        scored.reserve_exact(blocks.blocks() as usize);
        let candidates = blocks.closed_of(self.streams).filter(|block| blocks.valid(*block) < full);
        scored.extend(candidates.map(|block| Member { bound: score(block, self.horizon), block }));
        self.wanted = wanted(scored.len());
        self.threshold = match scored.len().checked_sub(self.wanted) {
            Some(outside) if outside > 0 => scored.select_nth_unstable_by(outside, Member::order).1.bound,
            _ => f64::NEG_INFINITY,
        };
        self.members.extend(scored.iter().filter(|member| member.bound >= self.threshold));
        self.most = 2 * self.members.len().max(self.wanted);
        self.sort(now, score);
        for member in &self.members {
            self.is_member.insert(member.block.0);
        }
    }

    /// Empties the list, and lets nothing in until the next scan.
    fn forget(&mut self) {
        for member in self.members.drain(..) {
            self.is_member.remove(member.block.0);
        }
        self.threshold = f64::INFINITY;
    }
}
