//! The log: its laws, its baselines, and what grouping gains.

use isotherm::build::{Environment, build};
use isotherm::device::Device;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::sfs::snapshot::LogSnapshot;
use isotherm::spec::DeviceSpec;

fn device(log: &str, below: &str, utilisation: &str, blocks: u32) -> Box<dyn Device> {
    let sets = [
        format!("log.name={log}"),
        format!("log.below={below}"),
        format!("log.utilisation={utilisation}"),
        "device.over_provisioning=10%".to_owned(),
    ];
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    build(&spec, &Environment { logical_bytes: u64::from(blocks) * 4096, seed: 1, future: None }).unwrap()
}

fn write(block: u32) -> Request {
    Request { arrival_ns: 0, offset: u64::from(block) * 4096, length: 4096, op: Op::Write }
}

/// A workload: how many of the blocks are active, and where the next write goes.
struct Load {
    active: u32,
    random: Random,
    /// Cumulative popularity by rank; empty for uniform.
    cumulative: Vec<f64>,
    places: Vec<u32>,
}

impl Load {
    fn uniform(active: u32) -> Self {
        Self { active, random: Random::new(5), cumulative: Vec::new(), places: Vec::new() }
    }

    fn zipf(active: u32, exponent: f64) -> Self {
        let mut load = Self::uniform(active);
        let mut sum = 0.0;
        load.cumulative.extend((1..=active).map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        }));
        load.places.extend(0..active);
        for i in (1..active as usize).rev() {
            load.places.swap(i, load.random.below(i as u64 + 1) as usize);
        }
        load
    }

    fn next(&mut self) -> u32 {
        let Some(sum) = self.cumulative.last() else { return self.random.below(self.active.into()) as u32 };
        let at = self.random.unit() * sum;
        self.places[self.cumulative.partition_point(|c| *c <= at).min(self.places.len() - 1)]
    }
}

/// Log counters of the last half of a run: filler and active blocks are written once, then the active ones `turns` times.
fn run(log: &str, utilisation: &str, blocks: u32, turns: u32, mut load: Load) -> (f64, LogSnapshot) {
    let mut device = device(log, "none", utilisation, blocks);
    // Filler stands above the active blocks, and is written first.
    let fill: Vec<Request> = (load.active..blocks).chain(0..load.active).map(write).collect();
    device.submit(&fill).unwrap();
    let mut before = (0, 0);
    for turn in 0..turns {
        if turn == turns / 2 {
            before = written(&*device);
        }
        let batch: Vec<Request> = (0..load.active).map(|_| write(load.next())).collect();
        device.submit(&batch).unwrap();
    }
    device.check().unwrap();
    let after = written(&*device);
    let wa = (after.0 - before.0) as f64 / (after.1 - before.1) as f64;
    (wa, *device.snapshot().log.unwrap())
}

fn written(device: &dyn Device) -> (u64, u64) {
    let counters = device.snapshot().log.unwrap().counters;
    (counters.written_blocks(), counters.logged_blocks)
}

#[test]
fn probe_uniform() {
    for turns in [16, 64, 256] {
        for u in ["0.7", "0.9"] {
            for log in ["sfs:groups=1", "sfs:groups=4"] {
                let (wa, _) = run(&format!("{log},segment=128KiB"), u, 1 << 14, turns, Load::uniform(1 << 14));
                println!("P uniform {turns} {u} {log} {wa:.3}");
            }
        }
    }
}
#[test]
fn probe_zipf() {
    for (e, share) in [(1.0, 0.3), (1.0, 0.5), (1.2, 0.3)] {
        for log in [
            "lfs:",
            "sfs:groups=1,",
            "sfs:groups=2,",
            "sfs:",
            "sfs:groups=8,",
            "sfs:victim=cost_benefit,",
            "sfs:criterion=equi_height,",
            "sfs:criterion=equi_width,",
            "sfs:age=modified,",
        ] {
            let active = (f64::from(1 << 16) / 0.85 * share) as u32;
            let (wa, s) = run(&format!("{log}segment=128KiB"), "0.85", 1 << 16, 24, Load::zipf(active, e));
            println!(
                "P {e} {share} {log}: WA {wa:.3} absorbed {:.3} groups {:?} vu {:.3} hist {:?}",
                s.counters.absorbed_blocks as f64 / s.counters.host_blocks as f64,
                s.counters
                    .groups
                    .iter()
                    .map(|g| g.blocks * 100 / (s.counters.logged_blocks + s.counters.cleaned_blocks))
                    .collect::<Vec<_>>(),
                s.counters.victim_utilisation / s.counters.segments_cleaned as f64,
                s.utilisation_histogram
            );
        }
    }
}
