//! K-means on one axis, as ASA-FTL clusters recency (section 3.4; the initial centroids follow its reference 18), and the
//! exact optimum that it can be held against.
//!
//! - `sorted`: the values are sorted and cut into K runs of equal count, whose means are the first centroids; Lloyd's
//!   iteration follows until no value changes its cluster. On sorted values with prefix sums an iteration costs O(K log n),
//!   so that sorting, O(n log n), is nearly all.
//! - `exact`: clusters of an optimal solution are runs of the sorted values, and the best cut in front of the last run moves
//!   only to the right as values are added (Wang & Song, "Ckmeans.1d.dp"; Gronlund et al.), so that divide and conquer finds
//!   all of them in O(K n log n).

/// Where the centroids start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    /// Means of runs of equal count, then Lloyd's iteration.
    Sorted,
    /// The optimum itself.
    Exact,
}

/// A clustering.
#[derive(Clone, PartialEq, Debug)]
pub struct Clustering {
    /// Means of the clusters, in rising order; fewer than asked for where there are fewer different values.
    pub centroids: Vec<f64>,
    /// Sum of the squared distances to the nearest centroid.
    pub cost: f64,
}

/// Distinct values in rising order with sums over all values up to each.
#[derive(Clone, Default, Debug)]
pub struct Clusterer {
    values: Vec<f64>,
    /// Entry `i` sums what stands before value `i`: counts, values and their squares, the values taken from the mean of all
    /// so that squares do not cancel.
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

impl Clusterer {
    /// Clusters `samples` (sorted on the way) into at most `clusters`.
    ///
    /// # Panics
    /// If there is no sample, or no cluster is asked for.
    pub fn cluster(&mut self, samples: &mut [f64], clusters: usize, init: Init) -> Clustering {
        assert!(!samples.is_empty() && clusters > 0, "there is nothing to cluster");
        samples.sort_unstable_by(f64::total_cmp);
        self.sum_up(samples);
        let clusters = clusters.min(self.values.len());
        let bounds = match init {
            Init::Sorted => self.iterate(self.equal_runs(samples, clusters)),
            Init::Exact => self.optimum(clusters),
        };
        let runs = bounds.windows(2).map(|w| (w[0], w[1]));
        Clustering {
            centroids: runs.clone().map(|(first, end)| self.mean(first, end)).collect(),
            cost: runs.map(|(first, end)| self.cost(first, end)).sum(),
        }
    }

    fn sum_up(&mut self, samples: &[f64]) {
        self.values.clear();
        for column in [&mut self.counts, &mut self.sums, &mut self.squares] {
            column.clear();
            column.push(0.0);
        }
        self.centre = samples.iter().sum::<f64>() / samples.len() as f64;
        let (mut count, mut sum, mut square) = (0.0, 0.0, 0.0);
        for run in samples.chunk_by(|a, b| a == b) {
            let (weight, value) = (run.len() as f64, run[0] - self.centre);
            count += weight;
            sum += weight * value;
            square += weight * value * value;
            self.values.push(run[0]);
            self.counts.push(count);
            self.sums.push(sum);
            self.squares.push(square);
        }
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

    /// Means of `clusters` runs of as many samples each.
    fn equal_runs(&self, samples: &[f64], clusters: usize) -> Vec<f64> {
        let cut = |i: usize| samples.len() * i / clusters;
        let mut centroids: Vec<f64> = (0..clusters)
            .map(|i| &samples[cut(i)..cut(i + 1)])
            .filter(|run| !run.is_empty())
            .map(|run| run.iter().sum::<f64>() / run.len() as f64)
            .collect();
        centroids.dedup();
        centroids
    }

    /// Lloyd's iteration: the bounds of the clusters once no value changes its own.
    fn iterate(&self, mut centroids: Vec<f64>) -> Vec<usize> {
        let mut bounds = Vec::new();
        loop {
            // A value halfway between two centroids goes to the lower one.
            let mut next: Vec<usize> = centroids
                .windows(2)
                .map(|w| self.values.partition_point(|v| *v <= w[0] + (w[1] - w[0]) / 2.0))
                .collect();
            next.insert(0, 0);
            next.push(self.values.len());
            next.dedup();
            if next == bounds {
                return bounds;
            }
            centroids = next.windows(2).map(|w| self.mean(w[0], w[1])).collect();
            bounds = next;
        }
    }

    /// The bounds of the best clusters.
    fn optimum(&mut self, clusters: usize) -> Vec<usize> {
        let values = self.values.len();
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
        let mut bounds = vec![values];
        for cluster in (1..clusters).rev() {
            bounds.push(self.starts[cluster][*bounds.last().expect("never empty")] as usize);
        }
        bounds.push(0);
        bounds.reverse();
        bounds
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

    /// The dynamic programme as it is defined: O(K n^2) over all cuts.
    fn least_cost(sorted: &[f64], clusters: usize) -> f64 {
        let cost = |run: &[f64]| {
            let mean = run.iter().sum::<f64>() / run.len() as f64;
            run.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>()
        };
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
            let mut samples: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let exact = Clusterer::default().cluster(&mut samples, clusters, Init::Exact);
            let least = least_cost(&samples, clusters);
            let scale = samples.iter().map(|v| v * v).sum::<f64>().max(1.0);
            prop_assert!((exact.cost - least).abs() <= 1e-9 * scale, "{} against {least}", exact.cost);
            let sorted = Clusterer::default().cluster(&mut samples, clusters, Init::Sorted);
            prop_assert!(sorted.cost >= least - 1e-9 * scale);
        }
    }

    #[test]
    fn sorted_runs_can_cost_more_than_twice_the_optimum() {
        // Recency with a long tail: a few very cold pages pull the optimum's last centroid far out, where equal runs,
        // followed by Lloyd's iteration, do not reach.
        let mut samples: Vec<f64> = (0..3000).map(|i| 10.0 + f64::from(i % 30)).collect();
        samples.extend((0..900).map(|i| 1000.0 + f64::from(i % 100)));
        samples.extend((0..60).map(|i| 30_000.0 + f64::from(i * 10)));
        samples.extend((0..5).map(|i| 400_000.0 + f64::from(i * 1000)));
        let mut clusterer = Clusterer::default();
        let sorted = clusterer.cluster(&mut samples, 3, Init::Sorted);
        let exact = clusterer.cluster(&mut samples, 3, Init::Exact);
        assert!(sorted.cost / exact.cost > 2.0, "{} / {}", sorted.cost, exact.cost);
    }

    #[test]
    fn few_different_values_make_few_clusters() {
        for init in [Init::Sorted, Init::Exact] {
            let clustering = Clusterer::default().cluster(&mut [7.0; 9], 3, init);
            assert_eq!((clustering.centroids, clustering.cost), (vec![7.0], 0.0));
        }
    }

    #[test]
    fn a_clusterer_may_be_used_again() {
        let mut random = Random::new(1);
        let mut clusterer = Clusterer::default();
        for count in [5000, 10, 700] {
            let mut samples: Vec<f64> = (0..count).map(|_| random.unit().powi(4) * 1e6).collect();
            for init in [Init::Exact, Init::Sorted] {
                let again = clusterer.cluster(&mut samples, 3, init);
                assert_eq!(again, Clusterer::default().cluster(&mut samples, 3, init));
            }
        }
    }
}
