//! What listens on both sides of the split: ghosts for the paper's rule, curves for the one of least cost.

use super::curves::{BufferCurve, LogCurve, MapCurve, MapMisses};
use crate::address::Lpn;
use crate::dram::buffer::Touch;
use crate::dram::ghost::{GhostAudit, GhostAuditCounters, GhostBitmap, GhostLru};
use crate::dram::write_buffer::BufferObserver;
use crate::ftl::dftl::MapObserver;
use crate::ftl::fast::LogObserver;

/// Accesses of one kind, and how many of them were of interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadsAndWrites {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

impl ReadsAndWrites {
    #[inline(always)]
    fn count(&mut self, touch: Touch) {
        match touch {
            Touch::Read => self.reads += 1,
            Touch::Write => self.writes += 1,
        }
    }
}

/// The ghost buffer: pages that left the buffer last, and the hits in it since the last tuning.
#[derive(Clone, Debug)]
pub struct BufferGhost {
    pub(super) pages: GhostLru,
    pub(super) hits: ReadsAndWrites,
}

/// What listens to the buffer.
#[derive(Clone, Debug)]
// A device has one: what a small variant wastes is nothing, and a box would cost a load a call.
#[allow(clippy::large_enum_variant)]
pub enum BufferSide {
    /// Nothing: a split that stays.
    Off,
    /// A ghost.
    Ghost(BufferGhost),
    /// Stack distances.
    Curve(BufferCurve),
}

impl BufferObserver for BufferSide {
    #[inline(always)]
    fn on_access(&mut self, lpn: Lpn, touch: Touch, is_hit: bool) {
        match self {
            Self::Off => {}
            Self::Ghost(ghost) => {
                if !is_hit && ghost.pages.contains(lpn.0) {
                    ghost.hits.count(touch);
                    match touch {
                        // A larger buffer would hold it as the youngest now.
                        Touch::Read => ghost.pages.insert(lpn.0),
                        Touch::Write => {
                            ghost.pages.remove(lpn.0);
                        }
                    }
                }
            }
            Self::Curve(curve) => curve.on_access(lpn, touch),
        }
    }
    fn on_evict(&mut self, lpn: Lpn) {
        if let Self::Ghost(ghost) = self {
            ghost.pages.insert(lpn.0);
        }
    }
    fn on_trim(&mut self, lpn: Lpn) {
        match self {
            Self::Off => {}
            Self::Ghost(ghost) => {
                ghost.pages.remove(lpn.0);
            }
            Self::Curve(curve) => curve.on_trim(lpn),
        }
    }
    fn on_drain(&mut self) {
        if let Self::Curve(curve) = self {
            curve.on_drain();
        }
    }
}

/// The ghost mapping: the paper's bitmap, an exact LRU, or the one audited by the other.
#[derive(Clone, Debug)]
pub enum GhostEntries {
    /// One bit for each hash value.
    Bitmap(GhostBitmap),
    /// Every address, in order.
    Exact(GhostLru),
    /// The bitmap decides, and an exact ghost beside it tells which of its hits are false.
    Audited(GhostAudit),
}

/// The ghost mapping and the hits in it since the last tuning.
#[derive(Clone, Debug)]
pub struct MapGhost {
    pub(super) entries: GhostEntries,
    /// Entries that it may stand for.
    pub(super) capacity: u32,
    pub(super) hits: ReadsAndWrites,
}

impl GhostEntries {
    /// The map looked for `lpn`, which enters it now; true if it seemed to be in.
    #[inline(always)]
    fn look_up(&mut self, lpn: Lpn) -> bool {
        if let Self::Audited(audit) = self {
            audit.count(lpn);
        }
        self.take(lpn)
    }

    #[inline(always)]
    fn take(&mut self, lpn: Lpn) -> bool {
        match self {
            Self::Bitmap(bitmap) => bitmap.take(lpn),
            Self::Exact(ghost) => ghost.remove(lpn.0),
            Self::Audited(audit) => audit.take(lpn),
        }
    }

    /// Entries that the ghost stands for.
    pub fn size(&self) -> u32 {
        match self {
            Self::Bitmap(bitmap) => bitmap.size(),
            Self::Exact(ghost) => ghost.length(),
            Self::Audited(audit) => audit.size(),
        }
    }
}

impl MapGhost {
    fn insert(&mut self, lpn: Lpn) {
        match &mut self.entries {
            GhostEntries::Bitmap(bitmap) => bitmap.insert(lpn, self.capacity, |_| {}),
            GhostEntries::Exact(ghost) => ghost.insert(lpn.0),
            GhostEntries::Audited(audit) => audit.insert(lpn, self.capacity),
        }
    }

    pub(super) fn set_capacity(&mut self, entries: u32) {
        self.capacity = entries;
        match &mut self.entries {
            GhostEntries::Bitmap(bitmap) => bitmap.shrink_to(entries, |_| {}),
            GhostEntries::Exact(ghost) => ghost.set_capacity(entries),
            GhostEntries::Audited(audit) => audit.set_capacity(entries),
        }
    }
}

/// How the map is judged.
#[derive(Clone, Debug)]
// A device has one: what a small variant wastes is nothing, and a box would cost a load a call.
#[allow(clippy::large_enum_variant)]
pub enum MapJudge {
    /// Not at all: a split that stays.
    Off,
    /// By a ghost.
    Ghost(MapGhost),
    /// By stack distances.
    Curve(MapCurve),
    /// By the ages of pages in the log.
    Log(LogCurve),
}

impl MapJudge {
    /// What the map would have cost at each split, where curves tell.
    pub(super) fn misses(&self) -> Option<MapMisses> {
        match self {
            Self::Curve(curve) => Some(curve.misses()),
            Self::Log(curve) => Some(curve.misses()),
            Self::Off | Self::Ghost(_) => None,
        }
    }

    /// How the bitmap ghost does, where it is audited.
    pub(super) fn audit(&self) -> Option<GhostAuditCounters> {
        match self {
            Self::Ghost(MapGhost { entries: GhostEntries::Audited(audit), .. }) => Some(*audit.counters()),
            _ => None,
        }
    }

    pub(super) fn decay(&mut self, factor: f64) {
        match self {
            Self::Curve(curve) => curve.decay(factor),
            Self::Log(curve) => curve.decay(factor),
            Self::Off | Self::Ghost(_) => {}
        }
    }
}

/// What listens to the map.
#[derive(Clone, Debug)]
pub struct MapSide {
    pub(super) judge: MapJudge,
    /// Look-ups since the last tuning, and those that missed.
    pub(super) accesses: ReadsAndWrites,
    pub(super) misses: ReadsAndWrites,
}

impl MapSide {
    /// Nothing heard yet.
    pub fn new(judge: MapJudge) -> Self {
        Self { judge, accesses: ReadsAndWrites::default(), misses: ReadsAndWrites::default() }
    }
}

impl MapObserver for MapSide {
    const HEARS_MOVES: bool = true;
    #[inline(always)]
    fn on_access(&mut self, lpn: Lpn, is_write: bool, hit: bool) {
        let touch = if is_write { Touch::Write } else { Touch::Read };
        self.accesses.count(touch);
        if !hit {
            self.misses.count(touch);
        }
        match &mut self.judge {
            // A log's curve hears of writes below, where they say whether they go to the log.
            MapJudge::Off | MapJudge::Log(_) => {}
            MapJudge::Ghost(ghost) => {
                if !hit && ghost.entries.look_up(lpn) {
                    ghost.hits.count(touch);
                }
            }
            MapJudge::Curve(curve) => curve.on_access(lpn, touch),
        }
    }
    #[inline(always)]
    fn on_evict(&mut self, lpn: Lpn) {
        if let MapJudge::Ghost(ghost) = &mut self.judge {
            ghost.insert(lpn);
        }
    }
    fn on_moves(&mut self, moved: &[Lpn]) {
        if let MapJudge::Curve(curve) = &mut self.judge {
            curve.on_moves(moved);
        }
    }
}

/// The log of a hybrid map: what a reclaim moves out of it enters the ghost log blocks.
impl LogObserver for MapSide {
    #[inline(always)]
    fn on_write(&mut self, lpn: Lpn, is_hit: bool, into_log: bool) {
        self.on_access(lpn, true, is_hit);
        if let MapJudge::Log(curve) = &mut self.judge {
            curve.on_write(lpn, into_log);
        }
    }
    fn on_reclaim(&mut self, lpn: Lpn) {
        self.on_evict(lpn);
    }
    fn on_merge(&mut self, first: Lpn) {
        if let MapJudge::Log(curve) = &mut self.judge {
            curve.on_merge(first);
        }
    }
    fn on_trim(&mut self, lpn: Lpn) {
        match &mut self.judge {
            MapJudge::Ghost(ghost) => {
                ghost.entries.take(lpn);
            }
            MapJudge::Log(curve) => curve.on_trim(lpn),
            MapJudge::Off | MapJudge::Curve(_) => {}
        }
    }
}
