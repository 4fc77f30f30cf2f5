//! The segment machine alone, over a mechanism that is an array: no bytes, no device. The array checks at every write that nothing
//! durable is lost by it, and keeps a queue of free segments of its own.

use isotherm::hotness::heat::{Heat, HeatSums, Time};
use isotherm::random::Random;
use isotherm_sfs::machine::{Cleaner, Extent, Machine, MachineState, Mechanism, Progress, RunWrite};
use isotherm_sfs::options::{LogOptions, TrimPoint, parse_log};
use isotherm_sfs::segments::{OpenSegment, SegmentState};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Blocks of a segment: a summary and seven of data where no records wait.
const SEGMENT_BLOCKS: u32 = 8;
const PAYLOAD: usize = 7;

fn options(text: &str) -> LogOptions {
    let options = parse_log(&text.parse().unwrap(), 3).unwrap().options;
    LogOptions {
        segment_blocks: SEGMENT_BLOCKS,
        dirty_blocks: 1000,
        clean_below: 0,
        checkpoint_segments: 1000,
        ..options
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Block {
    home: Option<u32>,
    waits: bool,
    is_cleaned: bool,
    is_chosen: bool,
    heat: Heat,
    modified: Time,
}

/// A write as it came.
#[derive(Clone, PartialEq, Debug)]
struct Written {
    segment: u32,
    at: u32,
    overhead: u32,
    group: Option<u8>,
    blocks: Vec<u32>,
    next: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Refusal {
    NoSpace,
    Commit,
}

#[derive(Clone, Debug)]
struct Array {
    blocks: Vec<Block>,
    /// Waiting blocks, in order; some wait no more until `forget_written`.
    order: Vec<u32>,
    /// Blocks of the next write's overhead beside its summary.
    records: u32,
    /// Hotness of a block over its number.
    hotness: Option<fn(u32) -> f64>,
    written: Vec<Written>,
    queue: VecDeque<u32>,
    /// Segments that the last commit refers to.
    committed: BTreeSet<u32>,
    trimmed: Vec<u32>,
    commits: u32,
    refuses_to_commit: bool,
}

impl Array {
    fn new(blocks: u32, segments: u32) -> Self {
        Self {
            blocks: vec![Block::default(); blocks as usize],
            order: Vec::new(),
            records: 0,
            hotness: None,
            written: Vec::new(),
            queue: (0..segments).collect(),
            committed: BTreeSet::new(),
            trimmed: Vec::new(),
            commits: 0,
            refuses_to_commit: false,
        }
    }

    fn homed(&self, segment: u32) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.blocks).filter(move |(_, block)| block.home == Some(segment)).map(|(number, _)| number)
    }

    fn put(&mut self, machine: &mut Machine, number: u32) {
        let block = &mut self.blocks[number as usize];
        if !block.waits {
            if let Some(home) = block.home {
                machine.on_overwrite(home, block.heat);
            }
            self.order.push(number);
        }
        (block.waits, block.is_cleaned, block.modified) = (true, false, machine.now() as Time);
        block.heat.on_write(machine.ticks() as Time, machine.options().age);
        machine.on_host_write();
    }

    fn discard(&mut self, machine: &mut Machine, number: u32) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        if let Some(home) = block.home {
            if !block.waits {
                machine.on_overwrite(home, block.heat);
            }
            machine.release(home);
        }
        self.order.retain(|waiting| *waiting != number);
    }

    fn choose(&mut self, chosen: &[u32]) {
        (0..).zip(&mut self.blocks).for_each(|(number, block)| block.is_chosen = chosen.contains(&number));
    }

    /// What the machine counts equals what the blocks say.
    fn check(&self, machine: &Machine) {
        for segment in 0..machine.segments().count() {
            let live: Vec<&Block> =
                self.homed(segment).map(|n| &self.blocks[n as usize]).filter(|b| !b.waits).collect();
            let mut heat = HeatSums::default();
            live.iter().for_each(|block| heat.add(block.heat));
            let found = (live.len() as u32, self.homed(segment).count() as u32, heat);
            let segments = machine.segments();
            assert_eq!(
                (segments.live(segment), segments.referenced(segment), segments.heat(segment)),
                found,
                "{segment}"
            );
        }
        assert!(machine.segments().queue().eq(self.queue.iter().copied()));
        assert_eq!(machine.sequence(), self.written.len() as u64);
        assert!(self.order.iter().all(|number| self.blocks[*number as usize].waits));
        assert_eq!(self.order.len(), self.blocks.iter().filter(|block| block.waits).count());
    }

    /// A segment comes out of the queue, whose order is that of freeing but for segments that had more blocks than a write has
    /// room for.
    fn take_from_queue(&mut self, write: &RunWrite<'_>) {
        assert_eq!(self.queue.pop_front(), Some(write.segment), "the segment freed first is written first");
        assert_eq!(self.homed(write.segment).count(), 0, "the guard has moved what it held");
        assert!(!self.committed.contains(&write.segment), "the last commit refers to it");
        while self.queue.front().copied() != write.next_segment {
            let postponed = self.queue.pop_front().unwrap();
            assert!(
                self.homed(postponed).count() as u32 > self.payload(SEGMENT_BLOCKS),
                "{postponed} could be guarded"
            );
            self.queue.push_back(postponed);
        }
        for number in write.next_segment.iter().flat_map(|next| self.homed(*next)) {
            assert!(write.blocks.contains(&number), "block {number} is lost by the next write");
        }
    }
}

impl Mechanism for Array {
    type Error = Refusal;

    fn waiting(&self) -> impl Iterator<Item = u32> {
        self.order.iter().copied()
    }
    fn waiting_blocks(&self) -> usize {
        self.order.len()
    }
    fn is_waiting(&self, block: u32) -> bool {
        self.blocks[block as usize].waits
    }
    fn is_homed_in(&self, block: u32, segment: u32) -> bool {
        self.blocks[block as usize].home == Some(segment)
    }
    fn homed_in(&self, segment: u32, out: &mut Vec<u32>) {
        out.extend(self.homed(segment));
    }
    fn hotness(&self, block: u32, ticks: u64) -> f64 {
        self.hotness.map_or_else(|| self.blocks[block as usize].heat.hotness(ticks as Time), |hotness| hotness(block))
    }
    fn is_chosen(&self, block: u32) -> bool {
        self.blocks[block as usize].is_chosen
    }
    fn has_records(&self) -> bool {
        self.records > 0
    }
    fn payload(&self, room: u32) -> u32 {
        room.saturating_sub(1 + self.records)
    }
    fn overhead(&self, _: u32) -> u32 {
        1 + self.records
    }

    fn write(&mut self, machine: &mut Machine, write: &RunWrite<'_>) -> Result<u32, Refusal> {
        let length = write.overhead_blocks + write.blocks.len() as u32;
        assert!(write.at + length <= SEGMENT_BLOCKS, "{write:?} is too long");
        assert_eq!(write.overhead_blocks, 1 + self.records);
        assert!(self.has_records() || !write.blocks.is_empty(), "nothing is written");
        if write.at == 0 {
            self.take_from_queue(write);
        } else {
            let before = self.written.iter().rfind(|before| before.segment == write.segment).unwrap();
            assert_eq!(write.at, before.at + before.overhead + before.blocks.len() as u32);
        }
        let mut cleaned = 0;
        for number in write.blocks {
            let block = &mut self.blocks[*number as usize];
            assert!(block.waits, "block {number} is written twice");
            machine.on_written(write, block.home, block.heat, block.modified);
            cleaned += u32::from(block.is_cleaned);
            (block.home, block.waits) = (Some(write.segment), false);
        }
        self.records = 0;
        self.written.push(Written {
            segment: write.segment,
            at: write.at,
            overhead: write.overhead_blocks,
            group: write.group,
            blocks: write.blocks.to_vec(),
            next: write.next_segment,
        });
        assert_eq!(write.sequence, self.written.len() as u64);
        Ok(cleaned)
    }
    fn forget_written(&mut self) {
        let blocks = &self.blocks;
        self.order.retain(|number| blocks[*number as usize].waits);
    }
    fn commit(&mut self, machine: &mut Machine) -> Result<(), Refusal> {
        if self.refuses_to_commit {
            return Err(Refusal::Commit);
        }
        self.commits += 1;
        self.committed = self.blocks.iter().filter_map(|block| block.home).collect();
        self.trimmed.extend(machine.on_checkpoint());
        Ok(())
    }
    fn no_space(&self, _: &Machine) -> Refusal {
        Refusal::NoSpace
    }
}

impl Cleaner for Array {
    fn take_live(&mut self, machine: &mut Machine, victim: u32) -> Result<(), Refusal> {
        let homed: Vec<u32> = self.homed(victim).collect();
        for number in homed {
            let block = &mut self.blocks[number as usize];
            if !block.waits {
                machine.on_death(victim, block.heat);
                (block.waits, block.is_cleaned) = (true, true);
                self.order.push(number);
            }
        }
        self.queue.push_back(victim);
        Ok(())
    }
    fn trim(&mut self, segment: u32) -> Result<(), Refusal> {
        self.trimmed.push(segment);
        Ok(())
    }
}

fn machine_and_array(text: &str, blocks: u32, segments: u32) -> (Machine, Array) {
    (Machine::new(segments, options(text)), Array::new(blocks, segments))
}

fn blocks_written(array: &Array) -> Vec<Vec<u32>> {
    array.written.iter().map(|write| write.blocks.clone()).collect()
}

#[test]
fn full_groups_are_written_hottest_first_and_the_rest_waits() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=2", 40, 8);
    // No segment holds anything: lines are those between these centres.
    machine.restore(&MachineState { centres: vec![0.0, 1.0], ..machine.state() });
    array.hotness = Some(|number| if number % 2 == 0 { 0.1 } else { 0.9 });
    (0..19).for_each(|number| array.put(&mut machine, number));
    machine.write_segments(&mut array, Extent::FullGroups).unwrap();
    assert_eq!(blocks_written(&array), [vec![1, 3, 5, 7, 9, 11, 13], vec![0, 2, 4, 6, 8, 10, 12]]);
    assert_eq!(
        array.written.iter().map(|w| (w.segment, w.group, w.next)).collect::<Vec<_>>(),
        [(0, Some(1), Some(1)), (1, Some(0), Some(2))]
    );
    assert_eq!(array.order, [14, 15, 16, 17, 18]);
    array.check(&machine);
    // Nothing is deferred where as much waits as may.
    let mut impatient = Machine::new(8, LogOptions { dirty_blocks: 3, ..options("sfs:groups=2") });
    let mut array = Array::new(40, 8);
    (0..3).for_each(|number| array.put(&mut impatient, number));
    impatient.write_segments(&mut array, Extent::FullGroups).unwrap();
    assert_eq!((array.order.len(), array.written[0].group, array.written[0].blocks.len()), (0, None, 3));
}

#[test]
fn chosen_blocks_are_written_mixed_and_records_even_without_blocks() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=1", 40, 8);
    (0..10).for_each(|number| array.put(&mut machine, number));
    array.choose(&[3, 8]);
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    // The full group takes one of the chosen along.
    assert_eq!(blocks_written(&array), [vec![0, 1, 2, 3, 4, 5, 6], vec![8]]);
    assert_eq!((array.order.clone(), machine.open()), (vec![7, 9], Some(OpenSegment { segment: 1, next: 2 })));
    // Records alone.
    array.choose(&[]);
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    assert_eq!(array.written.len(), 2, "there is nothing to write");
    array.records = 2;
    machine.write_segments(&mut array, Extent::FullGroups).unwrap();
    assert_eq!(array.written.len(), 2, "records wait for blocks, or to be asked for");
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    let last = array.written.last().unwrap();
    assert_eq!((last.segment, last.at, last.overhead, last.blocks.len()), (1, 2, 3, 0));
    assert_eq!((array.order.len(), machine.open()), (2, Some(OpenSegment { segment: 1, next: 5 })));
    // Three blocks are left of the open segment: too few for a block beside three of overhead.
    (array.records, array.blocks[7].is_chosen) = (2, true);
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    let last = array.written.last().unwrap();
    assert_eq!((last.segment, last.at, last.overhead, last.blocks.clone()), (2, 0, 3, vec![7]));
    assert_eq!(machine.segments().state(1), SegmentState::Written);
    // Four are left: enough for records alone, and then for no block.
    array.records = 3;
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    let last = array.written.last().unwrap();
    assert_eq!((last.segment, last.at, last.overhead, last.blocks.len()), (2, 4, 4, 0));
    assert_eq!((machine.open(), array.order.clone()), (None, vec![9]));
    array.check(&machine);
}

#[test]
fn overhead_leaves_a_whole_segment_fewer_blocks() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=1", 40, 8);
    array.records = 3;
    (0..12).for_each(|number| array.put(&mut machine, number));
    machine.write_segments(&mut array, Extent::FullGroups).unwrap();
    assert_eq!(blocks_written(&array), [(0..4).collect::<Vec<_>>(), (4..11).collect()]);
    let counters = machine.counters();
    assert_eq!((counters.summary_blocks, counters.logged_blocks), (4 + 1, 11));
}

/// Segments 0 and 1 are written and cleaned, 2 is next: the queue is 2, 0, 1. All of their blocks wait.
fn cleaned_twice(options: LogOptions) -> (Machine, Array) {
    let (mut machine, mut array) = (Machine::new(3, options), Array::new(40, 3));
    (0..14).for_each(|number| array.put(&mut machine, number));
    assert_eq!(machine.write_pass(&mut array, Extent::FullGroups, u32::MAX), Ok(Progress::Done));
    array.put(&mut machine, 2);
    assert!(machine.clean_one(&mut array).unwrap());
    array.put(&mut machine, 9);
    assert!(machine.clean_one(&mut array).unwrap());
    assert!(array.queue.iter().eq(&[2, 0, 1]));
    array.check(&machine);
    (machine, array)
}

#[test]
fn what_the_segment_after_the_next_holds_is_written_first() {
    let (mut machine, mut array) = cleaned_twice(options("sfs:groups=1,victim=greedy"));
    // Those of segment 1 come first.
    array.order.reverse();
    array.discard(&mut machine, 5);
    array.choose(&[9, 0]);
    machine.write_segments(&mut array, Extent::Chosen).unwrap();
    // Six of segment 0 and one more fill segment 2, group or not; segment 0 then takes all that is left of segment 1, though only one
    // block was asked for.
    assert_eq!((array.written[2].segment, array.written[2].next), (2, Some(0)));
    assert_eq!(array.written[2].blocks, [0, 1, 2, 3, 4, 6, 13]);
    assert_eq!((array.written[3].segment, array.written[3].next, array.written[3].group), (0, Some(1), None));
    assert_eq!(array.written[3].blocks, [7, 8, 9, 10, 11, 12]);
    assert_eq!(machine.counters().guarded_blocks, 12);
    assert_eq!(array.commits, 1, "segment 0 is not reusable before");
    array.check(&machine);
}

#[test]
#[should_panic(expected = "is lost by the next write")]
fn without_the_guard_the_array_sees_that_blocks_are_lost() {
    let (mut machine, mut array) = cleaned_twice(LogOptions { guard: false, ..options("sfs:groups=1,victim=greedy") });
    array.order.reverse();
    let _ = machine.write_segments(&mut array, Extent::FullGroups);
}

#[test]
fn a_segment_that_holds_more_than_overhead_leaves_room_for_is_postponed() {
    let (mut machine, mut array) = cleaned_twice(options("sfs:groups=1,victim=greedy"));
    [7, 8, 10, 11].into_iter().for_each(|number| array.discard(&mut machine, number));
    // Room for four: segment 0 holds seven, segment 1 three.
    array.records = 3;
    assert_eq!(machine.write_pass(&mut array, Extent::FullGroups, u32::MAX), Ok(Progress::Done));
    assert_eq!((array.written[2].segment, array.written[2].next, array.written[2].blocks.len()), (2, Some(1), 4));
    assert!([9, 12, 13].iter().all(|number| array.written[2].blocks.contains(number)));
    array.check(&machine);
    // Where no segment will do, they have run out.
    let (mut machine, mut array) = cleaned_twice(options("sfs:groups=1,victim=greedy"));
    array.records = 3;
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Ok(Progress::OutOfSegments));
    assert_eq!((array.written.len(), machine.segments().queued(1)), (2, Some(0)));
    array.check(&machine);
}

#[test]
fn a_pass_neither_cleans_nor_commits_and_goes_on_where_it_ended() {
    let options = LogOptions { clean_below: 2, ..options("sfs:groups=1,victim=greedy") };
    let (mut machine, mut array) = (Machine::new(4, options), Array::new(40, 4));
    (0..28).for_each(|number| array.put(&mut machine, number));
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Ok(Progress::OutOfSegments));
    assert_eq!((array.written.len(), array.order.len(), machine.counters().segments_cleaned), (3, 7, 0));
    assert!(machine.is_cleaning_due());
    // Segments 0 to 2 hold seven blocks each; 0 and 1 lose some.
    [0, 1, 2, 3, 4, 5, 6, 7].into_iter().for_each(|number| array.discard(&mut machine, number));
    assert_eq!(machine.pick_victim(u32::MAX, |segment| segment > 1), None, "2 is full");
    for (refused, expected) in [(0, 1), (1, 0)] {
        let victim = machine.pick_victim(u32::MAX, |segment| segment != refused).unwrap();
        assert_eq!(victim, expected);
        array.take_live(&mut machine, victim).unwrap();
        let trims = machine.free_victim(victim);
        // Nothing refers to it, but the last commit might.
        assert!(!trims);
    }
    array.refuses_to_commit = true;
    assert_eq!((machine.needs_commit(), machine.segments_before_commit()), (false, 1));
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Err(Refusal::Commit));
    assert_eq!((array.written.len(), array.order.len()), (4, 6));
    assert!(machine.needs_commit());
    array.check(&machine);
    array.refuses_to_commit = false;
    array.commit(&mut machine).unwrap();
    assert_eq!(array.trimmed, [1, 0]);
    assert_eq!((machine.needs_commit(), machine.segments_before_commit()), (false, 2));
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Ok(Progress::Done));
    assert_eq!((array.written.len(), array.order.len(), array.commits), (5, 0, 1));
    array.check(&machine);
}

#[test]
fn the_policy_chooses_among_the_emptiest_segments() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=1,victim=cost_hotness", 40, 6);
    // Cold blocks come first: segments 0 to 2 hold these, 3 what is written again and again.
    (0..21).for_each(|number| array.put(&mut machine, number));
    (0..40).for_each(|_| (21..28).for_each(|number| array.put(&mut machine, number)));
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Ok(Progress::Done));
    let segment_of = |number: u32| array.blocks[number as usize].home.unwrap();
    assert_eq!([0, 7, 14, 21].map(segment_of), [0, 1, 2, 3]);
    // Six, five, seven and three stay live.
    [0, 7, 8, 21, 22, 23, 24].into_iter().for_each(|number| array.discard(&mut machine, number));
    assert_eq!(machine.segments().live_of_emptiest(1, |_| true), 3);
    assert_eq!(machine.segments().live_of_emptiest(2, |segment| segment != 3), 6);
    assert_eq!(machine.segments().live_of_emptiest(4, |_| true), 7);
    assert_eq!(machine.segments().live_of_emptiest(6, |_| true), u32::MAX, "as many as there are");
    let mut victim = |emptiest: u32, barred: u32| machine.pick_victim(emptiest, |segment| segment != barred);
    assert_eq!(victim(u32::MAX, 9), Some(1), "what is hot is left alone");
    assert_eq!(victim(1, 9), Some(3));
    assert_eq!(victim(2, 9), Some(1));
    assert_eq!(victim(1, 3), Some(1), "the emptiest of those that may be");
    assert_eq!(victim(1, 1), Some(3));
    array.check(&machine);
}

#[test]
fn the_coldest_group_that_fills_a_segment_is_written_alone() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=2", 60, 8);
    let (cold, hot) = (|number: &u32| number.is_multiple_of(2), |number: &u32| !number.is_multiple_of(2));
    let write = |machine: &mut Machine, array: &mut Array, numbers: Range<u32>| {
        for number in numbers.clone().filter(cold).chain(numbers.filter(hot)) {
            (0..if hot(&number) { 500 } else { 1 }).for_each(|_| array.put(machine, number));
        }
    };
    // Two segments far apart in hotness draw the line between two groups.
    write(&mut machine, &mut array, 0..14);
    assert_eq!(machine.write_pass(&mut array, Extent::Everything, u32::MAX), Ok(Progress::Done));
    let written_before = array.written.len();
    write(&mut machine, &mut array, 14..60);
    assert_eq!(machine.write_pass(&mut array, Extent::Coldest, 0), Ok(Progress::OutOfSegments));
    assert_eq!(array.written.len(), written_before);
    for written in 0..3 {
        assert_eq!(machine.write_pass(&mut array, Extent::Coldest, u32::MAX), Ok(Progress::Done));
        let new = &array.written[written_before..];
        assert_eq!(new.len(), written + 1, "a segment at a time");
        assert!(new[written].blocks.iter().all(cold));
    }
    assert_eq!(array.order.len(), 46 - 21);
    // Two cold blocks are left, which fill none.
    assert_eq!(machine.write_pass(&mut array, Extent::Coldest, u32::MAX), Ok(Progress::Done));
    assert!(array.written[written_before + 3].blocks.iter().all(hot));
}

#[test]
fn a_pass_takes_as_many_segments_as_it_may() {
    for extent in [Extent::FullGroups, Extent::Everything] {
        let (mut machine, mut array) = machine_and_array("sfs:groups=1", 40, 8);
        (0..31).for_each(|number| array.put(&mut machine, number));
        for (most, written, waiting) in [(0, 0, 31), (2, 2, 17), (1, 3, 10)] {
            assert_eq!(machine.write_pass(&mut array, extent, most), Ok(Progress::OutOfSegments), "{most}");
            assert_eq!((array.written.len(), array.order.len()), (written, waiting), "{most}");
            array.check(&machine);
        }
        // Four whole segments and three blocks, which fill none.
        let is_short = extent == Extent::Everything;
        let expected = if is_short { Progress::OutOfSegments } else { Progress::Done };
        assert_eq!(machine.write_pass(&mut array, extent, 1), Ok(expected));
        assert_eq!((array.written.len(), array.order.len()), (4, 3));
        array.check(&machine);
    }
}

#[test]
fn a_machine_that_cannot_clean_has_no_space() {
    let (mut machine, mut array) = machine_and_array("sfs:groups=1", 40, 4);
    (0..28).for_each(|number| array.put(&mut machine, number));
    assert_eq!(machine.write_segments(&mut array, Extent::Everything), Err(Refusal::NoSpace));
    assert_eq!(array.order.len(), 7);
    array.check(&machine);
}

const BLOCKS: u32 = 90;
const SEGMENTS: u32 = 24;

/// Writes, discards and all extents at random.
fn play(random: &mut Random, machine: &mut Machine, array: &mut Array, steps: u32, records_max: u64) {
    for step in 0..steps {
        let below = if random.chance(0.7) { BLOCKS / 6 } else { BLOCKS };
        let number = random.below(u64::from(below)) as u32;
        if random.chance(0.1) {
            array.discard(machine, number)
        } else {
            array.put(machine, number)
        }
        if random.chance(0.2) {
            array.records = random.below(records_max + 1) as u32;
        }
        if !random.chance(0.25) {
            continue;
        }
        let extents = [Extent::FullGroups, Extent::Coldest, Extent::Chosen, Extent::Everything];
        let extent = extents[random.below(4) as usize];
        let chosen: Vec<u32> = (0..BLOCKS).filter(|_| random.chance(0.1)).collect();
        array.choose(&chosen);
        machine.write_segments(array, extent).unwrap_or_else(|error| panic!("step {step}: {error:?}"));
        array.check(machine);
        let waits = |number: &u32| array.blocks[*number as usize].waits;
        match extent {
            Extent::FullGroups => assert!(array.order.len() < machine.options().quantiser.groups * PAYLOAD),
            // As many as cleaning makes room for.
            Extent::Coldest => {}
            Extent::Chosen => assert!(!chosen.iter().any(waits) && array.records == 0),
            Extent::Everything => assert!(array.order.is_empty() && array.records == 0),
        }
    }
}

#[test]
fn nothing_durable_is_lost_whatever_is_written() {
    let kinds = [("sfs", 3), ("sfs:groups=2,victim=greedy", 3), ("sfs:groups=8", 5), ("sfs:groups=1", 6)];
    for (seed, (text, records_max)) in (1..).zip(kinds) {
        let mut random = Random::new(seed);
        let options = LogOptions { clean_below: 3, checkpoint_segments: 7, ..options(text) };
        let (mut machine, mut array) = (Machine::new(SEGMENTS, options), Array::new(BLOCKS, SEGMENTS));
        play(&mut random, &mut machine, &mut array, 5400, records_max);
        let counters = machine.counters();
        assert!(counters.segments_cleaned > 50 && counters.guarded_blocks > 10 && array.commits > 50, "{counters:?}");
        let by_groups = array.written.iter().filter(|write| write.group.is_some()).count();
        let empty = array.written.iter().filter(|write| write.blocks.is_empty()).count();
        assert!(by_groups > 20 && empty > 20, "{by_groups} whole segments, {empty} writes without blocks");
        let blocks: u64 = array.written.iter().map(|write| write.blocks.len() as u64).sum();
        assert_eq!(counters.logged_blocks + counters.cleaned_blocks, blocks);
    }
}

#[test]
fn a_restored_machine_goes_on_as_the_one_whose_state_it_was() {
    let mut random = Random::new(5);
    let options = LogOptions { clean_below: 3, trim: TrimPoint::Never, ..options("sfs:groups=1") };
    let (mut machine, mut array) = (Machine::new(SEGMENTS, options), Array::new(BLOCKS, SEGMENTS));
    play(&mut random, &mut machine, &mut array, 1000, 3);
    machine.checkpoint(&mut array).unwrap();
    let mut restored = Machine::new(SEGMENTS, options);
    restored.restore(&machine.state());
    let state = restored.state();
    assert_eq!(state, machine.state());
    let of_segments = |machine: &Machine| {
        let segments = machine.segments();
        (0..SEGMENTS).map(|s| (segments.state(s), segments.youngest(s), segments.written(s))).collect::<Vec<_>>()
    };
    assert_eq!(of_segments(&restored), of_segments(&machine));
    assert!(of_segments(&machine).iter().any(|(_, _, written)| written.is_some_and(|(_, now)| now > 0)));
    let record = state.segments.iter().find(|record| record.live > 0).unwrap();
    assert_eq!(HeatSums::of(record.heat.writes(), record.heat.times()), record.heat);
    let mut other = array.clone();
    for (machine, array) in [(&mut machine, &mut array), (&mut restored, &mut other)] {
        play(&mut random.clone(), machine, array, 1000, 3);
    }
    assert_eq!(array.written, other.written);
    assert_eq!(restored.state(), machine.state());
    assert!(array.trimmed.is_empty());
}
