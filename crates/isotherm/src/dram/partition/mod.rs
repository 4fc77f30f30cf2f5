//! The split of the DRAM between buffering data and caching the map (Adaptive partitioning, section III).
//!
//! [`Partition`] is an FTL: a write buffer in front of an FTL whose map can be resized while it runs ([`MappingSpace`]). At
//! every interval of requests a rule looks at what both sides would have saved had they been larger, and moves the border.
//! Static splits are rules that never move it. What a rule keeps for that (ghosts) lies in the same DRAM and is taken from
//! both sides. The border respects a floor on either side, and the DRAM in use is checked against its budget after every
//! request.

mod adaptive_paper;
pub mod curves;
mod fixed;
mod least_cost;
pub mod sides;
mod space;

use super::buffer::AnyBuffer;
use super::write_buffer::WriteBuffer;
use crate::address::Lpn;
use crate::cause::Cause;
use crate::device::DeviceError;
use crate::ftl::Ftl;
use crate::nand::timing::Latency;
use crate::nand::{Medium, PageMut, PageRef};
use crate::registry::{Entry, Parameter, Parameters, PolicyName, SpecError, find};
use crate::stats::{Snapshot, SplitCounters, SplitSample, WearSummary};
use sides::{BufferSide, MapJudge, MapSide};

pub use adaptive_paper::AdaptivePaper;
pub use fixed::Fixed;
pub use least_cost::LeastCost;
pub use space::{FlashCosts, MapWork, MappingSpace, Profits};

/// The DRAM and the border in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sizes {
    /// All of it.
    pub dram_bytes: u64,
    /// What the rule keeps in it, whatever the border.
    pub metadata_bytes: u64,
    /// What it keeps for each page that the buffer could have and has not.
    pub ghost_page_bytes: u64,
    /// What the map has now.
    pub mapping_bytes: u64,
    /// What the map must have at least.
    pub mapping_bytes_min: u64,
    /// What of the map does not depend on how many entries are cached.
    pub mapping_bytes_fixed: u64,
    /// DRAM of one entry of the map: a cached page's, or a log block's.
    pub entry_bytes: u64,
    /// DRAM that one address in the ghost mapping stands for: an entry, or a page's part of the map of a log block.
    pub ghost_entry_bytes: u64,
    /// A page: what the buffer must have at least.
    pub page_bytes: u64,
    /// Translation pages of the map, or logical blocks.
    pub map_pages: u32,
    /// Entries of each of them, or pages.
    pub map_page_entries: u32,
    /// Log blocks that there may be, whatever the DRAM; 0 where there is no log.
    pub log_blocks_max: u32,
}

impl Sizes {
    /// A DRAM in which nothing has been placed yet.
    pub fn new(dram_bytes: u64, page_bytes: u64) -> Self {
        Self {
            dram_bytes,
            metadata_bytes: 0,
            ghost_page_bytes: 0,
            mapping_bytes: 0,
            mapping_bytes_min: 0,
            mapping_bytes_fixed: 0,
            entry_bytes: 1,
            ghost_entry_bytes: 1,
            page_bytes,
            map_pages: 0,
            map_page_entries: 0,
            log_blocks_max: 0,
        }
    }
    /// What the two sides share, ghosts included.
    pub fn shared_bytes(&self) -> u64 {
        self.dram_bytes - self.metadata_bytes
    }
    /// Pages that the buffer has with the largest border, and could have with any.
    pub fn frames_max(&self) -> u32 {
        self.pages(self.shared_bytes().saturating_sub(self.mapping_bytes_min)).max(1)
    }
    /// Ghosts of a buffer without pages.
    fn ghosts_max_bytes(&self) -> u64 {
        u64::from(self.frames_max()) * self.ghost_page_bytes
    }
    /// What the map may have at most: all but a page, and the ghosts of the others.
    pub fn mapping_bytes_max(&self) -> u64 {
        self.shared_bytes().saturating_sub(self.page_bytes + self.ghosts_max_bytes() - self.ghost_page_bytes)
    }
    /// Pages that the buffer has now: every one of them takes a page and saves a ghost.
    pub fn frames(&self) -> u32 {
        let left = self.shared_bytes().saturating_sub(self.mapping_bytes + self.ghosts_max_bytes());
        ((left / (self.page_bytes - self.ghost_page_bytes)) as u32).clamp(1, self.frames_max())
    }
    /// What the rule keeps now.
    pub fn metadata_bytes_now(&self) -> u64 {
        self.metadata_bytes + u64::from(self.frames_max() - self.frames()) * self.ghost_page_bytes
    }
    /// What the buffer has now.
    pub fn buffer_bytes(&self) -> u64 {
        u64::from(self.frames()) * self.page_bytes
    }
    /// The border at `mapping_bytes`, or at the nearest floor.
    #[must_use]
    pub fn with_mapping(self, mapping_bytes: u64) -> Self {
        Self { mapping_bytes: mapping_bytes.clamp(self.mapping_bytes_min, self.mapping_bytes_max()), ..self }
    }
    /// Pages that a buffer of `bytes` holds.
    pub fn pages(&self, bytes: u64) -> u32 {
        (bytes / self.page_bytes) as u32
    }
    /// Entries that a map of `bytes` holds.
    pub fn entries(&self, bytes: u64) -> u32 {
        (bytes.saturating_sub(self.mapping_bytes_fixed) / self.entry_bytes) as u32
    }
    /// The map's share of the DRAM.
    pub fn mapping_share(&self) -> f64 {
        self.mapping_bytes as f64 / self.dram_bytes as f64
    }
}

/// What a rule decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuning {
    /// What the map should have from now on.
    pub mapping_bytes: u64,
    /// Nanoseconds of flash time that a byte more of buffer would have saved in the interval.
    pub cost_benefit_buffer: f64,
    /// Nanoseconds of flash time that a byte more of map would have saved.
    pub cost_benefit_mapping: f64,
}

/// Decides where the border lies.
///
/// # Contract
/// - `tune` is called every `interval_requests()` requests; what it returns is brought within the floors.
/// - What it and its sides keep fits in [`Sizes::metadata_bytes_now`].
/// - The decision depends on the calls so far and the seed alone.
pub trait SplitRule {
    /// The map's share of what both sides have, at first.
    fn start_share(&self) -> f64;
    /// Requests between two decisions.
    fn interval_requests(&self) -> u64;
    /// DRAM that the rule takes from both sides, whatever the border.
    fn metadata_bytes(&self) -> u64;
    /// DRAM that it takes for each page that the buffer could have and has not.
    fn ghost_page_bytes(&self) -> u64 {
        0
    }
    /// What it wants to hear of the two sides.
    fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge);
    /// Decides.
    fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning;
}

/// What a rule sees when it decides.
#[derive(Clone, Copy, Debug)]
pub struct TuningView<'a> {
    /// The border now.
    pub sizes: &'a Sizes,
    /// What hits are worth now (Table IV).
    pub profits: &'a Profits,
    /// Recent flash time, decayed by [`WORK_DECAY`] an interval, in nanoseconds.
    pub recent_ns: f64,
}

/// What a rule may need to be built.
#[derive(Clone, Copy, Debug)]
pub struct SplitContext {
    /// All of the DRAM.
    pub dram_bytes: u64,
    /// Page size.
    pub page_bytes: u64,
    /// The paper's interval for this FTL, in requests.
    pub paper_interval_requests: u64,
    /// The paper's tuning unit for this FTL.
    pub paper_unit_bytes: u64,
    /// Whether the map is demand-paged, so that it has misses.
    pub is_demand: bool,
    /// Entries of a translation page, or pages of a logical block.
    pub map_page_entries: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// Builds a rule from its checked parameters.
pub type BuildSplit = fn(&Parameters<'_>, &SplitContext) -> Result<AnySplit, SpecError>;

/// Declares the enum that dispatches to every rule, and its implementation of [`SplitRule`].
macro_rules! dispatch {
    ($($variant:ident),* $(,)?) => {
        /// Any rule.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum AnySplit { $($variant($variant)),* }

        impl SplitRule for AnySplit {
            fn start_share(&self) -> f64 {
                match self { $(Self::$variant(rule) => rule.start_share()),* }
            }
            fn interval_requests(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.interval_requests()),* }
            }
            fn metadata_bytes(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.metadata_bytes()),* }
            }
            fn ghost_page_bytes(&self) -> u64 {
                match self { $(Self::$variant(rule) => rule.ghost_page_bytes()),* }
            }
            fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge) {
                match self { $(Self::$variant(rule) => rule.sides(sizes)),* }
            }
            fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning {
                match self { $(Self::$variant(rule) => rule.tune(at, buffer, map)),* }
            }
        }
    };
}

dispatch!(Fixed, AdaptivePaper, LeastCost);

/// Every rule.
pub const SPLITS: &[Entry<BuildSplit>] = &[fixed::ENTRY, adaptive_paper::ENTRY, least_cost::ENTRY];

/// The share at which adaptive rules start.
const START: Parameter = Parameter {
    key: "start",
    default: "50%",
    allowed: "0..100%",
    help: "the map's share at first, of what both sides have",
};

fn share(parameters: &Parameters<'_>, key: &str) -> Result<f64, SpecError> {
    let share: Option<crate::quantity::Share> = parameters.text(key).parse().ok();
    share.map(|s| s.0).filter(|s| (0.0..=1.0).contains(s)).ok_or_else(|| {
        let problem = format!("\"{}\" is out of range", parameters.text(key));
        SpecError::new(format!("dram.split:{key}"), problem, "give 0 to 100%")
    })
}

/// Builds the rule that `name` names; a bare share such as `30%` is a fixed split.
///
/// # Errors
/// Unknown name, unknown parameter, or a value out of range.
pub fn build_split(name: &PolicyName, context: &SplitContext) -> Result<AnySplit, SpecError> {
    if name.name.starts_with(|c: char| c.is_ascii_digit()) {
        let fixed = PolicyName { name: "fixed".to_owned(), parameters: vec![("share".to_owned(), name.to_string())] };
        return (fixed::ENTRY.build)(&Parameters::new(&fixed, fixed::ENTRY.parameters)?, context);
    }
    let or_share = |e: SpecError| SpecError { fix: format!("{}, or give a share such as 30%", e.fix), ..e };
    let entry = find(SPLITS, "dram.split (--split)", name).map_err(or_share)?;
    (entry.build)(&Parameters::new(name, entry.parameters)?, context)
}

/// What is left of a measurement after one interval: measurements run over some thirty intervals.
pub const WORK_DECAY: f64 = 0.97;

/// See the module's text.
pub struct Partition<F: MappingSpace> {
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

impl<F: MappingSpace> Partition<F> {
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
        partition.counters.last = sizes.mapping_share();
        Ok(partition)
    }

    /// Ignores flushes, as [`WriteBuffer::protect`] says.
    #[must_use]
    pub fn protect(self, is_protected: bool) -> Self
    where
        F::Medium: Medium<Store = crate::nand::store::NoBytes>,
    {
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
        let side = self.buffer.ftl_mut().map_side_mut();
        self.recent.add_accesses(&side.accesses, &side.misses);
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
        self.counters.record(SplitSample {
            requests: self.requests,
            mapping_share: self.sizes.mapping_share(),
            cost_benefit_buffer: tuning.cost_benefit_buffer,
            cost_benefit_mapping: tuning.cost_benefit_mapping,
        });
        Ok(())
    }
}

impl<F: MappingSpace> WriteBuffer<F, BufferSide> {
    /// What listens to the buffer, and what listens to the map behind it.
    fn sides(&mut self) -> (&mut BufferSide, &mut MapSide) {
        let (ftl, observer) = self.parts();
        (observer, ftl.map_side_mut())
    }
}

impl<F: MappingSpace> Ftl for Partition<F> {
    type Medium = F::Medium;

    fn logical_pages(&self) -> u32 {
        self.buffer.logical_pages()
    }
    #[inline(always)]
    fn prefetch_entries(&self, lpns: &[Lpn]) {
        self.buffer.prefetch_entries(lpns);
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
        snapshot.split = Some(self.counters.clone());
        snapshot.ghost_audit = self.buffer.ftl().map_side().judge.audit();
        snapshot.dram.push(("split rule", self.metadata_bytes));
    }
    fn wear(&self) -> WearSummary {
        self.buffer.wear()
    }
    fn block_valid_pages(&self) -> Vec<u32> {
        self.buffer.block_valid_pages()
    }
    fn check(&self) -> Result<(), String> {
        self.buffer.check()
    }
}
