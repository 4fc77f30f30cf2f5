//! Indexed victim policies against a full scan, pick by pick, while a page-mapped FTL runs on them.

use isotherm::address::{BlockId, Geometry, Lpn, Ppn};
use isotherm::cause::Cause;
use isotherm::ftl::{Ftl, page::PageFtl};
use isotherm::log::{LogOptions, block_table::BlockTable};
use isotherm::nand::{Move, array::NandArray};
use isotherm::placement::{HostGc, Single, Streams};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm::spec::AgeBase;
use isotherm::victim::{AnyVictim, VICTIMS, VictimContext, VictimPolicy, Written, build_victim};

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
    let context =
        VictimContext { blocks: BLOCKS, pages_per_block: PAGES_PER_BLOCK, logical_pages: LOGICAL_PAGES, seed: 3 };
    build_victim(&name.parse::<PolicyName>().unwrap(), &context).unwrap()
}

fn options(age: AgeBase) -> LogOptions {
    LogOptions { floor: 2, age, meta_streams: 0, meta_blocks: 0, wear_threshold: Some(8) }
}

fn overwrite<F: Ftl>(ftl: &mut F, writes: u32)
where
    F::Medium: isotherm::nand::Medium<Store = isotherm::nand::store::NoBytes>,
{
    let mut random = Random::new(11);
    for lpn in 0..LOGICAL_PAGES {
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
    }
    for turn in 0..writes {
        let hot = random.chance(0.8);
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
    overwrite(&mut ftl, 60_000);
    let mut snapshot = isotherm::stats::Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    assert!(snapshot.collector.collections > 1000, "{} collections test little", snapshot.collector.collections);
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
    fn on_program(&mut self, _: Ppn, written: Written) {
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
        overwrite(&mut ftl, 60_000);
    }
}

#[test]
fn a_window_of_one_is_fifo_and_a_window_of_all_is_greedy() {
    let counters = |name: &str| {
        let medium = NandArray::without_bytes(Geometry::simple(BLOCKS, PAGES_PER_BLOCK, 4096), 0, false);
        let mut ftl = PageFtl::new(medium, Single, victim(name), LOGICAL_PAGES, options(AgeBase::Closed));
        overwrite(&mut ftl, 30_000);
        let mut snapshot = isotherm::stats::Snapshot::default();
        ftl.fill_snapshot(&mut snapshot);
        snapshot
    };
    let (fifo, one) = (counters("fifo"), counters("windowed:window=1"));
    assert_eq!(fifo.collector, one.collector);
    // Ties are broken in another order, so that counters agree closely and not exactly.
    let (greedy, all) = (counters("greedy"), counters("windowed:window=1000"));
    let ratio = greedy.collector.victim_invalid_pages as f64
        / greedy.collector.victim_pages as f64
        / (all.collector.victim_invalid_pages as f64 / all.collector.victim_pages as f64);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    assert!(fifo.collector.collections > greedy.collector.collections, "FIFO cleans more than greedy");
}

#[test]
fn every_policy_states_its_memory_and_refuses_unknown_parameters() {
    let context =
        VictimContext { blocks: BLOCKS, pages_per_block: PAGES_PER_BLOCK, logical_pages: LOGICAL_PAGES, seed: 3 };
    for entry in VICTIMS {
        let wrong = format!("{}:no_such_key=1", entry.name).parse().unwrap();
        let error = build_victim(&wrong, &context).unwrap_err();
        assert!(error.to_string().contains("no_such_key"), "{error}");
        assert_eq!(entry.memory == "none", victim(entry.name).memory_bytes() == 0, "{}", entry.name);
    }
}
