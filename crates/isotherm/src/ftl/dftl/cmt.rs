//! The cached mapping table: which entries of the map are in DRAM, and which leaves when another comes.
//!
//! Entries lie in slots, linked into lists: columns of links, of LPNs and of the list that each slot is in, all allocated
//! once for the largest capacity. Every operation is O(1). Replacement is
//! - `lru`: one list, the least recently used entry leaves;
//! - `segmented_lru` (Karedla, Love & Wherry): an entry enters a probationary list and moves to a protected one on its
//!   first hit; the protected list keeps a share of the capacity, and its overflow gets a second chance;
//! - `arc` (Megiddo & Modha, figure 4): entries seen once and entries seen again in a list each, and two lists of the LPNs
//!   that left them, whose hits move the border between the two.
//!
//! The simulator finds a slot by a column over all LPNs; a controller would hash, and is charged for entries alone.

use crate::address::Lpn;
use crate::bits::Bits;
use crate::memory;

/// Which entry leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// The least recently used.
    Lru,
    /// The least recently used of those that were not hit again.
    SegmentedLru,
    /// As the adaptive replacement cache decides.
    Arc,
}

/// Entries that came and were not used again (LRU: all of them).
const RECENT: u8 = 0;
/// Entries used again: protected (segmented LRU), frequent (ARC).
const FREQUENT: u8 = 1;
/// LPNs that left the recent list (ARC).
const RECENT_GHOSTS: u8 = 2;
/// LPNs that left the frequent list (ARC).
const FREQUENT_GHOSTS: u8 = 3;
const LISTS: u32 = 4;

/// No slot.
const NONE: u32 = u32::MAX;

/// Share of the capacity that the protected list of segmented LRU may fill.
const PROTECTED_SHARE: f64 = 0.8;

/// Neighbours of a slot in its list, towards the most and the least recently used end.
#[derive(Clone, Copy, Default, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Cmt {
    replacement: Replacement,
    capacity: u32,
    capacity_max: u32,
    /// Slot of every LPN, ghosts included.
    slot_of: Vec<u32>,
    resident: Bits,
    lpns: Vec<u32>,
    lists: Vec<u8>,
    /// Links of every slot; the last four are the heads of the circular lists.
    links: Vec<Links>,
    lengths: [u32; LISTS as usize],
    /// First free slot; free slots are linked by `older`.
    free: u32,
    /// Entries that ARC wants in the recent list.
    target: u32,
}

impl Cmt {
    /// An empty table of `capacity` entries, which may grow to `capacity_max`, over `logical_pages` LPNs.
    pub fn new(replacement: Replacement, logical_pages: u32, capacity: u32, capacity_max: u32) -> Self {
        // A table larger than the map never evicts, and needs no more slots than there are pages.
        let capacity_max = capacity_max.min(logical_pages);
        let slots = if replacement == Replacement::Arc {
            (2 * u64::from(capacity_max)).min(logical_pages.into()) as u32
        } else {
            capacity_max
        };
        let mut links = memory::zeroed_table((slots + LISTS) as usize);
        for slot in 0..slots {
            links[slot as usize] = Links { newer: NONE, older: if slot + 1 < slots { slot + 1 } else { NONE } };
        }
        for head in slots..slots + LISTS {
            links[head as usize] = Links { newer: head, older: head };
        }
        Self {
            replacement,
            capacity: capacity.min(capacity_max),
            capacity_max,
            slot_of: memory::table(logical_pages as usize, NONE),
            resident: Bits::new(logical_pages as usize),
            lpns: memory::zeroed_table(slots as usize),
            lists: memory::zeroed_table(slots as usize),
            links,
            lengths: [0; LISTS as usize],
            free: 0,
            target: 0,
        }
    }

    /// Entries that it may hold now.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Entries in it.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.lengths[RECENT as usize] + self.lengths[FREQUENT as usize]
    }

    /// Whether it holds no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the entry of `lpn` is in DRAM. Changes nothing.
    #[inline(always)]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.resident.contains(lpn.0)
    }

    /// Brings the slot number of `lpn` towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        memory::prefetch(&self.slot_of, lpn.0 as usize);
    }

    /// Brings the slot of `lpn`, whose number has arrived, towards the cache.
    #[inline(always)]
    pub fn prefetch_slot(&self, lpn: Lpn) {
        if let Some(slot) = self.slot_of.get(lpn.0 as usize) {
            memory::prefetch(&self.links, *slot as usize);
        }
    }

    /// Looks `lpn` up as a use of it; true if its entry is in DRAM.
    #[inline(always)]
    pub fn access(&mut self, lpn: Lpn) -> bool {
        let slot = self.slot_of[lpn.0 as usize];
        if slot == NONE {
            return false;
        }
        match self.replacement {
            Replacement::Lru => self.renew(slot, RECENT),
            Replacement::SegmentedLru => {
                self.move_to(slot, FREQUENT);
                let protected = (f64::from(self.capacity) * PROTECTED_SHARE) as u32;
                if self.lengths[FREQUENT as usize] > protected.max(1) {
                    self.move_to(self.oldest(FREQUENT), RECENT);
                }
            }
            Replacement::Arc => {
                if self.lists[slot as usize] >= RECENT_GHOSTS {
                    return false;
                }
                self.move_to(slot, FREQUENT);
            }
        }
        true
    }

    /// Makes room for `lpn`, which is not in DRAM; returns the LPN whose entry has left.
    pub fn reserve(&mut self, lpn: Lpn) -> Option<Lpn> {
        let full = self.len() >= self.capacity;
        match self.replacement {
            Replacement::Lru | Replacement::SegmentedLru => full.then(|| self.evict_oldest()),
            Replacement::Arc => self.reserve_adaptively(lpn, full),
        }
    }

    /// Puts `lpn`, for which room was made, in.
    pub fn insert(&mut self, lpn: Lpn) {
        debug_assert!(!self.contains(lpn) && self.len() < self.capacity);
        let ghost = self.slot_of[lpn.0 as usize];
        if ghost == NONE {
            let slot = self.free;
            self.free = self.links[slot as usize].older;
            self.lpns[slot as usize] = lpn.0;
            self.slot_of[lpn.0 as usize] = slot;
            self.attach(slot, RECENT);
        } else {
            self.move_to(ghost, FREQUENT);
        }
        self.resident.insert(lpn.0);
    }

    /// Sets how many entries it may hold, at most what it was built for. Entries beyond leave by
    /// [`evict_excess`](Self::evict_excess).
    pub fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity.clamp(1, self.capacity_max);
        self.target = self.target.min(self.capacity);
        self.drop_excess_ghosts();
    }

    /// The next entry that leaves because the capacity has shrunk.
    pub fn evict_excess(&mut self) -> Option<Lpn> {
        if self.len() <= self.capacity {
            return None;
        }
        let evicted = if self.replacement == Replacement::Arc { self.demote(false) } else { self.evict_oldest() };
        self.drop_excess_ghosts();
        Some(evicted)
    }

    /// Every LPN whose entry is in DRAM, in order.
    pub fn iter(&self) -> impl Iterator<Item = Lpn> + '_ {
        self.resident.iter().map(Lpn)
    }

    fn reserve_adaptively(&mut self, lpn: Lpn, full: bool) -> Option<Lpn> {
        let [recent, _, recent_ghosts, frequent_ghosts] = self.lengths;
        let slot = self.slot_of[lpn.0 as usize];
        if slot != NONE {
            let was_frequent = self.lists[slot as usize] == FREQUENT_GHOSTS;
            self.target = if was_frequent {
                self.target.saturating_sub((recent_ghosts / frequent_ghosts).max(1))
            } else {
                self.capacity.min(self.target + (frequent_ghosts / recent_ghosts).max(1))
            };
            return full.then(|| self.demote(was_frequent));
        }
        if recent + recent_ghosts >= self.capacity {
            if recent_ghosts == 0 {
                return full.then(|| self.drop_oldest(RECENT));
            }
            self.drop_oldest(RECENT_GHOSTS);
        } else if frequent_ghosts > 0 && self.lengths.iter().sum::<u32>() >= 2 * self.capacity {
            self.drop_oldest(FREQUENT_GHOSTS);
        }
        full.then(|| self.demote(false))
    }

    /// Forgets ghosts until ARC's invariants hold for the capacity: as many recent LPNs as entries fit, and twice as many
    /// LPNs in all.
    fn drop_excess_ghosts(&mut self) {
        while self.lengths[RECENT_GHOSTS as usize] > 0
            && self.lengths[RECENT as usize] + self.lengths[RECENT_GHOSTS as usize] > self.capacity
        {
            self.drop_oldest(RECENT_GHOSTS);
        }
        while self.lengths[FREQUENT_GHOSTS as usize] > 0 && self.lengths.iter().sum::<u32>() > 2 * self.capacity {
            self.drop_oldest(FREQUENT_GHOSTS);
        }
    }

    /// ARC's REPLACE: the entry leaves DRAM, its LPN is remembered.
    fn demote(&mut self, for_frequent_ghost: bool) -> Lpn {
        let [recent, frequent, ..] = self.lengths;
        let above = recent > self.target || (for_frequent_ghost && recent == self.target);
        let (from, to) =
            if recent > 0 && above || frequent == 0 { (RECENT, RECENT_GHOSTS) } else { (FREQUENT, FREQUENT_GHOSTS) };
        let slot = self.oldest(from);
        let lpn = self.lpns[slot as usize];
        self.resident.remove(lpn);
        self.move_to(slot, to);
        Lpn(lpn)
    }

    fn evict_oldest(&mut self) -> Lpn {
        let list = if self.lengths[RECENT as usize] > 0 { RECENT } else { FREQUENT };
        self.drop_oldest(list)
    }

    /// Forgets the oldest slot of `list`.
    fn drop_oldest(&mut self, list: u8) -> Lpn {
        let slot = self.oldest(list);
        let lpn = self.lpns[slot as usize];
        self.detach(slot);
        self.resident.remove(lpn);
        self.slot_of[lpn as usize] = NONE;
        self.links[slot as usize].older = self.free;
        self.free = slot;
        Lpn(lpn)
    }

    #[inline(always)]
    fn head(&self, list: u8) -> u32 {
        self.lists.len() as u32 + u32::from(list)
    }

    /// The least recently used slot of a list that is not empty.
    #[inline(always)]
    fn oldest(&self, list: u8) -> u32 {
        debug_assert!(self.lengths[list as usize] > 0);
        self.links[self.head(list) as usize].newer
    }

    /// Moves a slot of `list` to its recent end.
    #[inline(always)]
    fn renew(&mut self, slot: u32, list: u8) {
        self.unlink(slot);
        self.link(slot, list);
    }

    #[inline(always)]
    fn move_to(&mut self, slot: u32, list: u8) {
        self.detach(slot);
        self.attach(slot, list);
    }

    fn attach(&mut self, slot: u32, list: u8) {
        self.lists[slot as usize] = list;
        self.lengths[list as usize] += 1;
        self.link(slot, list);
    }

    fn detach(&mut self, slot: u32) {
        self.lengths[self.lists[slot as usize] as usize] -= 1;
        self.unlink(slot);
    }

    #[inline(always)]
    fn link(&mut self, slot: u32, list: u8) {
        let head = self.head(list);
        let second = self.links[head as usize].older;
        self.links[slot as usize] = Links { newer: head, older: second };
        self.links[second as usize].newer = slot;
        self.links[head as usize].older = slot;
    }

    #[inline(always)]
    fn unlink(&mut self, slot: u32) {
        let Links { newer, older } = self.links[slot as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Looks `lpn` up, and brings it in on a miss.
    fn touch(cmt: &mut Cmt, lpn: u32) -> (bool, Option<u32>) {
        if cmt.access(Lpn(lpn)) {
            return (true, None);
        }
        let evicted = cmt.reserve(Lpn(lpn));
        cmt.insert(Lpn(lpn));
        (false, evicted.map(|l| l.0))
    }

    #[test]
    fn lru_evicts_the_least_recently_used() {
        let mut cmt = Cmt::new(Replacement::Lru, 100, 3, 3);
        for lpn in [1, 2, 3, 1] {
            touch(&mut cmt, lpn);
        }
        assert_eq!(touch(&mut cmt, 4), (false, Some(2)));
        assert_eq!(touch(&mut cmt, 1), (true, None));
        assert_eq!(touch(&mut cmt, 5), (false, Some(3)));
    }

    #[test]
    fn a_scan_does_not_wash_out_what_segmented_lru_and_arc_protect() {
        for replacement in [Replacement::SegmentedLru, Replacement::Arc] {
            let mut cmt = Cmt::new(replacement, 1000, 10, 10);
            for lpn in [1, 2, 3, 1, 2, 3] {
                touch(&mut cmt, lpn);
            }
            for lpn in 100..200 {
                touch(&mut cmt, lpn);
            }
            assert!((1..=3).all(|l| cmt.contains(Lpn(l))), "{replacement:?} lost its protected entries");
        }
    }

    /// ARC as its paper writes it, with vectors (most recent first).
    #[derive(Default)]
    struct PlainArc {
        capacity: usize,
        target: usize,
        t1: Vec<u32>,
        t2: Vec<u32>,
        b1: Vec<u32>,
        b2: Vec<u32>,
    }

    impl PlainArc {
        fn replace(&mut self, in_b2: bool) {
            if !self.t1.is_empty() && (self.t1.len() > self.target || in_b2 && self.t1.len() == self.target) {
                self.b1.insert(0, self.t1.pop().unwrap());
            } else {
                self.b2.insert(0, self.t2.pop().unwrap());
            }
        }

        fn touch(&mut self, lpn: u32) -> bool {
            let cached = self.t1.len() + self.t2.len();
            self.t1.retain(|l| *l != lpn);
            self.t2.retain(|l| *l != lpn);
            if self.t1.len() + self.t2.len() < cached {
                self.t2.insert(0, lpn);
                return true;
            }
            if self.b1.contains(&lpn) {
                self.target = self.capacity.min(self.target + (self.b2.len() / self.b1.len()).max(1));
                self.replace(false);
                self.b1.retain(|l| *l != lpn);
                self.t2.insert(0, lpn);
                return false;
            }
            if self.b2.contains(&lpn) {
                self.target = self.target.saturating_sub((self.b1.len() / self.b2.len()).max(1));
                self.replace(true);
                self.b2.retain(|l| *l != lpn);
                self.t2.insert(0, lpn);
                return false;
            }
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if self.t1.len() + self.b1.len() == self.capacity {
                if self.t1.len() < self.capacity {
                    self.b1.pop();
                    self.replace(false);
                } else {
                    self.t1.pop();
                }
            } else if all >= self.capacity {
                if all == 2 * self.capacity {
                    self.b2.pop();
                }
                self.replace(false);
            }
            self.t1.insert(0, lpn);
            false
        }
    }

    #[test]
    fn arc_does_what_its_paper_writes() {
        let mut random = Random::new(3);
        let mut cmt = Cmt::new(Replacement::Arc, 200, 20, 20);
        let mut plain = PlainArc { capacity: 20, ..PlainArc::default() };
        for turn in 0..20_000u64 {
            // Phases of skew and of scans, so that the border moves both ways.
            let lpn = if turn / 500 % 2 == 0 { random.below(1 + random.clone().below(200)) } else { turn % 200 };
            assert_eq!(touch(&mut cmt, lpn as u32).0, plain.touch(lpn as u32), "at access {turn}");
            let lengths = [&plain.t1, &plain.t2, &plain.b1, &plain.b2].map(|l| l.len() as u32);
            assert_eq!((cmt.lengths, cmt.target as usize), (lengths, plain.target), "at access {turn}");
        }
    }

    #[test]
    fn a_table_that_shrinks_and_grows_keeps_its_books() {
        for replacement in [Replacement::Lru, Replacement::SegmentedLru, Replacement::Arc] {
            let mut random = Random::new(5);
            let mut cmt = Cmt::new(replacement, 300, 50, 100);
            let mut held = std::collections::BTreeSet::new();
            for turn in 0..20_000 {
                if turn % 97 == 0 {
                    cmt.set_capacity(1 + random.below(100) as u32);
                    while let Some(lpn) = cmt.evict_excess() {
                        assert!(held.remove(&lpn.0));
                    }
                }
                let lpn = random.below(300) as u32;
                let (hit, evicted) = touch(&mut cmt, lpn);
                assert_eq!(hit, !held.insert(lpn));
                if let Some(evicted) = evicted {
                    assert!(held.remove(&evicted));
                }
                assert!(cmt.len() <= cmt.capacity());
                assert_eq!(cmt.len() as usize, held.len());
            }
            assert_eq!(cmt.iter().map(|l| l.0).collect::<Vec<_>>(), held.into_iter().collect::<Vec<_>>());
        }
    }
}
