//! Host writes a second under the page-mapped FTL, DFTL and ASA-FTL, and the time of one clustering.
//!
//! 1 Mi logical pages of 4 KiB, blocks of 64 pages, a cache of a tenth of the map's entries for the demand-paged ones.
//! Devices take turns, so that all of them meet the same machine, and their ratio is the median of the ratios of their turns.
//! Each line gives the median rate, the time for one NAND program, and write amplification by cause over the measured turns.
//! `cargo bench --bench map -- uniform .1 asa` runs the traffics, spare factors and FTLs that are named; `clusterings` the clusterings
//! alone. Rates are relative to DFTL's, or to the first FTL's where DFTL is left out.

mod measure;

use isotherm::build::{Environment, build};
use isotherm::cause::Cause;
use isotherm::device::Replay;
use isotherm::hotness::kmeans::{Init, Spacing, centroids, cost};
use isotherm::placement::AsaCounters;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::stats::Snapshot;
use measure::{cpu_ns, median, zipf};

const PAGES: u32 = 1 << 20;
const BATCH: usize = 4096;
/// Half drive writes: the first bring the devices to a steady state.
const TURNS_BEFORE: usize = 4;
const TURNS: usize = 5;
const SPARES: [&str; 5] = [".07", ".1", ".15", ".2", ".28"];

/// A traffic: its name, and the page that it writes next.
type Traffic = (&'static str, fn(&mut Random) -> u64);

const TRAFFICS: [Traffic; 3] = [
    ("uniform", |random| random.below(PAGES.into())),
    ("zipf.99", |random| zipf(random, PAGES.into())),
    ("90/10", |random| {
        let tenth = u64::from(PAGES) / 10;
        if random.chance(0.9) { random.below(tenth) } else { tenth + random.below(u64::from(PAGES) - tenth) }
    }),
];

/// Entries of the map that are cached.
const ENTRIES: u64 = PAGES as u64 / 10;
/// The FTLs and the bytes of their caches: entries, directory and samples.
const FTLS: [(&str, u64); 3] =
    [("page", 1 << 30), ("dftl", ENTRIES * 8 + 4 * 1024), ("asa", ENTRIES * 16 + 4 * 2048 + 16_384)];
/// The FTL that rates are relative to.
const BASE: &str = "dftl";

struct Contestant {
    name: &'static str,
    device: Box<dyn Replay>,
    nanoseconds: Vec<f64>,
    before: Snapshot,
}

fn contestant(name: &'static str, spare: &str, cache_bytes: u64) -> Contestant {
    let sets = [
        format!("ftl.name={name}"),
        format!("device.spare={spare}"),
        format!("dram.cache_bytes={cache_bytes}"),
        "timing.mode=none".to_owned(),
    ];
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(PAGES) * 4096, seed: 1, ..Environment::default() };
    let mut device = build(&spec, &environment).unwrap();
    for first in (0..PAGES).step_by(BATCH) {
        device.submit(&(first..first + BATCH as u32).map(|page| write(page.into())).collect::<Vec<_>>()).unwrap();
    }
    Contestant { name, device, nanoseconds: Vec::new(), before: Snapshot::default() }
}

fn write(page: u64) -> Request {
    Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write, source: 0, durable: false }
}

fn replay(traffic: Traffic, spare: &str, is_chosen: impl Fn(&str) -> bool) {
    let mut contestants: Vec<Contestant> = FTLS
        .iter()
        .filter(|(name, _)| is_chosen(name))
        .map(|(name, cache_bytes)| contestant(name, spare, *cache_bytes))
        .collect();
    let mut random = Random::new(3);
    for turn in 0..TURNS_BEFORE + TURNS {
        let requests: Vec<Request> = (0..PAGES / 2).map(|_| write((traffic.1)(&mut random))).collect();
        for contestant in &mut contestants {
            if turn == TURNS_BEFORE {
                contestant.before = contestant.device.snapshot();
            }
            let start = cpu_ns();
            for batch in requests.chunks(BATCH) {
                contestant.device.submit(batch).unwrap();
            }
            if turn >= TURNS_BEFORE {
                contestant.nanoseconds.push((cpu_ns() - start) / requests.len() as f64);
            }
        }
    }
    for contestant in &contestants {
        let base = contestants.iter().find(|other| other.name == BASE).unwrap_or(&contestants[0]);
        print(traffic.0, spare, contestant, base);
    }
}

/// One line on `contestant`, whose speed is also told relative to `base`.
fn print(traffic: &str, spare: &str, contestant: &Contestant, base: &Contestant) {
    contestant.device.check().unwrap();
    let (end, before) = (contestant.device.snapshot(), &contestant.before);
    let host = (end.host.pages_written - before.host.pages_written) as f64;
    let programmed = end.medium.programmed().since(&before.medium.programmed());
    let by_cause = [Cause::Gc, Cause::Translation, Cause::TranslationGc].map(|cause| programmed[cause] as f64 / host);
    let ns = median(contestant.nanoseconds.iter().copied());
    let amplification = programmed.total() as f64 / host;
    let relative = median(base.nanoseconds.iter().zip(&contestant.nanoseconds).map(|(base, own)| base / own));
    let clusterings = |snapshot: &Snapshot| snapshot.sections.get::<AsaCounters>().map_or(0, |asa| asa.clusterings);
    println!(
        "{traffic:8} spare {spare:4} {:5} {:6.2} M/s, {relative:5.2} of {}, {:5.1} ns a program; WA {amplification:5.2} \
         (gc {:.2}, translation {:.2}, its gc {:.2}), {} clusterings",
        contestant.name,
        1e3 / ns,
        base.name,
        ns / amplification,
        by_cause[0],
        by_cause[1],
        by_cause[2],
        clusterings(&end) - clusterings(before),
    );
}

/// Time to cluster recency as it is on a device under 90/10 traffic.
fn cluster(samples: usize) {
    let mut random = Random::new(5);
    let exponential = |random: &mut Random, mean: f64| (-random.unit().max(1e-12).ln() * mean).ceil() as u32;
    let values: Vec<u32> =
        (0..samples).map(|i| exponential(&mut random, if i % 10 == 0 { 1.2e5 } else { 9.4e6 })).collect();
    let from = |init| centroids(&values, 3, init, Spacing::Relative);
    let least = cost(&values, &from(Init::Exact));
    for (name, init) in [("sorted", Init::Sorted), ("exact", Init::Exact)] {
        let mut found = Vec::new();
        let times = (0..9).map(|_| {
            let start = cpu_ns();
            found = from(init);
            (cpu_ns() - start) / 1e6
        });
        let time = median(times);
        println!("cluster {samples:8} {name:7} {time:8.3} ms, {:.3} of the least cost", cost(&values, &found) / least);
    }
}

fn main() {
    let names: Vec<String> = std::env::args().skip(1).filter(|name| name != "--bench").collect();
    let chosen = |name: &str, all: &[&str]| {
        !all.iter().any(|other| names.iter().any(|n| n == other)) || names.iter().any(|n| n == name)
    };
    for samples in [1000, 16_384, 1_000_000] {
        cluster(samples);
    }
    if names.iter().any(|name| name == "clusterings") {
        return;
    }
    for traffic in TRAFFICS {
        for spare in SPARES {
            if chosen(traffic.0, &TRAFFICS.map(|t| t.0)) && chosen(spare, &SPARES) {
                replay(traffic, spare, |name| chosen(name, &FTLS.map(|ftl| ftl.0)));
            }
        }
    }
}
