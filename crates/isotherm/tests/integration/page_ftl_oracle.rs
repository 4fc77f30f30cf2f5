//! The page-mapped FTL against the array model, for every placement of the registry under every victim policy.

use crate::support::{Harness, PAGE_BYTES, Step, steps};
use isotherm::address::Geometry;
use isotherm::blocks::AgeBase;
use isotherm::ftl::page::PageFtl;
use isotherm::nand::array::NandArray;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::payload::HeapBytes;
use isotherm::placement::{AnyPlacement, Future, PLACEMENTS, PlacementContext, build_placement};
use isotherm::registry::PolicyName;
use isotherm::store::StoreOptions;
use isotherm::victim::{AnyVictim, VICTIMS, VictimContext, build_victim};
use proptest::prelude::*;
use std::sync::Arc;

const LOGICAL_PAGES: u32 = 128;
const PAGES_PER_BLOCK: u32 = 8;
const BLOCKS: u32 = 40;
/// Beside each placement with its defaults: MiDAS with epochs so short that groups have sizes within these steps, and handles whose
/// copies are kept apart.
const EXTRA: [&str; 3] =
    ["midas:epoch=0.5,sample=1", "streams:count=3,gc=apart", "ranges:hot=0-10%@2+20%-30%@1+50%-60%@2"];

type TestFtl = PageFtl<Faulty<NandArray<HeapBytes>>, AnyPlacement, AnyVictim>;

fn options(age: AgeBase) -> StoreOptions {
    StoreOptions { floor: 3, age, meta_streams: 0, meta_blocks: 0, wear_threshold: Some(4) }
}

fn policies(placement: &str, victim: &str) -> (AnyPlacement, AnyVictim) {
    let context = PlacementContext {
        logical_pages: LOGICAL_PAGES,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: PAGE_BYTES,
        blocks: BLOCKS,
        seed: 5,
        future: Some(Arc::new(Future { deaths: (0..1000).map(|i| i + 1 + i % 90).collect() })),
        external: None,
    };
    let placement = build_placement(&placement.parse::<PolicyName>().unwrap(), &context).unwrap();
    let context = VictimContext {
        blocks: BLOCKS,
        pages_per_block: PAGES_PER_BLOCK,
        logical_pages: LOGICAL_PAGES,
        seed: 5,
        ..VictimContext::default()
    };
    (placement, build_victim(&PolicyName::plain(victim), &context).unwrap())
}

fn check(placement: &'static str, victim: &'static str, age: AgeBase, faults: FaultPlan, steps: &[Step]) {
    let geometry = Geometry::simple(BLOCKS, PAGES_PER_BLOCK, PAGE_BYTES);
    let medium = Faulty::new(NandArray::with_bytes(geometry, 0), faults);
    let (p, v) = policies(placement, victim);
    let ftl: TestFtl = PageFtl::new(medium, p, v, LOGICAL_PAGES, options(age));
    let recover = move |medium| {
        let (p, v) = policies(placement, victim);
        PageFtl::recover(medium, p, v, LOGICAL_PAGES, options(age))
    };
    Harness::new(ftl, recover).run(steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_victim_policy_returns_it_whatever_age_counts_from(steps in steps(LOGICAL_PAGES, 1200), torn: bool) {
        for entry in VICTIMS {
            for age in [AgeBase::Closed, AgeBase::Youngest, AgeBase::LastInvalidation, AgeBase::Sealed] {
                check("host_gc", entry.name, age, FaultPlan { torn, ..FaultPlan::default() }, &steps);
            }
        }
    }

    #[test]
    fn every_placement_under_every_victim_policy_returns_the_last_write(steps in steps(LOGICAL_PAGES, 800), torn: bool) {
        for placement in PLACEMENTS.iter().map(|entry| entry.name).chain(EXTRA) {
            for victim in VICTIMS {
                let faults = FaultPlan { torn, ..FaultPlan::default() };
                check(placement, victim.name, AgeBase::Closed, faults, &steps);
            }
        }
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(steps in steps(LOGICAL_PAGES, 800), seed: u64) {
        let faults = FaultPlan { program_failures: 0.002, erase_failures: 0.01, seed, ..FaultPlan::default() };
        // The last two keep count of the blocks of each stream.
        for placement in ["host_gc", "multilog", "midas:epoch=0.5,sample=1"] {
            check(placement, "greedy", AgeBase::Closed, faults, &steps);
        }
    }
}

#[test]
fn a_trim_repeated_within_a_batch_survives_compaction() {
    // Compaction once kept the earlier of two trims of a page that stood in one tombstone page; data written between the two
    // came back after a loss of power.
    let mut script = vec![Step::Write(0), Step::Trim(0, 1), Step::Write(0), Step::Trim(0, 1), Step::Flush];
    script.extend((10..40).flat_map(|lpn| [Step::Write(lpn), Step::Trim(lpn, 1), Step::Flush]));
    script.extend([Step::Rebuild, Step::Read(0)]);
    check("single", "greedy", AgeBase::Closed, FaultPlan::default(), &script);
}

#[test]
fn power_may_be_lost_at_any_operation() {
    // Hot overwrites, trims and flushes in a fixed order, cut at each of the first operations that write to the medium.
    let mut script: Vec<Step> = (0..LOGICAL_PAGES).map(Step::Write).collect();
    script.extend((0..150).flat_map(|i| {
        let step = [Step::Write(i % 7), Step::Write(40 + i % 50), Step::Trim(i % 100, 3), Step::Write(i % 100)];
        step.into_iter().chain((i % 5 == 0).then_some(Step::Flush))
    }));
    for operations in (1..900).step_by(3) {
        for torn in [false, true] {
            let faults = FaultPlan { torn, operations_until_power_loss: operations, ..FaultPlan::default() };
            check("host_gc", "greedy", AgeBase::Closed, faults, &script);
        }
    }
}
