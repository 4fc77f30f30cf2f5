//! Separation against theory and against an independent simulation.

use isotherm::build::{Environment, build};
use isotherm::device::Replay;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

fn device(sets: &[String], environment: Environment, pages: u32) -> Box<dyn Replay> {
    let spec = DeviceSpec::from_toml("", sets).unwrap();
    build(&spec, &Environment { logical_bytes: u64::from(pages) * 4096, seed: 1, ..environment }).unwrap()
}

/// A device that is filled in order, and then written drive write by drive write.
pub struct SteadyRun {
    device: Box<dyn Replay>,
    pages: u32,
}

impl SteadyRun {
    /// A device of `pages` with these keys set.
    pub fn new(sets: &[String], pages: u32) -> Self {
        Self::in_environment(sets, Environment::default(), pages)
    }

    /// The same, of a device with policies that the test brings along.
    pub fn in_environment(sets: &[String], environment: Environment, pages: u32) -> Self {
        Self { device: device(sets, environment, pages), pages }
    }

    /// Write amplification in each of `drive_writes`; `next` names the page to write in a drive write. The first one fills the device.
    pub fn drive_writes(&mut self, drive_writes: u32, mut next: impl FnMut(u32) -> u32) -> Vec<f64> {
        let programs = |device: &dyn Replay| device.snapshot().medium.programmed().total();
        let mut amplification = Vec::new();
        for turn in 0..drive_writes {
            let batch: Vec<Request> = (0..self.pages)
                .map(|i| {
                    let page = if turn == 0 { i } else { next(turn) };
                    Request {
                        arrival_ns: 0,
                        offset: u64::from(page) * 4096,
                        length: 4096,
                        op: Op::Write,
                        source: 0,
                        durable: false,
                    }
                })
                .collect();
            let before = programs(&*self.device);
            self.device.submit(&batch).unwrap();
            amplification.push((programs(&*self.device) - before) as f64 / f64::from(self.pages));
        }
        self.device.check().unwrap();
        amplification
    }
}

/// WA of a run of `drive_writes`, of which the first `discarded` are not measured; the first one fills the device.
fn run(sets: &[String], pages: u32, drive_writes: u32, discarded: u32, mut next: impl FnMut() -> u32) -> f64 {
    let measured = SteadyRun::new(sets, pages).drive_writes(drive_writes, |_| next());
    let measured = &measured[discarded as usize..];
    measured.iter().sum::<f64>() / measured.len() as f64
}

/// Hot and cold pages told apart exactly.
const EXACT: &str = "ranges:hot=0-10%";

/// The first tenth of the pages receives nine tenths of the writes.
pub fn two_temperatures(
    placement: &str,
    victim: &str,
    spare: &str,
    pages: u32,
    drive_writes: u32,
    discarded: u32,
) -> f64 {
    let mut random = Random::new(7);
    let hot = pages / 10;
    let next = move || {
        if random.chance(0.9) {
            random.below(hot.into()) as u32
        } else {
            hot + random.below((pages - hot).into()) as u32
        }
    };
    let sets = [
        format!("device.spare={spare}"),
        format!("placement.name={placement}"),
        format!("gc.victim={victim}"),
        "wear.leveling=false".to_owned(),
    ];
    run(&sets, pages, drive_writes, discarded, next)
}

#[test]
fn mdc_with_exact_temperatures_reaches_the_optimal_split() {
    for (spare, optimum) in [("0.03", 5.26), ("0.10", 2.20), ("0.20", 1.445)] {
        let measured = two_temperatures(EXACT, "mdc:hot=10%,hot_writes=90%", spare, 1 << 18, 16, 8);
        println!("spare {spare}: {measured:.3}, optimum {optimum}");
        assert!((measured / optimum - 1.0).abs() < 0.02, "spare {spare}: {measured:.3}, optimum {optimum}");
    }
}

#[test]
fn measured_rates_come_close_to_exact_ones() {
    let measured = two_temperatures(EXACT, "mdc", "0.10", 1 << 17, 16, 8);
    println!("measured rates {measured:.3}");
    assert!(measured < 2.20 * 1.05, "{measured:.3}");
}

#[test]
fn cost_hotness_tends_to_its_value_with_exact_rates_as_first_writes_are_forgotten() {
    // Independent simulation with exact rates: 3.25. A page's first write counts in Wb as well, which flatters cold pages
    // in a short run: hot and cold look closer together than they are, and the policy clears cold blocks sooner.
    let short = two_temperatures(EXACT, "cost_hotness", "0.10", 1 << 14, 16, 8);
    let long = two_temperatures(EXACT, "cost_hotness", "0.10", 1 << 14, 256, 192);
    println!("cost-hotness after 16 drive writes {short:.3}, after 256 {long:.3}");
    assert!(short < long && (long / 3.25 - 1.0).abs() < 0.05, "{short:.3} {long:.3}");
}

/// Static Zipf traffic of exponent 1 over scattered pages, segments of 128, at most 15 % garbage, cost-benefit. The unwritten
/// rest of open segments is not garbage: half a segment for each of the `streams` comes on top of the spare space.
pub fn zipf(placement: &str, streams: u32, victim: &str, age: &str) -> f64 {
    const PAGES: u32 = 65_536;
    let mut cumulative = Vec::with_capacity(PAGES as usize);
    let mut sum = 0.0;
    for rank in 1..=PAGES {
        sum += 1.0 / f64::from(rank);
        cumulative.push(sum);
    }
    let mut random = Random::new(11);
    let mut places: Vec<u32> = (0..PAGES).collect();
    for i in (1..PAGES as usize).rev() {
        places.swap(i, random.below(i as u64 + 1) as usize);
    }
    let next = move || {
        let at = random.unit() * sum;
        places[cumulative.partition_point(|c| *c <= at).min(PAGES as usize - 1)]
    };
    let sets = [
        format!("device.over_provisioning={}", 1.0 / 0.85 - 1.0 + f64::from(streams * 64) / f64::from(PAGES)),
        "device.pages_per_block=128".to_owned(),
        format!("placement.name={placement}"),
        format!("gc.victim={victim}"),
        format!("gc.age={age}"),
        "wear.leveling=false".to_owned(),
    ];
    run(&sets, PAGES, 30, 18, next)
}

#[test]
fn placements_keep_their_published_order_on_static_zipf_traffic() {
    // An independent simulation found these. It dates a segment from when it was sealed, copies or not. With the age that
    // copies keep (`closed`) separation gains less: segments of survivors look so old that they are cleaned while nearly full.
    let expected = [("single", 1, 5.07), ("host_gc", 2, 2.65), ("sfs", 4, 2.43), ("sepbit", 6, 2.23), ("dac", 6, 2.07)];
    for age in ["sealed", "closed", "last_invalidation"] {
        let measured = expected.map(|(placement, streams, _)| zipf(placement, streams, "cost_benefit", age));
        for ((placement, _, expected), wa) in expected.iter().zip(measured) {
            println!("{age}, {placement}: {wa:.3}, elsewhere {expected}");
            assert!(age != "sealed" || (wa / expected - 1.0).abs() < 0.02, "{placement}: {wa:.3}");
        }
        // By the other ages the middle of the order moves: SFS, which groups by rate, loses least by `closed`.
        assert!(age != "sealed" || measured.is_sorted_by(|a, b| a > b), "{age}: {measured:?}");
        assert!(measured[1..].iter().all(|wa| *wa < 0.75 * measured[0]), "{age}: {measured:?}");
    }
}

#[test]
fn placements_by_estimated_rate_gain_on_static_zipf_traffic() {
    for (placement, streams) in [("mdc", 8), ("multilog", 8), ("midas", 7)] {
        let wa = zipf(placement, streams, "cost_benefit", "sealed");
        println!("{placement}: {wa:.3}");
        assert!(wa < 2.65, "{placement}: {wa:.3}, a stream for copies alone gives 2.65");
    }
}

#[test]
fn logs_that_divide_the_spare_space_come_near_the_optimum_under_greedy_victims() {
    // The optimum is that of exact temperatures; greedy victims that look everywhere cap what the same logs gain.
    for (spare, optimum) in [("0.10", 2.20), ("0.20", 1.445)] {
        let divided = two_temperatures("multilog", "greedy", spare, 1 << 17, 16, 8);
        let undivided = two_temperatures("multilog:sizing=false", "greedy", spare, 1 << 17, 16, 8);
        println!("multilog, spare {spare}: {divided:.3}, undivided {undivided:.3}, optimum {optimum}");
        assert!(divided < optimum * 1.03, "spare {spare}: {divided:.3}, optimum {optimum}");
        assert!(undivided > optimum * 1.5, "spare {spare}: {undivided:.3}, optimum {optimum}");
    }
    let [divided, undivided] =
        ["multilog", "multilog:sizing=false"].map(|placement| zipf(placement, 8, "greedy", "sealed"));
    println!("multilog, zipf: {divided:.3}, undivided {undivided:.3}");
    assert!(divided < 0.7 * undivided, "{divided:.3} {undivided:.3}");
}

#[test]
fn groups_sized_by_the_model_gain_under_greedy_victims() {
    // Sizes stand from the fifth drive write on, and are looked at again after the ninth.
    for (spare, optimum, most) in [("0.10", 2.20, 1.25), ("0.20", 1.445, 1.2)] {
        let sized = two_temperatures("midas", "greedy", spare, 1 << 16, 20, 10);
        let unsized_groups = two_temperatures("midas:sizing=false", "greedy", spare, 1 << 16, 20, 10);
        println!("midas, spare {spare}: {sized:.3}, without sizes {unsized_groups:.3}, optimum {optimum}");
        assert!(sized < optimum * most, "spare {spare}: {sized:.3}, optimum {optimum}");
        assert!(unsized_groups > optimum * 1.5, "spare {spare}: {unsized_groups:.3}, optimum {optimum}");
    }
    let [sized, unsized_groups] =
        ["midas", "midas:sizing=false"].map(|placement| zipf(placement, 7, "greedy", "sealed"));
    println!("midas, zipf: {sized:.3}, without sizes {unsized_groups:.3}");
    assert!(sized < 0.8 * unsized_groups, "{sized:.3} {unsized_groups:.3}");
}

#[test]
fn dividing_space_costs_nothing_under_uniform_traffic() {
    // The rests of open blocks count the same with and without division, and so do the streams.
    const PAGES: u32 = 1 << 17;
    for placement in ["multilog", "midas"] {
        let [divided, undivided] = ["true", "false"].map(|sizing| {
            let sets = [
                "device.spare=0.07".to_owned(),
                format!("placement.name={placement}:sizing={sizing}"),
                "wear.leveling=false".to_owned(),
            ];
            let mut random = Random::new(5);
            run(&sets, PAGES, 12, 8, move || random.below(PAGES.into()) as u32)
        });
        println!("uniform, {placement}: {divided:.3}, undivided {undivided:.3}");
        assert!((divided / undivided - 1.0).abs() < 0.005, "{placement}: {divided:.3} {undivided:.3}");
    }
}
