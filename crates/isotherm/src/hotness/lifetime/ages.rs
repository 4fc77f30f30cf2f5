//! Ages on a logarithmic scale: bins of half octaves.

/// Bins of ages below 2^16 units.
pub(super) const BINS: usize = 30;

/// Every bin is as wide as this power of two: two to the octave, from the first octave of ages from 4 on; 0 and 1, 2 and 3 share one.
#[inline(always)]
const fn log2_width(age: u32) -> u32 {
    (age | 4).ilog2() - 1
}

/// The bin of an age.
#[inline(always)]
pub(super) const fn bin(age: u32) -> usize {
    let log2 = log2_width(age);
    (2 * (log2 - 1) + (age >> log2)) as usize
}

/// One past the largest age in the bin of an age.
#[inline(always)]
pub(super) const fn end_of_bin(age: u32) -> u32 {
    let log2 = log2_width(age);
    ((age >> log2) + 1) << log2
}

/// Ages in a bin.
pub(super) const fn width(bin: usize) -> u32 {
    if bin < 4 { 2 } else { 1 << (bin / 2) }
}

/// What one unit counts in a mean interval.
pub(super) const SCALE: u32 = 1 << 12;
/// 2^(0/8) to 2^(8/8), times [`SCALE`].
const EIGHTHS: [u32; 9] = [4096, 4467, 4871, 5312, 5793, 6317, 6889, 7512, 8192];

/// A mean interval that is kept as eighths of octaves of units, in parts of [`SCALE`] of a unit.
#[inline(always)]
pub(super) const fn of_eighths(eighths: u32) -> u32 {
    EIGHTHS[eighths as usize % 8] << (eighths / 8)
}

/// Eighths of octaves of units of a mean interval in parts of [`SCALE`], at least 0 and at most 127: rounded up as often as it lies near the upper one, for
/// a lot in `0..2^16`, so that small steps add up.
#[inline(always)]
pub(super) fn eighths_at_random(mean: u32, lot: u32) -> u32 {
    let mean = mean.max(SCALE);
    let octave = mean.ilog2() - SCALE.ilog2();
    let part = mean >> octave;
    let eighth = EIGHTHS[1..8].iter().filter(|lower| **lower <= part).count();
    let (lower, upper) = (EIGHTHS[eighth], EIGHTHS[eighth + 1]);
    let up = (part - lower) << 16 > lot * (upper - lower);
    (octave * 8 + eighth as u32 + u32::from(up)).min(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_part_all_ages_in_order() {
        let mut age = 0;
        for at in 0..BINS {
            assert_eq!((bin(age), bin(age + width(at) - 1)), (at, at));
            assert_eq!((end_of_bin(age), end_of_bin(age + width(at) - 1)), (age + width(at), age + width(at)));
            age += width(at);
        }
        assert_eq!(age, 1 << 16);
    }

    #[test]
    fn means_are_rounded_to_what_they_are_on_average() {
        assert_eq!([1, 2, 3, 4, 6, 1024].map(|units| eighths_at_random(units * SCALE, 65_535)), [0, 8, 12, 16, 20, 80]);
        for mean in [SCALE, 5 * SCALE / 2, 100 * SCALE + 77, 40_000 * SCALE] {
            let lots = (0..65_536).step_by(64);
            let sum: u64 = lots.clone().map(|lot| u64::from(of_eighths(eighths_at_random(mean, lot)))).sum();
            let average = sum as f64 / lots.count() as f64;
            assert!((average / f64::from(mean) - 1.0).abs() < 2e-3, "{average}, expected {mean}");
        }
        assert_eq!(eighths_at_random(u32::from(u16::MAX) * SCALE, 0), 127);
    }
}
