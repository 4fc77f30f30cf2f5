//! The device against an array: random writes, reads, trims, flushes, cache sizes and losses of power, in byte mode, for
//! every switch. Translation pages carry real entries here, and every read of one checks it against the map.

use super::*;
use crate::address::Geometry;
use crate::blocks::AgeBase;
use crate::ftl::dftl::cmt::Replacement;
use crate::nand::array::NandArray;
use crate::nand::fault::{FaultPlan, Faulty};
use crate::nand::payload::HeapBytes;
use crate::placement::{AnyPlacement, Future, PLACEMENTS, PlacementContext, build_placement};
use crate::victim::{AnyVictim, VICTIMS, VictimContext, build_victim};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const LOGICAL_PAGES: u32 = 120;
const PAGES_PER_BLOCK: u32 = 8;
const PAGE_BYTES: u32 = 64;
/// Blocks beyond those that data, translation pages, open blocks and the floor fill.
const SPARE_BLOCKS: u32 = 5;

type TestMedium = Faulty<NandArray<HeapBytes>>;
type TestFtl = Dftl<TestMedium, AnyPlacement, AnyVictim>;

#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Read(u32),
    Trim(u32, u32),
    Flush,
    CacheBytes(u64),
    /// Power is lost after so many operations of the medium, and again so many into the recovery.
    Cut(u64, u64),
}

/// What a device is made of.
#[derive(Clone, Debug)]
struct Setup {
    options: DemandOptions,
    placement: &'static str,
    victim: &'static str,
    torn: bool,
}

impl Setup {
    fn store_options(&self, placement: &AnyPlacement) -> StoreOptions {
        let meta_blocks = self.options.translation_blocks(LOGICAL_PAGES, PAGE_BYTES, PAGES_PER_BLOCK);
        let floor = u32::from(placement.gc_streams()) + DemandOptions::RESERVE_BLOCKS;
        StoreOptions { floor, age: AgeBase::Closed, meta_streams: 1, meta_blocks, wear_threshold: Some(50) }
    }

    /// Blocks of the device: the more streams hold one open, the more.
    fn blocks(&self, placement: &AnyPlacement) -> u32 {
        let store = self.store_options(placement);
        LOGICAL_PAGES / PAGES_PER_BLOCK
            + store.meta_blocks
            + store.floor
            + u32::from(placement.streams())
            + SPARE_BLOCKS
    }

    fn policies(&self) -> (AnyPlacement, AnyVictim) {
        let context = PlacementContext {
            logical_pages: LOGICAL_PAGES,
            pages_per_block: PAGES_PER_BLOCK,
            page_bytes: PAGE_BYTES,
            blocks: LOGICAL_PAGES / PAGES_PER_BLOCK + SPARE_BLOCKS,
            seed: 1,
            future: Some(Arc::new(Future { deaths: (0..1000).map(|i| i + 1 + i % 90).collect() })),
            external: None,
        };
        let placement = build_placement(&self.placement.parse().unwrap(), &context).unwrap();
        let victims = VictimContext {
            blocks: self.blocks(&placement),
            pages_per_block: PAGES_PER_BLOCK,
            logical_pages: LOGICAL_PAGES,
            seed: 1,
            external: None,
        };
        (placement, build_victim(&self.victim.parse().unwrap(), &victims).unwrap())
    }

    fn format(&self) -> TestFtl {
        let (placement, victim) = self.policies();
        let store_options = self.store_options(&placement);
        let geometry = Geometry::simple(self.blocks(&placement), PAGES_PER_BLOCK, PAGE_BYTES);
        let plan = FaultPlan { torn: self.torn, ..FaultPlan::default() };
        let medium = Faulty::new(NandArray::with_bytes(geometry, 0), plan);
        Dftl::new(medium, placement, victim, LOGICAL_PAGES, store_options, self.options, ()).unwrap()
    }

    /// The device after a loss of power, and another one `cut` operations into its repair.
    fn recover(&self, medium: TestMedium, cut: u64) -> TestFtl {
        let reassemble = |mut medium: TestMedium| {
            medium.lose_power_after(u64::MAX);
            let (placement, victim) = self.policies();
            let store_options = self.store_options(&placement);
            Dftl::reassemble(medium, placement, victim, LOGICAL_PAGES, store_options, self.options, ()).unwrap()
        };
        let mut ftl: TestFtl = reassemble(medium);
        ftl.arm(cut);
        if ftl.update_translation_pages() == Err(DeviceError::PowerLost) {
            ftl = reassemble(ftl.into_medium());
            ftl.update_translation_pages().unwrap();
        }
        ftl.arm(u64::MAX);
        ftl
    }
}

/// What the device must hold: for every page its newest tag, and the tag that a trim not yet flushed may bring back.
#[derive(Default)]
struct Model {
    tags: BTreeMap<u32, u64>,
    unflushed: BTreeMap<u32, u64>,
    next: u64,
}

fn content(lpn: u32, tag: u64) -> Vec<u8> {
    (u64::from(lpn) << 32 ^ tag).to_le_bytes().repeat(PAGE_BYTES as usize / 8)
}

/// The tag that the device returns for a page.
fn tag(ftl: &mut TestFtl, lpn: u32) -> Option<u64> {
    let mut page = vec![0; PAGE_BYTES as usize];
    let mapped = ftl.read(Lpn(lpn), &mut page, Cause::Host).unwrap();
    let tag = u64::from_le_bytes(page[..8].try_into().unwrap()) ^ u64::from(lpn) << 32;
    assert!(!mapped || page == content(lpn, tag), "LPN {lpn} returns a torn page");
    mapped.then_some(tag)
}

impl Model {
    /// Carries a step out on both sides. After a loss of power, `allowed` tells what each page may hold.
    fn step(&mut self, ftl: &mut TestFtl, step: &Step) -> Result<(), DeviceError> {
        match *step {
            Step::Write(lpn) => {
                self.next += 1;
                let result = ftl.write(Lpn(lpn), &content(lpn, self.next), Cause::Host);
                if result.is_ok() {
                    self.tags.insert(lpn, self.next);
                    self.unflushed.remove(&lpn);
                }
                result
            }
            Step::Read(lpn) => {
                let mut page = vec![0; PAGE_BYTES as usize];
                let mapped = ftl.read(Lpn(lpn), &mut page, Cause::Host)?;
                assert_eq!(mapped, self.tags.contains_key(&lpn), "LPN {lpn}");
                if let Some(tag) = self.tags.get(&lpn) {
                    assert_eq!(page, content(lpn, *tag), "LPN {lpn}");
                }
                Ok(())
            }
            Step::Trim(lpn, pages) => {
                let end = (lpn + pages).min(LOGICAL_PAGES);
                for lpn in lpn..end {
                    if let Some(tag) = self.tags.remove(&lpn) {
                        self.unflushed.insert(lpn, tag);
                    }
                }
                ftl.trim(Lpn(lpn), end - lpn)
            }
            Step::Flush => {
                ftl.flush()?;
                self.unflushed.clear();
                Ok(())
            }
            Step::CacheBytes(bytes) => ftl.set_cache_bytes(bytes),
            Step::Cut(..) => Ok(()),
        }
    }

    /// Compares every page after a recovery; `torn` is the write that was cut. What is found becomes the truth.
    fn compare(&mut self, ftl: &mut TestFtl, cut_write: Option<u32>) {
        for lpn in 0..LOGICAL_PAGES {
            let found = tag(ftl, lpn);
            let newest = self.tags.get(&lpn).copied();
            let resurrected = found.is_some() && newest.is_none() && found == self.unflushed.get(&lpn).copied();
            let finished = cut_write == Some(lpn) && found == Some(self.next);
            assert!(found == newest || resurrected || finished, "LPN {lpn} holds {found:?}, expected {newest:?}");
            match found {
                Some(tag) => self.tags.insert(lpn, tag),
                None => self.tags.remove(&lpn),
            };
        }
        self.unflushed.clear();
    }
}

fn run(setup: &Setup, steps: &[Step]) {
    let mut ftl = setup.format();
    let mut model = Model::default();
    for step in steps {
        if let Step::Cut(after, into_recovery) = *step {
            ftl = setup.recover(ftl.into_medium(), into_recovery);
            model.compare(&mut ftl, None);
            ftl.arm(after);
            continue;
        }
        match model.step(&mut ftl, step) {
            Ok(()) => {}
            Err(DeviceError::PowerLost) => {
                let cut_write = if let Step::Write(lpn) = step { Some(*lpn) } else { None };
                ftl = setup.recover(ftl.into_medium(), 3);
                model.compare(&mut ftl, cut_write);
                ftl.check().unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
    ftl.check().unwrap();
    ftl.arm(u64::MAX);
    for lpn in 0..LOGICAL_PAGES {
        assert_eq!(tag(&mut ftl, lpn), model.tags.get(&lpn).copied(), "LPN {lpn}");
    }
}

impl TestFtl {
    /// Lets power be lost after so many operations from now on.
    fn arm(&mut self, operations: u64) {
        self.medium_mut().lose_power_after(operations);
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Half of the writes go to few pages, so that blocks differ and collections pay.
    let lpn = prop_oneof![0..LOGICAL_PAGES, 0..LOGICAL_PAGES / 8];
    let step = prop_oneof![
        60 => lpn.clone().prop_map(Step::Write),
        12 => lpn.clone().prop_map(Step::Read),
        4 => (lpn, 1u32..40).prop_map(|(lpn, pages)| Step::Trim(lpn, pages)),
        2 => Just(Step::Flush),
        2 => (0u64..400).prop_map(Step::CacheBytes),
        1 => (1u64..200, 1u64..20).prop_map(|(after, recovery)| Step::Cut(after, recovery)),
    ];
    prop::collection::vec(step, 1..900)
}

fn setups() -> impl Strategy<Value = Setup> {
    let options = (
        prop_oneof![Just(WriteMiss::Dirty), Just(WriteMiss::Fetch)],
        prop_oneof![Just(Writeback::Batch), Just(Writeback::Single)],
        prop_oneof![Just(Replacement::Lru), Just(Replacement::SegmentedLru), Just(Replacement::Arc)],
        prop_oneof![Just(4u32), Just(8)],
        any::<bool>(),
        30u64..1200,
    )
        .prop_map(|(write_miss, writeback, replacement, translation_entry_bytes, reads_before_copies, cache)| {
            DemandOptions {
                cache_bytes: cache,
                cache_bytes_max: 1200,
                write_miss,
                writeback,
                replacement,
                translation_entry_bytes,
                reads_before_copies,
                ..DemandOptions::default()
            }
        });
    // Of ASA besides a sample so small that a device of this size reaches its first clustering early, and of MiDAS epochs so short
    // that its groups have sizes.
    let names = PLACEMENTS.iter().map(|entry| entry.name).chain([
        "epoch:length=0.3",
        "asa:samples=20",
        "midas:epoch=0.5,sample=1",
        "streams:count=3,gc=apart",
        "ranges:hot=0-10%@2+20%-30%@1+50%-60%@2",
    ]);
    let placement = prop::sample::select(names.collect::<Vec<_>>());
    let victim = prop::sample::select(VICTIMS.iter().map(|entry| entry.name).collect::<Vec<_>>());
    (options, placement, victim, any::<bool>()).prop_map(|(options, placement, victim, torn)| Setup {
        options,
        placement,
        victim,
        torn,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn it_behaves_as_an_array_under_every_switch(setup in setups(), steps in steps()) {
        run(&setup, &steps);
    }
}

/// Bytes of DRAM for `entries` cached entries of plain LRU.
fn dram(entries: u64) -> u64 {
    let options = DemandOptions::default();
    options.fixed_bytes(LOGICAL_PAGES, PAGE_BYTES) + entries * u64::from(options.cached_bytes())
}

fn plain(options: DemandOptions) -> TestFtl {
    Setup { options, placement: "single", victim: "greedy", torn: false }.format()
}

#[test]
fn an_eviction_in_batch_writes_all_dirty_entries_of_the_page_and_single_writes_one() {
    for (writeback, writes, entries) in [(Writeback::Batch, 1, 4), (Writeback::Single, 4, 4)] {
        let mut ftl = plain(DemandOptions { cache_bytes: dram(4), writeback, ..DemandOptions::default() });
        // Four dirty entries of one translation page (16 entries), then four of another.
        for lpn in [0, 1, 2, 3, 16, 17, 18, 19] {
            ftl.write(Lpn(lpn), &content(lpn, 1), Cause::Host).unwrap();
        }
        let counters = ftl.counters();
        assert_eq!((counters.hits, counters.misses), (0, 8));
        assert_eq!((counters.writebacks, counters.entries_written_back), (writes, entries));
        assert_eq!(counters.writeback_reads, writes);
        ftl.check().unwrap();
    }
}

#[test]
fn a_translation_page_that_is_cached_whole_is_written_without_a_read() {
    let mut ftl = plain(DemandOptions { cache_bytes: dram(16), ..DemandOptions::default() });
    for lpn in 0..17 {
        ftl.write(Lpn(lpn), &content(lpn, 1), Cause::Host).unwrap();
    }
    assert_eq!((ftl.counters().writebacks, ftl.counters().writeback_reads), (1, 0));
}

#[test]
fn a_write_miss_reads_only_where_it_fetches() {
    for (write_miss, fetches) in [(WriteMiss::Dirty, 0), (WriteMiss::Fetch, 3)] {
        let mut ftl = plain(DemandOptions { cache_bytes: dram(8), write_miss, ..DemandOptions::default() });
        for lpn in [1, 2, 3] {
            ftl.write(Lpn(lpn), &content(lpn, 1), Cause::Host).unwrap();
        }
        assert_eq!(ftl.counters().fetches, fetches);
        assert_eq!(tag(&mut ftl, 40), None);
        assert_eq!(ftl.counters().fetches, fetches + 1, "a read miss always reads");
    }
}

#[test]
fn collections_leave_cached_entries_dirty_and_update_the_others_in_batches() {
    let mut ftl = plain(DemandOptions { cache_bytes: dram(8), ..DemandOptions::default() });
    let mut random = crate::random::Random::new(2);
    for tag in 0..3000 {
        let lpn = random.below(LOGICAL_PAGES.into()) as u32;
        ftl.write(Lpn(lpn), &content(lpn, tag), Cause::Host).unwrap();
    }
    let (counters, medium) = (*ftl.counters(), *ftl.medium().counters());
    assert!(counters.updates > 0 && counters.updates == counters.update_reads);
    // Pages moved together share translation pages of 16 entries, so that batches are smaller than copies.
    assert!(counters.updates < medium.copies[Cause::Gc]);
    assert_eq!(medium.reads[Cause::Translation], counters.translation_reads());
    assert_eq!(medium.programs[Cause::Translation], counters.translation_programs());
    ftl.check().unwrap();
}
