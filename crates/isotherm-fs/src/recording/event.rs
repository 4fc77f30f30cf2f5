//! Events of a recording.

use super::start::Start;
use crate::format::summary::BlockName;
use crate::store::{Heat, Slot};
use isotherm_sfs::machine::{Extent, Machine};
use isotherm_sfs::segments::SegmentState;
use serde::{Deserialize, Serialize};

/// Writes of a block, and the time of the last one, in block writes of the host.
pub type Heats = (u32, u32);

/// The kind of a block and which one it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// File data, by the page and the index of its entry.
    Data(u32, u8),
    /// A page of metadata.
    Page(u32),
    /// A page of the table of pages.
    Table(u32),
}

impl From<BlockName> for Name {
    fn from(name: BlockName) -> Self {
        match name {
            BlockName::Data(page, index) => Self::Data(page, index),
            BlockName::Page(id) => Self::Page(id),
            BlockName::Table(number) => Self::Table(number),
        }
    }
}

impl From<Slot> for Name {
    fn from(slot: Slot) -> Self {
        Self::Data(slot.page, slot.index)
    }
}

/// How much of what waits is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Groups that fill whole segments.
    FullGroups,
    /// One segment of the coldest group that fills one.
    Coldest,
    /// All groups that fill whole segments, and chosen blocks.
    Chosen,
    /// All of it.
    Everything,
}

impl From<Extent> for Scope {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::FullGroups => Self::FullGroups,
            Extent::Coldest => Self::Coldest,
            Extent::Chosen => Self::Chosen,
            Extent::Everything => Self::Everything,
        }
    }
}

impl From<Scope> for Extent {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::FullGroups => Self::FullGroups,
            Scope::Coldest => Self::Coldest,
            Scope::Chosen => Self::Chosen,
            Scope::Everything => Self::Everything,
        }
    }
}

/// How a segment write ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All that was asked for is written.
    Done,
    /// Segments ran out.
    OutOfSegments,
    /// The next segment waits for a checkpoint.
    Stopped,
}

/// What happened. Those marked as decisions are the machine's, the others are what they follow from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Where the machine stands at the mount.
    Start(Box<Start>),
    /// The host has written a block of a file: the clock goes on by one.
    Tick,
    /// A block of file data waits to be written, or is written again while it waits.
    Waits {
        /// The block.
        block: Name,
        /// Inode of its file; 0 for what the cleaner took.
        file: u64,
        /// Its heat.
        heat: Heats,
        /// That of its file when it began to wait.
        file_heat: Heats,
    },
    /// A block that waited does not exist any more.
    Forgotten(Name),
    /// A block of a segment is newer in memory, or gone.
    Death {
        /// The segment.
        segment: u32,
        /// The block's heat.
        heat: Heats,
    },
    /// The newest durable copy of a block that is gone was in this segment.
    Release(u32),
    /// A transaction of so many bytes waits to be written.
    Transaction(u32),
    /// Decision: the segment to clean, of those that are not barred.
    Victim {
        /// The segment.
        segment: Option<u32>,
        /// Segments that cannot be read.
        barred: Vec<u32>,
        /// Of how many with the fewest live blocks.
        emptiest: u32,
    },
    /// A segment without live blocks is freed.
    Free(u32),
    /// A segment write begins.
    Pass {
        /// How much is to be written.
        scope: Scope,
        /// Segments that it may take at most.
        most: u32,
        /// The blocks of file data that are chosen.
        chosen: Vec<Name>,
        /// What alone waits for this write, where that is not all file data: metadata with its heat, or what was cleaned.
        metadata: Option<Vec<(Name, Heats)>>,
    },
    /// Decision: the blocks whose newest durable copy is in a segment are written before it is.
    Guarded {
        /// The segment.
        segment: u32,
        /// The blocks.
        blocks: Vec<Name>,
    },
    /// Decision: a write of the log. What happens to each of its blocks follows, up to [`Event::Written`].
    Write {
        /// The segment.
        segment: u32,
        /// Where in it.
        at: u32,
        /// Blocks of the summary.
        overhead: u32,
        /// The group that the segment is written for.
        group: Option<u8>,
        /// Number of the write.
        sequence: u64,
        /// The segment that is written next.
        next: Option<u32>,
        /// The blocks.
        blocks: Vec<Name>,
    },
    /// Metadata that a block's new place is written down in is dirty now, and was not.
    Dirty(Name),
    /// The next block of a write has its place.
    Placed {
        /// The segment of its last durable copy.
        from: Option<u32>,
        /// Its heat.
        heat: Heats,
        /// Whether it waited because of cleaning.
        cleaned: bool,
    },
    /// The write is complete.
    Written,
    /// Decision: how the segment write ended, and the groups' centres as the bits of their numbers.
    Passed {
        /// How it ended.
        outcome: Outcome,
        /// Centres, coldest first.
        centres: Vec<u64>,
    },
    /// A checkpoint, and all that the machine's further decisions follow from.
    Checkpoint {
        /// Whether the volume is unmounted with it: the end of the recording.
        is_last: bool,
        /// Decision: where the machine stands.
        digest: Box<Digest>,
    },
}

/// Where a machine stands, to be compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Digest {
    /// Block writes of the host.
    pub now: u64,
    /// Writes of the log.
    pub sequence: u64,
    /// The open segment, and the blocks of it that are written.
    pub open: Option<(u32, u32)>,
    /// The queue of free segments.
    pub queue: Vec<u32>,
    /// CRC-32C over all segments: state, group, live and referenced blocks, heat, youngest block and time of writing.
    pub segments: u32,
    /// The machine's counters, by name.
    pub counters: String,
}

impl Digest {
    /// Of a machine.
    pub fn of(machine: &Machine) -> Self {
        let state = machine.state();
        let mut crc = 0;
        for segment in &state.segments {
            let kind = match segment.state {
                SegmentState::Freed => 0,
                SegmentState::Open => 1,
                SegmentState::Written => 2,
            };
            let words = [
                kind,
                segment.group.map_or(0, |group| u64::from(group) + 1),
                segment.live.into(),
                segment.referenced.into(),
                segment.heat.writes(),
                segment.heat.times(),
                segment.youngest.into(),
                segment.written,
            ];
            crc = words.iter().fold(crc, |crc, word| crc32c::crc32c_append(crc, &word.to_le_bytes()));
        }
        Self {
            now: state.now,
            sequence: state.sequence,
            open: state.open.map(|open| (open.segment, open.next)),
            queue: state.queue,
            segments: crc,
            counters: format!("{:?}", machine.counters()),
        }
    }
}

/// As it stands in a recording.
pub fn heats(heat: Heat) -> Heats {
    (heat.writes, heat.time)
}

/// Back from it.
pub fn heat(heats: Heats) -> Heat {
    Heat { writes: heats.0, time: heats.1 }
}
