//! The improved rule: the border goes to where the two sides' curves cost least together.
//!
//! Instead of one number for all that left a side, caches of every size are followed ([`super::curves`]), so that the rule
//! knows what each split of a grid would have cost: flash reads and page writes that its buffer does not save, map reads and
//! write-backs that its map does not. It takes the least of them, wherever that lies: a loop of writes that only the whole
//! DRAM holds is found from the other end. What operations cost is measured. A border stays where it is unless leaving it
//! saves a stated share of the recent flash time, so that noise does not move it: a move itself costs write-backs.
//!
//! The cost of split i, with what was measured at the split as it is (`here`):
//!
//!   buffer_reads(i) Tr + buffer_writes(i) (Tw + (collections + reclaims(i) Tmap) / buffer_writes(here))
//!     + map_reads(i) Tr + evictions(i) Tmap + sequential_copies(i) Tcopy
//!
//! Tmap is a translation page read and written, or a full merge; Tcopy what merges of the sequential log block were measured to
//! take for each page that they copied ([`super::curves::sequential`]). Collections, and what the map costs them, grow with the
//! pages that reach flash. That a smaller buffer sends more accesses to the map is left out: what it sends are re-uses so close
//! that a map of any size has them.
//!
//! What the curves take is charged: the map's in bytes, the buffer's by page, less the more of them are in the buffer
//! ([`super::curves::buffer`]). At a split of 0 % of 8 MiB, 99.6 % are left to a buffer before DFTL.

use super::curves::{
    BufferCurve, Curve, Grid, LogCurve, MapCurve, MapMisses, SPLITS, SequentialCurve, buffer, sequential,
};
use super::sides::{BufferSide, MapJudge, MapSide};
use super::{AnySplit, BuildSplit, START, Sizes, SplitRule, Tuning, TuningView, WORK_DECAY};
use crate::ftl::Profits;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildSplit> = Entry {
    name: "least_cost",
    summary: "the border goes to the split that costs least by both sides' measured curves",
    paper: "ours; curves after Mattson et al., stack distances",
    memory: "24 KiB within 0.3 to 2 % of the DRAM (DFTL) or 3 % of it (FAST), and up to 17 bytes a page of DRAM",
    parameters: &[
        START,
        Parameter::integer("interval", 0..=1_000_000_000, "0")
            .help("requests between two decisions; 0 takes the paper's (1000 for DFTL, 10000 for FAST)"),
        Parameter::real("least_gain", 0.0..=1.0, "0.005")
            .help("share of the recent flash time that a move must promise to save"),
        Parameter::real("sample", 0.0..=0.5, "0").help(
            "share of the DRAM that following the map takes; 0 takes 24 KiB within 0.3 to 2 % (DFTL) or 3 % (FAST)",
        ),
    ],
    build: |parameters, context| {
        let share_of = |share: f64| (context.dram_bytes as f64 * share) as u64;
        let sample_bytes = match parameters.real("sample") {
            0.0 if context.is_demand => SAMPLE_BYTES.clamp(share_of(0.003), share_of(0.02)),
            0.0 => share_of(0.03),
            sample => share_of(sample),
        };
        let least_bytes = if context.is_demand { MapCurve::least_bytes } else { LogCurve::least_bytes };
        Ok(AnySplit::LeastCost(LeastCost {
            start: parameters.share(START.key),
            interval: match parameters.integer("interval") {
                0 => context.paper_interval_requests,
                interval => interval,
            },
            least_gain: parameters.real("least_gain"),
            map_bytes: sample_bytes.max(least_bytes(context.map_page_entries)),
            frame_bytes: context.dram_bytes / context.page_bytes * buffer::FRAME_BYTES,
            sequential_bytes: if context.is_demand { 0 } else { sequential::BYTES },
        }))
    },
};

/// DRAM for following a demand-paged map: what a sample tells depends on its own size, not on the share that it is.
const SAMPLE_BYTES: u64 = 24 << 10;
/// Splits of the grid that one decision may move by.
const STEP_MOST: usize = 2;
/// How far a measurement at the border as it is may scale the map's curve, either way.
const SCALE_MOST: f64 = 4.0;
/// How much more a smaller map must promise than a larger one: cold entries that it loses cost collections an update each
/// time their pages move, and come back only when the host asks for them.
const SHRINK_CAUTION: f64 = 2.0;

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LeastCost {
    start: f64,
    interval: u64,
    least_gain: f64,
    map_bytes: u64,
    frame_bytes: u64,
    sequential_bytes: u64,
}

/// Recent flash time of each split, by side, as far as splits differ in it.
struct Costs {
    buffer_ns: Curve,
    map_ns: Curve,
}

impl Costs {
    fn new(buffer: &BufferCurve, map: &MapMisses, here: usize, profits: &Profits) -> Self {
        let (reads, writes) = buffer.misses();
        let copies = buffer.sequential_copies();
        let expected = map.evictions[here] + map.reclaims[here];
        let measured = if expected > 0.0 { profits.map_rewrites / expected } else { 1.0 };
        let map_ns = profits.map_rewrite_ns * measured.clamp(1.0 / SCALE_MOST, SCALE_MOST);
        let for_each_write = |ns: f64| if writes[here] > 0.0 { ns / writes[here] } else { 0.0 };
        let write_ns = profits.program_ns + for_each_write(profits.collections_ns);
        let measured = if copies[here] > 0.0 { profits.sequential_ns / copies[here] } else { profits.copy_ns };
        let copy_ns = measured.clamp(profits.copy_ns / SCALE_MOST, profits.copy_ns * SCALE_MOST);
        Self {
            buffer_ns: std::array::from_fn(|i| reads[i] * profits.read_ns + writes[i] * write_ns + copies[i] * copy_ns),
            map_ns: std::array::from_fn(|i| {
                let reclaims = for_each_write(map.reclaims[i]) * writes[i];
                map.reads[i] * profits.map_read_ns + (map.evictions[i] + reclaims) * map_ns
            }),
        }
    }

    fn total_ns(&self, split: usize) -> f64 {
        self.buffer_ns[split] + self.map_ns[split]
    }

    /// What a byte more would save, if `more` is the next split in which that side has more.
    fn slope(curve: &Curve, grid: &Grid, here: usize, more: usize) -> f64 {
        match grid.mapping_bytes[here].abs_diff(grid.mapping_bytes[more]) {
            0 => 0.0,
            bytes => (curve[here] - curve[more]) / bytes as f64,
        }
    }
}

impl SplitRule for LeastCost {
    fn start_share(&self) -> f64 {
        self.start
    }
    fn interval_requests(&self) -> u64 {
        self.interval
    }
    fn metadata_bytes(&self) -> u64 {
        self.map_bytes + self.frame_bytes + self.sequential_bytes
    }
    fn ghost_page_bytes(&self) -> u64 {
        buffer::GHOST_BYTES
    }

    fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge) {
        let grid = Grid::new(sizes);
        let (pages, entries) = (sizes.map_pages, sizes.map_page_entries);
        let (map, sequential) = if sizes.log_blocks_max > 0 {
            let curve = LogCurve::new(&grid, pages, entries, sizes.log_blocks_max, self.map_bytes);
            (MapJudge::Log(curve), Some(SequentialCurve::new(entries)))
        } else {
            (MapJudge::Curve(MapCurve::new(&grid, pages, entries, self.map_bytes)), None)
        };
        (BufferSide::Curve(BufferCurve::new(&grid, sequential)), map)
    }

    fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning {
        let BufferSide::Curve(buffer) = buffer else { unreachable!("this rule asked for curves") };
        let missed = map.judge.misses().expect("this rule asked for curves");
        let grid = Grid::new(at.sizes);
        let here = grid.nearest(at.sizes.mapping_bytes);
        let costs = Costs::new(buffer, &missed, here, at.profits);
        buffer.decay(WORK_DECAY);
        map.judge.decay(WORK_DECAY);
        let best = (0..SPLITS)
            .min_by(|a, b| costs.total_ns(*a).total_cmp(&costs.total_ns(*b)))
            .expect("there are splits to compare");
        let caution = if best > here { 1.0 } else { SHRINK_CAUTION };
        let gain_ns = costs.total_ns(here) - costs.total_ns(best);
        let to = if gain_ns > caution * self.least_gain * at.recent_ns {
            best.clamp(here.saturating_sub(STEP_MOST), here + STEP_MOST)
        } else {
            here
        };
        Tuning {
            mapping_bytes: grid.mapping_bytes[to],
            cost_benefit_buffer: Costs::slope(&costs.buffer_ns, &grid, here, here.saturating_sub(1)),
            cost_benefit_mapping: Costs::slope(&costs.map_ns, &grid, here, (here + 1).min(SPLITS - 1)),
        }
    }
}
