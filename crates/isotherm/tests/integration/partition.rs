//! The split of the DRAM: every rule on every FTL that has one, its budget, and what the adaptive rules find.

use isotherm::build::{Environment, build};
use isotherm::device::Replay;
use isotherm::dram::partition::{SPLITS, SplitCounters};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

const PAGES: u64 = 1 << 16;
const PAGE: u64 = 2048;

fn device(sets: &[&str]) -> Box<dyn Replay> {
    let base = ["device.page_size=2KiB", "device.over_provisioning=0.1", "timing.preset=slc", "dram.size=512KiB"];
    let sets: Vec<String> = base.iter().chain(sets).map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    build(&spec, &Environment { logical_bytes: PAGES * PAGE, seed: 3, ..Environment::default() }).unwrap()
}

fn request(op: Op, page: u64, pages: u64) -> Request {
    Request { arrival_ns: 0, offset: page * PAGE, length: pages * PAGE, op, source: 0, durable: false }
}

/// Fills the device, then writes, reads and trims with skew: `skew` 1 is uniform.
fn run(device: &mut dyn Replay, requests: u32, skew: i32, reads: f64) -> u64 {
    let fill: Vec<Request> = (0..PAGES / 32).map(|i| request(Op::Write, i * 32, 32)).collect();
    device.submit(&fill).unwrap();
    let mut random = Random::new(5);
    let mut half_ns = 0;
    for turn in 0..requests / 1000 {
        if turn == requests / 2000 {
            half_ns = device.snapshot().time.total_ns();
        }
        let batch: Vec<Request> = (0..1000)
            .map(|i| {
                // Spread by an odd factor, so that pages of one temperature do not lie together.
                let page = (random.unit().powi(skew) * PAGES as f64) as u64 * 40_503 % PAGES;
                match i {
                    0 => request(Op::Trim, page, 1),
                    500 => request(Op::Flush, 0, 0),
                    _ if random.chance(reads) => request(Op::Read, page, 1),
                    _ => request(Op::Write, page, 1),
                }
            })
            .collect();
        device.submit(&batch).unwrap();
    }
    device.check().unwrap();
    device.snapshot().time.total_ns() - half_ns
}

fn mapping_share(device: &dyn Replay) -> f64 {
    device.snapshot().sections.get::<SplitCounters>().expect("the DRAM is split").mapping_share_last
}

#[test]
fn every_rule_keeps_its_budget_on_every_ftl_that_can_split() {
    // The device asserts after each request that no more DRAM is in use than there is.
    for ftl in ["dftl", "fast"] {
        for split in SPLITS.iter().map(|s| s.name).chain(["0%", "100%", "37.5%"]) {
            let split = format!("dram.split={split}");
            let mut device = device(&[&format!("ftl.name={ftl}"), &split]);
            run(device.as_mut(), 20_000, 3, 0.3);
            let share = mapping_share(&*device);
            assert!((0.0..=1.0).contains(&share), "{ftl} {split}: {share}");
        }
    }
}

#[test]
fn a_share_is_brought_within_the_floors() {
    let share = |split: &str| mapping_share(&*device(&["ftl.name=dftl", split]));
    // Directory of 128 translation pages, and the entries of one: 512 + 4096 bytes of 524288.
    assert_eq!(share("dram.split=0%"), 4608.0 / 524_288.0);
    // All but one page.
    assert_eq!(share("dram.split=100%"), 1.0 - 2048.0 / 524_288.0);
}

#[test]
fn the_rule_of_least_cost_beats_half_and_the_papers_rule_where_half_is_wrong() {
    // In a DRAM as small as this one, a tenth of it changes the time by a fifth, and what the rule keeps for itself is felt.
    for (skew, reads) in [(6, 0.0), (3, 0.5)] {
        let time = |split: &str| {
            let mut device = device(&["ftl.name=dftl", "dram.power_loss_protection=true", split]);
            run(device.as_mut(), 400_000, skew, reads) as f64
        };
        let (half, best) = (time("dram.split=50%"), time("dram.split=90%"));
        assert!(best < half * 0.9, "half is right on skew {skew}, so that this shows nothing");
        let (ours, paper) = (time("dram.split=least_cost"), time("dram.split=adaptive_paper"));
        assert!(ours < half && ours < paper, "skew {skew}: {ours} against {half} and {paper} ns");
    }
}

#[test]
fn the_rule_of_least_cost_comes_within_a_twentieth_of_the_best_static_split() {
    for (ftl, skew, reads) in [("dftl", 6, 0.0), ("dftl", 10, 0.5), ("fast", 6, 0.0)] {
        let time = |split: &str| {
            let ftl = format!("ftl.name={ftl}");
            let sets = [&ftl, "dram.size=2MiB", "dram.power_loss_protection=true", split];
            run(device(&sets).as_mut(), 300_000, skew, reads) as f64
        };
        let splits: Vec<f64> = (0..=10).map(|tenths| time(&format!("dram.split={}%", tenths * 10))).collect();
        let best = splits.iter().copied().fold(f64::INFINITY, f64::min);
        let ours = time("dram.split=least_cost");
        assert!(splits[5] > best * 1.05, "half is right on {ftl}, skew {skew}, so that this shows nothing");
        assert!(ours < best * 1.05, "{ftl}, skew {skew}: {:.3} of the best static split, {splits:?}", ours / best);
    }
}

#[test]
fn what_cannot_be_split_is_refused_with_a_way_out() {
    let refused = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let spec = DeviceSpec::from_toml("", &sets).unwrap();
        let environment = Environment { logical_bytes: 1 << 26, seed: 0, ..Environment::default() };
        build(&spec, &environment).err().expect("refused").to_string()
    };
    assert!(refused(&["dram.size=1MiB", "dram.split=30%"]).contains("the FTL dftl"));
    assert!(refused(&["ftl.name=dftl", "dram.size=64KiB", "dram.split=adaptive_paper"]).contains("give at least"));
    assert!(refused(&["ftl.name=dftl", "dram.size=1MiB", "dram.split=130%"]).contains("100%"));
    let unknown = refused(&["ftl.name=dftl", "dram.size=1MiB", "dram.split=foo"]);
    assert!(unknown.contains("least_cost") && unknown.contains("a share such as 30%"), "{unknown}");
    assert!(refused(&["dram.size=1MiB", "dram.buffer=mru"]).contains("lb_clock"));
    for size in ["ftl=dftl:cache=64KiB", "ftl=asa:cache=64KiB", "ftl=fast:log_blocks=2"] {
        let refusal = refused(&[size, "dram.size=1MiB"]);
        let place = &size[4..size.rfind('=').unwrap()];
        assert!(refusal.starts_with(place) && refusal.contains("beside dram.size the map has its share"), "{refusal}");
    }
    let all = refused(&["ftl=dftl:cache=64KiB", "dram.size=1MiB", "dram.buffer=none"]);
    assert!(all.contains("the map has all of that"), "{all}");
    let key = refused(&["ftl=dftl", "dram.cache_bytes=64KiB", "dram.size=1MiB"]);
    assert!(key.contains("dram.cache_bytes: beside dram.size"), "{key}");
}
