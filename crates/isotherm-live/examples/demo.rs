//! A made-up drive to look at the live page with: `cargo run -p isotherm-live --example demo -- [blocks] [port]`.
//!
//! Its log is real, if small: overwrites, most of them of a hot tenth, go to one stream, and greedy collection moves what is valid
//! to another. Its latencies are drawn from a hat.

use isotherm_live::{
    About, Cells, Colouring, Counter, Fact, LatencyRow, LivePage, Sample, Scale, Slow, Source, State, Threshold, Unit,
    Victim, Words,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PAGES: usize = 64;
const PAGE_BYTES: u64 = 16 * 1024;
const FLOOR: usize = 4;
const HOST: u16 = 0;
const GC: u16 = 1;
const NOWHERE: u32 = u32::MAX;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let blocks = arguments.next().map_or(Ok(2048), |a| a.parse())?;
    let port: u16 = arguments.next().map_or(Ok(8080), |a| a.parse())?;
    let drive = Arc::new(Demo { log: Mutex::new(Log::new(blocks)), start: Instant::now(), blocks });
    let page = LivePage::start(([127, 0, 0, 1], port).into(), drive.clone(), false)?;
    println!("http://{}/", page.address());
    for round in 0.. {
        let mut log = drive.log.lock().expect("the writer does not panic");
        let now_ms = drive.start.elapsed().as_millis() as u64;
        // A host that is busy, then less so.
        let writes = if round % 1500 < 1000 { 60 } else { 15 };
        for _ in 0..writes {
            log.overwrite(now_ms);
        }
        log.reads += writes as u64 / 2;
        drop(log);
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

struct Demo {
    log: Mutex<Log>,
    start: Instant,
    blocks: usize,
}

impl Demo {
    fn with<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.log.lock().expect("the writer does not panic"))
    }
}

impl Source for Demo {
    fn about(&self) -> About {
        let gib = (self.blocks * PAGES) as f64 * PAGE_BYTES as f64 / f64::from(1 << 30);
        About {
            title: "A made-up drive".into(),
            facts: vec![
                Fact::new("Flash", format!("{gib:.2} GiB in {} blocks of {PAGES} pages of 16 KiB", self.blocks)),
                Fact::new("Capacity", "80 % of the flash"),
                Fact::new("Mapping", "page map"),
                Fact::new("Placement", "host_gc: collections write to a stream of their own"),
                Fact::new("Victim policy", "greedy"),
                Fact::new("Floor", format!("{FLOOR} free blocks")),
                Fact::new("Latencies", "drawn from a hat"),
            ],
            words: Words::default(),
            colourings: colourings().into(),
            has_latencies: true,
        }
    }

    fn stats(&self) -> serde_json::Value {
        serde_json::to_value(self.sample()).expect("a sample is JSON")
    }

    fn sample(&self) -> Sample {
        let time_ms = self.start.elapsed().as_millis() as u64;
        self.with(|log| Sample {
            time_ms,
            pages_wanted: log.host,
            pages_written: vec![
                Counter::new("host", log.host),
                Counter::new("gc", log.moved),
                Counter::new("wear", 0),
                Counter::new("trim", log.trims),
            ],
            bytes: vec![
                Counter::new("host writes", log.host * PAGE_BYTES),
                Counter::new("flash writes", (log.host + log.moved + log.trims) * PAGE_BYTES),
                Counter::new("host reads", log.reads * PAGE_BYTES),
            ],
            events: vec![Counter::new("erases", log.erases.iter().map(|erases| u64::from(*erases)).sum())],
            free_units: log.free.len() as u32,
            thresholds: vec![Threshold { name: "floor", units: FLOOR as u32 }],
            latencies: vec![
                row("read", log.reads, 58_000, time_ms),
                row("write", log.host, 230_000, time_ms),
                row("flush", log.host / 900, 1_400_000, time_ms),
            ],
            slowest: log.slowest.clone(),
            victims: log.victims.iter().cloned().collect(),
            ..Sample::default()
        })
    }

    fn cells(&self, most: usize) -> Cells {
        self.with(|log| {
            let newest = log.written.iter().max().copied().unwrap_or(1).max(1) as f32;
            let unit = |i: usize| {
                let share = f32::from(log.valid[i]) / PAGES as f32;
                let age = 1.0 - log.written[i] as f32 / newest;
                Unit { state: log.state[i], numbers: [share, age, log.erases[i] as f32, log.stream[i].into()] }
            };
            Cells::gather(&colourings(), (0..log.valid.len()).map(unit), most)
        })
    }

    fn metrics(&self) -> String {
        self.with(|log| {
            format!(
                "# HELP demo_host_pages_written_total Pages that the host wrote.\n\
                 # TYPE demo_host_pages_written_total counter\ndemo_host_pages_written_total {}\n",
                log.host
            )
        })
    }
}

fn colourings() -> [Colouring; 4] {
    let streams = Scale::Classes { names: vec!["host".into(), "collection".into()] };
    [
        Colouring::new("valid_share", "valid pages", "{} valid", Scale::Share),
        Colouring {
            ends: ["written last", "written longest ago"],
            ..Colouring::new("age", "age", "age {}", Scale::Linear)
        },
        Colouring { of_all: true, ..Colouring::new("erases", "erases", "{} erases", Scale::Linear) },
        Colouring::new("stream", "stream", "stream {}", streams),
    ]
}

/// Latencies around a median, with a tail that comes and goes.
fn row(op: &str, count: u64, p50_ns: u64, time_ms: u64) -> LatencyRow {
    let wave = 1.0 + 0.6 * (time_ms as f64 / 9_000.0).sin();
    LatencyRow {
        op: op.into(),
        count,
        p50_ns,
        p90_ns: p50_ns * 2,
        p99_ns: p50_ns * 9,
        p999_ns: p50_ns * 31,
        max_ns: p50_ns * 77,
        recent_p99_ns: (count > 0).then_some((p50_ns as f64 * 9.0 * wave) as u64),
    }
}

/// A log with one open block for the host and one for collections.
struct Log {
    /// Where each logical page lies, and what each physical page holds.
    place: Vec<u32>,
    owner: Vec<u32>,
    valid: Vec<u16>,
    erases: Vec<u32>,
    written: Vec<u64>,
    stream: Vec<u16>,
    state: Vec<State>,
    free: VecDeque<usize>,
    open: [Option<(usize, usize)>; 2],
    host: u64,
    moved: u64,
    trims: u64,
    reads: u64,
    slowest: Vec<Slow>,
    victims: VecDeque<Victim>,
    random: u64,
}

impl Log {
    /// A log that is full: every logical page is written once.
    fn new(blocks: usize) -> Self {
        let logical = blocks * PAGES * 4 / 5;
        let bad = blocks / 3;
        let mut log = Self {
            place: vec![NOWHERE; logical],
            owner: vec![NOWHERE; blocks * PAGES],
            valid: vec![0; blocks],
            erases: vec![0; blocks],
            written: vec![0; blocks],
            stream: vec![HOST; blocks],
            state: vec![State::Free; blocks],
            free: (0..blocks).filter(|block| *block != bad).collect(),
            open: [None; 2],
            host: 0,
            moved: 0,
            trims: 0,
            reads: 0,
            slowest: Vec::new(),
            victims: VecDeque::new(),
            random: 0x9e37_79b9_7f4a_7c15,
        };
        log.state[bad] = State::Bad;
        for page in 0..logical {
            log.append(page as u32, HOST);
        }
        log
    }

    /// xorshift64.
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % end as u64) as usize
    }

    fn overwrite(&mut self, now_ms: u64) {
        let all = self.place.len();
        let page = if self.below(10) < 8 { self.below(all / 10) } else { self.below(all) } as u32;
        self.host += 1;
        self.trims += u64::from(self.host.is_multiple_of(97));
        self.append(page, HOST);
        while self.free.len() <= FLOOR {
            let victim = self.collect(now_ms);
            if self.below(40) == 0 {
                let latency_ns = (2_000_000 + self.below(16_000_000)) as u64;
                let offset = u64::from(page) * PAGE_BYTES;
                let delayed_by = format!("collection of block {victim}");
                let slow =
                    Slow { time_ms: now_ms, op: "write".into(), offset, length: PAGE_BYTES, latency_ns, delayed_by };
                self.slowest.retain(|s| s.time_ms + 60_000 > now_ms);
                self.slowest.push(slow);
                self.slowest.sort_by_key(|s| std::cmp::Reverse(s.latency_ns));
                self.slowest.truncate(8);
            }
        }
    }

    fn append(&mut self, page: u32, stream: u16) {
        let old = self.place[page as usize];
        if old != NOWHERE {
            self.owner[old as usize] = NOWHERE;
            self.valid[old as usize / PAGES] -= 1;
        }
        let (block, next) = match self.open[stream as usize] {
            Some(open) => open,
            None => (self.free.pop_front().expect("the floor keeps blocks free"), 0),
        };
        let at = block * PAGES + next;
        self.owner[at] = page;
        self.place[page as usize] = at as u32;
        self.valid[block] += 1;
        self.stream[block] = stream;
        self.written[block] = self.host;
        let full = next + 1 == PAGES;
        self.state[block] = if full { State::Closed } else { State::Open };
        self.open[stream as usize] = (!full).then_some((block, next + 1));
    }

    /// Cleans the block with the fewest valid pages.
    fn collect(&mut self, now_ms: u64) -> usize {
        let closed = (0..self.valid.len()).filter(|b| self.state[*b] == State::Closed);
        let victim = closed.min_by_key(|b| self.valid[*b]).expect("a block is closed");
        let valid_share = f32::from(self.valid[victim]) / PAGES as f32;
        self.victims.push_back(Victim {
            time_ms: now_ms,
            unit: victim as u32,
            valid_share,
            class: self.stream[victim],
        });
        if self.victims.len() > 100 {
            self.victims.pop_front();
        }
        for at in victim * PAGES..(victim + 1) * PAGES {
            if self.owner[at] != NOWHERE {
                self.moved += 1;
                self.append(self.owner[at], GC);
            }
        }
        self.erases[victim] += 1;
        self.state[victim] = State::Free;
        self.free.push_back(victim);
        victim
    }
}
