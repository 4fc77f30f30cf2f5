//! Roll-forward: the writes after the checkpoint, in order, up to the first that is missing or torn.
//!
//! The next write of the log begins where the open segment goes on, or at the start of the segment that stands first in the
//! queue; it counts if it is whole and has the next sequence number of the same mount. Its transactions are applied to the pages, then
//! its blocks take their places. Segments that were freed for cleaning, and still hold the newest durable copy of a block,
//! hold it for good again.
//!
//! Each write says up to which one all before it were durable when it was planned. So a write that is not whole, and of which a later one
//! says that it was durable, is no end of the log but damage. Where its summary is whole, it counts, and [`super::damaged`] says what
//! becomes of its blocks that are wrong. Where the summary is not whole, what was durable is lost: only fsck may go on without it.
//!
//! What is found becomes durable with the checkpoint that the caller makes next, under the number of a new mount: writes that
//! were not reached never count again.

use super::Log;
use super::apply::WRITTEN;
use super::damaged::DamagedData;
use super::opening::{LostWrites, OpenError, damaged};
use super::segment_reader::SegmentReader;
use crate::format::checkpoint::{NO_HEAT, SegmentRecord};
use crate::format::entry::{HOLE, RESERVED};
use crate::format::summary::Summary;
use crate::format::superblock::Superblock;
use crate::store::{Heat, Page, PageId, Slot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Where the next write of the log may begin, and what it says of itself.
#[derive(Clone, Copy)]
struct Expected {
    /// Where the open segment goes on.
    open: Option<(u32, u32)>,
    /// The first segment of the queue.
    first: Option<u32>,
    incarnation: u32,
    sequence: u64,
}

/// Segments at the head of the queue in which later writes are looked for.
const SEGMENTS_AHEAD: usize = 8;

/// What is known of segments while writes are applied.
pub(super) struct Replay {
    pub(super) segments: Vec<SegmentRecord>,
    pub(super) queue: VecDeque<u32>,
    pub(super) open: Option<(u32, u32)>,
    pub(super) sequence: u64,
    pub(super) now: u64,
    pub(super) incarnation: u32,
    /// Segments that the checkpoint, or the writes after it, need until there is another one.
    pub(super) is_held: Vec<bool>,
    /// Pages that may be passed over where they cannot be read.
    pub(super) given_up: BTreeSet<PageId>,
    /// Those that are, until something tells what stands in them.
    pub(super) lost_pages: BTreeSet<PageId>,
    /// The blocks of file data that are damaged.
    pub(super) damaged: BTreeMap<Slot, DamagedData>,
    /// All that ever were: if there are any, counters are not what entries say.
    pub(super) unreadable_pages: BTreeSet<PageId>,
}

impl Replay {
    fn expected(&self) -> Expected {
        let Self { open, sequence, incarnation, .. } = *self;
        Expected { open, first: self.queue.front().copied(), incarnation, sequence }
    }
}

impl Expected {
    /// The next write's summary, if it is whole, and what is expected after it.
    fn next(self, reader: &SegmentReader<'_>, superblock: &Superblock) -> Option<(Summary, Self)> {
        let in_open = self.open.map(|(segment, next)| (segment, next, false));
        let in_first = self.first.map(|segment| (segment, 0, true));
        let found = [in_open, in_first].into_iter().flatten().find_map(|(segment, next, is_first)| {
            let summary = reader.read_summary(segment, next)?;
            let is_next = summary.incarnation == self.incarnation
                && summary.sequence == self.sequence + 1
                && summary.is_first == is_first;
            is_next.then_some((segment, next, summary))
        });
        let (segment, next, summary) = found?;
        let open = match self.open {
            _ if summary.stays_open => Some((segment, next + summary.blocks())),
            Some((open, _)) if open == segment => None,
            open => open,
        };
        let first = Some(summary.next_segment).filter(|segment| *segment < superblock.segments);
        let after = Self { open, first, sequence: summary.sequence, ..self };
        Some((summary, after))
    }
}

impl Log {
    /// The write of the log that comes next, and its blocks: all of them if it is whole, those that are right if it is known to have been
    /// durable.
    pub(super) fn next_write(&self, replay: &Replay) -> Option<(Summary, Vec<Option<Arc<Page>>>)> {
        let reader = SegmentReader::new(&*self.device, &self.superblock);
        let (summary, mut after) = replay.expected().next(&reader, &self.superblock)?;
        let contents = reader.read_contents(&summary);
        let is_whole = contents.iter().all(Option::is_some);
        let mut was_durable = || {
            while let Some((later, next)) = after.next(&reader, &self.superblock) {
                if later.flushed >= summary.sequence {
                    return true;
                }
                after = next;
            }
            false
        };
        (is_whole || was_durable()).then_some((summary, contents))
    }

    /// What later writes say of the one that comes next and is not there. They are looked for in the rest of the open segment and at the
    /// beginning of the next ones.
    pub(super) fn lost_writes(&self, replay: &Replay) -> Option<LostWrites> {
        let reader = SegmentReader::new(&*self.device, &self.superblock);
        let Expected { open, first, incarnation, sequence } = replay.expected();
        let in_open = open.into_iter().flat_map(|(segment, next)| reader.scan_summaries(segment, next));
        let ahead = replay.queue.iter().take(SEGMENTS_AHEAD).filter_map(|segment| reader.read_summary(*segment, 0));
        let later = in_open.chain(ahead).filter(|later| later.incarnation == incarnation && later.sequence > sequence);
        let last = later.map(|later| later.flushed).max().filter(|flushed| *flushed > sequence)?;
        let places = [open, first.map(|segment| (segment, 0))];
        let places = places.map(|place| place.map(|(segment, next)| self.superblock.segment_start(segment) + next));
        Some(LostWrites { first: sequence + 1, last, incarnation, places })
    }

    /// Goes on from what the replay has found.
    pub(super) fn resume(&mut self, mut replay: Replay, centres: &[f64]) -> Result<(), OpenError> {
        let segments = &mut replay.segments;
        replay.queue.retain(|segment| {
            let segment = &mut segments[*segment as usize];
            if segment.referenced > 0 {
                segment.state = WRITTEN;
            }
            segment.referenced == 0
        });
        let queue: Vec<u32> = replay.queue.iter().copied().collect();
        self.restore_machine(&replay.segments, &queue, replay.open, (replay.now, replay.sequence), centres)?;
        for segment in queue.into_iter().filter(|segment| replay.is_held[*segment as usize]) {
            self.machine_mut().hold(segment);
        }
        // Pages that are dirty after the replay live in memory, not where they are referred to.
        for id in self.cache.dirty_pages() {
            let entry = self.page_entry(id)?;
            self.supersede(&replay, entry.position, entry.heat)?;
        }
        for table in self.tables.dirty_pages() {
            self.supersede(&replay, self.tables.root(table).position, NO_HEAT)?;
        }
        Ok(())
    }

    /// What lies at a position is newer in memory.
    fn supersede(&mut self, replay: &Replay, position: u32, heat: Heat) -> Result<(), OpenError> {
        if position == HOLE || position == RESERVED {
            return Ok(());
        }
        let number = self.superblock.segment_of(position);
        let is_counted = number.is_some_and(|number| {
            let segments = self.machine().segments();
            let sums = segments.heat(number);
            segments.live(number) > 0 && sums.writes() >= u64::from(heat.writes) && sums.times() >= u64::from(heat.time)
        });
        if !is_counted {
            let problem = damaged(format!("block {position} is in use, and not counted in its segment"));
            return if replay.is_exact() { problem } else { Ok(()) };
        }
        self.block_died(position, heat);
        Ok(())
    }
}
