//! Host writes a second under the page-mapped FTL, DFTL and ASA-FTL, and the time of one clustering.
//!
//! 1 Mi logical pages of 4 KiB, blocks of 64 pages, a cache of a tenth of the map's entries for the demand-paged ones.
//! Devices take turns, so that all of them meet the same machine; each line gives the median and the best of the turns, with
//! what explains it. Time is the processor time of this thread, since other work may share the machine.

use isotherm::build::{Environment, build};
use isotherm::device::Device;
use isotherm::hotness::kmeans::{Clusterer, Init};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use std::time::{Duration, Instant};

const PAGES: u32 = 1 << 20;
const BATCH: usize = 4096;
const TURNS: usize = 5;

/// Processor time of this thread where the system tells it, else time on the wall.
fn busy(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// A traffic: its name, and the page that it writes next.
type Traffic = (&'static str, fn(&mut Random) -> u64);

const TRAFFICS: [Traffic; 3] = [
    ("uniform", |random| random.below(PAGES.into())),
    ("90/10", |random| {
        let tenth = u64::from(PAGES) / 10;
        if random.chance(0.9) { random.below(tenth) } else { tenth + random.below(u64::from(PAGES) - tenth) }
    }),
    ("80/20 runs of 8", |random| {
        let fifth = u64::from(PAGES) / 5;
        let page = if random.chance(0.8) { random.below(fifth) } else { random.below(PAGES.into()) };
        page & !7
    }),
];

struct Contestant {
    name: String,
    device: Box<dyn Device>,
    rates: Vec<f64>,
}

fn contestant(ftl: &str, spare: &str, cache_bytes: u64) -> Contestant {
    let sets = [
        format!("ftl.name={ftl}"),
        format!("device.spare={spare}"),
        format!("dram.cache_bytes={cache_bytes}"),
        "timing.mode=none".to_owned(),
    ];
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, future: None };
    let mut device = build(&spec, &environment).unwrap();
    for first in (0..PAGES).step_by(BATCH) {
        device.submit(&(first..first + BATCH as u32).map(|page| write(page.into(), 1)).collect::<Vec<_>>()).unwrap();
    }
    Contestant { name: ftl.to_owned(), device, rates: Vec::new() }
}

fn write(page: u64, pages: u64) -> Request {
    Request { arrival_ns: 0, offset: page * 4096, length: pages * 4096, op: Op::Write }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn replay(traffic: Traffic, spare: &str) {
    let entries = u64::from(PAGES) / 10;
    let mut contestants = [
        contestant("page", spare, 1 << 30),
        contestant("dftl", spare, entries * 8 + 4 * 1024),
        contestant("asa", spare, entries * 16 + 4 * 2048 + 16_384),
    ];
    let length = if traffic.0.contains("runs") { 8 } else { 1 };
    // Two drive writes to a steady state, then the turns.
    let mut random = Random::new(3);
    for turn in 0..TURNS + 4 {
        let requests: Vec<Request> =
            (0..u64::from(PAGES) / 2 / length).map(|_| write((traffic.1)(&mut random), length)).collect();
        for contestant in &mut contestants {
            let wall = Instant::now();
            let before = busy(wall);
            for batch in requests.chunks(BATCH) {
                contestant.device.submit(batch).unwrap();
            }
            let seconds = (busy(wall) - before).as_secs_f64();
            if turn >= 4 {
                contestant.rates.push((requests.len() as u64 * length) as f64 / seconds / 1e6);
            }
        }
    }
    for Contestant { name, device, rates } in &mut contestants {
        device.check().unwrap();
        let end = device.snapshot();
        let (median, best) = (median(rates), rates.last().copied().unwrap_or_default());
        let hits = end.mapping.map_or(100.0, |m| 100.0 * m.hits as f64 / (m.hits + m.misses) as f64);
        println!(
            "{:16} spare {spare}  {name:5} {median:6.2} M/s, best {best:6.2}; WA {:.2}, hits {hits:.0} %, {} clusterings",
            traffic.0,
            end.write_amplification(),
            end.asa.map_or(0, |asa| asa.clusterings),
        );
    }
}

/// Time to cluster recency as it is on a device under 90/10 traffic.
fn cluster(samples: usize) {
    let mut random = Random::new(5);
    let exponential = |random: &mut Random, mean: f64| (-random.unit().max(1e-12).ln() * mean).ceil();
    let values: Vec<f64> =
        (0..samples).map(|i| exponential(&mut random, if i % 10 == 0 { 1.2e5 } else { 9.4e6 })).collect();
    let mut clusterer = Clusterer::default();
    for (name, init) in [("sorted", Init::Sorted), ("exact", Init::Exact)] {
        let mut times = Vec::new();
        let mut cost = 0.0;
        for _ in 0..9 {
            let mut values = values.clone();
            let start = Instant::now();
            cost = clusterer.cluster(&mut values, 3, init).cost;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let best = clusterer.cluster(&mut values.clone(), 3, Init::Exact).cost;
        let median = median(&mut times);
        println!(
            "cluster {samples:8} {name:7} {median:8.3} ms, best {:8.3}; cost {:.3} of the optimum",
            times[0],
            cost / best
        );
    }
}

fn main() {
    for samples in [1000, 16_384, 1_000_000] {
        cluster(samples);
    }
    for traffic in TRAFFICS {
        for spare in ["0.1", "0.28"] {
            replay(traffic, spare);
        }
    }
}
