//! What overwriting a file costs on SFS and LFS: blocks that are written for each block of the host, by cause, without any mount.
//!
//! ```sh
//! cargo run --release -p isotherm-fs --example write_cost -- [--mebibytes 1024] [--segment 2097152] [--log "sfs;lfs"] [--fill "70;85"] [--theta "1.1;0"] [--active 100] [--sync N]
//! ```
//!
//! A volume in memory; a file that takes the share `fill` of the device, written once; of its blocks the share `active` (chosen as
//! the first ones) is then overwritten, a block at a time, by Zipf's law with exponent theta (0: uniform), the device's size before
//! counting begins and twice that after; with `--sync`, an fsync after every N blocks.

use isotherm::random::Random;
use isotherm_fs::geometry::{Wishes, divide};
use isotherm_fs::log::LogSettings;
use isotherm_fs::memory_device::MemoryDevice;
use isotherm_fs::tree::FormatOptions;
use isotherm_fs::volume::{Volume, make};
use isotherm_vfs::{Caller, FileKind, FileSystem, NewNode, OpenFlags, ROOT, Time, WriteFlags};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

/// Draws ranks by Zipf's law, and spreads them over the blocks.
struct Draws {
    cumulated: Vec<f64>,
    places: Vec<u64>,
    random: Random,
}

impl Draws {
    fn new(blocks: u64, theta: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=blocks)
            .map(|rank| {
                sum += (rank as f64).powf(-theta);
                sum
            })
            .collect();
        let mut random = Random::new(seed);
        let mut places: Vec<u64> = (0..blocks).collect();
        for at in (1..places.len()).rev() {
            places.swap(at, random.below(at as u64 + 1) as usize);
        }
        Self { cumulated, places, random }
    }

    fn next(&mut self) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or(0.0);
        let at = self.random.unit() * total;
        let rank = self.cumulated.partition_point(|sum| *sum <= at).min(self.places.len() - 1);
        self.places[rank]
    }
}

fn measure(given: &HashMap<String, String>, log: &str, fill: f64, theta: f64) -> Result<(), Error> {
    let number = |name: &str, default: f64| given.get(name).map_or(Ok(default), |text| text.parse::<f64>());
    let bytes = (number("mebibytes", 1024.0)? as u64) << 20;
    let segment_bytes = given.get("segment").map(|text| text.parse()).transpose()?;
    let wishes = Wishes { segment_bytes, data_checksums: true, ..Wishes::default() };
    let device = Arc::new(MemoryDevice::new(bytes));
    make(device.clone(), &divide(bytes, &wishes)?, &FormatOptions::default())?;
    let (volume, _) = Volume::open(device, LogSettings::parse(log)?, Time::default)?;
    let node = NewNode { kind: FileKind::Regular, permissions: 0o644, umask: 0, device: 0 };
    let flags = OpenFlags { read: true, write: true, ..OpenFlags::default() };
    let (file, opened) = volume.create(Caller::default(), ROOT, b"file", node, flags)?;
    let write = |at: u64| volume.write(file.ino, opened.handle, at * 4096, &[at as u8; 4096], WriteFlags::default());
    let blocks = (bytes as f64 * fill) as u64 / 4096;
    (0..blocks).try_for_each(write)?;
    let mut draws = Draws::new((blocks as f64 * number("active", 100.0)? / 100.0) as u64, theta, 1);
    let sync = number("sync", 0.0)? as u64;
    let mut before = Value::Null;
    for step in 0..3 * bytes / 4096 {
        if step == bytes / 4096 {
            before = volume.counters()?;
        }
        let written = write(draws.next());
        if written.is_err() {
            eprintln!("step {step}: {written:?}: {:?}", volume.counters()?["failure"]);
            written?;
        }
        if sync > 0 && step % sync == 0 {
            volume.fsync(file.ino, false)?;
        }
    }
    let after = volume.counters()?;
    let count = |key: &str| after[key].as_f64().unwrap_or(0.0) - before[key].as_f64().unwrap_or(0.0);
    let host = count("host_blocks");
    let share = |key: &str| count(key) / host;
    let pages = share("page_blocks") + share("table_blocks");
    println!(
        "{log:<28} {:>3.0} % {theta:>5.2} {:>8.3} {:>8.3} {:>8.3} {pages:>8.3} {:>8.3} {:>8.3} {:>6} {:>6} {:>6}",
        fill * 100.0,
        share("written_blocks"),
        share("absorbed_blocks"),
        share("cleaned_blocks"),
        share("summary_blocks") + share("checkpoint_blocks"),
        count("cleaned_blocks") / count("segments_cleaned") / (after["segment_bytes"].as_f64().unwrap_or(0.0) / 4096.0),
        count("segments_cleaned"),
        count("checkpoints"),
        after["segments_free"],
    );
    volume.release(file.ino, opened.handle);
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut given = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        given.insert(name.trim_start_matches('-').to_owned(), value);
    }
    let list = |name: &str, default: &str| -> Vec<String> {
        given.get(name).map_or(default, String::as_str).split(';').map(str::to_owned).collect()
    };
    println!(
        "{:<28} {:>5} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>6}",
        "log", "fill", "theta", "all", "absorbed", "cleaned", "pages", "rest", "victim", "clean", "checkp", "free"
    );
    for log in list("log", "sfs;lfs") {
        for fill in list("fill", "70;85") {
            for theta in list("theta", "1.1;0") {
                measure(&given, &log, fill.parse::<f64>()? / 100.0, theta.parse()?)?;
            }
        }
    }
    Ok(())
}
