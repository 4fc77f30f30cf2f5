//! Speed of the DRAM in front of a demand-paged map, on one core: 16 MiB, 1 Mi logical pages, 4 KiB writes.
//!
//! `cargo bench -p isotherm --bench dram`: every variant is run several times, taking turns; median and best of host page
//! writes a second of processor time are printed, with host writes and NAND programs beside them. Runs of one variant agree on every counter.

use isotherm::build::{Environment, build};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

const ROUNDS: usize = 3;
const BATCH: usize = 4096;
const PAGE_BYTES: u64 = 4096;
const PAGES: u64 = 1 << 20;
const WRITES: usize = 1_000_000;

/// Workloads by name: the exponent that skews them.
const WORKLOADS: [(&str, i32); 2] = [("uniform", 1), ("skewed", 6)];
const VARIANTS: [&[&str]; 8] = [
    &["dram.split=50%"],
    &["dram.split=adaptive_paper"],
    &["dram.split=least_cost"],
    &["dram.split=50%", "dram.buffer=fifo"],
    &["dram.split=50%", "dram.buffer=cflru"],
    &["dram.split=50%", "dram.buffer=bplru:padding=false"],
    &["dram.split=50%", "dram.buffer=lb_clock"],
    &["dram.split=50%", "dram.buffer=arc"],
];

/// Processor time of this thread: what other processes take does not count.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Host writes a second of processor time over the second half of `requests`, host pages and programs there.
fn run(sets: &[&str], fill: &[Request], requests: &[Request]) -> (f64, u64, u64) {
    let base = ["ftl.name=dftl", "dram.size=16MiB", "dram.power_loss_protection=true"];
    let sets: Vec<String> = base.iter().chain(sets).map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).expect("a valid specification");
    let environment = Environment { logical_bytes: PAGES * PAGE_BYTES, seed: 1, ..Environment::default() };
    let mut device = build(&spec, &environment).expect("a device that can be built");
    let (warm, measured) = requests.split_at(requests.len() / 2);
    for batch in fill.chunks(BATCH).chain(warm.chunks(BATCH)) {
        device.submit(batch).expect("room for every write");
    }
    let before = device.snapshot();
    let start = processor_seconds();
    for batch in measured.chunks(BATCH) {
        device.submit(batch).expect("room for every write");
    }
    let seconds = processor_seconds() - start;
    let after = device.snapshot();
    let programs = after.medium.programmed().total() - before.medium.programmed().total();
    (measured.len() as f64 / seconds, after.host.pages_written - before.host.pages_written, programs)
}

fn main() {
    let write = |page: u64| Request {
        arrival_ns: 0,
        offset: page * PAGE_BYTES,
        length: PAGE_BYTES,
        op: Op::Write,
        source: 0,
        durable: false,
    };
    let fill: Vec<Request> = (0..PAGES).map(write).collect();
    println!("{PAGES} logical pages, 16 MiB of DRAM, dftl, {} writes measured, {ROUNDS} rounds", WRITES / 2);
    for (name, skew) in WORKLOADS {
        let mut random = Random::new(7);
        let pages = (0..WRITES).map(|_| (random.unit().powi(skew) * PAGES as f64) as u64 * 40_503 % PAGES);
        let requests: Vec<Request> = pages.map(write).collect();
        let mut runs = vec![Vec::new(); VARIANTS.len()];
        for _ in 0..ROUNDS {
            for (variant, runs) in VARIANTS.iter().zip(&mut runs) {
                runs.push(run(variant, &fill, &requests));
            }
        }
        for (variant, runs) in VARIANTS.iter().zip(&mut runs) {
            assert!(runs.iter().all(|r| (r.1, r.2) == (runs[0].1, runs[0].2)), "runs of {variant:?} differ");
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (median, best) = (runs[ROUNDS / 2].0 / 1e6, runs[ROUNDS - 1].0 / 1e6);
            let (host, programs) = (runs[0].1, runs[0].2);
            println!(
                "{name:8} {:44} median {median:6.2} M/s, best {best:6.2} M/s, {host} host pages, {programs} programs",
                variant.join(" ")
            );
        }
    }
}
