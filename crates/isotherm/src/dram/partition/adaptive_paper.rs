//! Adaptive partitioning exactly as its paper writes it (Algorithm 1, Tables II to IV, section IV.A).
//!
//! Ghosts remember what left either side. At every interval the profit of each ghost, its hits times what they were worth,
//! is divided by the ghost's size in bytes; the border moves towards the side with the larger quotient, by one tuning unit
//! (one CMT entry, or the map of one log block) times the ratio of the two.
//!
//! The paper leaves open what happens when the smaller quotient is zero: here one step is at most 1/16 of the DRAM; both
//! zero moves nothing. Nothing in it says when a map has all that it can use: the border goes on towards that side, which
//! `knows_limit`, a departure, stops. The bitmap and the ghost buffer's metadata lie in the DRAM, as the paper says.
//!
//! What may mislead it is that a ghost's quotient is an average over everything that left, while the next byte is worth what
//! the youngest of it is. The bitmap's false hits are not it: `ghost=exact` moves the rule no nearer to the best split.

use super::sides::{BufferGhost, BufferSide, GhostEntries, MapGhost, MapJudge, MapSide, ReadsAndWrites};
use super::{AnySplit, BuildSplit, START, Sizes, SplitRule, Tuning, TuningView};
use crate::dram::ghost::{GhostAudit, GhostBitmap, GhostLru};
use crate::registry::{Entry, Kind, Parameter, parse_integer};

/// A power of two of bits, or the paper's share of the DRAM.
const LOG2_BITS: &[Kind] = &[Kind::word(&["scaled"]), Kind::integer(6..=30)];

/// DRAM bytes for each byte of a scaled bitmap: the paper's 128 KB are 1.6 and .8 % of its 8 and 16 MB.
const DRAM_PER_BITMAP: u64 = 64;

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
        Parameter::any("log2_bits", LOG2_BITS, "20").help("size of the bitmap, 2^20 bits in the paper; scaled: as in the paper's smaller DRAM, at most 1/64 of the DRAM"),
        Parameter::boolean("knows_limit", "false").help("neither the border nor the ghost mapping go beyond what the map can use: all entries, or all log blocks"),
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
            log2_bits: parse_integer(parameters.text("log2_bits"))
                .map_or_else(|| scaled_log2_bits(context.dram_bytes), |bits| bits as u8),
            knows_limit: parameters.boolean("knows_limit"),
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
    knows_limit: bool,
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

    /// What the map may be given at most.
    fn map_bytes_most(&self, sizes: &Sizes) -> u64 {
        if self.knows_limit { sizes.map_bytes_useful().min(sizes.dram_bytes) } else { sizes.dram_bytes }
    }

    /// Ghosts stand for what both sides do not hold: at most the DRAM, or what the map can use, less the side's own part.
    fn set_capacities(&self, sizes: &Sizes, buffer: &mut BufferGhost, map: &mut MapGhost) {
        buffer.pages.set_capacity(sizes.pages(sizes.dram_bytes - sizes.buffer_bytes()));
        let not_held = self.map_bytes_most(sizes).saturating_sub(sizes.mapping_bytes);
        map.set_capacity((not_held / sizes.ghost_entry_bytes) as u32);
    }
}

/// The largest bitmap of a power of two of bits that takes no more than its share of the DRAM; a word at least.
fn scaled_log2_bits(dram_bytes: u64) -> u8 {
    (dram_bytes / DRAM_PER_BITMAP * 8).max(64).ilog2().min(30) as u8
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
        self.set_capacities(sizes, &mut buffer, &mut map);
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
        let mapping_bytes = mapping_bytes.min(self.map_bytes_most(sizes));
        (buffer.hits, map.hits) = Default::default();
        self.set_capacities(&sizes.with_mapping(mapping_bytes), buffer, map);
        Tuning { mapping_bytes, cost_benefit_buffer: of_buffer, cost_benefit_mapping: of_map }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_bitmap_has_the_papers_share_of_the_dram() {
        assert_eq!([8 << 20, 16 << 20, 1 << 20, 1000].map(scaled_log2_bits), [20, 21, 17, 6]);
        assert!((0..40).all(|log2| 1u64 << scaled_log2_bits(1 << log2) <= ((1 << log2) / 8).max(64)));
    }

    #[test]
    fn the_map_of_a_whole_log_is_all_that_it_can_use() {
        let sizes =
            Sizes { mapping_bytes_fixed: 100, entry_bytes: 260, log_blocks_max: 3, ..Sizes::new(1 << 20, 2048) };
        assert_eq!(sizes.map_bytes_useful(), 100 + 3 * 260);
        let demand = Sizes { log_blocks_max: 0, entry_bytes: 8, map_pages: 5, map_page_entries: 512, ..sizes };
        assert_eq!(demand.map_bytes_useful(), 100 + 5 * 512 * 8);
    }
}
