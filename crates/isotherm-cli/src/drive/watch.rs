//! What the live page shows of a served drive, and its counters for Prometheus.

use super::facts::Facts;
use super::streams;
use crate::output;
use crate::prometheus::Families;
use hdrhistogram::Histogram;
use isotherm::device::{BlockPhase, BlockView};
use isotherm::request::Op;
use isotherm::stats::{Latencies, Snapshot};
use isotherm_drive::{Drive, SlowRequest};
use isotherm_live::{
    About, Cells, Colouring, Counter, Fact, LatencyRow, Sample, Scale, Slow, Source, State, Threshold, Unit, Victim,
    Words,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Samples over which a percentile of late is taken: ten seconds.
const RECENT: usize = 20;
/// Victims that are remembered.
const VICTIMS_MAX: usize = 100;
/// Blocks up to which victims are looked for with every sample; beyond, with every map.
const BLOCKS_LOOKED_AT: u32 = 1 << 16;

/// A drive, and how it stood before.
pub struct Watched {
    drive: Arc<Drive>,
    facts: Arc<Facts>,
    start: Snapshot,
    before: Mutex<Before>,
}

#[derive(Default)]
struct Before {
    latencies: VecDeque<Latencies>,
    blocks: Vec<BlockView>,
    victims: VecDeque<Victim>,
}

impl Watched {
    /// Begins to watch.
    pub fn new(drive: Arc<Drive>, facts: Arc<Facts>) -> Self {
        let start = drive.observe(|device| device.snapshot());
        Self { drive, facts, start, before: Mutex::default() }
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks that were erased since the last look were victims: what they held then had to be moved.
    fn find_victims(&self, before: &mut Before, blocks: Vec<BlockView>) {
        let pages = self.drive.plan().geometry.pages_per_block() as f32;
        let time_ms = self.drive.served_for().as_millis() as u64;
        for (number, (old, new)) in (0..).zip(before.blocks.iter().zip(&blocks)) {
            if new.erases > old.erases {
                let valid_share = old.valid as f32 / pages;
                before.victims.push_back(Victim { time_ms, unit: number, valid_share, class: old.stream });
            }
        }
        let old = before.victims.len().saturating_sub(VICTIMS_MAX);
        before.victims.drain(..old);
        before.blocks = blocks;
    }
}

impl Source for Watched {
    fn about(&self) -> About {
        About {
            title: self.facts.name().to_owned(),
            facts: describe(&self.drive),
            words: Words::default(),
            colourings: colourings(&self.drive).into(),
            has_latencies: true,
        }
    }

    fn stats(&self) -> serde_json::Value {
        self.facts.stats()
    }

    fn sample(&self) -> Sample {
        let page_bytes = u64::from(self.drive.plan().geometry.page_bytes());
        let looks = self.drive.plan().geometry.blocks <= BLOCKS_LOOKED_AT;
        let (now, latencies, blocks) = self.drive.observe(|device| {
            let blocks = if looks { device.blocks() } else { Vec::new() };
            (device.snapshot(), device.latencies().clone(), blocks)
        });
        let mut before = self.before();
        if looks {
            self.find_victims(&mut before, blocks);
        }
        let programmed = now.medium.programmed().since(&self.start.medium.programmed());
        let sample = Sample {
            time_ms: self.drive.served_for().as_millis() as u64,
            pages_wanted: now.host.pages_written - self.start.host.pages_written,
            pages_written: programmed
                .by_key()
                .into_iter()
                .map(|(key, pages)| Counter::new(key.replace('_', " "), pages))
                .collect(),
            bytes: vec![
                Counter::new("host writes", now.host.bytes_written - self.start.host.bytes_written),
                Counter::new("flash writes", programmed.total() * page_bytes),
                Counter::new("host reads", now.host.bytes_read - self.start.host.bytes_read),
            ],
            events: vec![Counter::new("erases", now.medium.erases.total() - self.start.medium.erases.total())],
            free_units: now.free_blocks,
            thresholds: vec![Threshold { name: "floor", units: self.drive.plan().reserve_blocks }],
            latencies: rows(&latencies, before.latencies.front()),
            slowest: self.drive.slowest().iter().map(slow).collect(),
            victims: before.victims.iter().cloned().collect(),
            ..Sample::default()
        };
        before.latencies.push_back(latencies);
        if before.latencies.len() > RECENT {
            before.latencies.pop_front();
        }
        sample
    }

    fn cells(&self, most: usize) -> Cells {
        let blocks = self.drive.observe(|device| device.blocks());
        let (oldest, youngest) = blocks
            .iter()
            .filter(|block| block.valid > 0)
            .fold((u64::MAX, 0), |(oldest, youngest), block| (oldest.min(block.stamp), youngest.max(block.stamp)));
        let pages = self.drive.plan().geometry.pages_per_block() as f32;
        let span = youngest.saturating_sub(oldest).max(1) as f32;
        let unit = |block: &BlockView| Unit {
            numbers: [
                block.valid as f32 / pages,
                youngest.saturating_sub(block.stamp) as f32 / span,
                block.erases as f32,
                block.stream.into(),
            ],
            state: match block.phase {
                BlockPhase::Free => State::Free,
                BlockPhase::Open => State::Open,
                BlockPhase::Closed | BlockPhase::Reserved => State::Closed,
                BlockPhase::Retired => State::Bad,
            },
        };
        let cells = Cells::gather(&colourings(&self.drive), blocks.iter().map(unit), most);
        if self.drive.plan().geometry.blocks > BLOCKS_LOOKED_AT {
            self.find_victims(&mut self.before(), blocks);
        }
        cells
    }

    fn metrics(&self) -> String {
        metrics(&self.drive)
    }
}

/// How a drive was built, for people.
pub fn describe(drive: &Drive) -> Vec<Fact> {
    let (spec, plan) = (drive.spec(), drive.plan());
    let geometry = plan.geometry;
    let page = f64::from(geometry.page_bytes());
    let facts = [
        ("FTL", spec.ftl.name.to_string()),
        ("placement", spec.placement.name.to_string()),
        ("victim policy", spec.gc.victim.to_string()),
        ("capacity", output::bytes(f64::from(plan.logical_pages) * page)),
        ("over-provisioning", output::per_cent(Some(plan.over_provisioning), 1)),
        ("page", output::bytes(page)),
        ("block", format!("{} pages", geometry.pages_per_block())),
        ("blocks", output::whole(u64::from(geometry.blocks))),
        ("timing", format!("{}, {:?}", spec.timing.preset, spec.timing.mode).to_lowercase()),
    ];
    facts.into_iter().map(|(name, value)| Fact::new(name, value)).collect()
}

/// What the numbers of a block's cell are, in their order.
fn colourings(drive: &Drive) -> [Colouring; 4] {
    [
        Colouring::new("valid_share", "valid pages", "{} valid", Scale::Share),
        Colouring {
            ends: ["written last", "written longest ago"],
            ..Colouring::new("age", "age", "age {}", Scale::Linear)
        },
        Colouring { of_all: true, ..Colouring::new("erases", "erases", "{} erases", Scale::Linear) },
        Colouring::new(
            "stream",
            "stream",
            "stream {}",
            Scale::Classes { names: streams::names(drive.spec(), drive.plan()) },
        ),
    ]
}

/// Latencies so far, and P99 since `earlier`.
fn rows(now: &Latencies, earlier: Option<&Latencies>) -> Vec<LatencyRow> {
    let row = |op: &str, all: &Histogram<u64>, before: Option<&Histogram<u64>>| {
        let mut recent = all.clone();
        // Latencies that were reset since then are fewer than they were.
        let is_difference = before.is_none_or(|before| recent.subtract(before).is_ok());
        LatencyRow {
            op: op.to_owned(),
            count: all.len(),
            p50_ns: all.value_at_quantile(0.5),
            p90_ns: all.value_at_quantile(0.9),
            p99_ns: all.value_at_quantile(0.99),
            p999_ns: all.value_at_quantile(0.999),
            max_ns: all.max(),
            recent_p99_ns: (is_difference && !recent.is_empty()).then(|| recent.value_at_quantile(0.99)),
        }
    };
    vec![
        row("read", &now.read, earlier.map(|e| &e.read)),
        row("write", &now.write, earlier.map(|e| &e.write)),
        row("trim", &now.trim, earlier.map(|e| &e.trim)),
        row("flush", &now.flush, earlier.map(|e| &e.flush)),
    ]
}

fn slow(request: &SlowRequest) -> Slow {
    let several = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    };
    let causes = [
        several(request.erases, "block erase", "block erases"),
        several(request.copies, "page copy", "page copies"),
        several(request.other_programs, "metadata page", "metadata pages"),
        several(request.buffered_programs, "page of the write buffer", "pages of the write buffer"),
    ];
    let waited = (request.waited_ns > 0)
        .then(|| format!("{} behind other requests", output::time(Some(request.waited_ns as f64))));
    let causes: Vec<String> = waited.into_iter().chain(causes.into_iter().flatten()).collect();
    Slow {
        time_ms: request.ended.as_millis() as u64,
        op: match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::WriteZeroes => "write zeros",
            Op::Flush => "flush",
        }
        .to_owned(),
        offset: request.offset,
        length: request.length,
        latency_ns: request.latency_ns,
        delayed_by: causes.join(", "),
    }
}

/// The counters over the drive's life in Prometheus' text format.
fn metrics(drive: &Drive) -> String {
    let totals = drive.totals();
    let page_bytes = u64::from(drive.plan().geometry.page_bytes());
    let (snapshot, wear) = drive.observe(|device| (device.snapshot(), device.wear()));
    let mut families = Families::default();
    let host = totals.host;
    families.counter("host_written_bytes_total", "Bytes of the host's writes.", host.bytes_written);
    families.counter("host_read_bytes_total", "Bytes of the host's reads.", host.bytes_read);
    families.counter("host_trimmed_bytes_total", "Bytes of the host's trims.", host.bytes_trimmed);
    families.counter("host_writes_total", "Write requests.", host.writes);
    families.counter("host_reads_total", "Read requests.", host.reads);
    families.counter("host_flushes_total", "Flush requests.", host.flushes);
    let programmed = totals.programs.plus(&totals.copies);
    let by_cause =
        |(cause, pages): (&'static str, u64)| (format!("{{cause=\"{cause}\"}}"), (pages * page_bytes) as f64);
    let media = programmed.by_key().into_iter().map(by_cause);
    families.add("media_written_bytes_total", "counter", "Bytes programmed on flash, by cause.", media);
    families.counter("block_erases_total", "Blocks erased.", totals.erases.total());
    families.gauge("block_erases_max", "Erases of the most worn block.", u64::from(wear.max));
    families.gauge("free_blocks", "Blocks that hold nothing.", u64::from(snapshot.free_blocks));
    families.gauge("mapped_bytes", "Bytes of logical pages that hold data.", snapshot.mapped_pages * page_bytes);
    families.counter("power_cycles_total", "Times that the drive was opened.", host.power_cycles);
    families.counter("unsafe_shutdowns_total", "Of these, after a loss of power.", host.unsafe_shutdowns);
    families.counter("media_errors_total", "Reads of damaged pages.", host.media_errors);
    families.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_slow_request_says_what_it_waited_for() {
        let none = SlowRequest {
            ended: Duration::from_millis(7),
            op: Op::Write,
            offset: 4096,
            length: 512,
            latency_ns: 2_000_000,
            waited_ns: 0,
            erases: 0,
            copies: 0,
            other_programs: 0,
            buffered_programs: 0,
        };
        let said = |request: &SlowRequest| slow(request).delayed_by;
        assert_eq!(said(&none), "");
        assert_eq!(said(&SlowRequest { erases: 1, copies: 1, ..none }), "1 block erase, 1 page copy");
        assert_eq!(said(&SlowRequest { buffered_programs: 64, ..none }), "64 pages of the write buffer");
        let all = SlowRequest { waited_ns: 1_500_000, erases: 2, copies: 3, other_programs: 4, ..none };
        assert_eq!(said(&all), "1.50 ms behind other requests, 2 block erases, 3 page copies, 4 metadata pages");
    }
}
