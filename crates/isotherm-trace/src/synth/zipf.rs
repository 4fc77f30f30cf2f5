//! Exact Zipf sampling in constant time and a few tens of KiB: rank r (from 1) has a probability in proportion to r^-theta.
//!
//! The first [`HEAD`] ranks are slots of an alias table, the rest are cut into runs whose length is 1/64 of their first
//! rank, each run one more slot with the weight it would have if all its ranks were as popular as its first. A draw that
//! hits a run takes a rank of it uniformly and keeps it with probability (rank / first)^-theta, which is nearly 1: the
//! rejection makes the distribution exact, and all but about theta/64 of the draws are accepted by a comparison with the
//! run's last rank, without a power.

use super::alias::Alias;
use isotherm::random::Random;
use std::ops::Range;

/// Ranks with a slot of their own.
const HEAD: u32 = 4096;

/// How popular a rank is, beside the others.
fn popularity(rank: u32, theta: f64) -> f64 {
    libm::pow(f64::from(rank) + 1.0, -theta)
}

/// Ranks `first..first + length`, all beyond the head.
#[derive(Clone, Copy)]
struct Run {
    first: u32,
    length: u32,
    /// Probability of keeping its last rank: every rank of the run is kept at least as often.
    keep_last: f64,
}

/// A Zipf distribution over ranks `0..n`.
#[derive(Clone)]
pub(crate) struct Zipf {
    theta: f64,
    head: u32,
    alias: Alias,
    runs: Box<[Run]>,
}

impl Zipf {
    /// `n` > 0 ranks, theta >= 0.
    pub(crate) fn new(n: u32, theta: f64) -> Self {
        let head = n.min(HEAD);
        let popularity = |rank: u32| popularity(rank, theta);
        let mut weights: Vec<f64> = (0..head).map(popularity).collect();
        let mut runs = Vec::new();
        let mut first = head;
        while first < n {
            let length = (first / 64).min(n - first);
            let keep_last = popularity(first + length - 1) / popularity(first);
            weights.push(popularity(first) * f64::from(length));
            runs.push(Run { first, length, keep_last });
            first += length;
        }
        Self { theta, head, alias: Alias::new(&weights), runs: runs.into_boxed_slice() }
    }

    /// How popular the ranks of a range are together, beside others.
    pub(crate) fn weight(&self, ranks: Range<u32>) -> f64 {
        // Beyond the head the sum is the integral between the middles, to one part in a hundred million.
        let summed = ranks.start..ranks.end.min(ranks.start.max(HEAD));
        let mut weight: f64 = summed.map(|rank| popularity(rank, self.theta)).sum();
        let (low, high) = (f64::from(ranks.start.max(HEAD)) + 0.5, f64::from(ranks.end) + 0.5);
        if high > low {
            let power = 1.0 - self.theta;
            weight += match power.abs() < 1e-9 {
                true => libm::log(high / low),
                false => (libm::pow(high, power) - libm::pow(low, power)) / power,
            };
        }
        weight
    }

    /// Draws a rank from 0.
    #[inline(always)]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let slot = self.alias.draw(random);
            if slot < self.head {
                return slot;
            }
            let Run { first, length, keep_last } = self.runs[(slot - self.head) as usize];
            let rank = first + random.below(u64::from(length)) as u32;
            let keep = random.unit();
            if keep < keep_last || keep < self.keep(first, rank) {
                return rank;
            }
        }
    }

    #[cold]
    fn keep(&self, first: u32, rank: u32) -> f64 {
        libm::pow((f64::from(rank) + 1.0) / (f64::from(first) + 1.0), -self.theta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic against the exact probabilities, over bins of ranks in geometric steps.
    fn chi_square(n: u32, theta: f64, sampled_theta: f64) -> (f64, usize) {
        const DRAWS: u32 = 2_000_000;
        let bin_of = |rank: u32| (f64::from(rank) + 1.0).log2().mul_add(4.0, 0.0) as usize;
        let bins = bin_of(n - 1) + 1;
        let (mut expected, mut counts) = (vec![0.0; bins], vec![0u32; bins]);
        (0..n).for_each(|rank| expected[bin_of(rank)] += (f64::from(rank) + 1.0).powf(-theta));
        let total: f64 = expected.iter().sum();
        let zipf = Zipf::new(n, sampled_theta);
        let mut random = Random::new(99);
        (0..DRAWS).for_each(|_| counts[bin_of(zipf.draw(&mut random))] += 1);
        let used = expected.iter().zip(&counts).filter(|(e, _)| **e > 0.0);
        let terms: Vec<f64> = used
            .map(|(weight, count)| {
                let mean = weight / total * f64::from(DRAWS);
                (f64::from(*count) - mean).powi(2) / mean
            })
            .collect();
        (terms.iter().sum(), terms.len() - 1)
    }

    #[test]
    fn weights_of_ranges_are_sums_over_their_ranks() {
        for theta in [0.0, 0.99, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(1 << 20, theta);
            for (first, end) in [(0, 1), (7, 9), (3000, 4096), (4000, 5000), (4096, 4097), (300_000, 1 << 20)] {
                let sum: f64 = (first..end).map(|rank| popularity(rank, theta)).sum();
                let weight = zipf.weight(first..end);
                assert!((weight / sum - 1.0).abs() < 1e-7, "{theta}, {first}..{end}: {weight}, {sum}");
            }
        }
    }

    #[test]
    fn frequencies_follow_the_law_in_head_and_tail() {
        for (n, theta) in [(100, 0.8), (5000, 1.1), (300_000, 0.99), (300_000, 0.0), (1_000_003, 1.2), (300_000, 2.5)] {
            let (statistic, freedom) = chi_square(n, theta, theta);
            // Mean plus six standard deviations of the chi-square distribution.
            let limit = freedom as f64 + 6.0 * (2.0 * freedom as f64).sqrt();
            assert!(statistic < limit, "n {n} theta {theta}: {statistic} against {limit}");
        }
    }

    #[test]
    fn a_slightly_different_law_is_told_apart() {
        let (statistic, freedom) = chi_square(300_000, 0.99, 1.0);
        assert!(statistic > 10.0 * freedom as f64, "{statistic}");
    }

    #[test]
    fn one_page_is_always_the_same() {
        assert_eq!(Zipf::new(1, 1.0).draw(&mut Random::new(1)), 0);
    }
}
