//! Speed of the log: over nothing, and over a page-mapped SSD. One core.
//!
//! Slices of both run in turn, so that a machine whose speed drifts changes both. Printed: median and best millions of host
//! writes per second of processor time. `cargo bench -p isotherm-sfs`.

use isotherm::build::Environment;
use isotherm::device::Replay;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm_sfs::snapshot::LogSnapshot;
use isotherm_sfs::{SystemSpec, build};

const BLOCKS: u32 = 1 << 20;
const BATCH: usize = 4096;
const SLICES: usize = 15;
const BATCHES_IN_SLICE: usize = 128;

fn device(below: &str, segment: &str) -> Box<dyn Replay> {
    let sets = [
        format!("log.name=sfs:segment={segment}"),
        format!("log.below={below}"),
        "log.utilisation=0.85".to_owned(),
        "device.pages_per_block=256".to_owned(),
        "timing.mode=none".to_owned(),
        "wear.leveling=false".to_owned(),
    ];
    let spec = SystemSpec::from_toml("", &sets).expect("the specification is valid");
    let environment = Environment { logical_bytes: u64::from(BLOCKS) * 4096, seed: 1, ..Environment::default() };
    build(&spec, &environment).expect("the specification is valid")
}

/// Half of the blocks active, Zipf-like with exponent 0.99, scattered; the rest is filler.
fn requests(random: &mut Random) -> Vec<Request> {
    let active = BLOCKS / 2;
    let top = f64::from(active).powf(0.01);
    let block = |random: &mut Random| {
        let rank = (1.0 + random.unit() * (top - 1.0)).powf(100.0) as u32 - 1;
        rank.min(active - 1).wrapping_mul(0x9E37_79B1) & (active - 1)
    };
    let write = |block: u32| Request {
        arrival_ns: 0,
        offset: u64::from(block) * 4096,
        length: 4096,
        op: Op::Write,
        source: 0,
        durable: false,
    };
    (0..BATCH).map(|_| write(block(random))).collect()
}

/// Nanoseconds of processor time that this thread has used, so that other work on the machine does not count.
fn cpu_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn main() {
    let mut random = Random::new(42);
    let mut stacks: Vec<(String, Box<dyn Replay>, Vec<f64>)> = [("none", "32MiB"), ("none", "8MiB"), ("page", "8MiB")]
        .map(|(below, segment)| (format!("below {below}, segment {segment}"), device(below, segment), Vec::new()))
        .into();
    for (_, device, _) in &mut stacks {
        for first in (0..BLOCKS).rev().step_by(64) {
            let from = u64::from(first - 63) * 4096;
            device
                .submit(&[Request {
                    arrival_ns: 0,
                    offset: from,
                    length: 64 * 4096,
                    op: Op::Write,
                    source: 0,
                    durable: false,
                }])
                .expect("room");
        }
        for _ in 0..3 * BLOCKS as usize / BATCH {
            device.submit(&requests(&mut random)).expect("room");
        }
    }
    for _ in 0..SLICES {
        let batches: Vec<_> = (0..BATCHES_IN_SLICE).map(|_| requests(&mut random)).collect();
        for (_, device, speeds) in &mut stacks {
            let start = cpu_ns();
            batches.iter().for_each(|batch| device.submit(batch).expect("room"));
            speeds.push((BATCHES_IN_SLICE * BATCH) as f64 * 1e3 / (cpu_ns() - start));
        }
    }
    for (name, device, speeds) in &mut stacks {
        device.check().expect("the laws hold");
        speeds.sort_by(f64::total_cmp);
        let snapshot = device.snapshot();
        let log = snapshot.sections.get::<LogSnapshot>().expect("it is a log");
        println!(
            "{name:<28} median {:.2} M writes/s, best {:.2}; WA of the log {:.3}, end to end {:.3}",
            speeds[SLICES / 2],
            speeds[SLICES - 1],
            log.counters.write_amplification(),
            log.write_amplification_end_to_end()
        );
    }
}
