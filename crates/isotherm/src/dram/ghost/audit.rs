//! The bitmap ghost beside an exact one that hears the same: how many of the bitmap's hits are false, and how many its density
//! predicts.
//!
//! A look-up that the exact ghost misses hits the bitmap for one of two reasons. Another address has set the bit since it was
//! cleared last: a false hit, which it would also be had the address itself never been entered, and as likely as bits are
//! dense. Or only the address itself has: the exact ghost has forgotten it and the bitmap, whose resets are random, has not: a
//! late hit, of which the density knows nothing.
//!
//! An oracle, not a proposal: 4 bytes a bit tell who set it. O(1) for every operation.

use super::{GhostBitmap, GhostLru};
use crate::address::Lpn;
use crate::stats::share;

crate::counters! {
    /// A bitmap ghost beside an exact one that hears the same look-ups: those that missed the map's cache.
    #[derive(Copy)]
    pub struct GhostAuditCounters: GhostAuditResults {
        /// Look-ups that missed the map's cache.
        lookups: u64,
        /// Of these, hits of the bitmap.
        bitmap_hits: u64,
        /// Of these, hits of the exact ghost.
        exact_hits: u64,
        /// Hits of the bitmap where the exact ghost missed.
        excess_hits: u64,
        /// Of the excess hits, those on a bit that nobody but the address itself has set: the exact ghost forgot it first. The
        /// others are false.
        late_hits: u64,
        /// Sum of the bitmap's densities at the look-ups that the exact ghost missed: the false hits to be expected.
        unreported density_sum: f64,
        /// Excess hits for each look-up that the exact ghost missed.
        fn excess_hit_rate(&self) -> Option<f64> {
            share(self.excess_hits, self.lookups - self.exact_hits)
        }
        /// The same without late hits.
        fn false_hit_rate(&self) -> Option<f64> {
            share(self.excess_hits - self.late_hits, self.lookups - self.exact_hits)
        }
        /// What the bitmap's density predicts: its mean over those look-ups.
        fn false_hit_rate_predicted(&self) -> Option<f64> {
            let missed = self.lookups - self.exact_hits;
            (missed > 0).then(|| self.density_sum / missed as f64)
        }
    }
}

/// Nobody has set this bit since it was cleared.
const NOBODY: u32 = u32::MAX;
/// More than one address has.
const SEVERAL: u32 = u32::MAX - 1;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct GhostAudit {
    bitmap: GhostBitmap,
    exact: GhostLru,
    /// Of each bit: the address that has set it since it was cleared.
    owners: Vec<u32>,
    counters: GhostAuditCounters,
}

impl GhostAudit {
    /// Two ghosts that hold nothing yet.
    pub fn new(bitmap: GhostBitmap, exact: GhostLru) -> Self {
        let owners = vec![NOBODY; bitmap.memory_bytes() as usize * 8];
        Self { bitmap, exact, owners, counters: GhostAuditCounters::default() }
    }

    /// Notes what both ghosts say to a look-up of `lpn`.
    pub fn count(&mut self, lpn: Lpn) {
        let (hits_bitmap, hits_exact) = (self.bitmap.contains(lpn), self.exact.contains(lpn.0));
        let is_own = self.owners[self.bitmap.bit_of(lpn) as usize] == lpn.0;
        let counters = &mut self.counters;
        counters.lookups += 1;
        counters.bitmap_hits += u64::from(hits_bitmap);
        counters.exact_hits += u64::from(hits_exact);
        if !hits_exact {
            counters.excess_hits += u64::from(hits_bitmap);
            counters.late_hits += u64::from(is_own);
            counters.density_sum += self.bitmap.density();
        }
    }

    /// Takes `lpn` out of both; true if the bitmap, which decides, seemed to hold it.
    pub fn take(&mut self, lpn: Lpn) -> bool {
        self.exact.remove(lpn.0);
        self.owners[self.bitmap.bit_of(lpn) as usize] = NOBODY;
        self.bitmap.take(lpn)
    }

    /// Enters `lpn` in both; the ghosts may stand for at most `capacity` addresses.
    pub fn insert(&mut self, lpn: Lpn, capacity: u32) {
        let owner = &mut self.owners[self.bitmap.bit_of(lpn) as usize];
        *owner = if *owner == NOBODY || *owner == lpn.0 { lpn.0 } else { SEVERAL };
        self.bitmap.insert(lpn, capacity, |bit| self.owners[bit as usize] = NOBODY);
        self.exact.insert(lpn.0);
    }

    /// Sets the capacity of both.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.bitmap.shrink_to(capacity, |bit| self.owners[bit as usize] = NOBODY);
        self.exact.set_capacity(capacity);
    }

    /// Addresses that the bitmap stands for.
    pub fn size(&self) -> u32 {
        self.bitmap.size()
    }

    /// What was found so far.
    pub fn counters(&self) -> &GhostAuditCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Addresses leave a cache, come back and are looked up, as a map's do: `span` of them, of which `skew` > 1 makes some
    /// come back sooner than others.
    fn audit(log2_bits: u8, capacity: u32, span: u32, skew: i32) -> GhostAuditCounters {
        let mut audit = GhostAudit::new(GhostBitmap::new(log2_bits, 3, 5), GhostLru::new(capacity));
        let mut random = Random::new(13);
        for _ in 0..800_000 {
            let lpn = Lpn((random.unit().powi(skew) * f64::from(span)) as u32);
            audit.count(lpn);
            audit.take(lpn);
            audit.insert(lpn, capacity);
        }
        *audit.counters()
    }

    #[test]
    fn hits_that_are_not_late_are_as_frequent_as_bits_are_dense() {
        // Eight addresses a bit or more: that a look-up clears the bit of others' marks too is then nothing.
        for (log2_bits, capacity, span, skew) in
            [(17, 40_000, 1 << 20, 1), (14, 8_000, 1 << 18, 2), (18, 60_000, 1 << 21, 1)]
        {
            let counters = audit(log2_bits, capacity, span, skew);
            let (rate, predicted) = (counters.false_hit_rate().unwrap(), counters.false_hit_rate_predicted().unwrap());
            assert!((rate / predicted - 1.0).abs() < 0.015, "2^{log2_bits} bits: {rate}, {predicted} expected");
            let with_late = counters.excess_hit_rate().unwrap();
            assert!(with_late > predicted * 1.02, "late hits come on top: {with_late}, {predicted} expected");
        }
    }

    #[test]
    fn an_address_that_only_the_bitmap_remembers_is_late() {
        let mut audit = GhostAudit::new(GhostBitmap::new(20, 3, 5), GhostLru::new(2));
        // The bitmap stands for more than the exact ghost may hold.
        (0..3).for_each(|lpn| audit.insert(Lpn(lpn), 100));
        (0..4).for_each(|lpn| audit.count(Lpn(lpn)));
        let density = 3.0 / f64::from(1 << 20);
        let expected = GhostAuditCounters {
            lookups: 4,
            bitmap_hits: 3,
            exact_hits: 2,
            excess_hits: 1,
            late_hits: 1,
            density_sum: 2.0 * density,
        };
        assert_eq!(*audit.counters(), expected);
    }
}
