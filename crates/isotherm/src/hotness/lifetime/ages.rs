//! Ages on a logarithmic scale: indices of quarter octaves, and bins of two of them.

/// Indices of ages below 2^16 units.
pub(super) const INDICES: usize = 60;
/// Bins of ages: two indices each.
pub(super) const BINS: usize = INDICES / 2;

/// The index of an age: itself up to 3, from there on four to the octave.
#[inline(always)]
pub(super) const fn index(age: u32) -> usize {
    if age < 4 {
        return age as usize;
    }
    let octave = age.ilog2();
    ((octave - 1) * 4 + ((age >> (octave - 2)) & 3)) as usize
}

/// The lowest age of an index.
pub(super) const fn lowest(index: usize) -> u32 {
    if index < 4 { index as u32 } else { (4 + index as u32 % 4) << (index / 4 - 1) }
}

/// What one unit counts in a mean interval.
pub(super) const SCALE: u64 = 1 << 12;
/// 2^(0/8) to 2^(8/8), times [`SCALE`].
const EIGHTHS: [u64; 9] = [4096, 4467, 4871, 5312, 5793, 6317, 6889, 7512, 8192];

/// A mean interval that is kept as eighths of octaves of units, in parts of [`SCALE`] of a unit.
#[inline(always)]
pub(super) const fn of_eighths(eighths: u32) -> u64 {
    EIGHTHS[eighths as usize % 8] << (eighths / 8)
}

/// Eighths of octaves of units of a mean interval in parts of [`SCALE`], at least 0 and at most 127: rounded up as often as it lies near the upper one, for
/// a lot in `0..2^16`, so that small steps add up.
#[inline(always)]
pub(super) fn eighths_at_random(mean: u64, lot: u32) -> u32 {
    let mean = mean.max(SCALE);
    let octave = mean.ilog2() - SCALE.ilog2();
    let part = mean >> octave;
    let eighth = EIGHTHS[1..8].iter().filter(|lower| **lower <= part).count();
    let (lower, upper) = (EIGHTHS[eighth], EIGHTHS[eighth + 1]);
    let up = (part - lower) << 16 > u64::from(lot) * (upper - lower);
    (octave * 8 + eighth as u32 + u32::from(up)).min(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_part_all_ages_in_order() {
        for at in 0..INDICES {
            assert_eq!(index(lowest(at)), at);
            assert_eq!(index(lowest(at + 1) - 1), at);
        }
        assert_eq!(lowest(INDICES), 1 << 16);
    }

    #[test]
    fn means_are_rounded_to_what_they_are_on_average() {
        assert_eq!([1, 2, 3, 4, 6, 1024].map(|units| eighths_at_random(units * SCALE, 65_535)), [0, 8, 12, 16, 20, 80]);
        for mean in [SCALE, 5 * SCALE / 2, 100 * SCALE + 77, 40_000 * SCALE] {
            let lots = (0..65_536).step_by(64);
            let sum: u64 = lots.clone().map(|lot| of_eighths(eighths_at_random(mean, lot))).sum();
            let average = sum as f64 / lots.count() as f64;
            assert!((average / mean as f64 - 1.0).abs() < 2e-3, "{average}, expected {mean}");
        }
        assert_eq!(eighths_at_random(u64::from(u16::MAX) * SCALE, 0), 127);
    }
}
