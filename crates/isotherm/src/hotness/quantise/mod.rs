//! Segment quantisation: where the lines between groups of hotness lie (Min et al., SFS, FAST'12).
//!
//! *Iterative*: every segment goes to the nearest centre, every centre to the mean of its segments, at most three rounds a
//! time; centres are kept from one time to the next, so that three rounds suffice. The paper does not say what becomes of a
//! centre without segments. Left where it is, it never finds any again: a log's first segments are hotter than
//! all later ones, since hotness is writes over age and ages have just begun to count ([`EmptyGroup`]). *Equi-width* cuts the range of hotness
//! into equal parts, *equi-height* the segments into equal counts. A time costs O(segments x groups); above
//! `sample_max`, so many stand for all, of which a part is asked for anew each time ([`sample`]): that costs O(part), where lines move little.
//!
//! Departure, switched by `distinct`: where nothing differs, centres still do, by chance, and blocks fall into groups by chance;
//! groups that wait for a segment's worth of blocks then cost space for nothing. A block's hotness is a count over
//! an age, so at hotness `H` and age `A` its standard error is `sqrt(H / A)`. Neighbouring centres that lie nearer than `distinct`
//! times that are one group: a block of one would be found in the other too often by chance. Two is the least whole number that
//! tells a population of one hotness: K-means parts a normal one into two whose centres lie 1.6 standard deviations apart, into
//! more that lie nearer. 0 is the published way.

mod sample;

use super::lifetime::MEAN_RATE;
use crate::random::Random;
use crate::registry::{Parameter, Parameters};
use sample::Sample;
use std::ops::{AddAssign, SubAssign};

/// How the lines are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Criterion {
    /// Refined centres, in the manner of k-means.
    #[default]
    Iterative,
    /// Equal parts of the range of hotness.
    EquiWidth,
    /// Equal counts of segments.
    EquiHeight,
    /// Lines that stay where they are, [`LEARNT_WIDTH`] apart: hotness is the learnt death rate ([`super::lifetime`]), as its code. Not in the paper.
    Isotherm,
}

/// The measure in which hotness is quantised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scale {
    /// Hotness itself, as published. Where it spans orders of magnitude, the hottest few segments draw most centres to them.
    #[default]
    Raw,
    /// Its logarithm: lines lie at ratios, not at differences. Not in the paper.
    Log,
}

impl Criterion {
    /// The switch's names, for parameters.
    pub const NAMES: &[(&str, Self)] =
        &[("iterative", Self::Iterative), ("equi_width", Self::EquiWidth), ("equi_height", Self::EquiHeight)];
    /// The same, and learnt rates: for those who keep [`super::lifetime::Lifetimes`].
    pub const NAMES_WITH_LEARNT: &[(&str, Self)] =
        &[Self::NAMES[0], Self::NAMES[1], Self::NAMES[2], ("isotherm", Self::Isotherm)];
}

impl Scale {
    /// The switch's names, for parameters.
    pub const NAMES: &[(&str, Self)] = &[("raw", Self::Raw), ("log", Self::Log)];

    fn measure(self, hotness: f64) -> f64 {
        if self == Self::Log { libm::log(hotness.max(f64::MIN_POSITIVE)) } else { hotness }
    }

    fn hotness(self, measure: f64) -> f64 {
        if self == Self::Log { libm::exp(measure) } else { measure }
    }
}

/// What becomes of a centre that no segment is nearest to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EmptyGroup {
    /// It moves to a segment picked at random, as centres are picked at the start.
    #[default]
    Repicks,
    /// It stays where it is. Hotness falls as the log ages, so that centres of the log's first moments stay above all
    /// segments for good, and most groups stay empty.
    Keeps,
}

impl EmptyGroup {
    /// The switch's names, for parameters.
    pub const NAMES: &[(&str, Self)] = &[("repick", Self::Repicks), ("keep", Self::Keeps)];
}

/// How segments are quantised.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QuantiserOptions {
    /// How the lines are found.
    pub criterion: Criterion,
    /// In which measure.
    pub scale: Scale,
    /// Groups, 1 to [`MAX_GROUPS`].
    pub groups: usize,
    /// What becomes of a centre without segments.
    pub empty: EmptyGroup,
    /// Standard errors of a block's hotness by which refined centres must differ to be two groups; 0 for any difference.
    pub distinct: f64,
    /// Segments looked at a time, at most.
    pub sample_max: usize,
}

impl QuantiserOptions {
    /// One group: nothing to quantise.
    pub const PLAIN: Self = Self {
        criterion: Criterion::Iterative,
        scale: Scale::Raw,
        groups: 1,
        empty: EmptyGroup::Repicks,
        distinct: 2.0,
        sample_max: 10_000,
    };

    /// The parameters that [`QuantiserOptions::read`] reads: `criteria` are those that can be had, `sample` is the default of the last one.
    pub const fn parameters(criteria: &'static [&'static str], sample: &'static str) -> [Parameter; 6] {
        [
            Parameter::integer("groups", 1..=MAX_GROUPS as u64, "4").help("groups of hotness"),
            Parameter::choice("criterion", criteria, "iterative").help("how groups are told apart"),
            Parameter::choice("scale", &["raw", "log"], "raw").help("groups by hotness itself, or by its logarithm"),
            Parameter::choice("empty", &["repick", "keep"], "repick").help(
                "whether a group without segments takes the hotness of one picked at random, or keeps its centre",
            ),
            Parameter::real("distinct", 0.0..=100.0, "2")
                .help("standard errors of a block's hotness by which two groups differ at least; 0 as published"),
            Parameter::integer("sample", 16..=100_000_000, sample).help("segments that quantisation looks at, at most"),
        ]
    }

    /// Reads them; `criteria` are the names that the parameters were made with.
    pub fn read(given: &Parameters<'_>, criteria: &[(&'static str, Criterion)]) -> Self {
        Self {
            criterion: given.choice("criterion", criteria),
            scale: given.choice("scale", Scale::NAMES),
            groups: given.integer("groups") as usize,
            empty: given.choice("empty", EmptyGroup::NAMES),
            distinct: given.real("distinct"),
            sample_max: given.integer("sample") as usize,
        }
    }
}

/// Most rounds of refinement at a time.
const ROUNDS: u32 = 3;

/// Finds groups of hotness among segments.
#[derive(Clone, Debug)]
pub struct Quantiser {
    options: QuantiserOptions,
    random: Random,
    /// In the scale's measure, ascending; empty before the first segment was seen.
    centres: Vec<f64>,
    /// Hotness from which on a block belongs to group 1, 2, ...; ascending.
    bounds: Vec<f64>,
    /// Of the segments looked at, in the scale's measure.
    hotnesses: Vec<f64>,
    /// Those that stand for all, where there are too many.
    sample: Option<Sample>,
}

impl Quantiser {
    /// A quantiser that has seen no segment.
    pub fn new(options: QuantiserOptions, seed: u64) -> Self {
        assert!((1..=MAX_GROUPS).contains(&options.groups) && options.sample_max >= 1);
        let mut bounds = Vec::with_capacity(options.groups);
        if options.criterion == Criterion::Isotherm {
            bounds.extend(learnt_bounds(options.groups));
        }
        Self {
            options,
            random: Random::new(seed),
            centres: Vec::with_capacity(options.groups),
            bounds,
            hotnesses: Vec::new(),
            sample: None,
        }
    }

    /// The centres in force, coldest first.
    pub fn centres(&self) -> Vec<f64> {
        self.centres.iter().map(|centre| self.options.scale.hotness(*centre)).collect()
    }

    /// Puts back centres that a superblock kept. Those of another number of groups are of no use.
    pub fn restore(&mut self, centres: &[f64]) {
        if self.options.criterion == Criterion::Isotherm || centres.len() != self.options.groups {
            return;
        }
        self.centres = centres.iter().map(|centre| self.options.scale.measure(*centre)).collect();
        self.centres.sort_unstable_by(f64::total_cmp);
        self.bound_between_centres();
        self.bounds.iter_mut().for_each(|bound| *bound = self.options.scale.hotness(*bound));
    }

    /// The group of a block, 0 the coldest.
    #[inline(always)]
    pub fn group(&self, hotness: f64) -> usize {
        self.bounds.iter().map(|bound| usize::from(hotness >= *bound)).sum()
    }

    /// Draws the lines anew. `hotness` gives the hotness of segment `0..segments`, or `None` for one that holds no data;
    /// `now` is the age of the oldest blocks, in the unit that hotness counts ages in.
    pub fn update(&mut self, segments: usize, now: u64, hotness: impl Fn(usize) -> Option<f64>) {
        if self.options.groups == 1 || self.options.criterion == Criterion::Isotherm {
            return;
        }
        self.hotnesses.clear();
        if segments > self.options.sample_max {
            let sample = self.sample.get_or_insert_with(|| Sample::new(self.options.scale));
            sample.look(self.options.sample_max, segments, &mut self.random, hotness);
        } else {
            self.sample = None;
            self.hotnesses.extend((0..segments).filter_map(hotness).map(|h| self.options.scale.measure(h)));
        }
        match self.sample.take() {
            Some(mut sample) => {
                self.draw_lines(&mut sample, now);
                self.sample = Some(sample);
            }
            None => {
                let mut hotnesses = std::mem::take(&mut self.hotnesses);
                self.draw_lines(&mut hotnesses, now);
                self.hotnesses = hotnesses;
            }
        }
    }

    fn draw_lines(&mut self, segments: &mut impl Segments, now: u64) {
        if segments.count() == 0 {
            return;
        }
        match self.options.criterion {
            Criterion::Iterative => self.refine(segments),
            Criterion::EquiWidth => self.cut_range(&segments.measures()),
            Criterion::EquiHeight => self.cut_counts(segments.measures()),
            Criterion::Isotherm => {}
        }
        self.bounds.iter_mut().for_each(|bound| *bound = self.options.scale.hotness(*bound));
        if self.options.criterion == Criterion::Iterative {
            self.join_alike(now);
        }
    }

    /// Makes one group of neighbours whose centres do not differ by more than chance: the line between them moves up to the
    /// next one, so that the upper group stays empty.
    fn join_alike(&mut self, now: u64) {
        let scale = self.options.scale;
        for at in (0..self.bounds.len()).rev() {
            let (below, above) = (scale.hotness(self.centres[at]), scale.hotness(self.centres[at + 1]));
            let error = ((below + above) / 2.0 / now.max(1) as f64).sqrt();
            if above - below < self.options.distinct * error {
                self.bounds[at] = self.bounds.get(at + 1).copied().unwrap_or(f64::INFINITY);
            }
        }
    }

    fn refine(&mut self, segments: &mut impl Segments) {
        if self.centres.len() < self.options.groups || segments.count() <= self.options.groups {
            // Too little to refine: any segments will do as centres.
            self.centres.clear();
            for _ in 0..self.options.groups {
                self.centres.push(segments.any(&mut self.random));
            }
            self.centres.sort_unstable_by(f64::total_cmp);
        }
        for _ in 0..ROUNDS {
            self.bound_between_centres();
            let mut moved = false;
            for (centre, own) in self.centres.iter_mut().zip(segments.parted(&self.bounds)) {
                if own.count > 0 {
                    let mean = own.sum / f64::from(own.count);
                    moved |= mean != *centre;
                    *centre = mean;
                } else if self.options.empty == EmptyGroup::Repicks {
                    moved = true;
                    *centre = segments.any(&mut self.random);
                }
            }
            if !moved {
                break;
            }
            self.centres.sort_unstable_by(f64::total_cmp);
        }
        self.bound_between_centres();
    }

    /// The nearest centre changes half way between two.
    fn bound_between_centres(&mut self) {
        self.bounds.clear();
        self.bounds.extend(self.centres.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0));
    }

    fn cut_range(&mut self, measures: &[f64]) {
        let (least, most) =
            measures.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), h| (least.min(*h), most.max(*h)));
        let width = (most - least) / self.options.groups as f64;
        self.bounds.clear();
        self.bounds.extend((1..self.options.groups).map(|i| least + width * i as f64));
        self.centres.clear();
        self.centres.extend((0..self.options.groups).map(|i| least + width * (i as f64 + 0.5)));
    }

    fn cut_counts(&mut self, mut measures: Vec<f64>) {
        measures.sort_unstable_by(f64::total_cmp);
        let (count, groups) = (measures.len(), self.options.groups);
        self.bounds.clear();
        self.bounds.extend((1..groups).map(|i| measures[i * count / groups]));
        self.centres.clear();
        self.centres.extend((0..groups).map(|i| measures[(2 * i + 1) * count / (2 * groups)]));
    }
}

/// The segments that are looked at, in the scale's measure.
trait Segments {
    /// How many there are.
    fn count(&self) -> usize;
    /// Any of them; there is at least one.
    fn any(&self, random: &mut Random) -> f64;
    /// How many lie in each group, and their sum: group 0 below the first bound, group 1 from there on, and so on. Bounds ascend.
    fn parted(&mut self, bounds: &[f64]) -> [Sum; MAX_GROUPS];
    /// All of them.
    fn measures(&self) -> Vec<f64>;
}

/// All segments.
impl Segments for Vec<f64> {
    fn count(&self) -> usize {
        self.len()
    }
    fn any(&self, random: &mut Random) -> f64 {
        self[random.below(self.len() as u64) as usize]
    }
    fn parted(&mut self, bounds: &[f64]) -> [Sum; MAX_GROUPS] {
        let mut parted = [Sum::default(); MAX_GROUPS];
        let mut lower = Sum::default();
        for (own, bound) in parted.iter_mut().zip(bounds.iter().chain([&f64::INFINITY])) {
            let upper = below(self, *bound);
            *own = upper;
            *own -= lower;
            lower = upper;
        }
        parted
    }
    fn measures(&self) -> Self {
        self.clone()
    }
}

/// Some numbers' sum and count.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Sum {
    sum: f64,
    count: u32,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
}

impl SubAssign for Sum {
    fn sub_assign(&mut self, other: Self) {
        self.sum -= other.sum;
        self.count -= other.count;
    }
}

/// The numbers below a bound. What lies between two bounds is the difference of two of these: the lower one's numbers are the smaller
/// ones, so that little is lost by it. Lanes are added up side by side, in the same order on every machine.
fn below(numbers: &[f64], bound: f64) -> Sum {
    const LANES: usize = 8;
    let (mut sums, mut counts) = ([0.0; LANES], [0u64; LANES]);
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let is_below = chunk[lane] < bound;
            sums[lane] += if is_below { chunk[lane] } else { 0.0 };
            counts[lane] += u64::from(is_below);
        }
    }
    for (lane, number) in rest.iter().enumerate().filter(|(_, number)| **number < bound) {
        sums[lane] += number;
        counts[lane] += 1;
    }
    Sum { sum: sums.iter().sum(), count: counts.iter().sum::<u64>() as u32 }
}

/// Eighths of octaves of the death rate that a group of learnt rates is wide, the coldest and the hottest aside.
const LEARNT_WIDTH: f64 = 16.0;

/// Codes of death rates from which on a block belongs to group 1, 2, ...: as many groups lie above the mean rate as below, and what lies up to half an octave above it is
/// in its group, so that noise does not divide it. Of widths of one, two and three octaves two left a log the least to clean.
fn learnt_bounds(groups: usize) -> impl Iterator<Item = f64> {
    let below = ((groups - 1) / 2) as f64;
    (0..groups - 1).map(move |line| f64::from(MEAN_RATE) + LEARNT_WIDTH * (line as f64 - below + 0.25))
}

/// Most groups that a quantiser forms.
pub const MAX_GROUPS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learnt_rates_are_parted_at_octaves_around_the_mean_rate_and_stay_so() {
        for groups in 2..=MAX_GROUPS {
            let options = QuantiserOptions { criterion: Criterion::Isotherm, groups, ..QuantiserOptions::PLAIN };
            let mut quantiser = Quantiser::new(options, 1);
            let group = |quantiser: &Quantiser, octaves: f64| quantiser.group(f64::from(MEAN_RATE) + 8.0 * octaves);
            quantiser.update(3, 1, |_| Some(1e6));
            quantiser.restore(&[1.0, 2.0]);
            assert_eq!((group(&quantiser, -32.0), group(&quantiser, 25.0)), (0, groups - 1));
            // Noise about the mean rate divides nothing.
            assert_eq!(group(&quantiser, -0.5), group(&quantiser, 0.4));
            assert_eq!(group(&quantiser, 0.5), group(&quantiser, 0.4) + 1);
        }
    }

    fn build(criterion: Criterion, scale: Scale, groups: usize) -> Quantiser {
        Quantiser::new(QuantiserOptions { criterion, scale, groups, ..QuantiserOptions::PLAIN }, 1)
    }

    fn update(quantiser: &mut Quantiser, hotnesses: &[f64]) {
        quantiser.update(hotnesses.len(), u64::MAX, |i| Some(hotnesses[i]));
    }

    #[test]
    fn refinement_finds_separate_clusters_in_a_few_times() {
        let mut random = Random::new(3);
        let hotnesses: Vec<f64> =
            (0..1000).map(|i| [1.0, 10.0, 100.0, 1000.0][i % 4] * (0.95 + 0.1 * random.unit())).collect();
        let mut quantiser = build(Criterion::Iterative, Scale::Raw, 4);
        quantiser.restore(&[0.0, 20.0, 90.0, 500.0]);
        for _ in 0..10 {
            update(&mut quantiser, &hotnesses);
        }
        for (centre, expected) in quantiser.centres().iter().zip([1.0, 10.0, 100.0, 1000.0]) {
            assert!((centre / expected - 1.0).abs() < 0.01, "{:?}", quantiser.centres());
        }
        assert_eq!([0.5, 8.0, 70.0, 5000.0].map(|h| quantiser.group(h)), [0, 1, 2, 3]);
    }

    #[test]
    fn on_a_logarithmic_scale_lines_lie_at_ratios() {
        let mut quantiser = build(Criterion::EquiWidth, Scale::Log, 2);
        update(&mut quantiser, &[1.0, 3.0, 10_000.0]);
        assert_eq!([99.0, 101.0].map(|h| quantiser.group(h)), [0, 1]);
    }

    #[test]
    fn an_empty_group_moves_to_a_segment_or_keeps_its_centre() {
        for (empty, expected) in [(EmptyGroup::Keeps, [4.0, 1000.0]), (EmptyGroup::Repicks, [1.5, 9.0])] {
            let mut quantiser = Quantiser::new(QuantiserOptions { groups: 2, empty, ..QuantiserOptions::PLAIN }, 1);
            quantiser.restore(&[1.0, 1000.0]);
            (0..5).for_each(|_| update(&mut quantiser, &[1.0, 2.0, 9.0]));
            assert_eq!(quantiser.centres(), expected);
        }
    }

    #[test]
    fn centres_that_differ_by_chance_alone_are_one_group() {
        // At an age of 100, hotness 1 is a count of 100, which is off by 10 as a rule.
        const CENTRES: [f64; 4] = [0.5, 1.0, 1.06, 9.0];
        for (age, distinct, expected) in
            [(100, 1.0, [0, 1, 1, 3]), (100, 0.0, [0, 1, 2, 3]), (1_000_000, 1.0, [0, 1, 2, 3])]
        {
            let mut quantiser = Quantiser::new(QuantiserOptions { groups: 4, distinct, ..QuantiserOptions::PLAIN }, 1);
            quantiser.restore(&CENTRES);
            let hotnesses = CENTRES.repeat(10);
            quantiser.update(hotnesses.len(), age, |i| Some(hotnesses[i]));
            assert_eq!(CENTRES.map(|hotness| quantiser.group(hotness)), expected, "age {age}, distinct {distinct}");
        }
    }

    #[test]
    fn centres_of_another_number_of_groups_are_not_put_back() {
        for groups in 1..=MAX_GROUPS {
            let mut quantiser = build(Criterion::Iterative, Scale::Raw, groups);
            for kept in 0..=MAX_GROUPS {
                quantiser.restore(&vec![1.0; kept]);
                assert!(quantiser.group(f64::MAX) < groups, "{kept} centres, {groups} groups");
            }
            assert_eq!(quantiser.centres(), vec![1.0; groups]);
        }
    }

    #[test]
    fn few_segments_give_random_centres_among_them() {
        let mut quantiser = build(Criterion::Iterative, Scale::Raw, 4);
        update(&mut quantiser, &[5.0, 7.0]);
        assert_eq!(quantiser.centres().len(), 4);
        assert!(quantiser.centres().iter().all(|c| (5.0..=7.0).contains(c)));
    }

    #[test]
    fn equal_widths_and_equal_heights_cut_as_their_names_say() {
        let hotnesses: Vec<f64> = (0..100).map(|i| f64::from(i * i)).collect();
        let mut width = build(Criterion::EquiWidth, Scale::Raw, 4);
        let mut height = build(Criterion::EquiHeight, Scale::Raw, 4);
        update(&mut width, &hotnesses);
        update(&mut height, &hotnesses);
        let sizes = |quantiser: &Quantiser| {
            let mut sizes = [0; 4];
            hotnesses.iter().for_each(|h| sizes[quantiser.group(*h)] += 1);
            sizes
        };
        assert_eq!(sizes(&height), [25, 25, 25, 25]);
        assert_eq!(sizes(&width), [50, 21, 15, 14]);
    }
}
