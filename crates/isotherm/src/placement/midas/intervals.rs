//! The update interval distribution: how long pages live, from a sample of them.
//!
//! A life that began within the epoch either ended (the page was rewritten) or still lasts when the epoch is over. The share of
//! lives that outlast an age follows from both by the product-limit estimate of Kaplan & Meier; the publication counts what
//! still lasts as the longest interval, which is the same for pages that are never rewritten.

/// Bins: eight to an octave of 32-bit ages.
const BINS: usize = 256;

/// The bin of an age in host page writes: its octave and the three bits after the first.
#[inline(always)]
fn bin_of(age: u32) -> usize {
    let age = age.max(8);
    let octave = age.ilog2();
    octave as usize * 8 + ((age >> (octave - 3)) & 7) as usize
}

/// Where a bin begins.
fn edge(bin: usize) -> f64 {
    (8 + bin % 8) as f64 * 2.0f64.powi((bin / 8) as i32 - 3)
}

/// Lives of one class of pages, counted by length.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    ended: Vec<u32>,
    lasting: Vec<u32>,
}

impl Intervals {
    pub(super) fn new() -> Self {
        Self { ended: vec![0; BINS], lasting: vec![0; BINS] }
    }

    /// A life ended at this age.
    #[inline(always)]
    pub(super) fn end(&mut self, age: u32) {
        self.ended[bin_of(age)] += 1;
    }

    /// A life has reached this age and lasts.
    pub(super) fn last(&mut self, age: u32) {
        self.lasting[bin_of(age)] += 1;
    }

    /// Lives counted.
    pub(super) fn lives(&self) -> u64 {
        self.ended.iter().chain(&self.lasting).map(|count| u64::from(*count)).sum()
    }

    pub(super) fn clear(&mut self) {
        self.ended.fill(0);
        self.lasting.fill(0);
    }

    /// Which share of lives outlasts an age. Without a life counted, all last.
    pub(super) fn survival(&self) -> Survival {
        let mut at_risk = self.lives() as f64;
        let mut share = 1.0;
        let mut survival = Survival { share: vec![1.0; BINS + 1], integral: vec![0.0; BINS + 1] };
        // Ages below the first bin's edge count as no age.
        for bin in bin_of(0)..BINS {
            let (ended, lasting) = (f64::from(self.ended[bin]), f64::from(self.lasting[bin]));
            // Lives that last were watched through half of the bin, on average.
            let watched = at_risk - lasting / 2.0;
            if watched > 0.0 {
                share *= (1.0 - ended / watched).max(0.0);
            }
            at_risk -= ended + lasting;
            let before = survival.share[bin];
            survival.share[bin + 1] = share;
            let from = if bin == bin_of(0) { 0.0 } else { edge(bin) };
            survival.integral[bin + 1] = survival.integral[bin] + (edge(bin + 1) - from) * (before + share) / 2.0;
        }
        survival
    }
}

/// The share of lives that outlast an age, and its integral, both by age.
#[derive(Clone, Debug)]
pub(super) struct Survival {
    share: Vec<f64>,
    integral: Vec<f64>,
}

impl Survival {
    fn place(age: f64) -> (usize, f64) {
        let bin = bin_of(age as u32);
        (bin, ((age - edge(bin)) / (edge(bin + 1) - edge(bin))).clamp(0.0, 1.0))
    }

    /// The share of lives that outlast `age`.
    #[inline(always)]
    pub(super) fn at(&self, age: f64) -> f64 {
        let (bin, part) = Self::place(age);
        self.share[bin] + part * (self.share[bin + 1] - self.share[bin])
    }

    /// The integral of the share from no age to `age`: live pages younger than `age` for each write a unit of time.
    pub(super) fn integral(&self, age: f64) -> f64 {
        let (bin, part) = Self::place(age);
        let first = if bin == bin_of(0) { 0.0 } else { edge(bin) };
        let width = edge(bin + 1) - first;
        let end = self.share[bin] + part * (self.share[bin + 1] - self.share[bin]);
        self.integral[bin] + part * width * (self.share[bin] + end) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn bins_are_narrow_and_in_order() {
        assert_eq!(bin_of(0), bin_of(8));
        for age in [8u32, 9, 100, 1000, 123_456, u32::MAX] {
            let bin = bin_of(age);
            assert!(edge(bin) <= f64::from(age) && f64::from(age) < edge(bin + 1), "{age}");
            assert!(edge(bin + 1) / edge(bin) <= 1.126, "{age}");
        }
    }

    #[test]
    fn lives_cut_short_by_the_end_of_the_epoch_do_not_bias_the_estimate() {
        // Exponential lives of mean 1000, watched for 600 to 1400 writes.
        let mut random = Random::new(3);
        let mut intervals = Intervals::new();
        for _ in 0..200_000 {
            let life = -1000.0 * (1.0 - random.unit()).ln();
            let watched = 600.0 + 800.0 * random.unit();
            if life <= watched { intervals.end(life as u32) } else { intervals.last(watched as u32) }
        }
        let survival = intervals.survival();
        for age in [50.0, 200.0, 500.0, 1000.0] {
            let expected = (-age / 1000.0f64).exp();
            assert!((survival.at(age) - expected).abs() < 0.01, "{age}: {} for {expected}", survival.at(age));
            let integral = 1000.0 * (1.0 - expected);
            assert!((survival.integral(age) / integral - 1.0).abs() < 0.02, "{age}: {}", survival.integral(age));
        }
    }
}
