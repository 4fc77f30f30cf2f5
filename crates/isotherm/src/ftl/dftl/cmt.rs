//! The cached mapping table: which entries of the map are in DRAM, and which leaves when another comes.
//!
//! Every operation is O(1). Replacement is
//! - `lru`: one list, the least recently used entry leaves;
//! - `segmented_lru` (Karedla, Love & Wherry): an entry enters a probationary list and moves to a protected one on its
//!   first hit; the protected list keeps a share of the capacity, and its overflow gets a second chance;
//! - `arc` (Megiddo & Modha, figure 4): entries seen once and entries seen again in a list each, and two lists of the LPNs
//!   that left them, whose hits move the border between the two.
//!
//! A list in order of use is kept as a record of uses, not as links: each use appends the LPN to a ring, one column over all
//! LPNs says where the newest record of each is, and older ones are stale. The least recently used entry is the oldest record
//! that is not. So memory is touched in sequence, and ahead of time, where links would jump from neighbour to neighbour. A
//! ring that is full drops its stale records, at least half of them, so that this costs O(1) a use.
//!
//! The simulator finds a place by a column over all LPNs; a controller would hash, and is charged for entries alone.

use crate::address::{Lpn, MAX_PAGES};
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
const LISTS: usize = 4;

/// In no list.
const NOWHERE: u32 = u32::MAX;
/// A place is a list, in the two bits above, and an index into its ring.
const INDEX_BITS: u32 = MAX_PAGES.trailing_zeros();

/// The list of a place.
#[inline(always)]
fn list_of(place: u32) -> u8 {
    (place >> INDEX_BITS) as u8
}

/// Share of the capacity that the protected list of segmented LRU may fill.
const PROTECTED_SHARE: f64 = 0.8;

/// Records ahead of the oldest whose places are prefetched: what leaves next is known long before it does.
const RECORDS_AHEAD: u32 = 12;

/// Uses in their order, in a ring. The records between `oldest` and `next` count, stale ones included.
#[derive(Clone, Default, Debug)]
struct Uses {
    lpns: Vec<u32>,
    oldest: u32,
    next: u32,
    records: u32,
}

impl Uses {
    /// A ring for at most `entries` LPNs. Never longer than indices can tell, and short of the one that means nowhere.
    fn new(entries: u32) -> Self {
        let length = (2 * u64::from(entries) + 1).min(u64::from(MAX_PAGES) - 1);
        Self { lpns: memory::zeroed_table(length as usize), ..Self::default() }
    }

    /// The index after `index`.
    #[inline(always)]
    fn after(&self, index: u32) -> u32 {
        if index as usize + 1 == self.lpns.len() { 0 } else { index + 1 }
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Cmt {
    replacement: Replacement,
    capacity: u32,
    capacity_max: u32,
    /// Where the newest record of every LPN is, ghosts included.
    places: Vec<u32>,
    resident: Bits,
    uses: [Uses; LISTS],
    /// LPNs in each list.
    lengths: [u32; LISTS],
    /// Entries that ARC wants in the recent list.
    target: u32,
}

impl Cmt {
    /// An empty table of `capacity` entries, which may grow to `capacity_max`, over `logical_pages` LPNs.
    pub fn new(replacement: Replacement, logical_pages: u32, capacity: u32, capacity_max: u32) -> Self {
        // A table larger than the map never evicts, and needs no more records than there are pages.
        let capacity_max = capacity_max.min(logical_pages);
        let lists = match replacement {
            Replacement::Lru => 1,
            Replacement::SegmentedLru => 2,
            Replacement::Arc => LISTS,
        };
        Self {
            replacement,
            capacity: capacity.min(capacity_max),
            capacity_max,
            places: memory::table(logical_pages as usize, NOWHERE),
            resident: Bits::new(logical_pages as usize),
            uses: std::array::from_fn(|list| if list < lists { Uses::new(capacity_max) } else { Uses::default() }),
            lengths: [0; LISTS],
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
        self.lengths[usize::from(RECENT)] + self.lengths[usize::from(FREQUENT)]
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

    /// Whether the entry of one of `lpns` that is in `wanted` is not in DRAM. Changes nothing.
    #[inline(always)]
    pub fn lacks_some(&self, wanted: &Bits, lpns: std::ops::Range<u32>) -> bool {
        wanted.exceeds(&self.resident, lpns.start, lpns.end)
    }

    /// In how many of the ranges of so many LPNs, a multiple of 64, the entry of one that is in `wanted` is not in DRAM.
    pub fn ranges_lacking_some(&self, wanted: &Bits, lpns: usize) -> u64 {
        debug_assert!(lpns.is_multiple_of(64));
        wanted.ranges_exceeding(&self.resident, lpns / 64)
    }

    /// Brings the place of `lpn` towards the cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: Lpn) {
        memory::prefetch(&self.places, lpn.0 as usize);
    }

    /// Looks `lpn` up as a use of it; true if its entry is in DRAM.
    #[inline(always)]
    pub fn access(&mut self, lpn: Lpn) -> bool {
        if !self.resident.contains(lpn.0) {
            return false;
        }
        match self.replacement {
            Replacement::Lru => self.append(lpn, RECENT),
            Replacement::SegmentedLru => {
                self.move_to(lpn, FREQUENT);
                let protected = (f64::from(self.capacity) * PROTECTED_SHARE) as u32;
                if self.lengths[usize::from(FREQUENT)] > protected.max(1) {
                    let oldest = self.take_oldest(FREQUENT);
                    self.move_to(oldest, RECENT);
                }
            }
            Replacement::Arc => self.move_to(lpn, FREQUENT),
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
        if self.places[lpn.0 as usize] == NOWHERE {
            self.lengths[usize::from(RECENT)] += 1;
            self.append(lpn, RECENT);
        } else {
            self.move_to(lpn, FREQUENT);
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
        let place = self.places[lpn.0 as usize];
        if place != NOWHERE {
            let was_frequent = list_of(place) == FREQUENT_GHOSTS;
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
        while self.lengths[usize::from(RECENT_GHOSTS)] > 0
            && self.lengths[usize::from(RECENT)] + self.lengths[usize::from(RECENT_GHOSTS)] > self.capacity
        {
            self.drop_oldest(RECENT_GHOSTS);
        }
        while self.lengths[usize::from(FREQUENT_GHOSTS)] > 0 && self.lengths.iter().sum::<u32>() > 2 * self.capacity {
            self.drop_oldest(FREQUENT_GHOSTS);
        }
    }

    /// ARC's REPLACE: the entry leaves DRAM, its LPN is remembered.
    fn demote(&mut self, for_frequent_ghost: bool) -> Lpn {
        let [recent, frequent, ..] = self.lengths;
        let above = recent > self.target || (for_frequent_ghost && recent == self.target);
        let (from, to) =
            if recent > 0 && above || frequent == 0 { (RECENT, RECENT_GHOSTS) } else { (FREQUENT, FREQUENT_GHOSTS) };
        let lpn = self.take_oldest(from);
        self.resident.remove(lpn.0);
        self.move_to(lpn, to);
        lpn
    }

    fn evict_oldest(&mut self) -> Lpn {
        let list = if self.lengths[usize::from(RECENT)] > 0 { RECENT } else { FREQUENT };
        self.drop_oldest(list)
    }

    /// Forgets the LPN of `list` that was used longest ago.
    fn drop_oldest(&mut self, list: u8) -> Lpn {
        let lpn = self.take_oldest(list);
        self.lengths[usize::from(list)] -= 1;
        self.resident.remove(lpn.0);
        self.places[lpn.0 as usize] = NOWHERE;
        lpn
    }

    /// Takes the oldest record of a list that is not empty, which has to find another place.
    #[inline(always)]
    fn take_oldest(&mut self, list: u8) -> Lpn {
        debug_assert!(self.lengths[usize::from(list)] > 0);
        let uses = &mut self.uses[usize::from(list)];
        loop {
            let place = u32::from(list) << INDEX_BITS | uses.oldest;
            let lpn = uses.lpns[uses.oldest as usize];
            if let Some(ahead) = uses.lpns.get((uses.oldest + RECORDS_AHEAD) as usize) {
                memory::prefetch(&self.places, *ahead as usize);
            }
            uses.oldest = uses.after(uses.oldest);
            uses.records -= 1;
            if self.places[lpn as usize] == place {
                return Lpn(lpn);
            }
        }
    }

    /// Moves an LPN from its list to the recent end of another.
    #[inline(always)]
    fn move_to(&mut self, lpn: Lpn, list: u8) {
        self.lengths[usize::from(list_of(self.places[lpn.0 as usize]))] -= 1;
        self.lengths[usize::from(list)] += 1;
        self.append(lpn, list);
    }

    /// Records a use of `lpn`, whose older record becomes stale.
    #[inline(always)]
    fn append(&mut self, lpn: Lpn, list: u8) {
        if self.uses[usize::from(list)].records as usize == self.uses[usize::from(list)].lpns.len() {
            self.drop_stale(list);
        }
        let uses = &mut self.uses[usize::from(list)];
        uses.lpns[uses.next as usize] = lpn.0;
        self.places[lpn.0 as usize] = u32::from(list) << INDEX_BITS | uses.next;
        uses.next = uses.after(uses.next);
        uses.records += 1;
    }

    /// Moves the records of a full ring together, without the stale ones.
    #[inline(never)]
    fn drop_stale(&mut self, list: u8) {
        let uses = &mut self.uses[usize::from(list)];
        let (mut from, mut to, mut kept) = (uses.oldest, uses.oldest, 0);
        for _ in 0..uses.records {
            let lpn = uses.lpns[from as usize];
            if let Some(ahead) = uses.lpns.get((from + RECORDS_AHEAD) as usize) {
                memory::prefetch(&self.places, *ahead as usize);
            }
            if self.places[lpn as usize] == u32::from(list) << INDEX_BITS | from {
                uses.lpns[to as usize] = lpn;
                self.places[lpn as usize] = u32::from(list) << INDEX_BITS | to;
                to = uses.after(to);
                kept += 1;
            }
            from = uses.after(from);
        }
        uses.next = to;
        uses.records = kept;
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
