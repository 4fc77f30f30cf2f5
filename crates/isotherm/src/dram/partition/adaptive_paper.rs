//! Adaptive partitioning exactly as its paper writes it (Algorithm 1, Tables II to IV, section IV.A).
//!
//! Ghosts remember what left either side. At every interval the profit of each ghost, its hits times what they were worth,
//! is divided by the ghost's size in bytes; the border moves towards the side with the larger quotient, by one tuning unit
//! (one CMT entry, or the map of one log block) times the ratio of the two.
//!
//! The paper leaves open what happens when the smaller quotient is zero: here one step is at most 1/16 of the DRAM; both
//! zero moves nothing. The bitmap and the ghost buffer's metadata lie in the DRAM, as the paper says.
//!
//! What may mislead it is that a ghost's quotient is an average over everything that left, while the next byte is worth what
//! the youngest of it is. The bitmap's false hits are not it: `ghost=exact` moves the rule no nearer to the best split.

use super::sides::{BufferGhost, BufferSide, GhostEntries, MapGhost, MapJudge, MapSide, ReadsAndWrites};
use super::{AnySplit, BuildSplit, START, Sizes, SplitRule, Tuning, TuningView};
use crate::dram::ghost::{GhostAudit, GhostBitmap, GhostLru};
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildSplit> = Entry {
    name: "adaptive_paper",
    summary: "the border follows the cost-benefit of the two ghosts, a tuning unit at a time",
    paper: "Adaptive partitioning, Algorithm 1",
    memory: "the bitmap, and 16 bytes a page of DRAM",
    parameters: &[
        START,
        Parameter::integer("interval", 0..=1_000_000_000, "0").help("requests between two decisions; 0 takes the paper's (1000 for DFTL, 10000 for FAST)"),
        Parameter::integer("tune_unit", 0..=1 << 30, "0").unit("bytes").help("bytes of one step; 0 takes the paper's (a CMT entry, or the map of a log block)"),
        Parameter::choice("ghost", &["bitmap", "exact", "audited"], "bitmap").help("how the ghost mapping remembers; audited: by the bitmap, beside an exact ghost that tells its false hits and costs no DRAM"),
        Parameter::integer("log2_bits", 6..=30, "20").help("size of the bitmap, 2^20 bits in the paper"),
        Parameter::integer("alpha", 1..=1000, "3").help("factor of the conditional flush of the bitmap"),
    ],
    build: |parameters, context| {
        let or = |value, default| if value == 0 { default } else { value };
        Ok(AnySplit::AdaptivePaper(AdaptivePaper {
            start: parameters.share(START.key),
            interval: or(parameters.integer("interval"), context.paper_interval_requests),
            unit_bytes: or(parameters.integer("tune_unit"), context.paper_unit_bytes),
            ghost: parameters.choice(
                "ghost",
                &[("bitmap", MapMemory::Bitmap), ("exact", MapMemory::Exact), ("audited", MapMemory::Audited)],
            ),
            log2_bits: parameters.integer("log2_bits") as u8,
            alpha: parameters.integer("alpha") as u32,
            seed: context.seed,
            dram_bytes: context.dram_bytes,
            page_bytes: context.page_bytes,
        }))
    },
};

/// How the ghost mapping remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MapMemory {
    Bitmap,
    Exact,
    Audited,
}

/// Largest step, as a share of the DRAM.
const STEP_MOST: f64 = 1.0 / 16.0;

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdaptivePaper {
    start: f64,
    interval: u64,
    unit_bytes: u64,
    ghost: MapMemory,
    log2_bits: u8,
    alpha: u32,
    seed: u64,
    dram_bytes: u64,
    page_bytes: u64,
}

impl AdaptivePaper {
    /// Pages that the ghost buffer may stand for at most.
    fn ghost_pages(&self) -> u32 {
        (self.dram_bytes / self.page_bytes) as u32
    }
}

/// Ghosts stand for what both sides do not hold: at most the DRAM less the side's own part.
fn set_capacities(sizes: &Sizes, buffer: &mut BufferGhost, map: &mut MapGhost) {
    buffer.pages.set_capacity(sizes.pages(sizes.dram_bytes - sizes.buffer_bytes()));
    map.set_capacity(((sizes.dram_bytes - sizes.mapping_bytes) / sizes.ghost_entry_bytes) as u32);
}

/// A profit for each byte of the ghost that made it.
fn cost_benefit(profit_ns: f64, bytes: f64) -> f64 {
    if bytes > 0.0 { profit_ns / bytes } else { 0.0 }
}

impl SplitRule for AdaptivePaper {
    fn start_share(&self) -> f64 {
        self.start
    }
    fn interval_requests(&self) -> u64 {
        self.interval
    }
    fn metadata_bytes(&self) -> u64 {
        // The exact ghost is an oracle, not a proposal: it is charged as the bitmap that it stands in for, and not at all where
        // it audits one.
        (1 << self.log2_bits) / 8 + u64::from(self.ghost_pages()) * GhostLru::ENTRY_BYTES
    }

    fn sides(&self, sizes: &Sizes) -> (BufferSide, MapJudge) {
        let bitmap = || GhostBitmap::new(self.log2_bits, self.alpha, self.seed);
        let exact = || GhostLru::new((self.dram_bytes / sizes.ghost_entry_bytes) as u32);
        let entries = match self.ghost {
            MapMemory::Bitmap => GhostEntries::Bitmap(bitmap()),
            MapMemory::Exact => GhostEntries::Exact(exact()),
            MapMemory::Audited => GhostEntries::Audited(GhostAudit::new(bitmap(), exact())),
        };
        let mut buffer = BufferGhost { pages: GhostLru::new(self.ghost_pages()), hits: ReadsAndWrites::default() };
        let mut map = MapGhost { entries, capacity: 0, hits: ReadsAndWrites::default() };
        set_capacities(sizes, &mut buffer, &mut map);
        (BufferSide::Ghost(buffer), MapJudge::Ghost(map))
    }

    fn tune(&mut self, at: &TuningView<'_>, buffer: &mut BufferSide, map: &mut MapSide) -> Tuning {
        let (BufferSide::Ghost(buffer), MapJudge::Ghost(map)) = (buffer, &mut map.judge) else {
            unreachable!("this rule asked for ghosts")
        };
        let (sizes, profits) = (at.sizes, at.profits);
        let buffer_profit =
            buffer.hits.reads as f64 * profits.buffer_read_ns + buffer.hits.writes as f64 * profits.buffer_write_ns;
        let map_profit = map.hits.reads as f64 * profits.map_read_ns + map.hits.writes as f64 * profits.map_write_ns;
        let of_buffer = cost_benefit(buffer_profit, f64::from(buffer.pages.length()) * sizes.page_bytes as f64);
        let of_map = cost_benefit(map_profit, f64::from(map.entries.size()) * sizes.ghost_entry_bytes as f64);
        let most = sizes.dram_bytes as f64 * STEP_MOST;
        let step = |ratio: f64| (self.unit_bytes as f64 * ratio).min(most) as u64;
        let mapping_bytes = if of_buffer < of_map {
            sizes.mapping_bytes + step(of_map / of_buffer)
        } else if of_buffer > of_map {
            sizes.mapping_bytes.saturating_sub(step(of_buffer / of_map))
        } else {
            sizes.mapping_bytes
        };
        (buffer.hits, map.hits) = Default::default();
        set_capacities(&sizes.with_mapping(mapping_bytes), buffer, map);
        Tuning { mapping_bytes, cost_benefit_buffer: of_buffer, cost_benefit_mapping: of_map }
    }
}
