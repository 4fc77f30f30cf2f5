//! A recording replayed: the machine of the simulator, without bytes, decides again, and every decision is compared.

use super::event::{Digest, Event, Heats, Outcome, heat};
use super::without_bytes::{Events, WithoutBytes};
use isotherm::registry::SpecError;
use isotherm_sfs::machine::{Machine, Progress};
use isotherm_sfs::segments::SegmentState;
use std::io;

/// Why a replay ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ReplayError {
    #[error("event {event}: the file system decided {recorded}, the simulator {replayed}")]
    Differs { event: u64, recorded: String, replayed: String },
    #[error("event {0} cannot happen there: the recording is damaged")]
    Nonsense(u64),
    #[error("the recording does not begin with a start of version 1 that makes sense")]
    NoStart,
    #[error("the recording ends in the middle of a segment write")]
    CutOff,
    #[error("more than 2^30 blocks have waited")]
    TooLong,
    #[error("the next segment waits for a checkpoint")]
    Stopped,
    #[error(transparent)]
    Log(#[from] SpecError),
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// What was replayed, and found equal.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// Events.
    pub events: u64,
    /// Writes of the log: the segment, the group and every block of each were the same.
    pub writes: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Victims.
    pub victims: u64,
    /// Checkpoints: the counters and every segment were the same at each.
    pub checkpoints: u64,
    /// Whether it goes on to the end of the mount.
    pub is_whole: bool,
    /// Where the machine came to.
    pub digest: Digest,
}

/// A block dies in a segment, if it can.
pub(super) fn die(machine: &mut Machine, segment: u32, heats: Heats, event: u64) -> Result<(), ReplayError> {
    let segments = machine.segments();
    let can = segment < segments.count() && segments.live(segment) > 0 && {
        let sums = segments.heat(segment);
        sums.writes() >= u64::from(heats.0) && sums.times() >= u64::from(heats.1)
    };
    if !can {
        return Err(ReplayError::Nonsense(event));
    }
    machine.on_death(segment, heat(heats));
    Ok(())
}

/// A segment can lose a durable copy.
pub(super) fn check_referenced(machine: &Machine, segment: u32, event: u64) -> Result<(), ReplayError> {
    let segments = machine.segments();
    let can = segment < segments.count() && segments.referenced(segment) > 0;
    if can { Ok(()) } else { Err(ReplayError::Nonsense(event)) }
}

/// Replays a recording to its end.
///
/// # Errors
/// The machine decides otherwise than the file system did; the recording is none, or cannot be read.
pub fn replay(events: impl Iterator<Item = io::Result<Event>>) -> Result<Replayed, ReplayError> {
    let mut events = Events::new(events);
    let Some(Event::Start(start)) = events.next()? else { return Err(ReplayError::NoStart) };
    if !start.is_sound() {
        return Err(ReplayError::NoStart);
    }
    let mut machine = start.machine()?;
    let mut waiting = WithoutBytes::new(start.segment_blocks, events);
    let (mut victims, mut checkpoints, mut is_whole) = (0, 0, false);
    while let Some(event) = waiting.events().next()? {
        let number = waiting.events().number();
        is_whole = false;
        match event {
            Event::Tick => machine.on_host_write(),
            Event::Waits { block, heat, file_heat, .. } => waiting.waits(block, heat, file_heat)?,
            Event::Forgotten(block) => waiting.forget(block),
            Event::Death { segment, heat } => die(&mut machine, segment, heat, number)?,
            Event::Release(segment) => {
                check_referenced(&machine, segment, number)?;
                machine.release(segment);
            }
            Event::Transaction(bytes) => waiting.transact(bytes),
            Event::Victim { segment, barred, emptiest } => {
                let replayed = machine.pick_victim(emptiest, |segment| !barred.contains(&segment));
                if replayed != segment {
                    return Err(waiting.events().differs(&segment, &replayed));
                }
                victims += 1;
            }
            Event::Free(segment) => {
                let segments = machine.segments();
                let can = segment < segments.count()
                    && segments.state(segment) == SegmentState::Written
                    && segments.live(segment) == 0;
                if !can {
                    return Err(ReplayError::Nonsense(number));
                }
                let _ = machine.free_victim(segment);
            }
            Event::Pass { scope, most, chosen, metadata } => {
                waiting.begin(&chosen, metadata);
                pass(&mut machine, &mut waiting, scope.into(), most)?;
            }
            Event::Checkpoint { is_last, digest } => {
                let replayed = Digest::of(&machine);
                if *digest != replayed {
                    return Err(waiting.events().differs(&digest, &replayed));
                }
                machine.begin_checkpoint();
                let _ = machine.on_checkpoint();
                checkpoints += 1;
                is_whole = is_last;
            }
            _ => return Err(ReplayError::Nonsense(number)),
        }
    }
    let counters = machine.counters();
    Ok(Replayed {
        events: waiting.events().number() - 1,
        writes: machine.sequence() - start.sequence,
        blocks: counters.logged_blocks + counters.cleaned_blocks,
        victims,
        checkpoints,
        is_whole,
        digest: Digest::of(&machine),
    })
}

/// A segment write, and how it ended.
fn pass<I: Iterator<Item = io::Result<Event>>>(
    machine: &mut Machine,
    waiting: &mut WithoutBytes<I>,
    extent: isotherm_sfs::machine::Extent,
    most: u32,
) -> Result<(), ReplayError> {
    let outcome = match machine.write_pass(waiting, extent, most) {
        Ok(Progress::Done) => Outcome::Done,
        Ok(Progress::OutOfSegments) => Outcome::OutOfSegments,
        Err(ReplayError::Stopped) => Outcome::Stopped,
        Err(error) => return Err(error),
    };
    if let Some(fault) = waiting.take_fault() {
        return Err(fault);
    }
    let centres = machine.centres().iter().map(|centre| centre.to_bits()).collect();
    let replayed = Event::Passed { outcome, centres };
    let recorded = waiting.events().next()?.ok_or(ReplayError::CutOff)?;
    if recorded == replayed { Ok(()) } else { Err(waiting.events().differs(&recorded, &replayed)) }
}
