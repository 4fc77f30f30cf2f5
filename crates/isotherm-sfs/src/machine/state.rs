//! What a checkpoint keeps of the machine.

use super::Machine;
use crate::segments::{OpenSegment, SegmentRecord};

/// Everything that the machine's decisions follow from, but for its options, its counters and the random numbers that centres are
/// picked by.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MachineState {
    /// Every segment.
    pub segments: Vec<SegmentRecord>,
    /// The queue of free segments, the one that is written next first.
    pub queue: Vec<u32>,
    /// The segment that mixed writes fill.
    pub open: Option<OpenSegment>,
    /// The groups' centres of hotness, coldest first.
    pub centres: Vec<f64>,
    /// Host block writes so far.
    pub now: u64,
    /// Number of the last write of a run.
    pub sequence: u64,
}

impl Machine {
    /// What a checkpoint keeps.
    pub fn state(&self) -> MachineState {
        MachineState {
            segments: self.segments.records().collect(),
            queue: self.segments.queue().collect(),
            open: self.open,
            centres: self.centres(),
            now: self.now,
            sequence: self.sequence,
        }
    }

    /// Goes on from a state that a durable checkpoint has, or will have before anything is written: segments of the queue that no
    /// block has its home in are reusable. Those that wait do not wait any more, unless the mechanism says so again
    /// ([`Machine::on_death`]): the caller has made them live where their home is.
    ///
    /// # Panics
    /// If the state is one of another number of segments.
    pub fn restore(&mut self, state: &MachineState) {
        self.segments.restore(&state.segments, &state.queue);
        self.quantiser.restore(&state.centres);
        self.open = state.open;
        self.now = state.now;
        self.sequence = state.sequence;
        self.begin_checkpoint();
    }
}
