//! MBF: multiple Bloom filters, each with its own recency weight.
//!
//! Park and Du, "Hot Data Identification for Flash-based Storage Systems Using Multiple Bloom Filters", MSST 2011,
//! section III-A. A write puts its page into one of `filters` Bloom filters, round robin, skipping those that hold it
//! already; every `decay` writes the oldest filter is emptied and becomes the newest. The hot data index is the sum of
//! the weights of the filters that hold the page: 2 for the newest, 1 for filter `floor(V/2)`, evenly spaced.
//!
//! The paper keeps V bit arrays. Here the bits of all filters at one position lie together in a *lane*, ordered by age
//! with the newest in bit 0, so that one load per hash function answers for all filters at once, and aging is a shift of
//! every lane by one bit: 64 bits at a time, the oldest filter falls out and an empty one comes in. The answers are
//! those of the paper's layout (a test compares them bit by bit), and the memory is the same when V is a power of two;
//! otherwise a lane is rounded up to the next power of two, and [`Hotness::memory_bytes`] says so.
//!
//! Departures: the paper does not say whether a write is judged before or after it is recorded; `decide` chooses.
//!
//! Complexity: O(hashes) per write, O(filter_bits) words every `decay` writes.

use super::hash::{self, Place};
use super::{Hotness, Temperature};
use crate::address::Lpn;
use crate::registry::{Kind, Parameter, Parameters, SpecError};

/// Most filters that one MBF may have: a lane of 16 bits.
const FILTERS_MAX: u64 = 16;
/// Most hash functions.
const HASHES_MAX: usize = 8;

/// What can be set, and the values of the paper's Table I.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::integer("filters", 1..=FILTERS_MAX, "4").help("Bloom filters (V)"),
    Parameter::integer("filter_bits", 64..=1 << 24, "2048").help("bits of each filter (M)"),
    Parameter::integer("hashes", 1..=HASHES_MAX as u64, "2").help("hash functions (K)"),
    Parameter::integer("decay", 1..=u32::MAX as u64, "512").help("page writes between two resets (T)"),
    Parameter::any("threshold", &[Kind::real(f64::MIN_POSITIVE..=f64::MAX), Kind::word(&["scaled"])], "4")
        .help("a page is hot from this hot data index on"),
    Parameter::choice("decide", &["after", "before"], "after").help("judge after recording the write"),
    Parameter::boolean("shortcut", "on").help("in all filters: hot without summing"),
];

/// Multiple Bloom filters.
#[derive(Clone, Debug)]
pub struct Mbf {
    /// The lanes: bit `age` of lane `position` is the bit of the `age`-th newest filter at that position.
    lanes: Box<[u64]>,
    /// Positions, that is bits of each filter.
    filter_bits: u32,
    /// Binary logarithm of the bits of a lane.
    log2_lane_bits: u32,
    /// One bit for each filter.
    all_filters: u64,
    /// The bits of a word that stay after a shift by one: all but the newest filter's and those beyond the oldest.
    kept: u64,
    /// Sum of weights for four filters at a time, by which of them hold the page; unit `1 / unit_inverse`.
    weight_sums: [[u16; 16]; 4],
    /// Hot from this index on, in the unit of the weights.
    threshold: u32,
    /// Weights are whole multiples of one over this.
    unit_inverse: u32,
    filters: u32,
    hashes: usize,
    decay: u32,
    /// Writes until the next reset, 1..=decay.
    until_decay: u32,
    /// Age of the filter that the next write tries first.
    start: u32,
    decide_before: bool,
    shortcut: bool,
}

impl Mbf {
    /// Builds it from checked parameters.
    ///
    /// # Errors
    /// A value outside its range; a threshold that even a page in all filters could not reach.
    pub fn build(parameters: &Parameters<'_>) -> Result<Self, SpecError> {
        let filters = parameters.integer("filters") as u32;
        let filter_bits = parameters.integer("filter_bits") as u32;
        let decay = parameters.integer("decay") as u32;
        let unit_inverse = filters - filters / 2;
        let weight = |age: u32| (2 * unit_inverse - age) as u16;
        let sum: u32 = (0..filters).map(|age| u32::from(weight(age))).sum();
        let threshold = threshold_in_units(parameters, sum, unit_inverse)?;
        let mut weight_sums = [[0u16; 16]; 4];
        for age in 0..filters {
            let (table, bit) = ((age / 4) as usize, 1usize << (age % 4));
            for (held, sum) in weight_sums[table].iter_mut().enumerate() {
                *sum += if held & bit != 0 { weight(age) } else { 0 };
            }
        }
        let lane_bits = filters.next_power_of_two();
        let all_filters = (1u64 << filters) - 1;
        Ok(Self {
            lanes: vec![0; (filter_bits * lane_bits).div_ceil(64) as usize].into_boxed_slice(),
            filter_bits,
            log2_lane_bits: lane_bits.trailing_zeros(),
            all_filters,
            kept: repeat_over_word(all_filters & !1, lane_bits),
            weight_sums,
            threshold,
            unit_inverse,
            filters,
            hashes: parameters.integer("hashes") as usize,
            decay,
            until_decay: decay,
            // The last filter is the first to be reset, so it is the oldest, and the first write tries the first one.
            start: filters.saturating_sub(2),
            decide_before: parameters.is("decide", "before"),
            shortcut: parameters.boolean("shortcut"),
        })
    }

    /// Hot data index of `lpn`: the sum of the weights of the filters that hold it.
    pub fn index(&self, lpn: Lpn) -> f64 {
        f64::from(self.weight_of(self.holders(lpn))) / f64::from(self.unit_inverse)
    }

    /// Which filters hold `lpn`: bit 0 is the newest filter, bit `filters - 1` the next one to be reset.
    #[inline(always)]
    pub fn holders(&self, lpn: Lpn) -> u64 {
        match self.hashes {
            2 => self.holders_at(&self.places::<2>(lpn)),
            hashes => self.holders_at(&self.places::<HASHES_MAX>(lpn)[..hashes]),
        }
    }

    #[inline(always)]
    fn places<const N: usize>(&self, lpn: Lpn) -> [Place; N] {
        hash::places(lpn, self.filter_bits, self.log2_lane_bits)
    }

    #[inline(always)]
    fn holders_at(&self, places: &[Place]) -> u64 {
        places.iter().fold(self.all_filters, |held, place| held & place.read(&self.lanes))
    }

    /// Records and judges a write whose page has these `places`. Inlined into each number of hash functions.
    #[inline(always)]
    fn observe_at(&mut self, places: &[Place]) -> Temperature {
        let held = self.holders_at(places);
        let free = self.all_filters & !held;
        // In all filters: nothing to record, and the threshold is within reach, so the page is hot.
        if free == 0 && self.shortcut {
            self.end_of_write();
            return Temperature::HOT;
        }
        let mut judged = held;
        if free != 0 {
            let filter = self.first_free(free);
            for place in places {
                let (word, shift) = place.word(&mut self.lanes);
                *word |= 1 << (shift + filter);
            }
            judged |= u64::from(!self.decide_before) << filter;
        }
        let hot = self.weight_of(judged) >= self.threshold;
        self.end_of_write();
        Temperature::hot_if(hot)
    }

    #[inline(always)]
    fn weight_of(&self, held: u64) -> u32 {
        let mut sum = 0;
        for (table, sums) in self.weight_sums.iter().enumerate().take(self.filters.div_ceil(4) as usize) {
            sum += u32::from(sums[((held >> (4 * table)) & 15) as usize]);
        }
        sum
    }

    /// The filter that takes the page: from `start` on in round-robin order, the first of the `free` ones. A later
    /// filter in the paper's numbering was reset later, so round robin runs from older to newer, then round.
    #[inline(always)]
    fn first_free(&self, free: u64) -> u32 {
        let not_newer = free & ((2u64 << self.start) - 1);
        let candidates = if not_newer != 0 { not_newer } else { free };
        63 - candidates.leading_zeros()
    }

    #[inline(always)]
    fn end_of_write(&mut self) {
        self.start = if self.start == 0 { self.filters - 1 } else { self.start - 1 };
        self.until_decay -= 1;
        if self.until_decay == 0 {
            self.decay();
        }
    }
}

impl Hotness for Mbf {
    #[inline]
    fn observe(&mut self, lpn: Lpn) -> Temperature {
        match self.hashes {
            2 => self.observe_at(&self.places::<2>(lpn)),
            hashes => self.observe_at(&self.places::<HASHES_MAX>(lpn)[..hashes]),
        }
    }

    #[inline]
    fn peek(&self, lpn: Lpn) -> Temperature {
        Temperature::hot_if(self.weight_of(self.holders(lpn)) >= self.threshold)
    }

    /// Empties the oldest filter and makes it the newest.
    fn decay(&mut self) {
        for word in &mut self.lanes {
            *word = (*word << 1) & self.kept;
        }
        // All filters are one older now, and so is the one that the next write tries first.
        self.start = if self.start + 1 == self.filters { 0 } else { self.start + 1 };
        self.until_decay = self.decay;
    }

    fn decay_interval(&self) -> Option<u64> {
        Some(u64::from(self.decay))
    }

    fn temperatures(&self) -> u8 {
        2
    }

    fn memory_bytes(&self) -> u64 {
        size_of_val(&*self.lanes) as u64
    }
}

/// The threshold in whole units of the weights.
fn threshold_in_units(parameters: &Parameters<'_>, sum: u32, unit_inverse: u32) -> Result<u32, SpecError> {
    if parameters.is("threshold", "scaled") {
        return Ok((4 * sum).div_ceil(5));
    }
    let threshold = parameters.real("threshold");
    // A threshold such as 3.3 that is meant to be a sum of weights may be off by its last bit.
    let units = (threshold * f64::from(unit_inverse) - 1e-9).ceil().max(1.0);
    if units > f64::from(sum) {
        return Err(SpecError::new(
            "mbf:threshold",
            format!(
                "{threshold} is out of reach: a page in all filters has index {}",
                f64::from(sum) / f64::from(unit_inverse)
            ),
            format!("allowed: above 0, up to {}", f64::from(sum) / f64::from(unit_inverse)),
        ));
    }
    Ok(units as u32)
}

/// `pattern` once in each lane of a word.
fn repeat_over_word(pattern: u64, lane_bits: u32) -> u64 {
    (0..64).step_by(lane_bits as usize).fold(0, |word, shift| word | pattern << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::PolicyName;

    fn build(text: &str) -> Mbf {
        let name: PolicyName = text.parse().unwrap();
        Mbf::build(&Parameters::new(&name, PARAMETERS).unwrap()).unwrap()
    }

    #[test]
    fn with_the_papers_weights_hot_means_both_newest_filters_and_an_older_one() {
        let mbf = build("mbf");
        for held in 0..16u64 {
            let both_newest_and_an_older_one = held & 0b0011 == 0b0011 && held & 0b1100 != 0;
            assert_eq!(mbf.weight_of(held) >= mbf.threshold, both_newest_and_an_older_one, "{held:04b}");
        }
    }

    #[test]
    fn weights_run_evenly_from_2_with_filter_half_v_at_1() {
        let indices = |text: &str, filters: u32| -> Vec<f64> {
            let mbf = build(text);
            (0..filters).map(|age| f64::from(mbf.weight_of(1 << age)) / f64::from(mbf.unit_inverse)).collect()
        };
        assert_eq!(indices("mbf", 4), [2.0, 1.5, 1.0, 0.5]);
        assert_eq!(indices("mbf:filters=2,threshold=scaled", 2), [2.0, 1.0]);
        assert_eq!(indices("mbf:filters=8,threshold=scaled", 8), [2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25]);
        let five = indices("mbf:filters=5,threshold=scaled", 5);
        // Counted from the oldest, filter floor(5/2) = 2 has weight 1.
        assert!((five[3] - 1.0).abs() < 1e-12 && (five[0] - five[1] - 1.0 / 3.0).abs() < 1e-12, "{five:?}");
    }

    #[test]
    fn the_shortcut_changes_no_verdict() {
        let (mut with, mut without) = (build("mbf:filter_bits=256"), build("mbf:filter_bits=256,shortcut=off"));
        let mut random = crate::random::Random::new(3);
        for _ in 0..20_000 {
            let lpn = Lpn(random.below(200) as u32);
            assert_eq!(with.observe(lpn), without.observe(lpn));
        }
        assert_eq!(with.lanes, without.lanes);
    }
}
