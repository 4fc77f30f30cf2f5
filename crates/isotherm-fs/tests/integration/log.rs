//! The log alone: transactions on pages and blocks of data, crashed at every write, against a model of what happened.

use crate::support::damage::newest_checkpoint;
use crate::support::driver::{carry_out, clean, commit};
use crate::support::random::Random;
use crate::support::recording::{Content, Event, RecordingDevice};
use crate::support::volumes::superblock;
use isotherm_fs::device::Device as _;
use isotherm_fs::log::{Goal, Log, LogSettings, Pressure};
use isotherm_fs::store::{Found, Heat, Purpose, Slot, Store, page_kind};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

const DEVICE_BYTES: u64 = 12 << 20;
const PAGES: u64 = 40;

/// What the log holds: pages of bytes by their stamp, and the versions of blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Model {
    /// Page to the bytes at a few offsets, as (offset, value).
    pages: BTreeMap<u32, BTreeMap<u16, u8>>,
    /// Maps, by page: slots to the version since which they are no hole, and the newest one; 0 for reserved.
    maps: BTreeMap<u32, BTreeMap<u8, (u64, u64)>>,
}

struct Run {
    device: Arc<RecordingDevice>,
    /// The model after each transaction, and the event count at which it was certainly durable.
    states: Vec<Model>,
    /// (event, state, versions) that are durable from that event on.
    durable: Vec<(usize, usize, BTreeMap<Slot, u64>)>,
    start: Content,
    segments_cleaned: u64,
}

fn settings() -> LogSettings {
    LogSettings { cache_bytes: 256 << 10, ..LogSettings::parse("sfs:groups=3").expect("it is one") }
}

fn content(slot: Slot, version: u64) -> Arc<[u8; 4096]> {
    let mut page = [0; 4096];
    for (at, word) in page.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(
            &(version ^ (at as u64) << 40 ^ u64::from(slot.page) << 8 ^ u64::from(slot.index)).to_le_bytes(),
        );
    }
    Arc::new(page)
}

/// One random transaction, or one write of a block.
fn step(log: &mut Log, random: &mut Random, model: &mut Model, versions: &mut u64) -> bool {
    let maps: Vec<u32> = model.maps.keys().copied().collect();
    if !maps.is_empty() && random.chance(70) {
        let page = maps[random.below(maps.len() as u64) as usize];
        // A few slots are hot.
        let index = if random.chance(60) { 1 + random.below(8) } else { 1 + random.below(255) } as u8;
        let slot = Slot { page, index };
        *versions += 1;
        let file = Heat { writes: 1, time: 0 };
        if log.put_block(slot, u64::from(page), file, content(slot, *versions)).is_ok() {
            let slots = model.maps.get_mut(&page).expect("it is there");
            let born = slots.get(&index).map_or(0, |(born, _)| *born);
            slots.insert(index, (if born == 0 { *versions } else { born }, *versions));
        }
        return false;
    }
    log.begin(Purpose::Grow).expect("it can be written");
    let mut changed = model.clone();
    for _ in 0..1 + random.below(4) {
        if transact(log, random, &mut changed, *versions).is_none() {
            log.abort();
            return false;
        }
    }
    if random.chance(10) {
        log.abort();
        return false;
    }
    log.commit();
    *model = changed;
    true
}

fn transact(log: &mut Log, random: &mut Random, model: &mut Model, versions: u64) -> Option<()> {
    let all: Vec<u32> = model.pages.keys().copied().collect();
    let maps: Vec<u32> = model.maps.keys().copied().collect();
    let some = |random: &mut Random, from: &[u32]| from[random.below(from.len() as u64) as usize];
    match random.below(6) {
        0 if all.len() < PAGES as usize => {
            let id = log.allocate().ok()?;
            log.page_mut(id).ok()?[0] = 99;
            model.pages.insert(id, BTreeMap::new());
        }
        1 if maps.len() < 6 => {
            let id = log.allocate().ok()?;
            log.page_mut(id).ok()?[0] = page_kind::MAP;
            model.maps.insert(id, BTreeMap::new());
        }
        2 if all.len() > 10 => {
            let id = some(random, &all);
            log.free(id).ok()?;
            model.pages.remove(&id);
        }
        3 if !maps.is_empty() => {
            let id = some(random, &maps);
            let from = 1 + random.below(255) as u16;
            let to = (from + random.below(40) as u16).min(256);
            let released = log.release_blocks(id, from..to).ok()?;
            let slots = model.maps.get_mut(&id)?;
            let before = slots.len();
            slots.retain(|index, _| !(from..to).contains(&u16::from(*index)));
            assert_eq!(before - slots.len(), released as usize, "blocks released");
            if random.chance(10) {
                log.release_blocks(id, 1..256).ok()?;
                log.free(id).ok()?;
                model.maps.remove(&id);
            }
        }
        4 if !maps.is_empty() => {
            let id = some(random, &maps);
            let from = 1 + random.below(255) as u16;
            let to = (from + random.below(20) as u16).min(256);
            let reserved = log.reserve_blocks(id, from..to).ok()?;
            let slots = model.maps.get_mut(&id)?;
            let before = slots.len();
            for index in from..to {
                slots.entry(index as u8).or_insert((versions + 1, 0));
            }
            assert_eq!(slots.len() - before, reserved as usize, "blocks reserved");
        }
        _ if !all.is_empty() => {
            let id = some(random, &all);
            for _ in 0..1 + random.below(20) {
                let (offset, value) = (16 + random.below(4000) as u16, random.next() as u8);
                log.page_mut(id).ok()?[usize::from(offset)] = value;
                model.pages.get_mut(&id)?.insert(offset, value);
            }
        }
        _ => {}
    }
    Some(())
}

/// What a device holds that has a log without pages.
fn empty_log() -> Content {
    let superblock = superblock(DEVICE_BYTES, 256 << 10);
    let device = Arc::new(RecordingDevice::new(DEVICE_BYTES, Content::default()));
    let mut log = Log::create(device.clone(), superblock.clone(), settings());
    log.begin(Purpose::Grow).expect("it can be written");
    log.commit();
    commit(&mut log, false);
    device.write(0, &*superblock.encode()).expect("memory");
    device.write(4096, &*superblock.encode()).expect("memory");
    device.parts().0
}

/// Runs random operations on a recording device.
fn run(seed: u64, steps: u32) -> Run {
    let start = empty_log();
    let device = Arc::new(RecordingDevice::new(DEVICE_BYTES, start.clone()));
    let (mut log, _) = Log::open(device.clone(), settings()).expect("a new volume");
    commit(&mut log, false);
    let mut random = Random(seed);
    let mut model = Model::default();
    let mut states = vec![model.clone()];
    let mut durable: Vec<(usize, usize, BTreeMap<Slot, u64>)> = Vec::new();
    let mut versions = 0;
    for _ in 0..steps {
        if step(&mut log, &mut random, &mut model, &mut versions) {
            states.push(model.clone());
        } else {
            *states.last_mut().expect("there is one") = model.clone();
        }
        match log.pressure() {
            Pressure::None => {}
            Pressure::Blocks => carry_out(&mut log, &Goal::Coldest),
            Pressure::Pages => commit(&mut log, false),
            Pressure::Transactions => carry_out(&mut log, &Goal::Transactions),
        }
        if log.wants_cleaning() && random.chance(30) {
            clean(&mut log);
        }
        if random.chance(8) {
            let maps: Vec<u32> = model.maps.keys().copied().collect();
            let files: HashSet<u64> = maps.iter().filter(|_| random.chance(50)).map(|map| u64::from(*map)).collect();
            carry_out(&mut log, &Goal::Files(files.clone()));
            device.flush().expect("memory");
            let mut kept = durable.last().map(|(_, _, kept)| kept.clone()).unwrap_or_default();
            kept.retain(|slot, _| model.maps.get(&slot.page).is_some_and(|slots| slots.contains_key(&slot.index)));
            for (page, slots) in model.maps.iter().filter(|(page, _)| files.contains(&u64::from(**page))) {
                kept.extend(slots.iter().map(|(index, version)| (Slot { page: *page, index: *index }, version.1)));
            }
            durable.push((device.events(), states.len() - 1, kept));
        } else if random.chance(2) {
            carry_out(&mut log, &Goal::Everything);
            commit(&mut log, false);
        } else if random.chance(4) {
            clean(&mut log);
        }
        check(&mut log, &model);
    }
    Run { device, states, durable, start, segments_cleaned: log.counters().segments_cleaned }
}

/// The log holds exactly what the model says.
fn check(log: &mut Log, model: &Model) {
    for (id, bytes) in &model.pages {
        let page = log.page(*id).expect("it exists");
        for (offset, value) in bytes {
            assert_eq!(page[usize::from(*offset)], *value, "page {id}, offset {offset}");
        }
    }
    for (page, slots) in &model.maps {
        for index in 1..=255 {
            let slot = Slot { page: *page, index };
            let found = log.find_block(slot).expect("it can be looked up");
            match slots.get(&index) {
                None => assert!(matches!(found, Found::Hole), "{slot:?} is no hole"),
                Some((_, 0)) => assert!(matches!(found, Found::Reserved), "{slot:?} is not reserved"),
                Some((_, version)) => assert_eq!(read(log, found), content(slot, *version), "{slot:?}"),
            }
        }
    }
}

fn read(log: &mut Log, found: Found) -> Arc<[u8; 4096]> {
    match found {
        Found::Hole | Found::Reserved => Arc::new([0; 4096]),
        Found::Cached(content) => content,
        Found::Stored(stored) => log.read_stored(stored).expect("it is whole"),
    }
}

/// Whether what a crash left is a state of the run: one at or after `durable`, with blocks at least as new.
fn is_some_state(log: &mut Log, run: &Run, least: usize, kept: &BTreeMap<Slot, u64>) -> Result<(), String> {
    let mut wrong = String::new();
    'states: for (number, state) in run.states.iter().enumerate().skip(least) {
        for (id, bytes) in &state.pages {
            let Ok(page) = log.page(*id) else { continue 'states };
            if page[0] != 99 || bytes.iter().any(|(offset, value)| page[usize::from(*offset)] != *value) {
                let differing: Vec<_> =
                    bytes.iter().filter(|(offset, value)| page[usize::from(**offset)] != **value).collect();
                wrong = format!("{wrong}\nstate {number}: page {id}: kind {} {differing:?}", page[0]);
                continue 'states;
            }
        }
        for (page, slots) in &state.maps {
            let Ok(found) = log.page(*page) else { continue 'states };
            if found[0] != page_kind::MAP {
                continue 'states;
            }
            for index in 1..=255 {
                let slot = Slot { page: *page, index };
                let found = log.find_block(slot).map_err(|error| error.to_string())?;
                let content = read(log, found);
                let version = u64::from_le_bytes(content[..8].try_into().expect("8 bytes"))
                    ^ u64::from(slot.page) << 8
                    ^ u64::from(slot.index);
                let is_zero = content.iter().all(|byte| *byte == 0);
                if !is_zero && content != self::content(slot, version) {
                    return Err(format!("{slot:?} holds what was never written there"));
                }
                let newest = slots.get(&index).copied();
                let oldest = kept.get(&slot).copied().unwrap_or(0);
                let fits = match newest {
                    None => is_zero,
                    // It was a hole since it was kept.
                    Some((born, newest)) if born > oldest => is_zero || (born..=newest).contains(&version),
                    Some((_, newest)) => {
                        if is_zero {
                            oldest == 0
                        } else {
                            (oldest..=newest).contains(&version)
                        }
                    }
                };
                if !fits {
                    wrong = format!(
                        "state {number}: {slot:?} has version {version}, {newest:?} is the newest, {oldest} was kept"
                    );
                    continue 'states;
                }
            }
        }
        return Ok(());
    }
    if least > 0 && is_some_state(log, run, 0, &BTreeMap::new()).is_ok() {
        wrong += "; an earlier one does";
    }
    Err(format!("no state from {least} to {} fits; the last that was tried: {wrong}", run.states.len() - 1))
}

/// Until there is another checkpoint, nothing is written over that the last one and the writes after it are read from.
fn spares_what_the_checkpoint_needs(log: &Log) {
    let (_, newest) = newest_checkpoint(&**log.device());
    let was_free: HashSet<u32> =
        newest.queue.iter().copied().filter(|segment| newest.segments[*segment as usize].referenced == 0).collect();
    let segments = log.machine().segments();
    for segment in segments.queue().filter(|segment| !was_free.contains(segment)) {
        assert!(!segments.is_reusable(segment), "segment {segment} could be written over before the next checkpoint");
    }
}

/// Makes durable what was recovered, with a crash after every event of that.
fn recover_again(log: &mut Log, device: &RecordingDevice, fits: impl Fn(&mut Log) -> Result<(), String>) {
    let (mut content, _) = device.parts();
    // Segments that the cleaner gave back before the crash are written over as soon as they may be.
    while clean(log) && log.machine().segments().freed() < 30 {}
    carry_out(log, &Goal::Everything);
    commit(log, false);
    let (_, events) = device.parts();
    for (number, event) in events.iter().enumerate() {
        content.apply(event, |_| true);
        let crashed = Arc::new(RecordingDevice::new(DEVICE_BYTES, content.clone()));
        let (mut log, _) =
            Log::open(crashed, settings()).unwrap_or_else(|error| panic!("recovering, event {number}: {error}"));
        fits(&mut log).unwrap_or_else(|error| panic!("crashed while recovering, event {number}: {error}"));
    }
    let (_, recovery) =
        Log::open(Arc::new(RecordingDevice::new(DEVICE_BYTES, content)), settings()).expect("it is durable");
    assert_eq!(recovery.writes, 0);
}

/// Every state that a crash between two events may leave, a few of each kind.
fn explore(run: &Run, random: &mut Random, stride: usize) -> u64 {
    let (_, events) = run.device.parts();
    let mut synced = run.start.clone();
    let mut from = 0;
    let mut states = 0;
    for at in 0..=events.len() {
        if at > 0 && matches!(events[at - 1], Event::Flush) {
            events[from..at].iter().for_each(|event| synced.apply(event, |_| true));
            from = at;
        }
        if at % stride != 0 && at != events.len() {
            continue;
        }
        let unflushed = &events[from..at];
        let (least, kept) = run
            .durable
            .iter()
            .rev()
            .find(|(event, _, _)| *event <= at)
            .map_or((0, BTreeMap::new()), |(_, state, kept)| (*state, kept.clone()));
        for kind in 0..4 {
            let mut content = synced.clone();
            for event in unflushed {
                match kind {
                    0 => content.apply(event, |_| true),
                    1 => {}
                    2 => {
                        let takes = random.chance(50);
                        content.apply(event, |_| takes);
                    }
                    _ => content.apply(event, |_| random.chance(70)),
                }
            }
            if kind > 0 && unflushed.is_empty() {
                continue;
            }
            states += 1;
            let device = Arc::new(RecordingDevice::new(DEVICE_BYTES, content));
            let (mut log, _) = Log::open(device.clone(), settings())
                .unwrap_or_else(|error| panic!("event {at} of {}, kind {kind}: {error}", events.len()));
            is_some_state(&mut log, run, least, &kept)
                .unwrap_or_else(|error| panic!("event {at} of {}, kind {kind}: {error}", events.len()));
            spares_what_the_checkpoint_needs(&log);
            // What was found is durable from here on, and found again. Until then it must survive what a crash leaves of making
            // it durable.
            if states % 16 == 0 {
                recover_again(&mut log, &device, |log| is_some_state(log, run, least, &kept));
            }
        }
    }
    states
}

/// How much is explored: so many seeds, and every so manieth event. `ISOTHERM_SOAK=1` for hours.
fn extent() -> (u64, usize) {
    if std::env::var_os("ISOTHERM_SOAK").is_some() { (400, 1) } else { (12, 5) }
}

#[test]
fn whatever_a_crash_leaves_of_a_log_is_a_state_that_it_was_in() {
    let (seeds, stride) = extent();
    let mut states = 0;
    let mut cleaned = 0;
    for seed in 0..seeds {
        let run = run(seed, 2500);
        cleaned += run.segments_cleaned;
        states += explore(&run, &mut Random(seed + 1000), stride);
    }
    println!("{states} states of crashes, {cleaned} segments cleaned");
    assert!(cleaned > 20 * seeds, "{cleaned} segments cleaned: the runs are too short");
}

/// Roll-forward left a page that it had in memory as hot as it had been before the write.
#[test]
fn a_page_that_was_written_after_the_checkpoint_keeps_its_heat() {
    let device = Arc::new(RecordingDevice::new(DEVICE_BYTES, empty_log()));
    let change = |log: &mut Log, id| {
        log.begin(Purpose::Grow).expect("it can be written");
        log.page_mut(id).expect("it is there")[100] += 1;
        log.commit();
    };
    let (mut log, _) = Log::open(device.clone(), settings()).expect("a new volume");
    log.begin(Purpose::Grow).expect("it can be written");
    let id = log.allocate().expect("there is room");
    log.commit();
    commit(&mut log, false);
    let writes = |log: &mut Log| log.page_entry(id).expect("it is there").heat.writes;
    let before = writes(&mut log);
    (0..3).for_each(|_| change(&mut log, id));
    carry_out(&mut log, &Goal::Pages);
    assert_eq!(writes(&mut log), before + 3);
    drop(log);
    let (mut log, recovery) = Log::open(device, settings()).expect("a crash is no damage");
    assert!(recovery.writes > 0 && writes(&mut log) == before + 3);
    change(&mut log, id);
    carry_out(&mut log, &Goal::Pages);
    assert_eq!(writes(&mut log), before + 4);
}
