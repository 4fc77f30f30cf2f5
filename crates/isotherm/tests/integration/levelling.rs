//! Static wear levelling: what it keeps to, what it costs, and what it leaves alone.

use isotherm::build::{Environment, build};
use isotherm::cause::{ByCause, Cause};
use isotherm::device::Replay;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

const PAGE: u64 = 4096;

fn device(logical_bytes: u64, sets: &[&str]) -> Box<dyn Replay> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    build(&spec, &Environment { logical_bytes, seed: 1, ..Environment::default() }).unwrap()
}

fn request(op: Op, page: u64, arrival_ns: u64) -> Request {
    Request { arrival_ns, offset: page * PAGE, length: PAGE, op, source: 0, durable: false }
}

/// Fills 8192 pages in order, then overwrites the first 1024 at random, one write every `interval_ns`. Returns how far apart erases are,
/// and what was programmed.
fn hot_eighth(sets: &[&str], writes: u64, interval_ns: u64) -> (u32, ByCause) {
    let mut device = device(8192 * PAGE, sets);
    let mut random = Random::new(5);
    let pages = (0..8192).chain((0..writes).map(|_| random.below(1024)));
    device
        .submit(&pages.zip(0..).map(|(page, at)| request(Op::Write, page, at * interval_ns)).collect::<Vec<_>>())
        .unwrap();
    device.check().unwrap();
    let wear = device.wear();
    (wear.max - wear.min, device.snapshot().medium.programmed())
}

#[test]
fn every_ftl_keeps_to_the_threshold_and_copies_each_cold_block_once_in_a_while() {
    const THRESHOLD: u32 = 40;
    let cases = ["single", "host_gc", "dac", "multilog", "midas", "isotherm"].map(|name| format!("placement={name}"));
    let ftls = ["ftl=dftl:cache=32KiB", "ftl=asa:cache=32KiB", "ftl=fast:log_blocks=8"].map(str::to_owned);
    for case in cases.into_iter().chain(ftls) {
        let run = |leveling: &str| {
            let threshold = format!("wear.threshold={THRESHOLD}");
            hot_eighth(&[leveling, &threshold, "device.over_provisioning=0.2", &case], 1_000_000, 0)
        };
        let (spread, with) = run("wear.leveling=true");
        let (without_levelling, without) = run("wear.leveling=false");
        let costs = with[Cause::Wear] as f64 / with.total() as f64;
        let more = with.total() as f64 / without.total() as f64;
        assert!(without_levelling > 5 * THRESHOLD && without[Cause::Wear] == 0, "{case}: {without_levelling}");
        assert!(spread <= THRESHOLD, "{case}: blocks are {spread} erases apart");
        // A block is copied once for each time that others come 35 erases ahead of it.
        assert!((0.005..0.03).contains(&costs), "{case}: {costs} of all programs");
        assert!(more < 1.05, "{case}: programs grow by {more}");
    }
}

#[test]
fn cleaning_in_idle_time_levels_too() {
    let sets =
        ["timing.mode=open", "gc.idle=true", "device.over_provisioning=0.5", "placement=host_gc", "wear.threshold=20"];
    // Long enough apart for a collection between two writes.
    let (spread, programmed) = hot_eighth(&sets, 400_000, 10_000_000);
    assert!(spread <= 22 && programmed[Cause::Wear] > 0, "blocks are {spread} erases apart");
}

#[test]
fn data_that_is_overwritten_within_a_drive_write_is_left_alone() {
    let sets = [
        "placement=isotherm",
        "gc.victim=cat",
        "device.over_provisioning=0.15",
        "device.pages_per_block=32",
        "wear.threshold=20",
    ];
    let mut device = device(4096 * PAGE, &sets);
    device.submit(&(0..1_000_000).map(|at| request(Op::Write, at % 4096, 0)).collect::<Vec<_>>()).unwrap();
    device.check().unwrap();
    let programmed = device.snapshot().medium.programmed();
    assert!(programmed.total() < 1_010_000, "{programmed:?}");
}

/// Devices with hardly a block to spare, on which the rest of the levelled block is the last room: full blocks that are hot and cold, and
/// pages that are trimmed and written again.
#[test]
fn a_device_of_a_few_blocks_is_not_full_because_of_levelling() {
    let mut levelled = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let pages = 48 + random.below(177);
        let threshold = format!("wear.threshold={}", 1 + random.below(3));
        let spare = ["device.over_provisioning=0.07", "device.over_provisioning=0.2"][random.below(2) as usize];
        let mut device = device(pages * PAGE, &[spare, "device.pages_per_block=16", &threshold]);
        let hot = 1 + random.below(pages / 2);
        let (mut written, mut trimmed) = (0, 0);
        let fill = (0..pages).map(|page| request(Op::Write, page, 0));
        let mixed = (0..6000).map(|_| match random.below(10) {
            0 => {
                trimmed += 1;
                request(Op::Trim, trimmed % pages, 0)
            }
            1 => {
                written += 1;
                request(Op::Write, written % pages, 0)
            }
            _ => request(Op::Write, random.below(hot), 0),
        });
        let requests: Vec<_> = fill.chain(mixed).collect();
        device
            .submit(&requests)
            .unwrap_or_else(|error| panic!("seed {seed}, {pages} pages, {threshold}, {spare}: {error}"));
        device.check().unwrap();
        levelled += u64::from(device.snapshot().medium.programmed()[Cause::Wear] > 0);
    }
    assert!(levelled > 200, "{levelled} devices were levelled");
}

#[test]
fn greedy_takes_turns_among_equals() {
    // A tenth of the pages on an empty device: nearly every victim is empty.
    let sets = ["wear.leveling=false", "device.over_provisioning=0.12"];
    let mut device = device(16_384 * PAGE, &sets);
    let mut random = Random::new(3);
    device.submit(&(0..2_000_000).map(|_| request(Op::Write, random.below(1638), 0)).collect::<Vec<_>>()).unwrap();
    let wear = device.wear();
    assert!(wear.max - wear.min <= 20 && wear.mean > 100.0, "{wear:?}");
}
