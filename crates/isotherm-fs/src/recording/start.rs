//! Where a machine stands when a recording begins.

use crate::format::summary::RECORD_BYTES;
use crate::log::LogSettings;
use isotherm::hotness::heat::HeatSums;
use isotherm::registry::SpecError;
use isotherm_sfs::machine::{Machine, MachineState};
use isotherm_sfs::options::LogOptions;
use isotherm_sfs::segments::{OpenSegment, SegmentRecord as Known, SegmentState};
use serde::{Deserialize, Serialize};

/// A segment: state (0 free, 1 open, 2 written), live and referenced blocks, sums of writes and times, youngest block, group, and
/// when it was written for it.
type Segment = (u8, u32, u32, u64, u64, u32, Option<u8>, u64);

/// See the module's text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Start {
    /// Version of recordings: 1.
    pub version: u32,
    /// The log with its parameters, as [`LogSettings::parse`] reads it.
    pub log: String,
    /// Seed of centres and samples.
    pub seed: u64,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Free segments at or below which cleaning is due.
    pub clean_below: u32,
    /// Whether a segment that may be written over is taken before those that wait for a checkpoint.
    pub reusable_first: bool,
    /// Block writes of the host until now.
    pub now: u64,
    /// Writes of the log until now.
    pub sequence: u64,
    /// The groups' centres as the bits of their numbers, coldest first.
    pub centres: Vec<u64>,
    /// The open segment, and the blocks of it that are written.
    pub open: Option<(u32, u32)>,
    /// The queue of free segments.
    pub queue: Vec<u32>,
    /// Those of it that wait for a checkpoint.
    pub held: Vec<u32>,
    segments: Vec<Segment>,
}

impl Start {
    /// Of a machine that has not decided anything yet.
    pub(crate) fn of(log: &str, machine: &Machine) -> Self {
        let (state, options) = (machine.state(), machine.options());
        let held = state.queue.iter().copied().filter(|segment| !machine.segments().is_reusable(*segment)).collect();
        let segment = |known: &Known| {
            let kind = match known.state {
                SegmentState::Freed => 0,
                SegmentState::Open => 1,
                SegmentState::Written => 2,
            };
            let (writes, times) = (known.heat.writes(), known.heat.times());
            (kind, known.live, known.referenced, writes, times, known.youngest, known.group, known.written)
        };
        Self {
            version: 1,
            log: log.to_owned(),
            seed: options.seed,
            segment_blocks: options.segment_blocks,
            clean_below: options.clean_below,
            reusable_first: options.reusable_first,
            now: state.now,
            sequence: state.sequence,
            centres: state.centres.iter().map(|centre| centre.to_bits()).collect(),
            open: state.open.map(|open| (open.segment, open.next)),
            queue: state.queue,
            held,
            segments: state.segments.iter().map(segment).collect(),
        }
    }

    /// What the machine was told.
    pub(crate) fn options(&self) -> Result<LogOptions, SpecError> {
        let mut options = LogSettings::parse(&self.log)?.machine;
        options.seed = self.seed;
        options.segment_blocks = self.segment_blocks;
        options.clean_below = self.clean_below;
        options.reusable_first = self.reusable_first;
        options.dirty_blocks = usize::MAX;
        options.summary_bytes = RECORD_BYTES as u32;
        Ok(options)
    }

    /// Whether its numbers fit each other.
    pub(crate) fn is_sound(&self) -> bool {
        let count = self.segments.len();
        let mut queued = vec![false; count];
        let is_first =
            |segment: &u32| queued.get_mut(*segment as usize).is_some_and(|queued| !std::mem::replace(queued, true));
        let least = crate::format::summary::blocks(1, 0) as u32 + 1;
        self.version == 1
            && self.queue.iter().all(is_first)
            && self.held.iter().all(|segment| queued.get(*segment as usize) == Some(&true))
            && (least..=1 << 20).contains(&self.segment_blocks)
            && self.open.is_none_or(|(segment, next)| (segment as usize) < count && next <= self.segment_blocks)
    }

    /// A machine that stands there.
    pub(crate) fn machine(&self) -> Result<Machine, SpecError> {
        let mut machine = Machine::new(self.segments.len() as u32, self.options()?);
        let segments =
            self.segments.iter().map(|(kind, live, referenced, writes, times, youngest, group, written)| Known {
                state: match kind {
                    0 => SegmentState::Freed,
                    1 => SegmentState::Open,
                    _ => SegmentState::Written,
                },
                live: *live,
                referenced: *referenced,
                heat: HeatSums::of(*writes, *times),
                youngest: *youngest,
                group: *group,
                written: *written,
            });
        machine.restore(&MachineState {
            segments: segments.collect(),
            queue: self.queue.clone(),
            open: self.open.map(|(segment, next)| OpenSegment { segment, next }),
            centres: self.centres.iter().map(|bits| f64::from_bits(*bits)).collect(),
            now: self.now,
            sequence: self.sequence,
        });
        self.held.iter().for_each(|segment| machine.hold(*segment));
        Ok(machine)
    }
}
