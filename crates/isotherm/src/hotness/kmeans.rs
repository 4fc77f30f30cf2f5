//! K-means on one axis, as ASA-FTL clusters recency (section 3.4; the initial centroids follow its reference 18), and the
//! exact optimum that it can be held against.
//!
//! - [`Histogram`]: three runs of equal count of the values in rising order give the first centroids, their means; Lloyd's
//!   iteration follows until no value changes its cluster. All it asks is how many values lie below a bound, and their sum,
//!   so that values are kept by interval, of 256 to a power of two, as a count and an exact sum. The values of an interval
//!   are clustered as one, at their mean, which moves centroids by a fraction of what another sample would. Values come
//!   and go in O(1), an iteration takes O(K), whatever their number.
//! - the exact optimum: its clusters are runs of the sorted values, and the best cut in front of the last run moves only to
//!   the right as values are added (Wang & Song, "Ckmeans.1d.dp"; Gronlund et al.), so that divide and conquer finds all
//!   of them in O(K n log n).
//!
//! Values are integers, so that sums are exact whatever their order.

/// Where the centroids start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    /// Means of runs of equal count, then Lloyd's iteration.
    Sorted,
    /// The optimum itself.
    Exact,
}

/// How intervals of values are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// So many for each power of two.
    Relative,
    /// All of one width, for values that are logarithms.
    Even,
}

/// The centroids of at most `clusters` clusters of `values`, in rising order; fewer where there are fewer different values.
///
/// # Panics
/// If there is no value, or no cluster is asked for.
pub fn centroids(values: &[u32], clusters: usize, init: Init, spacing: Spacing) -> Vec<f64> {
    match init {
        Init::Sorted => {
            let mut histogram = Histogram::new(spacing);
            values.iter().for_each(|value| histogram.add(*value));
            histogram.centroids(clusters)
        }
        Init::Exact => {
            assert!(!values.is_empty() && clusters > 0, "there is nothing to cluster");
            Optimum::default().find(values, clusters)
        }
    }
}

/// Sum of the squared distances of `samples` to the nearest of `centroids`: what K-means makes small.
pub fn cost(samples: &[u32], centroids: &[f64]) -> f64 {
    let squared = |value: f64| centroids.iter().map(|c| (value - c) * (value - c)).fold(f64::INFINITY, f64::min);
    samples.iter().map(|value| squared(f64::from(*value))).sum()
}

/// Binary digits of a value, below its first, that tell its interval.
const DIGITS: u32 = 8;
/// Intervals: so many for each power of two, and one for what is rounded up to 2^32.
const INTERVALS: usize = (32 << DIGITS) + 1;
/// Intervals that are summed up together.
const GROUP: usize = 32;

/// Values by interval: how many, and their sum.
#[derive(Clone, Debug)]
pub struct Histogram {
    spacing: Spacing,
    counts: Box<[u32]>,
    sums: Box<[u64]>,
    /// The same by [`GROUP`] intervals.
    groups: Box<[(u32, u64)]>,
}

impl Histogram {
    /// No values.
    pub fn new(spacing: Spacing) -> Self {
        Self {
            spacing,
            counts: vec![0; INTERVALS].into(),
            sums: vec![0; INTERVALS].into(),
            groups: vec![(0, 0); INTERVALS.div_ceil(GROUP)].into(),
        }
    }

    /// The interval of a value; a larger value is never in a lower one.
    #[inline(always)]
    fn interval(&self, value: u32) -> usize {
        // A float's exponent and first digits are the logarithm that is wanted. Rounding it keeps the order.
        let bits = |value: f32| value.to_bits() >> (f32::MANTISSA_DIGITS - 1 - DIGITS);
        match self.spacing {
            Spacing::Relative => bits(value as f32).saturating_sub(bits(1.0)) as usize,
            Spacing::Even => (value >> (27 - DIGITS)) as usize,
        }
    }

    /// A value more.
    #[inline(always)]
    pub fn add(&mut self, value: u32) {
        let interval = self.interval(value);
        self.counts[interval] += 1;
        self.sums[interval] += u64::from(value);
        let group = &mut self.groups[interval / GROUP];
        *group = (group.0 + 1, group.1 + u64::from(value));
    }

    /// One value less, of those that were added.
    #[inline(always)]
    pub fn remove(&mut self, value: u32) {
        let interval = self.interval(value);
        self.counts[interval] -= 1;
        self.sums[interval] -= u64::from(value);
        let group = &mut self.groups[interval / GROUP];
        *group = (group.0 - 1, group.1 - u64::from(value));
    }

    /// How many values there are.
    pub fn count(&self) -> u32 {
        self.groups.iter().map(|group| group.0).sum()
    }

    /// Memory of the tables.
    pub fn bytes(&self) -> u64 {
        let bytes = self.counts.len() * size_of::<u32>() + self.sums.len() * size_of::<u64>();
        (bytes + self.groups.len() * size_of::<(u32, u64)>()) as u64
    }

    /// The centroids of at most `clusters` clusters, in rising order; fewer where fewer intervals have values.
    ///
    /// # Panics
    /// If there is no value, or no cluster is asked for.
    pub fn centroids(&self, clusters: usize) -> Vec<f64> {
        let mut below = Vec::with_capacity(self.groups.len() + 1);
        let mut all = (0, 0);
        for group in &self.groups {
            below.push(all);
            all = (all.0 + group.0, all.1 + group.1);
        }
        below.push(all);
        assert!(all.0 > 0 && clusters > 0, "there is nothing to cluster");
        let values = Cumulated { histogram: self, below, all };
        values.iterate(values.equal_runs(clusters))
    }
}

/// A histogram, and for each group of it the count and the sum of what lies in lower ones.
struct Cumulated<'a> {
    histogram: &'a Histogram,
    below: Vec<(u32, u64)>,
    all: (u32, u64),
}

impl Cumulated<'_> {
    /// Means of `clusters` runs of as many values each.
    fn equal_runs(&self, clusters: usize) -> Vec<f64> {
        let samples = self.all.0 as usize;
        let mut centroids = Vec::with_capacity(clusters);
        let mut before = (0, 0.0);
        for run in 1..=clusters {
            let cut = samples * run / clusters;
            if cut > before.0 {
                let sum = self.smallest(cut as u32);
                centroids.push((sum - before.1) / (cut - before.0) as f64);
                before = (cut, sum);
            }
        }
        centroids.dedup();
        centroids
    }

    /// Sum of the `count` smallest values, at least one.
    fn smallest(&self, count: u32) -> f64 {
        let group = self.below.partition_point(|below| below.0 < count) - 1;
        let (mut below, mut sum) = self.below[group];
        let mut interval = group * GROUP;
        while below + self.histogram.counts[interval] < count {
            below += self.histogram.counts[interval];
            sum += self.histogram.sums[interval];
            interval += 1;
        }
        let mean = self.histogram.sums[interval] as f64 / f64::from(self.histogram.counts[interval]);
        sum as f64 + mean * f64::from(count - below)
    }

    /// How many values are at most `bound`, and their sum.
    fn up_to(&self, bound: f64) -> (u32, u64) {
        let Histogram { counts, sums, .. } = self.histogram;
        let interval = self.histogram.interval(bound as u32);
        let lower = interval / GROUP * GROUP..interval;
        let (mut count, mut sum) = self.below[interval / GROUP];
        count += counts[lower.clone()].iter().sum::<u32>();
        sum += sums[lower].iter().sum::<u64>();
        if sums[interval] as f64 <= bound * f64::from(counts[interval]) {
            (count, sum) = (count + counts[interval], sum + sums[interval]);
        }
        (count, sum)
    }

    /// Lloyd's iteration: the centroids once no value changes its cluster.
    fn iterate(&self, mut centroids: Vec<f64>) -> Vec<f64> {
        let mut cuts: Vec<(u32, u64)> = Vec::new();
        let mut next: Vec<(u32, u64)> = Vec::new();
        loop {
            // A value halfway between two centroids goes to the lower one.
            next.clear();
            next.push((0, 0));
            next.extend(centroids.windows(2).map(|w| self.up_to(w[0] + (w[1] - w[0]) / 2.0)));
            next.push(self.all);
            next.dedup_by_key(|cut| cut.0);
            if next == cuts {
                return centroids;
            }
            centroids.clear();
            centroids.extend(next.windows(2).map(|w| (w[1].1 - w[0].1) as f64 / f64::from(w[1].0 - w[0].0)));
            std::mem::swap(&mut cuts, &mut next);
        }
    }
}

/// The dynamic programme over distinct values in rising order.
#[derive(Clone, Default, Debug)]
struct Optimum {
    sorted: Vec<u32>,
    /// Distinct values; entry `i` of the sums is over what stands before value `i`: counts, values and their squares, the
    /// values taken from the mean of all so that squares do not cancel.
    values: usize,
    counts: Vec<f64>,
    sums: Vec<f64>,
    squares: Vec<f64>,
    centre: f64,
    /// Least cost of the first `i` values in the clusters so far, and with one more.
    costs: Vec<f64>,
    next_costs: Vec<f64>,
    /// For each number of clusters and each `i`, where the last cluster starts.
    starts: Vec<Vec<u32>>,
}

impl Optimum {
    fn find(&mut self, samples: &[u32], clusters: usize) -> Vec<f64> {
        self.sum_up(samples);
        let cuts = self.cuts(clusters.min(self.values));
        cuts.windows(2).map(|w| self.mean(w[0], w[1])).collect()
    }

    fn sum_up(&mut self, samples: &[u32]) {
        self.sorted.clear();
        self.sorted.extend_from_slice(samples);
        self.sorted.sort_unstable();
        for column in [&mut self.counts, &mut self.sums, &mut self.squares] {
            column.clear();
            column.push(0.0);
        }
        self.centre = samples.iter().map(|value| u64::from(*value)).sum::<u64>() as f64 / samples.len() as f64;
        let (mut count, mut total, mut square) = (0.0, 0.0, 0.0);
        for run in self.sorted.chunk_by(|a, b| a == b) {
            let (weight, value) = (run.len() as f64, f64::from(run[0]) - self.centre);
            count += weight;
            total += weight * value;
            square += weight * value * value;
            self.counts.push(count);
            self.sums.push(total);
            self.squares.push(square);
        }
        self.values = self.counts.len() - 1;
    }

    #[inline(always)]
    fn mean(&self, first: usize, end: usize) -> f64 {
        self.centre + (self.sums[end] - self.sums[first]) / (self.counts[end] - self.counts[first])
    }

    /// Sum of the squared distances of values `first..end` from their mean.
    #[inline(always)]
    fn cost(&self, first: usize, end: usize) -> f64 {
        let (count, sum) = (self.counts[end] - self.counts[first], self.sums[end] - self.sums[first]);
        (self.squares[end] - self.squares[first] - sum * sum / count).max(0.0)
    }

    /// Where the best clusters begin, and the end of the last.
    fn cuts(&mut self, clusters: usize) -> Vec<usize> {
        let values = self.values;
        self.costs = (0..=values).map(|end| if end == 0 { 0.0 } else { self.cost(0, end) }).collect();
        self.next_costs.resize(values + 1, 0.0);
        self.starts.resize_with(clusters.max(self.starts.len()), Vec::new);
        for cluster in 1..clusters {
            let mut starts = std::mem::take(&mut self.starts[cluster]);
            starts.resize(values + 1, 0);
            let mut next_costs = std::mem::take(&mut self.next_costs);
            // The last cluster needs one column alone.
            let first = if cluster + 1 == clusters { values } else { cluster + 1 };
            self.conquer((first, values), (cluster, values - 1), &mut next_costs, &mut starts);
            self.next_costs = std::mem::replace(&mut self.costs, next_costs);
            self.starts[cluster] = starts;
        }
        let mut cuts = vec![values];
        for cluster in (1..clusters).rev() {
            cuts.push(self.starts[cluster][*cuts.last().expect("never empty")] as usize);
        }
        cuts.push(0);
        cuts.reverse();
        cuts
    }

    /// Fills the costs of the first `end` values for every `end` of `ends`, the last cluster starting within `starts`.
    fn conquer(&self, ends: (usize, usize), starts: (usize, usize), costs: &mut [f64], best: &mut [u32]) {
        if ends.0 > ends.1 {
            return;
        }
        let end = ends.0 + (ends.1 - ends.0) / 2;
        let (mut least, mut at) = (f64::INFINITY, starts.0);
        for start in starts.0..=starts.1.min(end - 1) {
            let cost = self.costs[start] + self.cost(start, end);
            if cost < least {
                (least, at) = (cost, start);
            }
        }
        costs[end] = least;
        best[end] = at as u32;
        self.conquer((ends.0, end - 1), (starts.0, at), costs, best);
        self.conquer((end + 1, ends.1), (at, starts.1), costs, best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn cluster(values: &[u32], clusters: usize, init: Init) -> Vec<f64> {
        centroids(values, clusters, init, Spacing::Relative)
    }

    fn mean(values: &[u32]) -> f64 {
        values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64
    }

    /// The dynamic programme as it is defined: O(K n^2) over all cuts.
    fn least_cost(sorted: &[u32], clusters: usize) -> f64 {
        let cost = |run: &[u32]| cost(run, &[mean(run)]);
        let mut costs: Vec<f64> =
            (0..=sorted.len()).map(|end| if end == 0 { 0.0 } else { cost(&sorted[..end]) }).collect();
        for _ in 1..clusters {
            costs = (0..=sorted.len())
                .map(|end| (0..end).map(|start| costs[start] + cost(&sorted[start..end])).fold(costs[end], f64::min))
                .collect();
        }
        costs[sorted.len()]
    }

    proptest! {
        #[test]
        fn exact_reaches_the_optimum_and_sorted_never_beats_it(
            values in prop::collection::vec(prop_oneof![0u32..20, 0u32..1000, 0u32..1 << 30], 1..60),
            clusters in 1usize..5,
        ) {
            let mut samples = values;
            samples.sort_unstable();
            let least = least_cost(&samples, clusters);
            let scale = cost(&samples, &[0.0]).max(1.0);
            let exact = cost(&samples, &cluster(&samples, clusters, Init::Exact));
            prop_assert!((exact - least).abs() <= 1e-9 * scale, "{exact} against {least}");
            let sorted = cost(&samples, &cluster(&samples, clusters, Init::Sorted));
            prop_assert!(sorted >= least - 1e-9 * scale);
        }
    }

    /// The faithful mode as it is defined: sort, means of equal runs, Lloyd's iteration over all values.
    fn plain_lloyd(sorted: &[u32], clusters: usize) -> Vec<f64> {
        let cut = |i: usize| sorted.len() * i / clusters;
        let runs = (0..clusters).map(|i| &sorted[cut(i)..cut(i + 1)]).filter(|run| !run.is_empty());
        let mut centroids: Vec<f64> = runs.map(mean).collect();
        centroids.dedup();
        loop {
            let nearest = |v: u32| centroids.windows(2).filter(|w| f64::from(v) > w[0] + (w[1] - w[0]) / 2.0).count();
            let next: Vec<f64> = sorted.chunk_by(|a, b| nearest(*a) == nearest(*b)).map(mean).collect();
            if next == centroids {
                return centroids;
            }
            centroids = next;
        }
    }

    /// The least value of the interval of `value`.
    fn least(value: u32, spacing: Spacing) -> u32 {
        match spacing {
            Spacing::Relative => {
                value >> value.max(1).ilog2().saturating_sub(DIGITS) << value.max(1).ilog2().saturating_sub(DIGITS)
            }
            Spacing::Even => value >> (27 - DIGITS) << (27 - DIGITS),
        }
    }

    proptest! {
        // A value that lies just halfway between two centroids is rare.
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn one_value_an_interval_clusters_as_sorted_values_do(
            values in prop::collection::vec(prop_oneof![0u32..20, 0u32..1000, 0u32..1 << 30], 1..300),
            others in prop::collection::vec(0u32..1 << 30, 0..50),
            clusters in 1usize..5,
            spacing in prop_oneof![Just(Spacing::Relative), Just(Spacing::Even)],
        ) {
            let mut sorted: Vec<u32> = values.iter().map(|value| least(*value, spacing)).collect();
            let mut histogram = Histogram::new(spacing);
            // Some come and go again.
            others.iter().chain(&sorted).for_each(|value| histogram.add(*value));
            others.iter().for_each(|value| histogram.remove(*value));
            prop_assert_eq!(histogram.count() as usize, values.len());
            sorted.sort_unstable();
            prop_assert_eq!(histogram.centroids(clusters), plain_lloyd(&sorted, clusters));
        }
    }

    #[test]
    fn intervals_move_centroids_by_less_than_another_sample_does() {
        // The recency of pages of uniform traffic over a million pages, and of 90/10.
        for hot_share in [1.0, 0.1] {
            let mut random = Random::new(7);
            let mut sample = || -> Vec<u32> {
                let mean = |hot| {
                    if hot_share == 1.0 {
                        1e6
                    } else if hot {
                        1.1e5
                    } else {
                        9e6
                    }
                };
                let mut values: Vec<u32> = (0..16_384)
                    .map(|_| (-random.unit().max(1e-12).ln() * mean(random.chance(hot_share))).ceil() as u32)
                    .collect();
                values.sort_unstable();
                values
            };
            let values = sample();
            let (grouped, plain) = (cluster(&values, 3, Init::Sorted), plain_lloyd(&values, 3));
            let off = |other: &[f64]| other.iter().zip(&plain).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            let others = (0..8).map(|_| off(&plain_lloyd(&sample(), 3))).sum::<f64>() / 8.0;
            println!("off by {} grouped, by {others} with other samples", off(&grouped));
            assert!(off(&grouped) < others / 3.0, "off by {}, other samples by {others}", off(&grouped));
            assert!(cost(&values, &grouped) / cost(&values, &plain) < 1.0001);
        }
    }

    #[test]
    fn sorted_runs_can_cost_more_than_twice_the_optimum() {
        // Recency with a long tail: a few very cold pages pull the optimum's last centroid far out, where equal runs,
        // followed by Lloyd's iteration, do not reach.
        let mut samples: Vec<u32> = (0..3000).map(|i| 10 + i % 30).collect();
        samples.extend((0..900).map(|i| 1000 + i % 100));
        samples.extend((0..60).map(|i| 30_000 + i * 10));
        samples.extend((0..5).map(|i| 400_000 + i * 1000));
        let sorted = cost(&samples, &cluster(&samples, 3, Init::Sorted));
        let exact = cost(&samples, &cluster(&samples, 3, Init::Exact));
        assert!(sorted / exact > 2.0, "{sorted} / {exact}");
    }

    #[test]
    fn few_different_values_make_few_clusters() {
        for init in [Init::Sorted, Init::Exact] {
            assert_eq!(cluster(&[7; 9], 3, init), [7.0]);
            assert_eq!(cluster(&[9, 7, 7, 9, 9], 3, init), [7.0, 9.0]);
        }
    }
}
