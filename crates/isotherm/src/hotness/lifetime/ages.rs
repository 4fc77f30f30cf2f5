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

/// Eight times the binary logarithm of an interval in units, rounded down to what four steps between powers of two tell; 0 for
/// intervals of up to a unit.
#[inline(always)]
pub(super) const fn eighths(interval: u32) -> u32 {
    if interval < 2 {
        return 0;
    }
    let octave = interval.ilog2();
    let fraction = ((interval as u64) << 3 >> octave) as u32 & 7;
    octave * 8 + fraction
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
    fn logarithms_rise_by_eight_an_octave() {
        assert_eq!([0, 1, 2, 3, 4, 6, 8, 1024, 1536].map(eighths), [0, 0, 8, 12, 16, 20, 24, 80, 84]);
    }
}
