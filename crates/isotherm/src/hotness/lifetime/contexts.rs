//! Survival tables: exposure and deaths by context and age, and the death rates that follow from them.

use super::Signal;
use super::ages::{self, BINS};
use super::pages::{PageState, SIZES};
use super::parents::{Parents, pulled};

/// Classes of rewrites that contexts tell apart: 0, 1, 2, more.
const CLASSES: usize = 4;
/// Octaves of the mean interval; the last is that of pages that were never rewritten.
pub(super) const MEANS: usize = 16;
/// Contexts that differ in their mean alone.
const FAMILIES: usize = SIZES * CLASSES;
pub(super) const CONTEXTS: usize = FAMILIES * MEANS;
const CELLS: usize = CONTEXTS * BINS;

/// Bytes that a drive keeps: of each cell exposure, deaths, and two rates.
pub const TABLE_BYTES: u64 = (CELLS * (size_of::<u32>() + size_of::<u16>() + 2 * size_of::<u8>())) as u64;
const _: () = assert!(TABLE_BYTES <= 64 << 10);

/// What one death counts: deaths are kept in sixteenths, so that what has decayed is not rounded away.
const DEATH: u16 = 16;
/// Rates are logarithms in eighths of octaves, of expected deaths in one write of the logical capacity, above this one.
const LOWEST_OCTAVE: i32 = -6;
/// Horizon of the placement's rates, at least, in writes of the logical capacity, and of the victim policy's, in writes of the spare space.
const PLACEMENT_HORIZON: f64 = 0.02;
const VICTIM_HORIZON: f64 = 4.0 / 3.0;
/// The code of the mean rate of all pages: one death in one write of the logical capacity.
pub const MEAN_RATE: u8 = (-LOWEST_OCTAVE * 8) as u8;
/// Nats a death by which hazards have to explain the deaths of rewritten pages better than one hazard for all of them does: below, pages
/// are alike, and told apart by noise. Uniform traffic has less than .01, 60 % of the writes to 40 % of the pages .02, 70 % to 30 % .1 to .3,
/// applications .6 and more.
const LEAST_GAIN: f64 = 0.05;
/// Deaths of rewritten pages before which nothing is known of them.
const LEAST_DEATHS: f64 = 100.0;
/// Of 16 parts of what was counted, these are left after a write of the logical capacity.
const KEPT_OF_16: u32 = 11;

/// What is left of a count after a write of the logical capacity.
pub(super) fn kept(count: u32) -> u32 {
    (u64::from(count) * u64::from(KEPT_OF_16) / 16) as u32
}

/// 2^(0/8), 2^(1/8) ...
const EIGHTHS: [f64; 8] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// See the module's text. Cells are ordered by size, class, mean and bin.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    /// Page units.
    exposure: Vec<u32>,
    deaths: Vec<u16>,
    placement: Vec<u8>,
    victim: Vec<u8>,
    /// Units of age in one write of the logical capacity.
    pub(super) units: f64,
    /// Horizon of the victim policy's rates, in units.
    victim_horizon: f64,
    /// What the code of a rate stands for.
    rates: Box<[f64; 256]>,
    are_alike: bool,
    /// Bits that are set in the class of a rewritten page and in its mean, and kept of the bin of its age: for signals that are ignored.
    class_bits: usize,
    mean_bits: usize,
    bin_mask: usize,
}

impl Contexts {
    /// Of a drive with so many units in a write of its logical capacity, and spare space that is so large a part of it.
    pub(super) fn new(units: f64, over_provisioning: f64, ignored: Option<Signal>) -> Self {
        let rate = |code: usize| {
            let octaves = code as i32 / 8 + LOWEST_OCTAVE;
            let power = if octaves < 0 { 1.0 / f64::from(1 << -octaves) } else { f64::from(1 << octaves) };
            EIGHTHS[code % 8] * power
        };
        let mut contexts = Self {
            exposure: vec![0; CELLS],
            deaths: vec![0; CELLS],
            placement: vec![0; CELLS],
            victim: vec![0; CELLS],
            units,
            victim_horizon: VICTIM_HORIZON * over_provisioning.clamp(0.01, 1.0) * units,
            rates: Box::new(std::array::from_fn(rate)),
            are_alike: true,
            class_bits: if ignored == Some(Signal::Rewrites) { CLASSES - 1 } else { 0 },
            mean_bits: if ignored == Some(Signal::Interval) { MEANS - 1 } else { 0 },
            bin_mask: if ignored == Some(Signal::Age) { 0 } else { usize::MAX },
        };
        contexts.compute();
        contexts
    }

    /// The context of a version: the size of the request that wrote it, the class of its page's rewrites, and the octave of
    /// their mean interval.
    #[inline(always)]
    pub(super) fn of(&self, page: PageState) -> usize {
        let (class, mean) = match page.class() as usize {
            0 => (0, MEANS - 1),
            class => {
                (class.min(CLASSES - 1) | self.class_bits, (page.mean() as usize / 8).min(MEANS - 2) | self.mean_bits)
            }
        };
        (page.size() as usize * CLASSES + class) * MEANS + mean
    }

    /// Whether the death rates of pages do not differ by more than noise: then all are the mean rate.
    #[inline(always)]
    pub(super) fn are_alike(&self) -> bool {
        self.are_alike
    }

    /// Eighths of octaves by which the placement's death rate lies above its lowest.
    #[inline(always)]
    pub(super) fn placement(&self, context: usize, bin: usize) -> u8 {
        self.placement[context * BINS + (bin & self.bin_mask)]
    }

    /// The victim policy's death rate: expected deaths in one write of the logical capacity.
    #[inline(always)]
    pub(super) fn victim(&self, context: usize, bin: usize) -> f64 {
        self.rates[usize::from(self.victim[context * BINS + (bin & self.bin_mask)])]
    }

    /// A page of the sample has lived from one age to a later one.
    #[inline(always)]
    pub(super) fn lived(&mut self, context: usize, from: u32, to: u32) {
        let mut at = from;
        while at < to {
            let end = ages::end_of_bin(at).min(to);
            self.expose(context * BINS + ages::bin(at), end - at);
            at = end;
        }
    }

    /// A page of the sample, whose exposure was told up to an age, died at a later one.
    #[inline(always)]
    pub(super) fn died(&mut self, context: usize, told: u32, age: u32) {
        // A page that dies in the unit in which it was written was alive for a part of it; one is the least that can be told.
        self.lived(context, told, age + 1);
        let cell = context * BINS + ages::bin(age);
        if self.deaths[cell] > u16::MAX - DEATH {
            self.halve(context);
        }
        self.deaths[cell] += DEATH;
    }

    #[inline(always)]
    fn expose(&mut self, cell: usize, units: u32) {
        if self.exposure[cell] > u32::MAX / 2 {
            self.halve(cell / BINS);
        }
        self.exposure[cell] += units;
    }

    /// Makes room in a context whose counts are full: hazards stay what they are.
    #[cold]
    fn halve(&mut self, context: usize) {
        let cells = context * BINS..(context + 1) * BINS;
        self.exposure[cells.clone()].iter_mut().for_each(|units| *units /= 2);
        self.deaths[cells].iter_mut().for_each(|deaths| *deaths /= 2);
    }

    /// Forgets a part of what was counted.
    pub(super) fn decay(&mut self) {
        self.exposure.iter_mut().for_each(|units| *units = kept(*units));
        self.deaths.iter_mut().for_each(|deaths| *deaths = kept((*deaths).into()) as u16);
    }

    /// Computes every death rate from the counts.
    pub(super) fn compute(&mut self) {
        self.are_alike = self.gain() < LEAST_GAIN;
        if self.are_alike {
            self.placement.fill(MEAN_RATE);
            self.victim.fill(MEAN_RATE);
            return;
        }
        let parents = Parents::of(self);
        // Families of which nothing was seen are all taken for the same.
        let mut unseen: Option<usize> = None;
        for family in 0..FAMILIES {
            let cells = family * MEANS * BINS..(family + 1) * MEANS * BINS;
            let is_unseen = self.exposure[cells.clone()].iter().all(|units| *units == 0)
                && self.deaths[cells.clone()].iter().all(|deaths| *deaths == 0);
            if is_unseen {
                if let Some(same) = unseen {
                    self.placement.copy_within(same..same + MEANS * BINS, cells.start);
                    self.victim.copy_within(same..same + MEANS * BINS, cells.start);
                    continue;
                }
                unseen = Some(cells.start);
            }
            let scaled = parents.of_family(self, family);
            for mean in 0..MEANS {
                let first = cells.start + mean * BINS;
                let hazards = std::array::from_fn(|bin| {
                    let (units, deaths) = self.counted(first + bin);
                    pulled(deaths, units, parents.hazard(&scaled, mean, bin))
                });
                let (placement, victim) = self.rates_of(&hazards);
                self.placement[first..first + BINS].copy_from_slice(&placement);
                self.victim[first..first + BINS].copy_from_slice(&victim);
            }
        }
    }

    /// Units of exposure and deaths of a cell.
    #[inline(always)]
    pub(super) fn counted(&self, cell: usize) -> (f64, f64) {
        (f64::from(self.exposure[cell]), f64::from(self.deaths[cell]) / f64::from(DEATH))
    }

    /// Nats a death by which the hazards of cells explain the deaths of rewritten pages better than their common hazard, less
    /// what as many hazards gain from noise: half a nat each.
    fn gain(&self) -> f64 {
        let rewritten =
            || (0..CELLS).filter(|cell| !(cell / BINS / MEANS).is_multiple_of(CLASSES)).map(|cell| self.counted(cell));
        let (units, deaths) = rewritten().fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
        if deaths < LEAST_DEATHS {
            return 0.0;
        }
        let hazard = deaths / units;
        let explained = |(units, deaths): (f64, f64)| {
            if deaths > 0.0 { deaths * libm::log(deaths / (units * hazard)) } else { 0.0 }
        };
        let gains = rewritten().filter(|cell| cell.0 > 0.0).map(|cell| explained(cell) - 0.5);
        gains.sum::<f64>() / deaths
    }

    /// The codes of both death rates by bin of age: deaths over exposure from the middle of a bin on. The placement's goes as far as makes it
    /// largest, and at least as far as its horizon; the victim policy's goes to its horizon.
    fn rates_of(&self, hazards: &[f64; BINS]) -> ([u8; BINS], [u8; BINS]) {
        let (mut placement, mut victim) = ([0; BINS], [0; BINS]);
        let width = |bin: usize| f64::from(ages::width(bin));
        // Exposure in a width of one that begins it, at a constant hazard: to the first order in the hazard's reciprocal, so that no
        // exponential is needed.
        let exposure_in = |bin: usize, width: f64| width / (1.0 + hazards[bin] * width);
        let whole: [f64; BINS] = std::array::from_fn(|bin| exposure_in(bin, width(bin)));
        for first in 0..BINS {
            let (mut alive, mut deaths, mut exposure, mut horizon) = (1.0, 0.0, 0.0, 0.0);
            let (mut near, mut fastest) = (None, None::<(f64, f64)>);
            for bin in first..BINS {
                let part = if bin == first { 0.5 * width(bin) } else { width(bin) };
                let exposed = alive * if bin == first { exposure_in(bin, part) } else { whole[bin] };
                let died = hazards[bin] * exposed;
                deaths += died;
                exposure += exposed;
                alive -= died;
                horizon += part;
                let is_last = alive < 1e-3 || bin + 1 == BINS;
                if near.is_none() && (is_last || horizon >= self.victim_horizon) {
                    near = Some((deaths, exposure));
                }
                let is_far = horizon >= PLACEMENT_HORIZON * self.units || (is_last && fastest.is_none());
                if is_far && fastest.is_none_or(|(most, within)| deaths * within > most * exposure) {
                    fastest = Some((deaths, exposure));
                }
                if is_last {
                    break;
                }
            }
            let code = |rate: Option<(f64, f64)>| rate.map_or(0, |(deaths, exposure)| self.code(deaths / exposure));
            placement[first] = code(fastest);
            victim[first] = code(near);
        }
        (placement, victim)
    }

    /// The code of a rate of death in a unit: the largest whose rate is no larger. Exponent and fraction of the number tell it.
    fn code(&self, rate: f64) -> u8 {
        let rate = (rate * self.units).clamp(self.rates[0], self.rates[255]);
        let (exponent, fraction) = (rate.to_bits() >> 52, rate.to_bits() & ((1 << 52) - 1));
        let octave = exponent as i32 - 1023 - LOWEST_OCTAVE;
        let fraction = f64::from_bits(1023 << 52 | fraction);
        (octave * 8) as u8 + EIGHTHS[1..].iter().map(|lower| u8::from(*lower <= fraction)).sum::<u8>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotness::lifetime::parents::middle;

    #[test]
    fn a_constant_hazard_is_its_own_rate_at_every_age() {
        let contexts = Contexts::new(2048.0, 0.1, None);
        let (_, victim) = contexts.rates_of(&[1e-6; BINS]);
        for (bin, code) in victim.into_iter().enumerate() {
            let expected = 1e-6 * 2048.0;
            let expected = if expected < 1.0 / 64.0 { 1.0 / 64.0 } else { expected };
            let rate = contexts.rates[usize::from(code)];
            assert!((rate / expected - 1.0).abs() < 0.1, "bin {bin}: {rate}, expected {expected}");
        }
    }

    /// Deaths and exposure at a hazard for each class of rewrites, the same in every bin of age.
    fn of_classes(hazards: [f64; CLASSES]) -> Contexts {
        let mut contexts = Contexts::new(2048.0, 0.1, None);
        for (class, hazard) in hazards.into_iter().enumerate() {
            for cell in (class * MEANS + 10) * BINS..(class * MEANS + 11) * BINS {
                contexts.deaths[cell] = 100 * DEATH;
                contexts.exposure[cell] = (100.0 / hazard) as u32;
            }
        }
        contexts.compute();
        contexts
    }

    #[test]
    fn codes_are_those_of_the_largest_rates_below() {
        let contexts = Contexts::new(2048.0, 0.1, None);
        for (code, rate) in contexts.rates.iter().enumerate() {
            for (part, expected) in [(1.0, code), (1.0 - 1e-9, code.saturating_sub(1)), (1.04, code)] {
                // A rate is given for a unit; units are a power of two, so that nothing is rounded.
                assert_eq!(usize::from(contexts.code(rate * part / 2048.0)), expected, "{rate}");
            }
        }
        assert_eq!((contexts.code(0.0), contexts.code(1e30)), (0, 255));
    }

    #[test]
    fn pages_that_die_alike_have_the_mean_rate_and_others_their_own() {
        let alike = of_classes([1e-2, 1e-3, 1e-3, 1.1e-3]);
        assert!(alike.are_alike() && alike.placement.iter().all(|code| *code == MEAN_RATE));
        let different = of_classes([1e-3, 1e-3, 1e-3, 4e-3]);
        assert!(!different.are_alike());
        let rate = |class: usize| different.placement(class * MEANS + 10, 0);
        assert!(rate(3) > rate(2) + 12 && rate(3) < rate(2) + 17, "{} {}", rate(3), rate(2));
    }

    #[test]
    fn what_is_unknown_is_as_what_is_known_at_the_same_multiple_of_the_mean_interval() {
        // Pages die at a hazard of one in two mean intervals, whatever the mean; of one mean nothing was seen.
        let mut contexts = Contexts::new(2048.0, 0.1, None);
        let unseen = 8;
        for mean in (4..13).filter(|mean| *mean != unseen) {
            for cell in (3 * MEANS + mean) * BINS..(3 * MEANS + mean + 1) * BINS {
                contexts.deaths[cell] = 100 * DEATH;
                contexts.exposure[cell] = (200.0 * middle(mean)) as u32;
            }
        }
        contexts.compute();
        let rate = contexts.placement(3 * MEANS + unseen, 8);
        let expected = contexts.code(0.5 / middle(unseen));
        assert!(rate.abs_diff(expected) <= 2, "{rate}, expected {expected}");
    }

    #[test]
    fn counts_that_are_full_are_halved_and_hazards_stay() {
        let mut contexts = Contexts::new(2048.0, 0.1, None);
        for _ in 0..1_000_000 {
            contexts.died(5, 0, 100);
        }
        let cells = 5 * BINS..6 * BINS;
        let (units, deaths): (u32, u32) = (
            contexts.exposure[cells.clone()].iter().sum(),
            contexts.deaths[cells].iter().map(|deaths| u32::from(*deaths)).sum(),
        );
        let hazard = f64::from(deaths) / 16.0 / f64::from(units);
        assert!((hazard * 101.0 - 1.0).abs() < 0.01, "{hazard}");
        (0..200_000).for_each(|_| contexts.lived(5, 20_000, 50_000));
        contexts.compute();
    }
}
