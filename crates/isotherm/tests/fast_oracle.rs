//! The hybrid map against an array model: random operations, loss of power at any operation, failing programs and erases.

use isotherm::address::{Geometry, Lpn};
use isotherm::cause::Cause;
use isotherm::device::DeviceError;
use isotherm::ftl::Ftl;
use isotherm::ftl::fast::{FastFtl, FastOptions, RESERVE_BLOCKS};
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::store::{HeapBytes, NoBytes, PageStore};
use isotherm::random::Random;
use proptest::prelude::*;

const PAGE_BYTES: u32 = 512;

/// What a page holds, as far as a store can tell: a version number, or only that it holds something.
trait Payload: PageStore + Sized + Clone {
    fn array(geometry: Geometry) -> NandArray<Self>;
    fn write(ftl: &mut Device<Self>, lpn: Lpn, version: u64) -> Result<(), DeviceError>;
    /// The version read; `Some(None)` where the store keeps no bytes to tell it.
    fn read(ftl: &mut Device<Self>, lpn: Lpn) -> Option<Option<u64>>;
}

type Device<S> = FastFtl<Faulty<NandArray<S>>>;

impl Payload for NoBytes {
    fn array(geometry: Geometry) -> NandArray<Self> {
        NandArray::without_bytes(geometry, 0, true)
    }
    fn write(ftl: &mut Device<Self>, lpn: Lpn, _: u64) -> Result<(), DeviceError> {
        ftl.write(lpn, ())
    }
    fn read(ftl: &mut Device<Self>, lpn: Lpn) -> Option<Option<u64>> {
        ftl.read(lpn, (), Cause::Host).unwrap().then_some(None)
    }
}

impl Payload for HeapBytes {
    fn array(geometry: Geometry) -> NandArray<Self> {
        NandArray::with_bytes(geometry, 0)
    }
    fn write(ftl: &mut Device<Self>, lpn: Lpn, version: u64) -> Result<(), DeviceError> {
        let mut page = [0; PAGE_BYTES as usize];
        page[..8].copy_from_slice(&version.to_le_bytes());
        page[504..].copy_from_slice(&version.to_le_bytes());
        ftl.write(lpn, &page)
    }
    fn read(ftl: &mut Device<Self>, lpn: Lpn) -> Option<Option<u64>> {
        let mut page = [0; PAGE_BYTES as usize];
        ftl.read(lpn, &mut page, Cause::Host).unwrap().then(|| {
            assert_eq!(page[..8], page[504..], "{lpn} is torn");
            Some(u64::from_le_bytes(page[..8].try_into().unwrap()))
        })
    }
}

/// An operation of the host.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u32),
    Trim(u32, u32),
    Flush,
    /// Changes the number of random-write log blocks.
    Resize(u32),
    /// Loses power between two operations.
    Rebuild,
}

/// What the model knows of a page.
#[derive(Clone, Copy, Default, Debug)]
struct Page {
    current: Option<u64>,
    /// What an unflushed trim took away: it may come back after a loss of power.
    fallback: Option<u64>,
}

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
}

/// A device beside its model.
struct Twin<S> {
    shape: Shape,
    device: Option<Device<S>>,
    pages: Vec<Page>,
    version: u64,
}

impl<S: Payload> Twin<S> {
    fn new(shape: Shape, plan: FaultPlan) -> Self {
        let medium = Faulty::new(S::array(shape.geometry()), plan);
        let device = FastFtl::new(medium, shape.logical_pages, shape.options());
        Self { shape, device: Some(device), pages: vec![Page::default(); shape.logical_pages as usize], version: 0 }
    }

    fn device(&mut self) -> &mut Device<S> {
        self.device.as_mut().expect("only a rebuild takes the device")
    }

    /// Carries out one operation on both. A loss of power is left to the caller.
    fn apply(&mut self, operation: Operation) -> Result<(), DeviceError> {
        match operation {
            Operation::Write(lpn) => {
                self.version += 1;
                let version = self.version;
                let result = <S as Payload>::write(self.device(), Lpn(lpn), version);
                if result.is_ok() {
                    self.pages[lpn as usize] = Page { current: Some(version), fallback: None };
                }
                result
            }
            Operation::Trim(first, count) => {
                // Whatever part of a trim was carried out before a loss of power, it may stand or not.
                for page in &mut self.pages[first as usize..(first + count) as usize] {
                    *page = Page { current: None, fallback: page.current.or(page.fallback) };
                }
                self.device().trim(Lpn(first), count)
            }
            Operation::Flush => {
                self.device().flush()?;
                self.pages.iter_mut().for_each(|page| page.fallback = None);
                Ok(())
            }
            Operation::Resize(count) => self.device().set_log_blocks(count).map(|_| ()),
            Operation::Rebuild => {
                self.rebuild(u64::MAX)?;
                self.adopt(None);
                Ok(())
            }
        }
    }

    /// Loses everything in memory, and power again after `operations`.
    fn rebuild(&mut self, operations: u64) -> Result<(), DeviceError> {
        let medium = self.device.take().expect("a device").into_medium();
        self.recover(medium, operations)
    }

    fn recover(&mut self, medium: Faulty<NandArray<S>>, operations: u64) -> Result<(), DeviceError> {
        let before = medium.clone();
        match FastFtl::recover(medium.restore_power(operations), self.shape.logical_pages, self.shape.options()) {
            Ok(device) => {
                self.device = Some(device);
                Ok(())
            }
            Err(DeviceError::PowerLost) => {
                // What the attempt erased is erased; only its garbage was, so that starting from before it is as good.
                self.recover(before, u64::MAX)
            }
            Err(error) => Err(error),
        }
    }

    /// After a loss of power: every page holds what it may hold, and the model takes that over. `in_flight` is the write
    /// that was cut short, which may have been carried out.
    fn adopt(&mut self, in_flight: Option<Operation>) {
        let version = self.version;
        for lpn in 0..self.pages.len() {
            let found = <S as Payload>::read(self.device(), Lpn(lpn as u32));
            let page = self.pages[lpn];
            let mut allowed = vec![page.current];
            if page.current.is_none() {
                allowed.push(page.fallback);
            }
            if matches!(in_flight, Some(Operation::Write(l)) if l as usize == lpn) {
                allowed.push(Some(version));
            }
            let matching = allowed.iter().find(|allowed| match (allowed, found) {
                (None, None) | (Some(_), Some(None)) => true,
                (Some(expected), Some(Some(found))) => *expected == found,
                _ => false,
            });
            let Some(&current) = matching else {
                panic!("page {lpn} holds {found:?} after a loss of power, allowed {allowed:?}")
            };
            // A trim that stands may still be known from its tombstone alone, which is durable.
            self.pages[lpn] = Page { current, fallback: None };
        }
        self.compare();
    }

    /// Every page, and every law.
    fn compare(&mut self) {
        self.device().check().unwrap();
        for lpn in 0..self.pages.len() {
            let found = <S as Payload>::read(self.device(), Lpn(lpn as u32));
            let expected = self.pages[lpn].current;
            match (found, expected) {
                (Some(Some(found)), Some(expected)) => assert_eq!(found, expected, "page {lpn}"),
                _ => assert_eq!(found.is_some(), expected.is_some(), "page {lpn}"),
            }
        }
    }
}

fn operation(logical_pages: u32) -> impl Strategy<Value = Operation> {
    let start = 0..logical_pages;
    prop_oneof![
        12 => start.clone().prop_map(Operation::Write),
        // Starts of logical blocks and short runs, so that the sequential block is used and broken.
        4 => (start.clone()).prop_map(|lpn| Operation::Write(lpn & !3)),
        3 => (start, 1..9u32).prop_map(move |(lpn, count)| Operation::Trim(lpn, count.min(logical_pages - lpn))),
        1 => Just(Operation::Flush),
        1 => (0..6u32).prop_map(Operation::Resize),
        1 => Just(Operation::Rebuild),
    ]
}

/// Single operations, and runs of sequential writes.
fn operations(logical_pages: u32, most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let run = (0..logical_pages, 1..12u32)
        .prop_map(move |(lpn, count)| (lpn..(lpn + count).min(logical_pages)).map(Operation::Write).collect());
    let piece = prop_oneof![5 => operation(logical_pages).prop_map(|o| vec![o]), 1 => run];
    prop::collection::vec(piece, 1..most).prop_map(|pieces| pieces.concat())
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

fn case() -> impl Strategy<Value = (Shape, Vec<Operation>)> {
    shape().prop_flat_map(|shape| (Just(shape), operations(shape.logical_pages, 160)))
}

fn run_without_faults<S: Payload>(shape: Shape, operations: &[Operation]) {
    let mut twin = Twin::<S>::new(shape, FaultPlan::default());
    for operation in operations {
        twin.apply(*operation).unwrap();
        twin.device().check().unwrap();
    }
    twin.compare();
}

/// Loses power after `cut` operations of the medium, rebuilds, and goes on to the end; `again` operations later the
/// rebuilt device loses power too.
fn run_with_cut<S: Payload>(shape: Shape, operations: &[Operation], cut: u64, again: u64, torn: bool) -> bool {
    let plan = FaultPlan { operations_until_power_loss: cut, torn, ..FaultPlan::default() };
    let mut twin = Twin::<S>::new(shape, plan);
    let mut lost = false;
    for operation in operations {
        match twin.apply(*operation) {
            Ok(()) => {}
            Err(DeviceError::PowerLost) => {
                lost = true;
                twin.rebuild(again).unwrap();
                twin.adopt(Some(*operation));
            }
            Err(error) => panic!("{error}"),
        }
    }
    twin.compare();
    lost
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_agree_with_an_array((shape, operations) in case()) {
        run_without_faults::<HeapBytes>(shape, &operations);
    }

    #[test]
    fn bytes_survive_losses_of_power(
        (shape, operations) in case(), cut in 1..400u64, again in 1..60u64, torn in any::<bool>(),
    ) {
        run_with_cut::<HeapBytes>(shape, &operations, cut, again, torn);
    }

    #[test]
    fn addresses_survive_losses_of_power(
        (shape, operations) in case(), cut in 1..400u64, again in 1..60u64, torn in any::<bool>(),
    ) {
        run_with_cut::<NoBytes>(shape, &operations, cut, again, torn);
    }

    #[test]
    fn failing_programs_and_erases_lose_nothing((shape, operations) in case(), seed in any::<u64>()) {
        let shape = Shape { spare: 60, ..shape };
        let plan = FaultPlan { program_failures: 0.01, erase_failures: 0.01, seed, ..FaultPlan::default() };
        let mut twin = Twin::<HeapBytes>::new(shape, plan);
        for operation in &operations {
            twin.apply(*operation).unwrap();
            twin.device().check().unwrap();
        }
        twin.compare();
    }
}

/// A workload that makes every kind of merge, with trims and flushes between.
fn script(logical_pages: u32, length: usize) -> Vec<Operation> {
    let mut random = Random::new(5);
    let mut operations: Vec<Operation> = (0..logical_pages).map(Operation::Write).collect();
    while operations.len() < length {
        let lpn = random.below(logical_pages.into()) as u32;
        match random.below(12) {
            0 => operations.push(Operation::Flush),
            1 => operations.push(Operation::Trim(lpn, (random.below(6) as u32 + 1).min(logical_pages - lpn))),
            2 => {
                let first = lpn & !3;
                let count = random.below(5) as u32 + 1;
                operations.extend((first..(first + count).min(logical_pages)).map(Operation::Write));
            }
            _ => operations.push(Operation::Write(lpn)),
        }
    }
    operations
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
        let operations = script(shape.logical_pages, 150);
        for torn in [false, true] {
            let mut cut = 1;
            while run_with_cut::<HeapBytes>(shape, &operations, cut, u64::MAX, torn) {
                // Again a few operations after the rebuild, while it may still be putting things in order.
                run_with_cut::<HeapBytes>(shape, &operations, cut, 1 + cut % 7, torn);
                run_with_cut::<NoBytes>(shape, &operations, cut, 1 + cut % 5, torn);
                cut += 1;
            }
            assert!(cut > 250, "the script makes {cut} operations only");
        }
    }
}
