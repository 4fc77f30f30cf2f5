//! The improved rule: the border goes to where the two sides' curves cost least together.
//!
//! Instead of one number for all that left a side, stack distances ([`super::curves`]) tell what either side would cost at
//! every size: flash reads and page writes that a buffer does not save, map reads and write-backs that a cache does not.
//! Their sum is a curve over the border; the rule finds its minimum and goes there in large steps. What an operation costs
//! is measured as in the paper (Table IV). A border stays where it is unless leaving it saves a stated share of the recent
//! flash time, so that noise does not move it: a move itself costs write-backs.
//!
//! The curves take 3 % of the DRAM; they follow every page of the buffer where that suffices, and a sample of the
//! translation pages. The two sides are judged apart: that a smaller buffer sends more accesses to the map is left out, since
//! what it sends are re-uses so close that a map cache of any size has them.

use super::curves::{self, BufferCurve, MapCurve, SEGMENTS};
use super::sides::{BufferSide, MapJudge, MapSide};
use super::{AnySplit, BuildSplit, START, Sizes, SplitRule, Tuning, TuningView, WORK_DECAY, share};
use crate::registry::{Entry, Parameter, SpecError};

pub(super) const ENTRY: Entry<BuildSplit> = Entry {
    name: "marginal",
    summary: "the border goes to the least sum of both sides' measured cost curves",
    paper: "ours; curves after Mattson et al. and Waldspurger et al., SHARDS",
    memory: "3 % of the DRAM",
    parameters: &[
        START,
        Parameter {
            key: "interval",
            default: "4000",
            allowed: "1..=1000000000",
            help: "requests between two decisions",
        },
        Parameter {
            key: "least_gain",
            default: "0.005",
            allowed: "0..=1",
            help: "share of the recent flash time that a move must promise to save",
        },
    ],
    build: |parameters, context| {
        if !context.is_demand {
            let fix = "choose adaptive_paper or a share, or --ftl dftl";
            return Err(SpecError::new("dram.split (--split)", "marginal needs a demand-paged map", fix));
        }
        Ok(AnySplit::Marginal(Marginal {
            start: share(parameters, START.key)?,
            interval: parameters.integer("interval", 1..=1_000_000_000)?,
            least_gain: parameters.real("least_gain", 0.0..=1.0)?,
            curve_bytes: context.dram_bytes / 100,
        }))
    },
};

/// Parts of a hundred of the DRAM that the map's curve takes; the buffer's takes one.
const MAP_SHARE: u64 = 2;
/// Largest step, as a share of the DRAM.
const STEP_MOST: f64 = 1.0 / 16.0;
/// How far a measurement at the border as it is may scale the map's curve, either way.
const SCALE_MOST: f64 = 4.0;
/// How much more a smaller map must promise than a larger one: cold entries that it loses cost collections an update each
/// time their pages move, and come back only when the host asks for them.
const SHRINK_CAUTION: f64 = 2.0;
/// Borders that are compared.
const BORDERS: u64 = 4 * SEGMENTS as u64;

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Marginal {
    start: f64,
    interval: u64,
    least_gain: f64,
    curve_bytes: u64,
}

/// What each side costs, in recent nanoseconds of flash time, over its size in segments.
struct Costs {
    buffer: curves::Curve,
    map: curves::Curve,
    pages_max: f64,
    entries_max: f64,
}

impl Costs {
    fn buffer_ns(&self, sizes: &Sizes, mapping_bytes: u64) -> f64 {
        let pages = f64::from(sizes.pages(sizes.shared_bytes() - mapping_bytes));
        curves::at(&self.buffer, pages / self.pages_max * f64::from(SEGMENTS))
    }
    fn map_ns(&self, sizes: &Sizes, mapping_bytes: u64) -> f64 {
        let entries = f64::from(sizes.entries(mapping_bytes));
        curves::at(&self.map, entries / self.entries_max * f64::from(SEGMENTS))
    }
    fn total_ns(&self, sizes: &Sizes, mapping_bytes: u64) -> f64 {
        self.buffer_ns(sizes, mapping_bytes) + self.map_ns(sizes, mapping_bytes)
    }
}

/// Most pages and entries that the curves reach to.
fn reach(sizes: &Sizes) -> (u64, u64) {
    (sizes.pages(sizes.shared_bytes()).into(), sizes.entries(sizes.shared_bytes()).max(1).into())
}

impl SplitRule for Marginal {
    fn start_share(&self) -> f64 {
        self.start
    }
    fn interval_requests(&self) -> u64 {
        self.interval
    }
    fn metadata_bytes(&self) -> u64 {
        (1 + MAP_SHARE) * self.curve_bytes
    }

    fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge) {
        let (pages, entries) = reach(sizes);
        let buffer = BufferCurve::new(pages, self.curve_bytes);
        let map = MapCurve::new(entries, sizes.map_pages, sizes.map_page_entries, MAP_SHARE * self.curve_bytes);
        (BufferSide::Curve(buffer), MapJudge::Curve(map))
    }

    fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning {
        let (BufferSide::Curve(buffer), MapJudge::Curve(map)) = (buffer, &mut map.judge) else {
            unreachable!("this rule asked for curves")
        };
        let (sizes, profits) = (at.sizes, at.profits);
        let (reads, writes) = buffer.misses();
        let missed = map.misses();
        let (pages, entries) = reach(sizes);
        let here = f64::from(sizes.entries(sizes.mapping_bytes)) / entries as f64 * f64::from(SEGMENTS);
        let expected = curves::at(&missed.writebacks, here) + curves::at(&missed.updates, here);
        let scale =
            if expected > 0.0 { (profits.map_rewrites / expected).clamp(1.0 / SCALE_MOST, SCALE_MOST) } else { 1.0 };
        let costs = Costs {
            buffer: std::array::from_fn(|i| reads[i] * profits.read_ns + writes[i] * profits.page_write_ns),
            map: std::array::from_fn(|i| {
                missed.reads[i] * profits.map_read_ns
                    + (missed.writebacks[i] + missed.updates[i]) * scale * profits.map_rewrite_ns
            }),
            pages_max: pages as f64,
            entries_max: entries as f64,
        };
        buffer.decay(WORK_DECAY);
        map.decay(WORK_DECAY);
        let now = costs.total_ns(sizes, sizes.mapping_bytes);
        let border = |i: u64| sizes.with_mapping(sizes.shared_bytes() * i / BORDERS).mapping_bytes;
        let (best, best_ns) = (0..=BORDERS)
            .map(|i| (border(i), costs.total_ns(sizes, border(i))))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("there are borders to compare");
        let step = (sizes.dram_bytes as f64 * STEP_MOST) as u64;
        let grows = best > sizes.mapping_bytes;
        let threshold = if grows { 1.0 } else { SHRINK_CAUTION } * self.least_gain;
        let mapping_bytes = if now - best_ns > threshold * at.recent_ns {
            best.clamp(sizes.mapping_bytes.saturating_sub(step), sizes.mapping_bytes + step)
        } else {
            sizes.mapping_bytes
        };
        // The slopes at the border, over one segment of the DRAM.
        let (here, width) = (sizes.mapping_bytes, sizes.shared_bytes() / u64::from(SEGMENTS));
        let (less, more) = (sizes.with_mapping(here.saturating_sub(width)), sizes.with_mapping(here + width));
        let slope = |gain: f64, bytes: u64| if bytes > 0 { gain / bytes as f64 } else { 0.0 };
        let of_buffer = costs.buffer_ns(sizes, here) - costs.buffer_ns(sizes, less.mapping_bytes);
        let of_map = costs.map_ns(sizes, here) - costs.map_ns(sizes, more.mapping_bytes);
        Tuning {
            mapping_bytes,
            cost_benefit_buffer: slope(of_buffer, here - less.mapping_bytes),
            cost_benefit_mapping: slope(of_map, more.mapping_bytes - here),
        }
    }
}
