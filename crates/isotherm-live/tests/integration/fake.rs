//! A source whose numbers follow from how often it was sampled, so that tests know what a page must show.

use isotherm_live::{About, Block, Cells, Fact, LatencyRow, LivePage, Sample, Slow, Source, State, Unit, Victim};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A text that would run as a script if a page took it for HTML, and is long enough to stick out of a phone's screen.
pub const EVIL: &str =
    "</script><img src=x onerror='window.broken=1'>_and_a_very_long_name_without_a_single_space_in_it_at_all";

/// See the module's text.
#[derive(Default)]
pub struct Fake {
    /// Blocks of the map; 16 where it is 0.
    pub blocks: usize,
    /// Whether the host does nothing.
    pub at_rest: bool,
    /// Length of the text in the statistics, in bytes.
    pub ballast: usize,
    /// How often each method was called.
    pub samples: AtomicU64,
    pub stats: AtomicU64,
    pub cells: AtomicU64,
    /// While a test holds this, `stats` does not return.
    pub gate: Mutex<()>,
}

impl Fake {
    /// A page over it, on a free port of the loopback address.
    pub fn serve(self) -> (Arc<Self>, LivePage) {
        let fake = Arc::new(self);
        let page = LivePage::start(([127, 0, 0, 1], 0).into(), fake.clone(), false).expect("a port is free");
        (fake, page)
    }

    /// The sample of the nth call, from 0 on: a second of work in half a second, at a write amplification of 1.75.
    pub fn sample_of(n: u64) -> Sample {
        let host = 10_000 + 200 * n;
        Sample {
            time_ms: 500 * n,
            host_pages_written: host,
            host_bytes_written: host * 4096,
            host_bytes_read: 1_000_000 * n,
            media_bytes_written: 40_000 * 4096 + 350 * n * 4096,
            pages_programmed: vec![
                ("host".into(), host),
                ("gc".into(), 30_000 + 140 * n),
                ("wear".into(), 0),
                ("translation_gc".into(), 10 * n),
            ],
            free_blocks: 23,
            floor_blocks: 5,
            latencies: vec![LatencyRow {
                op: "write".into(),
                count: 1000 + n,
                p50_ns: 210_000,
                p90_ns: 340_000,
                p99_ns: 1_250_000,
                p999_ns: 8_000_000,
                max_ns: 2_500_000_000,
                recent_p99_ns: Some(1_300_000),
            }],
            slowest: vec![Slow {
                time_ms: 500 * n,
                op: "write".into(),
                offset: 1_234_567_168,
                length: 16_384,
                latency_ns: 18_400_000,
                delayed_by: EVIL.into(),
            }],
            victims: vec![Victim { time_ms: 500 * n, block: n as u32 % 16, valid_share: 0.25, stream: 1 }],
        }
    }

    /// Block i of the map: the first is free, the second open, the third bad, the others closed.
    fn block(i: usize) -> Block {
        let state = match i {
            0 => State::Free,
            1 => State::Open,
            2 => State::Bad,
            _ => State::Closed,
        };
        Block {
            valid_share: (i % 16) as f32 / 16.0,
            age: 1.0 - (i % 16) as f32 / 16.0,
            erases: (i % 7) as f32,
            stream: (i % 2) as u16,
            state,
        }
    }

    fn block_count(&self) -> usize {
        if self.blocks == 0 { 16 } else { self.blocks }
    }
}

impl Source for Fake {
    fn about(&self) -> About {
        About {
            title: format!("Drive {EVIL}"),
            facts: vec![Fact::new("Victim policy", "greedy"), Fact::new(EVIL, EVIL)],
            unit: Unit::default(),
            streams: vec!["host".into()],
        }
    }

    fn stats(&self) -> serde_json::Value {
        self.stats.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.lock());
        serde_json::json!({ "host": { "pages_written": 42 }, "ballast": "x".repeat(self.ballast) })
    }

    fn sample(&self) -> Sample {
        let n = self.samples.fetch_add(1, Ordering::Relaxed);
        if self.at_rest { Sample { time_ms: 500 * n, ..Sample::default() } } else { Self::sample_of(n) }
    }

    fn cells(&self, most: usize) -> Cells {
        self.cells.fetch_add(1, Ordering::Relaxed);
        Cells::gather((0..self.block_count()).map(Self::block), most)
    }

    fn metrics(&self) -> String {
        "# TYPE isotherm_host_pages_written_total counter\nisotherm_host_pages_written_total 42\n".into()
    }
}
