//! The device as its users see it: requests in, counters and errors out.

use isotherm::build::{Environment, build, plan};
use isotherm::cause::Cause;
use isotherm::device::{DeviceError, Replay};
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::spec::DeviceSpec;

const MIB: u64 = 1 << 20;

fn spec(sets: &[&str]) -> DeviceSpec {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    DeviceSpec::from_toml("", &sets).unwrap()
}

fn device(logical_bytes: u64, sets: &[&str]) -> Box<dyn Replay> {
    build(&spec(sets), &Environment { logical_bytes, seed: 1, ..Environment::default() }).unwrap()
}

fn request(op: Op, offset: u64, length: u64) -> Request {
    Request { arrival_ns: 0, offset, length, op, source: 0, durable: false }
}

fn random_writes(seed: u64, pages: u64, count: usize) -> Vec<Request> {
    let mut random = Random::new(seed);
    (0..count).map(|_| request(Op::Write, random.below(pages) * 4096, 4096)).collect()
}

#[test]
fn golden_counters_of_a_tiny_trace() {
    // 16 logical pages in blocks of 4; T is 24 pages, and one block is the collector's reserve.
    let mut device = device(16 * 4096, &["device.over_provisioning=0.5", "device.pages_per_block=4"]);
    assert_eq!((device.logical_pages(), device.physical_pages()), (16, 28));
    // Six blocks of writes fill T: 16 pages in order, then pages 0, 4, 8, 12 and 1, 2, 5, 6.
    let fill: Vec<Request> = (0..16).map(|p| request(Op::Write, p * 4096, 4096)).collect();
    device.submit(&fill).unwrap();
    let again: Vec<Request> = [0, 4, 8, 12, 1, 2, 5, 6].iter().map(|p| request(Op::Write, p * 4096, 4096)).collect();
    device.submit(&again).unwrap();
    assert_eq!(device.snapshot().collector.collections, 0);
    // The next write finds no room. Blocks 0 (0,1,2 dead) and 1 (4,5,6 dead) hold one valid page each; block 0 came first.
    device.submit(&[request(Op::Write, 3 * 4096, 4096)]).unwrap();
    let snapshot = device.snapshot();
    assert_eq!(snapshot.collector.collections, 1);
    assert_eq!(snapshot.collector.victim_invalid_pages, 3);
    assert_eq!(snapshot.medium.copies[Cause::Gc], 1);
    assert_eq!(snapshot.medium.erases.total(), 1);
    assert_eq!(snapshot.medium.programs[Cause::Host], 25);
    assert_eq!((snapshot.valid_pages, snapshot.collector.invalidated_pages), (16, 10));
    device.check().unwrap();
}

#[test]
fn parts_of_pages_are_read_first_and_counted() {
    let mut device = device(MIB, &[]);
    device.submit(&[request(Op::Write, 0, 3 * 4096)]).unwrap();
    // Half of page 0, all of page 1, half of page 2.
    device.submit(&[request(Op::Write, 2048, 8192)]).unwrap();
    // A part of a page that holds nothing needs no read.
    device.submit(&[request(Op::Write, 100 * 4096 + 512, 512)]).unwrap();
    let snapshot = device.snapshot();
    assert_eq!(snapshot.host.pages_written, 3 + 3 + 1);
    assert_eq!(snapshot.host.pages_partly_written, 3);
    assert_eq!(snapshot.medium.reads[Cause::Modify], 2);
    assert_eq!(snapshot.host.bytes_written, 3 * 4096 + 8192 + 512);
}

#[test]
fn trims_take_whole_pages_only_and_are_logged_at_a_flush() {
    let mut device = device(MIB, &[]);
    device.submit(&[request(Op::Write, 0, 16 * 4096)]).unwrap();
    device.submit(&[request(Op::Trim, 100, 4 * 4096)]).unwrap();
    assert_eq!(device.snapshot().host.pages_trimmed, 3);
    assert_eq!(device.snapshot().mapped_pages, 13);
    assert_eq!(device.snapshot().medium.programs[Cause::Trim], 0);
    device.submit(&[request(Op::Flush, 0, 0), request(Op::Flush, 0, 0)]).unwrap();
    assert_eq!(device.snapshot().medium.programs[Cause::Trim], 1);
    device.submit(&[request(Op::Read, 0, 16 * 4096)]).unwrap();
    let host = device.snapshot().host;
    assert_eq!((host.pages_read, host.pages_read_unmapped), (16, 3));
    device.check().unwrap();
}

#[test]
fn tombstones_are_compacted_when_they_pile_up() {
    let mut device = device(16 * MIB, &["device.over_provisioning=0.2"]);
    device.submit(&[request(Op::Write, 0, 16 * MIB)]).unwrap();
    for page in (0..4096).step_by(2) {
        device.submit(&[request(Op::Trim, page * 4096, 4096), request(Op::Flush, 0, 0)]).unwrap();
    }
    // 2048 single-page trims, each flushed: without compaction each would hold a page of its own.
    let snapshot = device.snapshot();
    let tombstone_pages = snapshot.valid_pages - snapshot.mapped_pages;
    assert!((8..=32).contains(&tombstone_pages), "{tombstone_pages} tombstone pages");
    device.check().unwrap();
}

#[test]
fn requests_past_the_end_are_errors_and_the_ones_before_are_done() {
    let mut device = device(MIB, &[]);
    let batch = [request(Op::Write, 0, 4096), request(Op::Write, MIB - 4096, 8192), request(Op::Write, 0, 4096)];
    let error = device.submit(&batch).unwrap_err();
    assert!(matches!(error, DeviceError::OutOfRange { request: 1, .. }), "{error}");
    assert!(error.to_string().contains("device.logical_size"));
    assert_eq!(device.snapshot().host.pages_written, 1);
    assert!(device.submit(&[request(Op::Write, u64::MAX - 10, 100)]).is_err());
}

#[test]
fn the_same_seed_gives_the_same_counters_and_time_does_not_change_them() {
    let run = |sets: &[&str]| {
        let mut device = device(4 * MIB, sets);
        device.submit(&random_writes(5, 1024, 20_000)).unwrap();
        (device.snapshot().medium, device.snapshot().collector, device.block_erases())
    };
    for victim in ["greedy", "random", "d_choices"] {
        let set = format!("gc.victim={victim}");
        let once = run(&[&set]);
        assert_eq!(once, run(&[&set]));
        for mode in ["none", "open", "closed"] {
            assert_eq!(once, run(&[&set, &format!("timing.mode={mode}")]), "{mode}");
        }
    }
}

/// Without a clock, writes of whole pages go to the open block in runs: the device must be the same, block by block, as with a clock, by
/// which each write is a request by itself. Runs end at blocks of every size, and at trims and flushes.
#[test]
fn writes_in_runs_leave_the_device_as_writes_one_by_one() {
    let after = |sets: &[&str]| {
        let mut device = device(4 * MIB, sets);
        device.submit(&[request(Op::Write, 0, 3 * MIB)]).unwrap();
        let mut requests = random_writes(5, 1024, 30_000);
        let mut random = Random::new(6);
        for _ in 0..300 {
            let at = random.below(29_990) as usize;
            requests[at].op = [Op::Trim, Op::Flush, Op::Read, Op::WriteZeroes][random.below(4) as usize];
            requests[at + 1].length /= 2;
            requests[at + 2].durable = true;
        }
        device.submit(&requests).unwrap();
        device.check().unwrap();
        let snapshot = device.snapshot();
        (snapshot.host, snapshot.medium, snapshot.collector, snapshot.mapped_pages, device.blocks())
    };
    for policies in [["placement=single", "gc.victim=greedy"], ["placement=host_gc", "gc.victim=cost_benefit"]] {
        for pages_per_block in ["device.pages_per_block=4", "device.pages_per_block=16", "device.pages_per_block=64"] {
            let run = |mode| after(&[policies[0], policies[1], pages_per_block, mode, "device.over_provisioning=0.25"]);
            let (in_runs, one_by_one) = (run("timing.mode=none"), run("timing.mode=serial"));
            assert!(in_runs == one_by_one, "{policies:?}, {pages_per_block}");
        }
    }
}

#[test]
fn placements_that_divide_space_repeat_themselves_and_keep_to_their_counters() {
    // 1024 pages in 80 blocks of 16; the first eighth receives seven eighths of the writes.
    let run = |placement: &str| {
        let sets = ["device.over_provisioning=0.25", "device.pages_per_block=16", &format!("placement={placement}")];
        let mut device = device(4 * MIB, &sets);
        let mut random = Random::new(7);
        let fill = (0..1024).map(|page| request(Op::Write, page * 4096, 4096));
        let skewed = (0..20_000).map(|_| {
            let pages = if random.chance(0.875) { 128 } else { 1024 };
            request(Op::Write, random.below(pages) * 4096, 4096)
        });
        device.submit(&fill.chain(skewed).collect::<Vec<_>>()).unwrap();
        device.check().unwrap();
        let snapshot = device.snapshot();
        (snapshot.collector.collections, snapshot.medium.copies[Cause::Gc], device.block_erases())
    };
    for (placement, collections, copies) in [("multilog", 2128, 14254), ("midas:sample=1", 2519, 20523)] {
        let once = run(placement);
        assert_eq!(once, run(placement));
        assert_eq!((once.0, once.1), (collections, copies), "{placement}");
    }
}

#[test]
fn a_placement_that_names_full_blocks_does_not_copy_the_whole_device_for_a_write() {
    let sets = ["placement=midas", "device.pages_per_block=8", "device.over_provisioning=0.07", "wear.leveling=false"];
    let mut device = device(16 * MIB, &sets);
    let mut random = Random::new(633);
    // Zipf 1.2 by rank: the sums of all weights up to each page.
    let sums: Vec<f64> = (1..=4096)
        .scan(0.0, |sum, rank| {
            *sum += f64::from(rank).powf(-1.2);
            Some(*sum)
        })
        .collect();
    let fill = (0..4096).map(|page| request(Op::Write, page * 4096, 4096));
    let mixed = (0..60_000).map(|_| {
        let op = if random.chance(0.3) { Op::Trim } else { Op::Write };
        let drawn = random.below(1 << 40) as f64 / (1u64 << 40) as f64 * sums[4095];
        request(op, sums.partition_point(|sum| *sum <= drawn).min(4095) as u64 * 4096, 4096)
    });
    device.submit(&fill.chain(mixed).collect::<Vec<_>>()).unwrap();
    device.check().unwrap();
    let amplification = device.snapshot().write_amplification();
    assert!(amplification < 10.0, "{amplification}");
}

#[test]
fn a_worn_out_device_says_so() {
    let mut device = device(MIB, &["device.endurance=20", "device.over_provisioning=0.2"]);
    let error = loop {
        if let Err(error) = device.submit(&random_writes(5, 256, 1000)) {
            break error;
        }
    };
    assert!(matches!(error, DeviceError::WornOut { .. }), "{error}");
}

#[test]
fn whatever_is_stacked_keeps_its_laws_when_the_device_wears_out() {
    let stacks: [&[&str]; 4] = [
        &["dram.size=1MiB", "dram.buffer=cflru"],
        &["dram.size=1MiB", "dram.buffer=arc"],
        &["ftl=dftl", "dram.size=256KiB", "dram.buffer=lru", "dram.split=adaptive_paper"],
        &["ftl=fast", "dram.size=256KiB", "dram.split=least_cost"],
    ];
    for (stack, endurance) in stacks.into_iter().flat_map(|stack| [(stack, 3), (stack, 5)]) {
        let endurance = format!("device.endurance={endurance}");
        let sets = [stack, &[endurance.as_str(), "device.over_provisioning=0.25"]].concat();
        let mut device = device(32 * MIB, &sets);
        let mut random = Random::new(3);
        let error = loop {
            let op = if random.below(20) == 0 { Op::Trim } else { Op::Write };
            let at = random.below(8192) >> (random.below(2) * 3);
            if let Err(error) = device.submit(&[request(op, at * 4096, 4096)]) {
                break error;
            }
        };
        assert!(matches!(error, DeviceError::WornOut { .. }), "{stack:?}: {error}");
        device.check().unwrap_or_else(|law| panic!("{stack:?}, {endurance}: {law}"));
        let reads: Vec<Request> = (0..8192).map(|page| request(Op::Read, page * 4096, 4096)).collect();
        device.submit(&reads).unwrap_or_else(|error| panic!("{stack:?}, {endurance}: {error}"));
        device.check().unwrap_or_else(|law| panic!("{stack:?}, {endurance}: {law}"));
    }
}

#[test]
fn a_device_outlives_its_first_bad_blocks() {
    for ftl in ["ftl=page", "ftl=dftl", "ftl=fast"] {
        // Victims of the page-mapped FTL are more than half full here: two do not fit into one block of reserve.
        let mut device = device(32 * MIB, &[ftl, "device.endurance=10", "device.over_provisioning=0.2"]);
        let mut random = Random::new(9);
        while device.submit(&[request(Op::Write, random.below(8192) * 4096, 4096)]).is_ok() {}
        let snapshot = device.snapshot();
        assert!(snapshot.collector.retired_blocks >= 8, "{ftl}: {:?}", snapshot.collector);
    }
}

#[test]
fn a_log_full_of_trims_stops_the_device_whole() {
    let sets = ["ftl=fast:log_blocks=1", "device.pages_per_block=2", "device.over_provisioning=1"];
    for seed in 0..20 {
        let mut device = device(4 * MIB, &sets);
        let mut random = Random::new(seed);
        let error = (0..1_000_000u64).find_map(|next| {
            let op = if random.chance(0.3) { Op::Trim } else { Op::Write };
            device.submit(&[request(op, next % 1024 * 4096, 4096)]).err()
        });
        assert!(matches!(error, Some(DeviceError::NoSpace { .. })), "seed {seed}: {error:?}");
        device.check().unwrap_or_else(|law| panic!("seed {seed}: {law}"));
    }
}

#[test]
fn idle_cleaning_takes_collections_out_of_the_way_of_requests() {
    let run = |idle: &str| {
        let mut device = device(4 * MIB, &[idle, "timing.mode=open", "device.over_provisioning=0.2"]);
        let mut requests = random_writes(5, 1024, 30_000);
        // Bursts of 64 writes, one a second.
        for (i, request) in requests.iter_mut().enumerate() {
            request.arrival_ns = (i as u64 / 64) * 1_000_000_000;
        }
        device.submit(&requests).unwrap();
        device.check().unwrap();
        (device.snapshot().collector, device.latencies().write.value_at_quantile(0.99))
    };
    let (foreground, slow) = run("gc.idle=false");
    let (background, fast) = run("gc.idle=true");
    assert_eq!(foreground.background_collections, 0);
    assert!(background.background_collections > background.collections / 2);
    assert!(fast < slow, "{fast} {slow}");
    for mode in ["none", "serial"] {
        let spec = DeviceSpec::from_toml("", &["gc.idle=true".to_owned(), format!("timing.mode={mode}")]).unwrap();
        let environment = Environment { logical_bytes: MIB, ..Environment::default() };
        let refused = plan(&spec, &environment).expect_err("there is no idle time").to_string();
        assert!(refused.contains("gc.idle") && refused.contains("timing.mode"), "{refused}");
    }
}

#[test]
fn wrong_specifications_name_the_key_and_the_fix() {
    for (sets, place) in [
        (&["device.over_provisioning=0"][..], "over_provisioning"),
        (&["device.over_provisioning=0.1", "device.spare=0.1"], "device.over_provisioning and device.spare"),
        (&["device.pages_per_block=48"], "pages_per_block"),
        (&["device.page_size=100"], "page_size"),
        (&["gc.victim=greedyy"], "victim"),
        (&["placement=epoch:length=-1"], "epoch:length"),
        (&["placement=epoch:len=1"], "epoch"),
        (&["timing.preset=warp"], "timing.preset"),
        (&["gc.floor=0"], "gc.floor"),
        (&["device.over_provisioning=0.001", "placement=host_gc"], "placement"),
        (&["device.logical_size=0"], "logical_size"),
        (&["device.logical_size=1TB", "device.page_size=512"], "logical_size"),
        (&["placement=offline"], "offline"),
    ] {
        let environment = Environment { logical_bytes: 4 * MIB, seed: 1, ..Environment::default() };
        let owned: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let built = DeviceSpec::from_toml("", &owned).and_then(|spec| build(&spec, &environment));
        let Err(error) = built else { panic!("{sets:?} was accepted") };
        assert!(error.place.contains(place), "{sets:?}: {error}");
        assert!(!error.fix.is_empty());
    }
}

#[test]
fn lean_mode_needs_at_most_ten_bytes_a_physical_page() {
    for placement in ["placement=single", "placement=host_gc"] {
        let plan =
            plan(&spec(&[placement]), &Environment { logical_bytes: 1 << 40, seed: 1, ..Environment::default() })
                .unwrap();
        let per_page = plan.memory_bytes as f64 / f64::from(plan.geometry.pages());
        assert!(per_page <= 10.0, "{per_page} bytes a page");
        // The estimate is what a built device takes.
        let built = device(1 << 30, &[placement]).snapshot();
        let tables: u64 = built.dram.iter().map(|(_, bytes)| bytes).sum();
        let owners = u64::from(device(1 << 30, &[placement]).physical_pages()) * 4;
        let estimate =
            self::plan(&spec(&[placement]), &Environment { logical_bytes: 1 << 30, seed: 1, ..Environment::default() });
        let ratio = (tables + owners) as f64 / estimate.unwrap().memory_bytes as f64;
        assert!((0.85..=1.0).contains(&ratio), "{ratio}");
    }
}

#[test]
fn a_history_that_placement_and_victim_policy_judge_by_is_kept_once() {
    let pages = 4096;
    let bytes = |placement: &str, victim: &str| {
        let placement = format!("placement.name={placement}");
        let sets =
            [placement.as_str(), &format!("gc.victim={victim}"), "device.spare=0.3", "device.pages_per_block=16"];
        let dram = device(pages * 4096, &sets).snapshot().dram;
        let of = |name: &str| dram.iter().find(|item| item.0 == name).expect("every policy says what it keeps").1;
        (of("placement"), of("victim"))
    };
    // With exact rates the victim policy asks for no history.
    let exact = "mdc:hot=10%,hot_writes=90%";
    assert_eq!(bytes("single", "mdc").1 - bytes("single", exact).1, 8 * pages);
    assert_eq!(bytes("mdc", "mdc"), bytes("mdc", exact));
    assert_eq!(bytes("mdc", "greedy").0, 8 * pages);
    assert_eq!(bytes("single", "mdc").0, 0);
}

/// A page of a few trims is written before nearly every erase, where the host never flushes; they are packed all the same.
#[test]
fn trims_cost_no_more_where_the_host_never_flushes() {
    const PAGES: u64 = 1 << 16;
    let amplification = |flush_every: u64| {
        let mut device = device(PAGES * 4096, &["device.over_provisioning=7%", "timing.mode=none"]);
        let mut random = Random::new(3);
        device.submit(&(0..PAGES).map(|page| request(Op::Write, page * 4096, 4096)).collect::<Vec<_>>()).unwrap();
        let mut before = device.snapshot();
        for turn in 0..8 * PAGES {
            let page = random.below(PAGES - 4);
            let is_trim = random.below(20) == 0;
            let (op, pages) = if is_trim { (Op::Trim, 1 + random.below(4)) } else { (Op::Write, 1) };
            device.submit(&[request(op, page * 4096, pages * 4096)]).unwrap();
            if turn % flush_every == flush_every - 1 {
                device.submit(&[request(Op::Flush, 0, 0)]).unwrap();
            }
            if turn == 4 * PAGES {
                before = device.snapshot();
            }
        }
        let end = device.snapshot();
        let programs = end.medium.programmed().total() - before.medium.programmed().total();
        programs as f64 / (end.host.pages_written - before.host.pages_written) as f64
    };
    let (with, without) = (amplification(5000), amplification(u64::MAX));
    assert!(without < 1.01 * with, "{without} without flushes, {with} with them");
}
