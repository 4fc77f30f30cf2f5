//! Write buffers against models: every policy, with and without bytes, with power cut at every operation.

use isotherm::address::{Geometry, Lpn};
use isotherm::cause::Cause;
use isotherm::device::{BlockDevice, Device, DeviceError};
use isotherm::dram::WriteBuffer;
use isotherm::dram::buffer::{BUFFERS, BufferContext, build_buffer};
use isotherm::ftl::Ftl;
use isotherm::ftl::page::PageFtl;
use isotherm::log::LogOptions;
use isotherm::nand::Medium;
use isotherm::nand::array::NandArray;
use isotherm::nand::fault::{FaultPlan, Faulty};
use isotherm::nand::store::{HeapBytes, NoBytes};
use isotherm::placement::{AnyPlacement, PlacementContext, build_placement};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::AgeBase;
use isotherm::ssd::Ssd;
use isotherm::victim::{AnyVictim, VictimContext, build_victim};

const PAGE: usize = 512;
const LOGICAL_PAGES: u32 = 64;
const BLOCKS: u32 = 14;
const PAGES_PER_BLOCK: u32 = 8;
const FRAMES: u32 = 12;
const OPTIONS: LogOptions =
    LogOptions { floor: 2, age: AgeBase::Closed, meta_streams: 0, meta_blocks: 0, wear_threshold: None };

fn policies() -> (AnyPlacement, AnyVictim) {
    let placement = PlacementContext {
        logical_pages: LOGICAL_PAGES,
        pages_per_block: PAGES_PER_BLOCK,
        page_bytes: PAGE as u32,
        blocks: BLOCKS,
        seed: 1,
        future: None,
    };
    let victim =
        VictimContext { blocks: BLOCKS, pages_per_block: PAGES_PER_BLOCK, logical_pages: LOGICAL_PAGES, seed: 1 };
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
    let (placement, victim) = policies();
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
            device.trim(offset as u64, length as u64)
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
            device.write(offset as u64, &data)
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

/// Runs until power fails after `operations`, and checks every page after recovery. False if power did not fail.
fn cut_after(policy: &str, operations: u64, torn: bool) -> bool {
    let plan = FaultPlan { operations_until_power_loss: operations, torn, ..FaultPlan::default() };
    let mut device = byte_device(policy, plan);
    let (mut model, mut random) = (Model::new(), Random::new(23));
    let cut = (0..500).any(|_| step(&mut device, &mut model, &mut random) == Err(DeviceError::PowerLost));
    let mut medium = device.into_ftl().into_medium();
    medium.lose_power_after(u64::MAX);
    let (placement, victim) = policies();
    let mut ftl = PageFtl::recover(medium, placement, victim, LOGICAL_PAGES, OPTIONS).unwrap();
    for (page, versions) in model.versions.iter().enumerate() {
        let mut content = vec![0; PAGE];
        if !ftl.read(Lpn(page as u32), &mut content, Cause::Host).unwrap() {
            content.fill(0);
        }
        let known = versions.contains(&content);
        assert!(known, "{policy}: page {page} holds none of its {} versions after {operations}", versions.len());
    }
    cut
}

#[test]
fn flushed_data_survives_a_power_cut_at_every_operation_and_nothing_is_torn() {
    for entry in BUFFERS {
        let mut cuts = 0;
        while cut_after(entry.name, cuts + 1, cuts % 2 == 0) {
            cuts += 1;
        }
        assert!(cuts > 500, "{}: only {cuts} operations", entry.name);
    }
}

fn simulated(policy: &str) -> Ssd<WriteBuffer<PageFtl<NandArray<NoBytes>, AnyPlacement, AnyVictim>>> {
    let geometry = Geometry::simple(BLOCKS, PAGES_PER_BLOCK, PAGE as u32);
    let (placement, victim) = policies();
    let ftl = PageFtl::new(NandArray::without_bytes(geometry, 0, false), placement, victim, LOGICAL_PAGES, OPTIONS);
    Ssd::new(buffered(ftl, policy), false)
}

fn request(op: Op, page: u64, pages: u64) -> Request {
    Request { arrival_ns: 0, offset: page * PAGE as u64, length: pages * PAGE as u64, op }
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
                1 => bytes.trim(offset, length).unwrap(),
                2..=5 => bytes.read(offset, &mut vec![0; length as usize]).unwrap(),
                _ => bytes.write(offset, &vec![7; length as usize]).unwrap(),
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
        let mut random = Random::new(41);
        for turn in 0..5_000u32 {
            if turn % 100 == 0 {
                let pages = 1 + random.below(u64::from(FRAMES)) as u32;
                device.resize(pages).unwrap();
                assert_eq!(device.capacity_pages(), pages);
            }
            device.write(Lpn(random.below(u64::from(LOGICAL_PAGES)) as u32), (), Cause::Host).unwrap();
            assert!(device.used_pages() <= device.capacity_pages(), "{} in turn {turn}", entry.name);
        }
        device.check().unwrap_or_else(|e| panic!("{}: {e}", entry.name));
    }
}

#[test]
fn a_partial_write_merges_in_the_buffer_without_a_flash_read() {
    let mut device = byte_device("lru", FaultPlan::default());
    device.write(0, &[1; PAGE]).unwrap();
    device.write(10, &[2; 5]).unwrap();
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
    assert_eq!(after.buffer.unwrap().padded_pages - before.buffer.unwrap().padded_pages, 7);
}
