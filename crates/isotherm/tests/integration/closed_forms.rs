//! The simulator against theory: uniform random traffic, greedy victims.

use isotherm::build::{Environment, build};
use isotherm::placement::Future;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;
use std::sync::Arc;

/// Pages of a sequential fill and `drive_writes - 1` drive writes of uniform random overwrites.
fn workload(pages: u32, drive_writes: u32) -> Vec<u32> {
    let mut random = Random::new(7);
    (0..pages).chain((pages..pages * drive_writes).map(|_| random.below(pages.into()) as u32)).collect()
}

/// WA of the last third of the writes in `order`.
fn last_third(sets: &[&str], pages: u32, order: &[u32], future: Option<Arc<Future>>) -> f64 {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    let environment = Environment { logical_bytes: u64::from(pages) * 4096, seed: 1, future, ..Environment::default() };
    let mut device = build(&spec, &environment).unwrap();
    let (first, last) = order.split_at(order.len() / 3 * 2);
    let mut programs = Vec::new();
    for part in [first, last] {
        let write = |page: &u32| Request {
            arrival_ns: 0,
            offset: u64::from(*page) * 4096,
            length: 4096,
            op: Op::Write,
            source: 0,
            durable: false,
        };
        device.submit(&part.iter().map(write).collect::<Vec<_>>()).unwrap();
        programs.push(device.snapshot().medium.programmed().total());
    }
    device.check().unwrap();
    (programs[1] - programs[0]) as f64 / last.len() as f64
}

#[test]
fn greedy_meets_the_finite_block_formula() {
    // Facts of the field: spare .07 and .20, 64 pages a block.
    for (spare, expected) in [("0.07", 6.60), ("0.20", 2.60)] {
        let measured = last_third(&[&format!("device.spare={spare}")], 1 << 18, &workload(1 << 18, 18), None);
        assert!((measured / expected - 1.0).abs() < 0.01, "spare {spare}: {measured:.3}, theory {expected}");
    }
}

/// For each write, the number of the next write of its page.
fn future(order: &[u32], pages: u32) -> Arc<Future> {
    let mut next = vec![u32::MAX; pages as usize];
    let mut deaths = vec![u32::MAX; order.len()];
    for (time, page) in order.iter().enumerate().rev() {
        deaths[time] = std::mem::replace(&mut next[*page as usize], time as u32);
    }
    Arc::new(Future { deaths })
}

#[test]
fn offline_placement_falls_towards_one_as_the_device_grows() {
    let amplification = |pages: u32| {
        let order = workload(pages, 12);
        last_third(&["device.spare=0.1", "placement=offline"], pages, &order, Some(future(&order, pages)))
    };
    let (small, large) = (amplification(1 << 14), amplification(1 << 18));
    assert!(large < small && large < 1.25, "{small:.3} {large:.3}; without foresight 4.8");
}
