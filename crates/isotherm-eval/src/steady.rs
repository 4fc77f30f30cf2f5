//! Steady state by the rule of SNIA's Solid State Storage Performance Test Specification, applied to write amplification:
//! over five rounds, no round departs from the mean so that the excursion exceeds 20 % of it, and the best straight line
//! through the rounds rises or falls by at most 10 % of it.

/// Rounds that are judged together.
pub const ROUNDS: usize = 5;
/// Largest difference of two rounds, as a share of the mean.
const EXCURSION_MAX: f64 = 0.20;
/// Largest rise or fall of the fitted line over the rounds, as a share of the mean.
const SLOPE_MAX: f64 = 0.10;

/// Whether values from `least` to `most` lie as close together as a steady device's rounds.
pub fn is_within_excursion(least: f64, most: f64) -> bool {
    most - least <= EXCURSION_MAX * (least + most) / 2.0
}

/// Whether the last [`ROUNDS`] of `rounds` are steady. Fewer rounds never are.
pub fn is_steady(rounds: &[f64]) -> bool {
    let Some(last) = rounds.len().checked_sub(ROUNDS).map(|from| &rounds[from..]) else { return false };
    let count = ROUNDS as f64;
    let mean = last.iter().sum::<f64>() / count;
    let most = last.iter().copied().fold(f64::MIN, f64::max);
    let least = last.iter().copied().fold(f64::MAX, f64::min);
    let middle = (count - 1.0) / 2.0;
    let (mut moment, mut spread) = (0.0, 0.0);
    for (i, value) in last.iter().enumerate() {
        let distance = i as f64 - middle;
        moment += distance * (value - mean);
        spread += distance * distance;
    }
    let drift = moment / spread * (count - 1.0);
    // Written so that a NaN anywhere is not steady.
    most - least <= EXCURSION_MAX * mean && drift.abs() <= SLOPE_MAX * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excursion_and_slope_both_count() {
        assert!(is_steady(&[9.0, 2.0, 2.0, 2.0, 2.0, 2.0]), "only the last five rounds count");
        assert!(!is_steady(&[2.0; 4]), "four rounds are too few");
        assert!(is_steady(&[1.0, 1.19, 1.0, 1.19, 1.0]), "an excursion within 20 % of the mean");
        assert!(!is_steady(&[1.0, 1.25, 1.0, 1.25, 1.0]), "an excursion beyond it");
        assert!(is_steady(&[1.0, 1.02, 1.04, 1.06, 1.08]), "a slope of 8 %");
        assert!(!is_steady(&[1.0, 1.03, 1.06, 1.09, 1.12]), "a slope of 11 %");
        assert!(!is_steady(&[1.0, f64::NAN, 1.0, 1.0, 1.0]));
    }
}
