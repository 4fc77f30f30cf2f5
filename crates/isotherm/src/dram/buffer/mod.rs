//! Replacement policies of the write buffer: which pages leave it when room is needed.
//!
//! A policy is one file plus one line in the table below. It holds neither data nor a map: it hears of frames that fill, are
//! touched, become clean and empty, and names those to evict. [`super::write_buffer`] does the rest.

mod arc;
mod bplru;
mod cflru;
mod lb_clock;
mod queue;
mod units;

use crate::address::Lpn;
use crate::registry::{Entry, Parameter, Parameters, PolicyName, SpecError, find};

pub use arc::Arc;
pub use bplru::Bplru;
pub use cflru::Cflru;
pub use lb_clock::LbClock;
pub use queue::Queue;

/// How a page that is in the buffer was touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// The host read it.
    Read,
    /// The host wrote it.
    Write,
}

/// Why a page leaves the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// Room was needed: it may have been wanted again.
    Evicted,
    /// It was trimmed.
    Discarded,
}

/// Orders the frames of a write buffer.
///
/// # Contract
/// - A frame enters with `on_insert`, dirty if `touch` is a write, and leaves with `on_remove`; `on_miss` announces every page
///   that will enter, before room is made for it.
/// - `pick` appends at least one frame that is in to `victims`; every one of them then leaves. It is called only if a frame is in.
/// - The choice depends on the calls so far alone. Nothing is allocated after the policy is built.
pub trait BufferPolicy {
    /// `lpn` is not in the buffer and is about to enter.
    fn on_miss(&mut self, _lpn: Lpn) {}
    /// `lpn` entered in `frame`.
    fn on_insert(&mut self, frame: u32, lpn: Lpn, touch: Touch);
    /// The page in `frame` was touched; a write makes it dirty.
    fn on_touch(&mut self, frame: u32, lpn: Lpn, touch: Touch);
    /// The page in `frame` has been written to flash and stays.
    fn on_clean(&mut self, _frame: u32) {}
    /// The page in `frame` leaves.
    fn on_remove(&mut self, frame: u32, lpn: Lpn, departure: Departure);
    /// Names the frames to evict next.
    fn pick(&mut self, victims: &mut Vec<u32>);
    /// Frames that are likely to be picked after the next one, soonest first: hints, from which nothing but speed follows.
    fn upcoming(&self) -> [Option<u32>; 2] {
        [None; 2]
    }
    /// The buffer holds at most `frames` frames from now on.
    fn set_capacity(&mut self, _frames: u32) {}
    /// Whether pages that the host reads enter the buffer too.
    fn keeps_reads(&self) -> bool {
        false
    }
    /// Binary logarithm of the pages of a unit that is written whole when it is evicted, missing pages being read first.
    fn padded_unit(&self) -> Option<u8> {
        None
    }
    /// Bytes of state.
    fn memory_bytes(&self) -> u64;
}

/// What a buffer policy may need to be built.
#[derive(Clone, Copy, Debug)]
pub struct BufferContext {
    /// Most frames that the buffer will ever have.
    pub frames: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
}

/// Builds a policy from its checked parameters.
pub type BuildBuffer = fn(&Parameters<'_>, &BufferContext) -> Result<AnyBuffer, SpecError>;

/// Declares the enum that dispatches to every policy, and its implementation of [`BufferPolicy`].
macro_rules! dispatch {
    ($($variant:ident),* $(,)?) => {
        /// Any buffer policy: a branch instead of a virtual call.
        // A tag of its own: one hidden in a variant's pointer takes six instructions a call to read.
        #[repr(u8)]
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum AnyBuffer { $($variant($variant)),* }

        impl BufferPolicy for AnyBuffer {
            #[inline(always)]
            fn on_miss(&mut self, lpn: Lpn) {
                match self { $(Self::$variant(policy) => policy.on_miss(lpn)),* }
            }
            #[inline(always)]
            fn on_insert(&mut self, frame: u32, lpn: Lpn, touch: Touch) {
                match self { $(Self::$variant(policy) => policy.on_insert(frame, lpn, touch)),* }
            }
            #[inline(always)]
            fn on_touch(&mut self, frame: u32, lpn: Lpn, touch: Touch) {
                match self { $(Self::$variant(policy) => policy.on_touch(frame, lpn, touch)),* }
            }
            fn on_clean(&mut self, frame: u32) {
                match self { $(Self::$variant(policy) => policy.on_clean(frame)),* }
            }
            #[inline(always)]
            fn on_remove(&mut self, frame: u32, lpn: Lpn, departure: Departure) {
                match self { $(Self::$variant(policy) => policy.on_remove(frame, lpn, departure)),* }
            }
            #[inline(always)]
            fn pick(&mut self, victims: &mut Vec<u32>) {
                match self { $(Self::$variant(policy) => policy.pick(victims)),* }
            }
            #[inline(always)]
            fn upcoming(&self) -> [Option<u32>; 2] {
                match self { $(Self::$variant(policy) => policy.upcoming()),* }
            }
            fn set_capacity(&mut self, frames: u32) {
                match self { $(Self::$variant(policy) => policy.set_capacity(frames)),* }
            }
            fn keeps_reads(&self) -> bool {
                match self { $(Self::$variant(policy) => policy.keeps_reads()),* }
            }
            fn padded_unit(&self) -> Option<u8> {
                match self { $(Self::$variant(policy) => policy.padded_unit()),* }
            }
            fn memory_bytes(&self) -> u64 {
                match self { $(Self::$variant(policy) => policy.memory_bytes()),* }
            }
        }
    };
}

dispatch!(Queue, Cflru, Bplru, LbClock, Arc);

/// Every buffer policy.
pub const BUFFERS: &[Entry<BuildBuffer>] =
    &[queue::LRU, queue::FIFO, cflru::ENTRY, bplru::ENTRY, lb_clock::ENTRY, arc::ENTRY];

/// No parameters.
const NONE: &[Parameter] = &[];

/// Builds the policy that `name` names.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn build_buffer(name: &PolicyName, context: &BufferContext) -> Result<AnyBuffer, SpecError> {
    let entry = find(BUFFERS, "dram.buffer", name)?;
    (entry.build)(&Parameters::new(name, entry.parameters)?, context)
}
