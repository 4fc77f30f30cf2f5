//! Policies that a program brings along decide in batches, and count what the same policy counts that is asked page by page.

use isotherm::device::DeviceError;
use isotherm::placement::{CopyBatch, ExternalPlacement, SharedPlacement, WriteBatch};
use isotherm::random::Random;
use isotherm::victim::{ClosedBlocks, ExternalVictim, SharedVictim};
use isotherm::{DeviceSpec, Environment, Op, Replay, Request, Snapshot, build};
use std::sync::{Arc, Mutex};

const PAGES: u64 = 8192;

/// The epoch scheme of `placement/epoch.rs`, told what it knows instead of keeping it.
#[derive(Debug)]
struct Epoch {
    length: i64,
    calls: u64,
}

impl ExternalPlacement for Epoch {
    fn streams(&self) -> u16 {
        2
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    fn copies_to(&self) -> Option<u16> {
        Some(0)
    }
    fn host(&mut self, writes: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        self.calls += 1;
        for (stream, (last, now)) in streams.iter_mut().zip(writes.last_writes.iter().zip(writes.now)) {
            *stream = u16::from(*last >= 0 && now - last <= self.length);
        }
        Ok(())
    }
    fn copies(&mut self, _: &CopyBatch<'_>, _: &mut [u16]) -> Result<(), String> {
        unreachable!("all copies go to one stream")
    }
}

/// DAC-like: copies of pages that were written lately stay, others go down. It sees what a copy's last write was.
#[derive(Debug)]
struct ByAge {
    seen: Vec<(u32, i64, i64)>,
}

impl ExternalPlacement for ByAge {
    fn streams(&self) -> u16 {
        3
    }
    fn gc_streams(&self) -> u16 {
        2
    }
    fn copies_to(&self) -> Option<u16> {
        None
    }
    fn host(&mut self, _: &WriteBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        streams.fill(0);
        Ok(())
    }
    fn copies(&mut self, copies: &CopyBatch<'_>, streams: &mut [u16]) -> Result<(), String> {
        for (at, stream) in streams.iter_mut().enumerate() {
            let (lpn, last) = (copies.lpns[at], copies.last_writes[at]);
            // The page that makes room for itself was placed before the collection.
            assert!(last >= 0 && last <= copies.now, "page {lpn} was written at {last}, and it is {}", copies.now);
            self.seen.push((lpn, last, copies.now));
            *stream = 1 + u16::from(copies.now - last > PAGES as i64);
        }
        Ok(())
    }
}

/// The emptiest blocks, `many` in a list.
#[derive(Debug)]
struct Emptiest {
    many: usize,
    scans: u64,
}

impl ExternalVictim for Emptiest {
    fn rank(&mut self, closed: &ClosedBlocks, _: u64) -> Result<Vec<u32>, String> {
        self.scans += 1;
        let mut order: Vec<usize> = (0..closed.blocks.len()).collect();
        order.sort_by_key(|at| closed.valid[*at]);
        Ok(order.into_iter().take(self.many).map(|at| closed.blocks[at]).collect())
    }
}

#[derive(Debug)]
struct Failing;

impl ExternalPlacement for Failing {
    fn streams(&self) -> u16 {
        1
    }
    fn gc_streams(&self) -> u16 {
        1
    }
    fn copies_to(&self) -> Option<u16> {
        None
    }
    fn host(&mut self, _: &WriteBatch<'_>, _: &mut [u16]) -> Result<(), String> {
        Ok(())
    }
    fn copies(&mut self, _: &CopyBatch<'_>, _: &mut [u16]) -> Result<(), String> {
        Err("it gives up".to_owned())
    }
}

impl ExternalVictim for Failing {
    fn rank(&mut self, closed: &ClosedBlocks, _: u64) -> Result<Vec<u32>, String> {
        Ok(closed.blocks.first().map(|block| vec![*block, *block]).unwrap_or_default())
    }
}

/// The fullest blocks: those in which every page is valid, as long as there are any.
#[derive(Debug)]
struct Fullest;

impl ExternalVictim for Fullest {
    fn rank(&mut self, closed: &ClosedBlocks, _: u64) -> Result<Vec<u32>, String> {
        let fullest = (0..closed.blocks.len()).max_by_key(|at| closed.valid[*at]);
        Ok(fullest.into_iter().map(|at| closed.blocks[at]).collect())
    }
}

/// Blocks in the order in which they were closed, full or not.
#[derive(Debug)]
struct Oldest;

impl ExternalVictim for Oldest {
    fn rank(&mut self, closed: &ClosedBlocks, _: u64) -> Result<Vec<u32>, String> {
        let oldest = (0..closed.blocks.len()).max_by_key(|at| closed.ages[*at]);
        Ok(oldest.into_iter().map(|at| closed.blocks[at]).collect())
    }
}

/// Skewed writes of up to three pages, with trims, reads and repetitions within a batch.
fn requests() -> Vec<Request> {
    let mut random = Random::new(7);
    let one = |_| {
        let page = if random.below(10) < 8 { random.below(PAGES / 8) } else { random.below(PAGES - 4) };
        let op = match random.below(50) {
            0 => Op::Trim,
            1 => Op::Read,
            _ => Op::Write,
        };
        let length = 4096 * (1 + random.below(3));
        Request { arrival_ns: 0, offset: page * 4096, length, op, source: 0, durable: false }
    };
    (0..60_000).map(one).collect()
}

fn device(sets: &[&str], placement: Option<SharedPlacement>, victim: Option<SharedVictim>) -> Box<dyn Replay> {
    let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    sets.push("device.pages_per_block=64".to_owned());
    let spec = DeviceSpec::from_toml("", &sets).unwrap();
    build(&spec, &Environment { logical_bytes: PAGES * 4096, seed: 1, placement, victim, ..Environment::default() })
        .unwrap()
}

fn counted(mut device: Box<dyn Replay>) -> Snapshot {
    requests().chunks(4096).for_each(|batch| device.submit(batch).unwrap());
    device.check().unwrap();
    Snapshot { dram: Vec::new(), ..device.snapshot() }
}

#[test]
fn a_scheme_that_is_asked_in_batches_counts_what_the_built_in_counts() {
    for rest in [vec![], vec!["ftl=dftl"], vec!["dram.size=1MiB", "dram.buffer=bplru"]] {
        let epoch = Arc::new(Mutex::new(Epoch { length: (PAGES / 2) as i64, calls: 0 }));
        let external = device(&[&rest[..], &["placement.name=external"]].concat(), Some(epoch.clone()), None);
        let own = device(&[&rest[..], &["placement.name=epoch:length=0.5"]].concat(), None, None);
        let (external, own) = (counted(external), counted(own));
        assert!(own.collector.collections > 100, "the collector ran");
        assert_eq!(format!("{external:?}"), format!("{own:?}"));
        let calls = epoch.lock().unwrap().calls;
        if rest.len() < 2 {
            assert!(calls < 3000, "{calls} calls for {} pages", own.host.pages_written);
        }
    }
}

#[test]
fn copies_are_told_when_they_were_last_written_even_where_the_batch_goes_on() {
    let policy = Arc::new(Mutex::new(ByAge { seen: Vec::new() }));
    counted(device(&["placement.name=external:class=ByAge"], Some(policy.clone()), None));
    // What each page's last write was, counted again from the requests.
    let mut writes: Vec<Vec<i64>> = vec![Vec::new(); PAGES as usize];
    let mut now = 0;
    for request in requests().iter().filter(|request| request.op == Op::Write) {
        for page in request.offset / 4096..(request.offset + request.length) / 4096 {
            writes[page as usize].push(now);
            now += 1;
        }
    }
    let seen = &policy.lock().unwrap().seen;
    assert!(seen.len() > 10_000);
    for (lpn, last, now) in seen {
        let before = writes[*lpn as usize].iter().rfind(|at| *at <= now);
        assert_eq!(before, Some(last), "page {lpn} at {now}");
    }
}

#[test]
fn one_ranking_serves_many_collections() {
    let run = |many: usize| {
        let policy = Arc::new(Mutex::new(Emptiest { many, scans: 0 }));
        let counted = counted(device(&["gc.victim=external"], None, Some(policy.clone())));
        let scans = policy.lock().unwrap().scans;
        (counted, scans)
    };
    let (single, scans) = run(1);
    assert_eq!(scans, single.collector.collections, "a list of one is a scan for each collection");
    let (several, scans) = run(8);
    assert_ne!(several.collector, single.collector, "an old list decides otherwise");
    assert!(scans * 4 < several.collector.collections, "{scans} scans");
    // Which of several equally empty blocks goes first is all that differs from the built-in.
    let greedy = counted(device(&["gc.victim=greedy"], None, None)).write_amplification();
    assert!((single.write_amplification() / greedy - 1.0).abs() < 0.02, "{} {greedy}", single.write_amplification());
}

#[test]
fn a_policy_that_fails_stops_the_device_with_its_words() {
    let submit = |mut device: Box<dyn Replay>| {
        let result: Result<(), DeviceError> = requests().chunks(4096).try_for_each(|batch| device.submit(batch));
        device.check().unwrap();
        result.unwrap_err().to_string()
    };
    let placement = device(&["placement.name=external"], Some(Arc::new(Mutex::new(Failing))), None);
    assert!(submit(placement).contains("it gives up"));
    let victim = device(&["gc.victim=external"], None, Some(Arc::new(Mutex::new(Failing))));
    assert!(submit(victim).contains("twice"));
}

#[test]
fn cleaning_that_gains_nothing_ends_and_a_queue_goes_on() {
    // Two passes over the first half: the queue has the other half, in which every page is valid, before it.
    let half = || {
        (0..2 * PAGES).map(|page| Request {
            arrival_ns: 0,
            offset: page % (PAGES / 2) * 4096,
            length: 4096,
            op: Op::Write,
            source: 0,
            durable: false,
        })
    };
    let all = (0..PAGES).rev().map(|page| Request { offset: page * 4096, ..half().next().unwrap() });
    let requests: Vec<Request> = all.chain(half()).collect();
    let submit = |victim: SharedVictim| {
        let mut device = device(&["gc.victim=external"], None, Some(victim));
        let result = requests.chunks(4096).try_for_each(|batch| device.submit(batch));
        device.check().unwrap();
        let collector = device.snapshot().collector;
        (result, collector.victim_pages - collector.victim_invalid_pages)
    };
    let (result, _) = submit(Arc::new(Mutex::new(Fullest)));
    let problem = result.unwrap_err().to_string();
    assert!(problem.contains("blocks in a row in which every page is valid"), "{problem}");
    let (result, copied) = submit(Arc::new(Mutex::new(Oldest)));
    assert_eq!(result, Ok(()));
    assert!(copied >= PAGES / 2, "{copied} pages copied: full blocks were among the victims");
}

#[test]
fn the_name_alone_is_refused_with_how_it_is_used() {
    let error = |set: &str| {
        let spec = DeviceSpec::from_toml("", &[set.to_owned()]).unwrap();
        let environment = Environment { logical_bytes: PAGES * 4096, ..Environment::default() };
        build(&spec, &environment).err().unwrap().to_string()
    };
    assert!(error("placement.name=external").contains("a program brings along"));
    assert!(error("gc.victim=external").contains("a program brings along"));
    assert!(error("placement.name=external:colour=1").contains("unknown parameter \"colour\""));
}
