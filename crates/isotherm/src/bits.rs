//! A set of small numbers, one bit each: ranges of it are counted and emptied a word at a time. And what is done with the bits of a word.

use crate::memory;

/// Calls `visit` with the number of each bit of `word` that is set, lowest first.
#[inline(always)]
pub(crate) fn for_each_bit(mut word: u64, mut visit: impl FnMut(u32)) {
    while word != 0 {
        visit(word.trailing_zeros());
        word &= word - 1;
    }
}

/// The lowest bits of `word` that are set, at most so many.
#[inline(always)]
pub(crate) fn lowest_bits(word: u64, most: u32) -> u64 {
    let mut chosen = word;
    for _ in most..word.count_ones() {
        chosen &= !(1 << (63 - chosen.leading_zeros()));
    }
    chosen
}

/// Whether some bit is in `own` and not in `other`.
#[inline(always)]
fn differ(own: &[u64], other: &[u64]) -> bool {
    own.iter().zip(other).fold(0, |difference, (own, other)| difference | own & !other) != 0
}

/// A set over `0..length`.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The empty set over `0..length`.
    pub fn new(length: usize) -> Self {
        Self { words: memory::zeroed_table(length.div_ceil(64)) }
    }

    /// Bytes of the set.
    pub fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Whether `index` is in the set.
    #[inline(always)]
    pub fn contains(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Adds `index`; whether it was missing.
    #[inline(always)]
    pub fn insert(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let before = *word;
        *word |= 1 << (index % 64);
        *word != before
    }

    /// Takes `index` out; whether it was in the set.
    #[inline(always)]
    pub fn remove(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let before = *word;
        *word &= !(1 << (index % 64));
        *word != before
    }

    /// Takes everything in `first..end` out. Not counted here: without an instruction of its own, counting the bits of a
    /// word costs more than all else.
    pub fn remove_range(&mut self, first: u32, end: u32) {
        if first >= end {
            return;
        }
        let (low, high) = (first as usize / 64, (end - 1) as usize / 64);
        let kept_below = !(u64::MAX << (first % 64));
        let kept_above = !(u64::MAX >> (63 - (end - 1) % 64));
        if low == high {
            self.words[low] &= kept_below | kept_above;
            return;
        }
        self.words[low] &= kept_below;
        self.words[low + 1..high].fill(0);
        self.words[high] &= kept_above;
    }

    /// Whether something in `first..end` is in this set and not in `other`, a set of the same length.
    #[inline(always)]
    pub fn exceeds(&self, other: &Self, first: u32, end: u32) -> bool {
        if first >= end {
            return false;
        }
        let (low, high) = (first as usize / 64, (end - 1) as usize / 64);
        let (own, other) = (&self.words[low..=high], &other.words[low..=high]);
        let (from, to) = (u64::MAX << (first % 64), u64::MAX >> (63 - (end - 1) % 64));
        let [one, others @ ..] = own else { unreachable!("a range that is not empty has a word") };
        let Some((last, middle)) = others.split_last() else { return one & !other[0] & from & to != 0 };
        // Words are looked at several at a time: whether a single one has something is often anyone's guess, and a branch on it
        // mispredicted.
        let ends = one & !other[0] & from | last & !other[others.len()] & to;
        ends != 0 || middle.chunks(4).zip(other[1..].chunks(4)).any(|(own, other)| differ(own, other))
    }

    /// In how many of the ranges of `words` words, the last of them possibly shorter, something is in this set and not in `other`, a set
    /// of the same length.
    pub fn ranges_exceeding(&self, other: &Self, words: usize) -> u64 {
        // Lengths that the compiler knows become instructions over several words, without a branch on any of them.
        match words {
            2 => self.ranges_of::<2>(other),
            4 => self.ranges_of::<4>(other),
            8 => self.ranges_of::<8>(other),
            16 => self.ranges_of::<16>(other),
            _ => self
                .words
                .chunks(words)
                .zip(other.words.chunks(words))
                .map(|(own, other)| u64::from(differ(own, other)))
                .sum(),
        }
    }

    fn ranges_of<const WORDS: usize>(&self, other: &Self) -> u64 {
        let ((own, own_rest), (other, other_rest)) =
            (self.words.as_chunks::<WORDS>(), other.words.as_chunks::<WORDS>());
        let whole: u64 = own.iter().zip(other).map(|(own, other)| u64::from(differ(own, other))).sum();
        whole + u64::from(differ(own_rest, other_rest))
    }

    /// Everything in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_taken_across_words_and_nothing_beside_them() {
        for (first, end) in [(60, 200), (64, 128), (3, 5), (0, 64), (7, 7), (127, 129), (0, 300)] {
            let mut bits = Bits::new(300);
            assert!((0..300).all(|i| bits.insert(i)));
            bits.remove_range(first, end);
            assert_eq!(bits.iter().collect::<Vec<_>>(), (0..first).chain(end..300).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_set_exceeds_another_in_the_ranges_that_hold_the_difference() {
        // The words of the longest range are more than are looked at together.
        for odd in [133, 400, 700] {
            let (mut large, mut small) = (Bits::new(900), Bits::new(900));
            (0..900).step_by(7).for_each(|i| _ = large.insert(i));
            large.insert(odd);
            (0..900).step_by(7).filter(|i| *i != odd).for_each(|i| _ = small.insert(i));
            for (first, end) in [(0, 900), (odd, odd + 1), (odd - 5, odd + 59), (100, odd + 1), (odd, 900), (60, 820)] {
                assert!(
                    large.exceeds(&small, first, end) && !small.exceeds(&large, first, end),
                    "{odd}: {first}..{end}"
                );
            }
            for (first, end) in [(0, odd), (odd + 1, 900), (odd, odd), (64, 128), (odd + 59, 900)] {
                assert!(!large.exceeds(&small, first, end), "{odd}: {first}..{end}");
            }
        }
    }

    #[test]
    fn ranges_that_exceed_are_counted_as_one_by_one() {
        let mut random = crate::random::Random::new(7);
        for length in [64, 640, 64 * 37] {
            let (mut own, mut other) = (Bits::new(length), Bits::new(length));
            for _ in 0..length / 20 {
                own.insert(random.below(length as u64) as u32);
            }
            own.iter().filter(|_| random.chance(0.7)).collect::<Vec<_>>().into_iter().for_each(|i| _ = other.insert(i));
            for words in [1, 2, 3, 4, 8, 16, 32] {
                let starts = (0..length as u32).step_by(64 * words);
                let one_by_one =
                    starts.filter(|first| own.exceeds(&other, *first, (first + 64 * words as u32).min(length as u32)));
                assert_eq!(
                    own.ranges_exceeding(&other, words),
                    one_by_one.count() as u64,
                    "{words} words of {length} bits"
                );
            }
        }
    }

    #[test]
    fn adding_and_removing_tell_whether_they_changed_the_set() {
        let mut bits = Bits::new(70);
        assert!(bits.insert(65) && !bits.insert(65) && bits.contains(65));
        assert!(bits.remove(65) && !bits.remove(65) && !bits.contains(65));
    }
}
