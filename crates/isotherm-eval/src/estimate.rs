//! Means of repeated runs and their confidence intervals.
//!
//! The interval is Student's: mean +- t(0.975, n - 1) s / sqrt(n), where s is the standard deviation of the sample (Student,
//! "The probable error of a mean", Biometrika 6, 1908). The quantile comes from the finite sums for whole degrees of freedom
//! (Abramowitz & Stegun 26.7.3 and 26.7.4), so that no table ends.

use crate::results::Estimate;
use std::f64::consts::FRAC_2_PI;

/// Probability within the interval.
const CONFIDENCE: f64 = 0.95;
/// Halvings of an interval until it is as narrow as doubles are.
const BISECTIONS: usize = 200;

/// Probability that |t| stays below `t` with `degrees` of freedom.
fn within(t: f64, degrees: u64) -> f64 {
    let angle = libm::atan(t / (degrees as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = !degrees.is_multiple_of(2);
    // Odd: cos + 2/3 cos^3 + 2/3 4/5 cos^5 ...; even: 1 + 1/2 cos^2 + 1/2 3/4 cos^4 ...
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if degrees > 1 { term } else { 0.0 };
    let mut next = if is_odd { 3 } else { 2 };
    while next + 1 < degrees {
        term *= (next - 1) as f64 / next as f64 * cosine * cosine;
        sum += term;
        next += 2;
    }
    if is_odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The t that |t| stays below with probability [`CONFIDENCE`].
fn student_t(degrees: u64) -> f64 {
    // With one degree of freedom it is 12.7, and it falls from there.
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if within(middle, degrees) < CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Mean and confidence interval of `values`; nothing for none.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let count = values.len() as u64;
    let min = values.iter().copied().reduce(f64::min)?;
    let max = values.iter().copied().reduce(f64::max)?;
    // The mean of equal numbers is that number: a sum would round, and give them an interval.
    let mean = if min == max { min } else { values.iter().sum::<f64>() / count as f64 };
    let confidence_95 = (count > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        student_t(count - 1) * (squares / (count - 1) as f64 / count as f64).sqrt()
    });
    Some(Estimate { count, mean, confidence_95, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 26.10 of Abramowitz & Stegun, column A = 0.95.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (120, 1.980),
        ] {
            let found = student_t(degrees);
            assert!((found - expected).abs() < 0.0006, "{degrees}: {found} instead of {expected}");
        }
    }

    #[test]
    fn the_interval_of_a_sample_is_students() {
        // s^2 = 2.5, t(4) = 2.776: 2.776 sqrt(2.5 / 5).
        let found = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((found.count, found.mean, found.min, found.max), (5, 3.0, 1.0, 5.0));
        assert!((found.confidence_95.unwrap() - 1.9632).abs() < 1e-4);
        assert_eq!(estimate(&[2.0]).unwrap().confidence_95, None);
        // Three times 0.1 over three is not 0.1 in doubles.
        let equal = estimate(&[0.1; 3]).unwrap();
        assert_eq!((equal.mean, equal.confidence_95), (0.1, Some(0.0)));
        assert!(estimate(&[]).is_none());
    }
}
