//! Speed of the hybrid map on one core: random 4 KiB writes, a sequential fill and, where files are named, real traces.
//!
//! `cargo bench -p isotherm --bench fast -- [TRACE.csv ...]`: each trace is a CSV `ts_ns,op,offset,length` with op R, W, D
//! or F. Each workload is run several times, taking turns; median and best of host page writes a second are printed, with
//! host writes and NAND programs beside them. Runs of one workload must agree on every counter.

use isotherm::build::{Environment, build};
use isotherm::device::Replay;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use std::time::Instant;

const ROUNDS: usize = 5;
const BATCH: usize = 4096;
const PAGE_BYTES: u64 = 4096;

/// A named list of requests, measured from `measured_from` on.
struct Workload {
    name: String,
    logical_bytes: u64,
    requests: Vec<Request>,
    measured_from: usize,
}

/// What one run showed.
#[derive(Clone, Copy)]
struct Run {
    writes_per_second: f64,
    host_pages: u64,
    programs: u64,
}

fn page(op: Op, page: u64) -> Request {
    Request { arrival_ns: 0, offset: page * PAGE_BYTES, length: PAGE_BYTES, op, source: 0, durable: false }
}

fn sequential(pages: u64) -> Workload {
    let requests = (0..2 * pages).map(|i| page(Op::Write, i % pages)).collect();
    Workload { name: "sequential".to_owned(), logical_bytes: pages * PAGE_BYTES, requests, measured_from: 0 }
}

/// A sequential fill, then `count` uniform random writes, of which the second half is measured.
fn random(pages: u64, count: usize) -> Workload {
    let mut random = Random::new(7);
    let mut requests: Vec<Request> = (0..pages).map(|i| page(Op::Write, i)).collect();
    requests.extend((0..count).map(|_| page(Op::Write, random.below(pages))));
    let measured_from = pages as usize + count / 2;
    Workload { name: "random 4 KiB".to_owned(), logical_bytes: pages * PAGE_BYTES, requests, measured_from }
}

fn parse(line: &str) -> Option<Request> {
    let mut fields = line.split(',');
    let arrival_ns = fields.next()?.parse().ok()?;
    let op = match fields.next()? {
        "R" => Op::Read,
        "W" => Op::Write,
        "D" => Op::Trim,
        "F" => Op::Flush,
        _ => return None,
    };
    let (offset, length) = (fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?);
    Some(Request { arrival_ns, offset, length, op, source: 0, durable: false })
}

fn trace(path: &str) -> Workload {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = |(index, line)| parse(line).unwrap_or_else(|| panic!("{path}: line {}: not a request", index + 2));
    let requests: Vec<Request> = text.lines().skip(1).enumerate().map(line).collect();
    let logical_bytes = requests.iter().map(|r| r.offset + r.length).max().unwrap_or(0);
    Workload { name: path.rsplit('/').next().unwrap_or(path).to_owned(), logical_bytes, requests, measured_from: 0 }
}

fn run(workload: &Workload) -> Run {
    let spec = DeviceSpec::from_toml("ftl = \"fast\"", &["device.over_provisioning=10%".to_owned()])
        .expect("the specification is valid");
    let environment = Environment { logical_bytes: workload.logical_bytes, ..Environment::default() };
    let mut device = build(&spec, &environment).expect("the device fits");
    let (before, measured) = workload.requests.split_at(workload.measured_from);
    let submit = |device: &mut Box<dyn Replay>, requests: &[Request]| {
        requests.chunks(BATCH).for_each(|batch| device.submit(batch).expect("the workload fits the device"));
    };
    submit(&mut device, before);
    let start = device.snapshot();
    let clock = Instant::now();
    submit(&mut device, measured);
    let seconds = clock.elapsed().as_secs_f64();
    let end = device.snapshot();
    device.check().expect("every law holds");
    let host_pages = end.host.pages_written - start.host.pages_written;
    let programs = end.medium.programmed().total() - start.medium.programmed().total();
    Run { writes_per_second: host_pages as f64 / seconds, host_pages, programs }
}

fn main() {
    let pages = 1 << 20;
    let mut workloads = vec![sequential(pages), random(pages, 4 << 20)];
    workloads.extend(std::env::args().skip(1).filter(|a| !a.starts_with("--")).map(|path| trace(&path)));
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); workloads.len()];
    for _ in 0..ROUNDS {
        for (workload, runs) in workloads.iter().zip(&mut runs) {
            runs.push(run(workload));
        }
    }
    println!("FAST, 64 pages a block, 10 % over-provisioning, {ROUNDS} rounds, host page writes a second");
    for (workload, runs) in workloads.iter().zip(&mut runs) {
        let first = runs[0];
        assert!(runs.iter().all(|r| (r.host_pages, r.programs) == (first.host_pages, first.programs)));
        runs.sort_by(|a, b| a.writes_per_second.total_cmp(&b.writes_per_second));
        println!(
            "{:<28} {:>8} logical pages  median {:>6.2} M  best {:>6.2} M  {} host pages, {} programs, WA {:.2}",
            workload.name,
            workload.logical_bytes / PAGE_BYTES,
            runs[ROUNDS / 2].writes_per_second / 1e6,
            runs[ROUNDS - 1].writes_per_second / 1e6,
            first.host_pages,
            first.programs,
            first.programs as f64 / first.host_pages as f64
        );
    }
}
