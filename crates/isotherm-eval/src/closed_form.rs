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

    /// Perfect separation with the spare split as is best: the least write amplification that separating the two can give,
    /// and the share of the spare that the hot pages receive. `one` gives the write amplification of uniform
    /// traffic at some `alpha`.
    pub fn best_split(self, alpha: f64, one: impl Fn(f64) -> f64) -> (f64, f64) {
        let (f, r) = (self.hot_pages, self.hot_writes);
        let at = |p: f64| {
            let hot = (p * (alpha - 1.0) + f) / f;
            let cold = ((1.0 - p) * (alpha - 1.0) + 1.0 - f) / (1.0 - f);
            r * one(hot) + (1.0 - r) * one(cold)
        };
        // The sum is convex in p, so that thirds of the interval can be dropped.
        let (mut low, mut high) = (1e-6, 1.0 - 1e-6);
        for _ in 0..200 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if at(a) < at(b) { high = b } else { low = a }
        }
        let p = 0.5 * (low + high);
        (at(p), p)
    }
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
            near(equal.best_split(alpha, fifo).0, fifo(alpha), 1e-6);
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
            let (greedy_best, p) = traffic.best_split(alpha, |a| greedy(a, 64));
            near(greedy_best, optimum, 0.01 * optimum);
            assert!(p > 0.0 && p < 1.0);
        }
    }
}
