//! ARC: pages touched once and pages touched again in two LRU lists, whose sizes follow the hits in the two histories of what
//! left them (Megiddo & Modha, "ARC: a self-tuning, low overhead replacement cache").
//!
//! Departure: the buffer may shrink and pages may be trimmed, so the histories are bounded by the capacity each time
//! something leaves, rather than case by case at each request. O(1).

use super::{AnyBuffer, BufferPolicy, BuildBuffer, Departure, NONE, Touch};
use crate::address::Lpn;
use crate::dram::ghost::GhostLru;
use crate::dram::list::{Links, List};
use crate::registry::Entry;

pub(super) const ENTRY: Entry<BuildBuffer> = Entry {
    name: "arc",
    summary: "recency and frequency in balance, by the hits in what left",
    paper: "Megiddo & Modha, ARC",
    memory: "41 bytes a frame",
    parameters: NONE,
    build: |_, context| Ok(AnyBuffer::Arc(Arc::new(context.frames))),
};

/// What the history knows of a page that is about to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Past {
    Unknown,
    Recent,
    Frequent,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Arc {
    links: Links,
    /// T1: touched once. T2: touched again.
    recent: List,
    frequent: List,
    is_frequent: Vec<bool>,
    /// B1 and B2: what left T1 and T2.
    recent_ghost: GhostLru,
    frequent_ghost: GhostLru,
    incoming: Past,
    /// p: the size at which T1 should be.
    target: u32,
    capacity: u32,
}

impl Arc {
    fn new(frames: u32) -> Self {
        Self {
            links: Links::new(frames),
            recent: List::default(),
            frequent: List::default(),
            is_frequent: vec![false; frames as usize],
            recent_ghost: GhostLru::new(frames),
            frequent_ghost: GhostLru::new(frames),
            incoming: Past::Unknown,
            target: 0,
            capacity: frames,
        }
    }

    /// |T1| + |B1| stays within the capacity, and both pairs within twice the capacity.
    fn bound_histories(&mut self) {
        self.recent_ghost.shrink_to(self.capacity.saturating_sub(self.recent.length()));
        let others = self.recent.length() + self.frequent.length() + self.recent_ghost.length();
        self.frequent_ghost.shrink_to((2 * self.capacity).saturating_sub(others).min(self.capacity));
    }
}

impl BufferPolicy for Arc {
    fn on_miss(&mut self, lpn: Lpn) {
        let (recent, frequent) = (self.recent_ghost.length(), self.frequent_ghost.length());
        self.incoming = if self.recent_ghost.remove(lpn.0) {
            self.target = (self.target + (frequent / recent).max(1)).min(self.capacity);
            Past::Recent
        } else if self.frequent_ghost.remove(lpn.0) {
            self.target = self.target.saturating_sub((recent / frequent).max(1));
            Past::Frequent
        } else {
            Past::Unknown
        };
    }
    #[inline(always)]
    fn on_insert(&mut self, frame: u32, _: Lpn, _: Touch) {
        self.is_frequent[frame as usize] = self.incoming != Past::Unknown;
        let list = if self.is_frequent[frame as usize] { &mut self.frequent } else { &mut self.recent };
        list.push_newest(&mut self.links, frame);
        self.incoming = Past::Unknown;
        self.bound_histories();
    }
    #[inline(always)]
    fn on_touch(&mut self, frame: u32, _: Lpn, _: Touch) {
        if self.is_frequent[frame as usize] {
            self.frequent.touch(&mut self.links, frame);
        } else {
            self.recent.remove(&mut self.links, frame);
            self.frequent.push_newest(&mut self.links, frame);
            self.is_frequent[frame as usize] = true;
        }
    }
    fn on_remove(&mut self, frame: u32, lpn: Lpn, departure: Departure) {
        let (list, ghost) = if self.is_frequent[frame as usize] {
            (&mut self.frequent, &mut self.frequent_ghost)
        } else {
            (&mut self.recent, &mut self.recent_ghost)
        };
        list.remove(&mut self.links, frame);
        if departure == Departure::Evicted {
            ghost.insert(lpn.0);
            self.bound_histories();
        }
    }
    #[inline(always)]
    fn pick(&mut self, victims: &mut Vec<u32>) {
        let recent = self.recent.length();
        let from_recent = recent > self.target || recent == self.target && self.incoming == Past::Frequent;
        let (first, second) = if from_recent { (&self.recent, &self.frequent) } else { (&self.frequent, &self.recent) };
        victims.extend(first.oldest().or(second.oldest()));
    }
    fn set_capacity(&mut self, frames: u32) {
        self.capacity = frames;
        self.target = self.target.min(frames);
        self.bound_histories();
    }
    fn memory_bytes(&self) -> u64 {
        let ghosts = u64::from(self.recent_ghost.length() + self.frequent_ghost.length()) * GhostLru::ENTRY_BYTES;
        self.links.bytes() + self.is_frequent.len() as u64 + ghosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Share of hits of a buffer of `capacity` pages.
    fn hits(policy: &mut dyn BufferPolicy, capacity: u32, accesses: &[u32]) -> f64 {
        let (mut held, mut victims, mut hits) = (BTreeMap::new(), Vec::new(), 0);
        let mut free: Vec<u32> = (0..capacity).collect();
        for lpn in accesses.iter().copied().map(Lpn) {
            if let Some(frame) = held.get(&lpn) {
                policy.on_touch(*frame, lpn, Touch::Write);
                hits += 1;
                continue;
            }
            policy.on_miss(lpn);
            if free.is_empty() {
                policy.pick(&mut victims);
                let frame = victims.pop().unwrap();
                let old = held.iter().find(|(_, f)| **f == frame).map(|(l, _)| *l).unwrap();
                policy.on_remove(frame, old, Departure::Evicted);
                held.remove(&old);
                free.push(frame);
            }
            let frame = free.pop().unwrap();
            policy.on_insert(frame, lpn, Touch::Write);
            held.insert(lpn, frame);
        }
        f64::from(hits) / accesses.len() as f64
    }

    #[test]
    fn a_scan_does_not_wash_out_what_is_used_again() {
        // 40 pages are touched twice, then once a round between scans of 60 pages that never come back.
        let rounds = (0..200).flat_map(|round| (0..40).chain(1000 + round * 60..1060 + round * 60));
        let accesses: Vec<u32> = (0..40).chain(rounds).collect();
        let arc = hits(&mut Arc::new(64), 64, &accesses);
        let lru = hits(&mut super::super::Queue::new(64, true), 64, &accesses);
        assert!(lru < 0.01 && arc > 0.39, "LRU hits {lru:.3}, ARC {arc:.3}");
    }

    #[test]
    fn histories_and_target_stay_within_the_capacity() {
        let mut policy = Arc::new(16);
        let mut random = crate::random::Random::new(5);
        let accesses: Vec<u32> = (0..20_000).map(|_| (random.unit().powi(3) * 100.0) as u32).collect();
        hits(&mut policy, 16, &accesses);
        assert!(policy.recent.length() + policy.recent_ghost.length() <= 16);
        let all = policy.recent.length() + policy.frequent.length();
        assert!(all + policy.recent_ghost.length() + policy.frequent_ghost.length() <= 32 && policy.target <= 16);
    }
}
