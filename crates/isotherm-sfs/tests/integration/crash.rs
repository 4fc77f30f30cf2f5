//! Power cuts between every two operations of a log, and within its writes: what was durable once must be found again.

use isotherm::device::DeviceError;
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm_sfs::checkpoint::CheckpointWrite;
use isotherm_sfs::content::BlockContent;
use isotherm_sfs::disk::{Disk, Recoverable, SegmentWrite};
use isotherm_sfs::log::SegmentLog;
use isotherm_sfs::options::{LogOptions, TrimPoint, parse_log};
use isotherm_sfs::recover::{RecoverError, recover};
use isotherm_sfs::segments::{SegmentState, Segments};
use std::cell::RefCell;
use std::rc::Rc;

const BLOCKS: u32 = 90;
const SEGMENTS: u32 = 20;
const BLOCK: usize = 4096;

/// What blocks hold in a test: nothing, or bytes that tell block and version.
trait Versioned: BlockContent + PartialEq {
    /// Whether a part of a write can be told from the whole.
    const TELLS_TORN_WRITES: bool;
    fn of_version(block: u32, version: u32) -> Self;
}

impl Versioned for () {
    const TELLS_TORN_WRITES: bool = false;
    fn of_version(_: u32, _: u32) {}
}

impl Versioned for Box<[u8]> {
    const TELLS_TORN_WRITES: bool = true;
    fn of_version(block: u32, version: u32) -> Self {
        [block.to_le_bytes(), version.to_le_bytes()].concat().repeat(BLOCK / 8).into()
    }
}

/// What one position holds.
#[derive(Clone)]
enum Slot<C> {
    Nothing,
    Summary(Rc<[u8]>),
    Data { block: u32, version: u32, content: Rc<C> },
}

#[derive(Clone)]
enum Operation<C> {
    Write { position: u32, slots: Vec<Slot<C>> },
    Trim { from: usize, to: usize },
    Checkpoint { place: usize, bytes: Rc<[u8]> },
}

/// Version of every block's newest data, in the log's memory.
type Versions = Rc<RefCell<Vec<u32>>>;

/// A device that keeps everything at once.
#[derive(Clone)]
struct Model<C> {
    slots: Vec<Slot<C>>,
    checkpoints: [Rc<[u8]>; 2],
    versions: Versions,
    segment_blocks: u32,
}

impl<C: Versioned> Model<C> {
    fn new(segment_blocks: u32) -> Self {
        Self {
            slots: vec![Slot::Nothing; (SEGMENTS * segment_blocks) as usize],
            checkpoints: Default::default(),
            versions: Rc::new(RefCell::new(vec![0; BLOCKS as usize])),
            segment_blocks,
        }
    }

    fn operation(&self, write: &SegmentWrite<'_, C>) -> Operation<C> {
        let versions = self.versions.borrow();
        let summaries = write.summaries();
        let data = write.blocks.iter().zip(write.contents()).map(|(block, content)| Slot::Data {
            block: *block,
            version: versions[*block as usize],
            content: Rc::new(content.clone()),
        });
        let slots = summaries.chunks(BLOCK).map(|bytes| Slot::Summary(bytes.into())).chain(data).collect();
        Operation::Write { position: write.position, slots }
    }

    /// Carries out those blocks of an operation for which `arrives` holds.
    fn apply(&mut self, operation: &Operation<C>, mut arrives: impl FnMut() -> bool) {
        match operation {
            Operation::Write { position, slots } => {
                for (at, slot) in (*position as usize..).zip(slots).filter(|_| arrives()) {
                    self.slots[at] = slot.clone();
                }
            }
            Operation::Trim { from, to } => self.slots[*from..*to].fill(Slot::Nothing),
            Operation::Checkpoint { place, bytes } => {
                let mut mixed = self.checkpoints[*place].to_vec();
                mixed.resize(bytes.len(), 0);
                for (old, new) in mixed.chunks_mut(BLOCK).zip(bytes.chunks(BLOCK)).filter(|_| arrives()) {
                    old.copy_from_slice(new);
                }
                self.checkpoints[*place] = mixed.into();
            }
        }
    }

    /// Version of `block` that lies at `position`; 0 if another block does.
    fn version_at(&self, block: u32, position: Option<u32>) -> u32 {
        match position.map(|position| &self.slots[position as usize]) {
            Some(Slot::Data { block: found, version, .. }) if *found == block => *version,
            _ => 0,
        }
    }
}

impl<C: Versioned> Disk for Model<C> {
    type Block = C;
    fn write(&mut self, write: &SegmentWrite<'_, C>) -> Result<(), DeviceError> {
        let operation = self.operation(write);
        self.apply(&operation, || true);
        Ok(())
    }
    fn read(&mut self, position: u32, out: &mut [C]) -> Result<(), DeviceError> {
        for (slot, out) in self.slots[position as usize..].iter().zip(out) {
            *out = if let Slot::Data { content, .. } = slot { C::clone(content) } else { C::default() };
        }
        Ok(())
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        let from = (segment * self.segment_blocks) as usize;
        self.apply(&Operation::Trim { from, to: from + self.segment_blocks as usize }, || true);
        Ok(())
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn checkpoint(&mut self, write: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        let operation = Operation::Checkpoint { place: write.place() as usize, bytes: write.bytes().into() };
        self.apply(&operation, || true);
        Ok(())
    }
}

impl<C: Versioned> Recoverable for Model<C> {
    fn read_summary(&mut self, position: u32, out: &mut Vec<u8>) -> Result<(), DeviceError> {
        match &self.slots[position as usize] {
            Slot::Nothing => {}
            Slot::Summary(bytes) => out.extend_from_slice(bytes),
            Slot::Data { content, .. } => out.extend_from_slice(content.bytes()),
        }
        Ok(())
    }
    fn read_checkpoint(&mut self, place: u32, out: &mut Vec<u8>) -> Result<(), DeviceError> {
        out.extend_from_slice(&self.checkpoints[place as usize]);
        Ok(())
    }
}

/// A device that loses power after every operation, in its head, and looks what would be left.
struct Cutter<C> {
    options: LogOptions,
    /// What is durable for certain.
    durable: Model<C>,
    /// What the log sees.
    live: Model<C>,
    pending: Vec<Operation<C>>,
    /// Version of every block that has been durable, and must be found.
    durable_versions: Vec<u32>,
    /// Version of every block when it was last trimmed: data up to it may be found or not.
    trimmed_versions: Rc<RefCell<Vec<u32>>>,
    random: Random,
    cuts: u32,
    losses: u32,
}

impl<C: Versioned> Cutter<C> {
    fn new(options: LogOptions) -> Self {
        let live = Model::new(options.segment_blocks);
        Self {
            options,
            durable: live.clone(),
            live,
            pending: Vec::new(),
            durable_versions: vec![0; BLOCKS as usize],
            trimmed_versions: Rc::new(RefCell::new(vec![0; BLOCKS as usize])),
            random: Random::new(9),
            cuts: 0,
            losses: 0,
        }
    }

    /// Recovers from what a cut has left, and counts the blocks that are not found in a version that was durable before.
    fn losses_in(&mut self, state: &Model<C>) -> u32 {
        let found = recover(state.clone(), BLOCKS, SEGMENTS, self.options);
        let mut log = match found {
            Ok(log) => log,
            Err(RecoverError::Damaged { .. }) => return 1,
            Err(error) => panic!("{error}"),
        };
        log.check().unwrap();
        let positions: Vec<Option<u32>> = log.positions().collect();
        let versions: Vec<u32> = (0..).zip(&positions).map(|(block, at)| state.version_at(block, *at)).collect();
        let trimmed = self.trimmed_versions.clone();
        let is_lost = |block: usize| {
            versions[block] < self.durable_versions[block] && self.durable_versions[block] > trimmed.borrow()[block]
        };
        let lost = (0..BLOCKS as usize).filter(|block| is_lost(*block)).count() as u32;
        if lost == 0 && self.options.guard && self.options.trim != TrimPoint::AtFree {
            for block in 0..BLOCKS {
                let version = versions[block as usize];
                assert_eq!(positions[block as usize].is_some(), version > 0, "block {block} is another");
                let mut content = C::default();
                log.read(block, &mut content).unwrap();
                assert!(version == 0 || content == C::of_version(block, version), "block {block} holds something else");
            }
            self.cuts += 1;
            if self.cuts.is_multiple_of(64) {
                self.go_on(log, state, versions);
            }
        }
        lost
    }

    /// What was recovered goes on as a log, and is recovered again: with its first checkpoint torn, and after more writes.
    fn go_on(&mut self, mut log: SegmentLog<Model<C>>, state: &Model<C>, mut versions: Vec<u32>) {
        let mut torn = state.clone();
        let place = usize::from(log.store().checkpoints[0] == state.checkpoints[0]);
        let mut bytes = log.store().checkpoints[place].to_vec();
        bytes[BLOCK + 1] ^= 4;
        torn.checkpoints[place] = bytes.into();
        let again = recover(torn, BLOCKS, SEGMENTS, self.options).unwrap();
        assert!(again.positions().eq(log.positions()), "a recovery that was cut short changes the next");

        log.store_mut().versions = Rc::new(RefCell::new(versions.clone()));
        for turn in 0..200 {
            let block = self.random.below(BLOCKS.into()) as u32;
            versions[block as usize] += 1_000_000;
            log.store().versions.borrow_mut()[block as usize] = versions[block as usize];
            log.write(block, C::of_version(block, versions[block as usize])).unwrap();
            // After a few writes already: those that the recovery did not reach must not follow them.
            if turn % 70 == 8 {
                log.sync().unwrap();
                log.check().unwrap();
                self.find_again(&log, &versions);
            }
        }
    }

    /// What a log has synced is found by the next recovery.
    fn find_again(&self, log: &SegmentLog<Model<C>>, versions: &[u32]) {
        let again = recover(log.store().clone(), BLOCKS, SEGMENTS, self.options).unwrap();
        assert!(again.positions().eq(log.positions()), "what was written after a recovery is found");
        for (block, position) in (0..).zip(again.positions()) {
            assert_eq!(log.store().version_at(block, position), versions[block as usize]);
        }
    }

    /// Cuts the power now: unflushed operations have all happened, or any part of them.
    fn cut(&mut self) {
        let all = self.live.clone();
        let mut some = self.durable.clone();
        for operation in &self.pending {
            let random = &mut self.random;
            let is_whole = !matches!(operation, Operation::Checkpoint { .. }) && !C::TELLS_TORN_WRITES;
            match random.below(3) {
                0 => {}
                1 if !is_whole => some.apply(operation, || random.chance(0.5)),
                _ => some.apply(operation, || true),
            }
        }
        self.losses += self.losses_in(&all) + self.losses_in(&some);
    }

    fn push(&mut self, operation: Operation<C>) -> Result<(), DeviceError> {
        self.live.apply(&operation, || true);
        self.pending.push(operation);
        self.cut();
        Ok(())
    }
}

impl<C: Versioned> Disk for Cutter<C> {
    type Block = C;
    fn write(&mut self, write: &SegmentWrite<'_, C>) -> Result<(), DeviceError> {
        self.push(self.live.operation(write))
    }
    fn read(&mut self, position: u32, out: &mut [C]) -> Result<(), DeviceError> {
        self.live.read(position, out)
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        let from = (segment * self.live.segment_blocks) as usize;
        self.push(Operation::Trim { from, to: from + self.live.segment_blocks as usize })
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        for operation in std::mem::take(&mut self.pending) {
            self.durable.apply(&operation, || true);
            let Operation::Write { slots, .. } = operation else { continue };
            for slot in slots {
                if let Slot::Data { block, version, .. } = slot {
                    self.durable_versions[block as usize] = version;
                }
            }
        }
        self.cut();
        Ok(())
    }
    fn checkpoint(&mut self, write: &CheckpointWrite<'_>) -> Result<(), DeviceError> {
        self.push(Operation::Checkpoint { place: write.place() as usize, bytes: write.bytes().into() })
    }
}

fn options(text: &str) -> LogOptions {
    let name: PolicyName = text.parse().unwrap();
    LogOptions { clean_below: 4, ..parse_log(&name, 3).unwrap().options }
}

/// Blocks lost over many power cuts of a small, nearly full log under skewed writes, a few syncs and trims.
fn losses<C: Versioned>(text: &str, turns: u32) -> u32 {
    let cutter = Cutter::<C>::new(options(text));
    let (versions, trimmed) = (cutter.live.versions.clone(), cutter.trimmed_versions.clone());
    let mut log = SegmentLog::new(cutter, BLOCKS, SEGMENTS, options(text));
    let mut random = Random::new(1);
    for turn in 0..turns {
        let hot = random.chance(0.8);
        let block = if turn < BLOCKS { turn } else { random.below(if hot { 20 } else { BLOCKS.into() }) as u32 };
        versions.borrow_mut()[block as usize] += 1;
        log.write(block, C::of_version(block, versions.borrow()[block as usize])).unwrap();
        if random.chance(0.01) {
            let block = random.below(BLOCKS.into()) as u32;
            trimmed.borrow_mut()[block as usize] = versions.borrow()[block as usize];
            log.trim(block);
        }
        if random.chance(0.002) {
            log.sync().unwrap();
        }
        if random.chance(0.001) {
            log.checkpoint().unwrap();
        }
    }
    log.check().unwrap();
    let counters = log.counters();
    let (cleaned, checkpoints) = (u64::from(turns / 20), u64::from(turns / 1000));
    assert!(counters.segments_cleaned > cleaned && counters.checkpoints > checkpoints, "{counters:?}");
    log.store().losses
}

#[test]
fn no_block_is_lost_in_any_power_cut() {
    for text in [
        "sfs:segment=32KiB,dirty=112KiB",
        "sfs:segment=32KiB,dirty=112KiB,groups=2,trim=never,tick=64KiB",
        "lfs:segment=32KiB,dirty=112KiB",
        "sfs:segment=36KiB,dirty=112KiB,summary_bytes=1024",
    ] {
        assert_eq!(losses::<()>(text, 20_000), 0, "{text}");
        assert_eq!(losses::<Box<[u8]>>(text, 3000), 0, "{text}");
    }
}

#[test]
fn without_the_guard_blocks_are_lost() {
    assert!(losses::<()>("sfs:segment=32KiB,dirty=112KiB,guard=false", 20_000) > 0);
}

#[test]
fn trims_at_the_time_of_freeing_lose_blocks() {
    assert!(losses::<()>("sfs:segment=32KiB,dirty=112KiB,trim=at_free", 20_000) > 0);
}

/// A log on a [`Model`] after some thousand writes and a checkpoint.
fn settled() -> SegmentLog<Model<Box<[u8]>>> {
    let options = options("sfs:segment=32KiB,dirty=112KiB");
    let mut log = SegmentLog::new(Model::new(options.segment_blocks), BLOCKS, SEGMENTS, options);
    let mut random = Random::new(5);
    for turn in 0..5000 {
        let block = if turn < BLOCKS { turn } else { random.below(BLOCKS.into()) as u32 };
        log.write(block, Versioned::of_version(block, turn)).unwrap();
    }
    log.checkpoint().unwrap();
    log
}

#[test]
fn after_a_checkpoint_recovery_finds_the_tables_as_they_were() {
    let log = settled();
    let found = recover(log.store().clone(), BLOCKS, SEGMENTS, *log.options()).unwrap();
    assert!(found.positions().eq(log.positions()));
    assert_eq!(found.centres(), log.centres());
    let (before, after) = (log.segments(), found.segments());
    let is_empty = |segment: &u32| before.state(*segment) == SegmentState::Written && before.live(*segment) == 0;
    assert!(after.queue().eq(before.queue().chain((0..SEGMENTS).filter(is_empty))));
    for segment in (0..SEGMENTS).filter(|segment| before.live(*segment) > 0) {
        let tables = |s: &Segments| {
            (s.state(segment), s.live(segment), s.referenced(segment), s.heat(segment), s.youngest(segment))
        };
        assert_eq!(tables(after), tables(before), "segment {segment}");
    }
    assert_eq!(found.counters().checkpoints, 1);
}

#[test]
fn damage_and_another_shape_are_refused_in_words() {
    let log = settled();
    let refusal = |store: Model<Box<[u8]>>, blocks, segments, options: LogOptions| {
        recover(store, blocks, segments, options).err().unwrap().to_string()
    };
    let options = *log.options();
    let text = refusal(log.store().clone(), BLOCKS + 1, SEGMENTS, options);
    assert!(text.contains("90 blocks, 91 are given"), "{text}");
    let text = refusal(log.store().clone(), BLOCKS, SEGMENTS, LogOptions { summary_bytes: 15, ..options });
    assert!(text.contains("summary_bytes=15") && text.contains("at least 16"), "{text}");

    let segment = (0..SEGMENTS).find(|segment| log.segments().live(*segment) > 0).unwrap();
    let mut damaged = log.store().clone();
    damaged.slots[(segment * options.segment_blocks) as usize] = Slot::Nothing;
    let text = refusal(damaged, BLOCKS, SEGMENTS, options);
    assert!(text.contains(&format!("segment {segment} has no summary at its block 0")), "{text}");

    let mut damaged = log.store().clone();
    for place in 0..2 {
        damaged.checkpoints[place] = damaged.checkpoints[place].iter().map(|byte| !byte).collect();
    }
    let text = refusal(damaged, BLOCKS, SEGMENTS, options);
    assert!(text.contains("neither place holds a whole checkpoint"), "{text}");
}
