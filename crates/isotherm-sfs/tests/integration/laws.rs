//! The log against itself recomputed from scratch, and against a plain log written in the simplest way.

use isotherm::device::DeviceError;
use isotherm::hotness::quantise::{Quantiser, QuantiserOptions};
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm_sfs::checkpoint::CheckpointWrite;
use isotherm_sfs::content::BlockContent;
use isotherm_sfs::disk::{Disk, SegmentWrite};
use isotherm_sfs::log::SegmentLog;
use isotherm_sfs::options::{LogOptions, parse_log};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;

/// Nothing below.
struct Nothing;

impl Disk for Nothing {
    type Block = ();
    fn write(&mut self, _: &SegmentWrite<'_, ()>) -> Result<(), DeviceError> {
        Ok(())
    }
    fn read(&mut self, _: u32, _: &mut [()]) -> Result<(), DeviceError> {
        Ok(())
    }
    fn trim(&mut self, _: u32) -> Result<(), DeviceError> {
        Ok(())
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn checkpoint(&mut self, _: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        Ok(())
    }
}

fn options(text: &str, clean_below: u32) -> LogOptions {
    let name: PolicyName = text.parse().unwrap();
    LogOptions { clean_below, ..parse_log(&name, 3).unwrap().options }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u32),
    Trim(u32),
    Sync,
    Checkpoint,
}

const BLOCKS: u32 = 100;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0..20u32).prop_map(Step::Write),
        20 => (0..BLOCKS).prop_map(Step::Write),
        3 => (0..BLOCKS).prop_map(Step::Trim),
        1 => Just(Step::Sync),
        1 => Just(Step::Checkpoint),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hotness_kept_incrementally_equals_recomputation(
        steps in prop::collection::vec(step(), 1..1500),
        text in prop::sample::select(vec![
            "sfs:segment=36KiB", "sfs:segment=36KiB,age=modified,tick=32KiB", "sfs:segment=20KiB,groups=2,dirty=8KiB",
            "lfs:segment=36KiB",
        ]),
    ) {
        let mut log = SegmentLog::new(Nothing, BLOCKS, 34, options(text, 4));
        for step in steps {
            match step {
                Step::Write(block) => log.write(block, ()).unwrap(),
                Step::Trim(block) => log.trim(block),
                Step::Sync => log.sync().unwrap(),
                Step::Checkpoint => log.checkpoint().unwrap(),
            }
            log.check().map_err(TestCaseError::fail)?;
        }
    }
}

/// Within a tick no block is younger than another.
#[test]
fn a_coarse_clock_counts_ages_in_its_ticks() {
    for (tick, expected) in [("4KiB", 8.0 / (8.0 * 64.0 - 28.0)), ("64KiB", 8.0 / (8.0 * 4.0))] {
        let text = format!("sfs:segment=36KiB,groups=1,dirty=64KiB,tick={tick}");
        let mut log = SegmentLog::new(Nothing, BLOCKS, 34, options(&text, 4));
        (0..64).for_each(|block| log.write(block, ()).unwrap());
        // The first segment holds the blocks of the first eight writes; 63 writes later, or 3 ticks, they are as old as that.
        let now = if tick == "4KiB" { 63 } else { 3 };
        assert_eq!(log.segments().hotness(0, now), Some(expected), "tick={tick}");
    }
}

/// Keeps what blocks hold, or nothing; the next read fails if it is told so.
struct Kept<C> {
    blocks: Vec<C>,
    segment_blocks: u32,
    read_fails: bool,
}

impl<C: BlockContent> Kept<C> {
    fn new(segments: u32, segment_blocks: u32) -> Self {
        Self { blocks: vec![C::default(); (segments * segment_blocks) as usize], segment_blocks, read_fails: false }
    }
}

impl<C: BlockContent> Disk for Kept<C> {
    type Block = C;
    fn write(&mut self, write: &SegmentWrite<'_, C>) -> Result<(), DeviceError> {
        let data = (write.position + write.summary_blocks) as usize;
        for (block, content) in self.blocks[data..].iter_mut().zip(write.contents()) {
            *block = content.clone();
        }
        Ok(())
    }
    fn read(&mut self, position: u32, out: &mut [C]) -> Result<(), DeviceError> {
        if std::mem::take(&mut self.read_fails) {
            return Err(DeviceError::Unreadable { lpn: position });
        }
        out.clone_from_slice(&self.blocks[position as usize..][..out.len()]);
        Ok(())
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        let from = (segment * self.segment_blocks) as usize;
        self.blocks[from..from + self.segment_blocks as usize].fill(C::default());
        Ok(())
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn checkpoint(&mut self, _: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Does a step to a log, where a write gives a block `content`.
fn take<C: BlockContent>(log: &mut SegmentLog<Kept<C>>, step: &Step, content: C) -> Result<(), DeviceError> {
    match step {
        Step::Write(block) => log.write(*block, content)?,
        Step::Trim(block) => log.trim(*block),
        Step::Sync => log.sync()?,
        Step::Checkpoint => log.checkpoint()?,
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_log_returns_the_last_write_of_every_block_and_counts_as_without_bytes(
        steps in prop::collection::vec((step(), prop::bool::weighted(0.01)), 1..1500),
        text in prop::sample::select(vec![
            "sfs:segment=36KiB", "sfs:segment=36KiB,summary_bytes=1024", "sfs:segment=20KiB,groups=2,dirty=8KiB",
            "lfs:segment=36KiB,dirty=80KiB", "lfs:segment=20KiB,summary_bytes=0,trim=never",
        ]),
    ) {
        const SEGMENTS: u32 = 34;
        let options = options(text, 4);
        let mut bytes = SegmentLog::new(Kept::<Box<[u8]>>::new(SEGMENTS, options.segment_blocks), BLOCKS, SEGMENTS, options);
        let mut plain = SegmentLog::new(Kept::<()>::new(SEGMENTS, options.segment_blocks), BLOCKS, SEGMENTS, options);
        let content = |turn: usize| -> Box<[u8]> { turn.to_le_bytes().repeat(512).into() };
        let mut model: Vec<Option<usize>> = vec![None; BLOCKS as usize];
        for (turn, (step, read_fails)) in steps.iter().enumerate() {
            bytes.store_mut().read_fails = *read_fails;
            plain.store_mut().read_fails = *read_fails;
            // A write that fails has reached the cache: the failure is that of a segment write or of cleaning.
            prop_assert_eq!(take(&mut bytes, step, content(turn)), take(&mut plain, step, ()));
            match step {
                Step::Write(block) => model[*block as usize] = Some(turn),
                Step::Trim(block) => model[*block as usize] = None,
                Step::Sync | Step::Checkpoint => {}
            }
            bytes.store_mut().read_fails = false;
            plain.store_mut().read_fails = false;
            let asked = (turn * 7) as u32 % BLOCKS;
            for block in if turn + 1 < steps.len() { asked..asked + 1 } else { 0..BLOCKS } {
                let mut out = Box::default();
                let found = bytes.read(block, &mut out).unwrap();
                prop_assert_eq!(found, plain.read(block, &mut ()).unwrap());
                let found = found.then_some(out);
                prop_assert_eq!(found, model[block as usize].map(content), "block {}", block);
            }
            bytes.check().map_err(TestCaseError::fail)?;
        }
        prop_assert_eq!(bytes.counters(), plain.counters());
        prop_assert!(bytes.positions().eq(plain.positions()));
    }
}

/// A plain log in the simplest way: everything dirty is written at once, in the order in which it became dirty.
struct PlainLog {
    payload: usize,
    segment: usize,
    /// Entries of each segment: block and the version that it holds.
    segments: Vec<Vec<(u32, u32)>>,
    youngest: Vec<u64>,
    free: VecDeque<usize>,
    closed: Vec<bool>,
    open: Option<(usize, usize)>,
    versions: Vec<u32>,
    modified: Vec<u64>,
    dirty: Vec<(u32, bool)>,
    now: u64,
    greedy: bool,
    clean_below: usize,
    logged: u64,
    cleaned: u64,
    written_segments: u64,
    cleaned_segments: u64,
    partial: u64,
}

impl PlainLog {
    fn write(&mut self, block: u32, limit: usize) {
        self.modified[block as usize] = self.now;
        self.now += 1;
        self.versions[block as usize] += 1;
        match self.dirty.iter_mut().find(|d| d.0 == block) {
            Some(dirty) => dirty.1 = true,
            None => self.dirty.push((block, true)),
        }
        if self.dirty.len() >= limit {
            self.flush();
        }
    }

    fn live(&self, segment: usize) -> usize {
        let live = |e: &&(u32, u32)| self.versions[e.0 as usize] == e.1 && !self.dirty.iter().any(|d| d.0 == e.0);
        self.segments[segment].iter().filter(live).count()
    }

    fn victim(&self) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for segment in (0..self.segments.len()).filter(|s| self.closed[*s]) {
            let live = self.live(segment);
            let u = live as f64 / self.payload as f64;
            let age = (self.now - self.youngest[segment]) as f64 + 1.0;
            let score = if live == 0 {
                return Some(segment);
            } else if self.greedy {
                -u
            } else {
                (1.0 - u) / (2.0 * u) * age
            };
            if live < self.payload && best.is_none_or(|b| score > b.0) {
                best = Some((score, segment));
            }
        }
        best.map(|b| b.1)
    }

    fn flush(&mut self) {
        loop {
            let mut cleaned = 0;
            if self.free.len() <= self.clean_below {
                for _ in 0..3 {
                    let Some(victim) = self.victim() else { break };
                    let alive: Vec<u32> = self.segments[victim]
                        .iter()
                        .filter(|e| self.versions[e.0 as usize] == e.1 && !self.dirty.iter().any(|d| d.0 == e.0))
                        .map(|e| e.0)
                        .collect();
                    self.dirty.extend(alive.into_iter().map(|b| (b, false)));
                    self.segments[victim].clear();
                    self.closed[victim] = false;
                    self.free.push_back(victim);
                    self.cleaned_segments += 1;
                    cleaned += 1;
                }
            }
            let mut waiting: VecDeque<(u32, bool)> = std::mem::take(&mut self.dirty).into();
            while waiting.len() >= self.payload {
                let segment = self.free.pop_front().unwrap();
                self.written_segments += 1;
                for _ in 0..self.payload {
                    self.put(segment, waiting.pop_front().unwrap());
                }
                self.closed[segment] = true;
            }
            while !waiting.is_empty() {
                let (segment, used) = self.open.take().unwrap_or_else(|| {
                    self.written_segments += 1;
                    (self.free.pop_front().unwrap(), 0)
                });
                // One summary block for up to 256 blocks.
                let count = waiting.len().min(self.segment - used - 1);
                for _ in 0..count {
                    self.put(segment, waiting.pop_front().unwrap());
                }
                self.partial += 1;
                let used = used + count + 1;
                if self.segment - used < 2 {
                    self.closed[segment] = true;
                } else {
                    self.open = Some((segment, used));
                }
            }
            if cleaned == 0 || self.free.len() > self.clean_below {
                return;
            }
        }
    }

    fn put(&mut self, segment: usize, (block, by_host): (u32, bool)) {
        let modified = self.modified[block as usize];
        let first = self.live(segment) == 0;
        self.youngest[segment] = if first { modified } else { self.youngest[segment].max(modified) };
        self.segments[segment].push((block, self.versions[block as usize]));
        self.logged += u64::from(by_host);
        self.cleaned += u64::from(!by_host);
    }
}

#[test]
fn one_group_without_deferral_counts_exactly_as_a_plain_log() {
    const SEGMENTS: usize = 40;
    for greedy in [false, true] {
        let victim = if greedy { "greedy" } else { "cost_benefit" };
        for text in [
            "sfs:groups=1,defer=false,segment=36KiB,dirty=52KiB,checkpoint_segments=1000000",
            "lfs:segment=36KiB,dirty=52KiB,checkpoint_segments=1000000",
        ] {
            let mut log =
                SegmentLog::new(Nothing, 220, SEGMENTS as u32, options(&format!("{text},victim={victim}"), 6));
            let mut plain = PlainLog {
                payload: 8,
                segment: 9,
                segments: vec![Vec::new(); SEGMENTS],
                youngest: vec![0; SEGMENTS],
                free: (0..SEGMENTS).collect(),
                closed: vec![false; SEGMENTS],
                open: None,
                versions: vec![0; 220],
                modified: vec![0; 220],
                dirty: Vec::new(),
                now: 0,
                greedy,
                clean_below: 6,
                logged: 0,
                cleaned: 0,
                written_segments: 0,
                cleaned_segments: 0,
                partial: 0,
            };
            let mut random = Random::new(2);
            for turn in 0..20_000 {
                let hot = random.chance(0.7);
                let block = if turn < 220 { turn } else { random.below(if hot { 40 } else { 220 }) as u32 };
                log.write(block, ()).unwrap();
                plain.write(block, 13);
            }
            let counters = log.counters();
            assert_eq!(counters.guarded_blocks, 0, "the plain log has no guard");
            assert_eq!(
                (counters.logged_blocks, counters.cleaned_blocks, counters.segments_written),
                (plain.logged, plain.cleaned, plain.written_segments),
                "{text},{victim}"
            );
            assert_eq!((counters.segments_cleaned, counters.partial_writes), (plain.cleaned_segments, plain.partial));
            assert!(counters.segments_cleaned > 1000);
        }
    }
}

/// Hotness of segments spread over orders of magnitude, in four clusters.
fn hotnesses(segments: usize) -> Vec<f64> {
    let mut random = Random::new(4);
    (0..segments).map(|_| [1.0, 20.0, 300.0, 5000.0][random.below(4) as usize] * (0.5 + random.unit())).collect()
}

/// Segments whose hotness one update asks for.
fn looked_at(quantiser: &mut Quantiser, hotnesses: &[f64]) -> usize {
    let count = Cell::new(0);
    quantiser.update(hotnesses.len(), u64::MAX, |i| {
        count.set(count.get() + 1);
        Some(hotnesses[i])
    });
    count.get()
}

#[test]
fn quantisation_looks_at_each_segment_once_and_at_no_more_than_it_may() {
    let options = QuantiserOptions { groups: 8, ..QuantiserOptions::PLAIN };
    for (segments, first, later) in
        [(100, 100, 100), (10_000, 10_000, 10_000), (10_001, 10_000, 157), (1_000_000, 10_000, 157)]
    {
        let mut quantiser = Quantiser::new(options, 1);
        let hotnesses = hotnesses(segments);
        for (time, expected) in [first, later, later].into_iter().enumerate() {
            assert_eq!(looked_at(&mut quantiser, &hotnesses), expected, "{segments} segments, time {time}");
        }
    }
}

/// Mean and standard error of a sample's mean, for each group that the centres part `hotnesses` into.
fn standard_errors(hotnesses: &[f64], centres: &[f64], sample: usize) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0, 0.0); centres.len()];
    for hotness in hotnesses {
        let distance = |centre: &f64| (centre - hotness).abs();
        let nearest = (0..centres.len()).min_by(|a, b| distance(&centres[*a]).total_cmp(&distance(&centres[*b])));
        let group = &mut sums[nearest.unwrap()];
        *group = (group.0 + 1.0, group.1 + hotness, group.2 + hotness * hotness);
    }
    let error = |(count, sum, squares): (f64, f64, f64)| {
        let mean = sum / count;
        let samples = count * sample as f64 / hotnesses.len() as f64;
        (mean, ((squares / count - mean * mean) / samples).sqrt())
    };
    sums.into_iter().map(error).collect()
}

#[test]
fn a_sample_of_a_million_segments_finds_the_centres_of_the_full_computation() {
    // Thirty samples: after 64 times all of a sample was asked for anew.
    const SAMPLES: usize = 30;
    const UPDATES: usize = 64 * SAMPLES;
    let hotnesses = hotnesses(1_000_000);
    let options = QuantiserOptions { groups: 4, ..QuantiserOptions::PLAIN };
    let mut full = Quantiser::new(QuantiserOptions { sample_max: usize::MAX, ..options }, 1);
    let mut sampled = Quantiser::new(options, 1);
    let mut means = [0.0; 4];
    for update in 0..10 + UPDATES {
        if update < 10 {
            full.update(hotnesses.len(), u64::MAX, |i| Some(hotnesses[i]));
        }
        sampled.update(hotnesses.len(), u64::MAX, |i| Some(hotnesses[i]));
        if update >= 10 {
            means.iter_mut().zip(sampled.centres()).for_each(|(mean, centre)| *mean += centre / UPDATES as f64);
        }
    }
    println!("full {:?}, sampled {:?}, mean of {UPDATES} {means:?}", full.centres(), sampled.centres());
    // The coldest group reaches from 0.5 to half way to 300, so that it scatters twice as widely as its mean: 5,000 of its
    // segments tell the mean to 2.2 % and no better, whatever the sampling. What may be asked is that a sample's centre lies within
    // three standard errors, and that samples are not off in one direction: their mean comes far closer.
    let errors = standard_errors(&hotnesses, &full.centres(), options.sample_max);
    for (index, (mean, error)) in errors.into_iter().enumerate() {
        let (one, many) = (sampled.centres()[index], means[index]);
        println!("centre {mean:.1}, standard error {:.2} %", error / mean * 100.0);
        assert!((one - mean).abs() < 3.0 * error, "{one} {mean}, standard error {error}");
        assert!((many - mean).abs() < 3.0 * error / (SAMPLES as f64).sqrt() + 0.002 * mean, "{many} {mean}");
        assert!((many / mean - 1.0).abs() < 0.03, "{many} {mean}");
    }
}
