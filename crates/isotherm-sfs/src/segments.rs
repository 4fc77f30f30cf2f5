//! The segments of a log: what lives in them, which one is written next, and which one is cleaned next.
//!
//! Segments are allocated least recently freed first. A freed segment may still hold the only durable copy of a block whose new
//! copy waits in memory, and the last checkpoint may refer to it: it is *reusable* only when no block's newest durable copy
//! lies in it and a checkpoint has been made since. Least-recently-freed order gives those copies the longest time.

use isotherm::hotness::heat::{Heat, HeatSums, Time};
use std::collections::VecDeque;

/// What a segment is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SegmentState {
    /// Freed: in the queue of segments to write.
    #[default]
    Freed,
    /// Being filled by partial writes.
    Open,
    /// Written: a candidate for cleaning.
    Written,
}

/// Which segment is cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SegmentVictim {
    /// The largest `(1-u) / (2 u Hs)`.
    #[default]
    CostHotness,
    /// The largest `(1-u) age / 2u`, age being the time since its youngest block was modified.
    CostBenefit,
    /// The least live blocks.
    Greedy,
}

impl SegmentVictim {
    /// The policies' names, for parameters.
    pub const NAMES: &[(&str, Self)] =
        &[("cost_hotness", Self::CostHotness), ("cost_benefit", Self::CostBenefit), ("greedy", Self::Greedy)];

    /// The name of this one.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map(|(name, _)| *name).expect("every policy has a name")
    }
}

/// The segment that partial writes fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSegment {
    /// Its number.
    pub segment: u32,
    /// Blocks of it that are written.
    pub next: u32,
}

/// What a checkpoint may keep of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentRecord {
    /// What it is doing.
    pub state: SegmentState,
    /// Blocks whose current data is here and nowhere else.
    pub live: u32,
    /// Blocks whose newest durable copy is here.
    pub referenced: u32,
    /// Sums over the live blocks.
    pub heat: HeatSums,
    /// When the youngest of its blocks was last modified.
    pub youngest: Time,
    /// The group of hotness that it was written for as a whole.
    pub group: Option<u8>,
    /// Host block writes until it was written for a group.
    pub written: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    state: SegmentState,
    /// Blocks whose current data is here and nowhere else, dirty ones excluded.
    live: u32,
    /// Blocks whose newest durable copy is here: live ones, and dirty ones that are to be written elsewhere.
    referenced: u32,
    /// Checkpoints that had been made when `referenced` became zero.
    released_at: u64,
    heat: HeatSums,
    /// When the youngest of its blocks was last modified.
    youngest: Time,
    /// The group of hotness that it was written for as a whole; none where it was not, or was found by recovery.
    group: Option<u8>,
    /// Host block writes until it was written for a group.
    written: u64,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    /// Blocks of data in a segment, summaries aside.
    payload_blocks: u32,
    freed: VecDeque<u32>,
    checkpoints: u64,
}

impl Segments {
    /// `segments` free segments that hold `payload_blocks` each.
    pub fn new(segments: u32, payload_blocks: u32) -> Self {
        Self {
            segments: vec![Segment::default(); segments as usize],
            payload_blocks,
            freed: (0..segments).collect(),
            // Segments that were never written are reusable: nothing was released after checkpoint 0.
            checkpoints: 1,
        }
    }

    /// What a checkpoint may keep of every segment, in order.
    pub fn records(&self) -> impl Iterator<Item = SegmentRecord> + '_ {
        self.segments.iter().map(|segment| {
            let Segment { state, live, referenced, heat, youngest, group, written, released_at: _ } = *segment;
            SegmentRecord { state, live, referenced, heat, youngest, group, written }
        })
    }

    /// Puts back what [`Segments::records`] and [`Segments::queue`] gave. Freed segments that no block has its newest durable copy
    /// in are reusable.
    ///
    /// # Panics
    /// If the records are those of another number of segments.
    pub fn restore(&mut self, records: &[SegmentRecord], freed: &[u32]) {
        assert_eq!(records.len(), self.segments.len(), "records of segments");
        for (segment, record) in self.segments.iter_mut().zip(records) {
            let SegmentRecord { state, live, referenced, heat, youngest, group, written } = *record;
            *segment = Segment { state, live, referenced, heat, youngest, group, written, released_at: 0 };
        }
        self.freed = freed.iter().copied().collect();
    }

    /// A free segment is not reusable before the next checkpoint, whatever is in it: the last one needs it as it is.
    pub fn hold(&mut self, segment: u32) {
        self.segments[segment as usize].released_at = self.checkpoints;
    }

    /// Number of segments.
    pub fn count(&self) -> u32 {
        self.segments.len() as u32
    }
    /// Segments in the queue, reusable or not.
    pub fn freed(&self) -> u32 {
        self.freed.len() as u32
    }
    /// What a segment is doing.
    pub fn state(&self, segment: u32) -> SegmentState {
        self.segments[segment as usize].state
    }
    /// Live blocks of a segment.
    pub fn live(&self, segment: u32) -> u32 {
        self.segments[segment as usize].live
    }
    /// Blocks whose newest durable copy is in a segment.
    pub fn referenced(&self, segment: u32) -> u32 {
        self.segments[segment as usize].referenced
    }
    /// When the youngest block of a segment was last modified.
    pub fn youngest(&self, segment: u32) -> Time {
        self.segments[segment as usize].youngest
    }
    /// A segment was written as a whole for a group, `now` host block writes after the log began.
    pub fn belongs_to(&mut self, segment: u32, group: u8, now: u64) {
        let segment = &mut self.segments[segment as usize];
        (segment.group, segment.written) = (Some(group), now);
    }
    /// The group that a segment was written for as a whole, and when.
    #[inline(always)]
    pub fn written(&self, segment: u32) -> Option<(u8, u64)> {
        let segment = &self.segments[segment as usize];
        segment.group.map(|group| (group, segment.written))
    }
    /// The queue of freed segments, the one that is written next first.
    pub fn queue(&self) -> impl Iterator<Item = u32> + '_ {
        self.freed.iter().copied()
    }
    /// Sums over the live blocks of a segment.
    pub fn heat(&self, segment: u32) -> HeatSums {
        self.segments[segment as usize].heat
    }
    /// Live blocks over payload.
    pub fn utilisation(&self, segment: u32) -> f64 {
        f64::from(self.live(segment)) / f64::from(self.payload_blocks)
    }

    /// Hotness of a segment that holds data.
    #[inline(always)]
    pub fn hotness(&self, segment: usize, now: u64) -> Option<f64> {
        let segment = &self.segments[segment];
        (segment.state == SegmentState::Written && segment.live > 0).then(|| segment.heat.hotness(segment.live, now))
    }

    /// A live block is dirty now, or gone.
    #[inline(always)]
    pub fn on_death(&mut self, segment: u32, heat: Heat) {
        let segment = &mut self.segments[segment as usize];
        segment.live -= 1;
        segment.heat.remove(heat);
    }

    /// A block that was counted as dead lives after all.
    pub fn on_rescue(&mut self, segment: u32, heat: Heat) {
        let segment = &mut self.segments[segment as usize];
        segment.live += 1;
        segment.heat.add(heat);
    }

    /// A block that the host last modified at `modified` was written into an allocated segment.
    #[inline(always)]
    pub fn on_write(&mut self, segment: u32, heat: Heat, modified: Time) {
        let segment = &mut self.segments[segment as usize];
        segment.youngest = if segment.live == 0 { modified } else { segment.youngest.max(modified) };
        segment.live += 1;
        segment.referenced += 1;
        segment.heat.add(heat);
    }

    /// The newest durable copy of a block is no longer in a segment.
    #[inline(always)]
    pub fn release(&mut self, segment: u32) {
        let checkpoints = self.checkpoints;
        let segment = &mut self.segments[segment as usize];
        segment.referenced -= 1;
        segment.released_at = checkpoints;
    }

    /// A segment's live blocks are in memory now: it is queued for writing, last.
    pub fn free(&mut self, segment: u32) {
        debug_assert_eq!(self.segments[segment as usize].live, 0);
        self.segments[segment as usize].state = SegmentState::Freed;
        self.freed.push_back(segment);
    }

    /// The segment at a place of the queue, 0 being the one that is written next.
    #[inline(always)]
    pub fn queued(&self, place: usize) -> Option<u32> {
        self.freed.get(place).copied()
    }

    /// The segment at a place of the queue is written second: those between go to the end.
    pub fn make_second(&mut self, place: usize) {
        for _ in 1..place {
            if let Some(segment) = self.freed.remove(1) {
                self.freed.push_back(segment);
            }
        }
    }

    /// Whether writing over a freed segment loses nothing.
    pub fn is_reusable(&self, segment: u32) -> bool {
        let segment = &self.segments[segment as usize];
        segment.referenced == 0 && segment.released_at < self.checkpoints
    }

    /// Takes the segment that is written next out of the queue.
    pub fn allocate(&mut self, state: SegmentState) -> Option<u32> {
        let segment = self.freed.pop_front()?;
        let entry = &mut self.segments[segment as usize];
        *entry = Segment { state, referenced: entry.referenced, ..Segment::default() };
        Some(segment)
    }

    /// An open segment takes no more.
    pub fn close(&mut self, segment: u32) {
        self.segments[segment as usize].state = SegmentState::Written;
    }

    /// A checkpoint is durable. Returns the freed segments that it made reusable.
    pub fn on_checkpoint(&mut self) -> impl Iterator<Item = u32> + '_ {
        let before = self.checkpoints;
        self.checkpoints += 1;
        let this = &*self;
        this.freed.iter().copied().filter(move |s| {
            let segment = &this.segments[*s as usize];
            segment.referenced == 0 && segment.released_at == before
        })
    }

    /// The segment to clean among those that may be: an empty one if there is any, else by `policy`; full segments are never worth
    /// it. `now` counts host block writes, `ticks` is the time that hotness is counted in.
    #[inline(always)]
    pub fn pick(&self, policy: SegmentVictim, now: u64, ticks: u64, may_be: impl Fn(u32) -> bool) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for (index, segment) in (0..).zip(&self.segments) {
            if segment.state != SegmentState::Written || segment.live >= self.payload_blocks || !may_be(index) {
                continue;
            }
            if segment.live == 0 {
                return Some(index);
            }
            let score = self.score(segment, policy, now, ticks);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, index));
            }
        }
        best.map(|(_, segment)| segment)
    }

    /// Live blocks of the fullest among the `count` written segments that have fewest, of those that may be cleaned.
    pub fn live_of_emptiest(&self, count: u32, may_be: impl Fn(u32) -> bool) -> u32 {
        if count as usize >= self.segments.len() {
            return u32::MAX;
        }
        let is_candidate =
            |(index, segment): &(u32, &Segment)| segment.state == SegmentState::Written && may_be(*index);
        let mut live: Vec<u32> =
            (0..).zip(&self.segments).filter(is_candidate).map(|(_, segment)| segment.live).collect();
        let last = (count as usize).min(live.len());
        if last == 0 { 0 } else { *live.select_nth_unstable(last - 1).1 }
    }

    #[inline(always)]
    fn score(&self, segment: &Segment, policy: SegmentVictim, now: u64, ticks: u64) -> f64 {
        let utilisation = f64::from(segment.live) / f64::from(self.payload_blocks);
        let benefit = (1.0 - utilisation) / (2.0 * utilisation);
        match policy {
            SegmentVictim::CostHotness => benefit / segment.heat.hotness(segment.live, ticks),
            SegmentVictim::CostBenefit => benefit * (f64::from((now as Time).wrapping_sub(segment.youngest)) + 1.0),
            SegmentVictim::Greedy => -utilisation,
        }
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        (self.segments.len() * size_of::<Segment>() + self.freed.capacity() * 4) as u64
    }
}
