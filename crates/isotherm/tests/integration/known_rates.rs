//! What a drive can reach that knows how often every page is written: by a formula, and in the same engine as those that learn.

use crate::separation::SteadyRun;
use isotherm::build::Environment;
use isotherm::lambert::lambert_w;
use isotherm::placement::{CopyBatch, ExternalPlacement, WriteBatch};
use isotherm::victim::{ClosedBlocks, ExternalVictim};
use std::sync::{Arc, Mutex};

/// The write amplification that known rates give: every group of pages of one rate in blocks of its own, and the spare space divided among the
/// groups as is best. `groups` are shares of the pages and of the writes. Of each group the closed form of uniform traffic under greedy
/// victims holds.
pub fn closed_form(groups: &[(f64, f64)], spare: f64) -> f64 {
    let uniform = |alpha: f64| {
        let k = 1.0 + 1.0 / 128.0;
        let alpha = k * alpha;
        alpha / (alpha + lambert_w(-alpha * (-alpha).exp())) / k
    };
    // What a little more space gains is the same in every group.
    let slope = |alpha: f64| (uniform(alpha * 0.9999) - uniform(alpha * 1.0001)) / (alpha * 0.0002);
    let root = |low: f64, high: f64, is_above: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (low, high);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if is_above(middle) { low = middle } else { high = middle }
        }
        low
    };
    let of_group = |gain: f64, (pages, writes): (f64, f64)| {
        1.0 + root(1e-3, 1e2, &|over| slope(1.0 + over) * writes / pages > gain)
    };
    let space = |gain: f64| groups.iter().map(|group| group.0 * of_group(gain, *group)).sum::<f64>();
    let gain = root(1e-9, 1e9, &|gain| space(gain) > 1.0 / (1.0 - spare));
    groups.iter().map(|group| group.1 * uniform(of_group(gain, *group))).sum()
}

#[test]
fn the_reference_for_known_rates_is_the_optimal_split() {
    for (spare, optimum) in [(0.03, 5.26), (0.10, 2.20), (0.20, 1.445)] {
        let wa = closed_form(&[(0.1, 0.9), (0.9, 0.1)], spare);
        assert!((wa / optimum - 1.0).abs() < 0.01, "spare {spare}: {wa:.3}, optimum {optimum}");
    }
}

/// Streams of pages by octaves of their known rates, from the coldest page on; the last takes all that are hotter.
#[derive(Clone, Debug)]
struct Rates {
    /// The stream of each page.
    streams: Vec<u16>,
    /// The mean rate of the pages of a stream.
    means: Vec<f64>,
}

impl Rates {
    /// In as many streams as the placement `isotherm` may have.
    fn new(rates: &[f64]) -> Self {
        const STREAMS: usize = 16;
        let coldest = rates.iter().fold(f64::INFINITY, |least, rate| rate.min(least));
        let class = |rate: f64| ((rate / coldest).log2() as usize).min(STREAMS - 1);
        let mut sums = vec![(0.0, 0.0); STREAMS];
        for rate in rates {
            let sum = &mut sums[class(*rate)];
            *sum = (sum.0 + rate, sum.1 + 1.0);
        }
        Self {
            streams: rates.iter().map(|rate| class(*rate) as u16).collect(),
            means: sums.into_iter().map(|(sum, pages)| sum / f64::max(pages, 1.0)).collect(),
        }
    }

    fn place(&self, lpns: &[u32], streams: &mut [u16]) {
        for (lpn, stream) in lpns.iter().zip(streams) {
            *stream = self.streams[*lpn as usize];
        }
    }
}

impl ExternalPlacement for Rates {
    fn streams(&self) -> u16 {
        self.means.len() as u16
    }
    fn gc_streams(&self) -> u16 {
        self.streams()
    }
    fn copies_to(&self) -> Option<u16> {
        None
    }
    fn host(&mut self, writes: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        self.place(writes.lpns, streams);
        Ok(())
    }
    fn copies(&mut self, copies: &CopyBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        self.place(copies.lpns, streams);
        Ok(())
    }
}

impl ExternalVictim for Rates {
    /// Minimum declining cost: the most invalid pages, squared, for what is expected to die. A ranking serves a few collections, which
    /// change little in thousands of blocks.
    fn rank(&mut self, closed: &ClosedBlocks, _: u64) -> Result<Vec<u32>, String> {
        let score = |at: usize| {
            let invalid = f64::from(closed.pages_per_block - closed.valid[at]);
            invalid * invalid / (f64::from(closed.valid[at]) * self.means[usize::from(closed.streams[at])])
        };
        const RANKED: usize = 4;
        let mut ranking: Vec<(f64, u32)> = (0..closed.blocks.len()).map(|at| (score(at), closed.blocks[at])).collect();
        let better = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0);
        if ranking.len() > RANKED {
            ranking.select_nth_unstable_by(RANKED, better);
            ranking.truncate(RANKED);
        }
        ranking.sort_by(better);
        Ok(ranking.into_iter().map(|(_, block)| block).collect())
    }
}

/// Write amplification of each drive write where the rates of all pages are known: expected writes in a write of the whole drive, or
/// in any other time; `next` names the page to write.
pub fn simulated(rates: &[f64], spare: &str, drive_writes: u32, next: impl FnMut(u32) -> u32) -> Vec<f64> {
    let pages = rates.len() as u32;
    let rates = Arc::new(Mutex::new(Rates::new(rates)));
    let sets = [
        format!("device.spare={spare}"),
        "placement.name=external".to_owned(),
        "gc.victim=external".to_owned(),
        "wear.leveling=false".to_owned(),
    ];
    let environment = Environment { placement: Some(rates.clone()), victim: Some(rates), ..Environment::default() };
    SteadyRun::in_environment(&sets, environment, pages).drive_writes(drive_writes, next)
}
