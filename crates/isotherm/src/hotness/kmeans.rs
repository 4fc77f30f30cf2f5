//! K-means on one axis, as ASA-FTL clusters recency (section 3.4; the initial centroids follow its reference 18), and the
//! exact optimum that it can be held against.
//!
//! - `sorted`: three runs of equal count of the values in rising order give the first centroids, their means; Lloyd's
//!   iteration follows until no value changes its cluster. All it asks is how many values lie below a bound, and their sum.
//!   A value is chained to those of its interval, of 128 to a power of two, as it comes; an answer is then the sum of what
//!   lies in lower intervals and a walk along one chain. Nothing is sorted or moved: O(n) in all, and O(n) an iteration at
//!   worst, where most values lie within a hundredth of each other.
//! - `exact`: clusters of an optimal solution are runs of the sorted values, and the best cut in front of the last run moves
//!   only to the right as values are added (Wang & Song, "Ckmeans.1d.dp"; Gronlund et al.), so that divide and conquer finds
//!   all of them in O(K n log n).
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

/// Takes values as they come, clusters them, and keeps its tables for the next time.
#[derive(Clone, Default, Debug)]
pub struct Clusterer {
    groups: Groups,
    optimum: Optimum,
}

impl Clusterer {
    /// Takes more values.
    #[inline(always)]
    pub fn add(&mut self, values: &[u32]) {
        self.groups.add(values);
    }

    /// The values taken since the last clustering, in their order.
    pub fn values(&self) -> &[u32] {
        &self.groups.values
    }

    /// The centroids of at most `clusters` clusters of the values taken, in rising order; fewer where there are fewer
    /// different values. Clears them.
    ///
    /// # Panics
    /// If there is no value, or no cluster is asked for.
    pub fn cluster(&mut self, clusters: usize, init: Init) -> Vec<f64> {
        assert!(!self.values().is_empty() && clusters > 0, "there is nothing to cluster");
        let centroids = match init {
            Init::Sorted => {
                self.groups.sum_up();
                let first = self.groups.equal_runs(clusters);
                self.groups.iterate(first)
            }
            Init::Exact => self.optimum.find(&self.groups.values, clusters),
        };
        self.groups.clear();
        centroids
    }
}

/// Sum of the squared distances of `samples` to the nearest of `centroids`: what K-means makes small.
pub fn cost(samples: &[u32], centroids: &[f64]) -> f64 {
    let squared = |value: f64| centroids.iter().map(|c| (value - c) * (value - c)).fold(f64::INFINITY, f64::min);
    samples.iter().map(|value| squared(f64::from(*value))).sum()
}

/// Binary digits of a value, below its first, that tell its interval.
const DIGITS: u32 = 7;
/// Intervals: so many for each power of two, and one for what is rounded up to 2^32.
const INTERVALS: usize = (32 << DIGITS) + 1;

/// The interval of a value; a larger value is never in a lower one.
#[inline(always)]
fn interval(value: u32) -> usize {
    // A float's exponent and first digits are the logarithm that is wanted. Rounding it keeps the order.
    let bits = |value: f32| value.to_bits() >> (f32::MANTISSA_DIGITS - 1 - DIGITS);
    (bits(value as f32).saturating_sub(bits(1.0))) as usize
}

/// What is known of an interval of values.
#[derive(Clone, Copy, Default, Debug)]
struct Interval {
    /// Sum of the values in it and, once they are summed up, of those in lower ones instead.
    sum: u64,
    /// How many they are.
    count: u32,
    /// The last value that came, counted from one; 0 if there is none.
    last: u32,
}

/// Values, chained by interval.
#[derive(Clone, Debug)]
struct Groups {
    values: Vec<u32>,
    /// For each value, the one before it in its interval, counted from one.
    previous: Vec<u32>,
    /// The intervals, and one that stands for the end.
    intervals: Box<[Interval]>,
    /// A place to find the smallest of a few values.
    few: Vec<u32>,
}

impl Default for Groups {
    fn default() -> Self {
        let intervals = vec![Interval::default(); INTERVALS + 1].into();
        Self { values: Vec::new(), previous: Vec::new(), intervals, few: Vec::new() }
    }
}

impl Groups {
    fn clear(&mut self) {
        self.values.clear();
        self.previous.clear();
        self.intervals.fill(Interval::default());
    }

    #[inline(always)]
    fn add(&mut self, values: &[u32]) {
        let first = self.values.len();
        self.values.extend_from_slice(values);
        self.previous.resize(self.values.len(), 0);
        for (index, (value, previous)) in (first as u32 + 1..).zip(values.iter().zip(&mut self.previous[first..])) {
            let interval = &mut self.intervals[interval(*value)];
            interval.sum += u64::from(*value);
            interval.count += 1;
            *previous = std::mem::replace(&mut interval.last, index);
        }
    }

    /// Turns counts and sums of intervals into those of what lies below.
    fn sum_up(&mut self) {
        let (mut count, mut sum) = (0, 0);
        for interval in &mut self.intervals {
            count += std::mem::replace(&mut interval.count, count);
            sum += std::mem::replace(&mut interval.sum, sum);
        }
    }

    /// Count and sum of all values.
    fn all(&self) -> (u32, u64) {
        let end = self.intervals[INTERVALS];
        (end.count, end.sum)
    }

    /// The values of an interval.
    fn inside(&self, interval: usize) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.intervals[interval].last;
        std::iter::from_fn(move || {
            let index = at.checked_sub(1)? as usize;
            at = self.previous[index];
            Some(self.values[index])
        })
    }

    /// Means of `clusters` runs of as many values each.
    fn equal_runs(&mut self, clusters: usize) -> Vec<f64> {
        let samples = self.values.len();
        let mut centroids = Vec::with_capacity(clusters);
        let mut before = (0, 0);
        for run in 1..=clusters {
            let cut = samples * run / clusters;
            if cut > before.0 {
                let sum = self.smallest(cut as u32);
                centroids.push((sum - before.1) as f64 / (cut - before.0) as f64);
                before = (cut, sum);
            }
        }
        centroids.dedup();
        centroids
    }

    /// Sum of the `count` smallest values.
    fn smallest(&mut self, count: u32) -> u64 {
        let at = self.intervals.partition_point(|interval| interval.count <= count) - 1;
        let Interval { sum, count: below, .. } = self.intervals[at];
        let missing = (count - below) as usize;
        if missing == 0 {
            return sum;
        }
        let mut few = std::mem::take(&mut self.few);
        few.clear();
        few.extend(self.inside(at));
        few.select_nth_unstable(missing - 1);
        let sum = sum + few[..missing].iter().map(|value| u64::from(*value)).sum::<u64>();
        self.few = few;
        sum
    }

    /// How many values are at most `bound`, and their sum.
    fn up_to(&self, bound: f64) -> (u32, u64) {
        let bound = bound as u32;
        let at = interval(bound);
        let Interval { sum, count, .. } = self.intervals[at];
        let inside = self.inside(at).filter(|value| *value <= bound);
        inside.fold((count, sum), |(count, sum), value| (count + 1, sum + u64::from(value)))
    }

    /// Lloyd's iteration: the centroids once no value changes its cluster.
    fn iterate(&self, mut centroids: Vec<f64>) -> Vec<f64> {
        let mut cuts: Vec<(u32, u64)> = Vec::new();
        loop {
            // A value halfway between two centroids goes to the lower one.
            let mut next = vec![(0, 0)];
            next.extend(centroids.windows(2).map(|w| self.up_to(w[0] + (w[1] - w[0]) / 2.0)));
            next.push(self.all());
            next.dedup_by_key(|cut| cut.0);
            if next.iter().map(|cut| cut.0).eq(cuts.iter().map(|cut| cut.0)) {
                return centroids;
            }
            centroids = next.windows(2).map(|w| (w[1].1 - w[0].1) as f64 / f64::from(w[1].0 - w[0].0)).collect();
            cuts = next;
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
        cluster_with(&mut Clusterer::default(), values, clusters, init)
    }

    fn cluster_with(clusterer: &mut Clusterer, values: &[u32], clusters: usize, init: Init) -> Vec<f64> {
        clusterer.add(values);
        clusterer.cluster(clusters, init)
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

    proptest! {
        // A value that lies just halfway between two centroids is rare.
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn grouped_values_cluster_as_sorted_ones_do(
            values in prop::collection::vec(prop_oneof![0u32..20, 0u32..1000, 0u32..1 << 30], 1..300),
            clusters in 1usize..5,
        ) {
            let samples = values;
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let grouped = cluster(&samples, clusters, Init::Sorted);
            prop_assert_eq!(grouped, plain_lloyd(&sorted, clusters));
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
        let mut clusterer = Clusterer::default();
        let sorted = cost(&samples, &cluster_with(&mut clusterer, &samples, 3, Init::Sorted));
        let exact = cost(&samples, &cluster_with(&mut clusterer, &samples, 3, Init::Exact));
        assert!(sorted / exact > 2.0, "{sorted} / {exact}");
    }

    #[test]
    fn few_different_values_make_few_clusters() {
        for init in [Init::Sorted, Init::Exact] {
            assert_eq!(cluster(&[7; 9], 3, init), [7.0]);
            assert_eq!(cluster(&[9, 7, 7, 9, 9], 3, init), [7.0, 9.0]);
        }
    }

    #[test]
    fn a_clusterer_may_be_used_again() {
        let mut random = Random::new(1);
        let mut clusterer = Clusterer::default();
        for count in [5000, 10, 700] {
            let samples: Vec<u32> = (0..count).map(|_| (random.unit().powi(4) * 1e6) as u32).collect();
            for init in [Init::Exact, Init::Sorted] {
                let again = cluster_with(&mut clusterer, &samples, 3, init);
                assert_eq!(again, cluster(&samples, 3, init));
            }
        }
    }
}
