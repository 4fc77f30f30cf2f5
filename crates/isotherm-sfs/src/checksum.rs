//! A checksum of what the log stores: 64 bits, eight bytes at a time. It tells torn and damaged blocks, not forged ones.
//!
//! Each step is a bijection of the sum, and of the bytes that it adds: a change within one group of eight is always found, any
//! other is missed with a probability of about 2^-64.

/// Odd, with bits in all places: 2^64 over the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A checksum in the making.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// The sum of nothing.
    pub(crate) const fn new() -> Self {
        Self(FACTOR)
    }

    /// Adds `bytes`, and their number.
    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add_word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add_word(u64::from_le_bytes(last));
        self.add_word(bytes.len() as u64);
        self
    }

    fn add_word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }

    /// The sum.
    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn every_bit_the_order_and_the_length_count() {
        let sum = |bytes: &[u8]| Checksum::new().add(bytes).value();
        let whole: Vec<u8> = (0..27).collect();
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&changed), sum(&whole), "bit {bit}");
        }
        assert_ne!(sum(&[0; 16]), sum(&[0; 17]));
        assert_ne!(sum(&[1, 0, 0, 0, 0, 0, 0, 0, 2]), sum(&[2, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_ne!(Checksum::new().add(&[1]).add(&[]).value(), sum(&[1]));
    }
}
