//! What contexts of little evidence are taken for: hazards of ever more contexts together.

use super::ages::BINS;
use super::contexts::{CONTEXTS, Contexts, MEANS};

/// Deaths that the parent's hazard counts for in a child: few enough that a context speaks for itself soon.
const PRIOR: f64 = 3.0;
/// Half octaves between the lowest and the highest age as a multiple of the mean interval.
const MULTIPLES: usize = BINS + 2 * MEANS;

/// Deaths in a unit of exposure, where another hazard counts as [`PRIOR`] deaths.
#[inline(always)]
pub(super) fn pulled(deaths: f64, units: f64, towards: f64) -> f64 {
    (deaths + PRIOR) / (units + PRIOR / towards)
}

/// Sums over many contexts, from the widest to the narrowest.
pub(super) struct Parents {
    /// Hazards by age of all pages.
    all: [f64; BINS],
    /// Hazards in one mean interval by age as a multiple of it, of all pages that were rewritten; 0 where nothing is known.
    scaled: [f64; MULTIPLES],
    /// Exposure and deaths by mean and age.
    by_mean: [[(f64, f64); BINS]; MEANS],
}

/// The middle of an octave of means, in units.
pub(super) fn middle(mean: usize) -> f64 {
    std::f64::consts::SQRT_2 * f64::from(1u32 << mean)
}

/// The age as a multiple of the mean interval, in half octaves.
fn multiple(mean: usize, bin: usize) -> usize {
    bin + 2 * (MEANS - mean)
}

impl Parents {
    pub(super) fn of(contexts: &Contexts) -> Self {
        let mut by_mean = [[(0.0, 0.0); BINS]; MEANS];
        for context in 0..CONTEXTS {
            for (bin, sum) in by_mean[context % MEANS].iter_mut().enumerate() {
                let (units, deaths) = contexts.counted(context * BINS + bin);
                *sum = (sum.0 + units, sum.1 + deaths);
            }
        }
        let sum = |bins: std::ops::Range<usize>| {
            let cells = by_mean.iter().flat_map(|of_mean| &of_mean[bins.clone()]);
            cells.fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
        };
        let (units, deaths) = sum(0..BINS);
        let mean_hazard = pulled(deaths, units, 1.0 / contexts.units);
        let all: [f64; BINS] = std::array::from_fn(|bin| {
            let (units, deaths) = sum(bin..bin + 1);
            pulled(deaths, units, mean_hazard)
        });
        // Exposure in mean intervals, deaths, and the deaths that hazards of all pages make expect.
        let mut multiples = [(0.0, 0.0, 0.0); MULTIPLES];
        for (mean, of_mean) in by_mean.iter().enumerate().take(MEANS - 1) {
            for (bin, (units, deaths)) in of_mean.iter().enumerate() {
                let sum = &mut multiples[multiple(mean, bin)];
                *sum = (sum.0 + units / middle(mean), sum.1 + deaths, sum.2 + units * all[bin]);
            }
        }
        let scaled = multiples.map(
            |(intervals, deaths, expected)| {
                if intervals > 0.0 { pulled(deaths, intervals, expected / intervals) } else { 0.0 }
            },
        );
        Self { all, scaled, by_mean }
    }

    /// Hazards in one mean interval by age as a multiple of it, of pages of a family; 0 where nothing is known.
    pub(super) fn of_family(&self, contexts: &Contexts, family: usize) -> [f64; MULTIPLES] {
        let mut multiples = [(0.0, 0.0); MULTIPLES];
        for mean in 0..MEANS - 1 {
            for bin in 0..BINS {
                let (units, deaths) = contexts.counted((family * MEANS + mean) * BINS + bin);
                let sum = &mut multiples[multiple(mean, bin)];
                *sum = (sum.0 + units / middle(mean), sum.1 + deaths);
            }
        }
        std::array::from_fn(|at| match self.scaled[at] {
            0.0 => 0.0,
            of_all => pulled(multiples[at].1, multiples[at].0, of_all),
        })
    }

    /// The hazard that a context's begins from: what pages of its mean interval did at that age, whatever wrote them, pulled
    /// towards what its family did at that multiple of the mean interval.
    pub(super) fn hazard(&self, family: &[f64; MULTIPLES], mean: usize, bin: usize) -> f64 {
        let scaled = if mean == MEANS - 1 { 0.0 } else { family[multiple(mean, bin)] / middle(mean) };
        let (units, deaths) = self.by_mean[mean][bin];
        pulled(deaths, units, if scaled > 0.0 { scaled } else { self.all[bin] })
    }
}
