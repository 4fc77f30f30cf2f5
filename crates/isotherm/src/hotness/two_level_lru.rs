//! Two-level LRU: a list of hot pages and a list of candidates.
//!
//! Chang and Kuo, "An Adaptive Striping Architecture for Flash Memory Storage Systems of Embedded Systems", RTAS 2002,
//! as section II-C of the MBF paper restates it. A write of a page in the hot list is hot. A write of a candidate
//! promotes the page to the hot list; any other page becomes a candidate. The hot list's overflow (its least recently
//! written page) goes back to the candidates, and the candidates' overflow is forgotten.
//!
//! Departures: the text calls a page hot if it is in the hot list *already*, so the promoting write itself is cold;
//! `decide = after` counts it as hot.
//!
//! Both lists are threaded through one array of entries; a chained hash table finds a page's entry. Nothing is allocated
//! after the build. Complexity: O(1) expected per write; 21 bytes for each entry of both lists.

use super::hash::Probe;
use super::{Hotness, Temperature};
use crate::address::Lpn;
use crate::registry::{Parameter, Parameters, SpecError};

/// No entry: the end of a list or chain.
const NONE: u32 = u32::MAX;
/// Largest list.
const ENTRIES_MAX: u64 = 1 << 24;

/// What can be set; the MBF paper gives no sizes for this scheme.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("hot", 1..=ENTRIES_MAX, "512").help("pages in the hot list"),
    Parameter::integer("candidates", 1..=ENTRIES_MAX, "1024").help("pages in the candidate list"),
    Parameter::choice("decide", &["before", "after"], "before").help("the promoting write: cold or hot"),
];

/// One page in one of the lists.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lpn: u32,
    /// Next more recently written page of the list.
    newer: u32,
    /// Next less recently written page of the list; links the free entries too.
    older: u32,
    /// Next entry in the same hash chain.
    chain: u32,
}

/// A list in order of recency.
#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
    length: u32,
    capacity: u32,
}

impl List {
    fn new(capacity: u32) -> Self {
        Self { newest: NONE, oldest: NONE, length: 0, capacity }
    }
}

/// Index of the hot list.
const HOT: usize = 1;
/// Index of the candidate list.
const CANDIDATES: usize = 0;

/// Two-level LRU.
#[derive(Clone, Debug)]
pub struct TwoLevelLru {
    entries: Box<[Entry]>,
    /// Which list an entry is in.
    list_of: Box<[u8]>,
    /// First entry of each hash chain.
    chains: Box<[u32]>,
    lists: [List; 2],
    /// First free entry.
    free: u32,
    decide_after: bool,
}

impl TwoLevelLru {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn build(parameters: &Parameters<'_>) -> Result<Self, SpecError> {
        let hot = parameters.integer("hot") as u32;
        let candidates = parameters.integer("candidates") as u32;
        let total = hot + candidates;
        let entries = (1..=total)
            .map(|next| Entry { lpn: 0, newer: NONE, older: if next < total { next } else { NONE }, chain: NONE })
            .collect();
        Ok(Self {
            entries,
            list_of: vec![0; total as usize].into_boxed_slice(),
            chains: vec![NONE; total as usize].into_boxed_slice(),
            lists: [List::new(candidates), List::new(hot)],
            free: 0,
            decide_after: parameters.is("decide", "after"),
        })
    }

    #[inline(always)]
    fn chain_of(&self, lpn: u32) -> usize {
        Probe::new(Lpn(lpn)).slot(self.chains.len() as u32) as usize
    }

    /// The entry of a page, or [`NONE`].
    #[inline(always)]
    fn find(&self, lpn: u32) -> u32 {
        let mut at = self.chains[self.chain_of(lpn)];
        while at != NONE && self.entries[at as usize].lpn != lpn {
            at = self.entries[at as usize].chain;
        }
        at
    }

    /// Takes an entry out of its list.
    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        let list = &mut self.lists[usize::from(self.list_of[at as usize])];
        match newer {
            NONE => list.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => list.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        list.length -= 1;
    }

    /// Puts an entry at the recent end of a list.
    fn push(&mut self, at: u32, into: usize) {
        let list = &mut self.lists[into];
        let second = std::mem::replace(&mut list.newest, at);
        match second {
            NONE => list.oldest = at,
            second => self.entries[second as usize].newer = at,
        }
        list.length += 1;
        self.list_of[at as usize] = into as u8;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, second);
    }

    /// Forgets the oldest candidate if there is no room for one more.
    fn make_room_for_candidate(&mut self) {
        let List { oldest, length, capacity, .. } = self.lists[CANDIDATES];
        if length < capacity {
            return;
        }
        self.unlink(oldest);
        let chain = self.chain_of(self.entries[oldest as usize].lpn);
        let next = self.entries[oldest as usize].chain;
        if self.chains[chain] == oldest {
            self.chains[chain] = next;
        } else {
            let mut before = self.chains[chain];
            while self.entries[before as usize].chain != oldest {
                before = self.entries[before as usize].chain;
            }
            self.entries[before as usize].chain = next;
        }
        self.entries[oldest as usize].older = self.free;
        self.free = oldest;
    }

    fn insert_candidate(&mut self, lpn: u32) {
        self.make_room_for_candidate();
        let at = self.free;
        self.free = self.entries[at as usize].older;
        let chain = self.chain_of(lpn);
        self.entries[at as usize].lpn = lpn;
        self.entries[at as usize].chain = self.chains[chain];
        self.chains[chain] = at;
        self.push(at, CANDIDATES);
    }

    fn promote(&mut self, at: u32) {
        self.unlink(at);
        let hot = self.lists[HOT];
        if hot.length == hot.capacity {
            // The promoted page has just left the candidates, so there is room for the one that comes back.
            self.unlink(hot.oldest);
            self.push(hot.oldest, CANDIDATES);
        }
        self.push(at, HOT);
    }
}

impl Hotness for TwoLevelLru {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        let at = self.find(lpn.0);
        if at == NONE {
            self.insert_candidate(lpn.0);
            return Temperature::COLD;
        }
        if usize::from(self.list_of[at as usize]) == HOT {
            self.unlink(at);
            self.push(at, HOT);
            return Temperature::HOT;
        }
        self.promote(at);
        Temperature::hot_if(self.decide_after)
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        let at = self.find(lpn.0);
        Temperature::hot_if(at != NONE && usize::from(self.list_of[at as usize]) == HOT)
    }

    fn temperatures(&self) -> u8 {
        2
    }

    fn memory_bytes(&self) -> u64 {
        (size_of_val(&*self.entries) + size_of_val(&*self.list_of) + size_of_val(&*self.chains)) as u64
    }
}
