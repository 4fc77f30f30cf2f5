//! Patterns: which page the next request goes to.

use super::alias::Alias;
use super::counts;
use super::scatter::Scatter;
use super::zipf::Zipf;
use crate::error::TraceError;
use isotherm::random::Random;
use isotherm::registry::{Entry, Parameter, Parameters, SpecError};
use isotherm::request::Op;
use std::ops::Range;

/// What a pattern is built from beside its own parameters.
pub(crate) struct Ground {
    /// Pages asked for; what a pattern takes by itself otherwise is up to it.
    pub(crate) pages: Option<u32>,
    pub(crate) page_bytes: u64,
    pub(crate) seed: u64,
}

impl Ground {
    fn pages(&self) -> u32 {
        self.pages.unwrap_or(PAGES_DEFAULT)
    }
}

/// Pages of a workload that does not say.
pub(crate) const PAGES_DEFAULT: u32 = 1 << 20;

/// Builds a pattern from its checked parameters.
#[derive(Clone, Copy)]
pub struct Build(pub(crate) BuildFunction);

/// A pattern and the pages that it covers.
type BuildFunction = fn(&Parameters<'_>, &Ground) -> Result<(Pattern, u32), TraceError>;

/// One line of [`PATTERNS`].
pub type PatternEntry = Entry<Build>;

const ORDER: Parameter = Parameter::choice("order", &["scattered", "ranked"], "scattered")
    .help("whether popular pages lie scattered over the address space (by the seed) or first, in order of rank");

/// Every pattern there is.
pub const PATTERNS: &[PatternEntry] = &[
    Entry {
        name: "uniform",
        summary: "every page is as likely as any other",
        paper: "fio random_distribution=random",
        memory: "none",
        parameters: &[],
        build: Build(|_, ground| Ok((Pattern::Uniform(Uniform { pages: ground.pages() }), ground.pages()))),
    },
    Entry {
        name: "zipf",
        summary: "page of rank r is drawn in proportion to r^-theta",
        paper: "fio random_distribution=zipf:theta; Gray et al., SIGMOD 1994",
        memory: "up to 64 KiB",
        parameters: &[Parameter::real("theta", 0.0..=10.0, "0.99").help("skew; 0 is uniform"), ORDER],
        build: Build(|parameters, ground| {
            let pages = ground.pages();
            let law = Zipf::new(pages, parameters.real("theta"));
            let place = RankPlace::new(parameters, pages, ground.seed);
            Ok((Pattern::Zipf(Ranked { law, place }), pages))
        }),
    },
    Entry {
        name: "hotcold",
        summary: "a share of the pages receives a share of the requests, each part uniformly",
        paper: "Rosenblum and Ousterhout, TOCS 1992",
        memory: "none",
        parameters: &[
            Parameter::real("hot", 0.0..=1.0, "0.1").help("share of the pages that are hot"),
            Parameter::real("hot_writes", 0.0..=1.0, "0.9").help("share of the requests that go there"),
            ORDER,
        ],
        build: Build(build_hot_cold),
    },
    Entry {
        name: "sequential",
        summary: "one page after the other, round and round; reads, writes and trims each at their own place",
        paper: "fio rw=write",
        memory: "none",
        parameters: &[],
        build: Build(|_, ground| {
            let pages = ground.pages();
            Ok((Pattern::Sequential(Sequential { next: [0; 3], pages }), pages))
        }),
    },
    Entry {
        name: "counts",
        summary: "popularity as counted on a real volume; its touched pages lie densely",
        paper: "MSR Cambridge write counts and the like",
        memory: "8 bytes a page of the file",
        parameters: &[
            Parameter::text("counts", "a file", "").help("rows of address,count (bytes, writes)"),
            Parameter::choice("order", &["ranked", "scattered"], "ranked")
                .help("whether pages keep the order of their addresses or are scattered by the seed"),
        ],
        build: Build(build_counts),
    },
];

fn build_hot_cold(parameters: &Parameters<'_>, ground: &Ground) -> Result<(Pattern, u32), TraceError> {
    let pages = ground.pages();
    let hot_pages = (parameters.real("hot") * f64::from(pages)).round() as u32;
    let hot_share = parameters.real("hot_writes");
    if hot_pages == 0 && hot_share > 0.0 || hot_pages == pages && hot_share < 1.0 {
        let problem =
            format!("hot={} of {pages} pages leaves no page for a part of the requests", parameters.text("hot"));
        return Err(SpecError::new("hotcold", problem, "choose hot between 0 and 1, or more pages").into());
    }
    let place = RankPlace::new(parameters, pages, ground.seed);
    Ok((Pattern::HotCold(HotCold { hot_pages, pages, hot_share, place }), pages))
}

fn build_counts(parameters: &Parameters<'_>, ground: &Ground) -> Result<(Pattern, u32), TraceError> {
    let path = parameters.text("counts");
    if path.is_empty() {
        return Err(SpecError::new("counts", "no file is given", "add counts=FILE").into());
    }
    let law = counts::read(path, ground.page_bytes)?;
    let pages = ground.pages.unwrap_or(law.len());
    if law.len() > pages {
        let problem = format!("{path} names {} pages, more than pages={pages}", law.len());
        return Err(SpecError::new("counts:pages", problem, format!("set pages={} or more", law.len())).into());
    }
    let place = RankPlace::new(parameters, pages, ground.seed);
    Ok((Pattern::Counts(Ranked { law, place }), pages))
}

/// Where the page of a rank lies.
#[derive(Clone)]
pub(crate) enum RankPlace {
    /// Anywhere, by a seeded permutation.
    Scattered { scatter: Scatter, pages: u32, seed: u64 },
    /// In order of rank from a first page on, and round.
    Ranked { first: u32, pages: u32 },
}

impl RankPlace {
    fn new(parameters: &Parameters<'_>, pages: u32, seed: u64) -> Self {
        if parameters.is("order", "scattered") {
            Self::Scattered { scatter: Scatter::new(pages, seed), pages, seed }
        } else {
            Self::Ranked { first: 0, pages }
        }
    }

    #[inline(always)]
    fn page(&self, rank: u32) -> u32 {
        match self {
            Self::Scattered { scatter, .. } => scatter.page(rank),
            Self::Ranked { first, pages } => {
                let page = first + rank;
                if page >= *pages { page - pages } else { page }
            }
        }
    }

    /// Moves popularity elsewhere: another permutation, or half the space on.
    fn shift(&mut self) {
        match self {
            Self::Scattered { scatter, pages, seed } => {
                *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
                *scatter = Scatter::new(*pages, *seed);
            }
            Self::Ranked { first, pages } => *first = (*first + *pages / 2) % *pages,
        }
    }
}

/// Chooses pages. The generator's loop is compiled once for each implementation.
pub(crate) trait Draw {
    /// First page of the next request, which has `pages` pages.
    fn draw(&mut self, op: Op, pages: u32, random: &mut Random) -> u32;
}

/// See [`PATTERNS`].
#[derive(Clone)]
pub(crate) struct Uniform {
    pub(crate) pages: u32,
}

impl Draw for Uniform {
    #[inline(always)]
    fn draw(&mut self, _op: Op, _pages: u32, random: &mut Random) -> u32 {
        random.below(u64::from(self.pages)) as u32
    }
}

/// See [`PATTERNS`].
#[derive(Clone)]
pub(crate) struct Ranked<Law> {
    law: Law,
    place: RankPlace,
}

impl Draw for Ranked<Zipf> {
    #[inline(always)]
    fn draw(&mut self, _op: Op, _pages: u32, random: &mut Random) -> u32 {
        self.place.page(self.law.draw(random))
    }
}

impl Draw for Ranked<Alias> {
    #[inline(always)]
    fn draw(&mut self, _op: Op, _pages: u32, random: &mut Random) -> u32 {
        self.place.page(self.law.draw(random))
    }
}

/// See [`PATTERNS`].
#[derive(Clone)]
pub(crate) struct HotCold {
    hot_pages: u32,
    pages: u32,
    hot_share: f64,
    place: RankPlace,
}

impl Draw for HotCold {
    #[inline(always)]
    fn draw(&mut self, _op: Op, _pages: u32, random: &mut Random) -> u32 {
        let rank = match random.chance(self.hot_share) {
            true => random.below(u64::from(self.hot_pages)) as u32,
            false => self.hot_pages + random.below(u64::from(self.pages - self.hot_pages)) as u32,
        };
        self.place.page(rank)
    }
}

/// See [`PATTERNS`].
#[derive(Clone)]
pub(crate) struct Sequential {
    next: [u32; 3],
    pages: u32,
}

impl Draw for Sequential {
    #[inline(always)]
    fn draw(&mut self, op: Op, pages: u32, _random: &mut Random) -> u32 {
        let cursor = &mut self.next[op as usize];
        // A request never wraps: the one that does not fit begins a new round.
        let page = if *cursor + pages > self.pages { 0 } else { *cursor };
        *cursor = page + pages;
        page
    }
}

/// Patterns with the limit below which a random number chooses each; the last limit is the largest number.
#[derive(Clone)]
pub(crate) struct Mix(pub(crate) Vec<(u64, Pattern)>);

impl Draw for Mix {
    fn draw(&mut self, op: Op, pages: u32, random: &mut Random) -> u32 {
        let choice = random.bits();
        let last = self.0.len() - 1;
        let chosen = self.0.iter().position(|(limit, _)| choice < *limit).unwrap_or(last);
        match &mut self.0[chosen].1 {
            Pattern::Uniform(part) => part.draw(op, pages, random),
            Pattern::Zipf(part) => part.draw(op, pages, random),
            Pattern::HotCold(part) => part.draw(op, pages, random),
            Pattern::Sequential(part) => part.draw(op, pages, random),
            Pattern::Counts(part) => part.draw(op, pages, random),
            Pattern::Mix(part) => part.draw(op, pages, random),
        }
    }
}

/// Pages that are written about equally often: their share of all pages, and that of the writes that go to them.
pub type RateGroup = (f64, f64);

/// How the pages of a group may differ in rank: by a quarter of an octave, which changes the rate of a Zipf law by less than a fifth.
const GROUP_STEP: f64 = 1.189_207_115_002_721;

/// Groups of pages by rank, whose rates lie close together; `weight` is how popular the pages of a range of ranks are.
fn rate_groups(pages: u32, weight: impl Fn(Range<u32>) -> f64) -> Vec<RateGroup> {
    let mut groups: Vec<RateGroup> = Vec::new();
    let mut first = 0;
    while first < pages {
        let end = ((f64::from(first) + 1.0) * GROUP_STEP).floor().min(pages.into()) as u32;
        groups.push((f64::from(end - first) / f64::from(pages), weight(first..end)));
        first = end;
    }
    let sum: f64 = groups.iter().map(|group| group.1).sum();
    groups.iter_mut().for_each(|group| group.1 /= sum);
    groups
}

/// Any pattern.
#[derive(Clone)]
pub(crate) enum Pattern {
    Uniform(Uniform),
    Zipf(Ranked<Zipf>),
    HotCold(HotCold),
    Sequential(Sequential),
    Counts(Ranked<Alias>),
    Mix(Mix),
}

impl Pattern {
    /// The rates of pages, where requests are drawn from them independently.
    pub(crate) fn rates(&self, pages: u32) -> Option<Vec<RateGroup>> {
        match self {
            Self::Uniform(_) => Some(vec![(1.0, 1.0)]),
            Self::Zipf(Ranked { law, .. }) => Some(rate_groups(pages, |ranks| law.weight(ranks))),
            Self::HotCold(HotCold { hot_pages, hot_share, .. }) => {
                let hot = f64::from(*hot_pages) / f64::from(pages);
                Some(vec![(hot, *hot_share), (1.0 - hot, 1.0 - hot_share)])
            }
            Self::Counts(Ranked { law, .. }) => {
                let mut shares = law.shares();
                shares.resize(pages as usize, 0.0);
                shares.sort_by(|a, b| b.total_cmp(a));
                Some(rate_groups(pages, |ranks| shares[ranks.start as usize..ranks.end as usize].iter().sum()))
            }
            Self::Sequential(_) | Self::Mix(_) => None,
        }
    }

    /// Moves popularity elsewhere. Uniform and sequential patterns have none.
    pub(crate) fn shift(&mut self) {
        match self {
            Self::Uniform(_) | Self::Sequential(_) => {}
            Self::Zipf(Ranked { place, .. }) | Self::HotCold(HotCold { place, .. }) => place.shift(),
            Self::Counts(Ranked { place, .. }) => place.shift(),
            Self::Mix(Mix(parts)) => parts.iter_mut().for_each(|(_, part)| part.shift()),
        }
    }
}
