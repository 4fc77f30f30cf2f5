//! What the machine acts through.

use super::Machine;

/// How much of what waits is written: everything in any case where nothing is deferred, or where as much waits as may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Groups that fill whole segments.
    FullGroups,
    /// One segment of the coldest group that fills one: what is hot goes on waiting to be written over.
    Coldest,
    /// Full groups, then of the rest the blocks that the mechanism has chosen and its records; others go on waiting.
    Chosen,
    /// Full groups, then the rest: nothing waits any more.
    Everything,
}

/// Why a segment write stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress {
    /// Everything that may be written is written.
    Done,
    /// Segments ran out.
    OutOfSegments,
}

/// A run of blocks that is written at once: the write's overhead, then the blocks.
#[derive(Clone, Copy, Debug)]
pub struct RunWrite<'a> {
    /// The segment.
    pub segment: u32,
    /// Block of the segment that it begins at; 0 if the segment was taken from the queue for it.
    pub at: u32,
    /// Blocks of overhead at its head, as [`Mechanism::overhead`] has said.
    pub overhead_blocks: u32,
    /// The blocks, in order. None if only records are written.
    pub blocks: &'a [u32],
    /// The group that the whole segment is written for; none for a mixed write.
    pub group: Option<u8>,
    /// Rises by one with every write.
    pub sequence: u64,
    /// Host block writes so far.
    pub now: u64,
    /// The segment that is taken from the queue next.
    pub next_segment: Option<u32>,
}

/// What holds the blocks that wait, and writes them. Waiting blocks are named by numbers.
///
/// # Contract
/// - A number names the same block from one end of a segment write to the other, that is between two calls of `forget_written`.
/// - A block's *home* is the segment of its newest durable copy. Every block whose home is in the queue of free segments waits.
/// - `payload` and `overhead` agree: `payload(room) + overhead(payload(room)) <= room` where `payload(room) > 0`, and neither
///   changes but by `write`, nor by `commit` but for the better. A whole segment has room for a block, or for records that wait.
/// - `write` calls [`Machine::on_written`] for each block. After it they no longer wait, and their home is the segment
///   written. If it fails, they wait as before, and nothing was told to the machine.
/// - `write` also writes the records that wait, as many as were counted in the overhead: at least one of them.
/// - `commit` calls [`Machine::on_checkpoint`] once it is durable. If it fails, nothing has changed, and the segment write ends with
///   its error. It writes no segment: the machine is in the middle of that.
pub trait Mechanism {
    /// Why something cannot be done.
    type Error;

    /// The blocks that wait, in the order in which their groups are to hold them.
    fn waiting(&self) -> impl Iterator<Item = u32>;
    /// How many these are.
    fn waiting_blocks(&self) -> usize;
    /// Whether a block that waited when the segment write began still does.
    fn is_waiting(&self, block: u32) -> bool;
    /// Whether such a block's home is `segment`.
    fn is_homed_in(&self, block: u32, segment: u32) -> bool;
    /// Appends the blocks whose home is `segment`, a freed one, to `out`, in the order in which they are to be written.
    fn homed_in(&self, segment: u32, out: &mut Vec<u32>);
    /// Hotness of a waiting block at a time in ticks: that of its file where it was never rewritten.
    fn hotness(&self, block: u32, ticks: u64) -> f64;
    /// Whether [`Extent::Chosen`] covers a waiting block.
    fn is_chosen(&self, block: u32) -> bool;
    /// Whether something waits that is no block, and is written as part of the overhead of any write; one without blocks is made
    /// for it if need be.
    fn has_records(&self) -> bool;
    /// Blocks that fit into the write of a run with room for `room` blocks in all.
    fn payload(&self, room: u32) -> u32;
    /// Blocks of overhead that the write of a run of `blocks` blocks takes beside them.
    fn overhead(&self, blocks: u32) -> u32;

    /// Writes a run. Returns how many of its blocks were waiting because a segment was cleaned.
    ///
    /// # Errors
    /// Of what is below.
    fn write(&mut self, machine: &mut Machine, write: &RunWrite<'_>) -> Result<u32, Self::Error>;
    /// A segment write has come to a halt: numbers of blocks that wait no more may be used again.
    fn forget_written(&mut self);
    /// Makes durable that blocks are where they were written last, so that nothing durable refers to freed segments.
    ///
    /// # Errors
    /// Of what is below, or that it cannot be done now.
    fn commit(&mut self, machine: &mut Machine) -> Result<(), Self::Error>;
    /// The error that says that no segment can be written, and none is worth cleaning.
    fn no_space(&self, machine: &Machine) -> Self::Error;
}

/// A mechanism that cleans within a segment write.
///
/// # Contract
/// - `take_live` calls [`Machine::on_death`] for each live block of the victim, which waits from then on. If it fails, those that could
///   not be read are live again ([`Machine::on_rescue`]).
pub trait Cleaner: Mechanism {
    /// Makes the live blocks of a segment wait.
    ///
    /// # Errors
    /// Of what is below.
    fn take_live(&mut self, machine: &mut Machine, victim: u32) -> Result<(), Self::Error>;
    /// A segment holds nothing any more.
    ///
    /// # Errors
    /// Of what is below.
    fn trim(&mut self, segment: u32) -> Result<(), Self::Error>;
}
