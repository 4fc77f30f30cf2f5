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
//! size, at least three, of pages with a recency; pages are sampled without replacement, or all where there are no more pages
//! than samples. Recency is counted modulo 2^32.
//!
//! Uniform traffic has one write in two in another cluster than before, and so is clustered every 1000 writes, in which few
//! pages change their recency. A clustering therefore draws anew only a part of its sample, a 256th for every 1000 writes since the
//! last one, so that sampled pages are others after 256 looks; and the recency of the sampled pages is kept in a histogram, which
//! their writes keep up to date. The drive would read them all, and is charged for that. O(1) a write beside clusterings,
//! which take O(pages drawn anew).

mod counters;
mod sample;

pub use counters::{AsaCounters, AsaResults};

use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement};
use crate::address::{Lpn, StreamId};
use crate::bits::Bits;
use crate::cause::Cause;
use crate::hotness::kmeans::{Histogram, Init, Spacing, centroids, cost};
use crate::memory;
use crate::random::Random;
use crate::registry::{Entry, Kind, Parameter, Parameters, parse_integer};
use crate::stats::Snapshot;
use sample::Sample;

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

    /// How intervals of what is clustered are spaced: relative to the recency in both cases.
    fn spacing(&self) -> Spacing {
        if self.logarithmic { Spacing::Even } else { Spacing::Relative }
    }

    /// What is clustered of a recency.
    #[inline(always)]
    fn scaled(&self, irr: u32) -> u32 {
        if self.logarithmic { (libm::log(f64::from(irr)) * STEPS_PER_UNIT) as u32 } else { irr }
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

/// Looks after which the whole sample is another one.
const LOOKS_A_SAMPLE: u64 = 256;

/// Pages are drawn so many at a time, and their recency is prefetched while those before them are exchanged: they lie anywhere in a table
/// larger than the processor's caches.
const DRAWN_AT_ONCE: usize = 8;

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
    sample: Sample,
    /// What is clustered: the recency of the sampled pages that have one.
    sampled: Histogram,
    /// A clustering has read the sample, which nobody was charged for yet.
    has_read_sample: bool,
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
            sample: Sample::new(options.samples, logical_pages),
            sampled: Histogram::new(options.spacing()),
            has_read_sample: false,
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

    /// Draws a part of the sample anew, after so many writes since the last time; all of it at first.
    fn draw(&mut self, writes: u64) {
        if self.sample.lpns().is_empty() {
            self.sample.draw(&mut self.random);
            for lpn in self.sample.lpns() {
                count(&mut self.sampled, &self.options, self.pages[lpn.0 as usize].irr);
            }
            return;
        }
        let (size, pages) = (u64::from(self.sample.size()), self.pages.len() as u64);
        if size == pages {
            return;
        }
        let mut left = (writes / u64::from(CHECK_INTERVAL) * size).div_ceil(LOOKS_A_SAMPLE).min(size) as usize;
        let mut coming = self.foresee(0, left);
        while left > 0 {
            let count = left.min(DRAWN_AT_ONCE);
            left -= count;
            let next = self.foresee(count, left);
            let drawn = std::mem::replace(&mut coming, next);
            for came in &drawn[..count] {
                if let Some(gone) = self.sample.exchange(*came) {
                    let [gone, came] = [gone, *came].map(|lpn| self.pages[lpn.0 as usize].irr);
                    self.recount(gone, came);
                }
            }
        }
    }

    /// Draws the next pages, at most `most`, and prefetches what exchanging them needs, `ahead` exchanges from now.
    #[inline(always)]
    fn foresee(&mut self, ahead: usize, most: usize) -> [Lpn; DRAWN_AT_ONCE] {
        let mut drawn = [Lpn(0); DRAWN_AT_ONCE];
        for (index, drawn) in drawn[..most.min(DRAWN_AT_ONCE)].iter_mut().enumerate() {
            *drawn = Lpn(self.random.below(self.pages.len() as u64) as u32);
            memory::prefetch(&self.pages, drawn.0 as usize);
            memory::prefetch(&self.pages, self.sample.leaving(ahead + index).0 as usize);
        }
        drawn
    }

    /// A sampled recency becomes another.
    #[inline(always)]
    fn recount(&mut self, old: u32, new: u32) {
        if old != INFINITE {
            self.sampled.remove(self.options.scaled(old));
        }
        count(&mut self.sampled, &self.options, new);
    }

    /// A sampled page was written.
    #[inline(never)]
    fn rewrite_sampled(&mut self, old: u32, new: u32) {
        self.recount(old, new);
    }

    fn cluster(&mut self, now: u64) {
        self.draw(now - self.clustered_at);
        self.clustered_at = now;
        self.has_read_sample = true;
        self.counters.samples += u64::from(self.sample.size());
        if self.sampled.count() == 0 {
            return;
        }
        self.counters.clusterings += 1;
        self.starts_hot = 0;
        let centroids = match self.options.init {
            Init::Sorted => self.sampled.centroids(CLUSTERS),
            Init::Exact => self.centroids_of(self.sample.lpns().iter().copied()).1,
        };
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
    /// What is clustered of those of `lpns` that have a recency, and its centroids.
    fn centroids_of(&self, lpns: impl Iterator<Item = Lpn>) -> (Vec<u32>, Vec<f64>) {
        let known = lpns.map(|lpn| self.pages[lpn.0 as usize].irr).filter(|irr| *irr != INFINITE);
        let values: Vec<u32> = known.map(|irr| self.options.scaled(irr)).collect();
        let centroids = centroids(&values, CLUSTERS, self.options.init, self.options.spacing());
        (values, centroids)
    }

    /// Adds how much more the centroids of a sample cost over all pages than those that all pages would have given.
    fn audit(&mut self, of_sample: &[f64]) {
        let (values, of_all) = self.centroids_of((0..self.pages.len() as u32).map(Lpn));
        let least = cost(&values, &of_all);
        if least > 0.0 {
            self.counters.audited_clusterings += 1;
            self.counters.excess_cost_sum += cost(&values, of_sample) / least - 1.0;
        }
    }
}

/// Counts a sampled recency, if it is one.
#[inline(always)]
fn count(sampled: &mut Histogram, options: &AsaOptions, irr: u32) {
    if irr != INFINITE {
        sampled.add(options.scaled(irr));
    }
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
    fn learns_for(&self) -> u32 {
        16
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
        if self.sample.contains(write.lpn) {
            self.rewrite_sampled(page.irr, irr);
        }
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
    fn metadata_reads(&self) -> Option<&Bits> {
        self.has_read_sample.then(|| self.sample.set())
    }
    fn forget_metadata_reads(&mut self) {
        self.has_read_sample = false;
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
        self.pages.len() as u64 * 8 + self.sample.bytes() + self.sampled.bytes()
    }
}

#[cfg(test)]
mod tests;
