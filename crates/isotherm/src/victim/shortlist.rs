//! The block with the largest score, without looking at all blocks at every pick: for scores that change by what happens to
//! the block, and that otherwise only rise with time.
//!
//! A scan scores the closed blocks as of a time to come, the horizon, and lists the best `4 sqrt(candidates)` in the order of these
//! scores, which bound what the blocks score until then. The worst of them is the threshold: a block outside scores
//! less. A block that loses a page is scored anew, and joins, moves or leaves. A pick goes down the list until the bound
//! falls below the best score found; if that reaches the threshold, it is the best of all: the choice is that of a full
//! scan. A list that has grown to twice its size raises its threshold. A new scan is due when the horizon is passed, which
//! then moves farther away, or when the best of the list lies below the threshold, which draws the horizon nearer.
//! A pick scores a few blocks, and its share of a scan.
//!
//! Placements that divide the space ask for the best block of some streams: there is one list for each group of streams that
//! was asked for, and one for all of them.

use crate::address::BlockId;
use crate::bits::Bits;
use crate::blocks::{BlockTable, Streams};

/// Host page writes up to the first horizon.
const FIRST_LOOKAHEAD: u64 = 1024;

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
    /// Its score at the horizon, the most that it can score until then.
    bound: f64,
    block: BlockId,
}

/// The best blocks of some streams.
#[derive(Clone, Debug)]
struct Shortlist {
    streams: Streams,
    /// Members after a scan; twice as many raise the threshold.
    wanted: usize,
    /// By their bounds, ascending.
    members: Vec<Member>,
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

    /// A closed block that is not full is new, or has lost a page.
    #[inline(always)]
    pub(super) fn offer(&mut self, block: BlockId, blocks: &BlockTable, score: impl Fn(BlockId, u64) -> f64) {
        for list in &mut self.lists {
            if list.streams.contains(blocks.stream(block)) {
                let bound = score(block, list.horizon);
                if bound >= list.threshold || list.is_member.contains(block.0) {
                    list.settle(Member { bound, block });
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
        } else if let Some(best) = list.best(now, &score) {
            return Some(best);
        } else {
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

impl Shortlist {
    /// A list without members whose horizon is past, but for the time 0.
    fn new(streams: Streams, blocks: u32) -> Self {
        Self {
            streams,
            wanted: WANTED_MIN,
            members: Vec::new(),
            is_member: Bits::new(blocks as usize),
            threshold: f64::INFINITY,
            horizon: 0,
            lookahead: FIRST_LOOKAHEAD,
        }
    }

    /// The best member, if no block outside can beat it now.
    #[inline(always)]
    fn best(&self, now: u64, score: &impl Fn(BlockId, u64) -> f64) -> Option<BlockId> {
        let last = self.members.last()?.block;
        let mut best = (score(last, now), last);
        for Member { bound, block } in self.members.iter().rev().skip(1) {
            if *bound < best.0 {
                break;
            }
            let score = score(*block, now);
            // Equal scores are decided by the block's number.
            if score > best.0 || score == best.0 && *block < best.1 {
                best = (score, *block);
            }
        }
        (best.0 >= self.threshold).then_some(best.1)
    }

    /// Puts a block where it belongs.
    #[inline(never)]
    fn settle(&mut self, member: Member) {
        if member.bound < self.threshold {
            return self.remove(member.block);
        }
        let below = |other: &Member| other.bound < member.bound;
        if self.is_member.insert(member.block.0) {
            let at = self.members.partition_point(below);
            self.members.insert(at, member);
        } else {
            // Most move by a few places: only what lies between is shifted.
            let from = self.place_of(member.block);
            let to = if below(&self.members[from]) {
                let above = &self.members[from + 1..];
                let to = from + above.partition_point(below);
                self.members.copy_within(from + 1..=to, from);
                to
            } else {
                let to = self.members[..from].partition_point(below);
                self.members.copy_within(to..from, to + 1);
                to
            };
            self.members[to] = member;
        }
        if self.members.len() > 2 * self.wanted {
            self.threshold = self.members[self.members.len() - self.wanted].bound;
            // Those that score the same stay.
            let outside = self.members.partition_point(|other| other.bound < self.threshold);
            for member in self.members.drain(..outside) {
                self.is_member.remove(member.block.0);
            }
        }
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
        let order = |a: &Member, b: &Member| a.bound.total_cmp(&b.bound);
        self.threshold = match scored.len().checked_sub(self.wanted) {
            Some(outside) if outside > 0 => scored.select_nth_unstable_by(outside, order).1.bound,
            _ => f64::NEG_INFINITY,
        };
        self.members.extend(scored.iter().filter(|member| member.bound >= self.threshold));
        self.members.sort_unstable_by(order);
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
