//! Write amplification in closed form, for stationary traffic on a fully active device: what a correct simulator must meet.
//!
//! The FIFO formula is Desnoyers' and Xiang & Kurkoski's; the finite block size enters through an effective
//! `alpha` as in Desnoyers, "Analytic modeling of SSD write performance" (SYSTOR 2012). `alpha = T/U` with T the physical
//! pages that can hold data: blocks that the collector keeps free are no part of it. Every function is O(1) up to
//! the iterations of a root search.

use isotherm::lambert::lambert_w;

/// `T/U` from the spare factor `(T-U)/T`.
pub fn alpha_of_spare(spare: f64) -> f64 {
    1.0 / (1.0 - spare)
}

/// FIFO victims, uniform random writes.
pub fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * libm::exp(-alpha)))
}

/// What a block of `pages_per_block` pages adds to `alpha` under greedy victims: the victim is the best of many.
fn block_factor(pages_per_block: u32) -> f64 {
    1.0 + 1.0 / (2.0 * f64::from(pages_per_block))
}

/// Greedy victims, uniform random writes, blocks of `pages_per_block` pages.
pub fn greedy(alpha: f64, pages_per_block: u32) -> f64 {
    let k = block_factor(pages_per_block);
    fifo(k * alpha) / k
}

/// Traffic of two temperatures: `hot_pages` of the pages receive `hot_writes` of the writes, each uniformly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoTemperatures {
    /// Share of the pages that are hot (f), in (0, 1).
    pub hot_pages: f64,
    /// Share of the writes that go to them (r), in (0, 1).
    pub hot_writes: f64,
}

impl TwoTemperatures {
    /// FIFO victims, both temperatures mixed in one stream.
    pub fn fifo_mixed(self, alpha: f64) -> f64 {
        let (f, r) = (self.hot_pages, self.hot_writes);
        let right = |wa: f64| {
            1.0 + r / (libm::exp(r / f * alpha / wa) - 1.0)
                + (1.0 - r) / (libm::exp((1.0 - r) / (1.0 - f) * alpha / wa) - 1.0)
        };
        // The right side exceeds the left at 1 and falls behind it before 10 / (alpha - 1) + 10, as it grows like wa / alpha.
        let (mut low, mut high) = (1.0, 10.0 + 10.0 / (alpha - 1.0));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if right(middle) > middle { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// Greedy victims, both temperatures mixed in one stream (good to about 2 %).
    pub fn greedy_mixed(self, alpha: f64, pages_per_block: u32) -> f64 {
        let k = block_factor(pages_per_block);
        self.fifo_mixed(k * alpha) / k
    }
}

/// Pages whose rates are known, each group of one rate in blocks of its own, greedy victims, and the spare space divided among the groups
/// as is best: what separation by rate tends to as blocks become many. `groups` are shares of the pages and of the writes; those that
/// are never written need no spare space. Not a bound: who knows when each page dies may write less.
///
/// Of each group the closed form of uniform traffic holds, with `alpha_g` of its own. Where the sum of `r * wa(alpha_g)` is least, what a little
/// space gains is the same everywhere: `r * wa'(alpha_g) = -lambda * f`. By the share p of valid pages in a victim, `alpha = ln p / (p - 1)`
/// and `wa = 1 / (1 - p)`, so that `-1 / wa' = ln p - 1 + 1 / p`, which falls from infinity to 0.
pub fn known_rates(groups: &[(f64, f64)], alpha: f64, pages_per_block: u32) -> f64 {
    let k = block_factor(pages_per_block);
    let bisect = |low: f64, high: f64, is_below: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (low, high);
        for _ in 0..48 {
            let middle = 0.5 * (low + high);
            if is_below(middle) { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    };
    let space = |p: f64| libm::log(p) / (p - 1.0) / k;
    // No group has less space than its pages take.
    let fullest = bisect(1e-12, 1.0 - 1e-12, &|p| space(p) > 1.0);
    let of_group = |log_lambda: f64, (pages, writes): (f64, f64)| {
        let target = writes / pages * libm::exp(-log_lambda);
        bisect(1e-12, fullest, &|p| libm::log(p) - 1.0 + 1.0 / p > target)
    };
    let taken = |log_lambda: f64| {
        groups
            .iter()
            .filter(|group| group.0 > 0.0)
            .map(|group| group.0 * space(of_group(log_lambda, *group)))
            .sum::<f64>()
    };
    let log_lambda = bisect(-60.0, 60.0, &|log_lambda| taken(log_lambda) > alpha);
    let written = groups.iter().filter(|group| group.1 > 0.0);
    written.map(|group| group.1 / (1.0 - of_group(log_lambda, *group)) / k).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spare factors with the write amplification at 32, 64, 128 and 256 pages a block, greedy, and FIFO.
    const UNIFORM: [(f64, [f64; 4], f64); 8] = [
        (0.03, [11.13, 13.39, 14.92, 15.82], 16.84),
        (0.05, [7.79, 8.82, 9.45, 9.80], 10.17),
        (0.07, [6.01, 6.60, 6.94, 7.12], 7.32),
        (0.10, [4.50, 4.82, 4.99, 5.08], 5.18),
        (0.15, [3.20, 3.35, 3.43, 3.48], 3.52),
        (0.20, [2.51, 2.60, 2.65, 2.67], 2.69),
        (0.28, [1.90, 1.94, 1.97, 1.98], 1.99),
        (0.40, [1.43, 1.46, 1.47, 1.47], 1.48),
    ];

    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
    }

    #[test]
    fn uniform_values_are_those_tabulated() {
        near(fifo(1.30), 2.364, 0.0005);
        for (spare, greedy_values, fifo_value) in UNIFORM {
            let alpha = alpha_of_spare(spare);
            near(fifo(alpha), fifo_value, 0.006);
            for (pages_per_block, value) in [32, 64, 128, 256].into_iter().zip(greedy_values) {
                near(greedy(alpha, pages_per_block), value, 0.006);
            }
        }
    }

    #[test]
    fn two_equal_temperatures_are_uniform_traffic() {
        let equal = TwoTemperatures { hot_pages: 0.3, hot_writes: 0.3 };
        for alpha in [1.03, 1.1, 1.25, 1.6] {
            near(equal.fifo_mixed(alpha), fifo(alpha), 1e-9);
            near(known_rates(&[(0.3, 0.3), (0.7, 0.7)], alpha, 64), greedy(alpha, 64), 1e-6);
        }
    }

    #[test]
    fn two_temperatures_agree_with_simulation() {
        let ninety = TwoTemperatures { hot_pages: 0.1, hot_writes: 0.9 };
        let eighty = TwoTemperatures { hot_pages: 0.2, hot_writes: 0.8 };
        let cases = [
            (ninety, 0.03, 14.69, 5.26),
            (ninety, 0.10, 5.89, 2.20),
            (ninety, 0.20, 3.48, 1.445),
            (eighty, 0.10, 5.18, 3.34),
        ];
        for (traffic, spare, mixed, optimum) in cases {
            let alpha = alpha_of_spare(spare);
            near(traffic.greedy_mixed(alpha, 64), mixed, 0.02 * mixed);
            let (f, r) = (traffic.hot_pages, traffic.hot_writes);
            near(known_rates(&[(f, r), (1.0 - f, 1.0 - r)], alpha, 64), optimum, 0.01 * optimum);
        }
    }

    #[test]
    fn no_other_split_of_the_spare_space_writes_less() {
        let groups = [(0.02, 0.5), (0.2, 0.35), (0.5, 0.15), (0.28, 0.0)];
        let alpha = alpha_of_spare(0.12);
        let optimum = known_rates(&groups, alpha, 64);
        let split = |parts: [f64; 3]| {
            let sum: f64 = parts.iter().sum();
            let of = |((pages, writes), part): (&(f64, f64), f64)| {
                writes * greedy(1.0 + part / sum * (alpha - 1.0) / pages, 64)
            };
            groups.iter().zip(parts).map(of).sum::<f64>()
        };
        let mut least = f64::INFINITY;
        for a in 1..60 {
            for b in 1..60 {
                least = least.min(split([f64::from(a), f64::from(b), 30.0]));
            }
        }
        assert!(optimum <= least && least < 1.002 * optimum, "{optimum} {least}");
    }
}
