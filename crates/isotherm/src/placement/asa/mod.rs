//! ASA: pages clustered by the recency of their rewrites into hot, warm and cold (Xie, Chen & Roth, "ASA-FTL: an adaptive
//! separation aware flash translation layer", sections 3.2 to 3.4).
//!
//! The recency (IRR) of a page is the number of page writes between its last two writes; first writes have none and are
//! cold. Every 1000 writes the share of writes whose recency changed its cluster is looked at; above the threshold, the
//! recency of random pages is sampled and clustered into three by K-means. A host write goes to the cluster whose centroid
//! its new recency is nearest to, a copy by its stored recency.
//!
//! Settled here, since the paper leaves it open: copies never count as writes of a page; writes that had no recency before
//! count in neither term of the ratio; the first clustering runs once a sample may be expected to find a hundredth of its
//! size, at least three, of pages with a recency; samples are drawn with replacement, or every page once where there are no
//! more pages than samples. Recency is counted modulo 2^32. O(1) a write beside clusterings.

mod counters;

pub use counters::{AsaCounters, AsaResults};

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::cause::Cause;
use crate::hotness::kmeans::{Clusterer, Init, cost};
use crate::memory;
use crate::random::Random;
use crate::registry::{Entry, Kind, Parameter, Parameters, parse_integer};
use crate::stats::Snapshot;

/// No end, or a number of host page writes.
const UPDATE_UNTIL: &[Kind] = &[Kind::word(&["always"]), Kind::integer(0..=1_000_000_000_000)];

/// What the placement, and the FTL built on it, take.
pub const PARAMETERS: [Parameter; 11] = [
    Parameter::integer("samples", 3..=1 << 24, "16384").help("pages whose recency is sampled for a clustering"),
    Parameter::choice("init", &["sorted", "exact"], "sorted")
        .help("K-means from runs of equal count, as the paper does, or the exact optimum"),
    Parameter::choice("scale", &["raw", "log"], "raw").help("cluster the recency itself, or its logarithm"),
    Parameter::choice("clock", &["host", "all"], "host")
        .help("recency counts host page writes, or copies by the collector too"),
    Parameter::choice("irr_bits", &["8", "32"], "32")
        .help("recency kept exactly, or as a logarithm with three binary digits"),
    Parameter::real("threshold", 0.0..=1.0, "0.5")
        .help("share of writes in another cluster than before, above which recency is clustered anew"),
    Parameter::choice("miss_window", &["since_clustering", "last_n"], "since_clustering")
        .help("this share is taken over all writes since the last clustering, or over the last 1000"),
    Parameter::integer("min_interval", 0..=1_000_000_000_000, "0")
        .help("host page writes between two clusterings, at least"),
    Parameter::any("update_until", UPDATE_UNTIL, "always").help(
        "host page writes, those of preconditioning included, after which the clusters stay; the first clustering runs in any case",
    ),
    Parameter::share("starts_hot", 0.0..=1.0, "0%").help(
        "until the first clustering this share of the addresses, from their beginning, is hot and the rest warm; 0% calls all cold",
    ),
    Parameter::boolean("audit", "false")
        .help("hold the clusters of each sample against those of all pages; costs the simulator time, not the drive"),
];

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "asa",
    summary: "hot, warm and cold by K-means over the recency of rewrites",
    paper: "Xie, Chen & Roth, ASA-FTL",
    memory: "8 bytes a logical page",
    parameters: &PARAMETERS,
    build: BuildPlacement::online(|parameters, context| {
        let options = AsaOptions::read(parameters);
        Ok(AnyPlacement::Asa(Asa::new(options, context.logical_pages, context.seed, Keeps::InDram)))
    }),
};

/// How recency is clustered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AsaOptions {
    /// Pages sampled for a clustering.
    pub samples: u32,
    init: Init,
    logarithmic: bool,
    counts_copies: bool,
    coded: bool,
    threshold: f64,
    forgets_at_checks: bool,
    min_interval: u64,
    update_until: u64,
    starts_hot: f64,
    audit: bool,
}

impl AsaOptions {
    pub(crate) fn read(parameters: &Parameters<'_>) -> Self {
        Self {
            samples: parameters.integer("samples") as u32,
            init: parameters.choice("init", &[("sorted", Init::Sorted), ("exact", Init::Exact)]),
            logarithmic: parameters.is("scale", "log"),
            counts_copies: parameters.is("clock", "all"),
            coded: parameters.is("irr_bits", "8"),
            threshold: parameters.real("threshold"),
            forgets_at_checks: parameters.is("miss_window", "last_n"),
            min_interval: parameters.integer("min_interval"),
            // Its one word is for ever.
            update_until: parse_integer(parameters.text("update_until")).unwrap_or(u64::MAX),
            starts_hot: parameters.share("starts_hot"),
            audit: parameters.boolean("audit"),
        }
    }
}

/// Where the recency of pages is kept, which decides who is charged for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// In a table in DRAM.
    InDram,
    /// In the translation pages of the FTL.
    InTranslationPages,
}

/// The hottest cluster's stream; the warm and the cold one follow.
const HOT: StreamId = StreamId(0);
const CLUSTERS: usize = 3;

/// Page writes between two looks at the share of misses.
const CHECK_INTERVAL: u32 = 1000;

/// Samples are drawn so many at a time, and their recency is prefetched while that of those before is read: they lie
/// anywhere in a table larger than the processor's caches.
const SAMPLES_AHEAD: usize = 32;

/// Steps of a logarithm of recency that is clustered: that of the largest, 22.2, makes the largest integer that fits.
const STEPS_PER_UNIT: f64 = (1u64 << 27) as f64;

/// No recency: written once.
const INFINITE: u32 = u32::MAX;

/// What is known of a page.
#[derive(Clone, Copy, Debug)]
struct Recency {
    /// Clock at its last write, modulo 2^32.
    last_write: u32,
    /// Page writes between its last two writes.
    irr: u32,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Asa {
    options: AsaOptions,
    keeps: Keeps,
    pages: Vec<Recency>,
    /// Pages with a finite recency.
    finite_pages: u64,
    /// Largest recency that is hot, and that is warm; no recency is as small as 0, so that all is cold before the first
    /// clustering.
    bounds: [u32; CLUSTERS - 1],
    /// Pages from the first that are hot, the others warm, until the first clustering; 0 from then on.
    starts_hot: u32,
    copies: u64,
    until_check: u32,
    /// Writes with a recency before and after, and those that changed their cluster, since the window began.
    judged: u64,
    misses: u64,
    clustered_at: u64,
    random: Random,
    clusterer: Clusterer,
    sampled: Vec<Lpn>,
    counters: AsaCounters,
}

impl Asa {
    /// A placement over `logical_pages` that knows nothing yet.
    pub fn new(options: AsaOptions, logical_pages: u32, seed: u64, keeps: Keeps) -> Self {
        Self {
            options,
            keeps,
            pages: memory::table(logical_pages as usize, Recency { last_write: 0, irr: INFINITE }),
            finite_pages: 0,
            bounds: [0; CLUSTERS - 1],
            starts_hot: (options.starts_hot * f64::from(logical_pages)).round() as u32,
            copies: 0,
            until_check: CHECK_INTERVAL,
            judged: 0,
            misses: 0,
            clustered_at: 0,
            random: Random::new(seed),
            clusterer: Clusterer::default(),
            sampled: Vec::new(),
            counters: AsaCounters::default(),
        }
    }

    /// The stream of a page: its cluster's, or what it starts with.
    #[inline(always)]
    fn stream_of(&self, lpn: Lpn, irr: u32) -> StreamId {
        if self.starts_hot > 0 {
            return StreamId(HOT.0 + u16::from(lpn.0 >= self.starts_hot));
        }
        self.stream(irr)
    }

    /// The cluster of a recency: the one with the nearest centroid.
    #[inline(always)]
    fn stream(&self, irr: u32) -> StreamId {
        // Added up, because a branch on the recency of a page is mispredicted as often as not.
        StreamId(HOT.0 + u16::from(irr > self.bounds[0]) + u16::from(irr > self.bounds[1]))
    }

    /// Whether there are clusters yet.
    fn has_clusters(&self) -> bool {
        self.counters.clusterings > 0
    }

    /// Looks at the misses, and clusters anew if there are too many.
    #[inline(never)]
    fn check(&mut self, now: u64) {
        self.until_check = CHECK_INTERVAL;
        let expected = self.finite_pages as f64 * f64::from(self.options.samples) / self.pages.len() as f64;
        let due = if !self.has_clusters() {
            expected >= (f64::from(self.options.samples) / 100.0).max(CLUSTERS as f64)
        } else {
            now <= self.options.update_until
                && now - self.clustered_at >= self.options.min_interval
                && self.misses as f64 > self.options.threshold * self.judged as f64
        };
        if due {
            self.cluster(now);
        }
        if due || self.options.forgets_at_checks {
            (self.judged, self.misses) = (0, 0);
        }
    }

    /// Draws samples, and gives those that have a recency to the clusterer.
    fn sample(&mut self) {
        let pages = self.pages.len() as u64;
        let all = u64::from(self.options.samples) >= pages;
        self.counters.samples += self.sampled_at_once() as u64;
        self.sampled.resize(self.sampled_at_once(), Lpn(0));
        let mut next = 0;
        // A copy, because it stays in registers.
        let mut random = self.random.clone();
        let mut drawn: &[Lpn] = &[];
        for coming in self.sampled.chunks_mut(SAMPLES_AHEAD) {
            for sample in &mut *coming {
                let lpn = if all { next } else { random.below(pages) as u32 };
                memory::prefetch(&self.pages, lpn as usize);
                *sample = Lpn(lpn);
                next += 1;
            }
            read(drawn, &self.pages, &self.options, &mut self.clusterer);
            drawn = coming;
        }
        read(drawn, &self.pages, &self.options, &mut self.clusterer);
        self.random = random;
    }

    /// Samples that one clustering takes.
    fn sampled_at_once(&self) -> usize {
        (self.options.samples as usize).min(self.pages.len())
    }

    fn cluster(&mut self, now: u64) {
        self.sample();
        self.clustered_at = now;
        if self.clusterer.values().is_empty() {
            return;
        }
        self.counters.clusterings += 1;
        self.starts_hot = 0;
        let centroids = self.clusterer.cluster(CLUSTERS, self.options.init);
        if self.options.audit {
            self.audit(&centroids);
        }
        let scale = |value: f64| if self.options.logarithmic { libm::exp(value / STEPS_PER_UNIT) } else { value };
        let halfway = |i: usize| {
            // Where values are too few for three clusters, the colder ones are empty.
            let pair = centroids.get(i).zip(centroids.get(i + 1));
            pair.map_or(INFINITE - 1, |(low, high)| scale(low + (high - low) / 2.0) as u32)
        };
        self.bounds = [halfway(0), halfway(1)];
        self.counters.centroids = centroids.into_iter().map(scale).collect();
    }
}

impl Asa {
    /// Adds how much more the centroids of a sample cost over all pages than those that all pages would have given.
    fn audit(&mut self, of_sample: &[f64]) {
        let mut all = Clusterer::default();
        let mut drawn = [Lpn(0); SAMPLES_AHEAD];
        for first in (0..self.pages.len()).step_by(SAMPLES_AHEAD) {
            let lpns = first..self.pages.len().min(first + SAMPLES_AHEAD);
            let drawn = &mut drawn[..lpns.len()];
            drawn.iter_mut().zip(lpns).for_each(|(drawn, lpn)| *drawn = Lpn(lpn as u32));
            read(drawn, &self.pages, &self.options, &mut all);
        }
        let values = all.values().to_vec();
        let least = cost(&values, &all.cluster(CLUSTERS, self.options.init));
        if least > 0.0 {
            self.counters.audited_clusterings += 1;
            self.counters.excess_cost_sum += cost(&values, of_sample) / least - 1.0;
        }
    }
}

/// Gives the recency of the sampled pages that have one to the clusterer; at most `SAMPLES_AHEAD`.
#[inline(always)]
fn read(sampled: &[Lpn], pages: &[Recency], options: &AsaOptions, clusterer: &mut Clusterer) {
    let mut values = [0; SAMPLES_AHEAD];
    let mut found = 0;
    for lpn in sampled {
        let irr = pages[lpn.0 as usize].irr;
        values[found] = irr;
        // Added up, because whether a page has a recency may be anyone's guess.
        found += usize::from(irr != INFINITE);
    }
    let values = &mut values[..found];
    if options.logarithmic {
        values.iter_mut().for_each(|value| *value = (libm::log(f64::from(*value)) * STEPS_PER_UNIT) as u32);
    }
    clusterer.add(values);
}

/// A recency as one byte holds it, its exponent and three binary digits: the middle of what the byte may mean.
fn coded(irr: u32) -> u32 {
    let digits = irr.ilog2().saturating_sub(3);
    (irr >> digits << digits) + (1 << digits >> 1)
}

impl Placement for Asa {
    fn streams(&self) -> u16 {
        CLUSTERS as u16
    }
    fn gc_streams(&self) -> u16 {
        CLUSTERS as u16
    }
    #[inline(always)]
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        self.until_check -= 1;
        if self.until_check == 0 {
            self.check(write.now);
        }
        let clock = (write.now + if self.options.counts_copies { self.copies } else { 0 }) as u32;
        let page = self.pages[write.lpn.0 as usize];
        let mut irr = INFINITE;
        if write.rewrite {
            let since = clock.wrapping_sub(page.last_write).clamp(1, INFINITE - 1);
            irr = if self.options.coded { coded(since) } else { since };
        }
        self.pages[write.lpn.0 as usize] = Recency { last_write: clock, irr };
        self.finite_pages += u64::from(irr != INFINITE);
        self.finite_pages -= u64::from(page.irr != INFINITE);
        let stream = self.stream_of(write.lpn, irr);
        if self.has_clusters() && irr != INFINITE && page.irr != INFINITE {
            let missed = u64::from(self.stream(page.irr) != stream);
            self.judged += 1;
            self.misses += missed;
            self.counters.judged_writes += 1;
            self.counters.irr_misses += missed;
        }
        stream
    }
    #[inline(always)]
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        self.copies += 1;
        self.stream_of(copy.lpn, self.pages[copy.lpn.0 as usize].irr)
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        lpns.for_each(|lpn| memory::prefetch(&self.pages, lpn.0 as usize));
    }
    #[inline(always)]
    fn metadata_reads(&self) -> &[Lpn] {
        &self.sampled
    }
    fn forget_metadata_reads(&mut self) {
        self.sampled.clear();
    }
    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        // The map reads what is sampled and not cached; nobody else has samples.
        let sampling_reads = snapshot.medium.reads[Cause::Sampling];
        snapshot.sections.put(AsaCounters { sampling_reads, ..self.counters.clone() });
    }
    fn memory_bytes(&self) -> u64 {
        match self.keeps {
            Keeps::InDram => self.pages.len() as u64 * 8 + u64::from(self.options.samples),
            Keeps::InTranslationPages => 0,
        }
    }
    fn simulator_bytes(&self) -> u64 {
        self.pages.len() as u64 * 8 + u64::from(self.options.samples) * 4
    }
}

#[cfg(test)]
mod tests;
