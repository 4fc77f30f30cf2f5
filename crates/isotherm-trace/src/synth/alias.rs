//! Walker's alias method with Vose's construction: one random number, one table entry, any discrete distribution.

use isotherm::random::Random;

#[derive(Clone, Copy)]
struct Slot {
    /// The slot keeps draws whose fraction is below this (in units of 2^-32).
    threshold: u32,
    /// Who gets the others.
    other: u32,
}

/// A discrete distribution over `0..len`.
#[derive(Clone)]
pub(crate) struct Alias {
    slots: Box<[Slot]>,
}

impl Alias {
    /// A distribution in proportion to `weights`, of which at least one is positive and all are finite.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0 && total.is_finite(), "an alias table needs weight");
        let scale = weights.len() as f64 / total;
        let mut share: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut slots: Vec<Slot> = (0..weights.len() as u32).map(|i| Slot { threshold: u32::MAX, other: i }).collect();
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..share.len()).partition(|&i| share[i] < 1.0);
        while let (Some(&small), Some(&large)) = (poor.last(), rich.last()) {
            poor.pop();
            slots[small] = Slot { threshold: (share[small] * 4_294_967_296.0) as u32, other: large as u32 };
            share[large] -= 1.0 - share[small];
            if share[large] < 1.0 {
                rich.pop();
                poor.push(large);
            }
        }
        Self { slots: slots.into_boxed_slice() }
    }

    /// Number of outcomes.
    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Probability of each outcome.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.slots.len()];
        for (at, Slot { threshold, other }) in self.slots.iter().enumerate() {
            let kept = if *other as usize == at { 1.0 } else { f64::from(*threshold) / 4_294_967_296.0 };
            shares[at] += kept / self.slots.len() as f64;
            shares[*other as usize] += (1.0 - kept) / self.slots.len() as f64;
        }
        shares
    }

    /// Draws an index.
    #[inline(always)]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        // The high half of the product is a uniform slot, the low half a uniform fraction within it.
        let product = u128::from(random.bits()) * self.slots.len() as u128;
        let slot = (product >> 64) as u32;
        let fraction = ((product as u64) >> 32) as u32;
        let Slot { threshold, other } = self.slots[slot as usize];
        if fraction < threshold { slot } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1.0, 0.0, 5.0, 0.5, 3.5];
        let alias = Alias::new(&weights);
        let mut random = Random::new(7);
        let mut counts = [0u32; 5];
        const DRAWS: u32 = 1_000_000;
        (0..DRAWS).for_each(|_| counts[alias.draw(&mut random) as usize] += 1);
        assert_eq!(counts[1], 0);
        for ((count, weight), share) in counts.iter().zip(weights).zip(alias.shares()) {
            assert!((share - weight / 10.0).abs() < 1e-9, "{share} of {weight}");
            let expected = f64::from(DRAWS) * weight / 10.0;
            // Five standard deviations: one such test in a million fails by chance.
            assert!((f64::from(*count) - expected).abs() <= 5.0 * expected.sqrt(), "{count} of {expected}");
        }
    }
}
