//! Logs with bytes, built from a specification: they count what a simulation counts, and read back what was written.

use isotherm::build::Environment;
use isotherm::ftl::FTLS;
use isotherm::random::Random;
use isotherm::request::{Op, Request};
use isotherm::stats::Snapshot;
use isotherm_sfs::snapshot::LogSnapshot;
use isotherm_sfs::{NO_DEVICE, SystemSpec, build, build_with_bytes};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1500;

fn spec(log: &str, below: &str) -> SystemSpec {
    let sets = [
        format!("log.name={log}"),
        format!("log.below={below}"),
        "device.over_provisioning=20%".to_owned(),
        "device.recovery=true".to_owned(),
    ];
    SystemSpec::from_toml("", &sets).unwrap()
}

fn environment() -> Environment {
    Environment { logical_bytes: BLOCKS * BLOCK, seed: 1, ..Environment::default() }
}

/// Writes whole and in parts, reads, trims and flushes, at rising times.
fn requests() -> Vec<Request> {
    let mut random = Random::new(11);
    let mut requests = Vec::new();
    for at in 0..12_000 {
        let op = match random.below(20) {
            0 => Op::Trim,
            1 => Op::Flush,
            2..4 => Op::Read,
            4 => Op::WriteZeroes,
            _ => Op::Write,
        };
        let block = if random.below(4) == 0 { random.below(BLOCKS - 4) } else { random.below(BLOCKS / 8) };
        let part = if random.below(8) == 0 { 512 } else { 0 };
        let length = if op == Op::Flush { 0 } else { (random.below(4) + 1) * BLOCK - part };
        let durable = op == Op::WriteZeroes || (op == Op::Write && random.below(50) == 0);
        let (arrival_ns, offset) = (at * 3_000_000, block * BLOCK + part);
        requests.push(Request { arrival_ns, offset, length, op, source: 0, durable });
    }
    requests
}

/// What both must count alike, and what tells that a run did something.
fn counted(snapshot: &Snapshot) -> (String, u64) {
    let log = snapshot.sections.get::<LogSnapshot>().unwrap();
    let device = log.below.as_ref().map(|below| format!("{:?} {:?} {:?}", below.host, below.medium, below.collector));
    (format!("{:?} {:?} {device:?}", snapshot.host, log.counters), log.counters.segments_cleaned)
}

#[test]
fn a_log_counts_the_same_with_bytes_and_without_and_reads_back_what_was_written() {
    for log in ["sfs:segment=64KiB", "lfs:segment=64KiB"] {
        for below in FTLS.iter().map(|entry| entry.name).chain([NO_DEVICE]) {
            let spec = spec(log, below);
            let mut simulated = build(&spec, &environment()).unwrap();
            let mut kept = build_with_bytes(&spec, &environment()).unwrap();
            let mut model = vec![0; (BLOCKS * BLOCK) as usize];
            let mut content = Random::new(3);
            for request in requests() {
                simulated.submit(&[request]).unwrap();
                kept.arrive(request.arrival_ns, request.source);
                let (from, to) = (request.offset as usize, (request.offset + request.length) as usize);
                match request.op {
                    Op::Flush => kept.flush().unwrap(),
                    Op::Write => {
                        let data = vec![content.below(256) as u8; to - from];
                        kept.write(request.offset, &data, request.durable).unwrap();
                        model[from..to].copy_from_slice(&data);
                    }
                    Op::Read => {
                        let mut read = vec![1; to - from];
                        kept.read(request.offset, &mut read).unwrap();
                        assert!(read == model[from..to], "{log} over {below}: {request:?}");
                    }
                    Op::WriteZeroes => {
                        kept.write_zeroes(request.offset, request.length, request.durable).unwrap();
                        model[from..to].fill(0);
                    }
                    Op::Trim => {
                        kept.trim(request.offset, request.length, request.durable).unwrap();
                        let block = BLOCK as usize;
                        model[from.next_multiple_of(block)..to / block * block].fill(0);
                    }
                }
            }
            let (simulation, cleaned) = counted(&simulated.snapshot());
            assert!(cleaned > 0, "{log} over {below}: nothing was cleaned");
            assert_eq!(simulation, counted(&kept.snapshot()).0, "{log} over {below}");
            kept.check().unwrap();
            let mut read = vec![1; model.len()];
            kept.read(0, &mut read).unwrap();
            assert!(read == model, "{log} over {below}");
        }
    }
}

#[test]
fn without_a_log_and_without_a_segment_log_the_device_itself_keeps_the_bytes() {
    for spec in [SystemSpec::default(), spec("in_place", "page")] {
        let mut device = build_with_bytes(&spec, &environment()).unwrap();
        device.write(BLOCK, &[7; 4096], false).unwrap();
        let mut read = [0; 4096];
        device.read(BLOCK, &mut read).unwrap();
        assert_eq!(read, [7; 4096]);
        assert!(device.snapshot().sections.get::<LogSnapshot>().is_none());
    }
}

#[test]
fn summaries_that_recovery_cannot_use_are_refused_with_bytes_alone() {
    for (bytes, is_enough) in [(0, false), (15, false), (16, true)] {
        let spec = spec(&format!("sfs:segment=64KiB,summary_bytes={bytes}"), "none");
        assert!(build(&spec, &environment()).is_ok());
        let error = build_with_bytes(&spec, &environment()).err().map(|error| error.to_string());
        assert_eq!(error.is_none(), is_enough);
        assert!(error.is_none_or(|e| e.contains("sfs:summary_bytes") && e.contains("at least 16")));
    }
}
