//! The schemes as their papers describe them, slow and plain: what the tests compare the real ones with.

use std::collections::VecDeque;

use super::hash::Probe;
use crate::address::Lpn;

/// MBF as section III-A tells it: V bit arrays numbered from 0, reset in turn beginning with the last.
pub(super) struct PlainMbf {
    pub filters: Vec<Vec<bool>>,
    pub hashes: usize,
    pub decay: u64,
    pub threshold: f64,
    pub decide_before: bool,
    writes: u64,
    /// The filter reset last; before the first reset the one whose turn came before the last filter's.
    newest: usize,
}

impl PlainMbf {
    pub fn new(filters: usize, bits: usize, hashes: usize, decay: u64, threshold: f64, decide_before: bool) -> Self {
        let filters = vec![vec![false; bits]; filters];
        let newest = (filters.len() + filters.len() - 2) % filters.len();
        Self { filters, hashes, decay, threshold, decide_before, writes: 0, newest }
    }

    fn slots(&self, lpn: Lpn) -> Vec<usize> {
        let mut probe = Probe::new(lpn);
        (0..self.hashes).map(|_| probe.slot(self.filters[0].len() as u32) as usize).collect()
    }

    fn holds(&self, filter: usize, lpn: Lpn) -> bool {
        self.slots(lpn).iter().all(|&slot| self.filters[filter][slot])
    }

    pub fn index(&self, lpn: Lpn) -> f64 {
        let count = self.filters.len();
        let difference = 1.0 / (count - count / 2) as f64;
        (0..count)
            .filter(|&filter| self.holds(filter, lpn))
            .map(|filter| 2.0 - difference * ((count + self.newest - filter) % count) as f64)
            .sum()
    }

    pub fn is_hot(&self, lpn: Lpn) -> bool {
        self.index(lpn) >= self.threshold - 1e-9
    }

    pub fn observe(&mut self, lpn: Lpn) -> bool {
        let count = self.filters.len();
        let before = self.is_hot(lpn);
        let start = (self.writes % count as u64) as usize;
        if let Some(filter) = (0..count).map(|i| (start + i) % count).find(|&filter| !self.holds(filter, lpn)) {
            for slot in self.slots(lpn) {
                self.filters[filter][slot] = true;
            }
        }
        let verdict = if self.decide_before { before } else { self.is_hot(lpn) };
        self.writes += 1;
        if self.writes.is_multiple_of(self.decay) {
            self.newest = (self.newest + 1) % count;
            self.filters[self.newest].fill(false);
        }
        verdict
    }
}

/// MHF with one integer for each counter.
pub(super) struct PlainMhf {
    pub counters: Vec<u32>,
    pub bits: u32,
    pub significant: u32,
    pub hashes: usize,
    pub decay: u64,
    pub halve_on_overflow: bool,
    pub minimum_only: bool,
    pub writes: u64,
}

impl PlainMhf {
    pub fn observe(&mut self, lpn: Lpn) -> bool {
        let mut probe = Probe::new(lpn);
        let slots: Vec<_> = (0..self.hashes).map(|_| probe.slot(self.counters.len() as u32) as usize).collect();
        let smallest = slots.iter().map(|&slot| self.counters[slot]).min().unwrap();
        let full = (1 << self.bits) - 1;
        for &slot in &slots {
            if self.minimum_only && self.counters[slot] > smallest {
                continue;
            }
            if self.counters[slot] == full && self.halve_on_overflow {
                self.counters.iter_mut().for_each(|c| *c /= 2);
            }
            self.counters[slot] = (self.counters[slot] + 1).min(full);
        }
        let significant_bits = full & !((1 << (self.bits - self.significant)) - 1);
        let verdict = slots.iter().all(|&slot| self.counters[slot] & significant_bits != 0);
        self.writes += 1;
        if self.writes.is_multiple_of(self.decay) {
            self.counters.iter_mut().for_each(|c| *c /= 2);
        }
        verdict
    }
}

/// WDAC by summing over the whole window.
pub(super) struct PlainWdac {
    pub window: usize,
    /// Newest first.
    pub writes: VecDeque<Lpn>,
}

impl PlainWdac {
    pub fn observe(&mut self, lpn: Lpn) {
        self.writes.push_front(lpn);
        self.writes.truncate(self.window);
    }

    pub fn index(&self, lpn: Lpn) -> f64 {
        let ages = self.writes.iter().enumerate().filter(|(_, written)| **written == lpn);
        ages.map(|(age, _)| 2.0 - 2.0 / self.window as f64 * age as f64).sum()
    }
}

/// Two-level LRU with two plain lists, newest first.
pub(super) struct PlainTwoLevelLru {
    pub hot: Vec<Lpn>,
    pub candidates: Vec<Lpn>,
    pub hot_capacity: usize,
    pub candidate_capacity: usize,
}

impl PlainTwoLevelLru {
    pub fn observe(&mut self, lpn: Lpn) -> bool {
        if let Some(at) = self.hot.iter().position(|&p| p == lpn) {
            self.hot.remove(at);
            self.hot.insert(0, lpn);
            return true;
        }
        if let Some(at) = self.candidates.iter().position(|&p| p == lpn) {
            self.candidates.remove(at);
            self.hot.insert(0, lpn);
            if self.hot.len() > self.hot_capacity {
                self.candidates.insert(0, self.hot.pop().unwrap());
            }
        } else {
            self.candidates.insert(0, lpn);
            self.candidates.truncate(self.candidate_capacity);
        }
        false
    }
}
