//! The hybrid map against the array model: random operations, loss of power at any operation, failing programs and erases.

use crate::support::{Harness, PAGE_BYTES, Step, Versions};
use isotherm::address::{BlockId, Geometry, Lpn, Ppn};
use isotherm::cause::Cause;
use isotherm::device::DeviceError;
use isotherm::ftl::Ftl;
use isotherm::ftl::fast::{FastFtl, FastOptions, RESERVE_BLOCKS};
use isotherm::nand::array::NandArray;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::{Kind, Medium};
use isotherm::random::Random;
use isotherm::stats::Snapshot;
use proptest::prelude::*;

/// The shape of a small device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pages_per_block: u32,
    logical_pages: u32,
    log_blocks: u32,
    in_place_first_write: bool,
    wear_threshold: Option<u32>,
    /// Blocks beyond what FAST needs, for those that fail.
    spare: u32,
}

impl Shape {
    fn geometry(&self) -> Geometry {
        let data = self.logical_pages.div_ceil(self.pages_per_block);
        let blocks = data + 1 + self.log_blocks + RESERVE_BLOCKS + self.spare;
        Geometry::simple(blocks, self.pages_per_block, PAGE_BYTES)
    }

    fn options(&self) -> FastOptions {
        FastOptions {
            log_blocks: self.log_blocks,
            reserve: RESERVE_BLOCKS + self.spare,
            in_place_first_write: self.in_place_first_write,
            wear_threshold: self.wear_threshold,
        }
    }

    /// Runs `steps`; a `resize` of the log goes with every tenth step.
    fn run<M: Medium<Content: Versions>>(&self, array: M, faults: FaultPlan, steps: &[Step], resizes: bool) {
        let ftl = FastFtl::new(Faulty::new(array, faults), self.logical_pages, self.options(), ());
        let (logical_pages, options) = (self.logical_pages, self.options());
        let mut harness = Harness::new(ftl, move |medium| FastFtl::recover(medium, logical_pages, options, ()));
        if !resizes {
            return harness.run(steps);
        }
        for (turn, steps) in steps.chunks(10).enumerate() {
            harness.run(steps);
            let count = (turn as u32 * 7) % (self.log_blocks + 1);
            let resized = harness.ftl().set_log_blocks(count).expect("a run ends with power on");
            assert_eq!(resized, count.max(1));
        }
        harness.run(&[]);
    }

    fn run_with_bytes(&self, faults: FaultPlan, steps: &[Step]) {
        self.run(NandArray::with_bytes(self.geometry(), 0), faults, steps, false);
    }

    fn run_without_bytes(&self, faults: FaultPlan, steps: &[Step]) {
        self.run(NandArray::without_bytes(self.geometry(), 0, true), faults, steps, false);
    }
}

/// Steps of which some are runs from the start of a logical block on, so that the sequential block is used and broken.
fn steps(pages: u32) -> impl Strategy<Value = Vec<Step>> {
    let lpn = 0..pages;
    let piece = prop_oneof![
        40 => lpn.clone().prop_map(|lpn| vec![Step::Write(lpn)]),
        10 => lpn.clone().prop_map(|lpn| vec![Step::Read(lpn)]),
        8 => (lpn.clone(), 1..9u32).prop_map(move |(lpn, count)| vec![Step::Trim(lpn, count.min(pages - lpn))]),
        4 => Just(vec![Step::Flush]),
        2 => Just(vec![Step::Rebuild]),
        3 => (1..60u64).prop_map(|operations| vec![Step::PowerLoss(operations)]),
        20 => (lpn, 1..12u32).prop_map(move |(lpn, count)| {
            let first = lpn & !3;
            (first..(first + count).min(pages)).map(Step::Write).collect()
        }),
    ];
    prop::collection::vec(piece, 1..250).prop_map(|pieces| pieces.concat())
}

fn shape() -> impl Strategy<Value = Shape> {
    (1..4u32, 5..40u32, 1..5u32, any::<bool>(), prop_oneof![Just(None), Just(Some(2))]).prop_map(
        |(log2, logical_pages, log_blocks, in_place_first_write, wear_threshold)| Shape {
            pages_per_block: 1 << log2,
            logical_pages,
            log_blocks,
            in_place_first_write,
            wear_threshold,
            spare: 0,
        },
    )
}

fn case() -> impl Strategy<Value = (Shape, Vec<Step>)> {
    shape().prop_flat_map(|shape| (Just(shape), steps(shape.logical_pages)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_survive_losses_of_power((shape, steps) in case(), torn: bool) {
        shape.run_with_bytes(FaultPlan { torn, ..FaultPlan::default() }, &steps);
    }

    #[test]
    fn addresses_survive_losses_of_power((shape, steps) in case(), torn: bool) {
        shape.run_without_bytes(FaultPlan { torn, ..FaultPlan::default() }, &steps);
    }

    #[test]
    fn a_log_that_changes_its_size_loses_nothing((shape, steps) in case(), torn: bool) {
        let faults = FaultPlan { torn, ..FaultPlan::default() };
        let steps: Vec<Step> = steps.into_iter().filter(|s| !matches!(s, Step::PowerLoss(_))).collect();
        shape.run(NandArray::with_bytes(shape.geometry(), 0), faults, &steps, true);
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing(shape in shape(), steps in crate::support::steps(40, 800), seed: u64) {
        let shape = Shape { logical_pages: 40, spare: 60, ..shape };
        let faults = FaultPlan { program_failures: 0.005, erase_failures: 0.01, seed, ..FaultPlan::default() };
        shape.run_with_bytes(faults, &steps);
    }
}

/// A workload that makes every kind of merge, with trims and flushes between.
fn script(logical_pages: u32, length: usize) -> Vec<Step> {
    let mut random = Random::new(5);
    let mut steps: Vec<Step> = (0..logical_pages).map(Step::Write).collect();
    while steps.len() < length {
        let lpn = random.below(logical_pages.into()) as u32;
        match random.below(12) {
            0 => steps.push(Step::Flush),
            1 => steps.push(Step::Trim(lpn, (random.below(6) as u32 + 1).min(logical_pages - lpn))),
            2 => {
                let first = lpn & !3;
                let count = random.below(5) as u32 + 1;
                steps.extend((first..(first + count).min(logical_pages)).map(Step::Write));
            }
            _ => steps.push(Step::Write(lpn)),
        }
    }
    steps
}

#[test]
fn power_may_be_lost_at_every_operation() {
    for (log_blocks, in_place_first_write) in [(1, false), (3, false), (3, true)] {
        let shape = Shape {
            pages_per_block: 4,
            logical_pages: 19,
            log_blocks,
            in_place_first_write,
            wear_threshold: Some(3),
            spare: 0,
        };
        let steps = script(shape.logical_pages, 150);
        // The script makes some 270 to 450 operations; the last cuts come after its end and change nothing.
        for operations_until_power_loss in 1..450 {
            for torn in [false, true] {
                let faults = FaultPlan { operations_until_power_loss, torn, ..FaultPlan::default() };
                shape.run_with_bytes(faults, &steps);
                shape.run_without_bytes(faults, &steps);
            }
        }
    }
}

#[test]
fn a_block_with_a_failed_program_is_emptied_and_retired() {
    let shape = Shape {
        pages_per_block: 8,
        logical_pages: 64,
        log_blocks: 4,
        in_place_first_write: false,
        wear_threshold: None,
        spare: 20,
    };
    let faults = FaultPlan { program_failures: 0.002, seed: 3, ..FaultPlan::default() };
    let medium = Faulty::new(NandArray::without_bytes(shape.geometry(), 0, false), faults);
    let mut ftl = FastFtl::new(medium, shape.logical_pages, shape.options(), ());
    let mut random = Random::new(1);
    for lpn in (0..64).chain((0..600).map(|_| random.below(64) as u32)) {
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
    }
    ftl.check().unwrap();
    let mut snapshot = Snapshot::default();
    ftl.fill_snapshot(&mut snapshot);
    let blocks = shape.geometry().blocks;
    let spoiled = |block| {
        let first = shape.geometry().first_page(BlockId(block)).0;
        let pages = first..first + ftl.medium().programmed_pages(BlockId(block));
        pages.filter(|page| ftl.medium().owner(Ppn(*page)).kind() == Kind::Unreadable).count()
    };
    assert!(snapshot.collector.retired_blocks >= 3, "{} blocks are retired", snapshot.collector.retired_blocks);
    assert_eq!((0..blocks).map(spoiled).sum::<usize>(), 0, "no block in use has a page that failed");
}

#[test]
fn losses_of_power_do_not_use_up_the_log() {
    let shape = Shape {
        pages_per_block: 8,
        logical_pages: 64,
        log_blocks: 2,
        in_place_first_write: false,
        wear_threshold: None,
        spare: 0,
    };
    let medium = Faulty::new(NandArray::without_bytes(shape.geometry(), 0, true), FaultPlan::default());
    let mut ftl = FastFtl::new(medium, shape.logical_pages, shape.options(), ());
    for turn in 0..8 {
        ftl.write(Lpn(turn * 8 + 1), (), Cause::Host).unwrap();
        ftl = FastFtl::recover(ftl.into_medium(), shape.logical_pages, shape.options(), ()).unwrap();
        assert_eq!(ftl.log_blocks_in_use(), 1, "eight writes fill one block, whatever happens between them");
    }
}

#[test]
fn a_partial_merge_cut_short_goes_on_after_the_rebuild() {
    let geometry = Geometry::simple(4 + 1 + 1 + RESERVE_BLOCKS, 4, PAGE_BYTES);
    let options =
        FastOptions { log_blocks: 1, reserve: RESERVE_BLOCKS, in_place_first_write: false, wear_threshold: None };
    // The fill, two pages of the sequential block and one copy of the merge that the last write makes; then power is lost.
    let faults = FaultPlan { operations_until_power_loss: 16 + 2 + 1 + 1, ..FaultPlan::default() };
    let medium = Faulty::new(NandArray::without_bytes(geometry, 0, true), faults);
    let mut ftl = FastFtl::new(medium, 16, options, ());
    for lpn in (0..16).chain([0, 1]) {
        ftl.write(Lpn(lpn), (), Cause::Host).unwrap();
    }
    assert_eq!(ftl.write(Lpn(3), (), Cause::Host), Err(DeviceError::PowerLost));
    let mut medium = ftl.into_medium();
    medium.lose_power_after(u64::MAX);
    let mut ftl = FastFtl::recover(medium, 16, options, ()).unwrap();
    ftl.write(Lpn(4), (), Cause::Host).unwrap();
    ftl.check().unwrap();
    let merges = ftl.merges();
    assert_eq!((merges.partial, merges.partial_pages, merges.full), (1, 1, 0), "only page 3 is left to copy");
}

/// Tombstones that merges had to write opened one log block after the other: sequential writes never made room in the log.
#[test]
fn trims_between_sequential_writes_do_not_use_up_the_free_blocks() {
    let shape = Shape {
        pages_per_block: 4,
        logical_pages: 32,
        log_blocks: 1,
        in_place_first_write: false,
        wear_threshold: None,
        spare: 0,
    };
    let mut steps: Vec<Step> = (0..32).map(Step::Write).collect();
    for turn in 0..100 {
        let first = turn % 8 * 4;
        steps.extend([Step::Trim(first + 1, 1), Step::Write(first), Step::Write(first + 1)]);
    }
    shape.run_with_bytes(FaultPlan::default(), &steps);
}
