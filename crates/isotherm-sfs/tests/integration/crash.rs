//! Power cuts between every two operations of a log: what was durable once must be found again.

use isotherm::device::DeviceError;
use isotherm::random::Random;
use isotherm::registry::PolicyName;
use isotherm_sfs::disk::{Disk, SegmentWrite};
use isotherm_sfs::log::SegmentLog;
use isotherm_sfs::options::{LogOptions, parse_log};
use isotherm_sfs::recover::{Summary, roll_forward};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What one position holds: a block and the version of its data.
type Content = Option<(u32, u32)>;

#[derive(Clone)]
enum Operation {
    Write { position: u32, summary_blocks: u32, blocks: Vec<(u32, u32)>, sequence: u64 },
    Trim { from: u32, to: u32 },
    Checkpoint { sequence: u64, map: Vec<Option<u32>> },
}

/// A summary that a scan finds: its segment write, the first data block, the blocks.
type Found = (u64, u32, Vec<u32>);

/// What a scan after a loss of power finds.
#[derive(Clone)]
struct Durable {
    content: Vec<Content>,
    /// By position.
    summaries: BTreeMap<u32, Found>,
    checkpoint: (u64, Vec<Option<u32>>),
}

impl Durable {
    /// Whatever stood there is gone.
    fn clear(&mut self, from: u32, to: u32) {
        self.content[from as usize..to as usize].fill(None);
        self.summaries.retain(|position, _| !(from..to).contains(position));
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { position, summary_blocks, blocks, sequence } => {
                let data = position + summary_blocks;
                self.clear(*position, data + blocks.len() as u32);
                for (content, block) in self.content[data as usize..].iter_mut().zip(blocks) {
                    *content = Some(*block);
                }
                self.summaries.insert(*position, (*sequence, data, blocks.iter().map(|b| b.0).collect()));
            }
            Operation::Trim { from, to } => self.clear(*from, *to),
            Operation::Checkpoint { sequence, map } => self.checkpoint = (*sequence, map.clone()),
        }
    }

    /// Rebuilds the map.
    fn recover(&self) -> Vec<Option<u32>> {
        let (sequence, mut map) = self.checkpoint.clone();
        let summaries = self.summaries.values();
        let mut summaries: Vec<Summary<'_>> = summaries
            .map(|(sequence, position, blocks)| Summary { sequence: *sequence, position: *position, blocks })
            .collect();
        roll_forward(sequence, &mut map, &mut summaries).expect("the summaries of this log");
        map
    }
}

/// A device that loses power after every operation, in its head, and looks what would be left.
struct Cutter {
    durable: Durable,
    pending: Vec<Operation>,
    /// The map as the log has written it so far.
    map: Vec<Option<u32>>,
    /// Newest version of every block in the log's memory.
    versions: Rc<RefCell<Vec<u32>>>,
    /// Version of every block that has been durable.
    durable_versions: Vec<u32>,
    random: Random,
    segment_blocks: u32,
    losses: u32,
}

impl Cutter {
    fn new(positions: usize, segment_blocks: u32, versions: Rc<RefCell<Vec<u32>>>) -> Self {
        let blocks = versions.borrow().len();
        let durable =
            Durable { content: vec![None; positions], summaries: BTreeMap::new(), checkpoint: (0, vec![None; blocks]) };
        Self {
            durable,
            pending: Vec::new(),
            map: vec![None; blocks],
            versions,
            durable_versions: vec![0; blocks],
            random: Random::new(9),
            segment_blocks,
            losses: 0,
        }
    }

    /// Counts the blocks that cannot be found again in a version that was durable before.
    fn lost(&self, state: &Durable) -> u32 {
        let map = state.recover();
        let found = |block: usize| {
            let content = map[block].and_then(|position| state.content[position as usize]);
            content.filter(|c| c.0 == block as u32).map_or(0, |c| c.1)
        };
        (0..map.len()).filter(|b| found(*b) < self.durable_versions[*b]).count() as u32
    }

    /// Cuts the power now: unflushed operations have all happened, or any part of them.
    fn cut(&mut self) {
        let mut all = self.durable.clone();
        self.pending.iter().for_each(|operation| all.apply(operation));
        let mut some = self.durable.clone();
        for operation in &self.pending {
            // A checkpoint follows a flush, so that it is never there without what it refers to.
            if self.random.chance(0.5) {
                some.apply(operation);
            }
        }
        self.losses += self.lost(&all) + self.lost(&some);
    }

    fn push(&mut self, operation: Operation) -> Result<(), DeviceError> {
        self.pending.push(operation);
        self.cut();
        Ok(())
    }
}

impl Disk for Cutter {
    type Block = ();
    fn write(&mut self, write: &SegmentWrite<'_, ()>) -> Result<(), DeviceError> {
        let position = write.position + write.summary_blocks;
        for (index, block) in write.blocks.iter().enumerate() {
            self.map[*block as usize] = Some(position + index as u32);
        }
        let versions = self.versions.clone();
        let blocks = write.blocks.iter().map(|b| (*b, versions.borrow()[*b as usize])).collect();
        let (position, summary_blocks, sequence) = (write.position, write.summary_blocks, write.sequence);
        self.push(Operation::Write { position, summary_blocks, blocks, sequence })
    }
    fn read(&mut self, _: u32, _: &mut [()]) -> Result<(), DeviceError> {
        Ok(())
    }
    fn trim(&mut self, segment: u32) -> Result<(), DeviceError> {
        let from = segment * self.segment_blocks;
        self.push(Operation::Trim { from, to: from + self.segment_blocks })
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        for operation in std::mem::take(&mut self.pending) {
            self.durable.apply(&operation);
            if let Operation::Write { blocks, .. } = operation {
                blocks.iter().for_each(|(block, version)| self.durable_versions[*block as usize] = *version);
            }
        }
        self.cut();
        Ok(())
    }
    fn checkpoint(&mut self, _: u64, sequence: u64) -> Result<(), DeviceError> {
        let map = self.map.clone();
        self.push(Operation::Checkpoint { sequence, map })
    }
}

fn options(text: &str) -> LogOptions {
    let name: PolicyName = text.parse().unwrap();
    LogOptions { clean_below: 4, ..parse_log(&name, 3).unwrap().options }
}

/// Blocks lost over many power cuts of a small, nearly full log under skewed writes and a few syncs.
fn losses(text: &str) -> u32 {
    const BLOCKS: u32 = 90;
    const SEGMENTS: u32 = 20;
    let options = options(text);
    let versions = Rc::new(RefCell::new(vec![0; BLOCKS as usize]));
    let positions = (SEGMENTS * options.segment_blocks) as usize;
    let cutter = Cutter::new(positions, options.segment_blocks, versions.clone());
    let mut log = SegmentLog::new(cutter, BLOCKS, SEGMENTS, options);
    let mut random = Random::new(1);
    for turn in 0..20_000u32 {
        let hot = random.chance(0.8);
        let block = if turn < BLOCKS { turn } else { random.below(if hot { 20 } else { BLOCKS.into() }) as u32 };
        versions.borrow_mut()[block as usize] += 1;
        log.write(block, ()).unwrap();
        if random.chance(0.002) {
            log.sync().unwrap();
        }
        if random.chance(0.001) {
            log.checkpoint().unwrap();
        }
    }
    log.check().unwrap();
    let counters = log.counters();
    assert!(counters.segments_cleaned > 1000 && counters.checkpoints > 20, "{counters:?}");
    log.store().losses
}

#[test]
fn no_block_is_lost_in_any_power_cut() {
    for text in [
        "sfs:segment=32KiB,dirty=112KiB",
        "sfs:segment=32KiB,dirty=112KiB,groups=2,trim=never",
        "lfs:segment=32KiB,dirty=112KiB",
    ] {
        assert_eq!(losses(text), 0, "{text}");
    }
}

#[test]
fn without_the_guard_blocks_are_lost() {
    assert!(losses("sfs:segment=32KiB,dirty=112KiB,guard=false") > 0);
}

#[test]
fn trims_at_the_time_of_freeing_lose_blocks() {
    assert!(losses("sfs:segment=32KiB,dirty=112KiB,trim=at_free") > 0);
}
