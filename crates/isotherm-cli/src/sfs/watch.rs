//! What the live page shows of a mounted volume, and its counters for Prometheus.

use crate::output;
use crate::prometheus::Families;
use isotherm_fs::log::Victim as Chosen;
use isotherm_fs::store::BLOCK_BYTES;
use isotherm_fs::volume::{Figures, SegmentView, Volume};
use isotherm_live::{
    About, Cells, Colouring, Counter, Fact, Figure, Ratio, Sample, Scale, Source, State, Table, Threshold, Unit, Value,
    Victim, Words,
};
use isotherm_sfs::segments::SegmentState;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Victims that are remembered.
const VICTIMS_MAX: usize = 100;
/// Class of segments that were written mixed, or found by recovery; groups count from 1 on.
const NO_GROUP: u16 = 0;

/// A mounted volume, and how it stood before.
pub struct Watched {
    volume: Arc<Volume>,
    source: String,
    /// What is known of the device.
    device: Vec<Fact>,
    began: Instant,
    start: Figures,
    before: Mutex<Before>,
}

/// What was seen so far.
struct Before {
    /// Number of the last segment that was chosen to be cleaned.
    last_victim: u64,
    /// Those that were chosen last since serving began, oldest first.
    victims: VecDeque<Victim>,
    /// Of each group: its segments, and the sum of their utilisations, as the last map had them.
    groups: Vec<(u64, f64)>,
}

impl Watched {
    /// Begins to watch the volume that lies on `source`, of which `device` is known.
    ///
    /// # Errors
    /// A request of the volume panicked.
    pub fn new(volume: Arc<Volume>, source: String, device: Vec<Fact>) -> anyhow::Result<Self> {
        let start = volume.figures()?;
        let before = Before {
            last_victim: start.victims.last().map_or(0, |last| last.number),
            victims: VecDeque::new(),
            groups: vec![(0, 0.0); start.groups.len()],
        };
        let watched = Self { volume, source, device, began: Instant::now(), start, before: Mutex::new(before) };
        watched.look();
        Ok(watched)
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// What the volume counts. After a panic in it there is nothing to watch.
    fn figures(&self) -> Figures {
        self.volume.figures().expect("a volume that is watched can be asked")
    }

    /// Every segment; what each group holds is remembered.
    fn look(&self) -> Vec<SegmentView> {
        let segments = self.volume.segments().expect("a volume that is watched can be asked");
        let mut before = self.before();
        before.groups.fill((0, 0.0));
        for segment in &segments {
            if segment.state != SegmentState::Freed
                && let Some(group) = segment.group
            {
                let (count, utilisation) = &mut before.groups[usize::from(group)];
                (*count, *utilisation) = (*count + 1, *utilisation + f64::from(segment.utilisation));
            }
        }
        segments
    }

    /// Adds those of the chosen segments that were chosen since the last look.
    fn add_victims(&self, before: &mut Before, chosen: &[Chosen]) {
        let time_ms = self.now_ms();
        for victim in chosen.iter().filter(|victim| victim.number > before.last_victim) {
            before.victims.push_back(Victim {
                time_ms,
                unit: victim.segment,
                valid_share: victim.utilisation,
                class: class_of(victim.group),
            });
        }
        before.last_victim = chosen.last().map_or(before.last_victim, |last| last.number);
        let old = before.victims.len().saturating_sub(VICTIMS_MAX);
        before.victims.drain(..old);
    }

    fn group_table(&self, figures: &Figures, before: &Before) -> Table {
        let count = figures.groups.len();
        let row = |(group, counters): (usize, &isotherm_sfs::snapshot::GroupCounters)| {
            let (segments, utilisation) = before.groups[group];
            let began = &self.start.groups[group];
            let blocks = counters.blocks - began.blocks;
            let cleaned = counters.cleaned_blocks - began.cleaned_blocks;
            let share = |part: f64, of: u64| match of {
                0 => Value::Text("\u{2013}".to_owned()),
                _ => Value::Share(part / of as f64),
            };
            vec![
                Value::Text(group_name(group, count)),
                figures.centres.get(group).map_or(Value::Text("\u{2013}".to_owned()), |centre| Value::Number(*centre)),
                Value::Count(segments),
                share(utilisation, segments),
                Value::Count(counters.segments - began.segments),
                Value::Count(blocks),
                share(cleaned as f64, blocks),
            ]
        };
        Table {
            title: "Groups of hotness",
            note: "Hotness is writes of a block over its age in block writes. A group's segments are those that were written for it alone; \
                   what was written counts since serving began."
                .to_owned(),
            columns: vec![
                "group",
                "centre of hotness",
                "segments",
                "mean utilisation",
                "segments written",
                "blocks written",
                "of these moved by cleaning",
            ],
            rows: figures.groups.iter().enumerate().map(row).collect(),
        }
    }

    /// Bytes written to the device and by the device to its medium, since serving began.
    fn of_device(&self, figures: &Figures) -> Option<[u64; 2]> {
        let (now, then) = (figures.device.as_ref()?, self.start.device.as_ref()?);
        Some([now.media_bytes_written - then.media_bytes_written, now.bytes_written - then.bytes_written])
    }
}

/// A group by its number, from 1 on.
fn group_name(group: usize, count: usize) -> String {
    let means = match group {
        0 if count > 1 => " (coldest)",
        _ if count > 1 && group + 1 == count => " (hottest)",
        _ => "",
    };
    format!("{}{means}", group + 1)
}

/// What the numbers of a segment's cell are, in their order.
fn colourings(groups: usize) -> [Colouring; 4] {
    let mut names = vec![String::new(); groups + 1];
    names[usize::from(NO_GROUP)] = "mixed or unknown".to_owned();
    if groups > 1 {
        names[1] = "coldest".to_owned();
        names[groups] = "hottest".to_owned();
    }
    [
        Colouring::new("utilisation", "utilisation", "{} live", Scale::Share),
        Colouring {
            ends: ["coldest", "hottest"],
            ..Colouring::new("hotness", "hotness", "hotness {}", Scale::Logarithmic)
        },
        Colouring {
            ends: ["written last", "written longest ago"],
            ..Colouring::new("age", "age", "age {} block writes", Scale::Linear)
        },
        Colouring::new("group", "group", "group {}", Scale::Classes { names }),
    ]
}

fn words() -> Words {
    Words {
        one: "segment",
        many: "segments",
        states: ["free", "open", "written", ""],
        amplification: "Blocks written to the device for each block of file data that reached the log",
        ratios: "Write cost is write amplification with the blocks that cleaning read counted in",
        latencies: "",
        thresholds: "The background cleans when free segments are down to the first line. Below the second, which moves with what waits in \
                     memory, whoever writes cleans first.",
        collected: "cleaned",
        moved: "utilisation",
    }
}

impl Source for Watched {
    fn about(&self) -> About {
        let settings =
            self.volume.inspect(|tree| tree.store().settings().clone()).expect("a volume that is watched can be asked");
        let start = &self.start;
        let facts = [
            ("log", settings.name.clone()),
            ("volume", output::bytes((start.space.total * BLOCK_BYTES as u64) as f64)),
            ("segment", output::bytes(start.segment_bytes as f64)),
            ("segments", output::whole(u64::from(start.segments))),
            ("reserve", format!("{} segments", output::whole(u64::from(start.segments_reserve)))),
            ("groups", settings.machine.quantiser.groups.to_string()),
            ("segment to clean", settings.machine.victim.name().to_owned()),
            ("access", if settings.read_only { "read only" } else { "read and write" }.to_owned()),
        ];
        let facts = facts.into_iter().map(|(name, value)| Fact::new(name, value));
        About {
            title: self.source.clone(),
            facts: facts.chain(self.device.iter().cloned()).collect(),
            words: words(),
            colourings: colourings(start.groups.len()).into(),
            has_latencies: false,
        }
    }

    fn stats(&self) -> serde_json::Value {
        self.volume.counters().expect("a volume that is watched can be asked")
    }

    fn sample(&self) -> Sample {
        let figures = self.figures();
        let mut before = self.before();
        self.add_victims(&mut before, &figures.victims);
        let (now, start) = (&figures.counters, &self.start.counters);
        let block = BLOCK_BYTES as u64;
        let logged = figures.logged_blocks() - self.start.logged_blocks();
        let written = figures.written_blocks() - self.start.written_blocks();
        let read = now.cleaning_reads - start.cleaning_reads;
        let of_device = self.of_device(&figures);
        let mut bytes = vec![
            Counter::new("file writes", (now.host_blocks - start.host_blocks) * block),
            Counter::new("log writes", written * block),
            Counter::new("file reads", figures.bytes_read - self.start.bytes_read),
            Counter::new("reads for cleaning", read * block),
        ];
        let mut ratios = vec![Ratio { name: "write cost", quotients: vec![[written + read, logged]] }];
        if let Some(flash) = of_device {
            bytes.push(Counter::new("flash writes", flash[0]));
            ratios.push(Ratio { name: "flash write amplification", quotients: vec![flash] });
            ratios.push(Ratio { name: "write amplification end to end", quotients: vec![[written, logged], flash] });
        }
        let used = figures.space.total - figures.space.free;
        Sample {
            time_ms: self.now_ms(),
            pages_wanted: logged,
            pages_written: vec![
                Counter::new("files", logged),
                Counter::new("cleaning", now.cleaned_blocks - start.cleaned_blocks),
                Counter::new("metadata", now.page_blocks - start.page_blocks),
                Counter::new("tables", now.table_blocks - start.table_blocks),
                Counter::new("summaries", now.summary_blocks - start.summary_blocks),
                Counter::new("checkpoints", now.checkpoint_blocks - start.checkpoint_blocks),
            ],
            bytes,
            ratios,
            events: vec![
                Counter::new("segments cleaned", now.segments_cleaned - start.segments_cleaned),
                Counter::new("checkpoints", now.checkpoints - start.checkpoints),
            ],
            free_units: figures.segments_free,
            thresholds: vec![
                Threshold { name: "cleaning at", units: figures.cleaning_at },
                Threshold { name: "writers clean below", units: figures.writers_clean_below },
            ],
            figures: vec![
                Figure { name: "space in use", value: Value::Share(used as f64 / figures.space.total.max(1) as f64) },
                Figure {
                    name: "waiting in memory",
                    value: Value::Bytes((figures.blocks_waiting + figures.pages_dirty) * block),
                },
            ],
            failure: figures.failure.as_ref().map(|why| format!("Nothing is written any more: {why}")),
            victims: before.victims.iter().cloned().collect(),
            tables: vec![self.group_table(&figures, &before)],
            ..Sample::default()
        }
    }

    fn cells(&self, most: usize) -> Cells {
        let segments = self.look();
        let unit = |segment: &SegmentView| Unit {
            state: match segment.state {
                SegmentState::Freed => State::Free,
                SegmentState::Open => State::Open,
                SegmentState::Written => State::Closed,
            },
            numbers: [segment.utilisation, segment.hotness, segment.age as f32, class_of(segment.group).into()],
        };
        Cells::gather(&colourings(self.start.groups.len()), segments.iter().map(unit), most)
    }

    fn metrics(&self) -> String {
        metrics(&self.figures())
    }
}

/// The class of a segment that was written for a group.
fn class_of(group: Option<u8>) -> u16 {
    group.map_or(NO_GROUP, |group| u16::from(group) + 1)
}

/// The counters since the volume was opened in Prometheus' text format.
fn metrics(figures: &Figures) -> String {
    let counters = &figures.counters;
    let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
    let mut families = Families::default();
    families.counter(
        "sfs_file_written_bytes_total",
        "Bytes that files wrote, in whole blocks.",
        bytes(counters.host_blocks),
    );
    families.counter("sfs_file_read_errors_total", "Reads of files that failed.", figures.read_errors);
    families.counter("sfs_file_read_bytes_total", "Bytes of files that were read.", figures.bytes_read);
    let by_cause = [
        ("files", figures.logged_blocks()),
        ("cleaning", counters.cleaned_blocks),
        ("metadata", counters.page_blocks),
        ("tables", counters.table_blocks),
        ("summaries", counters.summary_blocks),
        ("checkpoints", counters.checkpoint_blocks),
    ];
    let by_cause = by_cause.map(|(cause, blocks)| (format!("{{cause=\"{cause}\"}}"), bytes(blocks) as f64));
    families.add("sfs_log_written_bytes_total", "counter", "Bytes written to the device, by cause.", by_cause);
    families.counter("sfs_cleaning_read_bytes_total", "Bytes read for cleaning.", bytes(counters.cleaning_reads));
    families.counter("sfs_segments_cleaned_total", "Segments cleaned.", counters.segments_cleaned);
    families.counter("sfs_checkpoints_total", "Checkpoints.", counters.checkpoints);
    families.counter("sfs_transactions_total", "Transactions committed.", counters.transactions);
    families.gauge("sfs_segments", "Segments.", u64::from(figures.segments));
    families.gauge("sfs_segments_free", "Segments that hold nothing.", u64::from(figures.segments_free));
    families.gauge("sfs_space_bytes", "Bytes that files can take.", bytes(figures.space.total));
    families.gauge("sfs_space_free_bytes", "Of these, free ones.", bytes(figures.space.free));
    families.gauge(
        "sfs_waiting_bytes",
        "Bytes that wait in memory.",
        bytes(figures.blocks_waiting + figures.pages_dirty),
    );
    families.gauge("sfs_failed", "1 if nothing can be written any more.", u64::from(figures.failure.is_some()));
    if let Some(device) = &figures.device {
        families.counter("host_written_bytes_total", "Bytes written to the simulated drive.", device.bytes_written);
        families.counter("flash_written_bytes_total", "Bytes that it programmed on flash.", device.media_bytes_written);
    }
    families.finish()
}

#[cfg(test)]
mod tests;
