//! Host writes a second of every placement with every victim policy, as one table.
//!
//! 1 Mi logical pages of 4 KiB, blocks of 64 pages, spare factor .15, Zipf traffic with exponent .99. Each device is filled in
//! order, brought to its steady state by two drive writes, and measured over turns of 256 Ki writes; a cell is the median of
//! their rates in millions a second of processor time. `cargo bench --bench policies -- placement=mdc placement=hotness:mbf victim=cat`
//! measures the placements and victim policies that are named, with their parameters.

mod measure;

use isotherm::address::Lpn;
use isotherm::build::{Environment, build};
use isotherm::device::Replay;
use isotherm::future::Future;
use isotherm::placement::PLACEMENTS;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use isotherm::victim::VICTIMS;
use measure::{cpu_ns, median, zipf};
use std::sync::Arc;

const PAGES: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;
const BATCH: usize = 4096;
const TURN: usize = 1 << 18;
/// Two drive writes.
const TURNS_BEFORE: usize = 8;
const TURNS: usize = 5;

/// The rate of one pair, in millions of host page writes a second.
fn rate(placement: &str, victim: &str, writes: &[Request], future: &Arc<Future>) -> f64 {
    let sets = [
        "device.spare=.15".to_owned(),
        "timing.mode=none".to_owned(),
        format!("placement.name={placement}"),
        format!("gc.victim={victim}"),
    ];
    let spec = DeviceSpec::from_toml("", &sets).expect("the specification is valid");
    let future = Some(Arc::clone(future));
    let environment = Environment { logical_bytes: PAGES * PAGE_BYTES, seed: 1, future, ..Environment::default() };
    let mut device: Box<dyn Replay> = build(&spec, &environment).expect("the specification is valid");
    let (before, measured) = writes.split_at(PAGES as usize + TURNS_BEFORE * TURN);
    let mut replay = |writes: &[Request]| {
        let start = cpu_ns();
        writes.chunks(BATCH).for_each(|batch| device.submit(batch).expect("the device has room"));
        writes.len() as f64 * 1e3 / (cpu_ns() - start)
    };
    replay(before);
    median(measured.chunks(TURN).map(replay))
}

fn main() {
    let mut random = Random::new(7);
    let pages = (0..PAGES).chain((0..(TURNS_BEFORE + TURNS) * TURN).map(|_| zipf(&mut random, PAGES)));
    let pages: Vec<Lpn> = pages.map(|page| Lpn(page as u32)).collect();
    let future = Arc::new(Future::of(&pages, PAGES as u32));
    let write = |lpn: &Lpn| Request {
        arrival_ns: 0,
        offset: u64::from(lpn.0) * PAGE_BYTES,
        length: PAGE_BYTES,
        op: Op::Write,
        source: 0,
        durable: false,
    };
    let writes: Vec<Request> = pages.iter().map(write).collect();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = |kind: &str, all: Vec<&str>| -> Vec<String> {
        let chosen: Vec<String> = words.iter().filter_map(|word| word.strip_prefix(kind)).map(str::to_owned).collect();
        if chosen.is_empty() { all.into_iter().map(str::to_owned).collect() } else { chosen }
    };
    let victims = named("victim=", VICTIMS.iter().map(|entry| entry.name).collect());
    let placements = named("placement=", PLACEMENTS.iter().map(|entry| entry.name).collect());
    print!("{:>22}", "M host writes/s");
    victims.iter().for_each(|victim| print!(" {victim:>12}"));
    println!();
    for placement in &placements {
        print!("{placement:>22}");
        for victim in &victims {
            print!(" {:>12.2}", rate(placement, victim, &writes, &future));
            std::io::Write::flush(&mut std::io::stdout()).expect("standard output is open");
        }
        println!();
    }
}
