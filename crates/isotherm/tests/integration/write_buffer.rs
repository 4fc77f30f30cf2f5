//! Write buffers against models: every policy, with and without bytes, with power cut at every operation, alone and where the
//! map shares their DRAM.

use isotherm::address::{Geometry, Lpn};
use isotherm::blocks::AgeBase;
use isotherm::cause::Cause;
use isotherm::device::{BlockDevice, DeviceError, Observe, Replay};
use isotherm::dram::buffer::{BUFFERS, BufferContext, build_buffer};
use isotherm::dram::partition::sides::{BufferSide, MapSide};
use isotherm::dram::partition::{AnySplit, Sizes, SplitContext, SplitRule, build_split};
use isotherm::dram::{BufferCounters, Partition, WriteBuffer};
use isotherm::ftl::Ftl;
use isotherm::ftl::MappingSpace;
use isotherm::ftl::dftl::cmt::Replacement;
use isotherm::ftl::dftl::{DemandOptions, Dftl, TranslationSpace, WriteMiss, Writeback};
use isotherm::ftl::fast::{FastFtl, FastOptions, RESERVE_BLOCKS, log_block_map_bytes};
use isotherm::ftl::page::PageFtl;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::payload::{HeapBytes, NoBytes};
use isotherm::nand::timing::Latency;
use isotherm::placement::{AnyPlacement, PlacementContext, build_placement};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::ssd::Ssd;
use isotherm::stats::Snapshot;
use isotherm::store::StoreOptions;
use isotherm::victim::{AnyVictim, VictimContext, build_victim};

const PAGE: usize = 512;
const LOGICAL_PAGES: u32 = 64;
const BLOCKS: u32 = 14;
const PAGES_PER_BLOCK: u32 = 8;
const FRAMES: u32 = 12;
const OPTIONS: StoreOptions =
    StoreOptions { floor: 2, age: AgeBase::Closed, meta_streams: 0, meta_blocks: 0, wear_threshold: None };

fn policies(blocks: u32) -> (AnyPlacement, AnyVictim) {
    let placement = PlacementContext {
        logical_pages: LOGICAL_PAGES,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: PAGE as u32,
        blocks,
        seed: 1,
        future: None,
        external: None,
    };
    let victim = VictimContext {
        blocks,
        pages_per_block: PAGES_PER_BLOCK,
        logical_pages: LOGICAL_PAGES,
        seed: 1,
        ..VictimContext::default()
    };
    (
        build_placement(&"single".parse().unwrap(), &placement).unwrap(),
        build_victim(&"greedy".parse().unwrap(), &victim).unwrap(),
    )
}

fn buffered<F: Ftl>(ftl: F, name: &str) -> WriteBuffer<F> {
    let context = BufferContext { frames: FRAMES, pages_per_block: PAGES_PER_BLOCK };
    WriteBuffer::new(ftl, build_buffer(&name.parse().unwrap(), &context).unwrap(), FRAMES, ())
}

type ByteMedium = Faulty<NandArray<HeapBytes>>;
type ByteFtl = PageFtl<ByteMedium, AnyPlacement, AnyVictim>;

fn byte_device(policy: &str, plan: FaultPlan) -> Ssd<WriteBuffer<ByteFtl>> {
    let geometry = Geometry::simple(BLOCKS, PAGES_PER_BLOCK, PAGE as u32);
    let medium = Faulty::new(NandArray::with_bytes(geometry, 0), plan);
    let (placement, victim) = policies(BLOCKS);
    Ssd::new(buffered(PageFtl::new(medium, placement, victim, LOGICAL_PAGES, OPTIONS), policy), false)
}

/// What a page may hold: versions since the last flush, oldest first. The last one is what reads must return.
struct Model {
    versions: Vec<Vec<Vec<u8>>>,
}

impl Model {
    fn new() -> Self {
        Self { versions: vec![vec![vec![0; PAGE]]; LOGICAL_PAGES as usize] }
    }

    fn newest(&self, page: usize) -> &[u8] {
        self.versions[page].last().unwrap()
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        for page in offset / PAGE..=(offset + data.len() - 1) / PAGE {
            let mut content = self.newest(page).to_vec();
            for (i, byte) in content.iter_mut().enumerate() {
                if let Some(new) = (page * PAGE + i).checked_sub(offset).and_then(|at| data.get(at)) {
                    *byte = *new;
                }
            }
            self.versions[page].push(content);
        }
    }

    fn trim(&mut self, offset: usize, length: usize) {
        for page in offset.div_ceil(PAGE)..(offset + length) / PAGE {
            self.versions[page].push(vec![0; PAGE]);
        }
    }

    fn flush(&mut self) {
        for versions in &mut self.versions {
            versions.drain(..versions.len() - 1);
        }
    }
}

/// One random operation on the device and on the model, which hears of it first: a cut may leave any part of it.
fn step(device: &mut impl BlockDevice, model: &mut Model, random: &mut Random) -> Result<(), DeviceError> {
    let bytes = LOGICAL_PAGES as usize * PAGE;
    let offset = (random.unit().powi(2) * bytes as f64) as usize;
    let longest = if random.chance(0.5) { PAGE as u64 / 2 } else { 4 * PAGE as u64 };
    let length = 1 + random.below(longest) as usize;
    let length = length.min(bytes - offset);
    match random.below(20) {
        0 => {
            device.flush()?;
            model.flush();
            Ok(())
        }
        1 => {
            model.trim(offset, length);
            device.trim(offset as u64, length as u64, false)
        }
        2..=5 => {
            let mut out = vec![0; length];
            device.read(offset as u64, &mut out)?;
            for (i, byte) in out.iter().enumerate() {
                let at = offset + i;
                assert_eq!(*byte, model.newest(at / PAGE)[at % PAGE], "byte {at}");
            }
            Ok(())
        }
        _ => {
            let (offset, length) = if random.chance(0.5) {
                (offset / PAGE * PAGE, length.next_multiple_of(PAGE).min(bytes - offset / PAGE * PAGE))
            } else {
                (offset, length)
            };
            let data: Vec<u8> = (0..length).map(|_| random.bits() as u8 | 1).collect();
            model.write(offset, &data);
            device.write(offset as u64, &data, false)
        }
    }
}

#[test]
fn every_policy_returns_the_last_write_of_every_byte() {
    for entry in BUFFERS {
        let mut device = byte_device(entry.name, FaultPlan::default());
        let (mut model, mut random) = (Model::new(), Random::new(11));
        for _ in 0..6_000 {
            step(&mut device, &mut model, &mut random).unwrap();
        }
        let ftl = device.into_ftl();
        ftl.check().unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert!(ftl.counters().write_hits > 0 && ftl.counters().read_hits > 0, "{}", entry.name);
    }
}

/// How an FTL with something in front of it is made, and made again from the medium alone.
struct Maker<F> {
    name: &'static str,
    blocks: u32,
    make: fn(ByteMedium) -> F,
    recover: fn(ByteMedium) -> Box<dyn Ftl<Medium = ByteMedium>>,
}

impl<F: Ftl<Medium = ByteMedium> + Send> Maker<F> {
    /// Runs until power fails after `operations`, and checks every page after recovery. False if power did not fail.
    fn cut_after(&self, operations: u64, torn: bool) -> bool {
        let geometry = Geometry::simple(self.blocks, PAGES_PER_BLOCK, PAGE as u32);
        let plan = FaultPlan { torn, ..FaultPlan::default() };
        let mut ftl = (self.make)(Faulty::new(NandArray::with_bytes(geometry, 0), plan));
        ftl.medium_mut().lose_power_after(operations);
        let mut device = Ssd::new(ftl, false);
        let (mut model, mut random) = (Model::new(), Random::new(23));
        let cut = (0..500).any(|_| step(&mut device, &mut model, &mut random) == Err(DeviceError::PowerLost));
        let mut medium = device.into_ftl().into_medium();
        medium.lose_power_after(u64::MAX);
        let mut ftl = (self.recover)(medium);
        for (page, versions) in model.versions.iter().enumerate() {
            let mut content = vec![0; PAGE];
            if !ftl.read(Lpn(page as u32), &mut content, Cause::Host).unwrap() {
                content.fill(0);
            }
            let (name, count) = (self.name, versions.len());
            assert!(versions.contains(&content), "{name}: page {page} has none of {count} versions after {operations}");
        }
        cut
    }

    fn cut_everywhere(&self) {
        let mut cuts = 0;
        while self.cut_after(cuts + 1, cuts % 2 == 0) {
            cuts += 1;
        }
        assert!(cuts > 500, "{}: only {cuts} operations", self.name);
    }
}

#[test]
fn flushed_data_survives_a_power_cut_at_every_operation_and_nothing_is_torn() {
    // Function pointers carry no policy, so that each needs a maker of its own.
    macro_rules! cut {
        ($($policy:literal),*) => { $(
            Maker {
                name: concat!("page, ", $policy),
                blocks: BLOCKS,
                make: |medium| {
                    let (placement, victim) = policies(BLOCKS);
                    buffered(PageFtl::new(medium, placement, victim, LOGICAL_PAGES, OPTIONS), $policy)
                },
                recover: |medium| {
                    let (placement, victim) = policies(BLOCKS);
                    Box::new(PageFtl::recover(medium, placement, victim, LOGICAL_PAGES, OPTIONS).unwrap())
                },
            }
            .cut_everywhere();
        )* };
    }
    cut!("lru", "fifo", "cflru", "bplru", "lb_clock", "arc");
    assert_eq!(BUFFERS.len(), 6, "every policy is cut above");
}

/// Sixteen entries in a translation page, and room for ten.
const DEMAND: DemandOptions = DemandOptions {
    cache_bytes: 96,
    cache_bytes_max: 4096,
    entry_bytes: 8,
    hotness_entry_bytes: 0,
    sample_bytes: 0,
    translation_entry_bytes: 32,
    write_miss: WriteMiss::Dirty,
    writeback: Writeback::Batch,
    replacement: Replacement::Lru,
    translation_space: TranslationSpace::OnTop,
    reads_before_copies: false,
};
const DEMAND_BLOCKS: u32 = 24;
const DEMAND_LOG: StoreOptions = StoreOptions { floor: 4, meta_streams: 1, meta_blocks: 3, ..OPTIONS };
const FAST: FastOptions =
    FastOptions { log_blocks: 3, reserve: RESERVE_BLOCKS, in_place_first_write: false, wear_threshold: None };

/// A DRAM whose border moves every few requests.
fn shared(sizes: Sizes) -> (AnySplit, Sizes, BufferSide, MapSide) {
    let context = SplitContext {
        dram_bytes: sizes.dram_bytes,
        page_bytes: sizes.page_bytes,
        paper_interval_requests: 10,
        paper_unit_bytes: PAGE as u64,
        is_demand: sizes.log_blocks_max == 0,
        map_page_entries: sizes.map_page_entries,
        seed: 1,
    };
    let rule = build_split(&"adaptive_paper:log2_bits=6".parse().unwrap(), &context).unwrap();
    let sizes = Sizes { metadata_bytes: rule.metadata_bytes(), ..sizes };
    let sizes = sizes.with_mapping(sizes.shared_bytes() / 2);
    let (observer, judge) = rule.sides(&sizes);
    (rule, sizes, observer, MapSide::new(judge))
}

fn partition<F: MappingSpace<Side = MapSide>>(
    ftl: F,
    rule: AnySplit,
    sizes: Sizes,
    observer: BufferSide,
) -> Partition<F> {
    let context = BufferContext { frames: sizes.frames_max(), pages_per_block: PAGES_PER_BLOCK };
    let latency = Latency { read_ns: 72_800, program_ns: 252_800, erase_ns: 1_500_000, transfer_ns: 0 };
    let policy = build_buffer(&"lru".parse().unwrap(), &context).unwrap();
    Partition::new(ftl, policy, observer, rule, sizes, &latency).unwrap()
}

#[test]
fn flushed_data_survives_a_power_cut_where_buffer_and_map_share_the_dram() {
    Maker {
        name: "dftl",
        blocks: DEMAND_BLOCKS,
        make: |medium| {
            let sizes = Sizes {
                mapping_bytes_min: 16 + 16 * 8,
                mapping_bytes_fixed: 16,
                entry_bytes: 8,
                ghost_entry_bytes: 8,
                map_pages: 4,
                map_page_entries: 16,
                ..Sizes::new(5000, PAGE as u64)
            };
            let (rule, sizes, observer, side) = shared(sizes);
            let (placement, victim) = policies(DEMAND_BLOCKS);
            let ftl = Dftl::new(medium, placement, victim, LOGICAL_PAGES, DEMAND_LOG, DEMAND, side).unwrap();
            partition(ftl, rule, sizes, observer)
        },
        recover: |medium| {
            let (placement, victim) = policies(DEMAND_BLOCKS);
            Box::new(Dftl::recover(medium, placement, victim, LOGICAL_PAGES, DEMAND_LOG, DEMAND, ()).unwrap())
        },
    }
    .cut_everywhere();
    Maker {
        name: "fast",
        blocks: LOGICAL_PAGES / PAGES_PER_BLOCK + 1 + FAST.log_blocks + FAST.reserve,
        make: |medium| {
            let entry_bytes = log_block_map_bytes(medium.geometry());
            let sizes = Sizes {
                mapping_bytes_min: 32 + entry_bytes,
                mapping_bytes_fixed: 32,
                entry_bytes,
                ghost_entry_bytes: entry_bytes / u64::from(PAGES_PER_BLOCK),
                map_pages: LOGICAL_PAGES / PAGES_PER_BLOCK,
                map_page_entries: PAGES_PER_BLOCK,
                log_blocks_max: FAST.log_blocks,
                ..Sizes::new(5000, PAGE as u64)
            };
            let (rule, sizes, observer, side) = shared(sizes);
            partition(FastFtl::new(medium, LOGICAL_PAGES, FAST, side), rule, sizes, observer)
        },
        recover: |medium| Box::new(FastFtl::recover(medium, LOGICAL_PAGES, FAST, ()).unwrap()),
    }
    .cut_everywhere();
}

fn simulated(policy: &str) -> Ssd<WriteBuffer<PageFtl<NandArray<NoBytes>, AnyPlacement, AnyVictim>>> {
    let geometry = Geometry::simple(BLOCKS, PAGES_PER_BLOCK, PAGE as u32);
    let (placement, victim) = policies(BLOCKS);
    let ftl = PageFtl::new(NandArray::without_bytes(geometry, 0, false), placement, victim, LOGICAL_PAGES, OPTIONS);
    Ssd::new(buffered(ftl, policy), false)
}

fn request(op: Op, page: u64, pages: u64) -> Request {
    Request { arrival_ns: 0, offset: page * PAGE as u64, length: pages * PAGE as u64, op, source: 0, durable: false }
}

#[test]
fn simulation_and_byte_mode_count_alike() {
    for entry in BUFFERS {
        let (mut bytes, mut simulation) = (byte_device(entry.name, FaultPlan::default()), simulated(entry.name));
        let mut random = Random::new(31);
        for _ in 0..4_000 {
            let (page, kind) = (random.below(60), random.below(20));
            let (offset, length) = (page * PAGE as u64, PAGE as u64 * (1 + random.below(4)));
            match kind {
                0 => bytes.flush().unwrap(),
                1 => bytes.trim(offset, length, false).unwrap(),
                2..=5 => bytes.read(offset, &mut vec![0; length as usize]).unwrap(),
                _ => bytes.write(offset, &vec![7; length as usize], false).unwrap(),
            }
            let op = [Op::Flush, Op::Trim, Op::Read, Op::Read, Op::Read, Op::Read];
            let op = op.get(kind as usize).copied().unwrap_or(Op::Write);
            simulation.submit(&[request(op, page, if op == Op::Flush { 0 } else { length / PAGE as u64 })]).unwrap();
        }
        simulation.check().unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(bytes.ftl().counters(), simulation.ftl().counters(), "{}", entry.name);
        assert_eq!(bytes.ftl().medium().counters(), simulation.ftl().medium().counters(), "{}", entry.name);
    }
}

#[test]
fn a_buffer_obeys_its_size_at_every_moment_and_can_shrink_and_grow() {
    for entry in BUFFERS {
        let mut device = simulated(entry.name).into_ftl();
        let (mut random, mut pages) = (Random::new(41), FRAMES);
        for turn in 0..5_000u32 {
            if turn % 100 == 0 {
                pages = 1 + random.below(u64::from(FRAMES)) as u32;
                device.resize(pages).unwrap();
            }
            device.write(Lpn(random.below(u64::from(LOGICAL_PAGES)) as u32), (), Cause::Host).unwrap();
            assert!(device.used_pages() <= pages, "{} in turn {turn}", entry.name);
        }
        device.check().unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    }
}

#[test]
fn a_partial_write_merges_in_the_buffer_without_a_flash_read() {
    let mut device = byte_device("lru", FaultPlan::default());
    device.write(0, &[1; PAGE], false).unwrap();
    device.write(10, &[2; 5], false).unwrap();
    assert_eq!(device.ftl().medium().counters().reads.total(), 0);
    let mut out = [0; PAGE];
    device.read(0, &mut out).unwrap();
    assert!(out[..10].iter().all(|b| *b == 1) && out[10..15].iter().all(|b| *b == 2) && out[15] == 1);
    assert_eq!(device.ftl().medium().counters().programs.total(), 0, "nothing has been flushed");
    device.flush().unwrap();
    assert_eq!(device.ftl().medium().counters().programs.total(), 1);
}

#[test]
fn block_padding_writes_whole_blocks_under_its_own_cause() {
    let mut device = simulated("bplru");
    // Blocks 0 and 1 hold data on flash.
    device.submit(&[request(Op::Write, 0, 16), request(Op::Flush, 0, 0)]).unwrap();
    let before = device.snapshot();
    // One page of block 0 is rewritten; twelve pages elsewhere push it out.
    device.submit(&[request(Op::Write, 3, 1)]).unwrap();
    for page in [20, 28, 36, 44, 52, 21, 29, 37, 45, 53, 22, 30] {
        device.submit(&[request(Op::Write, page, 1)]).unwrap();
    }
    let after = device.snapshot();
    let programs = after.medium.programs.since(&before.medium.programs);
    assert_eq!((programs[Cause::Host], programs[Cause::Padding]), (1, 7), "page 3 and the seven around it");
    assert_eq!(after.medium.reads.since(&before.medium.reads)[Cause::Padding], 7);
    let padded = |snapshot: &Snapshot| snapshot.sections.get::<BufferCounters>().unwrap().padded_pages;
    assert_eq!(padded(&after) - padded(&before), 7);
}

/// A device that wears out refuses a page that leaves the buffer; what has come and what has left still add up.
#[test]
fn a_write_that_finds_no_room_has_not_come() {
    for entry in BUFFERS {
        let geometry = Geometry::simple(BLOCKS, PAGES_PER_BLOCK, PAGE as u32);
        let (placement, victim) = policies(BLOCKS);
        let medium = NandArray::without_bytes(geometry, 3, false);
        let mut ftl = buffered(PageFtl::new(medium, placement, victim, LOGICAL_PAGES, OPTIONS), entry.name);
        let mut random = Random::new(3);
        let refusal = (0..100_000)
            .find_map(|_| ftl.write(Lpn(random.below(u64::from(LOGICAL_PAGES)) as u32), (), Cause::Host).err());
        assert!(matches!(refusal, Some(DeviceError::WornOut { .. })), "{}: {refusal:?}", entry.name);
        // The FTL below stands in the middle of a collection; the buffer, which is checked first, must add up.
        let law = ftl.check().err().unwrap_or_default();
        assert!(!law.contains("writes came") && !law.contains("buffered"), "{}: {law}", entry.name);
    }
}
