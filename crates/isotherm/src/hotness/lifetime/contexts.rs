//! Survival tables: exposure and deaths by context and age, and the death rates that follow from them.

use super::ages::{self, BINS};

/// Classes of rewrites.
pub(super) const CLASSES: usize = 8;
/// Half octaves of the mean interval.
pub(super) const MEANS: usize = 32;
const CONTEXTS: usize = CLASSES * MEANS;
const CELLS: usize = CONTEXTS * BINS;

/// Bytes that a drive keeps: of each cell exposure, deaths, and two rates.
pub const TABLE_BYTES: u64 = (CELLS * (size_of::<u32>() + size_of::<u16>() + 2 * size_of::<u8>())) as u64;
const _: () = assert!(TABLE_BYTES <= 64 << 10);

/// What one death counts: deaths are kept in sixteenths, so that what has decayed is not rounded away.
const DEATH: u16 = 16;
/// Deaths that the parent's hazard counts for in a child: few enough that a context speaks for itself soon.
const PRIOR: f64 = 3.0;
/// Rates are logarithms in eighths of octaves, of expected deaths in one write of the logical capacity, above this one.
const LOWEST_OCTAVE: i32 = -6;
/// Horizons of the placement's rates, at least, and of the victim policy's, in writes of the logical capacity.
const PLACEMENT_HORIZON: f64 = 0.03;
const VICTIM_HORIZON: f64 = 0.1;
/// Of 16 parts of what was counted, these are left after a write of the logical capacity.
const KEPT_OF_16: u32 = 11;

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

/// See the module's text. Cells are ordered by class, mean and bin.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    /// Page units.
    exposure: Vec<u32>,
    deaths: Vec<u16>,
    placement: Vec<u8>,
    victim: Vec<u8>,
    /// Units of age in one write of the logical capacity.
    units: f64,
    /// What the code of a rate stands for.
    rates: Box<[f64; 256]>,
}

impl Contexts {
    pub(super) fn new(units: f64) -> Self {
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
            rates: Box::new(std::array::from_fn(rate)),
        };
        contexts.compute();
        contexts
    }

    /// Eighths of octaves by which the placement's death rate lies above its lowest.
    #[inline(always)]
    pub(super) fn placement(&self, context: usize, age_index: usize) -> u8 {
        self.placement[context * BINS + age_index / 2]
    }

    /// The victim policy's death rate: expected deaths in one write of the logical capacity.
    #[inline(always)]
    pub(super) fn victim(&self, context: usize, age_index: usize) -> f64 {
        self.rates[usize::from(self.victim[context * BINS + age_index / 2])]
    }

    /// A page of the sample has lived from one age to a later one.
    #[inline(always)]
    pub(super) fn lived(&mut self, context: usize, from: u32, to: u32) {
        let mut at = from;
        while at < to {
            let bin = ages::index(at) / 2;
            let end = ages::lowest(2 * bin + 2).min(to);
            self.expose(context * BINS + bin, end - at);
            at = end;
        }
    }

    /// A page of the sample, whose exposure was told up to an age, died at a later one.
    #[inline(always)]
    pub(super) fn died(&mut self, context: usize, told: u32, age: u32) {
        // A page that dies in the unit in which it was written was alive for a part of it; one is the least that can be told.
        self.lived(context, told, age + 1);
        let cell = context * BINS + ages::index(age) / 2;
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
        for units in &mut self.exposure {
            *units = (u64::from(*units) * u64::from(KEPT_OF_16) / 16) as u32;
        }
        for deaths in &mut self.deaths {
            *deaths = (u32::from(*deaths) * KEPT_OF_16 / 16) as u16;
        }
    }

    /// Computes every death rate from the counts. The parent of a context is what pages of its mean interval did, whatever their
    /// class; of those, and of pages never rewritten, what all pages did.
    pub(super) fn compute(&mut self) {
        let unknown = [1.0 / self.units; BINS];
        let all = self.hazards(0..CONTEXTS, &unknown);
        let of_mean: Vec<[f64; BINS]> =
            (0..MEANS).map(|mean| self.hazards((1..CLASSES).map(|class| class * MEANS + mean), &all)).collect();
        // Contexts that nothing is known of are as their parents.
        let rates_of_all = self.rates_of(&all);
        let rates_of_mean: Vec<_> = of_mean.iter().map(|hazards| self.rates_of(hazards)).collect();
        for context in 0..CONTEXTS {
            let (class, mean) = (context / MEANS, context % MEANS);
            let cells = context * BINS..(context + 1) * BINS;
            let is_known = self.exposure[cells.clone()].iter().any(|units| *units > 0);
            let (placement, victim) = match (is_known, class) {
                (true, 0) => self.rates_of(&self.hazards([context], &all)),
                (true, _) => self.rates_of(&self.hazards([context], &of_mean[mean])),
                (false, 0) => rates_of_all,
                (false, _) => rates_of_mean[mean],
            };
            self.placement[cells.clone()].copy_from_slice(&placement);
            self.victim[cells].copy_from_slice(&victim);
        }
    }

    /// Deaths of `contexts` together in a unit of exposure by bin of age, where the parent's hazard counts as [`PRIOR`] deaths.
    fn hazards(&self, contexts: impl IntoIterator<Item = usize>, parent: &[f64; BINS]) -> [f64; BINS] {
        let (mut units, mut deaths) = ([0u64; BINS], [0u64; BINS]);
        for context in contexts {
            for bin in 0..BINS {
                units[bin] += u64::from(self.exposure[context * BINS + bin]);
                deaths[bin] += u64::from(self.deaths[context * BINS + bin]);
            }
        }
        std::array::from_fn(|bin| {
            let deaths = deaths[bin] as f64 / f64::from(DEATH);
            (deaths + PRIOR) / (units[bin] as f64 + PRIOR / parent[bin])
        })
    }

    /// The codes of both death rates by bin of age: deaths over exposure from the middle of a bin on. The placement's goes as far as makes it
    /// largest, and at least as far as its horizon; the victim policy's goes to its horizon.
    fn rates_of(&self, hazards: &[f64; BINS]) -> ([u8; BINS], [u8; BINS]) {
        let (mut placement, mut victim) = ([0; BINS], [0; BINS]);
        let width = |bin: usize| f64::from(ages::lowest(2 * bin + 2) - ages::lowest(2 * bin));
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
                if near.is_none() && (is_last || horizon >= VICTIM_HORIZON * self.units) {
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

    /// The code of a rate of death in a unit.
    fn code(&self, rate: f64) -> u8 {
        let rate = rate * self.units;
        (self.rates.partition_point(|lower| *lower <= rate).max(1) - 1) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(hazard: impl Fn(u32) -> f64) -> Contexts {
        let mut contexts = Contexts::new(2048.0);
        for bin in 0..BINS {
            let units = 1_000_000_000;
            contexts.exposure[bin] = units;
            contexts.deaths[bin] = (hazard(ages::lowest(2 * bin)) * f64::from(units) * 16.0).min(65_535.0) as u16;
        }
        contexts
    }

    #[test]
    fn a_constant_hazard_is_its_own_rate_at_every_age() {
        let mut contexts = known(|_| 1e-6);
        contexts.compute();
        for bin in 0..BINS {
            let expected = 1e-6 * 2048.0;
            let expected = if expected < 1.0 / 64.0 { 1.0 / 64.0 } else { expected };
            let rate = contexts.victim(0, 2 * bin);
            assert!((rate / expected - 1.0).abs() < 0.1, "bin {bin}: {rate}, expected {expected}");
        }
    }

    #[test]
    fn counts_that_are_full_are_halved_and_hazards_stay() {
        let mut contexts = Contexts::new(2048.0);
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
