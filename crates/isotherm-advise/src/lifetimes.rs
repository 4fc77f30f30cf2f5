//! How long what is written lives: deaths and exposure by age, as survival analysis counts them.
//!
//! A page version is born when its page is written and dies when the page is written again or trimmed. Ages are counted in host
//! page writes and lie in bins that double. In each bin stands how many versions died there, and for how many page writes any
//! version was exposed to dying there; versions that still live when the watching ends count as exposed up to their age (they
//! are censored), so that long lives are not taken for short ones. Within a bin the hazard is taken as constant, and
//! the likelihood of everything that was seen is sum(deaths ln(deaths / exposure)) up to a term that does not depend on how
//! versions are grouped (piecewise exponential model: Friedman, "Piecewise exponential models for survival data with covariates",
//! Annals of Statistics 10, 1982).

/// Bins of age: bin `b` holds ages from `2^b` on, below `2^(b+1)`; the first holds 0 and 1, the last everything above.
const BINS: usize = 32;

/// Lifetimes of a group of page versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetimes {
    /// Versions that died in each bin.
    deaths: [u32; BINS],
    /// Versions that were last seen in each bin, dead or alive.
    ended: [u32; BINS],
    /// Sum of how far these had come within the bin.
    within: [f64; BINS],
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { deaths: [0; BINS], ended: [0; BINS], within: [0.0; BINS] }
    }
}

/// Bin of an age.
fn bin(age: u32) -> usize {
    age.max(1).ilog2() as usize
}

/// Age at which a bin begins.
fn begin(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (1u64 << bin) as f64 }
}

impl Lifetimes {
    fn end(&mut self, age: u32) -> usize {
        let bin = bin(age);
        self.ended[bin] += 1;
        // Who dies at once was exposed to it all the same.
        self.within[bin] += f64::from(age.max(1)) - begin(bin);
        bin
    }

    /// A version died at this age.
    pub fn died(&mut self, age: u32) {
        let bin = self.end(age);
        self.deaths[bin] += 1;
    }

    /// A version has come to this age, and lives.
    pub fn lives(&mut self, age: u32) {
        self.end(age);
    }

    /// Takes in the versions of another group.
    pub fn join(&mut self, other: &Self) {
        for bin in 0..BINS {
            self.deaths[bin] += other.deaths[bin];
            self.ended[bin] += other.ended[bin];
            self.within[bin] += other.within[bin];
        }
    }

    /// Exposure in each bin: those that ended there by how far they came, those that went on by the whole bin.
    fn exposure(&self) -> [f64; BINS] {
        let mut exposure = self.within;
        let mut beyond = 0.0;
        for bin in (0..BINS).rev() {
            exposure[bin] += beyond * (begin(bin + 1) - begin(bin));
            beyond += f64::from(self.ended[bin]);
        }
        exposure
    }

    /// Versions that died.
    pub fn deaths(&self) -> u64 {
        self.deaths.iter().map(|deaths| u64::from(*deaths)).sum()
    }

    /// Mean lifetime in host page writes: exposure over deaths, which is what the maximum likelihood of one constant rate says;
    /// `None` where nothing died.
    pub fn mean(&self) -> Option<f64> {
        let deaths = self.deaths();
        (deaths > 0).then(|| self.exposure().iter().sum::<f64>() / deaths as f64)
    }

    /// Age that the share `survivors` of the versions lives to see, by the product of each bin's survival; `None` where fewer
    /// died than that, as far as was seen.
    pub fn quantile(&self, survivors: f64) -> Option<f64> {
        let exposure = self.exposure();
        let target = -libm::log(survivors);
        let mut hazard = 0.0;
        for (bin, exposed) in exposure.into_iter().enumerate().filter(|(_, exposed)| *exposed > 0.0) {
            let rate = f64::from(self.deaths[bin]) / exposed;
            let width = begin(bin + 1) - begin(bin);
            if hazard + rate * width >= target && rate > 0.0 {
                return Some(begin(bin) + (target - hazard) / rate);
            }
            hazard += rate * width;
        }
        None
    }

    /// Logarithm of the likelihood of what was seen under the rates that fit it best, up to a constant.
    pub fn log_likelihood(&self) -> f64 {
        let exposure = self.exposure();
        (0..BINS)
            .filter(|&bin| self.deaths[bin] > 0)
            .map(|bin| {
                let deaths = f64::from(self.deaths[bin]);
                deaths * libm::log(deaths / exposure[bin])
            })
            .sum()
    }

    /// What describing two groups as one costs, in units of log likelihood: 0 where they live alike, never less.
    pub fn cost_of_joining(&self, other: &Self) -> f64 {
        let mut both = self.clone();
        both.join(other);
        (self.log_likelihood() + other.log_likelihood() - both.log_likelihood()).max(0.0)
    }

    /// Bins in which anything died.
    pub fn bins_used(&self) -> usize {
        self.deaths.iter().filter(|deaths| **deaths > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::random::Random;

    /// Lifetimes drawn from an exponential of this mean, watched up to `censored`.
    fn exponential(mean: f64, count: usize, censored: f64, seed: u64) -> Lifetimes {
        let mut random = Random::new(seed);
        let mut lifetimes = Lifetimes::default();
        for _ in 0..count {
            let uniform = (random.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64;
            let age = -mean * libm::log(uniform);
            if age < censored { lifetimes.died(age as u32) } else { lifetimes.lives(censored as u32) }
        }
        lifetimes
    }

    #[test]
    fn the_mean_counts_those_that_still_live() {
        let all = exponential(10_000.0, 50_000, f64::INFINITY, 1).mean().unwrap();
        let cut = exponential(10_000.0, 50_000, 5_000.0, 2).mean().unwrap();
        assert!((all / 10_000.0 - 1.0).abs() < 0.02, "{all}");
        assert!((cut / 10_000.0 - 1.0).abs() < 0.02, "{cut}");
        let median = exponential(10_000.0, 50_000, f64::INFINITY, 3).quantile(0.5).unwrap();
        assert!((median / 6931.5 - 1.0).abs() < 0.03, "{median}");
        assert_eq!(Lifetimes::default().mean(), None);
    }

    #[test]
    fn groups_that_live_alike_cost_little_to_join_others_much() {
        let alike = exponential(1000.0, 4000, 1e6, 1).cost_of_joining(&exponential(1000.0, 4000, 1e6, 2));
        let apart = exponential(1000.0, 4000, 1e6, 1).cost_of_joining(&exponential(2000.0, 4000, 1e6, 2));
        assert!(alike < 30.0, "{alike}");
        assert!(apart > 200.0, "{apart}");
        // The same mean, but all at one age: a log that is written around.
        let mut log = Lifetimes::default();
        (0..4000).for_each(|_| log.died(1000));
        assert!(log.cost_of_joining(&exponential(1000.0, 4000, 1e6, 2)) > 1000.0);
        assert_eq!(log.cost_of_joining(&Lifetimes::default()), 0.0);
    }
}
