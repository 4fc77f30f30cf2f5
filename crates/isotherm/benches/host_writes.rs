//! Speed of the simulator beside a bare loop that touches the same tables.
//!
//! One run, interleaved: for each size, workload and spare factor, slices of the simulation alternate with slices of the
//! bare loop, so that a machine whose speed drifts changes both. Printed: median ns per host write and per NAND program,
//! the bare loop's ns per program, the ratio, and the ns per page of a loop that only reads the same stream of page numbers. Drawing
//! the pages is in none of them: it is done before the clock starts. `cargo bench --bench host_writes -- [1M|16M|256M]
//! [0.07|0.20|0.25] [uniform|zipf]` chooses sizes, spare factors and workloads.

mod measure;

use isotherm::build::{Environment, build, plan};
use isotherm::device::Replay;
use isotherm::memory;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use measure::{cpu_ns, median, zipf};
use std::hint::black_box;

const PAGE_BYTES: u64 = 4096;
const BATCH: usize = 4096;
const SLICES: usize = 15;

/// Draws the pages of a workload.
enum Workload {
    Uniform,
    /// Zipf with exponent 0.99.
    Zipf,
}

impl Workload {
    fn name(&self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf .99",
        }
    }

    fn page(&self, random: &mut Random, pages: u64) -> u64 {
        match self {
            Self::Uniform => random.below(pages),
            Self::Zipf => zipf(random, pages),
        }
    }
}

/// The tables of the simulator, and nothing but their traffic: what no simulator can do without.
struct BareLoop {
    map: Vec<u32>,
    owners: Vec<u32>,
    valid: Vec<u16>,
    next: usize,
}

impl BareLoop {
    fn new(logical: usize, physical: usize) -> Self {
        let mut map: Vec<u32> = memory::table(logical, 0);
        map.iter_mut().enumerate().for_each(|(lpn, at)| *at = lpn as u32);
        Self { map, owners: memory::table(physical, 0), valid: memory::table(physical / 64 + 1, 64), next: 0 }
    }

    fn write(&mut self, lpns: &[u32]) {
        for (i, lpn) in lpns.iter().enumerate() {
            if let Some(ahead) = lpns.get(i + 24) {
                memory::prefetch(&self.map, *ahead as usize);
            }
            if let Some(ahead) = lpns.get(i + 10) {
                memory::prefetch(&self.valid, self.map[*ahead as usize] as usize / 64);
            }
            let old = std::mem::replace(&mut self.map[*lpn as usize], self.next as u32);
            self.owners[self.next] = *lpn;
            let valid = &mut self.valid[old as usize / 64];
            *valid = valid.wrapping_sub(1);
            self.next = if self.next + 1 == self.owners.len() { 0 } else { self.next + 1 };
        }
    }
}

/// Reads a stream of page numbers and does nothing with them but to add them up: what no loop over the stream can do without.
fn read(lpns: &[u32]) -> u32 {
    lpns.iter().fold(0, |sum, lpn| sum.wrapping_add(*lpn))
}

fn requests(workload: &Workload, random: &mut Random, pages: u64) -> Vec<Request> {
    let write = |page: u64| Request {
        arrival_ns: 0,
        offset: page * PAGE_BYTES,
        length: PAGE_BYTES,
        op: Op::Write,
        source: 0,
        durable: false,
    };
    (0..BATCH).map(|_| write(workload.page(random, pages))).collect()
}

/// Fills the device once in order, then overwrites it until collections run steadily: on 256 Mi pages that takes a minute.
fn warm_up(device: &mut dyn Replay, workload: &Workload, random: &mut Random, pages: u64) {
    let mut page = 0;
    while page < pages {
        let batch: Vec<Request> = (page..(page + BATCH as u64).min(pages))
            .map(|p| Request {
                arrival_ns: 0,
                offset: p * PAGE_BYTES,
                length: PAGE_BYTES,
                op: Op::Write,
                source: 0,
                durable: false,
            })
            .collect();
        page += batch.len() as u64;
        device.submit(&batch).expect("the device has room");
    }
    for _ in 0..(pages as f64 * 2.5) as usize / BATCH {
        device.submit(&requests(workload, random, pages)).expect("the device has room");
    }
}

fn measure(pages: u64, spare: f64, workload: &Workload) {
    let sets = [format!("device.spare={spare}"), "timing.mode=none".to_owned(), "wear.leveling=false".to_owned()];
    let spec = DeviceSpec::from_toml("", &sets).expect("the specification is valid");
    let environment = Environment { logical_bytes: pages * PAGE_BYTES, seed: 1, ..Environment::default() };
    let plan = plan(&spec, &environment).expect("the specification is valid");
    let mut device = build(&spec, &environment).expect("the specification is valid");
    let mut bare = BareLoop::new(pages as usize, plan.geometry.pages() as usize);
    let mut random = Random::new(42);
    warm_up(device.as_mut(), workload, &mut random, pages);
    let batches = if pages > 64 << 20 { 256 } else { 64 };
    let (mut per_write, mut per_program, mut per_bare, mut per_read) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let first = device.snapshot();
    for _ in 0..SLICES {
        let work: Vec<Vec<Request>> = (0..batches).map(|_| requests(workload, &mut random, pages)).collect();
        let before = device.snapshot().medium.programmed().total();
        let start = cpu_ns();
        for batch in &work {
            device.submit(batch).expect("the device has room");
        }
        let elapsed_ns = cpu_ns() - start;
        let programs = device.snapshot().medium.programmed().total() - before;
        per_write.push(elapsed_ns / (batches * BATCH) as f64);
        per_program.push(elapsed_ns / programs as f64);
        let lpns: Vec<Vec<u32>> =
            work.iter().map(|b| b.iter().map(|r| (r.offset / PAGE_BYTES) as u32).collect()).collect();
        let start = cpu_ns();
        lpns.iter().for_each(|batch| bare.write(batch));
        per_bare.push((cpu_ns() - start) / (batches * BATCH) as f64);
        let start = cpu_ns();
        black_box(lpns.iter().map(|batch| read(batch)).fold(0, u32::wrapping_add));
        per_read.push((cpu_ns() - start) / (batches * BATCH) as f64);
    }
    let last = device.snapshot();
    let programs = last.medium.programmed().total() - first.medium.programmed().total();
    let writes = last.host.pages_written - first.host.pages_written;
    // Slices next to each other ran on the same machine, so to speak: their ratio is steadier than that of the medians.
    let ratio = median(per_program.iter().zip(&per_bare).map(|(program, bare)| program / bare));
    let (write, program, bare_ns, read_ns) =
        (median(per_write), median(per_program), median(per_bare), median(per_read));
    println!(
        "{:>5} Mi pages  Sf {spare:.2}  {:<8}  WA {:>6.3}  {write:>7.1} ns/host write ({:>5.1} M/s)  {program:>5.1} ns/program ({:>5.1} M/s)  bare {bare_ns:>5.1} ns  ratio {:.2}  read {read_ns:.2} ns",
        pages >> 20,
        workload.name(),
        programs as f64 / writes as f64,
        1e3 / write,
        1e3 / program,
        ratio,
    );
}

/// Whether the words of the command line leave `name` in: where some of its kind are named, it must be one of them.
fn is_chosen(words: &[String], kind: &[&str], name: &str) -> bool {
    let mut named = words.iter().filter(|word| kind.contains(&word.as_str())).peekable();
    named.peek().is_none() || named.any(|word| word == name)
}

fn main() {
    const SIZES: [&str; 3] = ["1M", "16M", "256M"];
    const SPARES: [&str; 3] = ["0.07", "0.20", "0.25"];
    const WORKLOADS: [&str; 2] = ["uniform", "zipf"];
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (size, pages) in SIZES.into_iter().zip([1u64 << 20, 16 << 20, 256 << 20]) {
        for (spare, share) in SPARES.into_iter().zip([0.07, 0.20, 0.25]) {
            for (name, workload) in WORKLOADS.into_iter().zip([Workload::Uniform, Workload::Zipf]) {
                if is_chosen(&words, &SIZES, size)
                    && is_chosen(&words, &SPARES, spare)
                    && is_chosen(&words, &WORKLOADS, name)
                {
                    measure(pages, share, &workload);
                }
            }
        }
    }
}
