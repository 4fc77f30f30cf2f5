//! What the live page shows of a served drive, and its counters for Prometheus.

use super::facts::Facts;
use crate::output;
use hdrhistogram::Histogram;
use isotherm::device::{BlockPhase, BlockView};
use isotherm::request::Op;
use isotherm::stats::{Latencies, Snapshot};
use isotherm_drive::{Drive, SlowRequest};
use isotherm_live::{About, Block, Cells, Fact, LatencyRow, Sample, Slow, Source, State, Unit, Victim};
use std::collections::VecDeque;
use std::fmt::Write as _;
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
                before.victims.push_back(Victim { time_ms, block: number, valid_share, stream: old.stream });
            }
        }
        let old = before.victims.len().saturating_sub(VICTIMS_MAX);
        before.victims.drain(..old);
        before.blocks = blocks;
    }
}

impl Source for Watched {
    fn about(&self) -> About {
        let (spec, plan) = (self.drive.spec(), self.drive.plan());
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
        About {
            title: self.facts.name().to_owned(),
            facts: facts.into_iter().map(|(name, value)| Fact::new(name, value)).collect(),
            unit: Unit::default(),
            streams: Vec::new(),
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
            host_pages_written: now.host.pages_written - self.start.host.pages_written,
            host_bytes_written: now.host.bytes_written - self.start.host.bytes_written,
            host_bytes_read: now.host.bytes_read - self.start.host.bytes_read,
            media_bytes_written: programmed.total() * page_bytes,
            pages_programmed: programmed
                .by_key()
                .into_iter()
                .map(|(key, pages)| (key.replace('_', " "), pages))
                .collect(),
            free_blocks: now.free_blocks,
            floor_blocks: self.drive.plan().reserve_blocks,
            latencies: rows(&latencies, before.latencies.front()),
            slowest: self.drive.slowest().iter().map(slow).collect(),
            victims: before.victims.iter().cloned().collect(),
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
        let cell = |block: &BlockView| Block {
            valid_share: block.valid as f32 / pages,
            age: youngest.saturating_sub(block.stamp) as f32 / span,
            erases: block.erases as f32,
            stream: block.stream,
            state: match block.phase {
                BlockPhase::Free => State::Free,
                BlockPhase::Open => State::Open,
                BlockPhase::Closed | BlockPhase::Reserved => State::Closed,
                BlockPhase::Retired => State::Bad,
            },
        };
        let cells = Cells::gather(blocks.iter().map(cell), most);
        if self.drive.plan().geometry.blocks > BLOCKS_LOOKED_AT {
            self.find_victims(&mut self.before(), blocks);
        }
        cells
    }

    fn metrics(&self) -> String {
        metrics(&self.drive)
    }
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
    ];
    let causes: Vec<String> = causes.into_iter().flatten().collect();
    Slow {
        time_ms: request.arrived.as_millis() as u64,
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
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        let _ = writeln!(text, "# HELP isotherm_{name} {help}\n# TYPE isotherm_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "isotherm_{name}{labels} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value as f64)];
    let host = totals.host;
    family("host_written_bytes_total", "counter", "Bytes of the host's writes.", &one(host.bytes_written));
    family("host_read_bytes_total", "counter", "Bytes of the host's reads.", &one(host.bytes_read));
    family("host_trimmed_bytes_total", "counter", "Bytes of the host's trims.", &one(host.bytes_trimmed));
    family("host_writes_total", "counter", "Write requests.", &one(host.writes));
    family("host_reads_total", "counter", "Read requests.", &one(host.reads));
    family("host_flushes_total", "counter", "Flush requests.", &one(host.flushes));
    let programmed = totals.programs.plus(&totals.copies);
    let by_cause =
        |(cause, pages): (&'static str, u64)| (format!("{{cause=\"{cause}\"}}"), (pages * page_bytes) as f64);
    let media: Vec<_> = programmed.by_key().into_iter().map(by_cause).collect();
    family("media_written_bytes_total", "counter", "Bytes programmed on flash, by cause.", &media);
    family("block_erases_total", "counter", "Blocks erased.", &one(totals.erases.total()));
    family("block_erases_max", "gauge", "Erases of the most worn block.", &one(u64::from(wear.max)));
    family("free_blocks", "gauge", "Blocks that hold nothing.", &one(u64::from(snapshot.free_blocks)));
    family("mapped_bytes", "gauge", "Bytes of logical pages that hold data.", &one(snapshot.mapped_pages * page_bytes));
    family("power_cycles_total", "counter", "Times that the drive was opened.", &one(host.power_cycles));
    family("unsafe_shutdowns_total", "counter", "Of these, after a loss of power.", &one(host.unsafe_shutdowns));
    family("media_errors_total", "counter", "Reads of damaged pages.", &one(host.media_errors));
    text
}
