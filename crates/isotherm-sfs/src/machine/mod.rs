//! The segment machine: what decides which blocks are written together, which segment is written next and which one is cleaned
//! (Min et al., SFS, FAST'12). One machine serves the simulator's log ([`crate::log`]) and a file system, so that neither drifts
//! from the other: it knows no bytes, no device and no map, and acts through a [`Mechanism`].
//!
//! A *segment write* first draws the lines between the groups anew ([`isotherm::hotness::quantise`]), then sorts the blocks that wait into
//! groups and writes every group that fills whole segments. What is left over goes on waiting (*deferral*), live blocks under
//! cleaning included, until its group fills a segment, or until more is asked for ([`Extent`]): the rest is then written mixed, into
//! one open segment.
//!
//! Before segment S(t) is written, any block whose newest durable copy lies in S(t+1) is put into it, whatever its group
//! (the *guard*): so the segment that is written next never holds the only copy of anything. The slides guard blocks under
//! cleaning; here the guard also covers blocks that the host overwrote in memory only, since their older version is what a
//! loss of power must bring back. Segments are taken least recently freed first ([`crate::segments`]). The one departure from that order: where
//! a write's overhead leaves S(t) too little room for what the guard demands, another segment becomes S(t+1), and that one goes
//! to the end of the queue.
//!
//! Two ways to drive it. [`Machine::write_segments`] cleans and commits by itself, within the write that needs it: for a simulator.
//! [`Machine::write_pass`] does neither: it says that segments ran out, and a mechanism that refuses to commit ends it with its own
//! error; whoever called cleans ([`Machine::pick_victim`], [`Machine::free_victim`]) or commits when no lock is held, and calls again.
//!
//! A pass costs O(segments x groups) for the lines and O(waiting blocks) beside what it writes.

mod cleaning;
mod mechanism;
mod state;
mod writing;

pub use mechanism::{Cleaner, Extent, Mechanism, Progress, RunWrite};
pub use state::MachineState;

use crate::options::{LogOptions, TrimPoint};
use crate::segments::{OpenSegment, Segments};
use crate::snapshot::LogCounters;
use isotherm::hotness::heat::{Heat, Time};
use isotherm::hotness::quantise::Quantiser;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Machine {
    options: LogOptions,
    segments: Segments,
    quantiser: Quantiser,
    open: Option<OpenSegment>,
    /// Host block writes so far: the clock of every policy.
    now: u64,
    /// Writes of runs so far.
    sequence: u64,
    segments_since_checkpoint: u32,
    counters: LogCounters,
    /// Waiting blocks by group while a segment write lasts, and how many of each group have been looked at.
    groups: Vec<Vec<u32>>,
    cursors: Vec<usize>,
    /// Blocks of the run that is being written.
    run: Vec<u32>,
}

impl Machine {
    /// A machine of `segments` free segments.
    pub fn new(segments: u32, options: LogOptions) -> Self {
        let groups = options.quantiser.groups;
        Self {
            segments: Segments::new(segments, options.payload_blocks()),
            quantiser: Quantiser::new(options.quantiser, options.seed),
            open: None,
            now: 0,
            sequence: 0,
            segments_since_checkpoint: 0,
            counters: LogCounters::new(groups),
            groups: vec![Vec::new(); groups],
            cursors: vec![0; groups],
            run: Vec::with_capacity(options.segment_blocks as usize),
            options,
        }
    }

    /// What was set.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }
    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    /// The groups' centres of hotness, coldest first.
    pub fn centres(&self) -> Vec<f64> {
        self.quantiser.centres()
    }
    /// The segment that mixed writes fill.
    pub fn open(&self) -> Option<OpenSegment> {
        self.open
    }
    /// Number of the last write of a run; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
    /// Host block writes so far.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.now
    }
    /// What the clock of hotness shows: its ticks may be coarser than block writes.
    #[inline(always)]
    pub fn ticks(&self) -> u64 {
        self.now >> self.options.log2_tick_blocks
    }
    /// What was counted.
    pub fn counters(&self) -> &LogCounters {
        &self.counters
    }
    /// What was counted, for a mechanism that counts what it does there too.
    #[inline(always)]
    pub fn counters_mut(&mut self) -> &mut LogCounters {
        &mut self.counters
    }

    /// The host writes a block: time passes.
    #[inline(always)]
    pub fn on_host_write(&mut self) {
        self.now += 1;
        self.counters.host_blocks += 1;
    }

    /// The newest data of a block that was live in `segment` is no longer there, by the host's doing.
    #[inline(always)]
    pub fn on_overwrite(&mut self, segment: u32, heat: Heat) {
        self.segments.on_death(segment, heat);
        if let Some((group, written)) = self.segments.written(segment) {
            self.counters.groups[usize::from(group)].count_death(self.now - written);
        }
    }

    /// The newest data of a block that was live in `segment` is in memory now: the segment is being cleaned.
    #[inline(always)]
    pub fn on_death(&mut self, segment: u32, heat: Heat) {
        self.segments.on_death(segment, heat);
    }

    /// A block that was counted as dead lives in `segment` after all.
    pub fn on_rescue(&mut self, segment: u32, heat: Heat) {
        self.segments.on_rescue(segment, heat);
    }

    /// The newest durable copy of a block is no longer in `segment`, for another reason than [`Machine::on_written`].
    #[inline(always)]
    pub fn release(&mut self, segment: u32) {
        self.segments.release(segment);
    }

    /// A block of a run was written that the host last modified at `modified`; its newest durable copy was in the segment
    /// `from`, if anywhere.
    #[inline(always)]
    pub fn on_written(&mut self, write: &RunWrite<'_>, from: Option<u32>, heat: Heat, modified: Time) {
        if let Some(from) = from {
            self.counters.guarded_blocks += u64::from(write.next_segment == Some(from));
            self.segments.release(from);
        }
        self.segments.on_write(write.segment, heat, modified);
    }

    /// A free segment is not reusable before the next checkpoint ([`Segments::hold`]).
    pub fn hold(&mut self, segment: u32) {
        self.segments.hold(segment);
    }

    /// Whether the segment that is written next is not reusable before a commit. [`Mechanism::commit`] is then called within the write.
    pub fn needs_commit(&self) -> bool {
        self.segments.queued(0).is_some_and(|next| !self.segments.is_reusable(next))
    }

    /// Segments that can be written before [`Machine::needs_commit`] comes true.
    pub fn segments_before_commit(&self) -> usize {
        self.segments.queue().take_while(|segment| self.segments.is_reusable(*segment)).count()
    }

    /// Whether as many segments were written since a checkpoint began as the options say.
    pub fn is_checkpoint_due(&self) -> bool {
        self.segments_since_checkpoint >= self.options.checkpoint_segments
    }

    /// A checkpoint begins that all waiting blocks are written for: [`Machine::is_checkpoint_due`] counts from here.
    pub fn begin_checkpoint(&mut self) {
        self.segments_since_checkpoint = 0;
    }

    /// A commit is durable. Returns the freed segments that it made reusable, if those are to be trimmed.
    pub fn on_checkpoint(&mut self) -> Vec<u32> {
        let reusable = self.segments.on_checkpoint();
        if self.options.trim == TrimPoint::Reusable { reusable.collect() } else { Vec::new() }
    }

    /// Bytes of the table of segments.
    pub fn table_bytes(&self) -> u64 {
        self.segments.bytes()
    }
}
