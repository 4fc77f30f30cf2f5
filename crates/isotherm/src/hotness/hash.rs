//! The hash functions that every scheme with small memory shares.
//!
//! One 64-bit mix of the page number gives two independent 32-bit words `a` and `b`; the `k`-th hash function is
//! `a + k b` (Kirsch and Mitzenmacher, "Less hashing, same performance", 2006: two functions are enough for a Bloom
//! filter). A word becomes a slot by multiply-shift, so that any number of slots is allowed and no division is needed.
//! The constants are fixed: the same trace gives the same verdicts on every machine.

use crate::address::Lpn;

/// The hash functions of one page, drawn one after the other by [`Probe::slot`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    word: u32,
    step: u32,
}

impl Probe {
    /// The hash functions of `lpn`.
    #[inline(always)]
    pub(crate) fn new(lpn: Lpn) -> Self {
        // The finaliser of SplitMix64: neighbouring page numbers differ in about half of all bits afterwards.
        let mut mixed = (u64::from(lpn.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        Self { word: mixed as u32, step: (mixed >> 32) as u32 | 1 }
    }

    /// The next hash function's value in `0..slots`.
    #[inline(always)]
    pub(crate) fn slot(&mut self, slots: u32) -> u32 {
        let slot = (u64::from(self.word) * u64::from(slots)) >> 32;
        self.word = self.word.wrapping_add(self.step);
        slot as u32
    }
}

/// Where a slot of some bits lies in an array of words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    word: u32,
    shift: u32,
}

impl Place {
    /// The bits from this place on, at the low end of a word; bits above the slot belong to its neighbours.
    #[inline(always)]
    pub(crate) fn read(self, words: &[u64]) -> u64 {
        words[self.word as usize] >> self.shift
    }

    /// The word of this place, and the slot's distance from its low end.
    #[inline(always)]
    pub(crate) fn word(self, words: &mut [u64]) -> (&mut u64, u32) {
        (&mut words[self.word as usize], self.shift)
    }
}

/// The places of the first `N` hash functions of `lpn` among `slots` slots of `2^log2_slot_bits` bits.
#[inline(always)]
pub(crate) fn places<const N: usize>(lpn: Lpn, slots: u32, log2_slot_bits: u32) -> [Place; N] {
    let mut probe = Probe::new(lpn);
    std::array::from_fn(|_| {
        let bit = probe.slot(slots) << log2_slot_bits;
        Place { word: bit >> 6, shift: bit & 63 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square of `counts` against the uniform distribution, per degree of freedom: near 1 when well mixed.
    fn chi_square_per_degree(counts: &[u32]) -> f64 {
        let mean = counts.iter().map(|&c| f64::from(c)).sum::<f64>() / counts.len() as f64;
        let sum: f64 = counts.iter().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
        sum / (counts.len() - 1) as f64
    }

    #[test]
    fn neighbours_and_strides_spread_evenly_in_every_hash_function() {
        const SLOTS: u32 = 2048;
        for stride in [1u32, 2, 8, 64, 256, 4096, 65_536] {
            let mut counts = vec![vec![0u32; SLOTS as usize]; 4];
            for i in 0..16_384u32 {
                let mut probe = Probe::new(Lpn(i * stride));
                for function in &mut counts {
                    function[probe.slot(SLOTS) as usize] += 1;
                }
            }
            for (function, counts) in counts.iter().enumerate() {
                let chi = chi_square_per_degree(counts);
                // Five standard deviations of chi-square with 2047 degrees of freedom.
                assert!((chi - 1.0).abs() < 0.16, "stride {stride}, function {function}: {chi}");
            }
        }
    }

    #[test]
    fn two_hash_functions_are_independent() {
        let mut counts = vec![0u32; 64 * 64];
        for i in 0..262_144u32 {
            let mut probe = Probe::new(Lpn(i));
            let first = probe.slot(64);
            counts[(first * 64 + probe.slot(64)) as usize] += 1;
        }
        let chi = chi_square_per_degree(&counts);
        assert!((chi - 1.0).abs() < 0.12, "{chi}");
    }
}
