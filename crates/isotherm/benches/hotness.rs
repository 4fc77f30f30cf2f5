//! What a verdict and an aging step of each hotness scheme cost.
//!
//!     cargo bench -p isotherm --bench hotness
//!
//! Schemes take turns (one round each, again and again), so that a slow moment of the machine hits all of them; the table
//! gives the median and the best round. A check is one observed page write with its share of the aging steps; the
//! reference workload sends 80 % of the writes to 20 % of the pages. The last line runs every scheme over each batch in
//! turn, as a measurement of all of them on one pass does.
//!
//! For instructions, run one scheme alone under a counter, and the workload without a scheme, and divide the difference
//! by the writes:
//!
//!     cargo bench -p isotherm --bench hotness --no-run        # prints the path of the binary
//!     perf stat -e instructions:u BINARY --scheme mbf --writes 4000000
//!     perf stat -e instructions:u BINARY --scheme none --writes 4000000
//!
//! (`valgrind --tool=callgrind` counts the same where there are no counters.) `--decays N` adds that many aging steps.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use isotherm::address::Lpn;
use isotherm::future::Future;
use isotherm::hotness::{AnyHotness, Hotness, HotnessContext, Temperature, build_scheme};
use isotherm::random::Random;

/// Pages of the address space: 1 GiB of 4 KiB pages, as in the captures.
const PAGES: u32 = 1 << 18;
/// Page writes of one round.
const ROUND_WRITES: usize = 1 << 20;
/// Rounds of each scheme.
const ROUNDS: usize = 11;
/// Aging steps of one round.
const ROUND_DECAYS: u32 = 4096;
/// Writes that every scheme judges before the next scheme's turn on the shared pass.
const BATCH: usize = 4096;

/// MBF and MHF at the paper's sizes, their variants, and every other scheme with its defaults.
const SCHEMES: &[&str] = &[
    "mbf",
    "mbf:shortcut=off",
    "mbf:filters=8,filter_bits=1024,decay=256,threshold=scaled",
    "mhf",
    "mhf:decay_by=counters",
    "mhf:increment=minimum",
    "wdac",
    "dam",
    "two_level_lru",
    "fms",
    "dac",
    "oracle",
];

/// The schemes of the shared pass: each entry of the registry once.
const ONE_OF_EACH: &[&str] = &["mbf", "mhf", "wdac", "dam", "two_level_lru", "fms", "dac", "oracle"];

fn workload(writes: usize) -> Vec<Lpn> {
    let mut random = Random::new(42);
    let page = |random: &mut Random| {
        let hot = PAGES / 5;
        // Odd multiplier: the hot pages lie scattered over the address space.
        let rank = if random.chance(0.8) {
            random.below(hot.into())
        } else {
            u64::from(hot) + random.below((PAGES - hot).into())
        };
        Lpn((rank as u32).wrapping_mul(0x9E37_79B1) & (PAGES - 1))
    };
    (0..writes).map(|_| page(&mut random)).collect()
}

fn build(name: &str, context: &HotnessContext) -> AnyHotness {
    build_scheme(&name.parse().expect("a scheme of this file"), context).expect("a scheme of this file")
}

/// Nanoseconds per check of one round; the scheme starts empty, which 1 Mi writes outweigh.
fn time_checks(scheme: &mut AnyHotness, writes: &[Lpn], verdicts: &mut [Temperature]) -> f64 {
    let start = Instant::now();
    for batch in writes.chunks(BATCH) {
        scheme.observe_all(batch, &mut verdicts[..batch.len()]);
        black_box(&verdicts);
    }
    start.elapsed().as_nanos() as f64 / writes.len() as f64
}

/// Nanoseconds per aging step.
fn time_decays(scheme: &mut AnyHotness) -> f64 {
    let start = Instant::now();
    for _ in 0..ROUND_DECAYS {
        black_box(&mut *scheme).decay();
    }
    start.elapsed().as_nanos() as f64 / f64::from(ROUND_DECAYS)
}

fn median_and_best(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    (samples[samples.len() / 2], samples[0])
}

fn compare_all() {
    let writes = workload(ROUND_WRITES);
    let context = HotnessContext { logical_pages: PAGES, future: Some(Arc::new(Future::of(&writes, PAGES))) };
    let mut verdicts = vec![Temperature::COLD; BATCH];
    let mut checks = vec![Vec::new(); SCHEMES.len()];
    let mut decays = vec![Vec::new(); SCHEMES.len()];
    let mut shared_pass = Vec::new();
    for _ in 0..ROUNDS {
        for (i, name) in SCHEMES.iter().enumerate() {
            let mut scheme = build(name, &context);
            checks[i].push(time_checks(&mut scheme, &writes, &mut verdicts));
            decays[i].push(time_decays(&mut scheme));
        }
        let mut schemes: Vec<_> = ONE_OF_EACH.iter().map(|name| build(name, &context)).collect();
        let start = Instant::now();
        for batch in writes.chunks(BATCH) {
            for scheme in &mut schemes {
                scheme.observe_all(batch, &mut verdicts[..batch.len()]);
                black_box(&verdicts);
            }
        }
        shared_pass.push(start.elapsed().as_nanos() as f64 / writes.len() as f64);
    }
    println!("{PAGES} pages, {ROUND_WRITES} writes a round, {ROUNDS} rounds; ns: median (best)");
    println!("{:58} {:>16} {:>12} {:>20} {:>10}", "scheme", "check", "M checks/s", "decay", "bytes");
    for (i, name) in SCHEMES.iter().enumerate() {
        let (check, check_best) = median_and_best(&mut checks[i]);
        let (decay, decay_best) = median_and_best(&mut decays[i]);
        let scheme = build(name, &context);
        let decay = match scheme.decay_interval() {
            Some(_) => format!("{decay:.1} ({decay_best:.1})"),
            None => "-".to_owned(),
        };
        let bytes = scheme.memory_bytes();
        println!("{name:58} {check:8.2} ({check_best:5.2}) {:12.1} {decay:>20} {bytes:10}", 1e3 / check);
    }
    let (pass, best) = median_and_best(&mut shared_pass);
    println!("one pass of {}: {pass:.1} ({best:.1}) ns a write, {:.2} M writes/s", ONE_OF_EACH.join(", "), 1e3 / pass);
}

/// One scheme alone (or `none`: the workload without a scheme), for an instruction counter.
fn run_one(name: &str, writes: usize, decays: u32) {
    let workload = workload(writes);
    let mut verdicts = vec![Temperature::COLD; BATCH];
    if name == "none" {
        black_box(&workload);
        return;
    }
    let future = name.starts_with("oracle").then(|| Arc::new(Future::of(&workload, PAGES)));
    let mut scheme = build(name, &HotnessContext { logical_pages: PAGES, future });
    time_checks(&mut scheme, &workload, &mut verdicts);
    for _ in 0..decays {
        black_box(&mut scheme).decay();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |key: &str| arguments.iter().position(|a| a == key).and_then(|at| arguments.get(at + 1));
    let number = |key: &str, default: u32| value(key).map_or(default, |text| text.parse().expect("a whole number"));
    match value("--scheme") {
        Some(name) => run_one(name, number("--writes", 1 << 20) as usize, number("--decays", 0)),
        None => compare_all(),
    }
}
