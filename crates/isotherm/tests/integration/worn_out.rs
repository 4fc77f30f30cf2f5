//! A device that wears out stops in the middle of an operation. It is read-only then: its books still balance, and every
//! page reads back, also once it has lost its power and was rebuilt.

use crate::support::{PAGE_BYTES, Versions};
use isotherm::address::{BlockId, Geometry, Lpn};
use isotherm::blocks::AgeBase;
use isotherm::device::DeviceError;
use isotherm::ftl::Ftl;
use isotherm::ftl::dftl::{DemandOptions, Dftl};
use isotherm::ftl::fast::{FastFtl, FastOptions, RESERVE_BLOCKS};
use isotherm::ftl::page::PageFtl;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::content::Bytes;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::payload::HeapBytes;
use isotherm::placement::{AnyPlacement, PlacementContext, build_placement};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm::stats::Snapshot;
use isotherm::store::StoreOptions;
use isotherm::victim::{AnyVictim, VictimContext, build_victim};

const LOGICAL_PAGES: u32 = 128;
const PAGES_PER_BLOCK: u32 = 8;
const ERASES: u32 = 12;
const SEEDS: u64 = 200;

type TestMedium = Faulty<NandArray<HeapBytes>>;

/// A device of `blocks` that endure few erases, with programs failing now and then.
fn medium(blocks: u32, seed: u64) -> TestMedium {
    let geometry = Geometry::simple(blocks, PAGES_PER_BLOCK, PAGE_BYTES);
    let faults = FaultPlan { program_failures: 0.001, seed, ..FaultPlan::default() };
    Faulty::new(NandArray::with_bytes(geometry, ERASES), faults)
}

fn policies(blocks: u32, placement: &str, victim: &str) -> (AnyPlacement, AnyVictim) {
    let (logical_pages, pages_per_block) = (LOGICAL_PAGES, PAGES_PER_BLOCK);
    let context = PlacementContext {
        logical_pages,
        pages_per_block,
        page_bytes: PAGE_BYTES,
        blocks,
        seed: 5,
        future: None,
        external: None,
    };
    let placement = build_placement(&placement.parse::<PolicyName>().unwrap(), &context).unwrap();
    let context = VictimContext { blocks, pages_per_block, logical_pages, seed: 5, ..VictimContext::default() };
    (placement, build_victim(&PolicyName::plain(victim), &context).unwrap())
}

fn log_options(floor: u32, meta_streams: u16, meta_blocks: u32) -> StoreOptions {
    StoreOptions { floor, age: AgeBase::Closed, meta_streams, meta_blocks, wear_threshold: Some(4) }
}

/// Writes and trims until the device is worn out; then checks its laws, and reads every page, before and after a loss of power.
fn wear_out<F: Ftl<Medium = TestMedium>>(
    name: &str,
    mut ftl: F,
    seed: u64,
    recover: impl Fn(TestMedium) -> Result<F, DeviceError>,
) {
    let mut random = Random::new(seed);
    let mut held: Vec<Option<u32>> = vec![None; LOGICAL_PAGES as usize];
    // Trims are durable after the next flush, and until then may be undone.
    let mut is_trimmed = vec![false; LOGICAL_PAGES as usize];
    let mut version = 0;
    let (at, error) = loop {
        version += 1;
        let lpn = random.below(u64::from(LOGICAL_PAGES) >> (version % 2 * 3)) as u32;
        let outcome = match random.below(20) {
            0 => ftl.trim(Lpn(lpn), 1).map(|()| (held[lpn as usize], is_trimmed[lpn as usize]) = (None, true)),
            1 => ftl.flush().map(|()| is_trimmed.fill(false)),
            _ => <Bytes as Versions>::write(&mut ftl, lpn, version)
                .map(|()| (held[lpn as usize], is_trimmed[lpn as usize]) = (Some(version), false)),
        };
        if let Err(error) = outcome {
            break (lpn, error);
        }
    };
    assert!(matches!(error, DeviceError::WornOut { .. }), "{name}, seed {seed}: {error}");
    assert!(ftl.wear().max >= ERASES, "{name}, seed {seed}");
    let is_whole = |ftl: &mut F, when: &str, lpns: &[u32]| {
        ftl.check().unwrap_or_else(|law| panic!("{name}, seed {seed}, {when}, after {version} requests: {law}"));
        for lpn in lpns.iter().filter(|lpn| **lpn != at) {
            let held = held[*lpn as usize];
            let found = <Bytes as Versions>::read(ftl, *lpn, held);
            assert_eq!(found, held, "{name}, seed {seed}, {when}: LPN {lpn}");
        }
    };
    let every: Vec<u32> = (0..LOGICAL_PAGES).collect();
    is_whole(&mut ftl, "worn out", &every);
    assert!(ftl.medium().counters().erases.total() > 0);
    let mut ftl = recover(ftl.into_medium()).unwrap_or_else(|error| panic!("{name}, seed {seed}, rebuilt: {error}"));
    let durable: Vec<u32> = every.into_iter().filter(|lpn| !is_trimmed[*lpn as usize]).collect();
    is_whole(&mut ftl, "rebuilt", &durable);
    let mut snapshot = Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    let medium = ftl.medium();
    let bad = (0..medium.geometry().blocks).filter(|block| medium.is_bad(BlockId(*block))).count();
    // To rebuild a device may wear out another one.
    assert!(bad > 0 && snapshot.collector.retired_blocks >= bad as u64, "{name}, seed {seed}: {bad} blocks are bad");
}

#[test]
fn the_page_mapped_ftl_stays_whole_and_readable() {
    for seed in 0..SEEDS {
        for (placement, victim) in [
            ("single", "greedy"),
            ("host_gc", "cost_benefit"),
            ("dac", "mdc"),
            // These keep count of the blocks of each stream.
            ("multilog:logs=4", "greedy"),
            ("midas:groups=3,epoch=0.5,sample=1", "greedy"),
        ] {
            let log = log_options(3, 0, 0);
            let (p, v) = policies(40, placement, victim);
            wear_out(placement, PageFtl::new(medium(40, seed), p, v, LOGICAL_PAGES, log), seed, |medium| {
                let (p, v) = policies(40, placement, victim);
                PageFtl::recover(medium, p, v, LOGICAL_PAGES, log)
            });
        }
    }
}

#[test]
fn dftl_stays_whole_and_readable() {
    for seed in 0..SEEDS {
        let options = DemandOptions { cache_bytes: 400, translation_entry_bytes: 32, ..DemandOptions::default() };
        let area = options.translation_blocks(LOGICAL_PAGES, PAGE_BYTES, PAGES_PER_BLOCK);
        let blocks = 40 + area;
        let (p, v) = policies(blocks, "host_gc", "greedy");
        let log = log_options(2 + DemandOptions::RESERVE_BLOCKS, 1, area);
        let ftl = Dftl::new(medium(blocks, seed), p, v, LOGICAL_PAGES, log, options, ()).unwrap();
        wear_out("dftl", ftl, seed, |medium| {
            let (p, v) = policies(blocks, "host_gc", "greedy");
            Dftl::recover(medium, p, v, LOGICAL_PAGES, log, options, ())
        });
    }
}

#[test]
fn fast_stays_whole_and_readable() {
    for seed in 0..SEEDS {
        let options = FastOptions {
            log_blocks: 4,
            reserve: RESERVE_BLOCKS + 6,
            in_place_first_write: true,
            wear_threshold: Some(4),
        };
        let blocks = LOGICAL_PAGES / PAGES_PER_BLOCK + 1 + options.log_blocks + options.reserve;
        wear_out("fast", FastFtl::new(medium(blocks, seed), LOGICAL_PAGES, options, ()), seed, |medium| {
            FastFtl::recover(medium, LOGICAL_PAGES, options, ())
        });
    }
}
