//! A source whose numbers follow from how often it was sampled, so that tests know what a page must show.

use isotherm_live::{
    About, Cells, Colouring, Counter, Fact, Figure, LatencyRow, LivePage, Ratio, Sample, Scale, Slow, Source, State,
    Table, Threshold, Unit, Value, Victim, Words,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A text that would run as a script if a page took it for HTML, and is long enough to stick out of a phone's screen.
pub const EVIL: &str =
    "</script><img src=x onerror='window.broken=1'>_and_a_very_long_name_without_a_single_space_in_it_at_all";

/// See the module's text.
#[derive(Default)]
pub struct Fake {
    /// Units of the map; 16 where it is 0.
    pub units: usize,
    /// Whether it is a file system: segments for blocks, no latencies, more ratios and tables.
    pub is_file_system: bool,
    /// Why nothing is written any more.
    pub failure: Option<String>,
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
            pages_wanted: host,
            pages_written: vec![
                Counter::new("host", host),
                Counter::new("gc", 30_000 + 140 * n),
                Counter::new("wear", 0),
                Counter::new("translation gc", 10 * n),
            ],
            bytes: vec![
                Counter::new("host writes", host * 4096),
                Counter::new("flash writes", 40_000 * 4096 + 350 * n * 4096),
                Counter::new("host reads", 1_000_000 * n),
            ],
            free_units: 23,
            thresholds: vec![Threshold { name: "floor", units: 5 }],
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
            victims: vec![Victim { time_ms: 500 * n, unit: n as u32 % 16, valid_share: 0.25, class: 1 }],
            ..Sample::default()
        }
    }

    /// The same of a file system.
    pub fn file_system_sample_of(n: u64) -> Sample {
        let row =
            |name: &str, centre, blocks| vec![Value::Text(name.into()), Value::Number(centre), Value::Count(blocks)];
        Sample {
            ratios: vec![
                Ratio { name: "write cost", quotients: vec![[1000 + 250 * n, 500 + 100 * n]] },
                Ratio { name: "end to end", quotients: vec![[350 * n, 200 * n], [120 * n, 100 * n]] },
            ],
            events: vec![Counter::new("segments cleaned", 3 * n)],
            thresholds: vec![Threshold { name: "cleaning", units: 9 }, Threshold { name: "reserve", units: 4 }],
            figures: vec![
                Figure { name: "space in use", value: Value::Share(0.63) },
                Figure { name: "waiting", value: Value::Bytes(3 << 20) },
            ],
            latencies: Vec::new(),
            slowest: Vec::new(),
            tables: vec![Table {
                title: "Groups of hotness",
                note: EVIL.into(),
                columns: vec!["group", "centre", "blocks"],
                rows: vec![row("1 (coldest)", 0.000_012, 70_000), row("2 (hottest)", 0.25, 30 + n)],
            }],
            ..Self::sample_of(n)
        }
    }

    /// Unit i of the map: the first is free, the second open, the third bad, the others closed.
    fn unit(i: usize) -> Unit<4> {
        let state = match i {
            0 => State::Free,
            1 => State::Open,
            2 => State::Bad,
            _ => State::Closed,
        };
        let share = (i % 16) as f32 / 16.0;
        // The last of them has nought, which has no logarithm.
        let fading = if i % 16 == 15 { 0.0 } else { 1.0 - share };
        Unit { state, numbers: [share, fading, (i % 7) as f32, (i % 2) as f32] }
    }

    fn colourings(&self) -> [Colouring; 4] {
        let streams = Scale::Classes { names: vec!["host".into()] };
        let age = Colouring {
            ends: ["written last", "written longest ago"],
            ..Colouring::new("age", "age", "age {}", Scale::Linear)
        };
        if self.is_file_system {
            return [
                Colouring::new("utilisation", "utilisation", "{} live", Scale::Share),
                Colouring::new("hotness", "hotness", "hotness {}", Scale::Logarithmic),
                age,
                Colouring::new("group", "group", "group {}", streams),
            ];
        }
        [
            Colouring::new("valid_share", "valid pages", "{} valid", Scale::Share),
            age,
            Colouring { of_all: true, ..Colouring::new("erases", "erases", "{} erases", Scale::Linear) },
            Colouring::new("stream", "stream", "stream {}", streams),
        ]
    }

    fn unit_count(&self) -> usize {
        if self.units == 0 { 16 } else { self.units }
    }
}

impl Source for Fake {
    fn about(&self) -> About {
        About {
            title: format!("Drive {EVIL}"),
            facts: vec![Fact::new("Victim policy", "greedy"), Fact::new(EVIL, EVIL)],
            words: if self.is_file_system {
                Words {
                    one: "segment",
                    many: "segments",
                    states: ["free", "open", "written", ""],
                    amplification: "Blocks written for each block of file data",
                    ratios: "Write cost counts what cleaning read",
                    latencies: "",
                    thresholds: "Cleaning begins when few segments are free.",
                    collected: "cleaned",
                    moved: "live blocks moved",
                }
            } else {
                Words::default()
            },
            colourings: self.colourings().into(),
            has_latencies: !self.is_file_system,
        }
    }

    fn stats(&self) -> serde_json::Value {
        self.stats.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.lock());
        serde_json::json!({ "host": { "pages_written": 42 }, "ballast": "x".repeat(self.ballast) })
    }

    fn sample(&self) -> Sample {
        let n = self.samples.fetch_add(1, Ordering::Relaxed);
        let sample = match (self.at_rest, self.is_file_system) {
            (true, _) => {
                let bytes = vec![Counter::new("host writes", 0)];
                Sample { time_ms: 500 * n, bytes, ..Sample::default() }
            }
            (_, true) => Self::file_system_sample_of(n),
            _ => Self::sample_of(n),
        };
        Sample { failure: self.failure.clone(), ..sample }
    }

    fn cells(&self, most: usize) -> Cells {
        self.cells.fetch_add(1, Ordering::Relaxed);
        Cells::gather(&self.colourings(), (0..self.unit_count()).map(Self::unit), most)
    }

    fn metrics(&self) -> String {
        "# TYPE isotherm_host_pages_written_total counter\nisotherm_host_pages_written_total 42\n".into()
    }
}
