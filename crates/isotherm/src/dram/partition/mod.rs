//! The split of the DRAM between buffering data and caching the map (Adaptive partitioning, section III).
//!
//! [`Partition`] is an FTL: a write buffer in front of an FTL whose map can be resized while it runs ([`MappingSpace`]). At
//! every interval of requests a rule looks at what both sides would have saved had they been larger, and moves the border.
//! Static splits are rules that never move it. What a rule keeps for that (ghosts) lies in the same DRAM and is taken from
//! both sides. The border respects a floor on either side, and the DRAM in use is checked against its budget after every
//! request.

mod adaptive_paper;
mod counters;
pub mod curves;
mod fixed;
mod least_cost;
mod rule;
pub mod sides;
mod sizes;

use super::buffer::AnyBuffer;
use super::write_buffer::WriteBuffer;
use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::{BlockView, DeviceError};
use crate::ftl::{FlashCosts, Ftl, MapWork, MappingSpace, Profits};
use crate::nand::timing::Latency;
use crate::nand::{Medium, PageMut, PageRef};
use crate::stats::{Snapshot, WearSummary};
use rule::START;
use sides::{BufferSide, MapSide};

pub use adaptive_paper::AdaptivePaper;
pub use counters::{SplitCounters, SplitDecision, SplitDecisions, SplitResults, SplitSeries};
pub use fixed::Fixed;
pub use least_cost::LeastCost;
pub use rule::{AnySplit, BuildSplit, SPLITS, SplitContext, SplitRule, Tuning, TuningView, build_split, check_split};
pub use sizes::Sizes;

/// What is left of a measurement after one interval: measurements run over some thirty intervals.
pub const WORK_DECAY: f64 = 0.97;

/// See the module's text.
pub struct Partition<F: MappingSpace<Side = MapSide>> {
    buffer: WriteBuffer<F, BufferSide>,
    rule: AnySplit,
    sizes: Sizes,
    /// What the rule keeps at this border.
    metadata_bytes: u64,
    flash: FlashCosts,
    requests: u64,
    next_tuning: u64,
    work: MapWork,
    recent: MapWork,
    time_ns: f64,
    recent_ns: f64,
    counters: SplitCounters,
}

impl<F: MappingSpace<Side = MapSide>> Partition<F> {
    /// Splits the DRAM between `ftl`, which was built for [`Sizes::mapping_bytes_max`] and listens by what `rule` asked for,
    /// and a buffer, whose `policy` was built for [`Sizes::frames_max`].
    ///
    /// # Errors
    /// Faults of the medium while the map takes its first size.
    pub fn new(
        ftl: F,
        policy: AnyBuffer,
        observer: BufferSide,
        rule: AnySplit,
        sizes: Sizes,
        latency: &Latency,
    ) -> Result<Self, DeviceError> {
        let pages_per_block = ftl.medium().geometry().pages_per_block();
        let mut partition = Self {
            buffer: WriteBuffer::new(ftl, policy, sizes.frames_max(), observer),
            next_tuning: rule.interval_requests(),
            rule,
            metadata_bytes: sizes.metadata_bytes_now(),
            sizes,
            flash: FlashCosts::new(latency, pages_per_block),
            requests: 0,
            work: MapWork::default(),
            recent: MapWork::default(),
            time_ns: 0.0,
            recent_ns: 0.0,
            counters: SplitCounters::default(),
        };
        partition.move_border(sizes)?;
        partition.counters.mapping_share_last = sizes.mapping_share();
        Ok(partition)
    }

    /// Ignores flushes, as [`WriteBuffer::protect`] says.
    #[must_use]
    pub fn protect(self, is_protected: bool) -> Self {
        Self { buffer: self.buffer.protect(is_protected), ..self }
    }

    /// The border.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The buffer and the FTL behind it.
    pub fn buffer(&self) -> &WriteBuffer<F, BufferSide> {
        &self.buffer
    }

    /// DRAM in use now.
    #[inline(always)]
    pub fn dram_bytes_used(&self) -> u64 {
        let buffered = u64::from(self.buffer.used_pages()) * self.sizes.page_bytes;
        self.metadata_bytes + buffered + self.buffer.ftl().mapping_bytes_used()
    }

    /// Moves the border; a device without room for what a side must give up keeps the old one.
    fn try_border(&mut self, to: Sizes) -> Result<(), DeviceError> {
        match self.move_border(to) {
            Err(error) if error.is_out_of_room() => {
                // Both sides have at most what they had, and growing writes nothing.
                self.buffer.resize(self.sizes.frames())?;
                match self.buffer.ftl_mut().set_mapping_bytes(self.sizes.mapping_bytes) {
                    // The log of a hybrid map may exceed even that, since blocks that fail leave it fewer.
                    Err(error) if error.is_out_of_room() => Ok(()),
                    kept => kept,
                }
            }
            moved => moved,
        }
    }

    /// Moves the border; the side that shrinks does so first, so that the budget holds on the way.
    fn move_border(&mut self, to: Sizes) -> Result<(), DeviceError> {
        let grows = to.mapping_bytes > self.sizes.mapping_bytes;
        if !grows {
            self.buffer.ftl_mut().set_mapping_bytes(to.mapping_bytes)?;
        }
        self.buffer.resize(to.frames())?;
        if grows {
            self.buffer.ftl_mut().set_mapping_bytes(to.mapping_bytes)?;
        }
        self.sizes = to;
        self.metadata_bytes = to.metadata_bytes_now();
        Ok(())
    }

    /// Follows the work of the FTL since the last tuning.
    fn measure(&mut self) -> Profits {
        let work = self.buffer.ftl().map_work(&self.flash);
        let time_ns = self.flash.time_ns(self.buffer.medium());
        self.recent = self.recent.decayed(WORK_DECAY).plus(&work.since(&self.work));
        self.recent_ns = self.recent_ns * WORK_DECAY + (time_ns - self.time_ns);
        (self.work, self.time_ns) = (work, time_ns);
        let side = self.buffer.ftl_mut().side_mut();
        self.recent.reads += side.accesses.reads as f64;
        self.recent.writes += side.accesses.writes as f64;
        self.recent.read_misses += side.misses.reads as f64;
        self.recent.write_misses += side.misses.writes as f64;
        (side.accesses, side.misses) = Default::default();
        F::profits(&self.recent, &self.flash)
    }

    #[inline(never)]
    fn tune(&mut self) -> Result<(), DeviceError> {
        self.next_tuning = self.requests + self.rule.interval_requests();
        let profits = self.measure();
        let view = TuningView { sizes: &self.sizes, profits: &profits, recent_ns: self.recent_ns };
        let (buffer, map) = self.buffer.sides();
        let tuning = self.rule.tune(&view, buffer, map);
        let to = self.sizes.with_mapping(tuning.mapping_bytes);
        if to.mapping_bytes != self.sizes.mapping_bytes {
            self.try_border(to)?;
        }
        self.counters.record(SplitDecision {
            requests: self.requests,
            mapping_share: self.sizes.mapping_share(),
            cost_benefit_buffer: tuning.cost_benefit_buffer,
            cost_benefit_mapping: tuning.cost_benefit_mapping,
        });
        Ok(())
    }
}

impl<F: MappingSpace<Side = MapSide>> WriteBuffer<F, BufferSide> {
    /// What listens to the buffer, and what listens to the map behind it.
    fn sides(&mut self) -> (&mut BufferSide, &mut MapSide) {
        let (ftl, observer) = self.parts();
        (observer, ftl.side_mut())
    }
}

impl<F: MappingSpace<Side = MapSide>> Ftl for Partition<F> {
    type Medium = F::Medium;

    fn logical_pages(&self) -> u32 {
        self.buffer.logical_pages()
    }
    fn writes_runs(&self) -> bool {
        false
    }
    fn write_run(&mut self, _: &[Lpn]) -> usize {
        0
    }
    fn wants_batches(&self) -> bool {
        self.buffer.wants_batches()
    }
    fn announce(&mut self, lpns: &[Lpn]) {
        self.buffer.announce(lpns);
    }
    fn check_policies(&self) -> Result<(), DeviceError> {
        self.buffer.check_policies()
    }
    fn wants_sources(&self) -> bool {
        self.buffer.wants_sources()
    }
    fn attribute(&mut self, lpn: Lpn, source: u16) {
        self.buffer.attribute(lpn, source);
    }
    #[inline(always)]
    fn begin_write(&mut self, pages: u32) {
        self.buffer.begin_write(pages);
    }
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        self.buffer.prefetch_entries(lpns);
    }
    #[inline(always)]
    fn prefetch_pages(&self, lpns: &[Lpn]) {
        self.buffer.prefetch_pages(lpns);
    }
    #[inline(always)]
    fn is_mapped(&self, lpn: Lpn) -> bool {
        self.buffer.is_mapped(lpn)
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn, out: PageMut<'_, F::Medium>, cause: Cause) -> Result<bool, DeviceError> {
        self.buffer.read(lpn, out, cause)
    }
    #[inline(always)]
    fn write(&mut self, lpn: Lpn, page: PageRef<'_, F::Medium>, cause: Cause) -> Result<(), DeviceError> {
        self.buffer.write(lpn, page, cause)
    }
    fn trim(&mut self, lpn: Lpn, pages: u32) -> Result<(), DeviceError> {
        self.buffer.trim(lpn, pages)
    }
    fn flush(&mut self) -> Result<(), DeviceError> {
        self.buffer.flush()
    }
    fn write_out(&mut self) -> Result<(), DeviceError> {
        self.buffer.write_out()
    }
    #[inline(always)]
    fn end_request(&mut self) -> Result<(), DeviceError> {
        self.requests += 1;
        let used = self.dram_bytes_used();
        assert!(used <= self.sizes.dram_bytes, "{used} bytes of DRAM are in use, of {}", self.sizes.dram_bytes);
        if self.requests == self.next_tuning { self.tune() } else { Ok(()) }
    }
    fn idle(&mut self, budget_ns: u64) -> Result<(), DeviceError> {
        self.buffer.idle(budget_ns)
    }
    fn medium(&self) -> &F::Medium {
        self.buffer.medium()
    }
    fn medium_mut(&mut self) -> &mut F::Medium {
        self.buffer.medium_mut()
    }
    fn into_medium(self) -> F::Medium {
        self.buffer.into_medium()
    }
    fn fill_snapshot(&self, snapshot: &mut Snapshot) {
        self.buffer.fill_snapshot(snapshot);
        let ghost_audit = self.buffer.ftl().side().judge.audit();
        snapshot.sections.put(SplitCounters { ghost_audit, ..self.counters.clone() });
        snapshot.dram.push(("split rule", self.metadata_bytes));
    }
    fn wear(&self) -> WearSummary {
        self.buffer.wear()
    }
    fn blocks(&self) -> Vec<BlockView> {
        self.buffer.blocks()
    }
    fn check(&self) -> Result<(), String> {
        self.buffer.check()
    }
}
