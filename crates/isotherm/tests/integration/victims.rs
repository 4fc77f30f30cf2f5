//! Indexed victim policies against a full scan, pick by pick, while a page-mapped FTL runs on them.

use isotherm::address::{BlockId, Geometry, Lpn, Ppn, StreamId};
use isotherm::blocks::AgeBase;
use isotherm::blocks::Streams;
use isotherm::blocks::{BlockState, BlockTable};
use isotherm::cause::Cause;
use isotherm::device::{Observe as _, Replay as _};
use isotherm::ftl::{Ftl, page::PageFtl};
use isotherm::hotness::history::{PageHistory, Wanted};
use isotherm::nand::{Move, array::NandArray};
use isotherm::placement::{HostGc, Single};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm::request::{Op, Request};
use isotherm::ssd::Ssd;
use isotherm::stats::Snapshot;
use isotherm::store::StoreOptions;
use isotherm::victim::{AnyVictim, VICTIMS, VictimContext, VictimPolicy, Written, build_victim};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

const PAGES_PER_BLOCK: u32 = 16;
const BLOCKS: u32 = 300;
const LOGICAL_PAGES: u32 = 4000;

type Score = fn(&BlockTable, BlockId, u64) -> f64;

/// A policy whose every pick must have the best score of all closed blocks.
struct Checked {
    inner: AnyVictim,
    score: Score,
    picks: u64,
}

impl VictimPolicy for Checked {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_close(block, blocks);
    }
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_invalidate(block, blocks);
    }
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_remove(block, blocks);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        let picked = self.inner.pick(blocks, now)?;
        let best = blocks.closed().map(|b| (self.score)(blocks, b, now)).fold(f64::MIN, f64::max);
        let score = (self.score)(blocks, picked, now);
        assert!(score >= best, "pick {}: {picked} scores {score}, the best {best}", self.picks);
        self.picks += 1;
        Some(picked)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.inner.pick_within(blocks, now, streams)
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

fn victim(name: &str) -> AnyVictim {
    let context = VictimContext {
        blocks: BLOCKS,
        pages_per_block: PAGES_PER_BLOCK,
        logical_pages: LOGICAL_PAGES,
        seed: 3,
        ..VictimContext::default()
    };
    build_victim(&name.parse::<PolicyName>().unwrap(), &context).unwrap()
}

fn options(age: AgeBase) -> StoreOptions {
    StoreOptions { floor: 2, age, meta_streams: 0, meta_blocks: 0, wear_threshold: Some(8) }
}

fn overwrite<F: Ftl>(ftl: &mut F, writes: u32, hot_writes: f64, seed: u64)
where
    F::Medium: isotherm::nand::Medium<Content = isotherm::nand::content::Nothing>,
{
    let mut random = Random::new(seed);
    for lpn in 0..LOGICAL_PAGES {
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
    }
    for turn in 0..writes {
        let hot = random.chance(hot_writes);
        let lpn = random.below(if hot { LOGICAL_PAGES / 5 } else { LOGICAL_PAGES }.into()) as u32;
        // Bursts of trims empty whole blocks, so that scores of every kind occur.
        if turn % 5000 == 0 {
            ftl.trim(Lpn(lpn.min(LOGICAL_PAGES - 200)), 200).unwrap();
        }
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
    }
    ftl.check().unwrap();
}

fn picks_are_best(name: &str, age: AgeBase, score: Score) {
    let medium = NandArray::without_bytes(Geometry::simple(BLOCKS, PAGES_PER_BLOCK, 4096), 0, false);
    let checked = Checked { inner: victim(name), score, picks: 0 };
    let mut ftl = PageFtl::new(medium, HostGc, checked, LOGICAL_PAGES, options(age));
    overwrite(&mut ftl, 60_000, 0.8, 11);
    let mut snapshot = Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    assert!(snapshot.collector.collections > 1000, "{} collections test little", snapshot.collector.collections);
}

/// What policies by rates go by, kept apart from them: for every live page a count of writes and the time since when they count.
struct Rates {
    /// Times of all writes of every logical page.
    writes: Vec<Vec<u64>>,
    live: Vec<Option<(u64, u64)>>,
    /// Count and time of a page, from the times of its writes.
    of: RateOf,
}

impl Rates {
    fn new(of: RateOf) -> Self {
        let live = vec![None; (BLOCKS * PAGES_PER_BLOCK) as usize];
        Self { writes: vec![Vec::new(); LOGICAL_PAGES as usize], live, of }
    }

    /// Mean count over mean age of the live pages of `block`.
    fn rate(&self, block: BlockId, now: u64) -> f64 {
        let first = (block.0 * PAGES_PER_BLOCK) as usize;
        let live = self.live[first..first + PAGES_PER_BLOCK as usize].iter().flatten();
        let (count, age) = live.fold((0, 0), |sum, (count, time)| (sum.0 + count, sum.1 + now + 1 - time));
        count as f64 / age.max(1) as f64
    }
}

type RatedScore = fn(&BlockTable, BlockId, u64, &Rates) -> f64;
type RateOf = fn(&[u64]) -> (u64, u64);

/// Traffic of which a share goes to a fifth of the pages.
#[derive(Clone, Copy)]
struct Load {
    writes: u32,
    hot_writes: f64,
    seed: u64,
}

/// At every pick, asks the policy for its choice within streams.
struct Within {
    inner: AnyVictim,
    /// Whether the policy itself is asked, so that what it keeps grows old; or a copy, which looks at the blocks as they are.
    grows_old: bool,
    /// None for a policy that draws its candidates.
    score: Option<RatedScore>,
    rates: Rates,
    picks: Rc<Cell<u32>>,
}

impl Within {
    fn check_choice(&mut self, blocks: &BlockTable, now: u64, streams: Streams) {
        let choice = match self.grows_old {
            true => self.inner.pick_within(blocks, now, streams),
            false => self.inner.clone().pick_within(blocks, now, streams),
        };
        if let Some(block) = choice {
            assert_eq!(blocks.state(block), BlockState::Closed);
            assert!(
                streams.contains(blocks.stream(block)),
                "{block} is of {:?}, not of {streams:?}",
                blocks.stream(block)
            );
        }
        let Some(score) = self.score else {
            return assert_eq!(choice.is_some(), blocks.closed_of(streams).count() > 0);
        };
        let score = |block| score(blocks, block, now, &self.rates);
        let is_full = |block: &BlockId| blocks.valid(*block) == PAGES_PER_BLOCK;
        let best = blocks.closed_of(streams).filter(|b| !is_full(b)).map(score).reduce(f64::max);
        // FIFO may name a full block, which no other is to be compared with.
        let chosen = choice.filter(|b| !is_full(b)).map(score);
        assert!(chosen == best || choice.is_some_and(|b| is_full(&b)), "{streams:?}: {chosen:?}, the best {best:?}");
    }
}

impl VictimPolicy for Within {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_close(block, blocks);
    }
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_invalidate(block, blocks);
    }
    fn watches_pages(&self) -> bool {
        self.inner.watches_pages()
    }
    fn wanted(&self) -> Wanted {
        self.inner.wanted()
    }
    fn on_program(&mut self, at: Ppn, written: Written, history: &mut PageHistory) {
        self.inner.on_program(at, written, history);
        let heat = match written {
            Written::Host(lpn, now) => {
                let writes = &mut self.rates.writes[lpn.0 as usize];
                writes.push(now);
                (self.rates.of)(writes)
            }
            Written::Meta(now) => (self.rates.of)(&[now]),
        };
        self.rates.live[at.0 as usize] = Some(heat);
    }
    fn on_copies(&mut self, moves: &[Move]) {
        self.inner.on_copies(moves);
        for page in moves {
            self.rates.live[page.to.0 as usize] = self.rates.live[page.from.0 as usize].take();
        }
    }
    fn on_page_death(&mut self, at: Ppn) {
        self.inner.on_page_death(at);
        self.rates.live[at.0 as usize] = None;
    }
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_remove(block, blocks);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        for (first, last) in [(0, 0), (1, 1), (0, 1)] {
            self.check_choice(blocks, now, Streams { first: StreamId(first), last: StreamId(last) });
        }
        self.picks.set(self.picks.get() + 1);
        if self.grows_old {
            self.check_choice(blocks, now, Streams::ALL);
            let everywhere = [self.inner.pick(blocks, now), self.inner.pick_within(blocks, now, Streams::ALL)];
            let score = self.score.expect("policies that keep lists have a score");
            // Equals may be decided otherwise.
            let [picked, within] = everywhere.map(|block| block.map(|b| score(blocks, b, now, &self.rates)));
            assert_eq!(picked, within, "{everywhere:?}");
        }
        self.inner.pick(blocks, now)
    }
    fn pick_within(&mut self, _: &BlockTable, _: u64, _: Streams) -> Option<BlockId> {
        unreachable!("this placement lets policies look everywhere")
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

fn fewest_valid(blocks: &BlockTable, block: BlockId, _: u64, _: &Rates) -> f64 {
    -f64::from(blocks.valid(block))
}

fn benefit(blocks: &BlockTable, block: BlockId, now: u64, _: &Rates) -> f64 {
    let utilisation = blocks.utilisation(block);
    if utilisation == 0.0 {
        return f64::INFINITY;
    }
    blocks.age(block, now) as f64 * (1.0 - utilisation) / (2.0 * utilisation)
}

/// Cost-age-times, the larger the better.
fn cat(blocks: &BlockTable, block: BlockId, now: u64, _: &Rates) -> f64 {
    let (utilisation, age) = (blocks.utilisation(block), blocks.age(block, now) as f64 + 1.0);
    -(utilisation / (1.0 - utilisation) / age * (f64::from(blocks.erases(block)) + 1.0))
}

fn cost_hotness(blocks: &BlockTable, block: BlockId, now: u64, rates: &Rates) -> f64 {
    let utilisation = blocks.utilisation(block);
    (1.0 - utilisation) / (2.0 * utilisation * rates.rate(block, now))
}

fn declining_cost(blocks: &BlockTable, block: BlockId, now: u64, rates: &Rates) -> f64 {
    let utilisation = blocks.utilisation(block);
    (1.0 - utilisation) * (1.0 - utilisation) / (utilisation * rates.rate(block, now))
}

/// Writes since the first.
fn since_first(writes: &[u64]) -> (u64, u64) {
    (writes.len() as u64, writes[0])
}

/// Two writes since the last but one.
fn last_two(writes: &[u64]) -> (u64, u64) {
    (2, writes[writes.len().saturating_sub(2)])
}

/// Overwrites a device on a policy whose every choice is checked; returns how many were.
fn check_choices(inner: &str, grows_old: bool, judge: (Option<RatedScore>, RateOf), age: AgeBase, load: Load) -> u32 {
    let medium = NandArray::without_bytes(Geometry::simple(BLOCKS, PAGES_PER_BLOCK, 4096), 0, false);
    let picks = Rc::new(Cell::new(0));
    let (score, rates) = (judge.0, Rates::new(judge.1));
    let within = Within { inner: victim(inner), grows_old, score, rates, picks: Rc::clone(&picks) };
    let mut ftl = PageFtl::new(medium, HostGc, within, LOGICAL_PAGES, options(age));
    overwrite(&mut ftl, load.writes, load.hot_writes, load.seed);
    picks.get()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Lists of the best blocks serve many picks: what they name, long after the scan that made them, is what a scan now would.
    #[test]
    fn listed_choices_are_those_of_a_full_scan(seed: u64, hot_writes in 0.2..0.99, age in 0..3usize) {
        let age = [AgeBase::Closed, AgeBase::LastInvalidation, AgeBase::Sealed][age];
        let load = Load { writes: 12_000, hot_writes, seed };
        let policies: [(&str, RatedScore, RateOf); 5] = [
            ("greedy", fewest_valid, since_first),
            ("cost_benefit", benefit, since_first),
            ("cat", cat, since_first),
            ("cost_hotness", cost_hotness, since_first),
            ("mdc", declining_cost, last_two),
        ];
        for (name, score, rates) in policies {
            let picks = check_choices(name, true, (Some(score), rates), age, load);
            prop_assert!(picks > 300, "{} picks test little", picks);
        }
    }
}

#[test]
fn choices_within_streams_are_the_best_of_them() {
    // The stamp of a sealed block is the time when it closed.
    let oldest: RatedScore = |blocks, block, _, _| -(blocks.stamp(block) as f64);
    let cases: [(&str, Option<RatedScore>, RateOf); 10] = [
        ("greedy", Some(fewest_valid), since_first),
        ("fifo", Some(oldest), since_first),
        ("windowed:window=100%", Some(fewest_valid), since_first),
        ("cost_benefit", Some(benefit), since_first),
        ("cat", Some(cat), since_first),
        ("cost_hotness", Some(cost_hotness), since_first),
        ("mdc", Some(declining_cost), last_two),
        // Its score is what it knows of pages' lifetimes: it is compared with a full scan where that is known.
        ("isotherm", None, last_two),
        ("random", None, since_first),
        ("d_choices", None, since_first),
    ];
    for entry in VICTIMS {
        assert!(cases.iter().any(|case| case.0.starts_with(entry.name)), "{} is not here", entry.name);
    }
    for (name, score, rates) in cases {
        let load = Load { writes: 30_000, hot_writes: 0.8, seed: 11 };
        let picks = check_choices(name, false, (score, rates), AgeBase::Sealed, load);
        assert!(picks > 1000, "{picks} picks test little");
    }
}

#[test]
fn greedy_picks_the_fewest_valid_pages() {
    picks_are_best("greedy", AgeBase::Closed, |blocks, block, _| -f64::from(blocks.valid(block)));
}

#[test]
fn cost_benefit_picks_the_largest_benefit_for_every_base_of_age() {
    for age in [AgeBase::Closed, AgeBase::Youngest, AgeBase::LastInvalidation, AgeBase::Sealed] {
        picks_are_best("cost_benefit", age, |blocks, block, now| {
            let utilisation = blocks.utilisation(block);
            match utilisation {
                0.0 => f64::INFINITY,
                _ => blocks.age(block, now) as f64 * (1.0 - utilisation) / (2.0 * utilisation),
            }
        });
    }
}

/// Checks the stamp of every block that closes full of copies against the stamps of the blocks that the copies came from.
struct Ages {
    inner: AnyVictim,
    age: AgeBase,
    now: u64,
    stamps: Vec<u64>,
    /// For each block that is being filled, the stamps of the blocks that its copies came from.
    sources: Vec<Vec<u64>>,
    checked: u32,
}

impl VictimPolicy for Ages {
    fn watches_pages(&self) -> bool {
        true
    }
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        let (stamp, sources) = (blocks.stamp(block), std::mem::take(&mut self.sources[block.0 as usize]));
        self.stamps[block.0 as usize] = stamp;
        if sources.len() == PAGES_PER_BLOCK as usize {
            let expected = match self.age {
                AgeBase::Closed => sources.iter().sum::<u64>() / u64::from(PAGES_PER_BLOCK),
                AgeBase::Youngest => *sources.iter().max().unwrap(),
                AgeBase::LastInvalidation | AgeBase::Sealed => self.now,
            };
            assert_eq!(stamp, expected, "{:?}, {sources:?}", self.age);
            assert!(sources.iter().all(|source| *source <= self.now), "no block is younger than now");
            self.checked += 1;
        }
        self.inner.on_close(block, blocks);
    }
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_invalidate(block, blocks);
    }
    fn on_program(&mut self, _: Ppn, written: Written, _: &mut PageHistory) {
        if let Written::Host(_, now) = written {
            self.now = now + 1;
        }
    }
    fn on_copies(&mut self, moves: &[Move]) {
        for page in moves {
            let source = self.stamps[(page.from.0 / PAGES_PER_BLOCK) as usize];
            self.sources[(page.to.0 / PAGES_PER_BLOCK) as usize].push(source);
        }
    }
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.stamps[block.0 as usize] = blocks.stamp(block);
        self.inner.on_remove(block, blocks);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        assert!(self.checked > 100 || now < 60_000, "{} blocks of copies test little", self.checked);
        self.inner.pick(blocks, now)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.inner.pick_within(blocks, now, streams)
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

#[test]
fn copies_keep_the_age_of_their_data_unless_blocks_count_from_their_sealing() {
    for age in [AgeBase::Closed, AgeBase::Youngest, AgeBase::LastInvalidation, AgeBase::Sealed] {
        let medium = NandArray::without_bytes(Geometry::simple(BLOCKS, PAGES_PER_BLOCK, 4096), 0, false);
        let ages = Ages {
            inner: victim("cost_benefit"),
            age,
            now: 0,
            stamps: vec![0; BLOCKS as usize],
            sources: vec![Vec::new(); BLOCKS as usize],
            checked: 0,
        };
        let mut ftl = PageFtl::new(medium, HostGc, ages, LOGICAL_PAGES, options(age));
        overwrite(&mut ftl, 60_000, 0.8, 11);
    }
}

#[test]
fn a_window_of_one_is_fifo_and_a_window_of_all_is_greedy() {
    let counters = |name: &str| {
        let medium = NandArray::without_bytes(Geometry::simple(BLOCKS, PAGES_PER_BLOCK, 4096), 0, false);
        let mut ftl = PageFtl::new(medium, Single, victim(name), LOGICAL_PAGES, options(AgeBase::Closed));
        overwrite(&mut ftl, 30_000, 0.8, 11);
        let mut snapshot = Snapshot::default();
        ftl.fill_snapshot(&mut snapshot);
        snapshot
    };
    let (fifo, one) = (counters("fifo"), counters("windowed:window=0"));
    assert_eq!(fifo.collector, one.collector);
    // Ties are broken in another order, so that counters agree closely and not exactly.
    let (greedy, all) = (counters("greedy"), counters("windowed:window=100%"));
    let ratio = greedy.collector.victim_invalid_pages as f64
        / greedy.collector.victim_pages as f64
        / (all.collector.victim_invalid_pages as f64 / all.collector.victim_pages as f64);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    assert!(fifo.collector.collections > greedy.collector.collections, "FIFO cleans more than greedy");
}

#[test]
fn every_policy_states_its_memory_and_refuses_unknown_parameters() {
    let context = VictimContext {
        blocks: BLOCKS,
        pages_per_block: PAGES_PER_BLOCK,
        logical_pages: LOGICAL_PAGES,
        seed: 3,
        ..VictimContext::default()
    };
    for entry in VICTIMS {
        let wrong = format!("{}:no_such_key=1", entry.name).parse().unwrap();
        let error = build_victim(&wrong, &context).unwrap_err();
        assert!(error.to_string().contains("no_such_key"), "{error}");
        assert_eq!(entry.memory == "none", victim(entry.name).memory_bytes() == 0, "{}", entry.name);
    }
}

isotherm::counters! {
    /// What a policy under test counts.
    #[derive(Copy)]
    pub struct PickCounters: PickResults in "picks" {
        /// Blocks that were picked.
        picks: u64,
    }
}

/// First in, first out, and counts its picks.
struct Counting {
    inner: AnyVictim,
    counters: PickCounters,
}

impl VictimPolicy for Counting {
    fn on_close(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_close(block, blocks);
    }
    fn on_invalidate(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_invalidate(block, blocks);
    }
    fn on_remove(&mut self, block: BlockId, blocks: &BlockTable) {
        self.inner.on_remove(block, blocks);
    }
    fn pick(&mut self, blocks: &BlockTable, now: u64) -> Option<BlockId> {
        self.counters.picks += 1;
        self.inner.pick(blocks, now)
    }
    fn pick_within(&mut self, blocks: &BlockTable, now: u64, streams: Streams) -> Option<BlockId> {
        self.inner.pick_within(blocks, now, streams)
    }
    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.sections.put(self.counters);
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}

#[test]
fn what_a_victim_policy_counts_stands_in_the_snapshot_of_its_device() {
    let array = NandArray::without_bytes(Geometry::simple(20, 8, 4096), 0, false);
    let options =
        StoreOptions { floor: 1, age: AgeBase::Closed, meta_streams: 0, meta_blocks: 0, wear_threshold: None };
    let context =
        VictimContext { blocks: 20, pages_per_block: 8, logical_pages: 100, seed: 1, ..VictimContext::default() };
    let inner = build_victim(&PolicyName::plain("fifo"), &context).unwrap();
    let policy = Counting { inner, counters: PickCounters::default() };
    let mut device = Ssd::new(PageFtl::new(array, Single, policy, 100, options), false);
    let write = |page: u64| Request {
        arrival_ns: 0,
        offset: page * 4096,
        length: 4096,
        op: Op::Write,
        source: 0,
        durable: false,
    };
    device.submit(&(0..3000).map(|i| write(i * 37 % 100)).collect::<Vec<_>>()).unwrap();
    let snapshot = device.snapshot();
    let picks = snapshot.sections.get::<PickCounters>().expect("the policy puts its counters into the snapshot").picks;
    assert!(picks > 0);
    assert_eq!(picks, snapshot.collector.collections);
}
