//! The ghost mapping of adaptive partitioning: one bit for each hash value (section IV.A).
//!
//! An address enters by setting the bit of its hash and leaves by resetting a set bit, whichever comes next in a random
//! order: the bitmap does not know which addresses it holds. Collisions set no new bit, so the bits are fewer than the
//! addresses; when the ghost shrinks, bits are reset only while `bits * alpha` is at least the number of addresses that
//! should be preserved, otherwise the size alone goes down.
//!
//! Under steady insertions the bits therefore fall until `bits * alpha` is the size: the ghost remembers a third of what it
//! stands for (alpha = 3), whatever the size of the bitmap.
//!
//! It hits falsely as often as it is dense, which [`GhostBitmap::density`] tells. The paper leaves the random order open:
//! here the next bit comes from a full-period generator over the bitmap (`x = 5 x + odd`), so that a walk meets every bit
//! once in 2^n steps and needs no memory. A reset costs `1 / density` steps on average.

use crate::address::Lpn;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct GhostBitmap {
    words: Vec<u64>,
    mask: u32,
    shift: u32,
    /// Bits that are set.
    bits: u32,
    /// Addresses that the ghost stands for.
    size: u32,
    alpha: u32,
    walk: u32,
    increment: u32,
}

impl GhostBitmap {
    /// An empty bitmap of 2^`log2_bits` bits; `seed` starts the random order of resets.
    pub fn new(log2_bits: u8, alpha: u32, seed: u64) -> Self {
        assert!((6..=30).contains(&log2_bits), "a ghost bitmap has 2^6 to 2^30 bits");
        Self {
            words: vec![0; 1 << (log2_bits - 6)],
            mask: (1 << log2_bits) - 1,
            shift: 32 - u32::from(log2_bits),
            bits: 0,
            size: 0,
            alpha,
            walk: (seed >> 32) as u32,
            increment: seed as u32 | 1,
        }
    }

    #[inline(always)]
    pub(super) fn bit_of(&self, lpn: Lpn) -> u32 {
        // Two rounds of multiply and fold: Fibonacci hashing alone maps runs of addresses without any collision, and the
        // bitmap would look better than its density says.
        let mut x = lpn.0.wrapping_mul(0x85EB_CA6B);
        x = (x ^ x >> 15).wrapping_mul(0xC2B2_AE35);
        (x ^ x >> 16).wrapping_mul(0x9E37_79B1) >> self.shift
    }

    /// Whether `lpn` seems to be in.
    #[inline(always)]
    pub fn contains(&self, lpn: Lpn) -> bool {
        let bit = self.bit_of(lpn);
        self.words[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// Enters `lpn`, which left the real cache; the ghost may stand for at most `capacity` addresses. `on_reset` hears of
    /// the bits that are reset for that.
    #[inline(always)]
    pub fn insert(&mut self, lpn: Lpn, capacity: u32, on_reset: impl FnMut(u32)) {
        let bit = self.bit_of(lpn);
        let word = &mut self.words[bit as usize / 64];
        self.bits += u32::from(*word >> (bit % 64) & 1 == 0);
        *word |= 1 << (bit % 64);
        self.size += 1;
        self.shrink_to(capacity, on_reset);
    }

    /// Takes out `lpn`, which enters the real cache now or is gone; true if it seemed to be in.
    #[inline(always)]
    pub fn take(&mut self, lpn: Lpn) -> bool {
        let bit = self.bit_of(lpn);
        let word = &mut self.words[bit as usize / 64];
        let is_in = *word >> (bit % 64) & 1 == 1;
        if is_in {
            *word &= !(1 << (bit % 64));
            self.bits -= 1;
            self.size = self.size.saturating_sub(1);
        }
        is_in
    }

    /// Reduces the ghost to `size` addresses, by the paper's conditional flush. `on_reset` hears of the bits that are reset.
    pub fn shrink_to(&mut self, size: u32, mut on_reset: impl FnMut(u32)) {
        while self.size > size {
            // With fewer bits than this, collisions have shrunk the bitmap already: only the size goes down.
            if u64::from(self.bits) * u64::from(self.alpha) >= u64::from(self.size) {
                self.reset_one().into_iter().for_each(&mut on_reset);
            }
            self.size -= 1;
        }
    }

    /// The bit that was reset; none where no bit is set.
    fn reset_one(&mut self) -> Option<u32> {
        if self.bits == 0 {
            return None;
        }
        loop {
            self.walk = self.walk.wrapping_mul(5).wrapping_add(self.increment) & self.mask;
            let word = &mut self.words[self.walk as usize / 64];
            if *word >> (self.walk % 64) & 1 == 1 {
                *word &= !(1 << (self.walk % 64));
                self.bits -= 1;
                return Some(self.walk);
            }
        }
    }

    /// Addresses that the ghost stands for.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Share of bits that are set: how often an address that was never entered seems to be in.
    pub fn density(&self) -> f64 {
        f64::from(self.bits) / (f64::from(self.mask) + 1.0)
    }

    /// Bytes of the bitmap.
    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::ghost::GhostLru;
    use crate::random::Random;

    #[test]
    fn false_hits_are_as_frequent_as_set_bits() {
        for entered in [10_000, 100_000, 400_000u32] {
            let mut bitmap = GhostBitmap::new(16, 3, 7);
            (0..entered).for_each(|lpn| bitmap.insert(Lpn(lpn), u32::MAX, |_| {}));
            let never = 1 << 24;
            let hits = (never..never + 100_000).filter(|lpn| bitmap.contains(Lpn(*lpn))).count() as f64 / 1e5;
            // One bit an address, spread at random: a share 1 - e^(-n/bits) of them is set.
            let theory = 1.0 - (-f64::from(entered) / 65_536.0).exp();
            assert!((hits - bitmap.density()).abs() < 0.006, "{hits} hits, density {}", bitmap.density());
            assert!((bitmap.density() - theory).abs() < 0.006, "density {}, theory {theory}", bitmap.density());
        }
    }

    #[test]
    fn excess_hits_over_the_exact_ghost_follow_from_the_density() {
        // Victims of a cache enter both ghosts; look-ups miss the cache. What the exact ghost does not hold hits the bitmap
        // as often as its density at that moment says, or a little more often: its resets are random, so that it still
        // remembers some addresses that the exact ghost has forgotten.
        let capacity = 40_000;
        let (mut bitmap, mut exact) = (GhostBitmap::new(17, 3, 5), GhostLru::new(capacity));
        let mut random = Random::new(13);
        let (mut excess, mut expected, mut strangers) = (0.0, 0.0, 0.0);
        for turn in 0..600_000u32 {
            let lpn = Lpn(random.below(1 << 20) as u32);
            bitmap.insert(lpn, capacity, |_| {});
            exact.insert(lpn.0);
            // A page that was never evicted.
            let stranger = Lpn(1 << 21 | turn);
            excess += f64::from(u8::from(bitmap.contains(stranger)));
            expected += bitmap.density();
            strangers += 1.0;
            assert!(!exact.contains(stranger.0));
        }
        assert!(
            (excess / expected - 1.0).abs() < 0.01,
            "{} hits, {} expected",
            excess / strangers,
            expected / strangers
        );
        // Insertions that collide reset a bit and set none, until so few are left that the flush is withheld: the bits settle
        // at the size over alpha.
        let settled = f64::from(capacity) / 3.0 / 131_072.0;
        assert!((bitmap.density() / settled - 1.0).abs() < 0.01, "{} of bits, {settled} expected", bitmap.density());
    }

    #[test]
    fn shrinking_keeps_bits_that_collisions_have_thinned_out() {
        let mut bitmap = GhostBitmap::new(6, 3, 1);
        (0..1000).for_each(|lpn| bitmap.insert(Lpn(lpn), u32::MAX, |_| {}));
        let bits = bitmap.bits;
        assert!(bits <= 64);
        bitmap.shrink_to(1000 - 1, |_| {});
        assert_eq!(bitmap.bits, bits, "64 bits times 3 are fewer than 1000: only the size goes down");
        bitmap.shrink_to(100, |_| {});
        assert!(bitmap.bits < bits, "64 bits times 3 are more than 100: bits are reset");
    }
}
