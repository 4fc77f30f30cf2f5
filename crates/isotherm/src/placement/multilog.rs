//! MultiLog: several logs, each for pages of about one update frequency, that divide the spare space so that cleaning costs
//! least (Stoica & Ailamaki, "Improving flash write performance by using update frequency", VLDB'13).
//!
//! The frequency of a page is estimated from an average of the intervals between its updates, the newest weighing a half; a copy
//! whose age exceeds that average shows that the page has cooled, and counts as an update at its age. Logs hold frequencies
//! by powers of two.
//!
//! The publication minimises the sum over the logs of update frequency times cleaning cost, the cost of a log following from its
//! own over-provisioning alone. At the minimum a block more is worth the same to every log; so whenever a block is needed,
//! cleaning takes it from the log to which it is worth least, the one that exceeds its share, and thereby shrinks that log's
//! over-provisioning. The worth of a block to a log of `n` live pages that fills `alpha n` pages and is updated `h` times a page
//! and host write is `h / ((1-v)/v + ln v)`, where `v = exp(-alpha (1-v))` are the survivors of a turn of the log: the derivative of
//! the cost in closed form. Near `v = 1` it is `2h / (1-v)^2`, the rule of MDC with logs in the place of blocks.
//!
//! Departures: the publication compares a log with its two neighbours and reaches the minimum step by step; there are few
//! logs, so here all are compared. It fits the survivors by an exponential; here they are those of FIFO cleaning under
//! uniform updates, exactly. Frequencies of logs are measured, not set. As long as worths lie within a factor
//! of [`NOISE`], which a measured frequency may be off by, shares count as reached and the victim policy looks everywhere: near the
//! minimum the sum is flat. The victim policy chooses the block within a log. A decision costs O(logs).

use super::rate_classes::RateClasses;
use super::{AnyPlacement, BuildPlacement, GcCopy, HostWrite, PageHistory, Placement, Reclaim, VictimSource};
use crate::address::{BlockId, Lpn, StreamId};
use crate::blocks::{BlockTable, Streams};
use crate::lambert::dead_share;
use crate::memory;
use crate::registry::{Entry, Parameter};

pub(super) const ENTRY: Entry<BuildPlacement> = Entry {
    name: "multilog",
    summary: "by the page's average interval between updates, in logs that divide the spare space",
    paper: "Stoica & Ailamaki, VLDB'13",
    memory: "9 bytes a logical page",
    parameters: &[
        Parameter::integer("logs", 2..=32, "8").help("logs, each a stream"),
        Parameter::boolean("sizing", "true")
            .help("divide the spare space among the logs; otherwise victims come from all of them alike"),
    ],
    build: BuildPlacement::online(|parameters, context| {
        let logs = parameters.integer("logs");
        Ok(AnyPlacement::MultiLog(MultiLog {
            pages: memory::table(context.logical_pages as usize, Default::default()),
            held_by: memory::table(context.logical_pages as usize, NO_LOG),
            classes: RateClasses::new(context, logs),
            logs: vec![Log::default(); logs as usize],
            worths: Worths::new(),
            pages_per_block: context.pages_per_block.into(),
            window: (u64::from(context.logical_pages) / 4).max(1),
            window_ends: 0,
            sizing: parameters.boolean("sizing"),
        }))
    }),
};

/// Mark of a page that holds no data.
const NO_LOG: u8 = u8::MAX;
/// Worths of a block to two logs that differ by less than this factor count as equal.
const NOISE: f64 = 1.25;

/// Survivors of a turn below this share are a rounding error, and the curve of the cost can no longer be told from them.
const NO_SURVIVORS: f64 = 1e-12;

#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Time of the last write, in host page writes modulo 2^32.
    last_write: u32,
    /// Average interval; 0 before the second write.
    interval: u32,
}

/// What is known of a log.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    /// Pages that hold data.
    live: u64,
    closed_blocks: u64,
    /// Pages written since the last block was closed.
    open_pages: u64,
    /// Live pages that were overwritten in this window.
    overwritten: u64,
    /// Overwrites in a window: a moving mean, the newest weighing a quarter.
    frequency: f64,
}

impl Log {
    /// By how many copies a host write another block would spare, up to a factor that all logs share. None for a log that has
    /// no block to give.
    fn worth_of_block(&self, pages_per_block: u64, worths: &Worths) -> Option<f64> {
        let filled = self.closed_blocks * pages_per_block + self.open_pages;
        if self.closed_blocks == 0 || filled <= self.live {
            return None;
        }
        let live = self.live.max(1) as f64;
        Some(self.frequency / live * worths.at((filled as f64 - live) / live))
    }
}

/// Worth of a block to a log that is updated once a page and host write, by how much more it fills than is live.
fn unit_worth(spare: f64) -> f64 {
    let survivors = 1.0 - dead_share(1.0 + spare);
    if survivors < NO_SURVIVORS {
        return 0.0;
    }
    let curvature = (1.0 - survivors) / survivors + libm::log(survivors);
    1.0 / curvature.max(f64::MIN_POSITIVE)
}

/// [`unit_worth`] in a table, since it is asked for every log before every collection: between two neighbours, 64 to a doubling
/// of the spare space, the worth is taken to be linear. It is off by less than 2 % wherever it matters, [`NOISE`] being 25 %.
#[derive(Clone, Debug)]
struct Worths {
    values: Box<[f64]>,
}

impl Worths {
    /// Exponents of two between which the table lies. Below, a log has less than a page in a million to spare; above, nothing survives.
    const FROM: i32 = -20;
    const TO: i32 = 5;
    const STEPS_LOG2: u32 = 6;

    fn new() -> Self {
        let steps = 1 << Self::STEPS_LOG2;
        let point = |at: i32| {
            let (doubling, step) = (at.div_euclid(steps), at.rem_euclid(steps));
            f64::from(steps + step) / f64::from(steps) * libm::exp2(f64::from(Self::FROM + doubling))
        };
        Self { values: (0..=(Self::TO - Self::FROM) * steps).map(|at| unit_worth(point(at))).collect() }
    }

    #[inline(always)]
    fn at(&self, spare: f64) -> f64 {
        // The exponent and the leading digits of a number are its place in the table, the other digits where it lies between two.
        const REST_BITS: u32 = f64::MANTISSA_DIGITS - 1 - Worths::STEPS_LOG2;
        let from = (1023 + Self::FROM) as u64;
        let bits = spare.to_bits();
        let Some(place) = (bits >> REST_BITS).checked_sub(from << Self::STEPS_LOG2) else { return unit_worth(spare) };
        let (Some(before), Some(after)) = (self.values.get(place as usize), self.values.get(place as usize + 1)) else {
            return 0.0;
        };
        let between = (bits & ((1 << REST_BITS) - 1)) as f64 / (1u64 << REST_BITS) as f64;
        before + (after - before) * between
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MultiLog {
    pages: Vec<PageState>,
    /// Log of each page.
    held_by: Vec<u8>,
    classes: RateClasses,
    logs: Vec<Log>,
    worths: Worths,
    pages_per_block: u64,
    /// Host page writes over which frequencies are counted.
    window: u64,
    window_ends: u64,
    sizing: bool,
}

impl MultiLog {
    /// A page was written or copied to `stream`, and lives there alone.
    #[inline(always)]
    fn settle(&mut self, lpn: Lpn, stream: StreamId) -> StreamId {
        let before = std::mem::replace(&mut self.held_by[lpn.0 as usize], stream.0 as u8);
        if before != NO_LOG {
            self.logs[usize::from(before)].live -= 1;
        }
        let log = &mut self.logs[usize::from(stream.0)];
        log.live += 1;
        log.open_pages += 1;
        stream
    }

    fn end_window(&mut self, now: u64) {
        let is_first = self.window_ends == 0;
        for log in &mut self.logs {
            let counted = std::mem::take(&mut log.overwritten) as f64;
            log.frequency = if is_first { counted } else { log.frequency * 0.75 + counted * 0.25 };
        }
        self.window_ends = now + self.window;
    }
}

impl Placement for MultiLog {
    fn streams(&self) -> u16 {
        self.classes.streams()
    }
    fn learns_for(&self) -> u32 {
        16
    }
    fn gc_streams(&self) -> u16 {
        self.classes.streams()
    }
    fn host(&mut self, write: &HostWrite, _: &mut PageHistory) -> StreamId {
        if write.now >= self.window_ends {
            self.end_window(write.now);
        }
        let page = &mut self.pages[write.lpn.0 as usize];
        let since = (write.now as u32).wrapping_sub(std::mem::replace(&mut page.last_write, write.now as u32)).max(1);
        if !write.rewrite {
            page.interval = 0;
            return self.settle(write.lpn, StreamId(0));
        }
        page.interval = if page.interval == 0 { since } else { (page.interval / 2 + since / 2).max(1) };
        let stream = self.classes.stream(page.interval.into());
        if let Some(log) = self.logs.get_mut(usize::from(self.held_by[write.lpn.0 as usize])) {
            log.overwritten += 1;
        }
        self.settle(write.lpn, stream)
    }
    fn gc(&mut self, copy: &GcCopy, _: &PageHistory) -> StreamId {
        let page = self.pages[copy.lpn.0 as usize];
        let age = (copy.now as u32).wrapping_sub(page.last_write);
        let stream = match page.interval {
            0 => StreamId(0),
            interval if age > interval => self.classes.stream(u64::from(interval / 2 + age / 2)),
            interval => self.classes.stream(interval.into()),
        };
        self.settle(copy.lpn, stream)
    }
    fn on_trim(&mut self, lpn: Lpn) {
        self.pages[lpn.0 as usize].interval = 0;
        if let Some(log) = self.logs.get_mut(usize::from(self.held_by[lpn.0 as usize])) {
            log.live -= 1;
        }
        self.held_by[lpn.0 as usize] = NO_LOG;
    }
    fn on_close(&mut self, _: BlockId, stream: StreamId) {
        let log = &mut self.logs[usize::from(stream.0)];
        log.closed_blocks += 1;
        log.open_pages = 0;
    }
    fn on_reclaim(&mut self, reclaim: &Reclaim) {
        self.logs[usize::from(reclaim.stream.0)].closed_blocks -= 1;
    }
    fn victim_source(&mut self, _: u64) -> VictimSource {
        if !self.sizing {
            return VictimSource::Everywhere;
        }
        let (mut least, mut most) = ((f64::INFINITY, 0), 0.0f64);
        for (at, log) in self.logs.iter().enumerate() {
            let Some(worth) = log.worth_of_block(self.pages_per_block, &self.worths) else { continue };
            if worth < least.0 {
                least = (worth, at as u16);
            }
            most = most.max(worth);
        }
        if most <= NOISE * least.0 {
            return VictimSource::Everywhere;
        }
        VictimSource::Within(Streams::only(StreamId(least.1)))
    }
    fn check(&self, blocks: &BlockTable) -> Result<(), String> {
        for (log, stream) in self.logs.iter().zip(0..) {
            let closed = blocks.closed_of(Streams::only(StreamId(stream))).count() as u64;
            if log.closed_blocks != closed {
                return Err(format!("log {stream} counts {} blocks, {closed} are closed", log.closed_blocks));
            }
        }
        Ok(())
    }
    #[inline(always)]
    fn prefetch(&self, lpns: impl Iterator<Item = Lpn>) {
        for lpn in lpns {
            memory::prefetch(&self.pages, lpn.0 as usize);
            memory::prefetch(&self.held_by, lpn.0 as usize);
        }
    }
    fn memory_bytes(&self) -> u64 {
        self.pages.len() as u64 * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_worth_what_the_cost_of_cleaning_falls_by() {
        // 10,000 live pages, of which each is updated once in 10,000 host writes: the log's copies a host write are WA - 1.
        let log = |blocks| Log { live: 10_000, closed_blocks: blocks, frequency: 1.0, ..Log::default() };
        let worths = Worths::new();
        let copies = |blocks: f64| 1.0 / dead_share(blocks * 64.0 / 10_000.0);
        for blocks in [160u32, 170, 200, 300] {
            let falls = (copies(f64::from(blocks) - 0.5) - copies(f64::from(blocks) + 0.5)) / 64.0;
            let worth = log(blocks.into()).worth_of_block(64, &worths).unwrap();
            assert!((worth / falls - 1.0).abs() < 0.02, "{blocks} blocks: {worth:e}, cost falls by {falls:e} a page");
        }
        assert_eq!(log(156).worth_of_block(64, &worths), None, "no page is dead");
        // Worth falls without end as blocks are added, down to logs of which hardly anything is alive.
        let falling: Vec<f64> = (1..=1000).map(|times| log(157 * times).worth_of_block(64, &worths).unwrap()).collect();
        assert!(falling.is_sorted_by(|more, less| more >= less), "{falling:?}");
        assert_eq!(
            Log { closed_blocks: 9, frequency: 1.0, ..Log::default() }.worth_of_block(64, &worths),
            Some(0.0),
            "all are dead"
        );
    }

    #[test]
    fn worths_in_the_table_are_those_of_the_closed_form() {
        let worths = Worths::new();
        let mut spare = 1e-7;
        while spare < 25.0 {
            let (table, exact) = (worths.at(spare), unit_worth(spare));
            let tolerance = if spare < 8.0 { 0.002 } else { 0.02 };
            assert!((table / exact - 1.0).abs() < tolerance, "{spare}: {table:e} instead of {exact:e}");
            spare *= 1.003;
        }
        assert_eq!((worths.at(40.0), worths.at(1e9)), (0.0, 0.0));
    }
}
