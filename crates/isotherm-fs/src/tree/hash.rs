//! Keys of names: SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012), so that nobody without the volume's key can make a
//! directory whose names collide.

/// Low bits of a key that tell names of one hash apart.
pub(super) const DISAMBIGUATOR_BITS: u32 = 8;

/// The hash of a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameHash {
    pub(super) key: [u8; 16],
    /// Bits of the hash that are dropped: 0, but in tests of collisions.
    pub(super) dropped_bits: u8,
}

impl NameHash {
    /// The lowest key that a name can have: below 2^63 and at least 256, the low 8 bits 0.
    pub(super) fn base(&self, name: &[u8]) -> u64 {
        let hash = siphash(&self.key, name) >> 9 >> self.dropped_bits;
        hash.max(1) << DISAMBIGUATOR_BITS
    }
}

fn siphash(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let low = u64::from_le_bytes(key[..8].try_into().expect("half of a key"));
    let high = u64::from_le_bytes(key[8..].try_into().expect("half of a key"));
    let mut state = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    let mut absorb = |word: u64| {
        state[3] ^= word;
        rounds(&mut state, 2);
        state[0] ^= word;
    };
    let words = bytes.chunks_exact(8);
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    last[7] = bytes.len() as u8;
    for word in words {
        absorb(u64::from_le_bytes(word.try_into().expect("a word")));
    }
    absorb(u64::from_le_bytes(last));
    state[2] ^= 0xff;
    rounds(&mut state, 4);
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn rounds(state: &mut [u64; 4], count: u32) {
    let [a, b, c, d] = state;
    for _ in 0..count {
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix A of the paper, and the first vectors of the reference implementation.
    #[test]
    fn published_vectors() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(&key, &bytes), 0xa129_ca61_49be_45e5);
        assert_eq!(siphash(&key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(&key, &[0]), 0x74f8_39c5_93dc_67fd);
    }

    #[test]
    fn keys_are_cookies() {
        for dropped_bits in [0, 40, 55] {
            let hash = NameHash { key: [7; 16], dropped_bits };
            for i in 0..1000_u32 {
                let base = hash.base(&i.to_le_bytes());
                assert!((256..1 << 63).contains(&base) && base.is_multiple_of(256));
            }
        }
    }
}
