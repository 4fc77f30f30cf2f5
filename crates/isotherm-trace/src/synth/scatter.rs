//! A seeded bijection from popularity ranks to pages, without a table.
//!
//! Rounds of multiplication by odd numbers and xor with a shift permute the numbers of k bits; numbers beyond the last
//! page are sent round again until they fall inside (cycle walking), which keeps the map one to one.

use isotherm::random::Random;

/// A permutation of `0..pages`.
#[derive(Clone)]
pub(crate) struct Scatter {
    pages: u32,
    mask: u32,
    shift: u32,
    /// Odd multipliers.
    multiply: [u32; 3],
    add: u32,
}

impl Scatter {
    /// The permutation of `0..pages` that `seed` names; `pages` in 1..=2^30.
    pub(crate) fn new(pages: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let bits = pages.next_power_of_two().trailing_zeros().max(1);
        Self {
            pages,
            mask: (1 << bits) - 1,
            shift: bits.div_ceil(2),
            multiply: [(); 3].map(|()| random.bits() as u32 | 1),
            add: random.bits() as u32,
        }
    }

    /// The page of a rank.
    #[inline(always)]
    pub(crate) fn page(&self, rank: u32) -> u32 {
        let mut x = rank;
        loop {
            x = x.wrapping_mul(self.multiply[0]).wrapping_add(self.add) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(self.multiply[1]) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(self.multiply[2]) & self.mask;
            if x < self.pages {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_hit_once() {
        for pages in [1, 2, 3, 5, 64, 1000, 4096, 65_537] {
            let scatter = Scatter::new(pages, u64::from(pages));
            let mut seen = vec![false; pages as usize];
            (0..pages).for_each(|rank| seen[scatter.page(rank) as usize] = true);
            assert!(seen.iter().all(|&hit| hit), "{pages} pages");
        }
    }

    #[test]
    fn popular_ranks_spread_over_the_whole_space() {
        const PAGES: u32 = 1 << 20;
        for seed in 0..20 {
            let scatter = Scatter::new(PAGES, seed);
            let mut sixteenths = [0u32; 16];
            (0..16_000).for_each(|rank| sixteenths[(scatter.page(rank) / (PAGES / 16)) as usize] += 1);
            // A thousand each on average; an even spread may be more regular than chance, but never this lopsided.
            assert!(sixteenths.iter().all(|n| (700..1300).contains(n)), "seed {seed}: {sixteenths:?}");
        }
    }
}
