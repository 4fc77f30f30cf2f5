//! A set of small numbers, one bit each: ranges of it are counted and emptied a word at a time.

use crate::memory;

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

    /// Whether `index` is in the set.
    #[inline(always)]
    pub fn contains(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Adds `index`.
    #[inline(always)]
    pub fn insert(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }

    /// Takes `index` out.
    #[inline(always)]
    pub fn remove(&mut self, index: u32) {
        self.words[index as usize / 64] &= !(1 << (index % 64));
    }

    /// Takes everything in `first..end` out and returns how much that was.
    pub fn take_range(&mut self, first: u32, end: u32) -> u32 {
        let mut taken = 0;
        let mut at = first;
        while at < end {
            let width = (64 - at % 64).min(end - at);
            let mask = (if width == 64 { u64::MAX } else { (1 << width) - 1 }) << (at % 64);
            let word = &mut self.words[at as usize / 64];
            taken += (*word & mask).count_ones();
            *word &= !mask;
            at += width;
        }
        taken
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
        let mut bits = Bits::new(300);
        (0..300).for_each(|i| bits.insert(i));
        assert_eq!(bits.take_range(60, 200), 140);
        assert_eq!(bits.take_range(60, 200), 0);
        assert_eq!(bits.iter().collect::<Vec<_>>(), (0..60).chain(200..300).collect::<Vec<_>>());
        assert_eq!(bits.take_range(3, 5), 2);
        bits.insert(4);
        assert!(bits.contains(4) && !bits.contains(3));
    }
}
