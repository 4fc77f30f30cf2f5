//! MHF: multiple hash functions over one array of small counters.
//!
//! Hsieh, Kuo and Chang, "Efficient Identification of Hot Data for Flash Memory Storage Systems", ACM Transactions on
//! Storage 2(1), 2006, as section II-C of the MBF paper restates it. A write increments the counter of each hash
//! function; a page is hot when each of its counters has one of its `significant_bits` most significant bits set; every
//! `decay` writes all counters are halved.
//!
//! Counters are packed, so the memory is what the paper states (2 KB for 4096 counters of 4 bits). `decay_by = words`
//! halves all counters of a 64-bit word in one shift and mask; `counters` halves one after the other, as the paper's
//! description reads, and exists to measure what the packed form saves. Both give the same counters.
//!
//! Departures: none known. A counter that two hash functions of one page share is incremented twice, as in the original.
//!
//! Complexity: O(hashes) per write, O(counters) every `decay` writes, divided by the counters in a word when packed.

use super::hash::{self, Place};
use super::{Hotness, Temperature};
use crate::address::Lpn;
use crate::registry::{Parameter, Parameters, SpecError};

/// Most hash functions.
const HASHES_MAX: usize = 8;

/// What can be set, and the values of the MBF paper's Table I.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("counters", 16..=1 << 24, "4096").help("counters in the array"),
    Parameter::choice("counter_bits", &["1", "2", "4", "8"], "4").help("bits of a counter (D)"),
    Parameter::integer("significant_bits", 1..=8, "2")
        .help("a counter counts as hot when one of these most significant bits is set (B)"),
    Parameter::integer("hashes", 1..=HASHES_MAX as u64, "2").help("hash functions (K)"),
    Parameter::integer("decay", 1..=u32::MAX as u64, "4096").help("page writes between two halvings"),
    Parameter::choice("overflow", &["freeze", "halve"], "freeze")
        .help("a full counter stays full, or all counters are halved first"),
    Parameter::choice("increment", &["plain", "minimum"], "plain")
        .help("increment every counter of the page, or only its smallest"),
    Parameter::choice("decide", &["after", "before"], "after").help("judge after recording the write"),
    Parameter::choice("decay_by", &["words", "counters"], "words").help("form of the halving (cost only)"),
];

/// Multiple hash functions over counters.
#[derive(Clone, Debug)]
pub struct Mhf {
    /// Counters, packed from the low end of each word.
    words: Box<[u64]>,
    counters: u32,
    log2_counter_bits: u32,
    /// Largest value of a counter.
    counter_max: u64,
    /// A counter is hot from this value on.
    threshold: u64,
    /// The bits of a word that hold a halved counter after the shift.
    halved: u64,
    hashes: usize,
    decay: u32,
    /// Writes until the next halving, 1..=decay.
    until_decay: u32,
    halve_on_overflow: bool,
    minimum_only: bool,
    decide_before: bool,
    by_words: bool,
}

impl Mhf {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn build(parameters: &Parameters<'_>) -> Result<Self, SpecError> {
        let counters = parameters.integer("counters") as u32;
        let bits = parameters.choice("counter_bits", &[("1", 1u32), ("2", 2), ("4", 4), ("8", 8)]);
        let significant = parameters.integer("significant_bits") as u32;
        if significant > bits {
            return Err(parameters.refuse("significant_bits", format!("1..={bits}, the bits of a counter")));
        }
        let decay = parameters.integer("decay") as u32;
        let counter_max = (1u64 << bits) - 1;
        let halved = (0..64).step_by(bits as usize).fold(0, |word, shift| word | (counter_max >> 1) << shift);
        Ok(Self {
            words: vec![0; (counters * bits).div_ceil(64) as usize].into_boxed_slice(),
            counters,
            log2_counter_bits: bits.trailing_zeros(),
            counter_max,
            threshold: 1 << (bits - significant),
            halved,
            hashes: parameters.integer("hashes") as usize,
            decay,
            until_decay: decay,
            halve_on_overflow: parameters.is("overflow", "halve"),
            minimum_only: parameters.is("increment", "minimum"),
            decide_before: parameters.is("decide", "before"),
            by_words: parameters.is("decay_by", "words"),
        })
    }

    /// The smallest counter of `lpn`: an upper bound of its decayed number of writes, while nothing overflowed.
    #[inline(always)]
    pub fn count(&self, lpn: Lpn) -> u64 {
        match self.hashes {
            2 => self.count_at(&self.places::<2>(lpn)),
            hashes => self.count_at(&self.places::<HASHES_MAX>(lpn)[..hashes]),
        }
    }

    #[inline(always)]
    fn places<const N: usize>(&self, lpn: Lpn) -> [Place; N] {
        hash::places(lpn, self.counters, self.log2_counter_bits)
    }

    #[inline(always)]
    fn count_at(&self, places: &[Place]) -> u64 {
        places.iter().fold(u64::MAX, |smallest, place| smallest.min(place.read(&self.words) & self.counter_max))
    }

    /// Increments the counters at `places` that hold at most `limit`.
    #[inline(always)]
    fn increment(&mut self, places: &[Place], limit: u64) {
        for &place in places {
            let count = place.read(&self.words) & self.counter_max;
            if self.halve_on_overflow && count == self.counter_max && count <= limit {
                self.halve();
            }
            let (word, shift) = place.word(&mut self.words);
            // The counter may have been halved; a full one that was not stays as it is.
            let count = (*word >> shift) & self.counter_max;
            *word += u64::from(count < self.counter_max && count <= limit) << shift;
        }
    }

    /// Records and judges a write whose page has these `places`. Inlined into each number of hash functions.
    #[inline(always)]
    fn observe_at(&mut self, places: &[Place]) -> Temperature {
        let before = if self.minimum_only || self.decide_before { self.count_at(places) } else { 0 };
        self.increment(places, if self.minimum_only { before } else { self.counter_max });
        let judged = if self.decide_before { before } else { self.count_at(places) };
        self.until_decay -= 1;
        if self.until_decay == 0 {
            self.decay();
        }
        Temperature::hot_if(judged >= self.threshold)
    }

    fn halve(&mut self) {
        if self.by_words {
            for word in &mut self.words {
                *word = (*word >> 1) & self.halved;
            }
            return;
        }
        for bit in (0..self.counters).map(|counter| counter << self.log2_counter_bits) {
            let (word, shift) = (&mut self.words[(bit >> 6) as usize], bit & 63);
            let count = (*word >> shift) & self.counter_max;
            *word = (*word & !(self.counter_max << shift)) | ((count >> 1) << shift);
        }
    }
}

impl Hotness for Mhf {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        match self.hashes {
            2 => self.observe_at(&self.places::<2>(lpn)),
            hashes => self.observe_at(&self.places::<HASHES_MAX>(lpn)[..hashes]),
        }
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        Temperature::hot_if(self.count(lpn) >= self.threshold)
    }

    /// Halves all counters.
    fn decay(&mut self) {
        self.halve();
        self.until_decay = self.decay;
    }

    fn decay_interval(&self) -> Option<u64> {
        Some(u64::from(self.decay))
    }

    fn temperatures(&self) -> u8 {
        2
    }

    fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}
