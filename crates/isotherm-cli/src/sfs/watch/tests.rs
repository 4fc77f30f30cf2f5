//! What the page shows of a volume on a device in memory, against the volume's own counters.

use super::*;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::make;
use isotherm_vfs::{Caller, FileKind, FileSystem as _, NewNode, OpenFlags, ROOT, Time, WriteFlags};

const FILE_BLOCKS: u64 = 9_000;

/// A volume on a device in memory, and a page that watches it from when a file was written once.
struct Stage {
    volume: Arc<Volume>,
    watched: Watched,
    file: (u64, u64),
    writes: u64,
}

impl Stage {
    fn new() -> Self {
        let device = Arc::new(MemoryDevice::new(48 << 20));
        let wishes = Wishes { segment_bytes: Some(256 << 10), ..Wishes::default() };
        let superblock = divide(48 << 20, &wishes).expect("it can be divided");
        make(device.clone(), &superblock, &FormatOptions::default()).expect("it is made");
        let settings = LogSettings::parse("sfs:groups=3").expect("the registry has it");
        let (volume, _) = Volume::open(device, settings, Time::default).expect("it can be opened");
        let volume = Arc::new(volume);
        let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
        let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let (found, opened) =
            volume.create(Caller::default(), ROOT, b"file", node, flags).expect("there is room for a file");
        let watch = || Watched::new(volume.clone(), "disk".to_owned(), Vec::new()).expect("it answers");
        let mut stage = Self { watched: watch(), volume: volume.clone(), file: (found.ino, opened.handle), writes: 0 };
        for block in 0..FILE_BLOCKS {
            stage.write(block);
        }
        stage.watched = watch();
        stage
    }

    fn write(&mut self, block: u64) {
        let (ino, handle) = self.file;
        let bytes = vec![self.writes as u8; BLOCK_BYTES];
        let done = self.volume.write(ino, handle, block * BLOCK_BYTES as u64, &bytes, WriteFlags::default());
        done.expect("there is room");
        self.writes += 1;
    }

    /// Overwrites, most of them of a tenth, until segments were cleaned.
    fn work(&mut self) {
        for i in 0..40_000u64 {
            let at = i * 7919;
            self.write(if i % 8 > 0 { at % (FILE_BLOCKS / 10) } else { at % FILE_BLOCKS });
        }
    }
}

fn count(counters: &[Counter], name: &str) -> u64 {
    counters.iter().find(|counter| counter.name == name).unwrap_or_else(|| panic!("{name}")).count
}

#[test]
fn a_sample_counts_from_when_watching_began_and_agrees_with_the_statistics() {
    let mut stage = Stage::new();
    let before = stage.volume.counters().expect("it answers");
    let sample = stage.watched.sample();
    let counted = |counters: &[Counter]| counters.iter().map(|counter| counter.count).sum::<u64>();
    assert_eq!((counted(&sample.bytes), counted(&sample.events), sample.pages_wanted), (0, 0, 0));
    stage.work();
    let mut out = Vec::new();
    stage.volume.read(stage.file.0, stage.file.1, 0, 100_000, &mut out).expect("it can be read");
    stage.volume.checkpoint().expect("it is written");

    let (after, sample) = (stage.watched.stats(), stage.watched.sample());
    let since = |key: &str| after[key].as_u64().expect(key) - before[key].as_u64().expect(key);
    assert!(since("segments_cleaned") > 20, "it was cleaned: {after}");
    assert_eq!(count(&sample.bytes, "file writes"), since("host_blocks") * 4096);
    assert_eq!(count(&sample.bytes, "log writes"), since("written_blocks") * 4096);
    assert_eq!(count(&sample.bytes, "file reads"), 100_000);
    assert_eq!(count(&sample.bytes, "reads for cleaning"), since("cleaning_reads") * 4096);
    assert_eq!(count(&sample.events, "segments cleaned"), since("segments_cleaned"));
    assert_eq!(count(&sample.events, "checkpoints"), since("checkpoints"));
    assert_eq!(counted(&sample.pages_written), since("written_blocks"), "the causes are all there is");
    assert_eq!(sample.pages_wanted, since("data_blocks") - since("cleaned_blocks"));
    assert_eq!(count(&sample.pages_written, "cleaning"), since("cleaned_blocks"));
    let cost = [since("written_blocks") + since("cleaning_reads"), sample.pages_wanted];
    assert_eq!(sample.ratios, [Ratio { name: "write cost", quotients: vec![cost] }]);
    assert_eq!(u64::from(sample.free_units), after["segments_free"].as_u64().expect("a count"));
    let all = after["written_blocks"].as_f64().expect("a count") + after["cleaning_reads"].as_f64().expect("a count");
    let logged = after["data_blocks"].as_f64().expect("a count") - after["cleaned_blocks"].as_f64().expect("a count");
    assert_eq!(after["write_cost"].as_f64(), Some(all / logged));
    assert!(sample.failure.is_none());
}

#[test]
fn the_map_has_every_segment_and_its_histogram_is_that_of_the_statistics() {
    let mut stage = Stage::new();
    stage.work();
    stage.volume.checkpoint().expect("it is written");
    let (cells, stats) = (stage.watched.cells(isotherm_live::MOST_CELLS), stage.watched.stats());
    assert_eq!(u64::from(cells.units), stats["segments"].as_u64().expect("a count"));
    assert_eq!(u64::from(cells.by_state[State::Free as usize]), stats["segments_free"].as_u64().expect("a count"));
    assert_eq!(cells.by_state[State::Bad as usize], 0);
    let held: Vec<u64> = cells.spreads[0].1.iter().map(|count| u64::from(*count)).collect();
    let mut told: Vec<u64> = serde_json::from_value(stats["utilisation_histogram"].clone()).expect("a list");
    // The statistics leave out written segments in which nothing lives any more.
    let empty = held.iter().sum::<u64>() - told.iter().sum::<u64>();
    told[0] += empty;
    assert_eq!(held, told);
    let numbers = |key: &str| &cells.numbers.iter().find(|(known, _)| *known == key).expect("it is coloured by it").1;
    let hotter = numbers("hotness").iter().filter(|hotness| **hotness > 0.0).count();
    assert_eq!(hotter as u64 + empty, held.iter().sum::<u64>(), "what lives is hot to some degree");
    assert!(numbers("age").iter().any(|age| *age > 1000.0), "some segments are old");
    assert!(numbers("group").iter().all(|group| *group <= 3.0));
}

#[test]
fn victims_and_groups_are_those_of_the_segment_machine() {
    let mut stage = Stage::new();
    stage.work();
    stage.watched.cells(1);
    let sample = stage.watched.sample();
    let victims: Vec<(u32, f32, u16)> = sample.victims.iter().map(|v| (v.unit, v.valid_share, v.class)).collect();
    let chosen = stage.volume.figures().expect("it answers").victims;
    let chosen: Vec<(u32, f32, u16)> = chosen.iter().map(|v| (v.segment, v.utilisation, class_of(v.group))).collect();
    assert!(chosen.len() > 20 && victims == chosen, "{victims:?} {chosen:?}");
    assert!(
        victims.iter().any(|(_, utilisation, _)| *utilisation > 0.0) && victims.iter().any(|(_, _, class)| *class > 0)
    );
    assert_eq!(stage.watched.sample().victims.len(), victims.len(), "each is shown once");
    let later = Watched::new(stage.volume.clone(), "disk".to_owned(), Vec::new()).expect("it answers");
    assert_eq!(later.sample().victims.len(), 0, "what was cleaned before is not of now");

    let [table] = &sample.tables[..] else { panic!("one table") };
    assert_eq!(table.rows.len(), 3);
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    let of_volume = stage.volume.inspect(|tree| {
        let machine = tree.store().machine();
        let segments = machine.segments();
        let of_group = |group: u8| {
            let is_there = |s: &u32| {
                segments.state(*s) != SegmentState::Freed && segments.written(*s).is_some_and(|(g, _)| g == group)
            };
            (0..segments.count()).filter(is_there).count() as u64
        };
        (machine.centres(), [of_group(0), of_group(1), of_group(2)])
    });
    let (centres, segments) = of_volume.expect("it answers");
    for (group, row) in table.rows.iter().enumerate() {
        assert_eq!(row[1..3], [Value::Number(centres[group]), Value::Count(segments[group])], "{table:?}");
    }
    let names: Vec<&Value> = table.rows.iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["1 (coldest)", "2", "3 (hottest)"].map(|name| Value::Text(name.to_owned())).each_ref());
}

#[test]
fn what_is_served_is_named_and_prometheus_gets_the_counters() {
    let stage = Stage::new();
    let about = stage.watched.about();
    let fact = |name: &str| about.facts.iter().find(|fact| fact.name == name).expect("it is a fact").value.clone();
    assert_eq!(
        (fact("log"), fact("groups"), fact("segment to clean")),
        ("sfs:groups=3".into(), "3".into(), "cost_hotness".into())
    );
    assert_eq!((about.title.as_str(), about.has_latencies), ("disk", false));
    let metrics = stage.watched.metrics();
    let host = stage.watched.stats()["host_blocks"].as_u64().expect("a count") * 4096;
    assert!(metrics.contains(&format!("\nisotherm_sfs_file_written_bytes_total {host}\n")), "{metrics}");
    assert!(metrics.contains("isotherm_sfs_log_written_bytes_total{cause=\"files\"} "), "{metrics}");
}
