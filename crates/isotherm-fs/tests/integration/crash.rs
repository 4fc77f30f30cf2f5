//! Volumes of files, crashed at every write, against a model of what happened.

use crate::support::history::{Durable, History};
use crate::support::model::Model;
use crate::support::operation::Operation;
use crate::support::random::Random;
use crate::support::recording::{Content, Event, RecordingDevice};
use crate::support::snapshot::{Seen, Snapshot, perform, snapshot};
use crate::support::volumes::make_on;
use crate::support::workload::{self, Mix};
use isotherm_fs::log::LogSettings;
use isotherm_fs::tree::check::Finding;
use isotherm_fs::volume::Volume;
use isotherm_vfs::{Caller, Errno, FileKind, FileSystem, RenameMode, Time};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const DEVICE_BYTES: u64 = 7 << 20;
const BLOCK: u64 = 4096;

fn settings() -> LogSettings {
    LogSettings { cache_bytes: 256 << 10, ..LogSettings::parse("sfs:groups=3").expect("it is one") }
}

/// A device with an empty volume.
fn empty() -> Content {
    make_on(RecordingDevice::new(DEVICE_BYTES, Content::default()), 256 << 10).parts().0
}

/// A mounted volume and the states that it went through.
struct Run {
    volume: Volume,
    device: Arc<RecordingDevice>,
    /// What the device held at first.
    start: Content,
    /// Operations so far, which is the time.
    clock: Arc<AtomicI64>,
    history: History,
    /// Requests that found no space.
    refused: u64,
    random: Random,
}

impl Run {
    /// Mounts what a device holds; that is the first state. Crashes are told from there on.
    fn mount(start: Content, seed: u64, clock: i64) -> Result<Self, String> {
        let device = Arc::new(RecordingDevice::new(DEVICE_BYTES, start.clone()));
        let clock = Arc::new(AtomicI64::new(clock));
        let volume = open(&device, &clock)?;
        let seen = snapshot(&volume).map_err(|error| format!("not all can be read: {error}"))?;
        let history = History::new(Model::of(&seen));
        Ok(Self { volume, device, start, clock, history, refused: 0, random: Random(seed) })
    }

    /// Carries out one operation on the volume and on the model, which have to agree on how it ends.
    fn step(&mut self, operation: &Operation) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let event = self.device.events();
        let mut model = self.history.last().clone();
        let expected = model.apply(operation, now);
        let found = perform(&self.volume, operation);
        if found == Err(Errno::NOSPC) && expected.is_ok() {
            self.refused += 1;
            let unchanged = self.history.last().clone();
            return self.history.push(unchanged, event);
        }
        let failure = self.volume.inspect(|tree| tree.store().failure().map(str::to_owned)).expect("no panic");
        assert_eq!(found, expected, "{operation:?} at {now}: {failure:?}");
        if found.is_err() {
            let unchanged = self.history.last().clone();
            return self.history.push(unchanged, event);
        }
        let durable = match operation {
            Operation::Fsync(path) => model.find(path).ok().map(Durable::Node),
            Operation::FsyncDirectory(_) => Some(Durable::Names),
            Operation::Sync | Operation::Checkpoint => Some(Durable::All),
            _ => None,
        };
        self.history.push(model, event);
        if let Some(what) = durable {
            self.history.keep(self.device.events(), what);
        }
    }

    /// Carries out one that looks random.
    fn random_step(&mut self, mix: Mix) {
        let model = self.history.last();
        let is_file = |number: &usize| model.node(*number).is_some_and(|node| node.file().is_some());
        let files: Vec<String> = model.paths().into_iter().filter(|(_, n)| is_file(n)).map(|(path, _)| path).collect();
        // A volume that is full is emptied a little, sometimes.
        let mix = Mix { removals: if self.refused % 64 > 40 { 60 } else { mix.removals }, ..mix };
        let stamp = self.clock.load(Ordering::Relaxed) as u64 + 1;
        let operation = workload::next(&mut self.random, &files, stamp, mix);
        self.step(&operation);
    }
}

fn open(device: &Arc<RecordingDevice>, clock: &Arc<AtomicI64>) -> Result<Volume, String> {
    let clock = clock.clone();
    let now = move || Time { seconds: clock.load(Ordering::Relaxed), nanoseconds: 0 };
    let opened = Volume::open(device.clone(), settings(), now).map_err(|error| format!("it cannot be opened: {error}"));
    Ok(opened?.0)
}

/// What a check finds that a crash may not leave.
fn faults(volume: &Volume) -> Vec<Finding> {
    volume.inspect(|tree| tree.check()).expect("no panic").expect("memory")
}

/// Files that keep space for data behind their end, which nobody can read.
fn hoards(volume: &Volume, seen: &Snapshot) -> Vec<String> {
    let keeps = |seen: &Seen| {
        let first = seen.size.div_ceil(BLOCK);
        let stored = volume.inspect(|tree| tree.stored_extents(seen.ino, first, 1)).expect("no panic");
        !stored.expect("it is a file").is_empty()
    };
    let files = seen.iter().filter(|(_, seen)| seen.kind == FileKind::Regular);
    files.filter(|(_, seen)| keeps(seen)).map(|(path, _)| path.clone()).collect()
}

/// Explores what crashes leave.
struct Explorer {
    random: Random,
    /// Every so manieth event is one at which it crashes.
    stride: usize,
    /// Every so manieth state is gone on from.
    continued: u64,
    states: u64,
}

impl Explorer {
    /// States that crashes between events of a run may leave.
    fn explore(&mut self, run: &Run, at: Range<usize>) {
        let (_, events) = run.device.parts();
        let mut synced = run.start.clone();
        let mut from = 0;
        for event in 0..=events.len() {
            if event > 0 && matches!(events[event - 1], Event::Flush) {
                events[from..event].iter().for_each(|event| synced.apply(event, |_| true));
                from = event;
            }
            let is_due = event % self.stride == 0 || event == events.len();
            if !is_due || !at.contains(&event) {
                continue;
            }
            let unflushed = &events[from..event];
            for kind in 0..if unflushed.is_empty() { 1 } else { 4 } {
                let content = self.crash(&synced, unflushed, kind);
                self.visit(run, event, content)
                    .unwrap_or_else(|error| panic!("event {event} of {}, kind {kind}: {error}", events.len()));
            }
        }
    }

    /// All, none, some, or some sectors of what was not flushed.
    fn crash(&mut self, synced: &Content, unflushed: &[Event], kind: u32) -> Content {
        let mut content = synced.clone();
        for event in unflushed {
            match kind {
                0 => content.apply(event, |_| true),
                1 => {}
                2 => {
                    let takes = self.random.chance(50);
                    content.apply(event, |_| takes);
                }
                _ => content.apply(event, |_| self.random.chance(70)),
            }
        }
        content
    }

    fn visit(&mut self, run: &Run, event: usize, content: Content) -> Result<(), String> {
        self.states += 1;
        let seed = self.random.next();
        let mut again = Run::mount(content, seed, run.clock.load(Ordering::Relaxed))?;
        let seen = snapshot(&again.volume).map_err(|error| format!("not all can be read: {error}"))?;
        run.history.find(&seen, event)?;
        let found = faults(&again.volume);
        if !found.is_empty() {
            return Err(format!("the check finds {found:?}"));
        }
        let found = hoards(&again.volume, &seen);
        if !found.is_empty() {
            return Err(format!("data lies behind the end of {found:?}"));
        }
        if self.continued > 0 && self.states.is_multiple_of(self.continued) {
            for _ in 0..12 {
                again.random_step(Mix { blocks: 6, durable: 25, removals: 15 });
            }
            again.step(&Operation::Sync);
            let mut explorer = Explorer { random: Random(seed), stride: self.stride.min(3), continued: 0, states: 0 };
            // Crashes while it was mounted are those of the first state, too: nothing is lost that was found.
            explorer.explore(&again, 0..usize::MAX);
            self.states += explorer.states;
        }
        Ok(())
    }
}

/// States of all tests.
static STATES: AtomicU64 = AtomicU64::new(0);

fn is_soak() -> bool {
    std::env::var_os("ISOTHERM_SOAK").is_some()
}

fn report(name: &str, states: u64) {
    let all = STATES.fetch_add(states, Ordering::Relaxed) + states;
    println!("{name}: {states} states of crashes, {all} so far");
}

#[test]
fn whatever_a_crash_leaves_of_a_volume_that_is_cleaned_is_a_state_that_it_was_in() {
    let (seeds, stride) = if is_soak() { (300, 1) } else { (3, 6) };
    let mut states = 0;
    let (mut cleaned, mut refused) = (0, 0);
    for seed in 0..seeds {
        let mut run = Run::mount(empty(), seed, 0).expect("it is whole");
        // Few large writes fill it; many small ones come between.
        let mix = Mix { blocks: [8, 10, 12][seed as usize % 3], durable: 12, removals: 1 };
        for _ in 0..1100 {
            run.random_step(mix);
        }
        cleaned += run.volume.inspect(|tree| tree.store_mut().counters().segments_cleaned).expect("no panic");
        refused += run.refused;
        let mut explorer = Explorer { random: Random(seed + 1000), stride, continued: 200, states: 0 };
        explorer.explore(&run, 0..usize::MAX);
        states += explorer.states;
    }
    report("cleaned volumes", states);
    println!("{cleaned} segments cleaned, {refused} requests refused for want of space");
    assert!(cleaned > 3 * seeds, "{cleaned} segments cleaned: the runs are too short");
}

#[test]
fn without_a_crash_a_volume_is_as_the_model_says_mounted_anew_and_full() {
    let seeds = if is_soak() { 200 } else { 6 };
    let (mut refused, mut mounted) = (0, 0);
    for seed in 0..seeds {
        let mut run = Run::mount(empty(), seed, 0).expect("it is whole");
        let free = run.volume.statistics().expect("no panic").blocks_free;
        let mut is_exact = true;
        for _ in 0..700 {
            let before = run.refused;
            run.random_step(Mix { blocks: [8, 12, 16][seed as usize % 3], durable: 8, removals: 1 });
            is_exact &= run.refused == before;
            if run.refused > before || run.random.chance(10) {
                let seen = snapshot(&run.volume).expect("all can be read");
                run.history.is_last(&seen, is_exact).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            if run.random.chance(3) {
                mounted += 1;
                run = remount(run, seed);
            }
        }
        refused += run.refused;
        empty_out(&mut run);
        let left = run.volume.statistics().expect("no panic").blocks_free;
        assert!(left + 8 >= free, "of {free} blocks {left} are free when all is removed");
    }
    println!("{refused} requests refused for want of space, mounted {mounted} times");
    assert!(refused > 0, "the volume was never full");
}

/// Unmounts, or only makes everything durable, and mounts again.
fn remount(mut run: Run, seed: u64) -> Run {
    if run.random.chance(50) {
        run.volume.close().expect("the device works");
    } else {
        run.volume.sync().expect("the device works");
    }
    run.volume = open(&run.device, &run.clock).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(faults(&run.volume), [], "seed {seed}");
    let seen = snapshot(&run.volume).expect("all can be read");
    run.history.is_last(&seen, false).unwrap_or_else(|error| panic!("seed {seed}, mounted again: {error}"));
    run
}

/// Removes everything, full or not.
fn empty_out(run: &mut Run) {
    let paths: Vec<String> = run.history.last().paths().into_keys().filter(|path| !path.is_empty()).collect();
    for path in paths.into_iter().rev() {
        let node = run.history.last().find(&path).expect("it is there");
        let is_directory = run.history.last().listing(node).is_ok();
        let refused = run.refused;
        run.step(&if is_directory { Operation::RemoveDirectory(path) } else { Operation::Unlink(path) });
        assert_eq!(run.refused, refused, "nothing can be removed from a full volume");
    }
    run.step(&Operation::Checkpoint);
    assert_eq!(faults(&run.volume), []);
}

/// Two files in two directories, and all that may be asked of them in one operation.
fn single_operations() -> Vec<Operation> {
    let path = |text: &str| text.to_owned();
    let mut all = Vec::new();
    for name in ["a/x", "b/y"] {
        let path = || path(name);
        let stamp = 1000 + name.len() as u64;
        all.extend([
            Operation::Write { path: path(), offset: 0, length: 4096, stamp },
            Operation::Write { path: path(), offset: 3000, length: 5000, stamp },
            Operation::Write { path: path(), offset: 40_000, length: 100, stamp },
            Operation::Append { path: path(), length: 4000, stamp },
            Operation::Append { path: path(), length: 300_000, stamp },
            Operation::Truncate { path: path(), size: 0 },
            Operation::Truncate { path: path(), size: 2500 },
            Operation::Truncate { path: path(), size: 20_000 },
            Operation::Reserve { path: path(), offset: 4096, length: 12_000, keep_size: false },
            Operation::Reserve { path: path(), offset: 4096, length: 12_000, keep_size: true },
            Operation::Zero { path: path(), offset: 1000, length: 8000, keep_size: false },
            Operation::Zero { path: path(), offset: 1000, length: 8000, keep_size: true },
            Operation::Punch { path: path(), offset: 1000, length: 7000 },
            Operation::Unlink(path()),
            Operation::SetXattr { path: path(), name: "user.new".into(), length: 5000, stamp },
            Operation::RemoveXattr { path: path(), name: "user.old".into() },
            Operation::Permissions { path: path(), permissions: 0o600 },
            Operation::Link { from: path(), to: "a/new".into() },
            Operation::Create("b/new".into()),
        ]);
    }
    for (from, to) in [("a/x", "b/y"), ("b/y", "a/x"), ("a/x", "b/new"), ("a", "b"), ("a", "new"), ("b", "a/b")] {
        let whiteout = |replaces| RenameMode::Whiteout { caller: Caller::default(), replaces };
        let moves = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
        for mode in moves.into_iter().chain([whiteout(true), whiteout(false)]) {
            all.push(Operation::Rename { from: path(from), to: path(to), mode });
        }
    }
    all.extend([
        Operation::MakeDirectory("a/new".into()),
        Operation::Symlink { path: "a/new".into(), target: "x".into() },
        Operation::RemoveDirectory("a".into()),
        Operation::RemoveDirectory("b/empty".into()),
        Operation::Create("b/empty/z".into()),
        Operation::Unlink("a/new".into()),
    ]);
    all
}

/// Where sequences of few operations begin.
fn prepared() -> Content {
    let mut run = Run::mount(empty(), 0, 0).expect("it is whole");
    for operation in [
        Operation::MakeDirectory("a".into()),
        Operation::MakeDirectory("b".into()),
        Operation::MakeDirectory("b/empty".into()),
        Operation::Create("a/x".into()),
        Operation::Create("b/y".into()),
        Operation::Write { path: "a/x".into(), offset: 0, length: 10_000, stamp: 11 },
        Operation::Write { path: "b/y".into(), offset: 0, length: 5000, stamp: 12 },
        Operation::SetXattr { path: "a/x".into(), name: "user.old".into(), length: 10, stamp: 13 },
        Operation::SetXattr { path: "b/y".into(), name: "user.old".into(), length: 10, stamp: 14 },
    ] {
        run.step(&operation);
    }
    run.volume.close().expect("the device works");
    run.device.parts().0
}

#[test]
fn after_every_two_operations_and_what_makes_them_durable_a_crash_leaves_one_of_the_states() {
    let start = prepared();
    let keepers = ["a/x", "b/y", "a", "new"].map(|path| Operation::Fsync(path.into()));
    let others = [Operation::Sync, Operation::WriteGroups, Operation::Checkpoint];
    let keepers: Vec<Operation> = keepers.into_iter().chain(others).collect();
    let single = single_operations();
    let count = single.len() * (single.len() + 1);
    let mut explorer = Explorer { random: Random(7), stride: 1, continued: 300, states: 0 };
    // One keeper after each sequence, another one between its operations; in a soak one pair of keepers after the other, until there
    // are enough states.
    let pairs = keepers.len() * (keepers.len() + 1);
    let (rounds, least) = if is_soak() { (pairs, 1_000_000) } else { (1, 20_000) };
    for round in 0..rounds {
        for number in 0..count {
            let (first, second) = (number % single.len(), number / single.len());
            let chosen = if is_soak() { round * 37 % pairs } else { explorer.random.below(pairs as u64) as usize };
            let mut run = Run::mount(start.clone(), number as u64, 100).expect("it is whole");
            let mounted = run.device.events();
            run.step(&single[first]);
            if let Some(between) = keepers.get(chosen / keepers.len()) {
                run.step(between);
            }
            if let Some(operation) = second.checked_sub(1).map(|second| &single[second]) {
                run.step(operation);
            }
            run.step(&keepers[chosen % keepers.len()]);
            explorer.explore(&run, mounted..usize::MAX);
        }
        println!("round {round}: {} states", explorer.states);
        if explorer.states >= least {
            break;
        }
    }
    assert!(explorer.states >= least, "{} states", explorer.states);
    report("sequences of two", explorer.states);
}
