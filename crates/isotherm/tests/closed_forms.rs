//! The simulator against theory: uniform random traffic, greedy victims.

use isotherm::build::{Environment, build};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

/// WA of the last third of a run of uniform random writes.
fn uniform(sets: &[&str], pages: u32, drive_writes: u32) -> f64 {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(pages) * 4096, seed: 1, future: None };
    let mut device = build(&spec, &environment).unwrap();
    let mut random = Random::new(7);
    let mut before = device.snapshot();
    for turn in 0..drive_writes {
        if turn == drive_writes * 2 / 3 {
            before = device.snapshot();
        }
        let batch: Vec<Request> = (0..pages)
            .map(|i| {
                let page = if turn == 0 { u64::from(i) } else { random.below(pages.into()) };
                Request { arrival_ns: 0, offset: page * 4096, length: 4096, op: Op::Write }
            })
            .collect();
        device.submit(&batch).unwrap();
    }
    device.check().unwrap();
    let after = device.snapshot();
    let programs = after.medium.programmed().since(&before.medium.programmed()).total();
    programs as f64 / (after.host.pages_written - before.host.pages_written) as f64
}

#[test]
fn greedy_meets_the_finite_block_formula() {
    // Facts of the field: spare .07 and .20, 64 pages a block.
    for (spare, expected) in [("0.07", 6.60), ("0.20", 2.60)] {
        let measured = uniform(&[&format!("device.spare={spare}")], 1 << 18, 18);
        assert!((measured / expected - 1.0).abs() < 0.01, "spare {spare}: {measured:.3}, theory {expected}");
    }
}
